"""Retention of input that is done with: it stays in the inbox as a recording, until it is too much or too old."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from .journal import entries_from, segments

DAY = 86_400.0
Offset = dict[str, int]
"""A place in the journal, as of `journal.entries_from`."""


@dataclass(frozen=True)
class _Item:
    """A segment of the journal, or a file that its entries name."""

    file: Path
    bytes: int
    modified_seconds: float


@dataclass
class JournalRetention:
    """The files of the inbox in `folder` of which `recording` bytes are kept, for `days` (None: no limit)."""

    folder: Path
    recording: int | None
    days: float | None
    _done_until: dict[str, int] | None = None
    _items: deque[_Item] = field(default_factory=deque)
    _bytes: int = 0
    _segment: int = -1

    def end(self, end: Offset) -> list[Path]:
        """Mark everything before offset `end` as done. The oldest of it is removed if it is too much or too old.
        Returns the files named by entries that were not done before.
        """
        files = self._pass(end)
        oldest = None if self.days is None else time.time() - self.days * DAY
        while self._items:
            item = self._items[0]
            too_much = self.recording is not None and self._bytes > self.recording
            if not too_much and (oldest is None or item.modified_seconds >= oldest):
                break
            self._items.popleft()
            self._bytes -= item.bytes
            item.file.unlink(missing_ok=True)
        return files

    def _pass(self, end: Offset) -> list[Path]:
        """Takes note of the files that are done with; returns those that entries name."""
        files = []
        for _, begin, file in list_passed(self.folder, self._done_until, end):
            if begin is not None:
                if begin <= self._segment:
                    continue
                self._segment = begin
            else:
                files.append(file)
            with contextlib.suppress(FileNotFoundError):
                stat = file.stat()
                self._items.append(_Item(file, stat.st_size, stat.st_mtime))
                self._bytes += stat.st_size
        self._done_until = end
        return files


def list_missing(folder: Path, begin: Offset | None) -> list[str]:
    """The files that entries from offset `begin` on name and that are not there."""
    names = dict.fromkeys(name for e, _ in entries_from(folder, begin) for name in e.files)
    return [name for name in names if not (folder / name).exists()]


_OURS = re.compile(
    r"batch-[0-9a-f]{16}|(late|rejected)-[0-9a-f]{12}|feed-[0-9a-f]{12}(-ordered)?(-[0-9]+)*(-rejected)?"
)
"""The names of files that are written for entries to come."""
_NAMED = re.compile(rb'"file":"([^"]*)"')


def clear_unnamed(folder: Path) -> None:
    """Remove the files of the inbox in `folder` that were written for entries which never entered its journal. Call
    only while no process may write such files.
    """
    unnamed_files = {f.name for f in os.scandir(folder) if _OURS.fullmatch(f.name) and f.is_file(follow_symlinks=False)}
    for _, file in segments(folder) if unnamed_files else ():
        unnamed_files -= {name.decode() for name in _NAMED.findall(file.read_bytes())}
    for name in unnamed_files:
        (folder / name).unlink()


def list_passed(folder: Path, begin: Offset | None, end: Offset) -> Iterator[tuple[int, int | None, Path]]:
    """Files of the inbox in `folder` that are done with if its entries up to offset `end` are: the files named by
    entries from `begin` on, and all segments of the journal, in order of arrival. Each with the byte after it, and a
    segment with its first byte. A segment comes after the files that its entries name.
    """
    end_by_name: dict[str, int] = {}
    needed_names: set[str] = set()
    for entry, after in entries_from(folder, begin):
        for name in entry.files:
            end_by_name[name] = after["at"]
            if entry.seq >= end["seq"]:
                needed_names.add(name)
    passed_files: list[tuple[int, int, int | None, Path]] = [
        (at, 0, None, folder / name) for name, at in end_by_name.items() if name not in needed_names
    ]
    for (first, file), (following, _) in pairwise(segments(folder)):
        if following <= end["at"]:
            passed_files.append((following, 1, first, file))
    for place, _, begins, file in sorted(passed_files, key=lambda f: (f[:2], str(f[3]))):
        yield place, begins, file
