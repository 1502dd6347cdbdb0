"""`timeBatch(t)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.jit import kernel
from ..columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, RESET, Clock, Rows
from ..columnar.timers import Timers, due_instances, enter, notify_at, pop_time, step_before
from .batch_windows import BatchesInLine
from .chain import ChainedLog, pop, push
from .length import load_reset, reset_state
from .window_protocol import Emission, Window, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)


@kernel
def _next_emit(now: int, span: int, start: int, aligned: bool) -> int:
    if not aligned:
        return now + span
    gone = now - start
    gone = gone - span * int(gone / span) if span else 0  # Java's remainder, toward zero
    return now + (span - gone)


@kernel
def _first_after(t: int, emit: int, span: int) -> int:
    """When the first batch ends that ends after `t`; one ends at `emit`."""
    return emit + ((t - emit) // span + 1) * span if span else emit


@kernel
def _time_batch(
    span: int, start: int, aligned: bool, streaming: bool, wants_expired: bool, anew: bool, scheduler: int,
    at: int, rows: int, row_order_key: Array, row_chunk: Array, base: int, now: Array, moved: Array, first: int,
    last: int,
    ts: Array, instance: Array, nxt: Array, alive: Array, chead: Array, ctail: Array, ehead: Array, etail: Array,
    reset: Array, emit: Array, hashes: Array, qtime: Array, qnext: Array, qhead: Array, qtail: Array, heap: Array,
    qfirst: Array, due: Array, meta: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array,
    chunk_out: Array,
) -> int:  # fmt: skip
    """`TimeBatchWindowProcessor.process` over chunks of rows and timers merged by order key.

    `emit[0]` is when the next batch is due, -1 before the first event; Siddhi keeps it once per window, not per
    partition instance. A timer runs as a chunk without events.
    """
    n = 0
    chunk = 0
    tick = first
    i = 0
    d = 0
    ready = 0
    while True:
        # The next one: a timer of an instance that is due, or the next chunk of rows.
        p = -1
        a = i
        order_key = np.int64(0)
        t = np.int64(0)
        while p < 0 and tick < last:
            order_key = ((base + tick) << _BITS) | scheduler
            if i < rows and order_key > row_order_key[i]:
                break
            t = now[tick]
            if ready == 0 and moved[tick] and meta[1] > 0 and qfirst[heap[0]] <= t:
                ready = due_instances(t, heap, qfirst, hashes, meta, due)
                d = 0
            while d < ready:
                q = due[d]
                if qhead[q] >= 0 and qtime[qhead[q]] <= t:
                    pop_time(q, qnext, qhead, qtail, meta)
                    p = q
                    break
                enter(q, qtime, qhead, heap, qfirst, meta)
                d += 1
            if p < 0:
                tick += 1
                ready = 0
        in_due = p >= 0
        if p < 0:
            if i == rows:
                break
            p = instance[at + i] if len(instance) else 0
            order_key = row_order_key[i]
            t = now[(order_key >> _BITS) - base]
            i += 1
            while i < rows and row_chunk[i] == row_chunk[a]:
                i += 1
        begin = n
        if emit[0] == -1:
            emit[0] = _next_emit(t, span, start, aligned)
            notify_at(p, emit[0], qtime, qnext, qhead, qtail, heap, qfirst, meta, not in_due)
        send = t >= emit[0]
        if send:
            if in_due and chead[p] < 0 and ehead[p] < 0 and reset[p] < 0:  # so are the batches up to now
                emit[0] = _first_after(t, emit[0], span)
            else:
                emit[0] += span
            notify_at(p, emit[0], qtime, qnext, qhead, qtail, heap, qfirst, meta, not in_due)
        for k in range(a, i):
            pos = at + k
            if reset[p] < 0:
                reset[p] = pos
            alive[pos] = not streaming or wants_expired
            if streaming:
                pos_out[n] = pos
                kind_out[n] = CURRENT
                ts_out[n] = ts[pos]
                n += 1
                if wants_expired:
                    push(pos, p, nxt, ehead, etail)
            else:
                push(pos, p, nxt, chead, ctail)
        if send:
            if wants_expired:
                while ehead[p] >= 0:
                    old = pop(p, nxt, ehead, etail)
                    alive[old] = False
                    pos_out[n] = old
                    kind_out[n] = EXPIRED
                    ts_out[n] = t
                    n += 1
            if reset[p] >= 0:
                if not anew:
                    pos_out[n] = reset[p]
                    kind_out[n] = RESET
                    ts_out[n] = ts[reset[p]]
                    n += 1
                if streaming and not wants_expired:
                    alive[reset[p]] = False
                reset[p] = -1
            while chead[p] >= 0:
                cur = pop(p, nxt, chead, ctail)
                pos_out[n] = cur
                kind_out[n] = CURRENT
                ts_out[n] = ts[cur]
                n += 1
                if wants_expired:
                    push(cur, p, nxt, ehead, etail)
                else:
                    alive[cur] = False
        for k in range(begin, n):
            order_key_out[k] = order_key
            chunk_out[k] = chunk
        if n > begin:
            chunk += 1
    return n


@kernel
def _time_batches(
    span: int, start: int, aligned: bool, wants_expired: bool, scheduler: int, at: int, rows: int,
    row_order_key: Array, row_chunk: Array, base: int, now: Array, moved: Array, first: int, last: int, places: Array,
    emit: Array, end_out: Array, time_out: Array, order_key_out: Array,
) -> int:  # fmt: skip
    """`_time_batch` for one instance whose events wait for the end of their batch: the batches. A timer is due
    whenever a batch is.
    """
    n = 0
    tick = first
    old = places[0]
    new = places[1]
    i = 0
    while True:
        begin = i
        while emit[0] != -1 and i < rows and now[(row_order_key[i] >> _BITS) - base] < emit[0]:  # they only wait
            i += 1
        if i > begin:
            tick = max(tick, (row_order_key[i - 1] >> _BITS) - base)
        end = at + i  # of the events that have come
        order_key = np.int64(0)
        t = np.int64(0)
        send = False
        step = last
        until = last - 1
        if i < rows:
            step = (row_order_key[i] >> _BITS) - base
            before = step_before(row_order_key[i], scheduler, base)
            until = min(until, before)
        if tick <= until and (emit[0] == -1 or now[until] < emit[0]):
            tick = until + 1
        while tick <= until and not send:
            t = now[tick]
            order_key = ((base + tick) << _BITS) | scheduler
            send = moved[tick] and t >= emit[0]
            if not send:
                tick += 1
        if not send:
            if i == rows:
                break
            order_key = row_order_key[i]
            t = now[step]
            a = i
            i += 1
            while i < rows and row_chunk[i] == row_chunk[a]:
                i += 1
            end = at + i
            if emit[0] == -1:
                emit[0] = _next_emit(t, span, start, aligned)
            send = t >= emit[0]
        if not send:
            continue
        emit[0] += span
        if new < end or (wants_expired and old < new):
            end_out[n] = end
            time_out[n] = t
            order_key_out[n] = order_key
            n += 1
            old = new
            new = end
        elif tick <= until and emit[0] <= t:
            emit[0] = _first_after(t, emit[0], span)  # the batches up to now are empty too
    return n


class _TimeBatchInLine(BatchesInLine):
    """`timeBatch` outside partitions, without `stream.current.event`."""

    clocked = False

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        self.span = int(setup.constant(0))
        start = setup.constant(1)
        self.aligned = start is not None and not isinstance(start, bool)
        self.start = int(start) if self.aligned else 0
        self.scheduler = setup.scheduler
        self.emit = np.array([-1], np.int64)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        at = self.take(rows)
        # A batch has an event of its own, or the one before it has.
        end, time, order_key = (np.empty(2 * n + 4, np.int64) for _ in range(3))
        made = _time_batches(
            self.span, self.start, self.aligned, self.wants_expired, self.scheduler, at, n, rows.order_key, rows.chunk,
            clock.base, clock.now, clock.moved, clock.first, clock.last, self.places, self.emit, end, time, order_key,
        )  # fmt: skip
        return self.batches(end[:made], time[:made], order_key[:made])

    def next_due(self) -> int | None:
        old, new = self.places.tolist()
        some = new < self.log.end or (self.wants_expired and old < new)
        return int(self.emit[0]) if some and self.emit[0] != -1 else None

    def state(self) -> dict[str, Any]:
        return {**super().state(), "emit": self.emit}

    def save_state(self) -> dict[str, Any]:
        return {**super().save_state(), "emit": self.emit}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.emit = state["emit"].copy()


def time_batch_window(setup: WindowSetup) -> Window:
    """Batches of t ms, from the first event or aligned to `start.time`; a batch leaves when the clock reaches its end.
    """
    streaming = any(a is True for a in (setup.constant(1), setup.constant(2)))
    return TimeBatchWindow(setup) if setup.partitioned or streaming else _TimeBatchInLine(setup)


class TimeBatchWindow:
    """`timeBatch` inside a partition, or with `stream.current.event`."""

    stamps, moves, is_ordered = EXPIRED, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.span = int(setup.constant(0))
        second = setup.constant(1)
        self.aligned = second is not None and not isinstance(second, bool)
        self.start = int(second) if self.aligned else 0
        self.streaming = bool(second if isinstance(second, bool) else setup.constant(2, False))
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.scheduler = setup.scheduler
        self.log = ChainedLog(setup.types, chains=2, in_line=not setup.partitioned)
        self.reset = np.full(0, -1, np.int64)
        self.emit = np.array([-1], np.int64)
        self.timers = Timers()

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self.reset = grown(self.reset, instances, -1)
        self.timers.room(2 * n + 2, instances)
        # Every event leaves at most once as each of these.
        out = Emission((1 + self.wants_expired + (not self.resets_per_chunk)) * (at + n))
        made = _time_batch(
            self.span, self.start, self.aligned, self.streaming, self.wants_expired, self.resets_per_chunk,
            self.scheduler, at, n, rows.order_key, rows.chunk, clock.base, clock.now, clock.moved, clock.first,
            clock.last,
            log.ts, log.instance, log.next, log.alive, log.head[0], log.tail[0], log.head[1], log.tail[1], self.reset,
            self.emit, self.timers.hashes(hashes), *self.timers.arrays, *out.arrays,
        )  # fmt: skip
        result = out.rows(made, log, rows.instance is not None, self.resets_per_chunk)
        held = self.reset[self.reset >= 0]
        log.alive[held] = True
        log.tidy(self.reset)
        return result

    def next_due(self) -> int | None:
        current, expired = self.log.head
        return self.timers.next_due((current >= 0) | (expired >= 0) if self.wants_expired else current >= 0)

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.reset, instances, -1)
        self.timers.forget(instances)

    def state(self) -> dict[str, Any]:
        return {
            "current": self.log.chain_state(0),
            "expired": self.log.chain_state(1),
            "reset": reset_state(self.log, self.reset),
            "emit": self.emit,
            "timers": self.timers.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.reset = load_reset(self.log, [state["current"], state["expired"]], state["reset"])
        self.emit = state["emit"].copy()
        self.timers.load(state["timers"])

    @property
    def bytes(self) -> int:
        return self.log.bytes
