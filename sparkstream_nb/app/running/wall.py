"""`clock="wall"`: an app's clock that follows the machine's, and the ticks that let timers fire though no event comes.

Each node reports after a micro-batch when its next timer is due (`NodeReport.due`). A tick enters the inbox when that
time has come and nothing has moved the app's clock past it. So an app with nothing due does nothing, and since ticks
are entries of the journal, a run stays a function of the journal alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import SparkStreamError
from ...journal.result_rows import NodeReport
from ...outputs.commit import Progress

WALL = "wall"
"""The value of `clock`."""

_MS = 1_000_000
_LOOK_SECONDS = 1.0
"""The interval at which a ticker looks at the machine's clock, which may be set, and at an app that does not run
(s)."""
_OVERDUE_STEPS = 256
"""Steps of a tick for timers that wait for further movements of the clock: with each, one of an equal time fires."""


class WallClock:
    """An app's clock (ms since 1970) that follows the machine's and never goes back.

    If the machine's clock is set forward, the app's follows. If it is set back, or events have moved the app's clock
    ahead of it, the app's continues from its present time, at the pace of the monotonic clock, until the machine's is
    ahead again. `machine` and `monotonic` give those in ns. It may be read by several threads.
    """

    def __init__(
        self, machine: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._machine, self._monotonic = machine, monotonic
        self._lock = threading.Lock()
        self._read, self._at = monotonic(), machine()

    def now(self, event_time: int | None = None) -> int:
        """The time (ms). `event_time`: where the app's clock is at least (ms), as its journal says."""
        with self._lock:
            read = self._monotonic()
            self._at = max(self._machine(), self._at + max(read - self._read, 0))
            if event_time is not None:
                self._at = max(self._at, event_time * _MS)
            self._read = max(read, self._read)
            return self._at // _MS


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick to come. `at`: the time (ms) that it waits for; None: none. `overdue`: timers wait for further movements
    of the clock."""

    at: int | None
    overdue: bool = False

    def clocks(self, now: int) -> list[int]:
        """The clock (ms) at each of its steps, if it is sent at `now`: first the time that was due, so that outputs of
        that time carry it.
        """
        if self.overdue:
            return [now] * _OVERDUE_STEPS
        return [now] if self.at is None or self.at >= now else [self.at, now]


def next_tick(event_time: int | None, reports: Iterable[NodeReport]) -> Tick | None:
    """The tick that the nodes wait for, while the app's clock is at `event_time` (ms), including entries in the inbox;
    None if they wait for none, or if that one is under way.
    """
    if event_time is None:
        return Tick(None)
    soonest: int | None = None
    for report in reports:
        if report.due is None:
            continue
        if report.due > event_time:
            soonest = report.due if soonest is None else min(soonest, report.due)
        elif report.clock is not None and report.clock.after >= event_time:  # it was there, and has timers left
            return Tick(event_time, overdue=True)
    return None if soonest is None else Tick(soonest)


@dataclass(frozen=True)
class TickSink:
    """The interface of an app, as a ticker uses it. `lock` is held while `running` is asked and `append` puts steps
    with these clocks (ms) into the inbox; `event_time` is the app's clock with all that is in the inbox, `nodes` are
    those that take it."""

    lock: threading.RLock
    running: Callable[[], bool]
    append: Callable[[Sequence[int]], object]
    event_time: Callable[[], int | None]
    nodes: Sequence[int]


class WallTicker:
    """Sends ticks to an app when its timers are due by `clock`, from a thread of its own.

    The first tick comes with `start`, before any event: it begins the app's clock, and fires timers that became due
    while the app did not run.
    """

    def __init__(self, clock: WallClock, progress: Progress, inlet: TickSink) -> None:
        self.clock, self._progress, self._inlet = clock, progress, inlet
        self._ending: threading.Event | None = None
        self._has_begun = False

    def start(self) -> None:
        """Starts to wait; does nothing if it does already."""
        if self._ending is None:
            self._ending, self._has_begun = threading.Event(), False
            self._send(self._ending)
            threading.Thread(target=self._run, args=(self._ending,), name="sparkstream-clock", daemon=True).start()

    def note_event(self) -> None:
        """Something was sent. The nodes report its effect on timers."""

    def stop(self) -> None:
        """Ends the waiting. A tick that is being appended is carried through."""
        if self._ending is not None:
            self._ending.set()
            self._ending = None
            self.wake()

    def wake(self) -> None:
        """Looks at the clock now."""
        with self._progress.changed:
            self._progress.changed.notify_all()

    def seconds(self) -> float | None:
        """Seconds until a tick is to be sent; None: not known before the next report."""
        tick, event_time = self._next(), self._inlet.event_time()
        if tick is None:
            return None
        return 0.0 if tick.at is None else max(tick.at - self.clock.now(event_time), 0) / 1000

    def _next(self) -> Tick | None:
        with self._progress.changed:
            nodes = self._progress.nodes
            reports = [nodes[n] for n in self._inlet.nodes if n in nodes]
        return next_tick(self._inlet.event_time(), reports) if self._has_begun else Tick(None)

    def _run(self, ending: threading.Event) -> None:
        condition = self._progress.changed
        while not ending.is_set():
            batch = self._progress.batch
            seconds = self.seconds()
            if seconds == 0.0 and self._send(ending):
                continue
            with condition:
                if self._progress.batch == batch and not ending.is_set():
                    condition.wait(min(seconds or _LOOK_SECONDS, _LOOK_SECONDS))

    def _send(self, ending: threading.Event) -> bool:
        """Sends the tick that is due; False if the app does not take it now."""
        inlet = self._inlet
        with inlet.lock:
            if ending.is_set() or not inlet.running():
                return False
            tick, now = self._next(), self.clock.now(inlet.event_time())
            if tick is None or (tick.at is not None and tick.at > now):
                return True  # an event has come in between
            try:
                inlet.append(tick.clocks(now))
            except SparkStreamError as error:
                self._progress.say(f"The clock does not advance: {error}")
                return False
            self._has_begun = True
            return True
