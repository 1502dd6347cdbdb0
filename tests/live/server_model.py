"""Incremental aggregations of Siddhi 5.1.30 as its source has them: the events that each of their rows counts.

`IncrementalExecutor` collects the rows of a duration until the node's clock leaves the open bucket, writes them to its
table, and hands them to the next duration. A row has the bucket in which its events arrived (AGG_TIMESTAMP) and that of
their own time (AGG_EVENT_TIMESTAMP). A table refuses all rows of a bucket if one of them is there already. A node that
starts has its clock at 0 in playback, writes nothing before its first event, and continues its coarse buckets from the
tables of the finer ones (`IncrementalExecutorsInitialiser`).
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_DAY = 86_400_000
_FIXED = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": _DAY}
_INTO_THE_NEXT = {**_FIXED, "month": 32 * _DAY, "year": 367 * _DAY}
"""A time (ms) that leads from the start of a bucket into the next one."""


def bucket_start(duration: str, ms: int) -> int:
    """The start of the bucket that a time is in (GMT)."""
    if duration in _FIXED:
        return ms - ms % _FIXED[duration]
    at = datetime.fromtimestamp(ms / 1000, UTC)
    start = datetime(at.year, at.month if duration == "month" else 1, 1, tzinfo=UTC)
    return int(start.timestamp()) * 1000


def bucket_end(duration: str, ms: int) -> int:
    """The end of the bucket that a time is in."""
    return bucket_start(duration, bucket_start(duration, ms) + _INTO_THE_NEXT[duration])


@dataclass(frozen=True)
class BucketRow:
    """A row: the bucket of the clock at which its `events` came, that of their time, their group."""

    arrival: int
    bucket: int
    group: tuple[Any, ...]
    events: tuple[Any, ...]


@dataclass
class Table:
    """The table of a duration, which all nodes share."""

    rows: dict[tuple[Any, ...], BucketRow] = field(default_factory=dict)

    def add(self, shard: str | None, rows: Sequence[BucketRow]) -> None:
        """Adds rows in one transaction, which fails if one of them is there."""
        keys = [(shard, row.arrival, row.bucket, row.group) for row in rows]
        if not any(key in self.rows for key in keys):
            self.rows.update(zip(keys, rows, strict=True))

    def of_shard(self, shard: str | None, since: int) -> list[BucketRow]:
        """A shard's rows that arrived since then, in that order."""
        rows = [row for key, row in self.rows.items() if key[0] == shard and row.arrival >= since]
        return sorted(rows, key=lambda row: row.arrival)


@dataclass
class DurationState:
    """What an executor has in memory: what `persist` saves. `is_present`: it is there, be it empty."""

    next_emit: int = -1
    open_bucket: int = -1
    is_present: bool = False
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)


@dataclass
class NodeState:
    """The state of a node: that of each duration, and the timers that are due."""

    durations: list[DurationState]
    timers: list[int] = field(default_factory=list)
    is_timed: bool = False


class ServerNode:
    """A node with its own clock, over tables that it shares. `shard`: None where they are not partitioned."""

    def __init__(self, durations: Sequence[str], tables: Sequence[Table], shard: str | None) -> None:
        self.durations, self.tables, self.shard = durations, tables, shard
        self.state = NodeState([DurationState() for _ in durations])
        self.saved: NodeState | None = None
        self.clock = 0
        self.is_initialised = self.is_writing = False

    def persist(self) -> None:
        """Saves the state. (That creates what is not there.)"""
        for duration in self.state.durations:
            duration.is_present = True
        self.saved = copy.deepcopy(self.state)

    def started_again(self, shard: str | None) -> ServerNode:
        """The node after a new start, without its state."""
        node = ServerNode(self.durations, self.tables, shard)
        node.saved = self.saved
        return node

    def restore(self) -> None:
        """Loads the state that was saved last, if one was."""
        if self.saved is not None:
            self.state = copy.deepcopy(self.saved)

    def advance(self, time: int) -> None:
        """Moves the clock, but never back: by the time of an event in playback, else as the wall's goes."""
        if time >= self.clock:
            self.clock = time
            self._fire_timers()

    def send(self, time: int, group: tuple[Any, ...], event: Any) -> None:
        """An event of this time, at the present clock."""
        if not self.is_writing:
            self.is_writing = True
            self._initialise()
        self._add(0, BucketRow(self.clock, time, group, (event,)))

    def _fire_timers(self) -> None:
        timers = self.state.timers
        while timers and timers[0] <= self.clock:
            due = timers.pop(0)
            self._tick(0, due)
            last = bucket_start(self.durations[0], self.clock)
            if due < last and not timers:  # those between the two would find nothing
                self._tick(0, last)
                due = last
            timers.append(bucket_end(self.durations[0], due))

    def _tick(self, number: int, time: int) -> None:
        state = self.state.durations[number]
        if time >= state.next_emit:
            state.next_emit = bucket_end(self.durations[number], time)
            self._emit(number, bucket_start(self.durations[number], time))

    def _add(self, number: int, row: BucketRow) -> None:
        duration, state = self.durations[number], self.state.durations[number]
        if number == 0 and not self.state.is_timed:
            self.state.timers.append(bucket_end(duration, row.arrival))
            self.state.is_timed = True
        self._tick(number, row.arrival)
        key = bucket_start(duration, row.bucket), row.group
        state.rows[key] = state.rows.get(key, ()) + row.events
        state.is_present = True

    def _emit(self, number: int, opened: int) -> None:
        state = self.state.durations[number]
        rows = [BucketRow(state.open_bucket, *key, events) for key, events in state.rows.items()]
        state.open_bucket, state.rows, state.is_present = opened, {}, True
        if rows and self.is_writing:
            self.tables[number].add(self.shard, rows)
        if number + 1 < len(self.durations):
            for row in rows:
                self._add(number + 1, row)
            self._tick(number + 1, opened)

    def _initialise(self) -> None:
        if self.is_initialised:
            return
        self.is_initialised = True
        coarsest = len(self.durations) - 1
        since = -1
        for number in range(coarsest, -1, -1):
            rows = self.tables[number].of_shard(self.shard, since)
            if not rows:
                continue
            since = bucket_end(self.durations[number], rows[-1].arrival)
            if number == coarsest:
                continue
            if not self.state.durations[number + 1].is_present:
                for row in rows:
                    self._add(number + 1, row)
            if number == 0:
                self.state.durations[0].next_emit = since

    def retrieve(self, per: str, start: int, end: int) -> dict[tuple[int, tuple[Any, ...]], list[Any]]:
        """The events of each bucket and group, each as often as it counts."""
        number = self.durations.index(per)
        rows: list[BucketRow] = list(self.tables[number].rows.values())
        if self.shard is None:
            if not self.is_writing:
                self._initialise()
            for state in self.state.durations[: number + 1]:
                rows += [BucketRow(-1, *key, events) for key, events in state.rows.items()]
        else:
            for finer, coarser in zip(range(number), self.durations[1:], strict=False):
                begin = bucket_start(coarser, self.clock)
                rows += [row for row in self.tables[finer].rows.values() if row.arrival >= begin]
        answer: dict[tuple[int, tuple[Any, ...]], list[Any]] = defaultdict(list)
        for row in rows:
            if start <= row.bucket < end:
                answer[bucket_start(per, row.bucket), row.group] += row.events
        return answer
