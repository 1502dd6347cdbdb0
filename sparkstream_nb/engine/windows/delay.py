"""`delay(t)`: every event is emitted t ms late."""

from __future__ import annotations

from ..columnar.rows import BEFORE_ALL, CURRENT, ENTER, LEAVE
from ..columnar.timers import Schedule
from ..notation.kernels import inlined
from .declared_state import per_instance
from .declared_window import DeclaredWindow
from .time import TimeInLine
from .timed_window import Due, Event, timed_window
from .window_protocol import Emission, Window, WindowSetup


def delay_window(setup: WindowSetup) -> Window:
    """Events wait t ms and are emitted as CURRENT; a join finds the waiting ones."""
    return DelayByInstance(setup) if setup.is_partitioned else TimeInLine(setup, late=True)


@timed_window
class DelayByInstance(DeclaredWindow):
    """`delay(t)` in a partition (`DelayWindowProcessor`)."""

    moves = True
    newest = per_instance(fill=BEFORE_ALL)

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        self.span = int(setup.constant(0))
        self.findable = setup.findable

    @inlined
    def _emit_due(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The events that have waited long enough are emitted, stamped with the clock."""
        while self.log.head[0][p] >= 0 and self.log.ts[self.log.head[0][p]] - now + self.span <= 0:
            oldest = self.release(p)
            if self.findable:
                out.emit(oldest, LEAVE, now, order_key)
            out.emit(oldest, CURRENT, now, order_key)

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        self._emit_due(due.instance, due.now, due.order_key, out)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        self._emit_due(event.instance, event.now, event.order_key, out)
        self.hold(event.pos, event.instance)
        time = self.log.ts[event.pos]
        if self.newest[event.instance] < time:
            self.newest[event.instance] = time
            schedule.notify(event.instance, time + self.span)
        if self.findable:
            out.emit(event.pos, ENTER, time, event.order_key)
