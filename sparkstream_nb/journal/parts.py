"""The folder of the inbox in which the parts of nodes lie (`division`) until their micro-batch is done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

PARTS = "parts"


def done_with(names: Iterable[str], end: int) -> Iterator[str]:
    """The names of files, of those with parts, that are of entries before number `end`."""
    for name in names:
        with contextlib.suppress(IndexError, ValueError):
            if int(name.split("-")[1]) < end:
                yield name


def forget_parts(folder: Path, end: int) -> None:
    """Removes the parts of entries before number `end` from the inbox in `folder`."""
    with contextlib.suppress(FileNotFoundError):
        for name in done_with([f.name for f in (folder / PARTS).iterdir()], end):
            (folder / PARTS / name).unlink(missing_ok=True)
