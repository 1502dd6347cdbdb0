"""`time(t)` and `delay(t)` outside partitions: events that come and go in one order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import step_before
from ..notation.kernels import compiled_by, inlined, struct
from .declared_state import WindowInLine, numbers
from .ordered_expiry import slide_apart
from .time_by_instance import TimeByInstance
from .window_protocol import Emission, Feed, Window, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)
_NEVER = np.int64(2**63 - 1)


@struct
class TimeInLine(WindowInLine):
    """`time(t)` outside partitions, or, if events are emitted `late`, `delay(t)`."""

    stamps, is_ordered = None, False
    seen = numbers(-(2**63))

    def __init__(self, setup: WindowSetup, late: bool = False) -> None:
        self.span = int(setup.constant(0))
        self.scheduler, self.ops_only = setup.scheduler, setup.ops_only and not late
        self.moves, self.findable = late, setup.findable and late
        self._declare(setup.types)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n, log = len(rows), self.log
        self.places -= log.room(n, int(self.places.min()))
        at = log.append(rows)
        out = Emission((1 + self.findable) * (at - int(self.places[0]) + n) + n, self.ops_only)
        if self.ops_only:
            count = slide_apart(
                self.span, at, clock.at(rows.order_key), clock.until, log.ts, self.places, out
            )
            self.places[1] = self.places[0]
            result = out.beside(count, log, rows)
        else:
            count = self._slide(Feed(rows, at), clock, out)
            result = out.rows(count, log, False)
        self.places -= log.fit(int(self.places.min()))
        return result

    @compiled_by("moves", "findable")
    def _slide(self, rows: Feed, clock: Clock, out: Emission) -> int:
        """`TimeWindowProcessor.process` or, if events are emitted late, `DelayWindowProcessor.process` over rows and
        timers merged by order key, for one instance, whose events lie in a row: `places` are the first that is held and
        the first whose timer has not fired. An event has a timer if it is newer than all before it; `seen` is the
        newest of those whose timers have fired. Returns how many rows are put out.
        """
        n: Any = np.uint64(0)
        one = np.uint64(1)
        tick = clock.first
        head: Any = np.uint64(self.places[0])
        timer_head: Any = np.uint64(self.places[1])
        newest = self.seen[0]
        due = _NEVER
        for i in range(rows.count + 1):
            k = np.uint64(i)
            pos = np.uint64(rows.first) + k
            if due == _NEVER:  # the first timer to come
                while timer_head < pos and self.log.ts[timer_head] <= newest:
                    timer_head += one
                if timer_head < pos:
                    due = self.log.ts[timer_head] + self.span
            step = clock.last
            until = clock.last - 1
            if i < rows.count:
                step = (rows.order_key[k] >> _BITS) - clock.base
                before = step_before(rows.order_key[k], self.scheduler, clock.base)
                until = min(until, before)
            if tick <= until:
                if due > clock.now[until]:
                    tick = until + 1
                while tick <= until:
                    t = clock.now[tick]
                    if clock.may_fire[tick] and due <= t:
                        while due <= t:
                            newest = self.log.ts[timer_head]
                            due = _NEVER
                            while timer_head < pos and self.log.ts[timer_head] <= newest:
                                timer_head += one
                            if timer_head < pos:
                                due = self.log.ts[timer_head] + self.span
                        out.chunks += 1
                        order_key = ((clock.base + tick) << _BITS) | self.scheduler
                        left = self._leave(head, pos, t, order_key, n, out)
                        head += left
                        n += left + left if self.moves and self.findable else left
                    tick += 1
            if i == rows.count:
                break
            order_key = rows.order_key[k]
            if i == 0 or rows.chunk[k] != rows.chunk[k - one]:
                out.chunks += 1
            t = clock.now[np.uint64(step)]
            left = self._leave(head, pos, t, order_key, n, out)
            head += left
            n += left + left if self.moves and self.findable else left
            if not self.moves or self.findable:
                came = ENTER if self.moves else CURRENT
                out.write(n, pos, came, self.log.ts[pos], order_key)
                n += one
        self.places[0] = head
        self.places[1] = timer_head
        self.seen[0] = newest
        return n

    @inlined
    def _leave(self, head: Any, end: Any, time: Any, order_key: Any, n: Any, out: Emission) -> Any:
        """The events from `head` to `end` that have been there for `span` leave, from the n-th row on; how many."""
        event: Any = head
        o: Any = n
        leaving_kind = CURRENT if self.moves else EXPIRED
        while event < end and self.log.ts[event] - time + self.span <= 0:
            if self.moves and self.findable:
                out.write(o, event, LEAVE, time, order_key)
                o += np.uint64(1)
            out.write(o, event, leaving_kind, time, order_key)
            o += np.uint64(1)
            event += np.uint64(1)
        return event - head

    def next_due(self) -> int | None:
        log, timer_head = self.log, int(self.places[1])
        with_timer = np.flatnonzero(log.ts[timer_head : log.end] > self.seen[0])
        return int(log.ts[timer_head + with_timer[0]]) + self.span if len(with_timer) else None


def time_window(setup: WindowSetup) -> Window:
    """The events of the last t ms; each leaves at exactly its time + t, before arrivals at that instant."""
    return TimeByInstance(setup) if setup.is_partitioned else TimeInLine(setup)
