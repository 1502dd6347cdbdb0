"""Throughput of an app: the number of events that came in and of those committed, micro-batch by micro-batch."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

KEPT = 1000
"""Micro-batches whose figures are kept, for the median of their times."""
RECENT = 10.0
"""Seconds before the end of the last micro-batch over which a recent rate is measured."""


class ArrivalCounts:
    """Number of events that had come in with each entry of an inbox, back to the first entry that is not committed.

    Thread-safe. Of entries that an earlier process appended, the beginnings of the journal's segments are known; a
    number of committed events is too low by at most a segment until those are committed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seqs: list[int] = [-1]
        self._totals: list[int] = [0]

    def add(self, seq: int, total: int) -> None:
        """`total` events have come in with the entries up to number `seq`."""
        with self._lock:
            self._seqs.append(seq)
            self._totals.append(total)

    def truncate(self, seq: int) -> None:
        """The entries from number `seq` on were taken back."""
        with self._lock:
            keep = max(1, bisect_right(self._seqs, seq - 1))
            del self._seqs[keep:], self._totals[keep:]

    @property
    def total(self) -> int:
        """Events that came in so far."""
        with self._lock:
            return self._totals[-1]

    def through(self, seq: int) -> int:
        """Events of the entries up to number `seq`, which is committed: older entries are forgotten."""
        with self._lock:
            at = max(0, bisect_right(self._seqs, seq) - 1)
            del self._seqs[:at], self._totals[:at]
            return self._totals[0]


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """A committed micro-batch: its `number`, when it `ended` (seconds since 1970), how many `ms` it took, how many
    events had come in by then (`arrived`) and how many of them were `committed` with it, both of the app's life; and
    how many ms its slowest node took (`node_ms`)."""

    number: int
    ended: float
    ms: float
    arrived: int
    committed: int
    node_ms: float = 0.0


@dataclass(frozen=True)
class Rates:
    """Events per second over the micro-batches of the last 10 s, and since this process deployed the app; None before
    the first.

    `input`: arrived events by elapsed time. `processing`: committed events by the time that micro-batches took, which
    is the app's capacity.
    """

    input: float | None = None
    processing: float | None = None
    input_since_start: float | None = None
    processing_since_start: float | None = None


@dataclass(frozen=True)
class BatchTimes:
    """Durations of micro-batches, in ms: the last one, and the median and the 99th percentile of the last 1,000.
    `total_ms` and `count` are for all since this process deployed the app. None before the first.
    """

    last_ms: float | None = None
    median_ms: float | None = None
    p99_ms: float | None = None
    total_ms: float = 0.0
    count: int = 0


@dataclass
class Throughput:
    """The figures of an app's micro-batches since this process deployed it. Not thread-safe: `Progress.changed` is held
    by who writes and reads."""

    recent: deque[BatchFigures] = field(default_factory=lambda: deque(maxlen=KEPT))
    total_ms: float = 0.0
    count: int = 0
    _start: BatchFigures | None = None
    """Events that had come in and were committed when the first micro-batch began."""

    def begin(self, arrived_events: int, committed_events: int) -> None:
        """Set the starting counts of the app when it is deployed. Further calls, as for an app that is scaled, change
        nothing.
        """
        if self._start is None:
            self._start = BatchFigures(-1, 0.0, 0.0, arrived_events, committed_events)

    def add(self, batch: BatchFigures) -> None:
        """A micro-batch was committed."""
        if self._start is None:
            self._start = BatchFigures(-1, 0.0, 0.0, batch.arrived, batch.committed)
        if self.count == 0:
            began = batch.ended - batch.ms / 1000
            self._start = BatchFigures(-1, began, 0.0, self._start.arrived, self._start.committed)
        self.recent.append(batch)
        self.total_ms += batch.ms
        self.count += 1

    def last(self, most: int) -> list[BatchFigures]:
        """The last `most` micro-batches, the oldest first."""
        return list(self.recent)[-most:]

    def rates(self) -> Rates:
        """The rates as of the last micro-batch."""
        if self._start is None or not self.recent:
            return Rates()
        last = self.recent[-1]
        near = [b for b in self.recent if b.ended > last.ended - RECENT]
        before = self.recent[-len(near) - 1] if len(near) < len(self.recent) else self._start
        # Not from the end of the one before: the app may have had nothing to do for an hour.
        began = near[0].ended - near[0].ms / 1000
        return Rates(
            _per_second(last.arrived - before.arrived, last.ended - began),
            _per_second(last.committed - before.committed, sum(b.ms for b in near) / 1000),
            _per_second(last.arrived - self._start.arrived, last.ended - self._start.ended),
            _per_second(last.committed - self._start.committed, self.total_ms / 1000),
        )

    def times(self) -> BatchTimes:
        """Durations of micro-batches."""
        if not self.recent:
            return BatchTimes()
        median, p99 = np.percentile([b.ms for b in self.recent], [50, 99])
        return BatchTimes(self.recent[-1].ms, round(float(median), 1), round(float(p99), 1), self.total_ms, self.count)


def _per_second(events: int, seconds: float) -> float | None:
    return events / seconds if seconds > 0 else None


def steps(batches: Sequence[BatchFigures]) -> list[tuple[float, float]]:
    """(input rate, processing rate) in events per second of each micro-batch but the first."""
    return [
        (
            _per_second(b.arrived - a.arrived, b.ended - a.ended) or 0.0,
            _per_second(b.committed - a.committed, b.ms / 1000) or 0.0,
        )
        for a, b in pairwise(batches)
    ]
