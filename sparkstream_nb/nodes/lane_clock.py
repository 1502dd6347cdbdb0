"""The clock of a lane, which begins with its first step, and faults that come on top of the planned ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..engine.columnar.blocks import Buffer
from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch
from ..errors import Misuse
from ..simulation.faults import Fault
from ..simulation.timeline import Happening, SimulatedTimeline


class LaneClock:
    """Base of the lanes: `start` and `now` are ms, `start` is None before the first step."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        self.start: int | None = None
        self.now = 0
        self.happenings_done = 0
        self._timeline: SimulatedTimeline | None = None
        self._timeline_end = 0

    def _with_fault(self, fault: Fault) -> tuple[Fault, ...]:
        """The added faults and one more. Raises `Misuse` for one that is not later than the clock."""
        if self.start is not None and fault.at <= self.now:
            raise Misuse(f"{fault} at {fault.at} ms: the clock is at {self.now} ms already")
        return (*self.faults, fault)

    def timeline(self, until: int) -> SimulatedTimeline:
        """Simulated happenings up to `until` (ms)."""
        raise NotImplementedError

    def _timeline_until(self, last: int) -> tuple[SimulatedTimeline, list[Happening]]:
        """The time line up to `last` (ms), and of its happenings those that have not taken effect yet."""
        if self._timeline is None or self._timeline_end < last:
            self._timeline, self._timeline_end = self.timeline(last), last
        happenings, first = self._timeline.happenings, self.happenings_done
        while self.happenings_done < len(happenings) and happenings[self.happenings_done].at <= last:
            self.happenings_done += 1
        return self._timeline, happenings[first : self.happenings_done]

    def _clock_of(self, batch: InputBatch) -> Array:
        """The clock (ms) at each step of a batch that has steps; it begins with the first one."""
        clock: Array = np.maximum.accumulate(batch.clock)
        if self.start is None:
            self.start = self.now = int(clock[0])
        return clock


class LaneNode:
    """Base of what has the interface of a node engine, and a lane."""

    @property
    def lane(self) -> LaneClock:
        """The lane that it runs in."""
        raise NotImplementedError

    @property
    def now(self) -> int:
        """The clock (ms)."""
        return self.lane.now

    @property
    def first_clock(self) -> int | None:
        """The clock (ms) at the first step; None: there was none yet."""
        return self.lane.start

    def snapshot(self) -> bytes:
        """All state as bytes."""
        return b"".join(self.saved_parts())

    def saved_parts(self) -> list[Buffer]:
        """The parts of `snapshot`."""
        raise NotImplementedError
