"""The events that a window, join or pattern holds: columns that grow at the end and are trimmed at the head."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..notation.kernels import struct
from .arrays import wider
from .blocks import Blocks, Tracked
from .column_data import DTYPES, Array, Column, SelectionView
from .rows import Rows

_OWN = 4
"""Who holds a buffer that is its log's alone: the log, a list of all its buffers, a loop over that, and who asks."""


def _widen_array(array: Array, low: int, end: int, size: int) -> Array:
    """Room for `size`: the elements between `low` and `end`, and any behind it."""
    out = np.empty(size, array.dtype)
    out[: end - low] = array[low:end]
    return out


def _kept(array: Array, keep: Array, size: int) -> Array:
    """Copy the elements at `keep` into a new array of length `size`."""
    out = np.empty(size, array.dtype)
    np.take(array, keep, out=out[: len(keep)], mode="clip")
    return out


@struct
class EventLog:
    """Rows `start` ≤ i < `end` are held; positions index the buffers and change only in `compact`.

    Buffers grow in proportion, so appending costs the same per event regardless of the number held. Without
    `is_partitioned`, the events are all of one instance, and `instance` is empty; without `has_times`, their timestamps
    are never read, and `ts` is empty.
    """

    def __init__(self, types: Sequence[Type], *, is_partitioned: bool = True, has_times: bool = True) -> None:
        self.types, self.is_partitioned, self.has_times = tuple(types), is_partitioned, has_times
        self.end = 0
        self.capacity = 0
        """Number of rows that the buffers have room for."""
        self._values = [np.empty(0, DTYPES[t]) for t in self.types]
        self._null: list[Array | None] = [None] * len(self.types)
        self.ts = np.empty(0, np.int64)
        self.instance = np.empty(0, np.int32)
        self.base = 0
        """The number of the event at position 0, counted from the first that came, as long as nothing is left out
        between two that are held (`compact`)."""
        self._saved_to = 0
        """The number after the last event that was ever saved."""
        self._blocks: list[Blocks] = []
        """Saved blocks of each column, of each null mask, of timestamps and of instances."""

    def room(self, n: int, low: int) -> int:
        """Makes room for `n` more. If that needs new buffers, the events before `low` are dropped; returns the decrease
        of positions.
        """
        if self.end + n <= self.capacity:
            return 0
        live = self.end - low
        self.move(low, live + n + live // 3, live + n + live // 4)
        return low

    def fit(self, low: int) -> int:
        """Drop the events before `low`, and room, if two thirds of it suffice for the events from `low` on; returns the
        decrease of positions.
        """
        live = self.end - low
        if 2 * self.capacity <= 3 * live + 2048:
            return 0
        self.move(low, live)
        return low

    def move(self, low: int, size: int, least: int | None = None) -> None:
        """Move the events from `low` on into buffers of `size`. Reuses the buffers if they hold at least `least` (None:
        `size`), are not much larger than `size` and have no other references: the system has to clear new ones.
        """
        end = self.end
        self.base += low
        if (size if least is None else least) <= self.capacity <= size + size // 8 and self._alone():
            for a in self._buffers():
                a[: end - low] = a[low:end]
            self.end = end - low
            return
        self.capacity = size
        if self.has_times:
            self.ts = _widen_array(self.ts, low, end, size)
        if self.is_partitioned:
            self.instance = _widen_array(self.instance, low, end, size)
        self._values = [_widen_array(v, low, end, size) for v in self._values]
        self._null = [None if m is None else _widen_array(m, low, end, size) for m in self._null]
        self.end = end - low

    def _buffers(self) -> list[Array]:
        row_arrays = [a for a, is_held in ((self.ts, self.has_times), (self.instance, self.is_partitioned)) if is_held]
        return [*row_arrays, *self._values, *(m for m in self._null if m is not None)]

    def _alone(self) -> bool:
        """True if nothing else refers to the buffers or to views of them, by Python's reference counts."""
        return all(sys.getrefcount(a) <= _OWN for a in self._buffers())

    def append(self, rows: Rows) -> int:
        """Adds rows at the end; returns the position of the first of them."""
        n, at = len(rows), self.end
        end = at + n
        if self.base + at < self._saved_to:  # the table took rows back
            self._forget(at)
        if end > self.capacity:
            self.move(0, max(end, wider(at), 16))
        if self.has_times:
            self.ts[at:end] = rows.ts
        if self.is_partitioned:
            self.instance[at:end] = 0 if rows.instance is None else rows.instance
        for i, c in enumerate(rows.columns):
            self._values[i][at:end] = c.values
            mask = self._null[i]
            if c.null is not None:
                if mask is None:
                    mask = self._null[i] = np.zeros(self.capacity, np.bool_)
                mask[at:end] = c.null
            elif mask is not None:
                mask[at:end] = False
        self.end = end
        return at

    def columns(self, index: Array) -> list[Column]:
        """Values at positions `index`."""
        return list(self.at(index))

    def at(self, index: Array) -> SelectionView:
        """`columns`, gathered when they are read, even if the log has changed by then."""
        return SelectionView(
            [Column(t, v, m) for t, v, m in zip(self.types, self._values, self._null, strict=True)], index
        )

    def between(self, a: int, b: int) -> list[Column]:
        """Values at the positions a ≤ i < b, as views."""
        out = []
        for t, v, m in zip(self.types, self._values, self._null, strict=True):
            null = None if m is None else m[a:b]
            out.append(Column(t, v[a:b], null if null is not None and null.any() else None))
        return out

    def column(self, i: int, index: Array) -> Column:
        """Values of attribute `i` at positions `index`."""
        m = self._null[i]
        null = None if m is None else m[index]
        return Column(self.types[i], self._values[i][index], null if null is not None and null.any() else None)

    def values(self, i: int) -> Array:
        """The buffer of attribute `i`, by position, for compiled loops."""
        return self._values[i]

    def nulls(self, i: int) -> Array:
        """Null mask of attribute `i`, by position, for compiled loops that may set nulls."""
        mask = self._null[i]
        if mask is None:
            mask = self._null[i] = np.zeros(self.capacity, np.bool_)
        return mask

    def null_mask(self, i: int) -> Array | None:
        """The null mask of attribute `i`, by position; None if nothing is null."""
        return self._null[i]

    def assign(self, i: int, positions: Array, column: Column) -> None:
        """New values of attribute `i` at positions."""
        self._values[i][positions] = column.values
        if self._blocks:
            self._blocks[2 * i].touch(positions + self.base)
            self._blocks[2 * i + 1].touch(positions + self.base)
        mask = self._null[i]
        if column.null is not None and mask is None:
            mask = self._null[i] = np.zeros(self.capacity, np.bool_)
        if mask is not None:
            mask[positions] = column.nulls()

    def compact(self, keep: Array, size: int | None = None) -> None:
        """Keeps only positions `keep` (increasing), in room for `size` (None: a third more than they are); they become
        0, 1, 2 ..."""
        size = len(keep) + len(keep) // 3 if size is None else size
        if self._blocks:
            low = int(keep[0]) if len(keep) else self.end
            moves = np.flatnonzero(keep - np.arange(low, low + len(keep)))
            self.base += low
            self._forget(int(moves[0]) if len(moves) else len(keep))
        self._values = [_kept(v, keep, size) for v in self._values]
        self._null = [None if m is None else _kept(m, keep, size) for m in self._null]
        self.end, self.capacity = len(keep), size
        if self.has_times:
            self.ts = _kept(self.ts, keep, size)
        if self.is_partitioned:
            self.instance = _kept(self.instance, keep, size)

    @property
    def bytes(self) -> int:
        """Bytes that the held values take, buffers' slack not counted."""
        return self.bytes_from(0)

    def bytes_from(self, low: int) -> int:
        """`bytes` without the events before `low`."""
        return (self.end - low) * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of one event."""
        per = sum(v.itemsize for v in self._values) + sum(1 for m in self._null if m is not None)
        return per + self.ts.itemsize * self.has_times + self.instance.itemsize * self.is_partitioned

    def state(self, index: Array) -> dict[str, Any]:
        """The events at `index` as plain data."""
        instance = self.instance[index] if self.is_partitioned else np.zeros(len(index), np.int32)
        ts = self.ts[index] if self.has_times else np.zeros(len(index), np.int64)
        return {"columns": self.columns(index), "ts": ts, "part": instance}

    def save_state(self, a: int, b: int) -> dict[str, Any]:
        """The events at the positions a ≤ i < b as plain data that is saved by change. `load` takes it as well."""
        if not self._blocks:
            sizes = [size for v in self._values for size in (v.itemsize, 1)]
            self._blocks = [Blocks(size) for size in (*sizes, self.ts.itemsize, self.instance.itemsize)]
        for blocks in self._blocks:
            blocks.let_go(self.base)
        self._saved_to = max(self._saved_to, self.base + b)
        *blocks_, ts, instance = self._blocks

        def track_array(blocks: Blocks, array: Array) -> Tracked:
            return Tracked.of(blocks, self.base + a, array[a:b])

        columns = []
        for i, (t, v, m) in enumerate(zip(self.types, self._values, self._null, strict=True)):
            if t is Type.OBJECT:
                columns += self.between(a, b)[i : i + 1]
                continue
            null = None if m is None else track_array(blocks_[2 * i + 1], m)
            columns.append(Column(t, track_array(blocks_[2 * i], v), null))  # type: ignore[arg-type]
        return {
            "columns": columns, "n": b - a, "first": self.base + a,
            "ts": track_array(ts, self.ts) if self.has_times else None,
            "part": track_array(instance, self.instance) if self.is_partitioned else None,
        }  # fmt: skip

    def touch_ts(self, positions: Array) -> None:
        """The timestamps at positions were written."""
        if self._blocks:
            self._blocks[-2].touch(positions + self.base)

    def _forget(self, at: int) -> None:
        """Everything from the position `at` on is another event than the one that was saved."""
        self._saved_to = min(self._saved_to, self.base + at)
        for blocks in self._blocks:
            blocks.forget(self.base + at)

    def load(self, state: dict[str, Any]) -> None:
        self.__init__(self.types, is_partitioned=self.is_partitioned, has_times=self.has_times)  # type: ignore[misc]
        self.append(rows_of(state))
        self.base = state.get("first", 0)


def rows_of(state: dict[str, Any]) -> Rows:
    """The events of a log's state. Parts that the state lacks are never read; they are filled with zeros."""
    n = state["n"] if "n" in state else len(state["ts"])
    ts, zeros = state["ts"], np.zeros(n, np.int64)
    return Rows(state["columns"], zeros if ts is None else ts, zeros, zeros, None, state["part"])
