"""Callbacks that run after micro-batches are committed: displays of an app follow it without polling."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ...outputs.commit import Progress
from .selection_criteria import SharedSelection

OnCommit = Callable[[int], None]
"""Takes how many micro-batches of the app are committed."""


def always_running() -> str:
    """The state of objects without a state of their own."""
    return "running"


@dataclass(frozen=True)
class Followed:
    """An app as a view follows it. `follow` calls back after commits, and returns a function that ends that. `state` is
    as in `App`, or "closed" where the app was deployed again or all apps were stopped. `selection` is the app's.
    """

    app: str
    follow: Callable[[OnCommit], Callable[[], None]]
    state: Callable[[], str] = always_running
    selection: SharedSelection | None = None


_log = logging.getLogger(__name__)


class CommitListeners:
    """The callbacks of one app, called on a thread of their own that holds no lock.

    A slow callback holds up neither Spark nor a feed: micro-batches that are committed while callbacks run are reported
    in one further call. An exception in a callback is logged, and the callback stays. The thread runs while there are
    callbacks.
    """

    def __init__(self, app: str, progress: Progress) -> None:
        self.app, self._progress = app, progress
        self._callbacks: dict[object, OnCommit] = {}
        self._thread: threading.Thread | None = None

    def add(self, callback: OnCommit) -> Callable[[], None]:
        """Call `callback` from the next commit on; returns a function that ends that. Ending it twice has no further
        effect.
        """
        key = object()
        condition = self._progress.changed
        with condition:
            self._callbacks[key] = callback
            if self._thread is None:
                name, batch = f"sparkstream-commits-{self.app}", self._progress.batch
                self._thread = threading.Thread(target=self._run, args=(batch,), name=name, daemon=True)
                self._thread.start()

        def remove() -> None:
            with condition:
                self._callbacks.pop(key, None)
                condition.notify_all()

        return remove

    def __len__(self) -> int:
        return len(self._callbacks)

    def clear(self) -> None:
        """Ends all callbacks. One that runs is carried through."""
        with self._progress.changed:
            self._callbacks.clear()
            self._progress.changed.notify_all()

    def _run(self, batch: int) -> None:
        progress = self._progress
        while True:
            with progress.changed:
                while self._callbacks and progress.batch <= batch:
                    progress.changed.wait()
                if not self._callbacks:
                    self._thread = None
                    return
                batch, callbacks = progress.batch, list(self._callbacks.values())
            for callback in callbacks:
                try:
                    callback(batch + 1)
                except Exception:
                    _log.exception("A callback of App.on_commit failed: app %s, micro-batch %d", self.app, batch)
