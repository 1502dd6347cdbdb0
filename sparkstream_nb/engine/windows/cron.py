"""`cron('text')`: batches that are emitted at the times that a cron text names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, ORDER_KEY_BITS, Clock, Rows
from ..notation.kernels import compiled, inlined, kernel, struct
from ..state.cron_times import CronTimes
from ..state.saving import Form
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN
from .declared_state import ChainedWindow, per_instance, plain_value
from .window_protocol import Emission, Feed, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)


BUCKETS, KEYS, TURN = range(3)
"""Numbers of Siddhi's map of the instances that have had an event: its buckets, its keys, and how many came in ever."""


@kernel
def _walk_buckets(turn: Array, hashes: Array, size: Array) -> Array:
    """The instances in the order of Siddhi's map, which `computeIfAbsent` fills: the newest is the first in its bucket.
    `turn[p]`: the number that instance `p` came in as; 0 if it is not in the map."""
    there = np.flatnonzero(turn)
    place = np.empty(len(there), np.int64)
    for i in range(len(there)):
        p = there[i]
        place[i] = ((hashes[p] & (size[BUCKETS] - 1)) << 32) | (2**32 - turn[p])
    return there[np.argsort(place)]


@struct
class CronWindow(ChainedWindow):
    """A window that emits, at each time that the cron text names by the app's clock, the events since the last such
    time.
    """

    stamps, moves, is_ordered = None, False, False
    chains = ("current", "expired")
    due = plain_value()
    turn = per_instance(is_saved=False)

    def __init__(self, setup: WindowSetup) -> None:
        self.times = CronTimes(str(setup.constant(0)), setup.context.timezone)
        self.scheduler = setup.scheduler
        self._declare(setup.types)
        self.size = np.array([16, 0, 0], np.int64)
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
        self._widen(instances)
        hashes = np.zeros(1, np.int64) if hashes is None else hashes
        count = self._step(Feed(rows, at), clock, self._fires(clock), hashes, out)
        result = out.rows(count, log, rows.instance is not None)
        log.tidy()
        return result

    @compiled
    def _step(self, rows: Feed, clock: Clock, fires: Array, hashes: Array, out: Emission) -> int:
        """`CronWindowProcessor.process` and `dispatchEvents`: no RESET, and expired events are always emitted. `fires`:
        the steps at which batches leave. Returns how many rows are put out."""
        f = 0
        for i in range(rows.count + 1):
            while f < len(fires):
                order_key = ((clock.base + fires[f]) << _BITS) | self.scheduler
                if i < rows.count and order_key > rows.order_key[i]:
                    break
                t = clock.now[fires[f]]
                f += 1
                for p in _walk_buckets(self.turn, hashes, self.size):
                    self._send(p, t, order_key, out)
            if i == rows.count:
                break
            p = self.log.instance[rows.first + i]
            if self.turn[p] == 0:
                if self.size[KEYS] > self.size[BUCKETS] * 3 // 4:  # before a key comes in
                    self.size[BUCKETS] *= 2
                self.size[KEYS] += 1
                self.size[TURN] += 1
                self.turn[p] = self.size[TURN]
            self.log.push(CURRENT_CHAIN, rows.first + i, p)
            self.log.alive[rows.first + i] = True
        return out.count

    @inlined
    def _send(self, p: int, t: int, order_key: int, out: Emission) -> None:
        """The batch of an instance leaves."""
        if self.log.head[CURRENT_CHAIN][p] >= 0:
            out.expire(self.log, EXPIRED_CHAIN, p, t, order_key)
            while self.log.head[CURRENT_CHAIN][p] >= 0:
                new = self.log.pop(CURRENT_CHAIN, p)
                out.emit(new, CURRENT, self.log.ts[new], order_key)
                self.log.push(EXPIRED_CHAIN, new, p)
            out.chunks += 1

    def next_due(self) -> int | None:
        return self.due if (self.log.head[0] >= 0).any() else None

    def forget(self, instances: Array) -> None:
        super().forget(instances)
        self.size[KEYS] = np.count_nonzero(self.turn)

    def _state(self, form: Form) -> dict[str, Any]:
        there = np.flatnonzero(self.turn)
        order, buckets = there[np.argsort(self.turn[there])], int(self.size[BUCKETS])
        return {**super()._state(form), "map": order, "buckets": buckets}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        order = state["map"]
        self.turn = np.zeros(self.log.instances, np.int64)
        self.turn[order] = np.arange(1, len(order) + 1)
        self.size = np.array([state["buckets"], len(order), len(order)], np.int64)
