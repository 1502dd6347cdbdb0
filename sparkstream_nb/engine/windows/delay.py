"""`delay(t)`: every event is emitted t ms late."""

from __future__ import annotations

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, ENTER, LEAVE, Clock, Rows
from ..columnar.timers import Schedule
from ..notation.kernels import inlined
from .declared_state import ChainedWindow, per_instance, scheduled_times
from .time import TimeInLine
from .timed_window import Due, Event, TimedWindow, timed_window
from .window_protocol import Emission, Window, WindowSetup

UNSEEN = -(2**63)
"""The newest time of an instance that has had no event."""


def delay_window(setup: WindowSetup) -> Window:
    """Events wait t ms and are emitted as CURRENT; a join finds the waiting ones."""
    return DelayByInstance(setup) if setup.partitioned else TimeInLine(setup, late=True)


@timed_window
class DelayByInstance(TimedWindow, ChainedWindow):
    """`delay(t)` in a partition (`DelayWindowProcessor`)."""

    stamps, moves, is_ordered = None, True, False
    newest = per_instance(fill=UNSEEN)
    timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.span = int(setup.constant(0))
        self.findable = setup.findable
        self.scheduler = setup.scheduler
        self._declare(setup.types)

    @inlined
    def _release(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The events that have waited long enough are emitted, stamped with the clock."""
        while self.log.head[0][p] >= 0 and self.log.ts[self.log.head[0][p]] - now + self.span <= 0:
            old = self.log.pop(0, p)
            self.log.alive[old] = False
            if self.findable:
                out.emit(old, LEAVE, now, order_key)
            out.emit(old, CURRENT, now, order_key)

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        self._release(due.instance, due.now, due.order_key, out)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        self._release(event.instance, event.now, event.order_key, out)
        self.log.push(0, event.pos, event.instance)
        self.log.alive[event.pos] = True
        time = self.log.ts[event.pos]
        if self.newest[event.instance] < time:
            self.newest[event.instance] = time
            schedule.notify(event.instance, time + self.span)
        if self.findable:
            out.emit(event.pos, ENTER, time, event.order_key)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n, log = len(rows), self.log
        at = log.add(rows, instances)
        self._widen(instances)
        self.timers.room(n, instances)
        out = Emission((1 + self.findable) * (at + n) + n)
        result = out.rows(self.step(rows, at, clock, hashes, out), log, rows.instance is not None)
        log.tidy()
        return result

    def next_due(self) -> int | None:
        return self.timers.next_due()
