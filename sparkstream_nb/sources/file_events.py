"""Events on the files of a folder: one that is created, modified or removed, by the rules of siddhi-io-file.

The folder is looked at again and again. Files are known by their names, times and sizes, which are the position of the
source: changes while the app does not run are found when it starts. No link is followed (`nofollow_folder.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..mapping.decoding import Decoded
from .nofollow_folder import Folder
from .reader import Behind, ReadMessages, SourceReader

CREATED, MODIFYING, MODIFIED, REMOVED = "created", "modifying", "modifyingCompleted", "removed"
SETTLED_SECONDS = 1.0
"""Seconds after a change until the file is looked at again: it is still being modified, or complete."""
_LONG_AGO = float("-inf")


@dataclass(frozen=True)
class FileEventsPlace:
    """The folder `path`, without links. `names` are the files that are looked at, empty for all. `every`: the pause
    between two looks, in seconds."""

    path: Path
    names: frozenset[str] = frozenset()
    every: float = 0.1


@dataclass(frozen=True)
class _FileState:
    """Time and size of a file."""

    modified_ns: int
    size: int


@dataclass(frozen=True)
class _Modification:
    """A file that has changed: since when that is known (s of the monotonic clock), and its state then."""

    at: float
    state: _FileState


class FileEventsReader(SourceReader):
    """A `Reader` of events with a file's path, its name and its status, all strings."""

    def __init__(self, place: FileEventsPlace, now: Callable[[], float] = time.monotonic) -> None:
        self.place, self._now = place, now
        self._states: dict[str, _FileState] = {}
        """The files whose events are in the inbox."""
        self._modifications: dict[str, _Modification] = {}
        self._last_look = _LONG_AGO
        self._cancel_event = threading.Event()

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self._cancel_event.clear()
        self._states = {name: _FileState(modified_ns, size) for name, (modified_ns, size, _) in positions.items()}
        self._modifications = {
            name: _Modification(self._now(), self._states[name])
            for name, (_, _, is_modifying) in positions.items()
            if is_modifying
        }
        self._last_look = _LONG_AGO
        with Folder(self.place.path):
            return None

    def read(self, seconds: float) -> ReadMessages | None:
        end = self._now() + seconds
        while True:
            if self._now() >= self._last_look + self.place.every:
                self._last_look = self._now()
                events = self._look()
                if events:
                    return self._messages(events)
            now = self._now()
            if now >= end or self._cancel_event.wait(min(end, self._last_look + self.place.every) - now):
                return None

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        for name, position in messages.reached.items():
            self._modifications.pop(name, None)
            if position is None:
                del self._states[name]
                continue
            modified_ns, size, is_modifying = position
            self._states[name] = _FileState(modified_ns, size)
            if is_modifying:
                self._modifications[name] = _Modification(self._now(), self._states[name])

    def behind(self) -> Behind | None:
        return None if self._last_look == _LONG_AGO else Behind(self._last_look, {"files": len(self._modifications)})

    def cancel(self) -> None:
        self._cancel_event.set()

    def _look(self) -> dict[str, tuple[str, _FileState | None]]:
        """The events since the last look, by name: the status of a file, and its state (None: it is removed). Raises
        SourceUnavailable if the folder is not there."""
        states = self._list_files()
        events: dict[str, tuple[str, _FileState | None]] = {}
        for name, state in states.items():
            known_state, modification = self._states.get(name), self._modifications.get(name)
            if known_state is None:
                events[name] = CREATED, state
            elif modification is not None:
                if self._now() >= modification.at + SETTLED_SECONDS:
                    events[name] = MODIFIED if state == modification.state else MODIFYING, state
            elif state != known_state:
                self._modifications[name] = _Modification(self._now(), state)
        events |= {name: (REMOVED, None) for name in self._states if name not in states}
        return events

    def _list_files(self) -> dict[str, _FileState]:
        """The plain files of the folder, in the order of their names."""
        states: dict[str, _FileState] = {}
        with Folder(self.place.path) as folder:
            for entry in folder.entries():
                if self.place.names and entry.name not in self.place.names:
                    continue
                try:
                    stat = folder.stat(entry.name)
                except OSError:  # a link, a folder, or gone
                    continue
                states[entry.name] = _FileState(stat.st_mtime_ns, stat.st_size)
        return dict(sorted(states.items()))

    def _messages(self, events: Mapping[str, tuple[str, _FileState | None]]) -> ReadMessages:
        names = list(events)
        columns = [
            pa.array([str(self.place.path / name) for name in names], pa.string()),
            pa.array(names, pa.string()),
            pa.array([status for status, _ in events.values()], pa.string()),
        ]
        positions = {
            name: None if state is None else [state.modified_ns, state.size, int(status == MODIFYING)]
            for name, (status, state) in events.items()
        }
        decoded_events = Decoded(list(columns), np.arange(len(names), dtype=np.int64), ())
        return ReadMessages(decoded_events, len(names), positions, lasting=True)
