"""Windows that rows and timers move on: one loop over both, and what each window does with a row and with a timer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import NEVER, NOW, ORDER_KEY, TIME, Schedule, Timers
from ..notation.kernels import inlined, kernel, struct
from .chain import ChainedLog
from .window_protocol import CHUNKS, COUNT, INSTANCE, ROW, Emission, Feed

_BITS = np.int64(ORDER_KEY_BITS)


@struct
@dataclass
class Event:
    """A row that enters a window: its position in the log, its partition instance, the clock (ms) when it comes, its
    order key, its number among the rows of the run, and whether it is the first of its chunk."""

    pos: int
    instance: int
    now: int
    order_key: int
    row: int
    begins_chunk: bool


@struct
@dataclass
class Due:
    """A timer that fires: the instance that it is of, the time (ms) that it was set to, the clock (ms) and the order
    key with which it fires."""

    instance: int
    time: int
    now: int
    order_key: int


@struct
class TimedWindow:
    """A window with timers. Subclasses, marked `timed_window`, have `on_event` and `on_timer`; both put rows out."""

    log: ChainedLog
    timers: Timers
    scheduler: int
    _loop: Callable[..., int]

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        """A row comes; it is in the log, in no chain yet."""

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        """A timer fires."""

    @inlined
    def on_chunk_end(self, order_key: int, out: Emission) -> None:
        """The chunk of rows at hand ends, whose last row has this order key."""

    @inlined
    def most(self, instance: int) -> int:
        """The most rows that an event or a timer of the instance puts out; 0 if `run` has made room for all."""
        return 0

    def step(self, rows: Rows, first: int, clock: Clock, hashes: Array | None, out: Emission) -> int:
        """Takes the rows, the first at position `first` of the log, and fires the timers between them; returns how many
        rows `out` has then."""
        feed, schedule = Feed(rows, first), Schedule(self.timers, clock, self.scheduler, hashes)
        while lacking := self._loop(self, feed, schedule, out):
            out.room(lacking)
        return int(feed.stop[COUNT])


W = TypeVar("W", bound=type[TimedWindow])


def timed_window(cls: W) -> W:
    """Compiles the loop of a window."""
    cls._loop = staticmethod(kernel(_rows_and_timers, {"window": struct(cls)}))
    return cls


def _rows_and_timers(window: TimedWindow, rows: Feed, schedule: Schedule, out: Emission) -> int:
    """Rows and timers merged by order key: what a window does with each. Returns 0 when all are done, else the room
    that it lacks: it continues from `rows.stop` when called again."""
    out.count = rows.stop[COUNT]
    out.chunks = rows.stop[CHUNKS]
    for i in range(rows.stop[ROW], rows.count + 1):
        if i > 0 and (i == rows.count or rows.chunk[i] != rows.chunk[i - 1]):
            window.on_chunk_end(rows.order_key[i - 1], out)
        limit: Any = rows.order_key[i] if i < rows.count else NEVER
        idle = rows.stop[INSTANCE] < 0
        if idle:
            idle = schedule.nothing_due(limit)
        while not idle:
            p = rows.stop[INSTANCE]
            if p < 0:
                p = schedule.next_due(limit)
            rows.stop[INSTANCE] = -1
            if p < 0:
                break
            more = window.most(p)
            if more > 0 and out.count + more > len(out.pos):
                rows.stop[ROW], rows.stop[COUNT], rows.stop[CHUNKS], rows.stop[INSTANCE] = i, out.count, out.chunks, p
                return int(out.count + more)
            out.chunks += 1
            due = Due(p, schedule.cursor[TIME], schedule.cursor[NOW], schedule.cursor[ORDER_KEY])
            window.on_timer(due, schedule, out)
        if i == rows.count:
            break
        pos = rows.first + i
        instance: Any = window.log.instance[pos] if len(window.log.instance) else 0
        more = window.most(instance)
        if more > 0 and out.count + more > len(out.pos):
            rows.stop[ROW], rows.stop[COUNT], rows.stop[CHUNKS] = i, out.count, out.chunks
            return int(out.count + more)
        begins_chunk = i == 0 or rows.chunk[i] != rows.chunk[i - 1]
        if begins_chunk:
            out.chunks += 1
        now = schedule.clock.now[(rows.order_key[i] >> _BITS) - schedule.clock.base]
        event = Event(pos, instance, now, rows.order_key[i], i, begins_chunk)
        window.on_event(event, schedule, out)
    rows.stop[COUNT] = out.count
    return 0
