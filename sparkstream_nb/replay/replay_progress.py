"""Progress of the replays of a call: the share of their steps that is done, which another thread may read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..engine.step_count import StepCount

if TYPE_CHECKING:
    from ..engine.node import NodeEngine

_MOST = 0.99
"""Share while replays are under way: failures repeat steps, so that there may be more than are expected."""


class ReplayProgress:
    """Steps of node engines that are expected, and that are done."""

    def __init__(self) -> None:
        self._total_steps = 0
        self._step_count = StepCount()
        self._highest_share = 0.0

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if nothing is known, as where Spark's workers replay. It waits where further replays turn
        out to be needed, and does not fall."""
        if not self._total_steps or not self._step_count.count:
            return None
        self._highest_share = max(self._highest_share, min(self._step_count.count / self._total_steps, _MOST))
        return self._highest_share

    def expect(self, steps: int) -> None:
        """Adds steps that are to come."""
        self._total_steps += steps

    def follow(self, engine: NodeEngine) -> NodeEngine:
        """Counts the steps of an engine, which is returned."""
        engine.passed = self._step_count
        return engine


_current: ContextVar[ReplayProgress | None] = ContextVar("replay_progress", default=None)


@contextmanager
def follow_replays() -> Iterator[ReplayProgress]:
    """The progress of the replays in the block, in this thread."""
    progress = ReplayProgress()
    token = _current.set(progress)
    try:
        yield progress
    finally:
        _current.reset(token)


def current_progress() -> ReplayProgress:
    """The progress of the replays of this call; one that is shown nowhere outside of `follow_replays`."""
    return _current.get() or ReplayProgress()
