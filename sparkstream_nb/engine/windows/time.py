"""`time(t)` and `delay(t)` outside partitions: events that come and go in one order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import step_before
from ..notation.kernels import inlined, kernel
from .ordered_expiry import slide_apart
from .time_by_instance import TimeByInstance
from .window_protocol import Emission, OutsidePartitions, Window, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)
_NEVER = np.int64(2**63 - 1)


@inlined
def _write(
    pos: Any, kind: int, time: Any, order_key: Any, chunk: int, n: Any, pos_out: Array, kind_out: Array, ts_out: Array,
    order_key_out: Array, chunk_out: Array,
) -> None:  # fmt: skip
    """Puts a row out as the n-th."""
    pos_out[n] = pos
    kind_out[n] = kind
    ts_out[n] = time
    order_key_out[n] = order_key
    chunk_out[n] = chunk


@inlined
def _leave(
    late: bool, findable: bool, head: Any, end: Any, time: Any, span: int, ts: Array, order_key: Any, chunk: int,
    n: Any,
    pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> Any:  # fmt: skip
    """The events from `head` to `end` that have been there for `span` leave, from the n-th row on; how many."""
    event: Any = head
    o: Any = n
    gone = CURRENT if late else EXPIRED
    while event < end and ts[event] - time + span <= 0:
        if late and findable:
            _write(event, LEAVE, time, order_key, chunk, o, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            o += np.uint64(1)
        _write(event, gone, time, order_key, chunk, o, pos_out, kind_out, ts_out, order_key_out, chunk_out)
        o += np.uint64(1)
        event += np.uint64(1)
    return event - head


def _time_in_line(
    late: bool, findable: bool, span: int, scheduler: int, at: int, rows: int, row_order_key: Array, row_chunk: Array,
    base: int, now: Array, moved: Array, first: int, last: int, ts: Array, places: Array, seen: Array, pos_out: Array,
    kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`TimeWindowProcessor.process` or, if events are emitted `late`, `DelayWindowProcessor.process` over rows and
    timers merged by order key, for one instance, whose events lie in a row: `places` are the first that is held and the
    first whose timer has not fired. An event has a timer if it is newer than all before it; `seen` is the newest of
    those whose timers have fired.
    """
    n: Any = np.uint64(0)
    one = np.uint64(1)
    chunk = 0
    tick = first
    head: Any = np.uint64(places[0])
    ahead: Any = np.uint64(places[1])
    newest = seen[0]
    due = _NEVER
    for i in range(rows + 1):
        k = np.uint64(i)
        pos = np.uint64(at) + k
        if due == _NEVER:  # the first timer to come
            while ahead < pos and ts[ahead] <= newest:
                ahead += one
            if ahead < pos:
                due = ts[ahead] + span
        step = last
        until = last - 1
        if i < rows:
            step = (row_order_key[k] >> _BITS) - base
            before = step_before(row_order_key[k], scheduler, base)
            until = min(until, before)
        if tick <= until:
            if due > now[until]:
                tick = until + 1
            while tick <= until:
                t = now[tick]
                if moved[tick] and due <= t:
                    while due <= t:
                        newest = ts[ahead]
                        due = _NEVER
                        while ahead < pos and ts[ahead] <= newest:
                            ahead += one
                        if ahead < pos:
                            due = ts[ahead] + span
                    chunk += 1
                    order_key = ((base + tick) << _BITS) | scheduler
                    left = _leave(
                        late, findable, head, pos, t, span, ts, order_key, chunk, n, pos_out, kind_out, ts_out,
                        order_key_out,
                        chunk_out,
                    )  # fmt: skip
                    head += left
                    n += left + left if late and findable else left
                tick += 1
        if i == rows:
            break
        order_key = row_order_key[k]
        if i == 0 or row_chunk[k] != row_chunk[k - one]:
            chunk += 1
        t = now[np.uint64(step)]
        left = _leave(
            late, findable, head, pos, t, span, ts, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
            chunk_out
        )
        head += left
        n += left + left if late and findable else left
        if not late or findable:
            came = ENTER if late else CURRENT
            _write(pos, came, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            n += one
    places[0] = head
    places[1] = ahead
    seen[0] = newest
    return n


_LOOPS = {
    (late, findable): kernel(_time_in_line, late=late, findable=findable)
    for late, findable in ((False, False), (True, False), (True, True))
}


class TimeInLine(OutsidePartitions):
    """`time(t)` outside partitions, or, if events are emitted `late`, `delay(t)`."""

    stamps, is_ordered = None, False

    def __init__(self, setup: WindowSetup, late: bool = False) -> None:
        self.span = int(setup.constant(0))
        self.scheduler, self.ops_only = setup.scheduler, setup.ops_only and not late
        self.moves, self.findable = late, setup.findable and late
        self.log = EventLog(setup.types, partitioned=False)
        self.places, self.seen = np.zeros(2, np.int64), np.full(1, -(2**63), np.int64)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n, log = len(rows), self.log
        self.places -= log.room(n, int(self.places.min()))
        at = log.append(rows)
        out = Emission((1 + self.findable) * (at - int(self.places[0]) + n) + n, self.ops_only)
        if self.ops_only:
            made = slide_apart(
                self.span, at, clock.at(rows.order_key), clock.until, log.ts, self.places, out.pos, out.kind
            )
            self.places[1] = self.places[0]
            result = out.beside(made, log, rows)
        else:
            made = _LOOPS[self.moves, self.findable](
                self.span, self.scheduler, at, n, rows.order_key, rows.chunk, clock.base, clock.now, clock.moved,
                clock.first, clock.last, log.ts, self.places, self.seen, *out.arrays,
            )  # fmt: skip
            result = out.rows(made, log, False)
        self.places -= log.fit(int(self.places.min()))
        return result

    def next_due(self) -> int | None:
        log, ahead = self.log, int(self.places[1])
        timed = np.flatnonzero(log.ts[ahead : log.end] > self.seen[0])
        return int(log.ts[ahead + timed[0]]) + self.span if len(timed) else None

    def state(self) -> dict[str, Any]:
        low = int(self.places.min())
        return {
            "events": self.log.state(np.arange(low, self.log.end)), "places": self.places - low, "seen": self.seen,
        }  # fmt: skip

    def save_state(self) -> dict[str, Any]:
        low = int(self.places.min())
        return {"events": self.log.save_state(low, self.log.end), "places": self.places - low, "seen": self.seen}

    def load(self, state: dict[str, Any]) -> None:
        self.log.load(state["events"])
        self.places, self.seen = state["places"].copy(), state["seen"].copy()

    @property
    def bytes(self) -> int:
        return self.log.bytes_from(int(self.places.min()))


def time_window(setup: WindowSetup) -> Window:
    """The events of the last t ms; each leaves at exactly its time + t, before arrivals at that instant."""
    return TimeByInstance(setup) if setup.partitioned else TimeInLine(setup)
