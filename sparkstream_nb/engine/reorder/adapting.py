"""Adapts alpha of `akslack`, the fraction of the disorder that is used as slack, to the requested result quality.

Rules of `AlphaKSlackExtension` and `WindowCoverage`: for every instance, after a number of events, the fraction of a
window that arrived in time is compared with the fraction that the error threshold requires. Alpha and the window's
length are shared by all instances.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..columnar.arrays import Array
from .reorder_loop import java_round

_WINDOW = 10_000_000_000


@dataclass(slots=True)
class _Seen:
    """State of one instance: the times that coverage looks at, the values since alpha was last adapted, and the
    controller's state; arrays in pieces, as they came.
    """

    times: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    alpha: float = 0.0
    error: float = 0.0


class Adapting:
    """Alpha, and the statistics it is computed from."""

    def __init__(self, threshold: float, confidence: float) -> None:
        self.threshold = threshold
        self.critical = abs(statistics.NormalDist().inv_cdf((1 - confidence) / 2))
        self.alpha, self.length = 1.0, 0
        self._seen: dict[int, _Seen] = {}

    def note(self, time: Array, value: Array, instance: Array) -> None:
        """Events that came: int64 times, float64 values of the correlation field, instances (none: there is one)."""
        if len(time) == 0:
            return
        for p, index in _by_instance(instance) if len(instance) else ((0, slice(None)),):
            seen = self._seen.setdefault(p, _Seen())
            seen.times.append(time[index].copy())
            seen.values.append(value[index].copy())

    def adapt(self, p: int, time: int, k: int) -> None:
        """An instance with slack `k` has had its number of events, the last one of which had this time."""
        seen = self._seen[p]
        target = _coverage_wanted(self.critical, self.threshold, np.concatenate(seen.values))
        coverage = 1.0
        if self.length:
            times = np.concatenate(seen.times)
            coverage = _coverage(times, time - self.length)
            seen.times = [times[times > time - self.length - _WINDOW]]
        error = target - coverage
        self.alpha = abs(seen.alpha + 0.5 * error + 0.8 * (error - seen.error))
        seen.error, seen.alpha = error, self.alpha
        self.length = min(int(java_round(self.alpha * k)), k)
        seen.values.clear()

    def state(self) -> dict[str, Any]:
        seen = {p: [_whole(s.times), _whole(s.values), s.alpha, s.error] for p, s in sorted(self._seen.items())}
        return {"alpha": self.alpha, "length": self.length, "seen": seen}

    def load(self, state: dict[str, Any]) -> None:
        self.alpha, self.length = state["alpha"], state["length"]
        self._seen = {p: _Seen([t.copy()], [v.copy()], a, e) for p, (t, v, a, e) in state["seen"].items()}


def _whole(pieces: list[Array]) -> Array:
    return np.concatenate(pieces) if pieces else np.empty(0)


def _by_instance(instance: Array) -> Iterator[tuple[int, Array]]:
    """Each instance among rows, and the rows that are its own."""
    order = np.argsort(instance, kind="stable")
    first = np.flatnonzero(np.diff(instance[order], prepend=-1))
    yield from zip(instance[order[first]].tolist(), np.split(order, first[1:]), strict=True)


def _coverage(times: Array, high: int) -> float:
    """The share of the events of the window that ends at `high` that had come when its end was first reached."""
    within = (times >= high - _WINDOW) & (times <= high)
    total = int(np.count_nonzero(within))
    from_end = np.flatnonzero(times >= high)
    count = int(np.count_nonzero(within[: from_end[0]])) if len(from_end) else total
    return count / total if total else 1.0


def _coverage_wanted(critical: float, error: float, values: Array) -> float:
    """The least window coverage that keeps the error of an average within `error`."""
    n = len(values)
    mean = float(np.cumsum(values)[-1]) / n  # added up one after the other, unlike `sum`
    off = mean - values
    variance = float(np.cumsum(off * off)[-1]) / n
    if mean == 0:
        return math.nan
    spread = critical**2 * ((mean**2 + variance**2) / (n * mean**2))
    a = 1 + spread
    order_keys = []
    for b, c in ((2 * error - 2 - spread, (1 - error) ** 2), (-(2 + 2 * error + spread), (1 + error) ** 2)):
        inner = b**2 - 4 * a * c
        if inner >= 0:
            order_keys.append(min((-b - math.sqrt(inner)) / (2 * a), (-b + math.sqrt(inner)) / (2 * a)))
    return min(order_keys, default=0.0)
