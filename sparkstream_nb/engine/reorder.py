"""`reorder:kslack` and `reorder:akslack`: events held back until their time is due, so that late ones find their place.

Rules of `KSlackExtension` and `AlphaKSlackExtension` of siddhi-execution-reorder: the slack K is the greatest
disorder seen so far; an event leaves once the greatest time seen is K ahead of its own; with a timeout, timers let
go what has waited too long. Events move one by one, as K depends on every one of them.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import Type
from .columns import Array, Column
from .expressions.values import saturate
from .rows import ROOT_BITS, Clock, Rows
from .windows.log import EventLog

_LONG = (-(2**63), 2**63 - 1)
_SECOND = 1000


def _round(value: float) -> int:
    """Java's `Math.round`."""
    return saturate(math.floor(value + 0.5), *_LONG)


class _Buffer:
    """One instance's events by time: those of the last stretch (`fresh`) and those before (`held`), as log positions.
    """

    def __init__(self) -> None:
        self.fresh: dict[int, list[int]] = {}
        self.held: dict[int, list[int]] = {}
        self.k = 0
        self.greatest = 0
        self.sent = -1
        self.scheduled = -1
        self.queue: list[int] = []
        self.idle = False
        self.adapt: dict[str, Any] = {"counter": 0, "alpha": 0.0, "error": 0.0, "data": [], "times": []}


class Reorder:
    """A reordering step. `adaptive` makes it `akslack`, whose second argument is the correlation field."""

    def __init__(self, types: Sequence[Type], constants: Sequence[Any], scheduler: int, adaptive: bool) -> None:
        self.types, self.scheduler, self.adaptive = tuple(types), scheduler, adaptive
        self.timeout, self.most, self.drop_late = -1, _LONG[1], False
        self.batch, self.threshold, confidence = 10000, 0.03, 0.95
        rest = list(constants)
        if adaptive:
            self.batch = rest[0] if rest else self.batch
            self.threshold = rest[5] if len(rest) > 5 else self.threshold
            confidence = rest[6] if len(rest) > 6 else confidence
            rest = rest[1:4]
        if len(rest) == 1 and isinstance(rest[0], bool):
            self.drop_late = rest[0]
        elif rest:
            self.timeout = rest[0]
            if len(rest) > 1 and isinstance(rest[1], bool):
                self.drop_late = rest[1]
            elif len(rest) > 1:
                self.most = _LONG[1] if adaptive and rest[1] == -1 else rest[1]
                self.drop_late = bool(rest[2]) if len(rest) > 2 else False
        self.critical = abs(statistics.NormalDist().inv_cdf((1 - confidence) / 2))
        self.alpha, self.length = 1.0, 0
        self._clear()

    def _clear(self) -> None:
        self.log = EventLog(self.types)
        self.buffers: dict[int, _Buffer] = {0: self._started()}

    def _started(self) -> _Buffer:
        buffer = _Buffer()
        if self.timeout != -1:
            buffer.scheduled = self.timeout
            buffer.queue.append(buffer.scheduled)
        return buffer

    def run(self, rows: Rows, args: Sequence[Column], clock: Clock) -> Rows:
        """The rows that leave, in their new order: those of a chunk that lets them go, or of a timer, are one chunk."""
        at = self.log.append(rows)
        times = args[0].values.tolist() if args else []
        fields = args[1].values.tolist() if self.adaptive and len(args) > 1 else []
        out: list[tuple[list[int], int]] = []
        step, n = clock.first, len(rows)
        roots, parts, chunks = rows.root.tolist(), rows.parts().tolist(), rows.chunk.tolist()
        i = 0
        while True:
            limit = roots[i] if i < n else None
            while step < clock.last:
                root = ((clock.base + step) << ROOT_BITS) | self.scheduler
                if limit is not None and root > limit:
                    break
                if clock.moved[step]:
                    self._fire(int(clock.now[step]), root, out)
                step += 1
            if limit is None:
                break
            now = int(clock.now[(limit >> ROOT_BITS) - clock.base])
            left: list[int] = []
            chunk, part = chunks[i], parts[i]
            while i < n and chunks[i] == chunk:
                self._event(self._buffer(part), at + i, times[i], fields[i] if fields else 0.0, now, left)
                i += 1
            if left:
                out.append((left, limit))
        return self._rows(out, rows.part is not None)

    def _buffer(self, part: int) -> _Buffer:
        if part not in self.buffers:
            self.buffers[part] = self._started()
        return self.buffers[part]

    def _event(self, b: _Buffer, pos: int, time: int, field: float, now: int, left: list[int]) -> None:
        if self.adaptive:
            b.adapt["times"].append(time)
            b.adapt["data"].append(float(field))
        if self.drop_late and time < b.sent:
            return
        if b.idle:
            b.scheduled += _round(math.ceil((now - b.scheduled) / 1000.0)) * _SECOND
            b.queue.append(b.scheduled)
            b.idle = False
        b.fresh.setdefault(time, []).append(pos)
        if self.adaptive:
            self._adapt(b, time)
        if time <= b.greatest:
            return
        b.greatest = time
        disorder = b.greatest - min(b.fresh)
        if disorder > b.k:
            b.k = self.most if disorder >= self.most else _round(disorder * self.alpha) if self.adaptive else disorder
        for t, positions in b.fresh.items():
            b.held.setdefault(t, []).extend(positions)
        b.fresh = {}
        due = [t for t in b.held if t + b.k <= b.greatest]
        heapq.heapify(due)
        while due:
            t = heapq.heappop(due)
            b.sent = t
            left.extend(b.held.pop(t))

    def _fire(self, now: int, root: int, out: list[tuple[list[int], int]]) -> None:
        for b in self.buffers.values():
            while b.queue and b.queue[0] <= now:
                time = b.queue.pop(0)
                left: list[int] = []
                for shelf in (b.held, b.fresh) if self.adaptive else (b.held,):
                    for t in sorted(t for t in shelf if t < self.timeout + time):
                        left.extend(shelf.pop(t))
                if b.held or (self.adaptive and b.fresh):
                    b.scheduled += _SECOND
                    b.queue.append(b.scheduled)
                    b.idle = False
                else:
                    b.idle = True
                if left:
                    out.append((left, root))

    # ------------------------------------------------------------------------------------------------ adapting alpha

    def _adapt(self, b: _Buffer, time: int) -> None:
        a = b.adapt
        a["counter"] += 1
        if a["counter"] <= self.batch:
            return
        wanted = _threshold(self.critical, self.threshold, a["data"])
        covered = 1.0 if self.length == 0 else self._coverage(a["times"], time)
        error = wanted - covered
        self.alpha = abs(a["alpha"] + 0.5 * error + 0.8 * (error - a["error"]))
        a["error"], a["alpha"] = error, self.alpha
        self.length = min(_round(self.alpha * b.k), b.k)
        a["counter"] = 0
        a["data"].clear()

    def _coverage(self, times: list[int], time: int) -> float:
        """The share of a window's events that had come when the window's end was first reached."""
        high, low = time - self.length, time - self.length - 10_000_000_000
        covered = total = 0
        low_met = high_met = False
        kept = []
        for t in times:
            low_met = low_met or low <= t
            high_met = high_met or high <= t
            if low_met and low <= t <= high:
                covered += not high_met
                total += 1
            if t > low:
                kept.append(t)
        times[:] = kept
        return covered / total if total else 1.0

    # -------------------------------------------------------------------------------------------------------- output

    def _rows(self, out: list[tuple[list[int], int]], partitioned: bool) -> Rows:
        pos = np.array([p for left, _ in out for p in left], np.int64)
        sizes = [len(left) for left, _ in out]
        root = np.repeat(np.array([r for _, r in out], np.int64), sizes)
        chunk = np.repeat(np.arange(len(out)), sizes)
        part = self.log.part[pos] if partitioned else None
        rows = Rows(self.log.columns(pos), self.log.ts[pos], root, chunk, None, part)
        self._compact()
        return rows

    def _positions(self) -> list[int]:
        return sorted(p for b in self.buffers.values() for s in (b.held, b.fresh) for ps in s.values() for p in ps)

    def _compact(self) -> None:
        if self.log.end < 2048:
            return
        keep = self._positions()
        if 2 * len(keep) > self.log.end:
            return
        moved = dict(zip(keep, range(len(keep)), strict=True))
        for b in self.buffers.values():
            b.held = {t: [moved[p] for p in ps] for t, ps in b.held.items()}
            b.fresh = {t: [moved[p] for p in ps] for t, ps in b.fresh.items()}
        self.log.compact(np.array(keep, np.int64))

    def state(self) -> dict[str, Any]:
        keep: Array = np.array(self._positions(), np.int64)
        moved = {p: i for i, p in enumerate(keep.tolist())}
        buffers = {}
        for part, b in self.buffers.items():
            shelves = [{t: [moved[p] for p in ps] for t, ps in s.items()} for s in (b.held, b.fresh)]
            numbers = [b.k, b.greatest, b.sent, b.scheduled, b.idle]
            buffers[part] = [shelves, numbers, list(b.queue), dict(b.adapt)]
        return {"events": self.log.state(keep), "buffers": buffers, "alpha": self.alpha, "length": self.length}

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        self.log.load(state["events"])
        self.alpha, self.length = state["alpha"], state["length"]
        for part, ((held, fresh), numbers, queue, adapt) in state["buffers"].items():
            b = self.buffers[part] = _Buffer()
            b.held, b.fresh, b.queue, b.adapt = held, fresh, list(queue), adapt
            b.k, b.greatest, b.sent, b.scheduled, b.idle = numbers

    @property
    def bytes(self) -> int:
        return self.log.bytes


def _threshold(critical: float, error: float, data: Sequence[float]) -> float:
    """The least window coverage that keeps the error of an average within `error` (`WindowCoverage`)."""
    n = len(data)
    mean = sum(data) / n
    variance = sum((mean - x) ** 2 for x in data) / n
    if mean == 0:
        return math.nan
    spread = critical**2 * ((mean**2 + variance**2) / (n * mean**2))
    a = 1 + spread
    roots = []
    for b, c in ((2 * error - 2 - spread, (1 - error) ** 2), (-(2 + 2 * error + spread), (1 + error) ** 2)):
        inner = b**2 - 4 * a * c
        if inner >= 0:
            roots.append(min((-b - math.sqrt(inner)) / (2 * a), (-b + math.sqrt(inner)) / (2 * a)))
    return min(roots, default=0.0)
