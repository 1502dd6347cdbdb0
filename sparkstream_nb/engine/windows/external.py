"""`externalTime(ts, t)` and `externalTimeBatch(ts, t, ...)`: windows by a time attribute of the events."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Const
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Mask
from ..columnar.frame import frame_of
from ..columnar.rows import BEFORE_ALL, CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from ..columnar.timers import Schedule
from ..expressions import Env, compile_expr
from ..notation.kernels import compiled, inlined, struct
from .batch_windows import Batches, BatchesInLine
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN
from .declared_state import ChainedWindow, first_events, numbers, per_instance, scheduled_times
from .ordered_expiry import slide_in_line
from .time_batch import next_emit
from .timed_window import Due, Event, TimedWindow, timed_window
from .window_protocol import Emission, Feed, Untimed, Window, WindowSetup

_NO_TIME = "the window's time attribute is null"


@struct
class ExternalTimeWindow(ChainedWindow, Untimed):
    """The events of the last t ms by their own time; only events move it on, the clock never does."""

    stamps, moves, is_ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.time = setup.column(0)
        self.span, self.ops_only = int(setup.constant(1)), setup.ops_only
        self._declare(setup.types, in_line=not setup.is_partitioned)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        rows = self.setup.without_nulls(rows, [self.time], _NO_TIME)
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        out = Emission(at + 2 * n, self.ops_only)
        time = log.values(self.time)
        if self.ops_only and log.in_line:
            count = slide_in_line(log, self.span, None, at, time[at : at + n], BEFORE_ALL, time, out)
        else:
            count = self._slide(Feed(rows, at), time, out)
        result = out.beside(count, log, rows) if self.ops_only else out.rows(count, log, rows.instance is not None)
        log.tidy()
        return result

    @compiled
    def _slide(self, rows: Feed, time: Array, out: Emission) -> int:
        """`ExternalTimeWindowProcessor.process`; `time` has the time of each event of the log. Returns how many rows
        are put out, each in the chunk of the row that brought it."""
        for i in range(rows.count):
            pos = rows.first + i
            p: Any = self.log.instance[pos] if len(self.log.instance) else 0
            begin = out.count
            t = time[pos]
            while self.log.head[0][p] >= 0 and time[self.log.head[0][p]] - t + self.span <= 0:
                oldest = self.log.pop(0, p)
                self.log.alive[oldest] = False
                out.put(oldest, EXPIRED, t, rows.order_key[i])
            self.log.push(0, pos, p)
            self.log.alive[pos] = True
            out.put(pos, CURRENT, self.log.ts[pos], rows.order_key[i])
            if len(out.ts) > 0:
                for k in range(begin, out.count):
                    out.chunk[k] = rows.chunk[i]
        return out.count

    def save_chain(self, chain: int) -> dict[str, Any]:
        return self.log.chain_saved(chain)


END, START, SCHEDULED, NEWEST, FLUSHED, HELD, PENDING = 0, 1, 2, 3, 4, 5, 6
"""Rows of the batch window's state: when the batch ends, where batches begin, when the timeout is due, the highest
time so
far, whether a timeout has put the batch out already, and how many events are held as expired and as pending."""


@struct
class _Batching:
    """The arguments of `externalTimeBatch`. `starts`: 0 batches begin with the first event, 1 at a constant, 2 at what
    an expression has for the row that begins the first one."""

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.time, self.span = setup.column(0), int(setup.constant(1))
        third = setup.args[2] if len(setup.args) > 2 else None
        self.starts = 0 if third is None else 1 if isinstance(third, Const) else 2
        self.origin = int(setup.constant(2)) if self.starts == 1 else 0
        self._start = compile_expr(third, setup.context) if third is not None and self.starts == 2 else None
        self.timeout = int(setup.constant(3, 0))
        self.replaces = bool(setup.constant(4, False))

    def entering_rows(self, rows: Rows, clock: Clock, end: Array) -> tuple[Rows, Array]:
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
        missing = start.null if env.failed_rows is None else env.failed_rows | start.nulls()
        if missing is None or not missing.any():
            return rows, start.values
        is_lost = _lost(missing, rows.chunk, rows.instances(), end)
        if is_lost.any():
            self.setup.refuse(rows, is_lost, "the window's start time is null")
        return rows.where(~is_lost), start.values[~is_lost]


def _lost(missing: Mask, chunk: Array, instance: Array, end: Array) -> Mask:
    """The rows of chunks that would begin an instance's first batch, but have no start time."""
    out = np.zeros(len(missing), np.bool_)
    first = np.flatnonzero(np.append(True, chunk[1:] != chunk[:-1]))
    with_batch = set(np.flatnonzero(end >= 0).tolist())
    for i, until in zip(first.tolist(), [*first[1:].tolist(), len(chunk)], strict=True):
        p = int(instance[i])
        if p in with_batch:
            continue
        if missing[i]:
            out[i:until] = True
        else:
            with_batch.add(p)
    return out


@struct
class _ExternalBatchInLine(BatchesInLine):
    """`externalTimeBatch` outside partitions, without a timeout, where no join looks into it."""

    args: _Batching
    batch = numbers(-1, 0, 0, 0)

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        self.args = _Batching(setup)
        self.batch[START] = self.args.origin

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        a = self.args
        rows, start = a.entering_rows(rows, clock, self.batch[END : END + 1])
        n = len(rows)
        at = self.take(rows)
        out = Batches(2 * n + 4)  # a batch has an event of its own, or the one before it has
        out.count = self._step(Feed(rows, at), start, self.log.values(a.time), out)
        return self.batches(*out.arrays)

    @compiled
    def _step(self, rows: Feed, start: Array, time: Array, out: Batches) -> int:
        """The batches of `ExternalTimeBatchWindow`; `start` has where a batch begins that begins with a row, `time` the
        time of each event of the log."""
        expiring = self.places[0]
        new = self.places[1]
        end = self.batch[END]
        newest = self.batch[NEWEST]
        for i in range(rows.count):
            pos = rows.first + i
            t = time[pos]
            if end < 0 and (i == 0 or rows.chunk[i] != rows.chunk[i - 1]):
                if self.args.starts == 1:
                    end = next_emit(t, self.args.span, self.batch[START], True)
                else:
                    self.batch[START] = start[i] if self.args.starts == 2 else t
                    end = self.batch[START] + self.args.span
            newest = max(newest, t)
            if t >= end:
                if new < pos or (self.wants_expired and expiring < new):
                    out.put(pos, newest, rows.order_key[i])
                    expiring = new
                    new = pos
                end = next_emit(newest, self.args.span, self.batch[START], True)
            if self.args.replaces:
                time[pos] = end
        self.batch[END] = end
        self.batch[NEWEST] = newest
        return out.count


def external_time_batch_window(setup: WindowSetup) -> Window:
    """Batches of t ms by the events' own time; an event at or after a batch's end lets it out."""
    in_line = not (setup.is_partitioned or setup.findable or setup.constant(3, 0))
    return _ExternalBatchInLine(setup) if in_line else ExternalTimeBatchWindow(setup)


@timed_window
class ExternalTimeBatchWindow(TimedWindow, ChainedWindow):
    """`externalTimeBatch` inside a partition, with a timeout, or if a join looks into it.

    With a timeout the batch is also emitted when the clock has moved on for that long, and events that arrive for it
    afterwards are emitted together with its earlier ones. A join finds the last batch emitted.
    """

    args: _Batching
    stamps, moves, is_ordered = None, True, False
    chains: tuple[str, ...] = ("pending", "held")
    reset = first_events()
    batch = per_instance("first_batch", rows=PENDING + 1)
    timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.setup, self.args = setup, _Batching(setup)
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.findable = setup.findable
        self.keeps = setup.wants_expired or setup.findable or self.args.timeout > 0
        self.scheduler = setup.scheduler
        self.first_batch = np.array([-1, self.args.origin, 0, 0, 0, 0, 0])
        self._declare(setup.types)

    @inlined
    def most(self, instance: int) -> int:
        """A batch leaves as expired and as current rows, and enters the contents for a join."""
        rows: int = 2 * self.batch[HELD, instance] + 2 * self.batch[PENDING, instance] + 1
        return rows

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        p = due.instance
        if self.batch[SCHEDULED, p] <= due.time:
            out.chunks += 1
            out.count = self._flush(p, due.order_key, out)
            self.batch[FLUSHED, p] = 1
            self._wait(p, due.now, schedule)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        """`starts`: 0 batches begin with the first event, 1 at a constant (already in the state), 2 at what `start` has
        for the row that begins the first one."""
        p = event.instance
        t = self.time[event.pos]
        if self.batch[END, p] < 0 and event.begins_chunk:
            if self.args.starts == 1:
                self.batch[END, p] = next_emit(t, self.args.span, self.batch[START, p], True)
            else:
                self.batch[START, p] = self.start[event.row] if self.args.starts == 2 else t
                self.batch[END, p] = self.batch[START, p] + self.args.span
            if self.args.timeout > 0:
                self._wait(p, event.now, schedule)
        if self.batch[NEWEST, p] < t:
            self.batch[NEWEST, p] = t
        if t >= self.batch[END, p]:
            out.chunks += 1
            out.count = self._flush(p, event.order_key, out)
            self.batch[FLUSHED, p] = 0
            self.batch[END, p] = next_emit(self.batch[NEWEST, p], self.args.span, self.batch[START, p], True)
            if self.args.timeout > 0:
                self._wait(p, event.now, schedule)
        if self.args.replaces:
            self.time[event.pos] = self.batch[END, p]
        self._collect(event.pos, p)
        if self.reset[p] < 0:
            self.reset[p] = event.pos

    @inlined
    def _collect(self, pos: int, p: int) -> None:
        """An event joins the batch at hand."""
        self.log.push(CURRENT_CHAIN, pos, p)
        self.log.alive[pos] = True
        self.batch[PENDING, p] += 1

    @inlined
    def _wait(self, p: int, now: int, schedule: Schedule) -> None:
        """The timeout begins."""
        self.batch[SCHEDULED, p] = now + self.args.timeout
        schedule.notify(p, self.batch[SCHEDULED, p])

    @compiled
    def _flush(self, p: int, order_key: int, out: Emission) -> int:
        """`flushToOutputChunk`, and after a timeout `appendToOutputChunk`, which repeats the rows that the timeout put
        out before. Returns how many rows are put out then."""
        now = self.batch[NEWEST, p]
        if self.batch[FLUSHED, p] == 0 or self.log.head[CURRENT_CHAIN][p] >= 0:
            if self.batch[FLUSHED, p] == 1:
                self._repeat(p, now, order_key, out)
            else:
                self._expire(p, now, order_key, out)
            while self.log.head[CURRENT_CHAIN][p] >= 0:
                new = self.log.pop(CURRENT_CHAIN, p)
                out.emit(new, CURRENT, self.log.ts[new], order_key)
                if self.keeps:
                    self.log.push(EXPIRED_CHAIN, new, p)
                    self.batch[HELD, p] += 1
                    if self.findable:
                        out.emit(new, ENTER, now, order_key)
                else:
                    self.log.alive[new] = False
            self.batch[PENDING, p] = 0
        return out.count

    @inlined
    def _repeat(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The rows of the batch at hand that were put out before, again."""
        if self.wants_expired:
            at = self.log.head[EXPIRED_CHAIN][p]
            while at >= 0:
                out.emit(at, EXPIRED, now, order_key)
                at = self.log.next[at]
        if not self.resets_per_chunk:
            out.emit(self.reset[p], RESET, now, order_key)
        at = self.log.head[EXPIRED_CHAIN][p]
        while at >= 0:
            out.emit(at, CURRENT, self.log.ts[at], order_key)
            at = self.log.next[at]

    @inlined
    def _expire(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The batch before leaves."""
        while self.log.head[EXPIRED_CHAIN][p] >= 0:
            oldest = self.log.pop(EXPIRED_CHAIN, p)
            self.log.alive[oldest] = False
            if self.findable:
                out.emit(oldest, LEAVE, now, order_key)
            if self.wants_expired:
                out.emit(oldest, EXPIRED, now, order_key)
        self.batch[HELD, p] = 0
        if self.log.head[CURRENT_CHAIN][p] >= 0:
            if not self.resets_per_chunk:
                out.emit(self.reset[p], RESET, now, order_key)
            self.reset[p] = -1

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        a = self.args
        rows, start = a.entering_rows(rows, clock, self.batch[END])
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self._widen(instances)
        self.timers.room(2 * n, instances)  # a timer that fires leaves its place to the next one
        self.time, self.start = log.values(a.time), start
        out = Emission((2 + self.findable) * (at + n) + 2)
        count = self.step(rows, at, clock, hashes, out)
        result = out.rows(count, log, rows.instance is not None, self.resets_per_chunk)
        self._tidy()
        return result

    def next_due(self) -> int | None:
        """The next timeout, also one that emits nothing: the following one is counted from the clock at which it goes
        off."""
        not_before = grown(self.batch[SCHEDULED], len(self.timers.head))
        return self.timers.next_due(not_before=not_before)
