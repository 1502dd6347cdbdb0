"""The frames and files that were fed to each stream: a cell that is run again feeds its frame once more.

Files are noted in the app's folder, so that a redeployment or a new kernel still knows them. They are forgotten with
the app's state.
"""

from __future__ import annotations

import contextlib
import json
import uuid
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...journal.private import write_private

NOTED = "fed.json"
"""The file in an app's folder."""


class FedBefore:
    """The feeds of apps so far. Keeps no frame alive."""

    def __init__(self) -> None:
        self._frames: list[tuple[str, str, _Same]] = []

    def has(self, home: Path, stream: str, source: Any) -> bool:
        """True if the same frame, or the file as it is, was fed to this stream of the app in the folder `home`."""
        state_notes = _Noted.of(home)
        if isinstance(source, Path):
            return _mark(stream, source) in state_notes.files
        same = _same(source)
        return same is not None and (state_notes.state, stream, same) in self._frames

    def add(self, home: Path, stream: str, source: Any) -> None:
        """Notes that it was fed, and events of it came in."""
        state_notes = _Noted.of(home)
        if isinstance(source, Path):
            if (mark := _mark(stream, source)) is not None:
                state_notes.files.append(mark)
        elif (same := _same(source)) is not None:
            self._frames.append((state_notes.state, stream, same))
        state_notes.write(home)


@dataclass
class _Noted:
    """`state`: another one for each state that an app had; `files`: marks of the files that were fed to it."""

    state: str = field(default_factory=lambda: uuid.uuid4().hex)
    files: list[list[Any]] = field(default_factory=list)

    @staticmethod
    def of(home: Path) -> _Noted:
        try:
            document = json.loads((home / NOTED).read_text(encoding="utf-8"))
            return _Noted(str(document["state"]), [list(mark) for mark in document["files"]])
        except (OSError, ValueError, KeyError, TypeError):  # only a help: a damaged one starts empty
            return _Noted()

    def write(self, home: Path) -> None:
        with contextlib.suppress(OSError):
            text = json.dumps({"state": self.state, "files": self.files})
            write_private(home / NOTED, text.encode())


def _mark(stream: str, source: Path) -> list[Any] | None:
    """A stream, and the identity of a file: its path, time and size; None if it is gone."""
    try:
        status = source.stat()
        return [stream, str(source.resolve()), status.st_mtime_ns, status.st_size]
    except OSError:
        return None


def _same(source: Any) -> _Same | None:
    try:
        return _Same(weakref.ref(source))
    except TypeError:
        return None


class _Same:
    """An object that may be gone. Equal to another of the same object: frames compare by their values."""

    def __init__(self, ref: weakref.ref[Any]) -> None:
        self._ref = ref

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._ref() is not None and self._ref() is other._ref()

    __hash__ = None  # type: ignore[assignment]
