"""The end of a stream as it grows: the last events, the latest of each key, or one number of the newest event.

Only the end of each commit's output is read; events in between are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from ...outputs.output_files import frame_rows
from .followed_stream import FollowedStream, StreamSnapshot
from .stream_cursor import StreamCursor

LOOKED_AT = 50_000
"""New events that are searched for the latest of each key, at most, each time."""
MOST_KEYS = 1_000
"""Keys that are kept, those with the latest events."""


@dataclass(frozen=True)
class TailShape:
    """The shape of a tail: the last `rows` events, with the `newest` first or last; or the latest event of each value
    of the attribute `latest`, of at most `rows` values; or the attribute `number` of the newest event."""

    rows: int = 20
    newest: Literal["first", "last"] = "first"
    latest: str | None = None
    number: str | None = None


@dataclass(frozen=True, repr=False, eq=False)
class TailSnapshot(StreamSnapshot):
    """A tail at a moment: `rows` under `columns`, `total` events so far.

    `not_shown` of them came after the tail was opened, at `since` (seconds since 1970), and were never among its rows.
    `paused`: when it was paused; `waiting` events came after that. `keys`: how many values of `shape.latest` are known.
    """

    app: str
    stream: str
    shape: TailShape
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    since: float
    not_shown: int = 0
    paused: float | None = None
    waiting: int = 0
    keys: int = 0

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    @property
    def number(self) -> Any:
        """The value of `shape.number` in the newest event; None before the first."""
        if self.shape.number is None or not self.rows:
            return None
        return self.rows[-1][self.columns.index(self.shape.number)]

    def summary(self) -> str:
        return f"<TailSnapshot of {self.app}.{self.stream}: {len(self.rows):,} of {self.total:,} events>"


@dataclass(frozen=True, repr=False, eq=False)
class Tail(FollowedStream[TailShape, TailSnapshot]):
    """The end of a stream. Its display in a notebook follows the stream. `follow` and `state` as in `Followed`."""

    def snapshot(self) -> TailSnapshot:
        """The current tail."""
        return TailCursor(self).advance()


class TailCursor(StreamCursor):
    """The state of one display of a tail. Thread-safe. `clock` gives the seconds since 1970."""

    def __init__(self, tail: Tail, clock: Callable[[], float] = time.time) -> None:
        shape = tail.shape
        most = 1 if shape.number is not None else LOOKED_AT if shape.latest is not None else shape.rows
        super().__init__(tail.ends, most, shape.latest, clock)
        self.tail = tail
        self._columns: tuple[str, ...] = ()
        self._rows: list[tuple[Any, ...]] = []
        self._by_key: dict[Any, tuple[Any, ...]] = {}

    def advance(self) -> TailSnapshot:
        """Read new outputs, unless it is paused. Raises SparkStreamError if they cannot be read."""
        with self._lock:
            total, waiting = self._read_on()
            return TailSnapshot(
                self.tail.app, self.tail.stream, self.tail.shape, self._columns, tuple(self._visible_rows()), total,
                self._since, self._left_out, self._paused, waiting, len(self._by_key),
            )  # fmt: skip

    def _add(self, frame: pd.DataFrame, new: int) -> int:
        self._columns = tuple(map(str, frame.columns))
        rows = frame_rows(frame)
        if self.tail.shape.latest is not None:
            return self._take_by_key(rows)
        self._rows = [*self._rows, *rows[-max(0, new) :]][-self._most :] if new else self._rows
        return min(new, len(rows), self._most)

    def _take_by_key(self, rows: Sequence[tuple[Any, ...]]) -> int:
        """Takes in the latest row of each key; how many of them are shown."""
        at = self._columns.index(str(self.tail.shape.latest))
        for row in rows:
            key = _key(row[at])
            self._by_key.pop(key, None)
            self._by_key[key] = row
        for key in list(self._by_key)[: max(0, len(self._by_key) - MOST_KEYS)]:
            del self._by_key[key]
        fresh = set(map(id, rows))
        return sum(id(row) in fresh for row in self._visible_rows())

    def _visible_rows(self) -> Sequence[tuple[Any, ...]]:
        shape = self.tail.shape
        if shape.latest is None:
            return self._rows[::-1] if shape.newest == "first" else self._rows
        # In the order of keys, so that a row keeps its place.
        return [self._by_key[k] for k in sorted(self._by_key)[: shape.rows]]


def _key(value: Any) -> tuple[int, Any]:
    """The sort key of a value. NaN sorts after all other values, null last; equal values have equal keys."""
    if value is None:
        return 2, 0
    return (1, 0) if value != value else (0, value)
