"""The loop over the events and timers of a reordering step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..columnar.arrays import Array
from ..columnar.rows import ORDER_KEY_BITS, Clock
from ..notation.intrinsics import AHEAD, FAR, prefetch
from ..notation.kernels import compiled, inlined, kernel, struct
from .reorder_buffer import (
    CHILD,
    COUNT,
    FRESH,
    GREATEST,
    HEAD,
    HELD,
    LATE,
    MERGED,
    NEXT,
    SCHEDULED,
    SENT,
    SLACK,
    TAIL,
    TIME,
    Leaving,
    WaitingEvents,
    meld,
)

ROW, STEP, OUT, DROPPED, CHUNK, AGAIN = range(6)
"""Places in a cursor: the row and the step that come next, how many events have left, how many came too late, the
number of the last chunk, and whether the row has been looked at and only waits for alpha."""

OWNER, DUE, IDLE = range(3)
"""The timer, of which there is one: the instance that set it (-1: none), the time (ms) at which it goes off, and
whether it waits to be set by the next event of any instance."""

NO_TIMEOUT = -1

_BITS = np.int64(ORDER_KEY_BITS)
_SECOND = 1000
_LEAST, _MOST = -(2**63), 2**63 - 1
_LAST = np.int64(_MOST)


@kernel
def java_round(value: float) -> int:
    """Java's `Math.round`."""
    rounded_value: Any = np.floor(value + 0.5)
    if rounded_value >= 2.0**63:
        return _MOST
    if rounded_value <= -(2.0**63):
        return _LEAST
    return int(rounded_value) if rounded_value == rounded_value else 0


@struct
@dataclass
class Coming:
    """The rows of a run, from position `first` of the log on: their times, instances (none: there is one), order keys
    and chunks."""

    first: int
    time: Array
    instance: Array
    order_key: Array
    chunk: Array


@struct
class Reordering:
    """A step as the loop knows it: its arguments (`ReorderStep`), the events that wait, the timer, and the `cursor`."""

    waiting: WaitingEvents

    def __init__(
        self, adaptive: bool, batch: int, drop_late: bool, timeout: int, most: int, scheduler: int
    ) -> None:
        self.adaptive, self.batch, self.drop_late = adaptive, batch, drop_late
        self.timeout, self.most, self.scheduler = timeout, most, scheduler
        self.alpha = 1.0
        self.waiting = WaitingEvents()
        self.timer, self.cursor = np.zeros(3, np.int64), np.zeros(6, np.int64)

    @inlined
    def _wake(self, p: int, now: int) -> None:
        """The timer goes off at the next whole second from when the instance last had one."""
        last = self.waiting.fields[p, SCHEDULED]
        self.waiting.fields[p, SCHEDULED] = last + np.int64(np.ceil((now - last) / 1000.0)) * _SECOND
        self.timer[OWNER], self.timer[DUE], self.timer[IDLE] = p, self.waiting.fields[p, SCHEDULED], 0

    @inlined
    def _go_off(self, out: Leaving) -> None:
        """The timer emits events that have waited too long, and is set again while any wait."""
        p = self.timer[OWNER]
        rest = False
        if p >= 0:
            bound = self.timeout + self.timer[DUE] - 1
            self.waiting.let_go(p, bound, out)
            rest = 0 <= self.waiting.fields[p, HEAD] <= self.waiting.fields[p, MERGED]
            if self.adaptive:
                self.waiting.let_go_fresh(p, bound, out)
                rest = self.waiting.fields[p, HEAD] >= 0 or self.waiting.fields[p, FRESH] >= 0
        if rest:
            self.waiting.fields[p, SCHEDULED] += _SECOND
            self.timer[DUE] = self.waiting.fields[p, SCHEDULED]
        else:
            self.timer[IDLE] = 1

    @inlined
    def _merge(self, p: int, pos: int, time: int) -> None:
        """Process an event with a new greatest time: the slack grows to the disorder since the last such event, and
        events since then are merged.
        """
        fresh = self.waiting.fields[p, FRESH]
        oldest = time
        if self.waiting.fields[p, TAIL] > self.waiting.fields[p, MERGED]:
            oldest = self.waiting.fields[p, GREATEST]
        if fresh >= 0:
            oldest = self.waiting.node[fresh, TIME]
            late = self.waiting.fields[p, LATE]
            late = meld(late, fresh, self.waiting.node)
            self.waiting.fields[p, LATE] = late
            self.waiting.fields[p, FRESH] = -1
        disorder = time - oldest
        if disorder > self.waiting.fields[p, SLACK]:
            if disorder >= self.most:
                self.waiting.fields[p, SLACK] = self.most
            elif self.alpha == 1.0:
                self.waiting.fields[p, SLACK] = disorder
            else:
                self.waiting.fields[p, SLACK] = java_round(disorder * self.alpha)
        self.waiting.fields[p, GREATEST] = time
        self.waiting.enqueue(pos, p)
        self.waiting.fields[p, MERGED] = pos

    @inlined
    def _fire(self, step: int, limit: int, clock: Clock, out: Leaving) -> int:
        """The timer goes off as often as it is due before the order key `limit`; returns the step that comes next."""
        while self.timeout != NO_TIMEOUT and step < clock.last:
            tick: Any = ((clock.base + step) << _BITS) | self.scheduler
            if tick > limit:
                break
            if clock.may_fire[step]:
                out.at = tick
                while self.timer[IDLE] == 0 and self.timer[DUE] <= clock.now[step]:
                    out.number += 1
                    self._go_off(out)
            step += 1
        return step

    @inlined
    def _pass(self, p: int, pos: int, time: int, out: Leaving) -> None:
        """An event comes, and those leave that have waited for it."""
        self.waiting.node[pos, TIME], self.waiting.node[pos, NEXT] = time, -1
        self.waiting.node[pos, CHILD], self.waiting.node[pos, HELD] = -1, 1
        if time < self.waiting.fields[p, GREATEST]:
            fresh = meld(self.waiting.fields[p, FRESH], pos, self.waiting.node)
            self.waiting.fields[p, FRESH] = fresh
        elif time == self.waiting.fields[p, GREATEST]:
            self.waiting.enqueue(pos, p)
        else:
            self._merge(p, pos, time)
            first = out.count
            self.waiting.let_go(p, time - self.waiting.fields[p, SLACK], out)
            if out.count > first:
                self.waiting.fields[p, SENT] = self.waiting.node[out.pos[out.count - 1], TIME]

    @compiled
    def reorder(self, rows: Coming, clock: Clock, out: Leaving) -> bool:
        """Merge rows and timers by order key: the events that leave.

        Stops, with true, at the row `cursor[ROW]` when `adaptive` and its instance has had more than `batch` events,
        for alpha to be adapted; the next call continues there.
        """
        out.count = self.cursor[OUT]
        out.number = self.cursor[CHUNK]
        step = self.cursor[STEP]
        seen = self.cursor[AGAIN] > 0
        n = len(rows.time)
        far = len(self.waiting.words) > FAR and len(rows.instance) > 0
        for i in range(self.cursor[ROW], n + 1):
            if not seen and (i == 0 or i == n or rows.chunk[i] != rows.chunk[i - 1]):
                limit: Any = rows.order_key[i] if i < n else _LAST
                step = self._fire(step, limit, clock, out)
                out.number += 1
            if i == n:
                break
            p = rows.instance[i] if len(rows.instance) else 0
            if far and i + AHEAD < n:
                soon = rows.instance[i + AHEAD] * self.waiting.fields.shape[1]
                prefetch(self.waiting.words, soon)
                prefetch(self.waiting.words, soon + COUNT)
            pos = rows.first + i
            t = rows.time[i]
            if not seen:
                if self.drop_late and t < self.waiting.fields[p, SENT]:
                    self.waiting.node[pos, HELD] = 0
                    self.cursor[DROPPED] += 1
                    continue
                if self.adaptive:
                    self.waiting.fields[p, COUNT] += 1
                    if self.waiting.fields[p, COUNT] > self.batch:
                        self.waiting.fields[p, COUNT] = 0
                        self.cursor[ROW], self.cursor[STEP], self.cursor[AGAIN] = i, step, 1
                        self.cursor[OUT], self.cursor[CHUNK] = out.count, out.number
                        return True
            seen = False
            if self.timer[IDLE]:
                self._wake(p, clock.now[(rows.order_key[i] >> _BITS) - clock.base])
            out.at = rows.order_key[i]
            self._pass(p, pos, t, out)
        self.cursor[OUT] = out.count
        return False
