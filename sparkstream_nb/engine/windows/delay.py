"""`delay(t)`: every event is emitted t ms late."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.jit import inlined, kernel
from ..columnar.rows import CURRENT, ENTER, LEAVE, ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import NEVER, NOW, ORDER_KEY, Timers, next_due, nothing_due, notify, timer_cursor
from .chain import ChainedLog, pop, push
from .time import TimeInLine
from .window_protocol import Emission, Window, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)
UNSEEN = -(2**63)
"""The newest time of an instance that has had no event."""


@inlined
def _release(
    p: int, now: int, span: int, order_key: int, findable: bool, ts: Array, nxt: Array, alive: Array, head: Array, tail:
    Array,
    n: int, chunk: int, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """Emit the events that have waited long enough, stamped with the clock."""
    while head[p] >= 0 and ts[head[p]] - now + span <= 0:
        old = pop(p, nxt, head, tail)
        alive[old] = False
        for kind in (LEAVE, CURRENT):
            if kind == CURRENT or findable:
                pos_out[n] = old
                kind_out[n] = kind
                ts_out[n] = now
                order_key_out[n] = order_key
                chunk_out[n] = chunk
                n += 1
    return n


@kernel
def _delay(
    span: int, findable: bool, scheduler: int, at: int, rows: int, row_order_key: Array, row_chunk: Array, base: int,
    now: Array, moved: Array, last: int, cursor: Array, ts: Array, instance: Array, nxt: Array, alive: Array, head:
    Array, tail: Array, newest: Array, hashes: Array, qtime: Array, qnext: Array, qhead: Array, qtail: Array, heap:
    Array, qfirst: Array, due: Array, meta: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array,
    chunk_out: Array,
) -> int:  # fmt: skip
    """`DelayWindowProcessor.process` over rows and timers merged by order key."""
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
            n = _release(
                p, cursor[NOW], span, cursor[ORDER_KEY], findable, ts, nxt, alive, head, tail, n, chunk,
                pos_out, kind_out, ts_out, order_key_out, chunk_out,
            )  # fmt: skip
        if i == rows:
            break
        if i == 0 or row_chunk[i] != row_chunk[i - 1]:
            chunk += 1
        pos = at + i
        p = instance[pos]
        t = now[(row_order_key[i] >> _BITS) - base]
        n = _release(
            p, t, span, row_order_key[i], findable, ts, nxt, alive, head, tail, n, chunk,
            pos_out, kind_out, ts_out, order_key_out, chunk_out,
        )  # fmt: skip
        push(pos, p, nxt, head, tail)
        alive[pos] = True
        if newest[p] < ts[pos]:
            newest[p] = ts[pos]
            notify(cursor, p, ts[pos] + span, qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
        if findable:
            pos_out[n] = pos
            kind_out[n] = ENTER
            ts_out[n] = ts[pos]
            order_key_out[n] = row_order_key[i]
            chunk_out[n] = chunk
            n += 1
    return n


def delay_window(setup: WindowSetup) -> Window:
    """Events wait t ms and are emitted as CURRENT; a join finds the waiting ones."""
    return DelayByInstance(setup) if setup.partitioned else TimeInLine(setup, late=True)


class DelayByInstance:
    """`delay(t)` in a partition."""

    stamps, moves, is_ordered = None, True, False

    def __init__(self, setup: WindowSetup) -> None:
        self.span = int(setup.constant(0))
        self.findable = setup.findable
        self.scheduler = setup.scheduler
        self.log = ChainedLog(setup.types)
        self.newest = np.zeros(0, np.int64)
        self.timers = Timers()

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self.newest = grown(self.newest, instances, UNSEEN)
        self.timers.room(n, instances)
        out = Emission(2 * (at + n) + n)
        made = _delay(
            self.span, self.findable, self.scheduler, at, n, rows.order_key, rows.chunk, clock.base, clock.now,
            clock.moved,
            clock.last, timer_cursor(clock.first), log.ts, log.instance, log.next, log.alive, log.head[0], log.tail[0],
            self.newest, self.timers.hashes(hashes), *self.timers.arrays, *out.arrays,
        )  # fmt: skip
        result = out.rows(made, log, rows.instance is not None)
        log.tidy()
        return result

    def next_due(self) -> int | None:
        return self.timers.next_due()

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.newest, instances, UNSEEN)
        self.timers.forget(instances)

    def state(self) -> dict[str, Any]:
        return {"events": self.log.chain_state(), "newest": self.newest[: self.log.instances], "timers":
        self.timers.state()}

    def load(self, state: dict[str, Any]) -> None:
        self.log.load_chains([state["events"]])
        self.newest = state["newest"].copy()
        self.timers.load(state["timers"])

    @property
    def bytes(self) -> int:
        return self.log.bytes
