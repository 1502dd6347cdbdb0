"""`cron('text')`: batches that are emitted at the times that a cron text names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import grown
from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, Clock, Rows
from ..notation.kernels import kernel
from ..state.cron_times import CronTimes
from .chain import ChainedLog, pop, push
from .window_protocol import Emission, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)


BUCKETS, KEYS, TURN = range(3)
"""Numbers of Siddhi's map of the instances that have had an event: its buckets, its keys, and how many came in ever."""


@kernel
def _walk_buckets(turn: Array, hashes: Array, size: Array) -> Array:
    """The instances in the order of the map, which `computeIfAbsent` fills: the newest is the first in its bucket."""
    there = np.flatnonzero(turn)
    place = np.empty(len(there), np.int64)
    for i in range(len(there)):
        p = there[i]
        place[i] = ((hashes[p] & (size[BUCKETS] - 1)) << 32) | (2**32 - turn[p])
    return there[np.argsort(place)]


@kernel
def _cron(
    scheduler: int, hashes: Array, turn: Array, size: Array, at: int, rows: int, row_order_key: Array, base: int,
    now: Array, fires: Array, ts: Array, instance: Array, nxt: Array, alive: Array, chead: Array, ctail: Array,
    ehead: Array, etail: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`CronWindowProcessor.process` and `dispatchEvents`: no RESET, and expired events are always emitted.
    `turn[p]`: insertion rank of instance `p` in Siddhi's map; 0 if absent.
    """
    n = 0
    chunk = 0
    f = 0
    for i in range(rows + 1):
        while f < len(fires):
            order_key = ((base + fires[f]) << _BITS) | scheduler
            if i < rows and order_key > row_order_key[i]:
                break
            t = now[fires[f]]
            f += 1
            for p in _walk_buckets(turn, hashes, size):
                if chead[p] < 0:
                    continue
                begin = n
                while ehead[p] >= 0:
                    old = pop(p, nxt, ehead, etail)
                    alive[old] = False
                    pos_out[n], kind_out[n], ts_out[n] = old, EXPIRED, t
                    n += 1
                while chead[p] >= 0:
                    cur = pop(p, nxt, chead, ctail)
                    pos_out[n], kind_out[n], ts_out[n] = cur, CURRENT, ts[cur]
                    n += 1
                    push(cur, p, nxt, ehead, etail)
                for j in range(begin, n):
                    order_key_out[j] = order_key
                    chunk_out[j] = chunk
                chunk += 1
        if i == rows:
            break
        p = instance[at + i]
        if turn[p] == 0:
            if size[KEYS] > size[BUCKETS] * 3 // 4:  # before a key comes in
                size[BUCKETS] *= 2
            size[KEYS] += 1
            size[TURN] += 1
            turn[p] = size[TURN]
        push(at + i, p, nxt, chead, ctail)
        alive[at + i] = True
    return n


class CronWindow:
    """A window that emits, at each time that the cron text names by the app's clock, the events since the last such
    time.
    """

    stamps, moves, is_ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.times = CronTimes(str(setup.constant(0)), setup.context.timezone)
        self.scheduler = setup.scheduler
        self.log = ChainedLog(setup.types, chains=2)
        self.turn, self.size = np.zeros(0, np.int64), np.array([16, 0, 0], np.int64)
        self.due = self.times.after(0)

    def _fires(self, clock: Clock) -> Array:
        """The steps at which the clock reaches or passes a time of the text."""
        out = []
        at = clock.first
        while self.due is not None:
            at += int(np.searchsorted(clock.now[at : clock.last], self.due))
            if at >= clock.last:
                break
            out.append(at)
            self.due = self.times.after(int(clock.now[at]))
        return np.array(out, np.int64)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        out = Emission(2 * (at + n))
        self.turn = grown(self.turn, instances)
        made = _cron(
            self.scheduler, np.zeros(1, np.int64) if hashes is None else hashes, self.turn, self.size, at, n,
            rows.order_key, clock.base, clock.now, self._fires(clock), log.ts, log.instance, log.next, log.alive,
            log.head[0], log.tail[0], log.head[1], log.tail[1], *out.arrays,
        )  # fmt: skip
        result = out.rows(made, log, rows.instance is not None)
        log.tidy()
        return result

    def next_due(self) -> int | None:
        return self.due if (self.log.head[0] >= 0).any() else None

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        known = instances[instances < len(self.turn)]
        self.size[KEYS] -= np.count_nonzero(self.turn[known])
        self.turn[known] = 0

    def state(self) -> dict[str, Any]:
        there = np.flatnonzero(self.turn)
        return {
            "current": self.log.chain_state(0), "expired": self.log.chain_state(1), "due": self.due,
            "map": there[np.argsort(self.turn[there])], "buckets": int(self.size[BUCKETS]),
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        self.log.load_chains([state["current"], state["expired"]])
        self.due = state["due"]
        there = state["map"]
        self.turn = np.zeros(self.log.instances, np.int64)
        self.turn[there] = np.arange(1, len(there) + 1)
        self.size = np.array([state["buckets"], len(there), len(there)], np.int64)

    @property
    def bytes(self) -> int:
        return self.log.bytes
