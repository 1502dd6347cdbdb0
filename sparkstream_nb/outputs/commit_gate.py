"""Commits that wait while an app is read: all that is read belongs to one commit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(eq=False)
class GateReader:
    """A reader of an app. Micro-batches are committed up to entry `entry` of the journal, and none after that."""

    _gate: CommitGate
    entry: int = -1

    def let_through(self, entry: int) -> None:
        """Lets micro-batches commit until `entry` is committed."""
        with self._gate.change:
            self.entry = entry
            self._gate.change.notify_all()

    def wait_idle(self) -> None:
        """Waits until no commit is under way."""
        with self._gate.change:
            while self._gate.is_committing:
                self._gate.change.wait()


class CommitGate:
    """The gate that each commit of an app passes through, one at a time."""

    def __init__(self) -> None:
        self.change = threading.Condition()
        self.is_committing = False
        self._readers: list[GateReader] = []

    @contextlib.contextmanager
    def enter(self, last_entry: Callable[[], int]) -> Iterator[None]:
        """A commit. It begins when there is no reader that wants to see the app as of `last_entry()`, the last
        committed entry, or before."""
        with self.change:
            while any(reader.entry <= last_entry() for reader in self._readers):
                self.change.wait()
            self.is_committing = True
        try:
            yield
        finally:
            with self.change:
                self.is_committing = False
                self.change.notify_all()

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[GateReader]:
        """No commit begins inside, unless the reader lets it through."""
        reader = GateReader(self)
        with self.change:
            self._readers.append(reader)
        try:
            yield reader
        finally:
            with self.change:
                self._readers.remove(reader)
                self.change.notify_all()
