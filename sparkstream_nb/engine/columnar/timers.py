"""Scheduled times of an operator, by partition instance, as plain arrays that compiled loops work on.

An instance's times form a queue, first in first out. When the clock moves, every instance whose first time is due
runs, in the order of those times, until its queue holds nothing that is due (`Scheduler.sendTimerEvents`). Of
several instances with the very same first time Siddhi runs only the first by its map's order and leaves the rest to
the next movement of the clock (`Scheduler.onTimeChange` collects them in a set sorted by time).

That map (`PartitionStateHolder.states`) holds the instances whose queue is not empty, or was not when the clock moved
last. It is a `HashMap` filled by `computeIfAbsent`: a key comes first in its bucket, and before a key the map doubles
where it holds more than three quarters of its buckets. It never shrinks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..notation.kernels import compiled, inlined, kernel, struct
from .arrays import grown
from .column_data import Array
from .rows import EVENT_PHASE, ORDER_KEY_BITS, Clock

FREE, HEAP, SPARE, BUCKETS, HELD, TURN, MAP = range(7)
"""Places in `Timers.meta`: the head of the free list, the size of the heap, the length of the free list; of Siddhi's
map the buckets, the keys in it, and the number that ever came in; then each instance's number among those, 0: it is
not in it.

In the free list, `next` is one more than the place that follows; 0, where nothing ever was: it is the place behind.
"""

TICK, AT, READY, TIME, ORDER_KEY, NOW, BUSY = range(7)
"""Places in `Schedule.cursor`: its present step, its place in the due instances and their number (-1:
not looked up), then the time, order key, clock and instance of the timer that it found last.
"""

NEVER = np.int64(2**63 - 1)
"""An order key after all others: the limit of `next_due` when no row is left."""

_BITS = np.int64(ORDER_KEY_BITS)


@kernel
def _sift_up(heap: Array, first: Array, i: int) -> None:
    while i > 0:
        up = (i - 1) >> 1
        if first[heap[up]] <= first[heap[i]]:
            return
        heap[up], heap[i] = heap[i], heap[up]
        i = up


@kernel
def _sift_down(heap: Array, first: Array, n: int) -> None:
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            return
        if low + 1 < n and first[heap[low + 1]] < first[heap[low]]:
            low += 1
        if first[heap[i]] <= first[heap[low]]:
            return
        heap[low], heap[i] = heap[i], heap[low]
        i = low


@inlined
def step_before(order_key: Any, scheduler: int, base: int) -> Any:
    """The last step (from `base`) whose timers come before a row with this order key. One that a timer of an earlier
    scheduler emitted comes before this scheduler's turn of its step, in which a timer that the row schedules may be
    due.
    """
    return (order_key >> _BITS) - base - (1 if order_key & EVENT_PHASE < scheduler else 0)


def earliest(times: Iterable[int | None]) -> int | None:
    """The least of some times, of which None are never; None if all are."""
    return min((t for t in times if t is not None), default=None)


@struct
class Timers:
    """The scheduled times of all instances.

    `time` and `next`: the times and their links, in queues and in the free list. By instance, `head` and `tail` of its
    queue, and the `first` time while it is in the `heap` of instances. `due`: the instances that run now.
    """

    def __init__(self) -> None:
        self.time = np.zeros(0, np.int64)
        self.next = np.zeros(0, np.int64)
        self.head = np.full(0, -1, np.int64)
        self.tail = np.full(0, -1, np.int64)
        self.heap = np.zeros(0, np.int64)
        self.first = np.zeros(0, np.int64)
        self.due = np.zeros(0, np.int64)
        self.meta = np.array([0, 0, 0, 16, 0, 0], np.int64)
        self._hashes = np.zeros(0, np.int64)

    def room(self, more: int, instances: int) -> None:
        """Makes room for `more` further times and `instances` instances in all."""
        if self.meta[SPARE] < more:
            have = len(self.time)
            self.time, self.next = grown(self.time, have + more), grown(self.next, have + more)
            self.meta[SPARE] += len(self.time) - have
        if instances > len(self.head):
            self.head, self.tail = grown(self.head, instances, -1), grown(self.tail, instances, -1)
            self.heap, self.first = grown(self.heap, instances), grown(self.first, instances)
            self.due, self._hashes = grown(self.due, instances), grown(self._hashes, instances)
            self.meta = grown(self.meta, MAP + len(self.head))

    def hashes(self, hashes: Array | None) -> Array:
        """The instances' hashes (`Instances.hashes`); zeros without partitions."""
        return self._hashes if hashes is None else hashes

    @inlined
    def notify_at(self, instance: int, time: int, idle: bool) -> None:
        """Appends `time` to the queue of `instance`. `idle`: the instance is not being run, so it is added to the
        heap if necessary.
        """
        at = self.meta[FREE]
        link = self.next[at]
        self.meta[FREE] = at + 1 if link == 0 else link - 1
        self.meta[SPARE] -= 1
        self.time[at] = time
        self.next[at] = -1
        if self.head[instance] < 0:
            self.head[instance] = at
            if self.meta[MAP + instance] == 0:
                if self.meta[HELD] > self.meta[BUCKETS] * 3 // 4:
                    self.meta[BUCKETS] *= 2
                self.meta[HELD] += 1
                self.meta[TURN] += 1
                self.meta[MAP + instance] = self.meta[TURN]
            if idle:
                self.first[instance] = time
                size = self.meta[HEAP]
                self.heap[size] = instance
                self.meta[HEAP] = size + 1
                if size > 0:
                    _sift_up(self.heap, self.first, size)
        else:
            self.next[self.tail[instance]] = at
        self.tail[instance] = at

    @inlined
    def enter(self, instance: int) -> None:
        """Adds an instance that has run to the heap again; one whose queue is empty leaves the map."""
        if self.head[instance] < 0:
            self.meta[MAP + instance] = 0
            self.meta[HELD] -= 1
        else:
            self.first[instance] = self.time[self.head[instance]]
            size = self.meta[HEAP]
            self.heap[size] = instance
            self.meta[HEAP] = size + 1
            if size > 0:
                _sift_up(self.heap, self.first, size)

    @inlined
    def pop(self, instance: int) -> None:
        """Removes the first time from the queue of `instance`."""
        at = self.head[instance]
        self.head[instance] = self.next[at]
        if self.head[instance] < 0:
            self.tail[instance] = -1
        self.next[at] = self.meta[FREE] + 1
        self.meta[FREE] = at
        self.meta[SPARE] += 1

    @compiled
    def due_instances(self, now: int, hashes: Array) -> int:
        """Moves the instances that run at `now` from the heap to `due`, in order; returns how many.

        Of several with the same first time only the first in the map runs; the others stay. `hashes` are the hashes of
        the instances' keys that the map uses.
        """
        count = 0
        while self.meta[HEAP] > 0 and self.first[self.heap[0]] <= now:
            self.due[count] = self.heap[0]
            count += 1
            self.meta[HEAP] -= 1
            self.heap[0] = self.heap[self.meta[HEAP]]
            _sift_down(self.heap, self.first, self.meta[HEAP])
        if count < 2:
            return count
        runs = 0
        i = 0
        mask = self.meta[BUCKETS] - 1
        while i < count:
            best = i
            j = i + 1
            while j < count and self.first[self.due[j]] == self.first[self.due[i]]:
                nearer = (hashes[self.due[j]] & mask) - (hashes[self.due[best]] & mask)
                newer = self.meta[MAP + self.due[j]] > self.meta[MAP + self.due[best]]
                if nearer < 0 or (nearer == 0 and newer):
                    best = j
                j += 1
            instance = self.due[best]
            for k in range(i, j):
                if k != best:
                    n = self.meta[HEAP]
                    self.heap[n] = self.due[k]
                    self.meta[HEAP] = n + 1
                    _sift_up(self.heap, self.first, n)
            self.due[runs] = instance
            runs += 1
            i = j
        return runs

    @compiled
    def _drop(self, instances: Array) -> None:
        """Empties the queues of `instances`, which leave the heap and the map."""
        for i in range(len(instances)):
            p = instances[i]
            while self.head[p] >= 0:
                self.pop(p)
            if self.meta[MAP + p] != 0:
                self.meta[MAP + p] = 0
                self.meta[HELD] -= 1
        size = self.meta[HEAP]
        self.meta[HEAP] = 0
        for i in range(size):
            p = self.heap[i]
            if self.head[p] >= 0:
                n = self.meta[HEAP]
                self.heap[n] = p
                self.meta[HEAP] = n + 1
                _sift_up(self.heap, self.first, n)

    def next_due(self, of: Array | None = None, not_before: Array | None = None) -> int | None:
        """The first scheduled time (ms), of the instances in the mask `of` if it is given; None if there is none. An
        instance's time counts as at least its `not_before`, if given. Both have a place for each instance.
        """
        instances = self.heap[: self.meta[HEAP]]
        if of is not None:
            instances = instances[of[instances]]
        if not len(instances):
            return None
        times = self.first[instances]
        return int((times if not_before is None else np.maximum(times, not_before[instances])).min())

    def forget(self, instances: Array) -> None:
        """Drop the times scheduled for these instances."""
        self._drop(instances[instances < len(self.head)])

    def state(self) -> dict[str, Any]:
        """The concatenated queues of the instances, and the instances in the map in insertion order."""
        times: list[int] = []
        lengths = []
        for p in range(len(self.head)):
            at, n = int(self.head[p]), 0
            while at >= 0:
                times.append(int(self.time[at]))
                at, n = int(self.next[at]), n + 1
            lengths.append(n)
        turns = self.meta[MAP:]
        map_instances = np.flatnonzero(turns)
        return {
            "times": np.array(times, np.int64),
            "lengths": np.array(lengths, np.int64),
            "map": map_instances[np.argsort(turns[map_instances])],
            "buckets": int(self.meta[BUCKETS]),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        times, lengths = state["times"], state["lengths"]
        self.room(len(times) + 1, len(lengths))
        map_size = len(state["map"])
        self.meta[BUCKETS], self.meta[HELD], self.meta[TURN] = state["buckets"], map_size, map_size
        self.meta[MAP + state["map"]] = np.arange(1, map_size + 1)
        at = 0
        for p, n in enumerate(lengths.tolist()):
            for t in times[at : at + n].tolist():
                self.notify_at(p, t, True)
            at += n


@struct
class Schedule:
    """The timers of an operator during one run: which of them fire, and when among the rows.

    `scheduler` is the number of the operator's timer phase, `hashes` the hashes of the instances' keys. `cursor` holds
    the progress (`TICK`, ...).
    """

    def __init__(self, timers: Timers, clock: Clock, scheduler: int, hashes: Array | None) -> None:
        self.timers, self.clock, self.scheduler = timers, clock, scheduler
        self.hashes = timers.hashes(hashes)
        self.cursor = np.array([clock.first, 0, -1, 0, 0, 0, -1], np.int64)

    timers: Timers
    clock: Clock

    @inlined
    def next_due(self, limit: int) -> int:
        """The instance whose timer fires next, before the row with order key `limit`; -1 if none does."""
        instance: int = -1
        tick: int = self.cursor[TICK]
        while (
            instance < 0
            and tick < self.clock.last
            and ((self.clock.base + tick) << _BITS) | self.scheduler <= limit
        ):
            t = self.clock.now[tick]
            if self.cursor[READY] < 0:
                self.cursor[READY] = 0
                self.cursor[AT] = 0
                if (
                    self.clock.may_fire[tick]
                    and self.timers.meta[HEAP] > 0
                    and self.timers.first[self.timers.heap[0]] <= t
                ):
                    if self.timers.meta[HEAP] == 1:
                        self.timers.due[0] = self.timers.heap[0]
                        self.timers.meta[HEAP] = 0
                        self.cursor[READY] = 1
                    else:
                        self.cursor[READY] = self.timers.due_instances(t, self.hashes)
            while instance < 0 and self.cursor[AT] < self.cursor[READY]:
                p: int = self.timers.due[self.cursor[AT]]
                if self.timers.head[p] >= 0 and self.timers.time[self.timers.head[p]] <= t:
                    self.cursor[TIME] = self.timers.time[self.timers.head[p]]
                    self.timers.pop(p)
                    self.cursor[ORDER_KEY] = ((self.clock.base + tick) << _BITS) | self.scheduler
                    self.cursor[NOW] = t
                    instance = p
                else:
                    self.timers.enter(p)
                    self.cursor[AT] += 1
            if instance < 0:
                tick += 1
                self.cursor[READY] = -1
        self.cursor[TICK] = tick
        self.cursor[BUSY] = instance
        return instance

    @inlined
    def nothing_due(self, limit: int) -> bool:
        """True if no timer can fire before the row with order key `limit`; the cursor then moves there."""
        before = step_before(limit, self.scheduler, self.clock.base)
        until = min(before, self.clock.last - 1)
        quiet: bool = (
            until < self.cursor[TICK]
            or self.timers.meta[HEAP] == 0
            or self.timers.first[self.timers.heap[0]] > self.clock.now[until]
        )
        if quiet and until >= self.cursor[TICK]:
            self.cursor[TICK] = until + 1
        return quiet

    @inlined
    def notify(self, instance: int, time: int) -> None:
        """Schedules `time` for `instance` (`Scheduler.notifyAt`), from a row or the timer that fired last."""
        self.timers.notify_at(instance, time, self.cursor[BUSY] != instance)
