"""The reading end of an app's inbox (`inbox.py`), and the rows in which its entries go through Spark.

The journal is the folder `journal`: segments, each a file called after the number of its first byte, counted through
all of them. Its first line, an object, is the journal's position there (`inbox.InboxPosition`); every other line is a
list of entries, a tab, and the CRC-32 of the list. So the oldest segments can go, and offsets do not change.

Spark starts a process for every query that plans its micro-batches: this module has all that it needs, and loads no
engine.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from ..errors import SparkStreamError
from .entries import Entry, from_json, to_json

COLUMNS = {
    "node": "int",
    "seq": "long",
    "last": "long",
    "kind": "string",
    "name": "string",
    "rows": "long",
    "blob": "binary",
    "file": "string",
}
"""Spark's types of the rows (`result_rows.py`) in which entries go to the nodes, and results to the commit."""
SCHEMA = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())

AGAIN_FROM_JOURNAL = "sparkstream store repair makes it again from the journal, if that has all of the input"
BEGIN_ANEW = "fresh=True (--fresh) starts from scratch and moves the former contents to its trash"
"""A way out where a folder cannot be read."""

E = TypeVar("E", bound=Entry)

JOURNAL = "journal"
STEPS_PER_PIECE = 250_000
"""Steps that are processed at once, unless one entry is larger."""


def segments(folder: Path) -> list[tuple[int, Path]]:
    """(number of its first byte, file) of every segment that is kept, in order."""
    try:
        names = os.listdir(folder / JOURNAL)
    except FileNotFoundError:
        return []
    return sorted((int(name), folder / JOURNAL / name) for name in names if name.isdecimal())


def segment(folder: Path, first: int) -> Path:
    """The file of the segment that begins with byte `first`."""
    return folder / JOURNAL / f"{first:018d}"


def lines(folder: Path, at: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(offset in bytes, line) for every whole line of entries from offset `at` on, or from the first one kept.

    Raises FileNotFoundError if the line at that offset is no longer kept.
    """
    read_segments = segments(folder)
    if at is not None:
        if read_segments and at < read_segments[0][0]:
            raise FileNotFoundError(f"the journal in {folder} begins at byte {read_segments[0][0]}, not {at}")
        read_segments = read_segments[max(bisect_right([first for first, _ in read_segments], at) - 1, 0) :]
    for first, file in read_segments:
        try:
            yield from lines_of(first, file, max(first, at or 0))
        except FileNotFoundError:
            if at is not None:
                raise  # else it went just now


def lines_of(first: int, file: Path, at: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines of entries in one segment, from offset `at` on."""
    with file.open("rb") as open_file:
        open_file.seek(at - first)
        for line in open_file:
            if not line.endswith(b"\n"):
                return
            if at != first or not line.startswith(b"{"):
                yield at, line
            at += len(line)


def line_of(entries: Iterable[Entry]) -> bytes:
    """The line of entries that enter together."""
    text = to_json(entries)
    return b"%b\t%08x\n" % (text, crc32(text))


def entries_of(folder: Path, at: int, line: bytes) -> list[Entry]:
    """The entries of the line at offset `at`. Raises SparkStreamError if the line is damaged, or of a later version."""
    text, tab, sum = line.rstrip(b"\n").rpartition(b"\t")  # lines of earlier versions have no sum
    try:
        if tab and int(sum, 16) != crc32(text):
            raise ValueError
        return from_json(text if tab else line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged_line(folder, at, "is damaged") from None


def check_order(folder: Path, at: int, entry: Entry, seq: int) -> None:
    """Raises SparkStreamError if the line at offset `at` has another entry than the one of number `seq`, which is
    due: a line is there twice, or one is missing."""
    if entry.seq != seq:
        raise _damaged_line(folder, at, f"has entry {entry.seq:,}, where entry {seq:,} is due")


def _damaged_line(folder: Path, at: int, what: str) -> SparkStreamError:
    """The error for a line at offset `at`, which is or has what the words say."""
    first, file = next((s for s in reversed(segments(folder)) if s[0] <= at), (0, segment(folder, 0)))
    return damaged_error(file, f"the line at byte {at - first:,} {what}")


def damaged_error(file: Path, what: str) -> SparkStreamError:
    """The error for a segment of a journal of which `what` is true."""
    return SparkStreamError(f"The journal {file} cannot be read: {what}. Put it back from a copy; {BEGIN_ANEW}.")


def entries_from(folder: Path, offset: dict[str, int] | None = None) -> Iterator[tuple[Entry, dict[str, int]]]:
    """(entry, offset after it) from `offset` on, or from the first that is kept. Raises as `lines` and `entries_of` do.

    An offset is `{"seq": number of the next entry, "at": byte of its line, "skip": entries of that line before it}`.
    """
    due = None if offset is None else offset["seq"]
    for at, line in lines(folder, None if offset is None else offset["at"]):
        entries = entries_of(folder, at, line)
        skip = offset["skip"] if offset is not None and at == offset["at"] else 0
        for i, entry in enumerate(entries[skip:], skip + 1):
            check_order(folder, at, entry, entry.seq if due is None else due)
            due = entry.seq + 1
            last = i == len(entries)
            yield (
                entry,
                {
                    "seq": entry.seq + 1,
                    "at": at + len(line) if last else at,
                    "skip": 0 if last else i,
                },
            )


def runs(entries: Iterable[E]) -> Iterator[list[E]]:
    """Consecutive entries of events over the same nodes, as many as make a piece."""
    run: list[E] = []
    steps = 0
    for entry in entries:
        if run and (steps + entry.steps > STEPS_PER_PIECE or entry.over != run[0].over):
            yield run
            run, steps = [], 0
        run.append(entry)
        steps += entry.steps
    if run:
        yield run
