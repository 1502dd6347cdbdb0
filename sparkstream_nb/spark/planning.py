"""Which entries of the journal a micro-batch takes, whatever runs it.

An offset is a place in the journal. A micro-batch takes entries up to a number of rows, so that a backlog is worked off
in large ones. A runner logs the offset at which a micro-batch ends before it begins with it: repeated after a crash, it
takes the same entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SparkStreamError
from ..retention import Retention
from . import journal
from .entries import Entry
from .journal import entries_from
from .kept import Kept
from .marks import forget_tasks

ROWS_PER_TRIGGER = 10_000_000
Offset = dict[str, int]


@dataclass
class Planner:
    """Plans the micro-batches over the inbox in `folder`, of which `kept` is left when they are done. `work`: whether
    tasks do some of it before the nodes."""

    folder: Path
    kept: Kept
    work: bool = False
    beginning: Offset = field(default_factory=lambda: {"seq": 0, "at": 0, "skip": 0})

    @staticmethod
    def of(folder: Path, retention: Retention, *, work: bool) -> Planner:
        """A planner that keeps of the past what `retention` says."""
        return Planner(folder, Kept(folder, retention.recording, retention.days), work)

    def latest(self, start: Offset, rows: int) -> Offset:
        """The offset at which the micro-batch from `start` on ends: after so many rows at most, and one entry at least.
        It is `start` where nothing has come in. An entry with `barrier` begins a micro-batch of its own. Raises
        SparkStreamError where the inbox is gone, so that a query which outlived its app's process ends."""
        if not self.folder.exists():
            raise SparkStreamError(f"The inbox {self.folder} no longer exists: the app was deployed again.")
        reached, taken = start, 0
        for entry, after in entries_from(self.folder, start):
            if reached is not start and (taken + entry.steps > rows or entry.barrier):
                break
            reached, taken = after, taken + entry.steps
        return reached

    def shares(self, start: Offset, end: Offset) -> Sequence[list[Entry]]:
        """The entries between two offsets: one share that is passed on, or one for each piece of work for a task."""
        entries: list[Entry] = []
        for entry, _ in entries_from(self.folder, start):
            if entry.seq >= end["seq"]:
                break
            entries.append(entry)
        if self.work:
            return list(journal.runs(entries))
        return [entries] if entries else []

    def done(self, end: Offset) -> None:
        """What came in until `end` will not be read again."""
        self.kept.end(end)
        forget_tasks(self.folder, end["seq"])
