"""`timeLength(t, n)`: the events of the last t ms, n of them at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.jit import inlined, kernel
from ..columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import NEVER, NOW, ORDER_KEY, Timers, next_due, nothing_due, notify, timer_cursor
from .chain import ChainedLog, pop, push
from .ordered_expiry import slide_in_line
from .window_protocol import Emission, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)


@inlined
def _leave(
    p: int, now: int, order_key: int, nxt: Array, alive: Array, head: Array, tail: Array, count: Array, n: int,
    chunk: int,
    pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """The oldest event leaves."""
    old = pop(p, nxt, head, tail)
    alive[old] = False
    count[p] -= 1
    pos_out[n] = old
    kind_out[n] = EXPIRED
    if len(ts_out) > 0:
        ts_out[n] = now
        order_key_out[n] = order_key
        chunk_out[n] = chunk
    return n + 1


@kernel
def _time_length(
    span: int, length: int, scheduler: int, at: int, rows: int, row_order_key: Array, row_chunk: Array, base: int, now:
    Array, moved: Array, last: int, cursor: Array, ts: Array, instance: Array, nxt: Array, alive: Array, head: Array,
    tail: Array, count: Array, hashes: Array, qtime: Array, qnext: Array, qhead: Array, qtail: Array, heap: Array,
    qfirst: Array, due: Array, meta: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array,
    chunk_out: Array,
) -> int:  # fmt: skip
    """`TimeLengthWindowProcessor.process` over rows and timers merged by order key."""
    n = 0
    chunk = 0
    for i in range(rows + 1):
        limit: Any = row_order_key[i] if i < rows else NEVER
        idle = nothing_due(cursor, limit, scheduler, base, now, last, heap, qfirst, meta)
        while not idle:
            p = next_due(
                cursor, limit, scheduler, base, now, moved, last, hashes, qtime, qnext, qhead, qtail, heap, qfirst, due,
                meta
            )
            if p < 0:
                break
            chunk += 1
            t = cursor[NOW]
            while head[p] >= 0 and ts[head[p]] - t + span <= 0:
                n = _leave(
                    p, t, cursor[ORDER_KEY], nxt, alive, head, tail, count, n, chunk,
                    pos_out, kind_out, ts_out, order_key_out, chunk_out,
                )  # fmt: skip
        if i == rows:
            break
        if i == 0 or row_chunk[i] != row_chunk[i - 1]:
            chunk += 1
        pos = at + i
        p = instance[pos] if len(instance) else 0
        t = now[(row_order_key[i] >> _BITS) - base]
        late = True
        while head[p] >= 0 and (late or count[p] >= length):
            late = late and ts[head[p]] - t + span <= 0
            if not late and count[p] < length:
                break
            n = _leave(
                p, t, row_order_key[i], nxt, alive, head, tail, count, n, chunk,
                pos_out, kind_out, ts_out, order_key_out, chunk_out,
            )  # fmt: skip
        if length > 0:
            push(pos, p, nxt, head, tail)
            alive[pos] = True
            count[p] += 1
        notify(cursor, p, ts[pos] + span, qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
        pos_out[n] = pos
        kind_out[n] = CURRENT
        if len(ts_out) > 0:
            ts_out[n] = ts[pos]
            order_key_out[n] = row_order_key[i]
            chunk_out[n] = chunk
        n += 1
    return n


class TimeLengthWindow:
    """Each event leaves at its time + t, or when the n-th after it comes."""

    stamps, moves, is_ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.span, self.length = int(setup.constant(0)), int(setup.constant(1))
        self.scheduler, self.ops_only = setup.scheduler, setup.ops_only
        self.log = ChainedLog(setup.types, in_line=not setup.partitioned)
        self.count = np.zeros(0, np.int64)
        self.timers = Timers()

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        out = Emission(at + 2 * n, self.ops_only)
        if self.ops_only and log.in_line and self.length:  # without timers
            made = slide_in_line(
                log, self.span, self.length, at, clock.at(rows.order_key), clock.until, log.ts, out.pos, out.kind
            )
        else:
            self.count = grown(self.count, instances)
            self.timers.room(n, instances)
            made = _time_length(
                self.span, self.length, self.scheduler, at, n, rows.order_key, rows.chunk, clock.base, clock.now,
                clock.moved, clock.last, timer_cursor(clock.first), log.ts, log.instance, log.next, log.alive,
                log.head[0], log.tail[0], self.count, self.timers.hashes(hashes), *self.timers.arrays, *out.arrays,
            )  # fmt: skip
        result = out.beside(made, log, rows) if self.ops_only else out.rows(made, log, rows.instance is not None)
        log.tidy()
        return result

    def next_due(self) -> int | None:
        return self.timers.next_due()

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.count, instances, 0)
        self.timers.forget(instances)

    def state(self) -> dict[str, Any]:
        return {"events": self.log.chain_state(), "timers": self.timers.state()}

    def load(self, state: dict[str, Any]) -> None:
        self.log.load_chains([state["events"]])
        self.count = np.asarray(state["events"]["lengths"], np.int64).copy()
        self.timers.load(state["timers"])

    @property
    def bytes(self) -> int:
        return self.log.bytes
