"""The base of windows of which only arguments, declared state and what to do with an event and a timer are written."""

from __future__ import annotations

from ..columnar.column_data import Array
from ..columnar.rows import Clock, Rows
from ..notation.kernels import inlined, struct
from .declared_state import ChainedWindow, scheduled_times
from .timed_window import TimedWindow
from .window_protocol import Emission, WindowSetup


@struct
class DeclaredWindow(TimedWindow, ChainedWindow):
    """A window that holds its events in one chain (or in `chains`) for each partition instance. Subclasses have
    `__init__`, which reads the arguments, `on_event`, perhaps `on_timer`, and `take_arguments` if they read attributes.
    """

    stamps, moves, is_ordered = None, False, False
    timers = scheduled_times()

    def __init__(self, setup: WindowSetup) -> None:
        self.scheduler = setup.scheduler
        self._declare(setup.types)

    def take_arguments(self, rows: Rows) -> None:
        """Called with the rows of a run before they are processed."""

    @inlined
    def hold(self, pos: int, p: int) -> None:
        """The event at a position enters the window of instance `p`."""
        self.log.push(0, pos, p)
        self.log.alive[pos] = True

    @inlined
    def release(self, p: int) -> int:
        """The oldest event that instance `p` holds leaves; returns its position. There must be one."""
        pos = self.log.pop(0, p)
        self.log.alive[pos] = False
        return pos

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        self.take_arguments(rows)
        at = self.log.add(rows, instances)
        self._widen(instances)
        self.timers.room(2 * len(rows), instances)
        # An event leaves at most once as each of CURRENT, EXPIRED and RESET.
        out = Emission(3 * (at + len(rows)))
        result = out.rows(self.step(rows, at, clock, hashes, out), self.log, rows.instance is not None)
        self._tidy()
        return result

    def next_due(self) -> int | None:
        return self.timers.next_due()
