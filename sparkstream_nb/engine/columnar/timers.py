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

from .arrays import grown
from .column_data import Array
from .jit import inlined, kernel
from .rows import EVENT_PHASE, ORDER_KEY_BITS

FREE, HEAP, SPARE, BUCKETS, HELD, TURN, MAP = range(7)
"""Places in `Timers.meta`: the head of the free list, the size of the heap, the length of the free list; of Siddhi's
map the buckets, the keys in it, and the number that ever came in; then each instance's number among those, 0: it is
not in it.

In the free list, `next` is one more than the place that follows; 0, where nothing ever was: it is the place behind.
"""

TICK, AT, READY, TIME, ORDER_KEY, NOW, BUSY = range(7)
"""Places in a cursor of `next_due`: its present step, its place in the due instances and their number (-1:
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
def notify_at(
    instance: int, time: int, qtime: Array, qnext: Array, qhead: Array, qtail: Array, heap: Array, first: Array, meta:
    Array, idle: bool,
) -> None:  # fmt: skip
    """Appends `time` to the queue of `instance`. `idle`: the instance is not being run, so it is added to the
    heap if necessary.
    """
    at = meta[FREE]
    link = qnext[at]
    meta[FREE] = at + 1 if link == 0 else link - 1
    meta[SPARE] -= 1
    qtime[at] = time
    qnext[at] = -1
    if qhead[instance] < 0:
        qhead[instance] = at
        if meta[MAP + instance] == 0:
            if meta[HELD] > meta[BUCKETS] * 3 // 4:
                meta[BUCKETS] *= 2
            meta[HELD] += 1
            meta[TURN] += 1
            meta[MAP + instance] = meta[TURN]
        if idle:
            first[instance] = time
            size = meta[HEAP]
            heap[size] = instance
            meta[HEAP] = size + 1
            if size > 0:
                _sift_up(heap, first, size)
    else:
        qnext[qtail[instance]] = at
    qtail[instance] = at


@inlined
def enter(instance: int, qtime: Array, qhead: Array, heap: Array, first: Array, meta: Array) -> None:
    """Adds an instance that has run to the heap again; one whose queue is empty leaves the map."""
    if qhead[instance] < 0:
        meta[MAP + instance] = 0
        meta[HELD] -= 1
    else:
        first[instance] = qtime[qhead[instance]]
        size = meta[HEAP]
        heap[size] = instance
        meta[HEAP] = size + 1
        if size > 0:
            _sift_up(heap, first, size)


@inlined
def pop_time(instance: int, qnext: Array, qhead: Array, qtail: Array, meta: Array) -> None:
    """Removes the first time from the queue of `instance`."""
    at = qhead[instance]
    qhead[instance] = qnext[at]
    if qhead[instance] < 0:
        qtail[instance] = -1
    qnext[at] = meta[FREE] + 1
    meta[FREE] = at
    meta[SPARE] += 1


@kernel
def due_instances(now: int, heap: Array, first: Array, hashes: Array, meta: Array, out: Array) -> int:
    """Moves the instances that run at `now` from the heap to `out`, in order; returns how many.

    Of several with the same first time only the first in the map runs; the others stay. `hashes` are the hashes of the
    instances' keys that the map uses.
    """
    taken = 0
    while meta[HEAP] > 0 and first[heap[0]] <= now:
        out[taken] = heap[0]
        taken += 1
        meta[HEAP] -= 1
        heap[0] = heap[meta[HEAP]]
        _sift_down(heap, first, meta[HEAP])
    if taken < 2:
        return taken
    runs = 0
    i = 0
    mask = meta[BUCKETS] - 1
    while i < taken:
        best = i
        j = i + 1
        while j < taken and first[out[j]] == first[out[i]]:
            nearer = (hashes[out[j]] & mask) - (hashes[out[best]] & mask)
            if nearer < 0 or (nearer == 0 and meta[MAP + out[j]] > meta[MAP + out[best]]):
                best = j
            j += 1
        chosen = out[best]
        for k in range(i, j):
            if k != best:
                n = meta[HEAP]
                heap[n] = out[k]
                meta[HEAP] = n + 1
                _sift_up(heap, first, n)
        out[runs] = chosen
        runs += 1
        i = j
    return runs


def timer_cursor(first: int) -> Array:
    """A cursor for `next_due` that begins at step `first`."""
    return np.array([first, 0, -1, 0, 0, 0, -1], np.int64)


@inlined
def next_due(
    cursor: Array, limit: int, scheduler: int, base: int, now: Array, moved: Array, last: int, hashes: Array, qtime:
    Array, qnext: Array, qhead: Array, qtail: Array, heap: Array, first: Array, due: Array, meta: Array,
) -> int:  # fmt: skip
    """The instance whose timer fires next, before the row with order key `limit`; -1 if none does. `cursor` holds the
    progress.
    """
    found: int = -1
    tick: int = cursor[TICK]
    while found < 0 and tick < last and ((base + tick) << _BITS) | scheduler <= limit:
        t = now[tick]
        if cursor[READY] < 0:
            cursor[READY] = 0
            cursor[AT] = 0
            if moved[tick] and meta[HEAP] > 0 and first[heap[0]] <= t:
                if meta[HEAP] == 1:
                    due[0] = heap[0]
                    meta[HEAP] = 0
                    cursor[READY] = 1
                else:
                    cursor[READY] = due_instances(t, heap, first, hashes, meta, due)
        while found < 0 and cursor[AT] < cursor[READY]:
            p: int = due[cursor[AT]]
            if qhead[p] >= 0 and qtime[qhead[p]] <= t:
                cursor[TIME] = qtime[qhead[p]]
                pop_time(p, qnext, qhead, qtail, meta)
                cursor[ORDER_KEY] = ((base + tick) << _BITS) | scheduler
                cursor[NOW] = t
                found = p
            else:
                enter(p, qtime, qhead, heap, first, meta)
                cursor[AT] += 1
        if found < 0:
            tick += 1
            cursor[READY] = -1
    cursor[TICK] = tick
    cursor[BUSY] = found
    return found


@inlined
def step_before(order_key: Any, scheduler: int, base: int) -> Any:
    """The last step (from `base`) whose timers come before a row with this order key. One that a timer of an earlier
    scheduler emitted comes before this scheduler's turn of its step, in which a timer that the row schedules may be
    due.
    """
    return (order_key >> _BITS) - base - (1 if order_key & EVENT_PHASE < scheduler else 0)


@inlined
def nothing_due(
    cursor: Array, limit: int, scheduler: int, base: int, now: Array, last: int, heap: Array, first: Array, meta: Array
) -> bool:
    """True if no timer can fire before the row with order key `limit`; the cursor then moves there."""
    before = step_before(limit, scheduler, base)
    until = min(before, last - 1)
    quiet: bool = until < cursor[TICK] or meta[HEAP] == 0 or first[heap[0]] > now[until]
    if quiet and until >= cursor[TICK]:
        cursor[TICK] = until + 1
    return quiet


@inlined
def notify(
    cursor: Array, instance: int, time: int, qtime: Array, qnext: Array, qhead: Array, qtail: Array, heap: Array,
    first: Array, due: Array, meta: Array,
) -> None:  # fmt: skip
    """Schedules `time` for `instance` (`Scheduler.notifyAt`), from a row or the timer that `next_due` found last."""
    notify_at(instance, time, qtime, qnext, qhead, qtail, heap, first, meta, cursor[BUSY] != instance)


@kernel
def _forget(
    instances: Array, qtime: Array, qnext: Array, qhead: Array, qtail: Array, heap: Array, first: Array, due: Array,
    meta: Array,
) -> None:  # fmt: skip
    """Empties the queues of `instances`, which leave the heap and the map."""
    for i in range(len(instances)):
        p = instances[i]
        while qhead[p] >= 0:
            pop_time(p, qnext, qhead, qtail, meta)
        if meta[MAP + p] != 0:
            meta[MAP + p] = 0
            meta[HELD] -= 1
    size = meta[HEAP]
    meta[HEAP] = 0
    for i in range(size):
        p = heap[i]
        if qhead[p] >= 0:
            n = meta[HEAP]
            heap[n] = p
            meta[HEAP] = n + 1
            _sift_up(heap, first, n)


def earliest(times: Iterable[int | None]) -> int | None:
    """The least of some times, of which None are never; None if all are."""
    return min((t for t in times if t is not None), default=None)


class Timers:
    """The arrays, and their growth."""

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

    @property
    def arrays(self) -> tuple[Array, ...]:
        """(time, next, head, tail, heap, first, due, meta), as the compiled loops take them."""
        return self.time, self.next, self.head, self.tail, self.heap, self.first, self.due, self.meta

    def hashes(self, hashes: Array | None) -> Array:
        """The instances' hashes (`Instances.hashes`); zeros without partitions."""
        return self._hashes if hashes is None else hashes

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
        _forget(instances[instances < len(self.head)], *self.arrays)

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
        held = np.flatnonzero(turns)
        return {
            "times": np.array(times, np.int64),
            "lengths": np.array(lengths, np.int64),
            "map": held[np.argsort(turns[held])],
            "buckets": int(self.meta[BUCKETS]),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        times, lengths = state["times"], state["lengths"]
        self.room(len(times) + 1, len(lengths))
        held = len(state["map"])
        self.meta[BUCKETS], self.meta[HELD], self.meta[TURN] = state["buckets"], held, held
        self.meta[MAP + state["map"]] = np.arange(1, held + 1)
        at = 0
        for p, n in enumerate(lengths.tolist()):
            for t in times[at : at + n].tolist():
                notify_at(
                    p, t, self.time, self.next, self.head, self.tail, self.heap, self.first, self.meta, True
                )
            at += n
