"""`unique:deduplicate(key, t)`: drops events whose key came within the t ms before."""

from __future__ import annotations

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, Clock, Rows
from ..columnar.timers import Schedule
from ..notation.kernels import inlined
from .declared_state import scheduled_times
from .timed_window import Due, Event, TimedWindow, timed_window
from .unique_keys import KeyedWindow, UniqueKey
from .window_protocol import Emission, WindowSetup


@timed_window
class Deduplicate(TimedWindow, KeyedWindow):
    """`DeduplicateStreamProcessor`: the events that passed, of each instance in a queue. Those at its head are
    forgotten that are more than t ms older than an event that comes, or than a timer, which each of them sets. Events
    of all kinds count, such as those that leave a window.
    """

    chains = ("events",)
    keeps_ids = False
    timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.span, self.scheduler = int(setup.constant(1)), setup.scheduler
        self.key = UniqueKey(setup.args[0], setup, apart=True, by_value=False, nullable=False)
        self._begin(setup, 1)

    @inlined
    def _forget_until(self, p: int, time: int) -> None:
        while self.log.head[0][p] >= 0 and time - self.log.ts[self.log.head[0][p]] > self.span:
            previous = self.log.pop(0, p)
            self.by_key[0, self.ids_by_position[previous]] = -1
            self.log.alive[previous] = False

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        self._forget_until(due.instance, due.time)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        p = event.instance
        time = self.log.ts[event.pos]
        self._forget_until(p, time)
        k = self.ids_by_position[event.pos]
        if self.by_key[0, k] < 0:
            self.by_key[0, k] = event.pos
            self.log.push(0, event.pos, p)
            self.log.alive[event.pos] = True
            schedule.notify(p, time + self.span)
            out.put(event.row, CURRENT, time, event.order_key)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        """The rows that pass."""
        rows, ids = self.key.take(rows, clock)
        n = len(rows)
        at = self._add(Rows([], rows.ts, rows.order_key, rows.chunk, None, rows.instance), ids, instances)
        self.timers.room(n, instances)
        self.ids_by_position = self.ids
        out = Emission(n, True)
        count = self.step(rows, at, clock, hashes, out)
        self._compact()
        stays = np.zeros(n, np.bool_)
        stays[out.pos[:count]] = True
        return rows.where(stays)

    @property
    def held(self) -> int:
        """Number of events that others are compared with."""
        return self.log.held

    def next_due(self) -> int | None:
        """None: timers let nothing out."""
        return None
