"""`define trigger`: events caused by the clock, or by the start of the app.

Siddhi runs periodic and cron triggers on the wall clock even in playback. Here they follow the app's clock: a period
begins with the first clock step. If the clock jumps, every due time that it passed gives one event with that timestamp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...plan import nodes
from ...types import Type
from ..columnar.column_data import Array, Column
from ..columnar.rows import EVENT_PHASE, ORDER_KEY_BITS, Clock, Rows
from ..state.cron_times import CronTimes
from ..state.node_batch import EventError
from ..state.services import Services
from .operator_graph import OpNode
from .operators import StatelessOperator

_LONGEST = 1 << 62
"""A time span (ms) that an int64 holds."""
_DAY = 86_400_000


@dataclass(slots=True)
class TriggerOperator(StatelessOperator):
    """A trigger that recurs: every t ms, or at the times of a cron expression."""

    definition: nodes.TriggerDef
    scheduler: int
    node: OpNode
    services: Services
    times: CronTimes | None = None
    next: int | None = None
    has_started: bool = False

    @property
    def name(self) -> str:
        return self.definition.id

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        if clock.last <= clock.first:
            return None
        if not self.has_started:
            self.next, self.has_started = self._after(int(clock.now[clock.first])), True
        steps = np.flatnonzero(clock.may_fire[clock.first : clock.last]) + clock.first
        due = self._times(clock.now[steps]) if len(steps) else np.empty(0, np.int64)
        at = steps[np.searchsorted(clock.now[steps], due)]
        order_key = ((clock.base + at) << ORDER_KEY_BITS) | self.scheduler
        return Rows([Column(Type.LONG, due)], due, order_key, np.arange(len(due)))

    def next_due(self) -> int | None:
        return self.next

    def _after(self, time: int) -> int | None:
        if self.times is not None:
            return self.times.after(time)
        assert self.definition.every is not None
        return time + max(self.definition.every, 1)

    def _due(self, now: int) -> Array:
        """Times up to `now` that have not been yet."""
        if self.next is None or self.next > now:
            return np.empty(0, np.int64)
        if self.times is None:
            due = np.arange(self.next, now + 1, self._every)
            self.next = self._after(int(due[-1]))
            return due
        firings = []
        while self.next is not None and self.next <= now:
            firings.append(self.next)
            self.next = self._after(self.next)
        return np.array(firings, np.int64)

    @property
    def _every(self) -> int:
        """The time (ms) between two firings; of cron, the mean on a day on which it fires."""
        if self.times is not None:
            return _DAY // self.times.times_a_day
        return max(self.definition.every or 1, 1)

    def _times(self, now: Array) -> Array:
        """Times up to the last of the clock's `now` that have not been yet. Where it jumps over more than fire in one
        step, the earlier ones are left out."""
        if self.next is None:
            return np.empty(0, np.int64)
        most = min(self.services.context.limits.firings * self._every, _LONGEST)
        jumps = np.flatnonzero(np.diff(now, prepend=self.next) > most)
        if not len(jumps):
            return self._due(int(now[-1]))
        firings = []
        for i in jumps.tolist():
            to = int(now[i])
            if i:
                firings.append(self._due(int(now[i - 1])))
            if self.next is None or to - self.next <= most:
                continue
            first, self.next = self.next, self._after(to - most - self._every)
            if self.times is None and self.next is not None:
                self.next -= (self.next - first) % self._every
            message = f"it did not fire from {first} to before {self.next}, as the clock jumped to {to}"
            self.services.errors.append(EventError(self.name, self.name, to, [], message))
            firings.append(self._due(to))
        return np.concatenate([*firings, self._due(int(now[-1]))])

    def state(self) -> Any:
        return {"next": self.next, "started": self.has_started}

    def load(self, state: Any) -> None:
        self.next, self.has_started = state["next"], state["started"]


def start_rows(step: int, now: int) -> Rows:
    """The one event of a trigger `at 'start'`."""
    one = np.array([now], np.int64)
    order_key = np.array([(step << ORDER_KEY_BITS) | EVENT_PHASE], np.int64)
    return Rows([Column(Type.LONG, one)], one, order_key, np.array([step], np.int64))
