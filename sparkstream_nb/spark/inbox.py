"""The inbox of an app: everything that enters it, in one order, on disk before it is worked on.

`journal` is a file of JSON lines, each a list of entries that enter together: a line is there whole or not at all.
An entry is a run of steps (events sent, a feed's chunk), an on-demand query, or rows that were rejected
(`entries.py`). Entries are numbered (`seq`); so are steps and requests, and an entry knows the clock of its app
`before` it. That makes its meaning independent of how entries are later cut into micro-batches. One process writes;
Spark's reader follows the file by its size.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..engine.batch import InputBatch
from ..errors import SparkStreamError
from .entries import Entry, StepsEntry, from_json, to_json
from .journal import lines
from .private import private_file, private_folder, to_disk
from .segments import requests_of

INLINE_BYTES = 16_384
"""Batches up to this size stand in the journal itself; larger ones in a file of their own."""


@dataclass
class Position:
    """How far the inbox is filled: numbers of the next entry, step and request, and the highest clock so far (ms), of
    all and by app."""

    seq: int = 0
    step: int = 0
    request: int = 0
    clock: int | None = None
    clocks: dict[int, int] = field(default_factory=dict)


@dataclass
class Inbox:
    """The writing end. `folder` is made if need be; a line that a crash cut short is dropped."""

    folder: Path
    position: Position = field(default_factory=Position)
    over: tuple[int, ...] = ()
    """The nodes that take what is appended from now on; empty: those that the app began with."""

    def __post_init__(self) -> None:
        private_folder(self.folder)
        self._end = 0
        for at, line in lines(self.folder, 0):
            self._end = at + len(line)
            for entry in from_json(line):
                _pass(self.position, entry)
        self._open()

    def _open(self) -> None:
        self._file = private_file(self.journal).open("ab", buffering=0)
        self._file.truncate(self._end)
        to_disk(self.journal, self.folder)

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    def close(self) -> None:
        self._file.close()

    def append(self, entries: Sequence[Entry]) -> int:
        """Numbers the entries and writes them as one line; returns the number of the last.

        They and their files are on the disk when this returns. Raises SparkStreamError where they cannot be written;
        none of them is in then.
        """
        numbered = []
        p = replace(self.position, clocks=dict(self.position.clocks))
        for entry in entries:
            placed = replace(entry, over=self.over) if self.over else entry
            numbered.append(placed.numbered(p.seq, p.step, p.request, p.clocks.get(entry.app)))
            _pass(p, numbered[-1])
        files = dict.fromkeys(self.folder / e.file for e in numbered if e.file is not None)
        line = to_json(numbered) + b"\n"
        with self._writing():
            if files:
                to_disk(*files, self.folder)
            if os.fstat(self._file.fileno()).st_size != self._end:  # of a line that could not be taken back
                self._file.truncate(self._end)
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        self._end += len(line)
        self.position = p
        return p.seq - 1

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """What cannot be written, as on a full disk, leaves the journal as it was."""
        try:
            yield
        except OSError as e:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise SparkStreamError(
                f"{self.folder} cannot be written to: {e.strerror or e}. What was to come in is not in; make room and "
                "send it again."
            ) from e

    def batch(self, batch: InputBatch, route: str, app: int = 0) -> StepsEntry:
        """An entry that holds `batch`."""
        blob = batch.to_bytes()
        inline = len(blob) <= INLINE_BYTES
        return StepsEntry(
            app=app,
            steps=len(batch.clock),
            requests=requests_of(batch),
            clock=int(batch.clock.max()),
            route=route,
            events={stream: len(rows.ts) for stream, rows in batch.rows.items()} or None,
            data=base64.b64encode(blob).decode() if inline else None,
            file=None if inline else self.write(f"batch-{os.urandom(8).hex()}", blob),
        )

    def write(self, name: str, blob: bytes) -> str:
        """Writes a file of the inbox; returns its name. Raises SparkStreamError where it cannot be written."""
        with self._writing():
            try:
                private_file(self.folder / name).write_bytes(blob)
            except OSError:
                (self.folder / name).unlink(missing_ok=True)
                raise
        return name

    def truncate(self, seq: int) -> int:
        """Takes back the entries from number `seq` on, which nobody may have read; returns how many steps they had."""
        kept: list[bytes] = []
        withdrawn = 0
        self.position = Position()
        for _, line in lines(self.folder, 0):
            entries = from_json(line)
            keep = [e for e in entries if e.seq < seq]
            withdrawn += sum(e.steps for e in entries if e.seq >= seq)
            for e in keep:
                _pass(self.position, e)
            if keep:
                kept.append(to_json(keep) + b"\n")
        self._file.close()
        new = self.journal.with_suffix(".new")
        private_file(new).write_bytes(b"".join(kept))
        to_disk(new)
        new.replace(self.journal)
        self._end = sum(map(len, kept))
        self._open()
        return withdrawn


def _pass(p: Position, entry: Entry) -> None:
    """Moves a position behind an entry."""
    p.seq = entry.seq + 1
    p.step = entry.step + entry.steps
    p.request = entry.request + entry.requests
    if entry.clock is not None:
        p.clock = entry.clock if p.clock is None else max(p.clock, entry.clock)
        p.clocks[entry.app] = max(p.clocks.get(entry.app, entry.clock), entry.clock)
