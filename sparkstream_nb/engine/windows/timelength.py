"""`timeLength(t, n)`: the events of the last t ms, n of them at most."""

from __future__ import annotations

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, Clock, Rows
from ..columnar.timers import Schedule
from ..notation.kernels import inlined
from .declared_state import ChainedWindow, lengths, scheduled_times
from .ordered_expiry import slide_in_line
from .timed_window import Due, Event, TimedWindow, timed_window
from .window_protocol import Emission, WindowSetup


@timed_window
class TimeLengthWindow(TimedWindow, ChainedWindow):
    """Each event leaves at its time + t, or when the n-th after it comes (`TimeLengthWindowProcessor`)."""

    stamps, moves, is_ordered = None, False, False
    count = lengths()
    timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.span, self.length = int(setup.constant(0)), int(setup.constant(1))
        self.scheduler, self.ops_only = setup.scheduler, setup.ops_only
        self._declare(setup.types, in_line=not setup.is_partitioned)

    @inlined
    def _leave(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The oldest event leaves."""
        oldest = self.log.pop(0, p)
        self.log.alive[oldest] = False
        self.count[p] -= 1
        out.put(oldest, EXPIRED, now, order_key)

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        p = due.instance
        while self.log.head[0][p] >= 0 and self.log.ts[self.log.head[0][p]] - due.now + self.span <= 0:
            self._leave(p, due.now, due.order_key, out)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        p = event.instance
        late = True
        while self.log.head[0][p] >= 0 and (late or self.count[p] >= self.length):
            late = late and self.log.ts[self.log.head[0][p]] - event.now + self.span <= 0
            if not late and self.count[p] < self.length:
                break
            self._leave(p, event.now, event.order_key, out)
        if self.length > 0:
            self.log.push(0, event.pos, p)
            self.log.alive[event.pos] = True
            self.count[p] += 1
        schedule.notify(p, self.log.ts[event.pos] + self.span)
        out.put(event.pos, CURRENT, self.log.ts[event.pos], event.order_key)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        out = Emission(at + 2 * n, self.ops_only)
        if self.ops_only and log.in_line and self.length:  # without timers
            count = slide_in_line(
                log, self.span, self.length, at, clock.at(rows.order_key), clock.until, log.ts, out
            )
        else:
            self._widen(instances)
            self.timers.room(n, instances)
            count = self.step(rows, at, clock, hashes, out)
        result = out.beside(count, log, rows) if self.ops_only else out.rows(count, log, rows.instance is not None)
        log.tidy()
        return result

    def next_due(self) -> int | None:
        return self.timers.next_due()
