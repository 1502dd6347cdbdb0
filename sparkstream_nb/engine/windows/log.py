"""The events that a window, join or pattern holds: columns that grow at the end and are trimmed at the head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import DTYPES, Array, Column
from ..rows import Rows


class EventLog:
    """Rows `start` ≤ i < `end` are held; positions are those of the buffers and change only in `compact`.

    Buffers double when full, so appending costs the same per event whatever is held.
    """

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self.end = 0
        self._values = [np.empty(0, DTYPES[t]) for t in self.types]
        self._null: list[Array | None] = [None] * len(self.types)
        self.ts = np.empty(0, np.int64)
        self.part = np.empty(0, np.int32)

    def append(self, rows: Rows) -> int:
        """Adds rows at the end; returns the position of the first of them."""
        n, at = len(rows), self.end
        end = at + n
        if end > len(self.ts):
            self.ts, self.part = grown(self.ts, end), grown(self.part, end)
            self._values = [grown(v, len(self.ts), None if v.dtype == object else 0) for v in self._values]
            self._null = [None if m is None else grown(m, len(self.ts), False) for m in self._null]
        self.ts[at:end] = rows.ts
        self.part[at:end] = 0 if rows.part is None else rows.part
        for i, c in enumerate(rows.columns):
            self._values[i][at:end] = c.values
            mask = self._null[i]
            if c.null is not None:
                if mask is None:
                    mask = self._null[i] = np.zeros(len(self.ts), np.bool_)
                mask[at:end] = c.null
            elif mask is not None:
                mask[at:end] = False
        self.end = end
        return at

    def columns(self, index: Array) -> list[Column]:
        """Values at positions `index`."""
        out = []
        for t, v, m in zip(self.types, self._values, self._null, strict=True):
            null = None if m is None else m[index]
            out.append(Column(t, v[index], null if null is not None and null.any() else None))
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
        """Which values of attribute `i` are null, by position, for compiled loops that may make some."""
        mask = self._null[i]
        if mask is None:
            mask = self._null[i] = np.zeros(len(self.ts), np.bool_)
        return mask

    def null_mask(self, i: int) -> Array | None:
        """The null mask of attribute `i`, by position; None where nothing is null."""
        return self._null[i]

    def assign(self, i: int, positions: Array, column: Column) -> None:
        """New values of attribute `i` at positions."""
        self._values[i][positions] = column.values
        mask = self._null[i]
        if column.null is not None and mask is None:
            mask = self._null[i] = np.zeros(len(self.ts), np.bool_)
        if mask is not None:
            mask[positions] = column.nulls()

    def compact(self, keep: Array) -> None:
        """Keeps only positions `keep` (increasing); they become 0, 1, 2 ..."""
        n = len(keep)
        self._values = [v[keep] for v in self._values]
        self._null = [None if m is None else m[keep] for m in self._null]
        self.ts, self.part, self.end = self.ts[keep], self.part[keep], n

    @property
    def bytes(self) -> int:
        """Bytes that the held values take, buffers' slack not counted."""
        per = sum(v.itemsize for v in self._values) + sum(1 for m in self._null if m is not None)
        return self.end * (per + self.ts.itemsize + self.part.itemsize)

    def state(self, index: Array) -> dict[str, Any]:
        """The events at `index` as plain data."""
        return {"columns": self.columns(index), "ts": self.ts[index], "part": self.part[index]}

    def load(self, state: dict[str, Any]) -> None:
        n = len(state["ts"])
        self.__init__(self.types)  # type: ignore[misc]
        zeros = np.zeros(n, np.int64)
        self.append(Rows(state["columns"], state["ts"], zeros, zeros, None, state["part"]))
