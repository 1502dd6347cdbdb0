"""The place of a display in a stream that grows: how much of it was read, and whether it is paused."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pandas as pd
import pyarrow as pa

_TRIES = 3


@dataclass(frozen=True, eq=False)
class StreamEnd:
    """The end of a stream: `total` events so far, and the last of them in `frame`, in order."""

    frame: pd.DataFrame
    total: int


class StreamEnds(Protocol):
    """Reads the end of one stream, up to the last commit."""

    def total(self) -> int:
        """The number of events so far."""
        ...

    def read(self, most: int, key: str | None) -> StreamEnd:
        """The last `most` events; with `key` only the latest of each of its values, at most `MOST_KEYS`."""
        ...

    def table(self, most: int) -> tuple[pa.Table, int]:
        """The last `most` events with the columns of `event_fields`, and the number of events so far."""
        ...


class StreamCursor(ABC):
    """Reads the new events of a stream, at most `most` at a time, for one display; with `key` only the latest event of
    each of its values. Thread-safe. `clock` gives the seconds since 1970.
    """

    def __init__(self, ends: StreamEnds, most: int, key: str | None, clock: Callable[[], float] = time.time) -> None:
        self._ends, self._most, self._key, self._clock = ends, most, key, clock
        self._lock = threading.RLock()
        self._seen: int | None = None
        self._since = 0.0
        self._paused: float | None = None
        self._left_out = 0
        """Events that came after the first reading and were left out."""

    @abstractmethod
    def _add(self, frame: pd.DataFrame, new: int) -> int:
        """Adds the last `new` events of the stream, of which `frame` has the latest; returns how many were added."""

    def pause(self) -> None:
        """Keeps the display as it is, and counts further events. Has no effect when paused already."""
        with self._lock:
            self._paused = self._clock() if self._paused is None else self._paused

    def resume(self) -> None:
        """Continues with the newest events. Other events that came during the pause count as left out."""
        with self._lock:
            self._paused = None

    def _read_on(self) -> tuple[int, int]:
        """Reads new events, unless it is paused. Returns the number of events so far, and how many wait for the
        end of the pause. Raises SparkStreamError if they cannot be read.
        """
        total = self._seen or 0
        if self._seen is None:
            self._since = self._clock()
            self._take(self._ends.read(self._most, self._key))
        elif self._paused is not None:
            total = self._ends.total()
        elif (total := self._ends.total()) > self._seen:
            self._take(self._read_new(self._seen, total))
        rows_before = self._seen or 0
        return max(total, rows_before), max(0, total - rows_before) if self._paused is not None else 0

    def _read_new(self, rows_before: int, total: int) -> StreamEnd:
        """The events after the first `rows_before` of a stream that had `total` a moment ago."""
        row_limit = min(self._most, total - rows_before)
        end = self._ends.read(row_limit, self._key)
        for _ in range(_TRIES):
            new = min(self._most, end.total - rows_before)
            if row_limit >= new:
                break
            row_limit = new  # further events were committed before the reading
            end = self._ends.read(row_limit, self._key)
        return end

    def _take(self, end: StreamEnd) -> None:
        new = len(end.frame) if self._seen is None else end.total - self._seen
        row_count = self._add(end.frame, new)
        if self._seen is not None:
            self._left_out += max(0, new - row_count)
        self._seen = end.total
