"""Progress of a running micro-batch: workers leave marks in a folder, and the app's process reads them.

A node marks the last entry that it has finished; a task that works on entries ahead of the nodes marks those. Marks
are for display only: nothing is committed by them, and a lost or late mark does no harm.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .entries import Entry
from .private import private_file

MARKS = "marks"
_NODE, _TASK = "node-", "task-"


def mark_node(folder: Path, node: int, last: int) -> None:
    """Node number `node` (from 0) has finished the entries up to `last`."""
    with (
        contextlib.suppress(OSError),
        os.fdopen(os.open(folder / MARKS / f"{_NODE}{node}", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file,
    ):
        file.write(b"%20d" % last)  # as long each time: the file need not be cut, which takes long


def mark_task(folder: Path, run: Sequence[Entry]) -> None:
    """A task has finished consecutive entries."""
    with contextlib.suppress(OSError):
        private_file(folder / MARKS / f"{_TASK}{run[0].seq}-{run[-1].seq}")


def forget_tasks(folder: Path, end: int) -> None:
    """Removes the marks of tasks on entries before number `end`, which are done with."""
    for file in (folder / MARKS).glob(f"{_TASK}*"):
        if int(file.name.rpartition("-")[2]) < end:
            file.unlink(missing_ok=True)


class Marks:
    """The reading end. `nodes`: how many nodes work on events, which none does for an app without state; `tasks`:
    whether tasks work on entries ahead of them."""

    def __init__(self, folder: Path, nodes: int, *, tasks: bool) -> None:
        self.folder, self.nodes, self.tasks = folder / MARKS, nodes, tasks

    def clear(self) -> None:
        """Removes the marks of micro-batches that are over."""
        for file in [*self.folder.glob(f"{_NODE}*"), *self.folder.glob(f"{_TASK}*")]:
            file.unlink(missing_ok=True)

    def steps(self, entries: Iterable[Entry], last_committed: int) -> int:
        """Number of steps of `entries` worked off; after entry `last_committed`, in proportion to the nodes that
        have finished them.
        """
        last_by_node = [self._last_mark(k) for k in range(self.nodes)]
        entries_done = self._tasks_done() if self.tasks else set()
        parts = self.nodes + self.tasks
        total = 0.0
        for entry in entries:
            through = sum(last >= entry.seq for last in last_by_node) + (entry.seq in entries_done)
            total += entry.steps if entry.seq <= last_committed else entry.steps * through / max(parts, 1)
        return int(total)

    def _last_mark(self, node: int) -> int:
        try:
            return int((self.folder / f"{_NODE}{node}").read_text(encoding="ascii"))
        except (OSError, ValueError):  # none yet, or it is being written
            return -1

    def _tasks_done(self) -> set[int]:
        entries_done: set[int] = set()
        for file in self.folder.glob(f"{_TASK}*"):
            first, last = file.name.removeprefix(_TASK).split("-")
            entries_done.update(range(int(first), int(last) + 1))
        return entries_done
