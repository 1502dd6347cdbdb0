"""Which lines of some files a piece of work reaches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Place = tuple[str, int]
"""A file and a line."""


class LineTrace:
    """Notes which lines of `paths` are reached between `start` and `stop`, in all threads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._names = frozenset(map(str, paths))
        self._places: set[Place] = set()
        self._reach: dict[Place, set[str]] = {}

    def start(self) -> None:
        self._places.clear()
        threading.settrace(self._trace_call)
        sys.settrace(self._trace_call)

    def stop(self, name: str | None) -> None:
        """Ends what `start` began; `name` has reached the lines (None: they do not count)."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        if name is not None:
            for place in self._places:
                self._reach.setdefault(place, set()).add(name)

    def reach(self) -> dict[Place, frozenset[str]]:
        """The names by the lines that they reached."""
        return {place: frozenset(names) for place, names in self._reach.items()}

    def _trace_call(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in self._names:
            return None
        self._places.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace_line

    def _trace_line(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self._places.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace_line


def merge_reach(
    one: Mapping[Place, frozenset[str]], other: Mapping[Place, frozenset[str]]
) -> dict[Place, frozenset[str]]:  # fmt: skip
    """The names of both by line."""
    none = frozenset[str]()
    return {place: one.get(place, none) | other.get(place, none) for place in one.keys() | other.keys()}
