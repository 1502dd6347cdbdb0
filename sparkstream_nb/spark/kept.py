"""What came in and is done with stays in the inbox as a recording, until it is too much or too old."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from .journal import entries_from, segments

DAY = 86_400.0


@dataclass(frozen=True)
class _Item:
    """A segment of the journal, or a file that its entries name."""

    file: Path
    bytes: int
    changed: float


@dataclass
class Kept:
    """The files of the inbox in `folder` of which `recording` bytes are kept, for `days` (None: no limit)."""

    folder: Path
    recording: int | None
    days: float | None
    _swept: dict[str, int] | None = None
    _items: deque[_Item] = field(default_factory=deque)
    _bytes: int = 0
    _segment: int = -1

    def end(self, end: dict[str, int]) -> None:
        """What is before offset `end` is done with. The oldest of that goes, where it is too much or too old."""
        self._pass(end)
        oldest = None if self.days is None else time.time() - self.days * DAY
        while self._items:
            item = self._items[0]
            too_much = self.recording is not None and self._bytes > self.recording
            if not too_much and (oldest is None or item.changed >= oldest):
                break
            self._items.popleft()
            self._bytes -= item.bytes
            item.file.unlink(missing_ok=True)

    def _pass(self, end: dict[str, int]) -> None:
        """Takes note of the files that are done with. A segment comes after the files that its entries name."""
        named: dict[str, int] = {}
        needed: set[str] = set()
        for entry, after in entries_from(self.folder, self._swept):
            if entry.file is not None:
                named[entry.file] = after["at"]
                if entry.seq >= end["seq"]:
                    needed.add(entry.file)
        self._swept = end
        found = [(at, 0, self.folder / name) for name, at in named.items() if name not in needed]
        for (first, file), (following, _) in pairwise(segments(self.folder)):
            if self._segment < first and following <= end["at"]:
                self._segment = first
                found.append((following, 1, file))
        for _, _, file in sorted(found):
            with contextlib.suppress(FileNotFoundError):
                stat = file.stat()
                self._items.append(_Item(file, stat.st_size, stat.st_mtime))
                self._bytes += stat.st_size
