"""The partitions of a topic in the order of their event times.

Partitions are read side by side, and one may be far ahead of another: if an app begins with a backlog of days, by as
much as a broker gives at once. An event that is older than the app's clock is late, so it would depend on the reading
which events windows and patterns have together. Here an event waits until no other partition can bring an older one:
until each has been read as far, or has no more. Kafka Streams chooses the next record of a task so (KIP-353), and Flink
holds back the splits of a source that are ahead (watermark alignment).

The order is by time, partition and offset. Within a partition it stays: an event that is older than one before it
counts as that one. So the order is the same however a topic is read, as long as no partition is given up (`PATIENCE`)
and none gets messages after it was read to its end that are older than others' by then; after a new start, if the
partitions themselves are in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import take_rows
from ..ingest.ingest import event_times
from ..mapping.attribute_values import Values, join_columns
from ..mapping.decoding import Decoded

PATIENCE = 30.0
"""s that is waited for a partition which has messages and brings none, as one without a leader."""
MOST_WAITING = 1_000_000
"""Messages of all partitions that wait; each has its share, but not less than `LEAST_WAITING`."""
LEAST_WAITING = 20_000
NO_TIME = np.iinfo(np.int64).min
"""The time of a message without an event."""


@dataclass(frozen=True, eq=False)
class PartitionPortion:
    """Messages of a partition, in order, decoded: by message its offset and the latest time of its events (int64 ms;
    `NO_TIME` without one)."""

    part: str
    events: Decoded
    offsets: Array
    times: Array


@dataclass(frozen=True, eq=False)
class Aligned:
    """Messages in their order over all partitions, and by partition the next offset."""

    events: Decoded
    messages: int
    next_offsets: Mapping[str, int]


@dataclass
class _WaitingPartition:
    """Waiting messages of a partition. `time`: the latest that was read; `more`: whether there is more to read, if that
    was `more_is_known`; `waited_seconds` (s) for that.
    """

    waiting: deque[PartitionPortion] = field(default_factory=deque)
    time: int = NO_TIME
    more: bool = True
    more_is_known: bool = False
    waited_seconds: float = 0.0
    is_paused: bool = False

    @property
    def messages(self) -> int:
        return sum(len(p.offsets) for p in self.waiting)


def times_of(events: Decoded, messages: int, attribute: int) -> Array:
    """By message the latest time (int64 ms) of its events, which are in an attribute; `NO_TIME` without one."""
    times, bad = event_times(events.columns[attribute], None)
    if bad:
        times = times.copy()
        times[list(bad)] = NO_TIME
    out = np.full(messages, NO_TIME, np.int64)
    np.maximum.at(out, events.message, times)
    return out


class Alignment:
    """Puts the messages of `parts` in order. A time after `latest()` (ms; None: there is no such) is not taken, and
    holds up nothing."""

    def __init__(self, parts: Collection[str], latest: Callable[[], int | None]) -> None:
        self._parts = {part: _WaitingPartition() for part in sorted(parts)}
        self._latest = latest
        self._most = max(LEAST_WAITING, MOST_WAITING // max(1, len(parts)))

    def put(self, portion: PartitionPortion) -> None:
        """Messages that were read."""
        part = self._parts[portion.part]
        part.waited_seconds = 0.0
        latest = self._latest()
        times = portion.times if latest is None else np.where(portion.times > latest, NO_TIME, portion.times)
        if len(times):
            times = np.maximum(np.maximum.accumulate(times), part.time)
            part.time = int(times[-1])
            part.waiting.append(replace(portion, times=times))

    def set_backlogs(self, parts: Mapping[str, int]) -> None:
        """Set the number of available messages that were not put in yet, by partition."""
        for name, messages in parts.items():
            part = self._parts[name]
            if messages and not part.more:
                part.waited_seconds = 0.0
            part.more, part.more_is_known = messages > 0, True

    def mark_unavailable(self, parts: Collection[str]) -> None:
        """These cannot be read now: they are waited for as those that bring nothing."""
        for name in parts:
            self._parts[name].more_is_known = True

    def note_wait(self, seconds: float) -> None:
        """Note `seconds` without a message."""
        for part in self._parts.values():
            # Where it is not known whether there is more, the process that reads it may still be starting.
            if part.more and part.more_is_known and not part.is_paused:
                part.waited_seconds += seconds

    def waiting_by_partition(self) -> dict[str, int]:
        """Messages that wait, by partition."""
        return {name: part.messages for name, part in self._parts.items()}

    def paused_partitions(self) -> frozenset[str]:
        """The partitions that are not to be read now, because too many of their messages wait."""
        for part in self._parts.values():
            count = part.messages
            if part.is_paused and count <= self._most // 2:
                part.is_paused, part.waited_seconds = False, 0.0
            elif count >= self._most:
                part.is_paused = True
        return frozenset(name for name, part in self._parts.items() if part.is_paused)

    def take(self) -> Aligned | None:
        """Messages that need not wait any more; None if there are none."""
        bound = self._bound()
        ready = [p for rank, part in enumerate(self._parts.values()) for p in _ready(part.waiting, rank, bound)]
        return _merge_portions(ready) if ready else None

    def _bound(self) -> tuple[int, int] | None:
        """The last (time, rank of the partition) that no message to come can be before; None if none can come."""
        ends = [(p.time, i) for i, p in enumerate(self._parts.values()) if p.more and p.waited_seconds < PATIENCE]
        return min(ends, default=None)


def _ready(waiting: deque[PartitionPortion], rank: int, bound: tuple[int, int] | None) -> list[PartitionPortion]:
    """Take messages up to `bound` from a partition."""
    out = []
    while waiting:
        first = waiting[0]
        count = len(first.times)
        if bound is not None:
            count = int(np.searchsorted(first.times, bound[0], "right" if rank <= bound[1] else "left"))
        if count < len(first.times):
            if count:
                head, waiting[0] = _split(first, count)
                out.append(head)
            break
        out.append(waiting.popleft())
    return out


def _split(portion: PartitionPortion, count: int) -> tuple[PartitionPortion, PartitionPortion]:
    """The first `count` messages, and the others."""
    all_events = portion.events
    events = int(np.searchsorted(all_events.message, count))
    first = Decoded(
        [c[:events] for c in all_events.columns],
        all_events.message[:events],
        tuple(r for r in all_events.rejected if r.message < count),
    )
    second = Decoded(
        [c[events:] for c in all_events.columns],
        all_events.message[events:] - count,
        tuple(replace(r, message=r.message - count) for r in all_events.rejected if r.message >= count),
    )
    return (
        replace(portion, events=first, offsets=portion.offsets[:count], times=portion.times[:count]),
        replace(portion, events=second, offsets=portion.offsets[count:], times=portion.times[count:]),
    )


def _merge_portions(portions: list[PartitionPortion]) -> Aligned:
    """Merge portions by time; at equal times in the order of `portions`."""
    counts = [len(p.offsets) for p in portions]
    begins = np.cumsum([0, *counts])
    order = np.argsort(np.concatenate([p.times for p in portions]), kind="stable")
    number = np.empty(len(order), np.int64)  # of each message, in its new place
    number[order] = np.arange(len(order))
    messages = [number[p.events.message + begin] for p, begin in zip(portions, begins, strict=False)]
    message = np.concatenate(messages)
    columns: list[Values] = [join_columns(c) for c in zip(*(p.events.columns for p in portions), strict=True)]
    if (message[1:] < message[:-1]).any():
        rows = np.argsort(message, kind="stable")
        columns, message = [take_rows(c, rows) for c in columns], message[rows]
    rejects = [
        replace(r, message=int(number[r.message + begin]))
        for p, begin in zip(portions, begins, strict=False)
        for r in p.events.rejected
    ]
    rejects.sort(key=lambda r: r.message)
    next_offsets = {p.part: int(p.offsets[-1]) + 1 for p in portions}
    return Aligned(Decoded(columns, message, tuple(rejects)), int(begins[-1]), next_offsets)
