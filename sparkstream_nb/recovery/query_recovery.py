"""An app whose query has failed is started again; events that end it every time are found and set aside.

The first tries are as before: a worker that was killed, or a database that was away, needs no more. From the third on,
the nodes try the work in child processes first (`batch_care.py`). An app whose trials accuse no event, and that
fails all the same, stays failed, with that error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ..errors import SparkStreamError
from .batch_care import DIED, BatchCare, EventsBlamed

PLAIN_TRIES = 2
TRIAL_TRIES = 2
"""Tries of a micro-batch with trials without a culprit."""
_POLLING_SECONDS = 0.5


class Mended(Protocol):
    """A streaming query, as its recovery needs it. `instructions`: steps and queries set aside when it begins, and the
    entries that it tries first.
    """

    instructions: BatchCare

    @property
    def active(self) -> bool:
        """True if it runs."""

    def failure(self) -> str | None:
        """The error that ended it; None if it did not end by an error."""

    def ended_for_good(self) -> bool:
        """True if it cannot be begun again in this process."""

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        """The number of the last micro-batch that is planned, and its entries: the first, and the first after it."""

    def is_committed(self, batch: int) -> bool:
        """True if results of a micro-batch are in a database: its events have been processed once."""

    def attempts(self) -> int:
        """Number of starts of the last micro-batch by processes that it may have ended; 0 if it ends none."""

    def begin(self) -> None:
        """Begins it where it left off. Raises SparkStreamError if it cannot."""

    def cancel(self) -> None:
        """Ends it."""


class QueryRecovery:
    """Starts a query, and starts it again when it has failed. `say` receives messages for the user."""

    def __init__(self, query: Mended, inbox: Path, say: Callable[[str], None]) -> None:
        self.query, self.inbox, self.say = query, inbox, say
        self._lock = threading.Lock()
        self._batch = -1
        self._tries = 0
        self._should_run = False
        self._ending: threading.Event | None = None

    def start(self) -> None:
        """Starts the query where it does not run, and looks after it from now on. Raises what `begin` raises."""
        with self._lock:
            if self.query.active or (self._should_run and self._again()):
                return
            self.query.instructions = BatchCare.of(self.inbox)
            self._batch, self._tries, self._should_run = -1, 0, True
            if self.query.attempts() > PLAIN_TRIES:  # this process ended in the middle of it, again and again
                self._batch, entries = self.query.planned_batch()
                self._tries = PLAIN_TRIES
                self._try_first(entries)
            self.query.begin()
            if self._ending is None:
                self._ending = threading.Event()
                threading.Thread(target=self._run, args=(self._ending,), name="sparkstream-mend", daemon=True).start()

    def leave(self, timeout: float) -> None:
        """Stop looking after the query. A start in progress is waited for up to `timeout` seconds; after that it is
        undone when it is through.
        """
        self._should_run = False
        if self._ending is not None:
            self._ending.set()
            self._ending = None
        if self._lock.acquire(timeout=timeout):
            self._lock.release()

    def again(self) -> bool:
        """Starts the query again where it has failed, and that may help; whether it runs."""
        with self._lock:
            return self._should_run and self._again()

    def _again(self) -> bool:
        failure = self.query.failure()
        if failure is None:
            return self.query.active
        if self.query.ended_for_good() or not self.inbox.exists():
            return False
        batch, entries = self.query.planned_batch()
        if batch != self._batch:
            self._batch, self._tries = batch, 0
            self.query.instructions = replace(self.query.instructions, entries=(0, 0))
        self._tries += 1
        if not self._set_aside(failure):
            if self._tries > PLAIN_TRIES + TRIAL_TRIES:
                self._should_run = False
                return False
            if self._tries > PLAIN_TRIES:
                self._try_first(entries)
            self.say(f"The query ended and was started again: {failure}")
        self.query.begin()
        if not self._should_run:  # it was stopped meanwhile
            self.query.cancel()
        return self._should_run

    def _try_first(self, entries: tuple[int, int]) -> None:
        """Has child processes try the work on some entries first, unless their results are in a database: a
        repetition with other events set aside would give a state that does not fit these.
        """
        if not self.query.is_committed(self._batch):
            self.query.instructions = replace(self.query.instructions, entries=entries)

    def _set_aside(self, failure: str) -> bool:
        """Sets the events and queries aside that a failure names; whether it names some."""
        instructions = self.query.instructions
        after = EventsBlamed.add_to(instructions, failure)
        if after == instructions:
            return False
        after.write(self.inbox)
        for culprit in after.skipped_steps[len(instructions.skipped_steps) :]:
            self.say(f"An event was set aside: {culprit.why}")
        if after.asks != instructions.asks:
            self.say(f"An on-demand query was set aside: {DIED}")
        self.query.instructions, self._tries = after, PLAIN_TRIES
        return True

    def _run(self, ending: threading.Event) -> None:
        while not ending.wait(_POLLING_SECONDS):
            try:
                if self.query.failure() is not None and not self.again():
                    break
            except SparkStreamError as error:
                self.say(str(error))
                break
        if self._ending is ending:
            self._ending = None
