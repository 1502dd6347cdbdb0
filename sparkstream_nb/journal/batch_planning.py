"""Choice of a micro-batch's journal entries, for any runner.

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
from .entries import Entry, EventsEntry, SourceEntry
from .journal import entries_from
from .kept import JournalRetention
from .marks import forget_tasks
from .parts import forget_parts
from .resting import may_rest

ROWS_PER_TRIGGER = 10_000_000
Offset = dict[str, int]


@dataclass(frozen=True)
class TaskShare:
    """Consecutive entries that one task packs. Nodes that are `resting` work only where an event of them reaches
    them."""

    entries: list[Entry]
    resting: frozenset[int] = frozenset()


@dataclass
class Planner:
    """Plans the micro-batches over the inbox in `folder`; `retention` removes what is done. `work`: whether tasks do
    some of it before the nodes."""

    folder: Path
    retention: JournalRetention
    work: bool = False
    beginning: Offset = field(default_factory=lambda: {"seq": 0, "at": 0, "skip": 0})

    @staticmethod
    def of(folder: Path, retention: Retention, *, work: bool) -> Planner:
        """A planner that keeps of the past what `retention` says."""
        return Planner(folder, JournalRetention(folder, retention.recording, retention.days), work)

    def latest(self, start: Offset, rows: int) -> Offset:
        """The offset at which the micro-batch from `start` on ends: after `rows` rows at most, and one entry at least.
        It is `start` if nothing has come in. An entry with `barrier` begins a micro-batch of its own. Raises
        SparkStreamError if the inbox is gone, so that a query which outlived its app's process ends.
        """
        if not self.folder.exists():
            raise SparkStreamError(f"The inbox {self.folder} no longer exists: the app was deployed again.")
        end, steps = start, 0
        for entry, after in entries_from(self.folder, start):
            if end is not start and (steps + entry.steps > rows or entry.barrier):
                break
            end, steps = after, steps + entry.steps
        return end

    def shares(self, start: Offset, end: Offset) -> Sequence[TaskShare]:
        """The entries between two offsets: one share that is passed on, or one for each piece of work for a task."""
        entries: list[Entry] = []
        for entry, _ in entries_from(self.folder, start):
            if entry.seq >= end["seq"]:
                break
            entries.append(entry)
        if not self.work:
            return [TaskShare(entries)] if entries else []
        runs = list(journal.runs(entries))
        # A task knows what reaches a node of its own share alone.
        resting = self._find_resting(start, entries) if len(runs) == 1 else frozenset()
        return [TaskShare(run, resting) for run in runs]

    def _find_resting(self, start: Offset, entries: Sequence[Entry]) -> frozenset[int]:
        if not all(isinstance(e, EventsEntry | SourceEntry) for e in entries):
            return frozenset()
        clock = max((e.clock for e in entries if e.clock is not None), default=None)
        return frozenset() if clock is None else may_rest(self.folder, start["seq"], clock)

    def done(self, end: Offset) -> None:
        """Release the input before `end`, which will not be read again."""
        self.retention.end(end)
        forget_tasks(self.folder, end["seq"])
        forget_parts(self.folder, end["seq"])
