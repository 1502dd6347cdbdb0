"""`@app:playback(idle.time, increment)`: the app's clock advances while no events come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...plan.nodes import IdleClock


class IdleTicker:
    """Calls `advance` whenever nothing was sent for the idle time, and again after each further one.

    The idle time is measured by this machine's clock, as in Siddhi's `TimestampGeneratorImpl`. `advance(ms)` moves the
    app's clock forward. It is called from a thread of the ticker's own.
    """

    def __init__(self, clock: IdleClock, advance: Callable[[int], None]) -> None:
        self.clock, self.advance = clock, advance
        self._ending: threading.Event | None = None
        self._since = 0.0

    def start(self) -> None:
        """Starts to wait; does nothing if it does already."""
        if self._ending is None:
            self.note_event()
            self._ending = threading.Event()
            threading.Thread(target=self._run, args=(self._ending,), name="sparkstream-idle", daemon=True).start()

    def note_event(self) -> None:
        """An event was sent: the idle time restarts."""
        self._since = time.monotonic()

    def stop(self) -> None:
        """Ends the waiting. A call of `advance` that is under way is carried through."""
        if self._ending is not None:
            self._ending.set()
            self._ending = None

    def left(self, now: float) -> float:
        """Seconds until the clock is to be moved, at the time `now` (seconds of `time.monotonic`)."""
        return max(self._since + self.clock.idle / 1000 - now, 0.0)

    def _run(self, ending: threading.Event) -> None:
        while not ending.wait(self.left(time.monotonic())):
            if self.left(time.monotonic()) == 0.0:
                self.note_event()
                self.advance(self.clock.increment)
