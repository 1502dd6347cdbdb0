"""`timeBatch(t)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import HEAP, Schedule, Timers, step_before
from ..notation.kernels import compiled, inlined, kernel, struct
from .batch_windows import Batches, BatchesInChains, BatchesInLine
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN
from .declared_state import numbers, scheduled_times
from .window_protocol import Emission, Feed, Window, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)


@kernel
def next_emit(now: int, span: int, start: int, is_aligned: bool) -> int:
    """When the first batch ends (ms), whose first event comes at `now`."""
    if not is_aligned:
        return now + span
    since_start = now - start
    since_start = since_start - span * int(since_start / span) if span else 0  # Java's remainder, toward zero
    return now + (span - since_start)


@kernel
def first_after(t: int, emit: int, span: int) -> int:
    """When the first batch ends that ends after `t`; one ends at `emit`."""
    return emit + ((t - emit) // span + 1) * span if span else emit


@struct
class _TimeBatchInLine(BatchesInLine):
    """`timeBatch` outside partitions, without `stream.current.event`."""

    stamps_resets = False
    emit = numbers(-1)

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        self.span = int(setup.constant(0))
        start = setup.constant(1)
        self.is_aligned = start is not None and not isinstance(start, bool)
        self.start = int(start) if self.is_aligned else 0
        self.scheduler = setup.scheduler

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        at = self.take(rows)
        out = Batches(2 * n + 4)  # a batch has an event of its own, or the one before it has
        out.count = self._step(Feed(rows, at), clock, out)
        return self.batches(*out.arrays)

    @compiled
    def _step(self, rows: Feed, clock: Clock, out: Batches) -> int:
        """`TimeBatchWindow._step` for one instance whose events wait for the end of their batch: the batches. A timer
        is due whenever a batch is."""
        tick = clock.first
        expiring = self.places[0]
        new = self.places[1]
        i = 0
        while True:
            begin = i
            while (
                self.emit[0] != -1
                and i < rows.count
                and clock.now[(rows.order_key[i] >> _BITS) - clock.base] < self.emit[0]
            ):  # they only wait
                i += 1
            if i > begin:
                tick = max(tick, (rows.order_key[i - 1] >> _BITS) - clock.base)
            end = rows.first + i  # of the events that have come
            order_key: Any = np.int64(0)
            t: Any = np.int64(0)
            send = False
            step = clock.last
            until = clock.last - 1
            if i < rows.count:
                step = (rows.order_key[i] >> _BITS) - clock.base
                before = step_before(rows.order_key[i], self.scheduler, clock.base)
                until = min(until, before)
            if tick <= until and (self.emit[0] == -1 or clock.now[until] < self.emit[0]):
                tick = until + 1
            while tick <= until and not send:
                t = clock.now[tick]
                order_key = ((clock.base + tick) << _BITS) | self.scheduler
                send = clock.may_fire[tick] and t >= self.emit[0]
                if not send:
                    tick += 1
            if not send:
                if i == rows.count:
                    break
                order_key = rows.order_key[i]
                t = clock.now[step]
                a = i
                i += 1
                while i < rows.count and rows.chunk[i] == rows.chunk[a]:
                    i += 1
                end = rows.first + i
                if self.emit[0] == -1:
                    self.emit[0] = next_emit(t, self.span, self.start, self.is_aligned)
                send = t >= self.emit[0]
            if not send:
                continue
            self.emit[0] += self.span
            if new < end or (self.wants_expired and expiring < new):
                out.put(end, t, order_key)
                expiring = new
                new = end
            elif tick <= until and self.emit[0] <= t:
                self.emit[0] = first_after(t, self.emit[0], self.span)  # the batches up to now are empty too
        return out.count

    def next_due(self) -> int | None:
        expiring, new = self.places.tolist()
        some = new < self.log.end or (self.wants_expired and expiring < new)
        return int(self.emit[0]) if some and self.emit[0] != -1 else None


def time_batch_window(setup: WindowSetup) -> Window:
    """Batches of t ms, from the first event or aligned to `start.time`; a batch leaves when the clock reaches its end.
    """
    streaming = any(a is True for a in (setup.constant(1), setup.constant(2)))
    return TimeBatchWindow(setup) if setup.is_partitioned or streaming else _TimeBatchInLine(setup)


@struct
class TimeBatchWindow(BatchesInChains):
    """`timeBatch` inside a partition, or with `stream.current.event`."""

    stamps, moves, is_ordered = EXPIRED, False, False
    stamps_resets = False
    emit = numbers(-1)
    timers: Timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.span = int(setup.constant(0))
        second = setup.constant(1)
        self.is_aligned = second is not None and not isinstance(second, bool)
        self.start = int(second) if self.is_aligned else 0
        self.streaming = bool(second if isinstance(second, bool) else setup.constant(2, False))
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.scheduler = setup.scheduler
        self._declare(setup.types, in_line=not setup.is_partitioned)

    @compiled
    def _step(self, rows: Feed, schedule: Schedule, out: Emission) -> int:
        """`TimeBatchWindowProcessor.process` over chunks of rows and timers merged by order key; returns how many rows
        are put out.

        `emit[0]` is when the next batch is due, -1 before the first event; Siddhi keeps it once per window, not per
        partition instance. A timer runs as a chunk without events.
        """
        tick = schedule.clock.first
        i = 0
        d = 0
        ready = 0
        while True:
            # The next one: a timer of an instance that is due, or the next chunk of rows.
            p = -1
            a = i
            order_key: Any = np.int64(0)
            t: Any = np.int64(0)
            while p < 0 and tick < schedule.clock.last:
                order_key = ((schedule.clock.base + tick) << _BITS) | self.scheduler
                if i < rows.count and order_key > rows.order_key[i]:
                    break
                t = schedule.clock.now[tick]
                waiting = self.timers.meta[HEAP] > 0 and self.timers.first[self.timers.heap[0]] <= t
                if ready == 0 and schedule.clock.may_fire[tick] and waiting:
                    ready = self.timers.due_instances(t, schedule.hashes)
                    d = 0
                while d < ready:
                    q = self.timers.due[d]
                    if self.timers.head[q] >= 0 and self.timers.time[self.timers.head[q]] <= t:
                        self.timers.pop(q)
                        p = q
                        break
                    self.timers.enter(q)
                    d += 1
                if p < 0:
                    tick += 1
                    ready = 0
            in_due = p >= 0
            if p < 0:
                if i == rows.count:
                    break
                p = self.log.instance[rows.first + i] if len(self.log.instance) else 0
                order_key = rows.order_key[i]
                t = schedule.clock.now[(order_key >> _BITS) - schedule.clock.base]
                i += 1
                while i < rows.count and rows.chunk[i] == rows.chunk[a]:
                    i += 1
            begin = out.count
            if self.emit[0] == -1:
                self.emit[0] = next_emit(t, self.span, self.start, self.is_aligned)
                self.timers.notify_at(p, self.emit[0], not in_due)
            send = t >= self.emit[0]
            if send:
                waits = self.log.head[CURRENT_CHAIN][p] >= 0 or self.log.head[EXPIRED_CHAIN][p] >= 0
                if in_due and not waits and self.reset[p] < 0:  # so are the batches up to now
                    self.emit[0] = first_after(t, self.emit[0], self.span)
                else:
                    self.emit[0] += self.span
                self.timers.notify_at(p, self.emit[0], not in_due)
            for pos in range(rows.first + a, rows.first + i):
                self._come(pos, p, order_key, out)
            if send:
                self._send(p, t, order_key, out)
            if out.count > begin:
                out.chunks += 1
        return out.count

    @inlined
    def _come(self, pos: int, p: int, order_key: int, out: Emission) -> None:
        """An event waits for the end of its batch, or passes."""
        if self.reset[p] < 0:
            self.reset[p] = pos
        self.log.alive[pos] = not self.streaming or self.wants_expired
        if self.streaming:
            out.emit(pos, CURRENT, self.log.ts[pos], order_key)
            if self.wants_expired:
                self.log.push(EXPIRED_CHAIN, pos, p)
        else:
            self.log.push(CURRENT_CHAIN, pos, p)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self._widen(instances)
        self.timers.room(2 * n + 2, instances)
        # Every event leaves at most once as each of these.
        out = Emission((1 + self.wants_expired + (not self.resets_per_chunk)) * (at + n))
        schedule = Schedule(self.timers, clock, self.scheduler, hashes)
        count = self._step(Feed(rows, at), schedule, out)
        result = out.rows(count, log, rows.instance is not None, self.resets_per_chunk)
        self._tidy()
        return result

    def next_due(self) -> int | None:
        current, expiring = self.log.head
        return self.timers.next_due((current >= 0) | (expiring >= 0) if self.wants_expired else current >= 0)
