"""The reading end of an app's inbox (`inbox.py`), and the rows in which its entries go through Spark.

Spark starts a process for every query that plans its micro-batches: what that needs stands here, and loads no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from .entries import Entry, from_json

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
"""Spark's types of the rows (`rows.py`) in which entries go to the nodes, and results to the commit."""
SCHEMA = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())

E = TypeVar("E", bound=Entry)

STEPS_PER_PIECE = 250_000
"""Steps that are taken at once, as far as entries are not larger."""


def lines(folder: Path, at: int) -> Iterator[tuple[int, bytes]]:
    """(offset in bytes, line) for every whole line of the journal from offset `at` on."""
    try:
        file = (folder / "journal").open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(at)
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield at, line
            at += len(line)


def entries_from(folder: Path, offset: dict[str, int]) -> Iterator[tuple[Entry, dict[str, int]]]:
    """(entry, offset after it) from `offset` on.

    An offset is `{"seq": number of the next entry, "at": byte of its line, "skip": entries of that line before it}`.
    """
    for at, line in lines(folder, offset["at"]):
        entries = from_json(line)
        skip = offset["skip"] if at == offset["at"] else 0
        for i, entry in enumerate(entries[skip:], skip + 1):
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
