"""Waiting until a running app has committed its input, and ending that by Ctrl-C."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ... import argument_checks
from ...errors import SparkStreamError

if TYPE_CHECKING:
    from .runtime import AppRuntime

_LOOK_SECONDS = 0.1
_DRAIN_SECONDS = 5.0
"""The time that sinks get to send their backlog when an app ends (s)."""
_SETTLE_SECONDS = 10.0
"""The longest wait of a view for events that were sent (s)."""


class AppWaits:
    """Waits for the commits of a running app."""

    def __init__(self, runtime: AppRuntime) -> None:
        self._app = runtime

    def flush(self) -> None:
        """Waits until everything sent is committed, and its messages to topics within the app. Raises
        SparkStreamError if the app failed."""
        with self.cancel_on_interrupt():
            self.settle(None)
            delivered_count = 0
            while (count := self._app.connections.drain_topics(_SETTLE_SECONDS)) != delivered_count:
                self.settle(None)
                delivered_count = count

    def drain(self, seconds: float = 30.0) -> int:
        """Waits as `flush` does, and then until the sinks have delivered all outputs, for `seconds` at most; returns
        the number still to be sent. They are sent later, also after the app was stopped and started again.
        """
        argument_checks.check_number("seconds", seconds)
        self.flush()
        with self.cancel_on_interrupt():
            return self._app.connections.drain_sinks(seconds)

    def catch_up(self, seconds: float = 60.0) -> bool:
        """Wait until the sources have read everything available, and all of it is committed, for `seconds` at most;
        returns whether they have. Raises SparkStreamError if the app failed.
        """
        argument_checks.check_number("seconds", seconds)
        app = self._app
        app.start()
        began = time.monotonic()
        while not app.connections.intakes.caught_up(began):
            remaining_seconds = began + seconds - time.monotonic()
            if remaining_seconds <= 0:
                return False
            with app.progress.changed:
                app.progress.changed.wait(min(remaining_seconds, _LOOK_SECONDS))
        with self.cancel_on_interrupt():
            last, remaining_seconds = app.inbox.position.seq - 1, began + seconds - time.monotonic()
            return app.stream.wait(last, timeout=max(remaining_seconds, 0.0))

    def settle(self, tell: Callable[[], None] | None) -> None:
        """Waits until everything sent is committed; calls `tell` now and then."""
        app, last = self._app, self._app.inbox.position.seq - 1
        if app.progress.last < last:
            app.start()
            app.stream.wait(last, tell=tell)

    def settle_briefly(self) -> None:
        """Wait until sent events are committed. A feed is not waited for: it continues after a micro-batch."""
        app = self._app
        last, batch = app.inbox.position.seq - 1, app.progress.batch
        if app.progress.last >= last:
            return
        app.start()
        end = time.monotonic() + _SETTLE_SECONDS
        with self.cancel_on_interrupt():
            while not app.stream.wait(last, timeout=1.0):
                if app.progress.batch > batch or time.monotonic() > end:
                    return

    @contextlib.contextmanager
    def cancel_on_interrupt(self) -> Iterator[None]:
        """Ctrl-C and a notebook's Stop button inside cancel the app's work; events that were sent stay.

        If feeds run in the background, only the waiting ends.
        """
        try:
            yield
        except KeyboardInterrupt as stop:
            if not any(f.active for f in self._app.feeds.values()):
                self.stop_and_report(stop)
            raise

    def stop_and_report(self, stop: KeyboardInterrupt) -> None:
        """Stop the app, and name the events that were taken back in the interrupt."""
        retracted_events = self._app.interrupt()
        if retracted_events:
            stop.add_note(retraction(retracted_events))

    def finish(self, seconds: float = 60.0) -> None:
        """Takes nothing more in, and waits until all that came in is committed and Spark is done with it, and a while
        for the sinks; then stops.

        Raises SparkStreamError if that fails, or takes Spark longer than `seconds` after the last commit."""
        app = self._app
        with app.lock:
            app.end_input()
            if not self._is_finished() and not app.stream.active:
                app.stream.wait_for_end()
                app.stream.start()
        self._commit_all()
        sinks = app.connections.sinks
        if len(sinks):  # outputs of a stream whose attributes change are not sent later
            sinks.start()
            sinks.drain(_DRAIN_SECONDS)
            self._commit_all()  # events that a sink could not deliver may come in again
        end = time.monotonic() + seconds
        while not self._is_finished():  # Spark notes a batch as done after its commit
            if time.monotonic() > end or not app.stream.active:
                raise SparkStreamError(f"{app.name}: Spark did not finish its last micro-batch")
            time.sleep(0.02)
        app.stop()

    def _is_finished(self) -> bool:
        """True if Spark is done with all that came in."""
        spark = self._app.stream.checkpoint.read_progress()
        return spark.planned == spark.done and spark.reached == self._app.inbox.position.seq

    def _commit_all(self) -> None:
        app, last = self._app, self._app.inbox.position.seq - 1
        if app.progress.last < last:
            with self.cancel_on_interrupt():
                app.stream.wait(last)


def retraction(events: Mapping[str, int]) -> str:
    """The line that says which events, counted by stream, an interrupt took back."""
    counts = ", ".join(f"{n:,} of {stream}" for stream, n in events.items())
    return f"Interrupted: events of feeds that were not begun with were taken back: {counts}. Feed them again."
