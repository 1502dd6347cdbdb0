"""`externalTime(ts, t)` and `externalTimeBatch(ts, t, ...)`: windows by a time attribute of the events."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Const
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Mask
from ..columnar.frame import frame_of
from ..columnar.jit import kernel
from ..columnar.rows import BEFORE_ALL, CURRENT, ENTER, EXPIRED, LEAVE, ORDER_KEY_BITS, RESET, Clock, Rows
from ..columnar.timers import NEVER, NOW, ORDER_KEY, TIME, Timers, next_due, nothing_due, notify, timer_cursor
from ..expressions import Env, compile_expr
from .batch_windows import BatchesInLine
from .chain import ChainedLog, pop, push
from .length import load_reset, reset_state
from .ordered_expiry import slide_in_line
from .window_protocol import Emission, Untimed, Window, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)
_NO_TIME = "the window's time attribute is null"


@kernel
def _external_time(
    span: int, at: int, rows: int, row_order_key: Array, row_chunk: Array, time: Array, ts: Array, instance: Array,
    nxt: Array,
    alive: Array, head: Array, tail: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array,
    chunk_out: Array,
) -> int:  # fmt: skip
    """`ExternalTimeWindowProcessor.process`."""
    n = 0
    for i in range(rows):
        pos = at + i
        p = instance[pos] if len(instance) else 0
        first = n
        t = time[pos]
        while head[p] >= 0 and time[head[p]] - t + span <= 0:
            old = pop(p, nxt, head, tail)
            alive[old] = False
            pos_out[n] = old
            kind_out[n] = EXPIRED
            if len(ts_out) > 0:
                ts_out[n] = t
            n += 1
        push(pos, p, nxt, head, tail)
        alive[pos] = True
        pos_out[n] = pos
        kind_out[n] = CURRENT
        n += 1
        if len(ts_out) > 0:
            ts_out[n - 1] = ts[pos]
            for k in range(first, n):
                order_key_out[k] = row_order_key[i]
                chunk_out[k] = row_chunk[i]
    return n


class ExternalTimeWindow(Untimed):
    """The events of the last t ms by their own time; only events move it on, the clock never does."""

    stamps, moves, is_ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.time = setup.column(0)
        self.span, self.ops_only = int(setup.constant(1)), setup.ops_only
        self.log = ChainedLog(setup.types, in_line=not setup.partitioned)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        rows = self.setup.without_nulls(rows, [self.time], _NO_TIME)
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        out = Emission(at + 2 * n, self.ops_only)
        time = log.values(self.time)
        if self.ops_only and log.in_line:
            made = slide_in_line(log, self.span, None, at, time[at : at + n], BEFORE_ALL, time, out.pos, out.kind)
        else:
            made = _external_time(
                self.span, at, n, rows.order_key, rows.chunk, time, log.ts, log.instance, log.next, log.alive,
                log.head[0], log.tail[0], *out.arrays,
            )  # fmt: skip
        result = out.beside(made, log, rows) if self.ops_only else out.rows(made, log, rows.instance is not None)
        log.tidy()
        return result

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)

    def state(self) -> dict[str, Any]:
        return {"events": self.log.chain_state()}

    def save_state(self) -> dict[str, Any]:
        return {"events": self.log.chain_saved()}

    def load(self, state: dict[str, Any]) -> None:
        self.log.load_chains([state["events"]])

    @property
    def bytes(self) -> int:
        return self.log.bytes


END, START, SCHEDULED, NEWEST, FLUSHED, HELD, PENDING = 0, 1, 2, 3, 4, 5, 6
"""Rows of the batch window's state: when the batch ends, where batches begin, when the timeout is due, the highest
time so
far, whether a timeout has put the batch out already, and how many events are held as expired and as pending."""


ROW, MADE, CHUNK, TIMER = range(4)
"""Resumption point of the batch window's loop after it ran out of room: row, number of rows emitted, number of chunks,
and the instance whose timer had fired (-1: none).
"""


@kernel
def _end_time(now: int, start: int, span: int) -> int:
    gone = now - start
    gone = gone - span * int(gone / span) if span else 0  # Java's remainder, toward zero
    return now + (span - gone)


@kernel
def _external_batches(
    span: int, starts: int, start: Array, replaces: bool, wants_expired: bool, at: int, rows: int, row_order_key: Array,
    row_chunk: Array, time: Array, places: Array, st: Array, end_out: Array, time_out: Array, order_key_out: Array,
) -> int:  # fmt: skip
    """`_external_time_batch` for one instance without a timeout: the batches."""
    n = 0
    old = places[0]
    new = places[1]
    end = st[END]
    newest = st[NEWEST]
    for i in range(rows):
        pos = at + i
        t = time[pos]
        if end < 0 and (i == 0 or row_chunk[i] != row_chunk[i - 1]):
            if starts == 1:
                end = _end_time(t, st[START], span)
            else:
                st[START] = start[i] if starts == 2 else t
                end = st[START] + span
        newest = max(newest, t)
        if t >= end:
            if new < pos or (wants_expired and old < new):
                end_out[n] = pos
                time_out[n] = newest
                order_key_out[n] = row_order_key[i]
                n += 1
                old = new
                new = pos
            end = _end_time(newest, st[START], span)
        if replaces:
            time[pos] = end
    st[END] = end
    st[NEWEST] = newest
    return n


class _Batching:
    """The arguments of `externalTimeBatch`. `starts` is as in the loops."""

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.time, self.span = setup.column(0), int(setup.constant(1))
        third = setup.args[2] if len(setup.args) > 2 else None
        self.starts = 0 if third is None else 1 if isinstance(third, Const) else 2
        self.origin = int(setup.constant(2)) if self.starts == 1 else 0
        self._start = compile_expr(third, setup.context) if third is not None and self.starts == 2 else None
        self.timeout = int(setup.constant(3, 0))
        self.replaces = bool(setup.constant(4, False))

    def taken(self, rows: Rows, clock: Clock, end: Array) -> tuple[Rows, Array]:
        """(the rows that enter, int64[rows] where batches begin that begin with a row). `end` int64[instances] is when
        the batch of each ends, less than 0 before its first event; those behind its end have none."""
        rows = self.setup.without_nulls(rows, [self.time], _NO_TIME)
        if self.span == 0:  # Siddhi divides by it
            self.setup.refuse(rows, np.ones(len(rows), np.bool_), "the window's time is 0")
            rows = rows.slice(0, 0)
        if self._start is None or len(rows) == 0:
            return rows, np.empty(0, np.int64)
        env = Env(len(rows), self.setup.strings, rows.ts, lambda: clock.at(rows.order_key), frame_of(rows).resolve)
        start = self._start(env)
        missing = start.null if env.failed is None else env.failed | start.nulls()
        if missing is None or not missing.any():
            return rows, start.values
        lost = _lost(missing, rows.chunk, rows.instances(), end)
        if lost.any():
            self.setup.refuse(rows, lost, "the window's start time is null")
        return rows.where(~lost), start.values[~lost]


def _lost(missing: Mask, chunk: Array, instance: Array, end: Array) -> Mask:
    """The rows of chunks that would begin an instance's first batch, but have no start time."""
    out = np.zeros(len(missing), np.bool_)
    first = np.flatnonzero(np.append(True, chunk[1:] != chunk[:-1]))
    begun = set(np.flatnonzero(end >= 0).tolist())
    for i, until in zip(first.tolist(), [*first[1:].tolist(), len(chunk)], strict=True):
        p = int(instance[i])
        if p in begun:
            continue
        if missing[i]:
            out[i:until] = True
        else:
            begun.add(p)
    return out


class _ExternalBatchInLine(BatchesInLine):
    """`externalTimeBatch` outside partitions, without a timeout, where no join looks into it."""

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        self.args = _Batching(setup)
        self.batch = np.array([-1, self.args.origin, 0, 0], np.int64)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        a = self.args
        rows, start = a.taken(rows, clock, self.batch[END : END + 1])
        n = len(rows)
        at = self.take(rows)
        # A batch has an event of its own, or the one before it has.
        end, time, order_key = (np.empty(2 * n + 4, np.int64) for _ in range(3))
        made = _external_batches(
            a.span, a.starts, start, a.replaces, self.wants_expired, at, n, rows.order_key, rows.chunk,
            self.log.values(a.time), self.places, self.batch, end, time, order_key,
        )  # fmt: skip
        return self.batches(end[:made], time[:made], order_key[:made])

    def state(self) -> dict[str, Any]:
        return {**super().state(), "batch": self.batch}

    def save_state(self) -> dict[str, Any]:
        return {**super().save_state(), "batch": self.batch}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.batch = state["batch"].copy()


@kernel
def _flush(
    p: int, now: int, order_key: int, n: int, chunk: int, again: bool, wants_expired: bool, anew: bool, keeps: bool,
    findable: bool,
    st: Array, ts: Array, nxt: Array, alive: Array, chead: Array, ctail: Array, ehead: Array, etail: Array, reset:
    Array,
    pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`flushToOutputChunk`, and with `again` `appendToOutputChunk`, which repeats the rows that a timeout emitted
    before.
    """
    begin = n
    if again:
        if chead[p] < 0:
            return n
        if wants_expired:
            at = ehead[p]
            while at >= 0:
                pos_out[n] = at
                kind_out[n] = EXPIRED
                ts_out[n] = now
                n += 1
                at = nxt[at]
        if not anew:
            pos_out[n] = reset[p]
            kind_out[n] = RESET
            ts_out[n] = now
            n += 1
        at = ehead[p]
        while at >= 0:
            pos_out[n] = at
            kind_out[n] = CURRENT
            ts_out[n] = ts[at]
            n += 1
            at = nxt[at]
    else:
        while ehead[p] >= 0:
            old = pop(p, nxt, ehead, etail)
            alive[old] = False
            for kind in (LEAVE, EXPIRED):
                if findable if kind == LEAVE else wants_expired:
                    pos_out[n] = old
                    kind_out[n] = kind
                    ts_out[n] = now
                    n += 1
        st[HELD, p] = 0
        if chead[p] >= 0:
            if not anew:
                pos_out[n] = reset[p]
                kind_out[n] = RESET
                ts_out[n] = now
                n += 1
            reset[p] = -1
    while chead[p] >= 0:
        cur = pop(p, nxt, chead, ctail)
        pos_out[n] = cur
        kind_out[n] = CURRENT
        ts_out[n] = ts[cur]
        n += 1
        if keeps:
            push(cur, p, nxt, ehead, etail)
            st[HELD, p] += 1
            if findable:
                pos_out[n] = cur
                kind_out[n] = ENTER
                ts_out[n] = now
                n += 1
        else:
            alive[cur] = False
    st[PENDING, p] = 0
    for k in range(begin, n):
        order_key_out[k] = order_key
        chunk_out[k] = chunk
    return n


@kernel
def _external_time_batch(
    span: int, starts: int, start: Array, timeout: int, replaces: bool, wants_expired: bool, anew: bool, keeps: bool,
    findable: bool,
    scheduler: int, at: int, rows: int, row_order_key: Array, row_chunk: Array, base: int, now: Array, moved: Array,
    last:
    int,
    cursor: Array, time: Array, ts: Array, instance: Array, nxt: Array, alive: Array, chead: Array, ctail: Array,
    ehead: Array, etail: Array, reset: Array, st: Array, hashes: Array, qtime: Array, qnext: Array, qhead: Array,
    qtail: Array, heap: Array, qfirst: Array, due: Array, meta: Array, pos_out: Array, kind_out: Array, ts_out: Array,
    order_key_out: Array, chunk_out: Array, stop: Array,
) -> int:  # fmt: skip
    """`ExternalTimeBatchWindowProcessor.process` over rows and timers merged by order key.

    `starts`: 0 batches begin with the first event, 1 at a constant (already in the state), 2 at what `start` has for
    the row that begins the first one.
    Returns 0 when it is done, else the room that the next batch needs: it continues from `stop` when called again.
    """
    n = stop[MADE]
    chunk = stop[CHUNK]
    for i in range(stop[ROW], rows + 1):
        limit: Any = row_order_key[i] if i < rows else NEVER
        idle = stop[TIMER] < 0
        if idle:
            idle = nothing_due(cursor, limit, scheduler, base, now, last, heap, qfirst, meta)
        while not idle:
            p = stop[TIMER]
            if p < 0:
                p = next_due(
                    cursor, limit, scheduler, base, now, moved, last, hashes, qtime, qnext, qhead, qtail, heap, qfirst,
                    due, meta
                )  # fmt: skip
            stop[TIMER] = -1
            if p < 0:
                break
            if st[SCHEDULED, p] > cursor[TIME]:
                continue
            most = n + 2 * st[HELD, p] + 2 * st[PENDING, p] + 1
            if most > len(pos_out):
                stop[ROW], stop[MADE], stop[CHUNK], stop[TIMER] = i, n, chunk, p
                return int(most)
            chunk += 1
            n = _flush(
                p, st[NEWEST, p], cursor[ORDER_KEY], n, chunk, st[FLUSHED, p] == 1, wants_expired, anew, keeps,
                findable, st,
                ts, nxt, alive, chead, ctail, ehead, etail, reset, pos_out, kind_out, ts_out, order_key_out, chunk_out,
            )  # fmt: skip
            st[FLUSHED, p] = 1
            st[SCHEDULED, p] = cursor[NOW] + timeout
            notify(cursor, p, st[SCHEDULED, p], qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
        if i == rows:
            break
        pos = at + i
        p = instance[pos]
        order_key = row_order_key[i]
        t = time[pos]
        if st[END, p] < 0 and (i == 0 or row_chunk[i] != row_chunk[i - 1]):
            if starts == 1:
                st[END, p] = _end_time(t, st[START, p], span)
            else:
                st[START, p] = start[i] if starts == 2 else t
                st[END, p] = st[START, p] + span
            if timeout > 0:
                st[SCHEDULED, p] = now[(order_key >> _BITS) - base] + timeout
                notify(cursor, p, st[SCHEDULED, p], qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
        if st[NEWEST, p] < t:
            st[NEWEST, p] = t
        if t >= st[END, p]:
            most = n + 2 * st[HELD, p] + 2 * st[PENDING, p] + 1
            if most > len(pos_out):
                stop[ROW], stop[MADE], stop[CHUNK] = i, n, chunk
                return int(most)
            chunk += 1
            n = _flush(
                p, st[NEWEST, p], order_key, n, chunk, st[FLUSHED, p] == 1, wants_expired, anew, keeps, findable, st,
                ts, nxt, alive, chead, ctail, ehead, etail, reset, pos_out, kind_out, ts_out, order_key_out, chunk_out,
            )  # fmt: skip
            st[FLUSHED, p] = 0
            st[END, p] = _end_time(st[NEWEST, p], st[START, p], span)
            if timeout > 0:
                st[SCHEDULED, p] = now[(order_key >> _BITS) - base] + timeout
                notify(cursor, p, st[SCHEDULED, p], qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
        if replaces:
            time[pos] = st[END, p]
        push(pos, p, nxt, chead, ctail)
        alive[pos] = True
        st[PENDING, p] += 1
        if reset[p] < 0:
            reset[p] = pos
    stop[MADE] = n
    return 0


def external_time_batch_window(setup: WindowSetup) -> Window:
    """Batches of t ms by the events' own time; an event at or after a batch's end lets it out."""
    in_line = not (setup.partitioned or setup.findable or setup.constant(3, 0))
    return _ExternalBatchInLine(setup) if in_line else ExternalTimeBatchWindow(setup)


class ExternalTimeBatchWindow:
    """`externalTimeBatch` inside a partition, with a timeout, or if a join looks into it.

    With a timeout the batch is also emitted when the clock has moved on for that long, and events that arrive for it
    afterwards are emitted together with its earlier ones. A join finds the last batch emitted.
    """

    stamps, moves, is_ordered = None, True, False

    def __init__(self, setup: WindowSetup) -> None:
        self.setup, self.args = setup, _Batching(setup)
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.keeps = setup.wants_expired or setup.findable or self.args.timeout > 0
        self.scheduler = setup.scheduler
        self.log = ChainedLog(setup.types, chains=2)
        self.reset = np.full(0, -1, np.int64)
        self.batch = np.zeros((PENDING + 1, 0), np.int64)
        self.timers = Timers()

    def _room(self, instances: int) -> None:
        have = self.batch.shape[1]
        self.reset = grown(self.reset, instances, -1)
        self.batch = grown(self.batch, instances)
        self.batch[END, have:] = -1
        self.batch[START, have:] = self.args.origin

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        a = self.args
        rows, start = a.taken(rows, clock, self.batch[END])
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self._room(instances)
        self.timers.room(2 * n, instances)  # a timer that fires leaves its place to the next one
        cursor, stop = timer_cursor(clock.first), np.array([0, 0, 0, -1], np.int64)
        out = Emission((2 + self.setup.findable) * (at + n) + 2)
        lacking = 1
        while lacking:
            lacking = _external_time_batch(
                a.span, a.starts, start, a.timeout, a.replaces, self.wants_expired, self.resets_per_chunk, self.keeps,
                self.setup.findable, self.scheduler, at, n, rows.order_key, rows.chunk, clock.base, clock.now,
                clock.moved, clock.last, cursor, log.values(a.time), log.ts, log.instance, log.next, log.alive,
                log.head[0], log.tail[0], log.head[1], log.tail[1], self.reset, self.batch, self.timers.hashes(hashes),
                *self.timers.arrays, *out.arrays, stop,
            )  # fmt: skip
            out.room(lacking)
        result = out.rows(int(stop[MADE]), log, rows.instance is not None, self.resets_per_chunk)
        log.alive[self.reset[self.reset >= 0]] = True
        log.tidy(self.reset)
        return result

    def next_due(self) -> int | None:
        """The next timeout, also one that emits nothing: the following one is counted from the clock at which it goes
        off."""
        scheduled = grown(self.batch[SCHEDULED], len(self.timers.head))
        return self.timers.next_due(not_before=scheduled)

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.reset, instances, -1)
        fill_at(self.batch, instances, 0)
        fill_at(self.batch[END], instances, -1)
        fill_at(self.batch[START], instances, self.args.origin)
        self.timers.forget(instances)

    def state(self) -> dict[str, Any]:
        return {
            "pending": self.log.chain_state(0),
            "held": self.log.chain_state(1),
            "reset": reset_state(self.log, self.reset),
            "batch": self.batch[:, : self.log.instances],
            "timers": self.timers.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.reset = load_reset(self.log, [state["pending"], state["held"]], state["reset"])
        self.batch = state["batch"].copy()
        self.timers.load(state["timers"])

    @property
    def bytes(self) -> int:
        return self.log.bytes
