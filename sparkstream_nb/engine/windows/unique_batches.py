"""Batches of events of different keys: `unique:lengthBatch`, `timeBatch`, `timeLengthBatch`, `firstLengthBatch` and
`firstTimeBatch`, and `unique:externalTimeBatch`.

All but the last collect a batch in a `HashMap`, one for all partition instances: the events come out in its order, at
the instance that ends the batch. The map walks by bin, in a bin as the keys came; it has as many bins as its largest
batch needed (bins that become trees are not followed).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..columnar.arrays import grown
from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from ..columnar.timers import Schedule, Timers
from ..notation.kernels import compiled, inlined
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN
from .declared_state import numbers, per_instance, scheduled_times
from .external import END, FLUSHED, HELD, NEWEST, PENDING, SCHEDULED, ExternalTimeBatchWindow
from .time_batch import first_after, next_emit
from .timed_window import Due, Event, TimedWindow, timed_window
from .unique_keys import KeyedWindow, UniqueKey
from .window_protocol import Emission, Window, WindowSetup, with_ranks

LAST, SLOT, SPREAD = range(3)
"""Numbers of a key: its event in the batch at hand, its place among the batch's keys, and its hash."""

EMIT, BINS, COUNT, SENT = range(4)
"""Numbers of the window: when the next batch is due (ms; -1: not known), the map's bins, the keys of the batch at hand,
and 1 where events are dropped until the batch ends."""

SEND, FULL, INSTANCE, NOW = range(4)
"""The chunk at hand: whether it ends a batch, whether the batch is full, its instance, and its time (ms)."""

_BIN = np.int64(40)
_SMALL_MAP, _LONG_BIN = 64, 8


@timed_window
class UniqueBatchWindow(TimedWindow, KeyedWindow):
    """Batches that end with a number of keys (`length`), with a time (`span`), or with either. The batch before expires
    with the next one; a RESET is a copy of its first event. `first`: of a key the first event stays, not the last.
    """

    stamps: int | None
    stamps, moves, is_ordered = EXPIRED, False, False
    chains, shows = ("expired",), "expired"
    positions = 1
    places = ("reset",)
    keeps_ids = False
    reset = per_instance(fill=-1)
    batch = numbers(-1, 16, 0, 0)
    timers: Timers = scheduled_times()
    pending: Array

    def __init__(self, setup: WindowSetup, *, length: int = -1, span: int = -1, start: int | None = None,
                 first: bool = False) -> None:  # fmt: skip
        self.length, self.span, self.first, self.scheduler = length, span, first, setup.scheduler
        self.has_start, self.start = start is not None, start or 0
        # The last batch leaves in any case; elsewhere than in a join nobody sees that.
        self.wants_expired, self.resets_per_chunk = setup.wants_expired or setup.findable, setup.resets_per_chunk
        # A condition looks into the batch that is collected, if only its length ends it, else into the last one.
        self.finds_pending = setup.findable and span < 0
        if span < 0:
            self.stamps, self.moves, self.is_ordered = None, True, setup.findable
        self.key = UniqueKey(setup.args[0], setup, apart=False, by_value=not first, nullable=not first)
        self._begin(setup, SPREAD + 1)
        self.pending = np.zeros(0, np.int64)
        self.turn = np.zeros(4, np.int64)

    @inlined
    def _begin_chunk(self, p: int, now: int, schedule: Schedule) -> None:
        """Looks whether a batch is due."""
        self.turn[SEND], self.turn[FULL], self.turn[INSTANCE], self.turn[NOW] = 0, 0, p, now
        if self.span > 0:
            if self.batch[EMIT] == -1:
                self.batch[EMIT] = next_emit(now, self.span, self.start, self.has_start)
                schedule.notify(p, self.batch[EMIT])
            if now >= self.batch[EMIT]:
                self.batch[EMIT] += self.span
                self.turn[SEND] = 1
            if self.batch[SENT] == 1:  # what comes until then is dropped, also in the chunk that ends it
                self.turn[FULL] = 1
                self.batch[SENT] = 1 - self.turn[SEND]
                self.turn[SEND] = self.turn[SEND] * 2

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        self._begin_chunk(due.instance, due.now, schedule)
        if self.turn[SEND] > 0:
            if self.turn[SEND] == 1 and self.batch[COUNT] == 0 and self.log.head[0][due.instance] < 0:
                emit = self.batch[EMIT] - self.span
                self.batch[EMIT] = first_after(due.now, emit, self.span)  # the batches up to now are empty too
            schedule.notify(due.instance, self.batch[EMIT])
        if self.turn[SEND] == 1:
            out.count = self._send(due.instance, due.now, due.order_key, out)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        if event.begins_chunk:
            self._begin_chunk(event.instance, event.now, schedule)
            if self.turn[SEND] > 0:
                schedule.notify(event.instance, self.batch[EMIT])
        if self.turn[FULL] == 0:
            self._collect(event.pos, event.order_key, out)
            if self.batch[COUNT] == self.length:
                if self.span > 0:
                    self.turn[FULL] = 1
                    self.turn[SEND] = 1
                    self.batch[SENT] = 1
                else:
                    out.count = self._send(event.instance, event.now, event.order_key, out)
                    out.chunks += 1

    @inlined
    def on_chunk_end(self, order_key: int, out: Emission) -> None:
        if self.turn[SEND] == 1:
            out.count = self._send(self.turn[INSTANCE], self.turn[NOW], order_key, out)
        self.turn[SEND] = 0

    @inlined
    def _collect(self, pos: int, order_key: int, out: Emission) -> None:
        """An event comes into the map."""
        k: Any = self.ids_by_position[pos]
        previous: Any = self.by_key[LAST, k]
        if previous < 0:
            slot = self.batch[COUNT]
            if self.batch[BINS] < _SMALL_MAP:
                same = 0
                for i in range(slot):
                    apart = self.by_key[SPREAD, self.pending[i]] ^ self.by_key[SPREAD, k]
                    same += apart & (self.batch[BINS] - 1) == 0
                if same >= _LONG_BIN:
                    self._grow(order_key, out)
            self.pending[slot] = k
            self.by_key[SLOT, k] = slot
            self.batch[COUNT] += 1
            if self.batch[COUNT] * 4 > self.batch[BINS] * 3:
                self._grow(order_key, out)
        if previous < 0 or not self.first:
            if self.finds_pending:
                if previous >= 0:
                    self._put(previous, LEAVE, order_key, out)
                self._put(pos, ENTER, order_key, out)
            if previous >= 0:
                self.log.alive[previous] = False
            self.by_key[LAST, k] = pos
            self.log.alive[pos] = True

    @inlined
    def _grow(self, order_key: int, out: Emission) -> None:
        """Doubles the map, which changes the order of the events in it."""
        self.batch[BINS] *= 2
        if self.finds_pending:
            for i in range(self.batch[COUNT]):
                other: Any = self.by_key[LAST, self.pending[i]]
                if other >= 0:
                    self._put(other, LEAVE, order_key, out)
                    self._put(other, ENTER, order_key, out)

    @inlined
    def _put(self, pos: int, kind: int, order_key: int, out: Emission) -> None:
        """Puts a change of the contents for joins out, with the place of the event's key in the map."""
        id: Any = self.ids_by_position[pos]
        self.ranks[out.count] = (self.by_key[SPREAD, id] & (self.batch[BINS] - 1)) << _BIN | self.by_key[SLOT, id]
        self.owner[out.count] = self.log.instance[pos]
        out.emit(pos, kind, self.log.ts[pos], order_key)

    @compiled
    def _send(self, p: int, now: int, order_key: int, out: Emission) -> int:
        """The batch before leaves, and the batch at hand comes out, all stamped with `now`; returns how many rows are
        put out by then."""
        begin = out.count
        if self.wants_expired:
            out.expire(self.log, 0, p, now, order_key)
            if self.reset[p] >= 0:
                self.log.alive[self.reset[p]] = True
        count = self.batch[COUNT]
        if count > 0 and self.reset[p] >= 0:
            out.emit(self.reset[p], RESET, now, order_key)
            self.log.alive[self.reset[p]] = False
            self.reset[p] = -1
        walk = np.empty(count, np.int64)
        for i in range(count):
            walk[i] = (self.by_key[SPREAD, self.pending[i]] & (self.batch[BINS] - 1)) << _BIN | i
        walk.sort()
        for i in range(count):
            k = self.pending[walk[i] & ((1 << _BIN) - 1)]
            pos = self.by_key[LAST, k]
            self.by_key[LAST, k] = -1
            if self.finds_pending:
                out.emit(pos, LEAVE, now, order_key)
            out.emit(pos, CURRENT, now, order_key)
            self.log.alive[pos] = self.wants_expired
            if self.wants_expired:
                self.log.push(0, pos, p)
            if i == 0 and not self.resets_per_chunk:
                self.reset[p] = pos
                self.log.alive[pos] = True
        self.batch[COUNT] = 0
        for i in range(begin, out.count):
            self.owner[i] = p
        return out.count

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        size_before = self.key.size
        rows, ids = self.key.take(rows, clock)
        n = len(rows)
        at = self._add(rows, ids, instances)
        if self.key.size > size_before:
            self.by_key[SPREAD, size_before : self.key.size] = self.key.spreads(size_before)
        self.pending = grown(self.pending, int(self.batch[COUNT]) + n)
        self.timers.room(2 * n + 2, instances)
        # An event comes out once as each kind; when the map doubles, the contents for joins enter again.
        out = Emission((3 + 7 * self.finds_pending) * (at + n) + 1)
        self.ids_by_position = self.ids
        self.owner = np.zeros(len(out.pos), np.int32)
        self.ranks = np.zeros(len(out.pos) if self.finds_pending else 0, np.int64)
        count = self.step(rows, at, clock, hashes, out)
        result = self._strip(out.rows(count, self.log, False, self.resets_per_chunk))
        if rows.instance is not None:
            result.instance, result.window_ops = self.owner[:count], None
        if self.is_ordered:
            result = with_ranks(result, self.ranks[:count])
        self._compact()
        return result

    def next_due(self) -> int | None:
        waits = self.batch[COUNT] > 0 or (self.wants_expired and bool((self.log.head[0] >= 0).any()))
        return self.timers.next_due() if waits else None

    def forget(self, instances: Array) -> None:
        """Events stay in the map, and with the instance that they came out at, whatever instance they are of."""
        super().forget(instances)
        for stay in (self.by_key[LAST], self.reset, self.log.positions_of(0)[0]):
            self.log.alive[stay[stay >= 0]] = True

    def _renumber(self, stay: Array) -> None:
        super()._renumber(stay)
        self._order_pending()

    def _order_pending(self) -> None:
        """`pending`: the keys of the batch at hand, in the order in which they came."""
        keys = np.flatnonzero(self.by_key[LAST] >= 0)
        self.pending = keys[np.argsort(self.by_key[SLOT, keys])]

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self._order_pending()


def unique_length_batch(setup: WindowSetup) -> Window:
    """Batches of n keys, each with the last event of the key."""
    return UniqueBatchWindow(setup, length=int(setup.constant(1)))


def unique_first_length_batch(setup: WindowSetup) -> Window:
    """Batches of n keys, each with the first event of the key."""
    return UniqueBatchWindow(setup, length=int(setup.constant(1)), first=True)


def unique_time_batch(setup: WindowSetup) -> Window:
    """Batches of t ms, with the last event of each key."""
    return UniqueBatchWindow(setup, span=int(setup.constant(1)), start=setup.constant(2))


def unique_first_time_batch(setup: WindowSetup) -> Window:
    """Batches of t ms, with the first event of each key."""
    return UniqueBatchWindow(setup, span=int(setup.constant(1)), start=setup.constant(2), first=True)


def unique_time_length_batch(setup: WindowSetup) -> Window:
    """Batches of t ms, with the last event of each key; at n keys a batch comes out, and the rest of the time's events
    are dropped."""
    start = setup.constant(2) if len(setup.args) > 3 else None
    length = int(setup.constant(len(setup.args) - 1))
    return UniqueBatchWindow(setup, length=length, span=int(setup.constant(1)), start=start)


VALUE, PLACE = 0, 1
"""Positions of a key of `unique:externalTimeBatch`: its last event in the batch at hand, and its first one, which is in
the chain in its place."""

_MERGED = 2
"""The chain of the events that come out."""


@timed_window
class UniqueExternalTimeBatchWindow(ExternalTimeBatchWindow, KeyedWindow):
    """`externalTimeBatch` with the last event of each key, in the order in which the keys came (`LinkedHashMap`).

    With a timeout Siddhi keeps the batches that a timeout puts out alone, unless expired events are wanted: a join
    finds only these. `keeps_now`: whether the batch that comes out is kept.
    """

    chains: tuple[str, ...] = ("pending", "held", "merged")
    shows = "held"
    positions = 2
    places = ("reset",)
    keeps_ids = False
    reset = per_instance(fill=-1)

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(replace(setup, args=setup.args[1:]))
        self.keeps = setup.wants_expired or (setup.findable and self.args.timeout == 0)
        self.keeps_now = np.array([self.keeps])
        self.key = UniqueKey(setup.args[0], setup, apart=True, by_value=True, nullable=True)
        self._begin(setup, PLACE + 1)

    @inlined
    def most(self, instance: int) -> int:
        rows: int = 4 * (self.batch[HELD, instance] + self.batch[PENDING, instance]) + 1
        return rows

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        p = due.instance
        if self.batch[SCHEDULED, p] <= due.time:
            out.chunks += 1
            self.keeps_now[0] = True
            out.count = self._flush(p, due.order_key, out)
            self.keeps_now[0] = self.keeps
            self.batch[FLUSHED, p] = 1
            self._wait(p, due.now, schedule)

    @inlined
    def _collect(self, pos: int, p: int) -> None:
        k: Any = self.ids_by_position[pos]
        previous: Any = self.by_key[VALUE, k]
        if previous < 0:
            self.by_key[PLACE, k] = pos
            self.log.push(CURRENT_CHAIN, pos, p)
            self.batch[PENDING, p] += 1
        else:
            self.log.alive[previous] = previous == self.by_key[PLACE, k]
        self.by_key[VALUE, k] = pos
        self.log.alive[pos] = True

    @compiled
    def _flush(self, p: int, order_key: int, out: Emission) -> int:
        """`flushToOutputChunk`, and after a timeout `appendToOutputChunk`, which repeats the rows that the timeout put
        out before, with new events in the places of their keys. Returns how many rows are put out then."""
        now = self.batch[NEWEST, p]
        reset = self.reset[p]
        if self.batch[FLUSHED, p] == 0:
            self._expire(p, now, order_key, out)
            if reset >= 0 and self.reset[p] < 0:
                self.log.alive[reset] = False
        elif self.log.head[CURRENT_CHAIN][p] >= 0:
            self._merge(p, now, order_key, out)
        while self.log.head[CURRENT_CHAIN][p] >= 0:
            place = self.log.pop(CURRENT_CHAIN, p)
            k = self.ids_by_position[place]
            comes = self.by_key[PLACE, k] >= 0  # not in the place of another event
            self.by_key[PLACE, k] = -1
            if self.keeps_now[0]:
                if comes:
                    self.log.push(_MERGED, place, p)
                else:
                    self.log.alive[place] = False
            else:
                new: Any = self.by_key[VALUE, k]
                if comes:
                    out.emit(new, CURRENT, self.log.ts[new], order_key)
                self.by_key[VALUE, k] = -1
                self.log.alive[place] = False
                self.log.alive[new] = False
        self.batch[PENDING, p] = 0
        while self.log.head[_MERGED][p] >= 0:
            place = self.log.pop(_MERGED, p)
            k = self.ids_by_position[place]
            new = self.by_key[VALUE, k]
            if new < 0:
                new = np.int64(place)
            self.by_key[VALUE, k] = -1
            self.log.alive[place] = False
            self.log.alive[new] = True
            out.emit(new, CURRENT, self.log.ts[new], order_key)
            self.log.push(EXPIRED_CHAIN, new, p)
            self.batch[HELD, p] += 1
            if self.findable:
                out.emit(new, ENTER, now, order_key)
        if self.reset[p] >= 0:
            self.log.alive[self.reset[p]] = True
        return out.count

    @inlined
    def _merge(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """Puts out again what a timeout put out, with the last event of each key in its place."""
        at: Any = np.int64(self.log.head[EXPIRED_CHAIN][p])
        while at >= 0 and self.wants_expired:
            out.emit(at, EXPIRED, now, order_key)
            at = np.int64(self.log.next[at])
        if not self.resets_per_chunk:
            out.emit(self.reset[p], RESET, now, order_key)
        if not self.keeps_now[0]:
            at = np.int64(self.log.head[EXPIRED_CHAIN][p])
            while at >= 0:
                k = self.ids_by_position[at]
                new = self.by_key[VALUE, k]
                if new >= 0:
                    self.by_key[PLACE, k] = -1
                else:
                    new = at
                out.emit(new, CURRENT, self.log.ts[new], order_key)
                at = np.int64(self.log.next[at])
            at = np.int64(-1)
        while self.keeps_now[0] and self.log.head[EXPIRED_CHAIN][p] >= 0:
            previous = self.log.pop(EXPIRED_CHAIN, p)
            k = self.ids_by_position[previous]
            if self.findable:
                out.emit(previous, LEAVE, now, order_key)
            if self.by_key[VALUE, k] >= 0:
                self.by_key[PLACE, k] = -1
            self.log.push(_MERGED, previous, p)
        if self.keeps_now[0]:
            self.batch[HELD, p] = 0

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        rows, start = self.args.entering_rows(rows, clock, self.batch[END])
        rows, ids = self.key.take(rows, clock)
        n = len(rows)
        at = self._add(rows, ids, instances)
        self.timers.room(2 * n, instances)  # a timer that fires leaves its place to the next one
        self.time, self.start, self.ids_by_position = self.log.values(self.args.time), start, self.ids
        out = Emission((2 + self.findable) * (at + n) + 2)
        count = self.step(rows, at, clock, hashes, out)
        result = self._strip(out.rows(count, self.log, rows.instance is not None, self.resets_per_chunk))
        self._compact()
        return result
