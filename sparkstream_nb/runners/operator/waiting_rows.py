"""Rows of a node that wait for the watermark, and the order in which the node takes them.

A run is a message's rows, in the order of their times. Of a run a prefix is taken at a time, so what waits is stored
once and not written again: the rest of a run is its message and a number. If most of a message's rows are taken before
it is stored at all, the others alone are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...engine.columnar.column_data import Array
from ...engine.state.node_batch import InputBatch, StreamRows
from ...nodes.batches import concat_coded


@dataclass
class WaitingRun:
    """Rows `start` and later of a message of a stream. `digest`: of the message in the node's state. `message`: its
    bytes, while they are not there. `came`: the numbers of its task and of the message in it."""

    stream: str
    rows: StreamRows
    digest: str = ""
    message: bytes = b""
    came: tuple[int, int] = (0, 0)
    start: int = 0

    def __len__(self) -> int:
        return len(self.rows.ts) - self.start

    @property
    def first(self) -> int:
        """The time (ms) of the first row that waits."""
        return int(self.rows.ts[self.start])

    def take_until(self, until: int | None) -> StreamRows | None:
        """The rows up to a time (ms), that one included; None: all. They wait no longer."""
        ts = self.rows.ts
        end = len(ts) if until is None else int(np.searchsorted(ts, until, "right"))
        if end <= self.start:
            return None
        rows = self._slice(end)
        self.start = end
        return rows

    @property
    def rest(self) -> StreamRows:
        """The rows that wait."""
        return self._slice(len(self.rows.ts))

    def _slice(self, end: int) -> StreamRows:
        ts, columns = self.rows.ts[self.start : end], [c[self.start : end] for c in self.rows.columns]
        return StreamRows(self.rows.step[:0], ts, columns)

    @property
    def is_done(self) -> bool:
        """True if none of its rows waits."""
        return not len(self)


def merge_by_time(runs: Sequence[tuple[str, StreamRows]]) -> InputBatch | None:
    """Runs of rows as steps in the order of their times; equal times in the order of `runs`. None without rows."""
    if not runs:
        return None
    ts = np.concatenate([rows.ts for _, rows in runs])
    if bool(np.all(ts[1:] >= ts[:-1])):
        return _number(runs, ts, np.arange(len(ts)))
    order = np.argsort(ts, kind="stable")
    step = np.empty(len(ts), np.int64)
    step[order] = np.arange(len(ts))
    return _number(runs, ts[order], step)


def join_as_they_come(runs: Sequence[tuple[str, StreamRows]]) -> InputBatch | None:
    """Runs of rows as steps, one run after the other; None without rows."""
    if not runs:
        return None
    ts = np.concatenate([rows.ts for _, rows in runs])
    return _number(runs, ts, np.arange(len(ts)))


def _number(runs: Sequence[tuple[str, StreamRows]], clock: Array, step: Array) -> InputBatch:
    """The steps of runs: `step` has the number of each row, in the order of `runs`."""
    by_stream: dict[str, list[tuple[Array, StreamRows]]] = {}
    begin = 0
    for stream, rows in runs:
        end = begin + len(rows.ts)
        by_stream.setdefault(stream, []).append((step[begin:end], rows))
        begin = end
    return InputBatch(clock, {stream: _join(parts) for stream, parts in by_stream.items()})


def _join(parts: Sequence[tuple[Array, StreamRows]]) -> StreamRows:
    """Rows of one stream in the order of their steps."""
    if len(parts) == 1:
        step, rows = parts[0]
        return StreamRows(step, rows.ts, rows.columns)
    step = np.concatenate([s for s, _ in parts])
    ts = np.concatenate([rows.ts for _, rows in parts])
    columns: list[Any] = [concat_coded(c) for c in zip(*(rows.columns for _, rows in parts), strict=True)]
    all_rows = StreamRows(step, ts, columns)
    return all_rows if bool(np.all(step[1:] > step[:-1])) else all_rows.take(np.argsort(step, kind="stable"))
