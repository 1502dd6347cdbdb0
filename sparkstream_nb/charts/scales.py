"""Scales of axes: where values are (px)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .picture import Values

BREAK = 40.0
"""The width (px) of a break of an axis of times."""


class Scale(Protocol):
    """The places (px) of values of an axis."""

    def places(self, values: Values) -> Values:
        """The place of each value."""
        ...

    def place(self, value: float) -> float:
        """The place of one value."""
        ...


@dataclass(frozen=True)
class LinearScale:
    """From `low` at `first` (px) to `high` at `last`."""

    low: float
    high: float
    first: float
    last: float

    def places(self, values: Values) -> Values:
        return self.first + (values - self.low) * ((self.last - self.first) / ((self.high - self.low) or 1.0))

    def place(self, value: float) -> float:
        return float(self.places(np.array([value]))[0])


class TimeScale:
    """Times over several spans, with a gap between each two of them."""

    def __init__(self, spans: Sequence[tuple[float, float]], first: float, last: float) -> None:
        self.spans = spans
        total = sum(b - a for a, b in spans) or 1.0
        self.per_ms = (last - first - BREAK * (len(spans) - 1)) / total
        lengths = np.array([(b - a) * self.per_ms + BREAK for a, b in spans])
        self.lefts: Values = first + np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
        self._starts: Values = np.array([a for a, _ in spans], np.float64)

    def places(self, values: Values) -> Values:
        span = np.maximum(0, np.searchsorted(self._starts, values, "right") - 1)
        places: Values = self.lefts[span] + (values - self._starts[span]) * self.per_ms
        return places

    def place(self, value: float) -> float:
        return float(self.places(np.asarray([value], np.float64))[0])


class LaneScale:
    """Lanes of `extents` (px), the first one at `first`; marks are in the first `mark_extents` px of each."""

    def __init__(self, mark_extents: Sequence[float], first: float, extents: Sequence[float] | None = None) -> None:
        self.edges = first + np.concatenate(([0.0], np.cumsum(np.asarray(extents or mark_extents, np.float64))))
        self._mark_extents = np.asarray([*mark_extents, 0.0], np.float64)

    def places(self, values: Values) -> Values:
        lane = np.clip(np.floor(values), 0, len(self._mark_extents) - 1).astype(np.int64)
        return self.edges[lane] + (values - lane) * self._mark_extents[lane]

    def place(self, value: float) -> float:
        return float(self.places(np.asarray([value], np.float64))[0])
