"""The stream of an app's micro-batches, for any runner: starting, recovery, waiting, stopping."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..errors import SparkStreamError
from ..recovery.batch_care import BatchCare
from ..recovery.query_recovery import QueryRecovery
from .runner_protocol import STOP_SECONDS, Job, Runner


class Stream:
    """Starts, stops and waits for the runner of one app."""

    def __init__(self, job: Job, runner: Runner) -> None:
        self.job, self.runner = job, runner
        self.progress, self.checkpoint = job.commit.progress, runner.checkpoint
        self.instructions = BatchCare()
        self.mending = QueryRecovery(self, job.home / "inbox", self.progress.say)

    @property
    def active(self) -> bool:
        """True if it runs."""
        return self.runner.active

    def start(self) -> None:
        """Starts the runner where it does not run, and keeps it running. Raises SparkStreamError if it cannot."""
        self.mending.start()

    def begin(self) -> None:
        """Begins where it left off, with `instructions`. Raises SparkStreamError if it cannot."""
        self.runner.begin(self.instructions)

    def failure(self) -> str | None:
        """The error that ended it; None if it did not end by an error."""
        return self.runner.failure()

    def ended_for_good(self) -> bool:
        """True if it cannot be begun again in this process."""
        return self.runner.ended_for_good()

    def is_committed(self, batch: int) -> bool:
        """True if results of a micro-batch are in a database, or if the database cannot tell."""
        try:
            self.runner.settle()
            return self.job.commit.has_begun(batch)
        except SparkStreamError:
            return True

    def attempts(self) -> int:
        """`Runner.attempts`."""
        return self.runner.attempts()

    def cancel(self) -> None:
        """Ends it, and does not wait for that."""
        self.runner.cancel()

    def wait(self, seq: int, timeout: float | None = None, tell: Callable[[], None] | None = None) -> bool:
        """Waits until entry `seq` is committed. False after `timeout` seconds. Calls `tell` five times a second.

        Raises SparkStreamError if the stream ended before that.
        """
        end = None if timeout is None else time.monotonic() + timeout
        progress = self.progress
        while True:
            with progress.changed:
                if progress.last >= seq:
                    return True
                # A runner that fails notifies no waiter, hence the short wait.
                progress.changed.wait(0.2)
                if progress.last >= seq:
                    return True
            if tell is not None:
                tell()
            if not self.active:
                failure = self.failure()
                self.runner.settle()
                if progress.last >= seq:
                    return True
                if self.mending.again():
                    continue
                raise SparkStreamError(f"{self.job.name} stopped: {failure or 'it was cancelled'}")
            if end is not None and time.monotonic() > end:
                return False

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """Cancels the work. Returns within `timeout` seconds: False if the runner is still busy ending it."""
        self.mending.leave(timeout)
        return self.runner.stop(timeout)

    def wait_for_end(self, timeout: float = 60.0) -> bool:
        """Wait until a stopped stream has closed its files and released all that it held."""
        return self.runner.wait_for_end(timeout)

    def next_unplanned(self) -> int:
        """The number of the first entry that no micro-batch has been planned for."""
        return self.checkpoint.read_progress().reached

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        """The number of the last micro-batch that is planned, and its entries: the first, and the first after it."""
        return self.checkpoint.planned_batch()

    def last_commit(self) -> tuple[int, int]:
        """(number of the last micro-batch known to the runner as committed, its last entry); -1 for none."""
        return self.runner.last_commit()
