"""The clock of a running app: events and ticks move it, or this machine's clock does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from ...engine.state.node_batch import InputBatch
from ...journal.entries import Entry
from ...outputs.commit import Progress
from ..config.idle import IdleTicker
from .app_files import AppDefinition, AppFiles
from .wall import WALL, TickSink, WallClock, WallTicker


class AppClock:
    """The clock of an app whose `files` are open. `lock` is held while ticks are appended, and only while the app
    `is_running`. `wall`: this machine's clock, where it moves the app's."""

    def __init__(
        self,
        definition: AppDefinition,
        files: AppFiles,
        progress: Progress,
        lock: threading.RLock,
        is_running: Callable[[], bool],
    ) -> None:
        self._definition, self._inbox = definition, files.inbox
        self._lock, self._is_running = lock, is_running
        self.wall = WallClock() if definition.deployment.request.clock == WALL else None
        self.ticker = self._make_ticker(progress)

    def _make_ticker(self, progress: Progress) -> IdleTicker | WallTicker | None:
        """The ticker that moves the clock besides events."""
        if self.wall is not None:
            app_run = self._definition.app_run
            sink = TickSink(
                lock=self._lock,
                running=self._is_running,
                append=lambda clocks: self._inbox.append([self.tick_entry(*clocks)]),
                event_time=lambda: self._inbox.position.clock,
                nodes=app_run.over if app_run.leader is None else (*app_run.over, app_run.leader),
            )
            return WallTicker(self.wall, progress, sink)
        idle = self._definition.plan.idle_clock
        return None if idle is None else IdleTicker(idle, self._advance)

    def start(self) -> None:
        """Lets it move by itself, if it does."""
        if self.ticker is not None:
            self.ticker.start()

    def stop(self) -> None:
        """Ends that."""
        if self.ticker is not None:
            self.ticker.stop()

    def note_event(self) -> None:
        """An event was sent: the idle time restarts."""
        if self.ticker is not None:
            self.ticker.note_event()

    def tick_entry(self, *clocks: int) -> Entry:
        """An entry of the journal without events, whose steps have these times (ms)."""
        return self._inbox.batch(InputBatch(np.array(clocks, np.int64)), self._definition.deployment.routing)

    def _advance(self, increment: int) -> None:
        """Moves the clock on by `increment` ms, if the app runs and has a clock by now."""
        with self._lock:
            now = self._inbox.position.clock
            if self._is_running() and now is not None:
                self._inbox.append([self.tick_entry(now + increment)])

    def now(self) -> int:
        """This machine's time (ms), or the app's clock if it is ahead."""
        if self.wall is not None:
            return self.wall.now(self._inbox.position.clock)
        return max(int(time.time() * 1000), self._inbox.position.clock or 0)

    def latest_time(self) -> int | None:
        """The last time (ms) at which an event is taken; None if all are."""
        most = self._definition.deployment.max_ahead
        return None if most is None else int(time.time() * 1000) + most
