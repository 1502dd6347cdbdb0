"""The event log: every event that a pattern has taken and may still need, by log number.

Number 0 is no event, number 1 an event without values. The log keeps, for an event, its timestamp, the
words that filters read (`Derived` columns), whether they are null or could not be computed (`FAILURE`), and the
attributes that are read later. Every batch appends to it, and it is trimmed to the events that partials refer to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.blocks import Blocks, Tracked
from ..columnar.column_data import DTYPES, Array, Column, Mask
from .filter_program import Derived
from .machine_memory import FAILURE

FIRST = 2
"""The first number of a real event."""


class GrowingColumn:
    """An append-only column. The first `before` rows are null. Columns returned before stay valid."""

    __slots__ = ("_null", "_values", "before", "full", "n", "type")

    def __init__(self, type: Type, before: int) -> None:
        self.type, self.before = type, before
        self.full = True
        """True if no other row is null."""
        self.n = 0
        self._values = np.empty(0, DTYPES[type])
        self._null = np.empty(0, np.bool_)
        self.append(Column.all_null(type, before))

    def append(self, column: Column) -> None:
        """Adds the rows of `column` at the end."""
        end = self.n + len(column)
        if end > len(self._values):
            size = max(end, 2 * len(self._values))
            self._values, self._null = _longer(self._values, self.n, size), _longer(self._null, self.n, size)
        self._values[self.n : end] = column.values
        self._null[self.n : end] = False if column.null is None else column.null
        self.full = self.full and (column.null is None or self.n == 0)
        self.n = end

    def take(self, index: Array) -> Column:
        """The rows at `index`."""
        null = index < self.before if self.full else self._null[index]
        return Column(self.type, self._values[index], null if null.any() else None)

    def compact(self, index: Array) -> GrowingColumn:
        """A new column with the first `before` rows and those at `index`."""
        out = GrowingColumn(self.type, self.before)
        out.append(self.take(index))
        return out

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return self._values.itemsize

    @property
    def bytes(self) -> int:
        """Bytes of the rows."""
        return self.n * (self._values.itemsize + 1)

    def save_state(self, values: Blocks, null: Blocks) -> dict[str, Any]:
        """All rows, saved by change; `values` and `null` are the saved blocks of the two arrays."""
        rows: Column = Column(self.type, self._values[: self.n])
        if self.type is not Type.OBJECT:
            rows = Column(self.type, Tracked.of(values, 0, rows.values))  # type: ignore[arg-type]
        return {"rows": rows, "null": Tracked.of(null, 0, self._null[: self.n]), "full": self.full}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `save_state`."""
        self._values, self._null, self.full = state["rows"].values, state["null"], state["full"]
        self.n = len(self._null)


Key = tuple[int, int, int]
"""Key of a kept column: stream, processor (-1 for an attribute of the stream itself), attribute."""


class PatternLog:
    """`derived_columns`: the columns of words, with their values for the two special events in `special` (one column
    each, of two rows). `kept_types`: the types of the columns to keep.

    `row` is the row of an event in the kept columns of its stream; None for a single stream, whose kept columns have
    the rows of the log.
    """

    def __init__(
        self,
        streams: int,
        derived_columns: Sequence[Derived],
        special: Sequence[Column],
        kept_types: Mapping[Key, Type],
    ) -> None:
        self.derived_columns = list(derived_columns)
        self.width = max(1, len(self.derived_columns))
        self._special = list(special)
        self._types = dict(kept_types)
        self._streams = streams
        self._before = FIRST if streams == 1 else 1
        self.clear()

    def clear(self) -> None:
        """Empties the log."""
        self.n = FIRST
        self.times = np.full(16, -1, np.int64)
        self.row = None if self._streams == 1 else np.zeros(16, np.int64)
        self.stream = np.full(16, -1, np.int8)
        self.words = np.zeros((self.width, 16), np.int64)
        self.null = np.ones((self.width, 16), np.uint8)
        self.row_counts = [self._before] * self._streams
        self.columns = {k: GrowingColumn(t, self._before) for k, t in self._types.items()}
        self._blocks: dict[Any, Blocks] = {}
        for i, column in enumerate(self._special):
            self._write(i, slice(0, FIRST), column)

    def _known(self, what: Any, itemsize: int) -> Blocks:
        """Saved blocks of one of the arrays."""
        if what not in self._blocks:
            self._blocks[what] = Blocks(itemsize)
        return self._blocks[what]

    def _write(self, i: int, where: slice | Array, column: Column) -> None:
        if column.type in (Type.FLOAT, Type.DOUBLE):
            self.words[i].view(np.float64)[where] = column.values
        else:
            self.words[i, where] = column.values
        self.null[i, where] = 0 if column.null is None else column.null

    def append(
        self,
        times: Array,
        stream: Array,
        places: Sequence[Array | None],
        counts: Sequence[int],
        derived_values: Mapping[int, Column],
        kept_values: Mapping[Key, Column],
        failed_masks: Mapping[int, Mask] | None = None,
    ) -> int:
        """Adds events in their order; returns the number of the first.

        `times`, `stream`: int64[n], int[n]. `places[s]`: positions of the rows of stream s among them (None: all of
        them, in order), `counts[s]` how many; `derived_values` by number of the derived column and `kept_values` by
        key, over the rows of their stream; `failed_masks` by number marks the values that could not be computed.
        """
        base, n = self.n, len(times)
        end = base + n
        if end > len(self.times):
            size = max(end, 2 * len(self.times))
            self.times, self.words, self.null = (_longer(a, self.n, size) for a in (self.times, self.words, self.null))
            if self.row is not None:
                self.row, self.stream = _longer(self.row, self.n, size), _longer(self.stream, self.n, size)
        self.times[base:end] = times
        if self.row is not None:
            self.stream[base:end] = stream
            for s, count in enumerate(counts):
                if count:
                    place = places[s]
                    at: slice | Array = slice(base, end) if place is None else base + place
                    self.row[at] = np.arange(self.row_counts[s], self.row_counts[s] + count)
                    self.row_counts[s] += count
            for i, d in enumerate(self.derived_columns):
                if d.expr.type is Type.STRING:  # codes are saved, also of other streams' events
                    self.words[i, base:end] = -1
        for i, column in derived_values.items():
            place = places[self.derived_columns[i].stream]
            where = slice(base, end) if place is None else base + place
            self._write(i, where, column)
            if failed_masks is not None and i in failed_masks:
                self.null[i, where] = np.where(failed_masks[i], FAILURE, self.null[i, where])
        for key, column in kept_values.items():
            self.columns[key].append(column)
        self.n = end
        return base

    def trim(self, is_used: Array) -> Array:
        """Keeps only the events where `is_used` (bool[n]) is set; returns their new numbers."""
        keep = np.flatnonzero(is_used[FIRST:]) + FIRST
        new = np.zeros(self.n, np.int64)
        new[:FIRST] = np.arange(FIRST)
        new[keep] = np.arange(FIRST, FIRST + len(keep))
        both = np.concatenate([np.arange(FIRST), keep])
        if self.row is None:
            self.columns = {key: column.compact(keep) for key, column in self.columns.items()}
        else:
            row = np.zeros(len(both), np.int64)
            stream = self.stream[both]
            for s in range(self._streams):
                mine = stream == s
                index = self.row[both[mine]]
                for key in [k for k in self.columns if k[0] == s]:  # matches may still look at the old columns
                    self.columns[key] = self.columns[key].compact(index)
                self.row_counts[s] = 1 + len(index)
                row[mine] = np.arange(1, self.row_counts[s])
            self.row, self.stream = row, stream
        self.times = self.times[both]
        self.words, self.null = np.take(self.words, both, 1), np.take(self.null, both, 1)
        self.n = len(both)
        self._blocks.clear()
        return new

    def save_state(self) -> dict[str, Any]:
        """The whole log, including events that partials do not refer to, saved by change."""
        n = self.n

        def track_array(what: Any, array: Array) -> Tracked:
            return Tracked.of(self._known(what, array.itemsize), 0, array[:n])

        words: list[Any] = [track_array(("words", i), self.words[i]) for i in range(self.width)]
        for i, d in enumerate(self.derived_columns):
            if d.expr.type is Type.STRING:
                words[i] = Column(Type.STRING, words[i])
        kept_columns = [
            c.save_state(self._known((key, 0), c.itemsize), self._known((key, 1), 1))
            for key, c in sorted(self.columns.items())
        ]
        several = None if self.row is None else [track_array("row", self.row), track_array("stream", self.stream)]
        return {
            "times": track_array("times", self.times), "several": several, "words": words, "kept": kept_columns,
            "null": [track_array(("null", i), self.null[i]) for i in range(self.width)],
            "stored": list(self.row_counts),
        }  # fmt: skip

    def load_saved(self, state: dict[str, Any]) -> None:
        """The inverse of `save_state`."""
        self.clear()
        self.times, self.n = state["times"], len(state["times"])
        if state["several"] is not None:
            self.row, self.stream = state["several"]
        self.words = np.stack([w.values if isinstance(w, Column) else w for w in state["words"]]).astype(np.int64)
        self.null, self.row_counts = np.stack(state["null"]), list(state["stored"])
        for (_, c), s in zip(sorted(self.columns.items()), state["kept"], strict=True):
            c.load(s)

    def state(self) -> dict[str, Any]:
        """All events as plain data; words as columns of their types, since codes of strings are the node's."""
        live = slice(FIRST, self.n)
        stream = np.zeros(self.n - FIRST, np.int64) if self.row is None else self.stream[live].astype(np.int64)
        derived_values, failed_rows = [], []
        for i, d in enumerate(self.derived_columns):
            mine = np.flatnonzero(stream == d.stream) + FIRST
            failed_rows.append(np.flatnonzero(self.null[i, mine] == FAILURE))
            source = self.words[i].view(np.float64) if d.real else self.words[i]
            null = self.null[i, mine].astype(np.bool_)
            derived_values.append(
                Column(d.expr.type, source[mine].astype(DTYPES[d.expr.type]), null if null.any() else None)
            )
        kept_columns = [c.take(np.arange(c.before, c.n)) for _, c in sorted(self.columns.items())]
        return {
            "times": self.times[live].copy(),
            "stream": stream,
            "derived": derived_values,
            "failed": failed_rows,
            "kept": kept_columns,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        self.clear()
        stream = state["stream"]
        places = [np.flatnonzero(stream == s) for s in range(self._streams)]
        failed_masks = {i: np.isin(np.arange(len(d)), state["failed"][i]) for i, d in enumerate(state["derived"])}
        self.append(
            state["times"], stream, places, [len(p) for p in places], dict(enumerate(state["derived"])),
            dict(zip(sorted(self.columns), state["kept"], strict=True)), failed_masks,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """Bytes of the events held."""
        per = (8 if self.row is None else 17) + 9 * self.width
        return self.n * per + sum(c.bytes for c in self.columns.values())


def _longer(array: Array, count: int, n: int) -> Array:
    """`array` with `n` places along its last axis, of which the first `count` are kept and the others hold anything."""
    out = np.empty((*array.shape[:-1], n), array.dtype)
    out[..., :count] = array[..., :count]
    return out
