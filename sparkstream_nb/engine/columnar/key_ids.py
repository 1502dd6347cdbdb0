"""Dense ids for composite keys: group-by keys, partition keys, join keys.

A key is a tuple of column values. Each column is reduced to an int64, columns are combined pairwise, and every
distinct combination gets the next id (0, 1, 2 ...), which never changes while the node lives. Keys are equal when
their texts are, as in Siddhi's `GroupByKeyGenerator`: a null string and the text 'null' are one key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from .arrays import aligned_zeros, grown
from .bucket_hash import BLOCK, enter, found, keys_for, keys_of, larger, line_of
from .column_data import Array, Column, StringPool
from .eventlog import EventLog
from .jit import kernel, prefetch
from .rows import Rows

_NULL_KEY = np.int64(-(2**63))


@kernel
def _dense_ids(codes: Array, lut: Array, next_id: int, out: Array, first: Array) -> int:
    """Ids through a direct table; `first[k]` receives the row that introduced the k-th new id."""
    fresh = 0
    for i in range(len(codes)):
        c = np.uint64(codes[i])
        g = lut[c]
        if g < 0:
            g = np.int32(next_id)
            lut[c] = g
            first[fresh] = i
            fresh += 1
            next_id += 1
        out[i] = g
    return fresh


_LATE = 64


@kernel
def _in_turn(codes: Array, known: int, first: Array) -> int:
    """Number of codes that are not below `known`, if new codes appear in order: `known`, `known + 1` and so on; else
    -1. The row of each one's first occurrence goes into `first`. A block of rows is searched only if it has a new code.
    """
    fresh = 0
    for begin in range(0, len(codes), _LATE):
        end = min(begin + _LATE, len(codes))
        late = 0
        for i in range(np.uint64(begin), np.uint64(end)):
            late += codes[i] >= known + fresh
        for i in range(begin, end if late else begin):
            if codes[i] > known + fresh:
                return -1
            if codes[i] == known + fresh:
                first[fresh] = i
                fresh += 1
    return fresh


_ID = np.uint64(1 << 31)
"""The tag of the numbers of `IdTable`, and more than any id."""


@kernel
def _hash_ids(
    begin: int, values: Array, slots: Array, numbers: Array, next_id: int, lines: Array, out: Array, first: Array,
    fresh: int,
) -> tuple[int, int]:  # fmt: skip
    """Ids of values from `begin` on through a table whose numbers are ids, with `_ID`; stops when the table has to
    grow. Works by blocks, as `string_dictionary._encode`; half of `lines` has room for one. Returns (values done, new
    ids so far).
    """
    last = np.uint64(len(slots) - 1)
    most = keys_for(len(slots))
    end = len(values)
    side: Any = np.uint64(0)
    other: Any = np.uint64(BLOCK)
    for begun in range(begin, end + BLOCK, BLOCK):
        for later in range(np.uint64(begun), np.uint64(min(begun + BLOCK, end))):
            soon = line_of(values[later], last)
            prefetch(slots, soon)
            lines[later - np.uint64(begun) + side] = soon
        side, other = other, side
        if begun == begin:
            continue
        i: Any = np.uint64(begun - BLOCK)
        stop = np.uint64(min(begun, end))
        shift = side - i
        while True:
            while i < stop:  # rows with known groups
                known = found(slots, lines[i + shift], last, values[i], _ID, _ID)
                if known >= _ID:
                    break
                out[i] = np.int64(known)
                i += np.uint64(1)
            if i == stop:
                break
            if next_id >= most:
                done: Any = np.int64(i)
                return done, fresh
            key, j = values[i], lines[i + shift]
            enter(slots, numbers, j, last, key, np.uint64(next_id) | _ID)
            out[i] = next_id
            next_id += 1
            first[fresh] = np.int64(i)
            fresh += 1
            i += np.uint64(1)
    return end, fresh


class IdTable:
    """int64 → dense id, by hashing. State is an array."""

    def __init__(self) -> None:
        self.size = 0
        self._slots = aligned_zeros(128, np.uint64)
        self._lines = np.empty(2 * BLOCK, np.uint64)

    def assign(self, values: Array) -> tuple[Array, Array]:
        """Ids (int32[n]) of `values` (int64[n]), and the rows that introduced new ones, in id order."""
        n = len(values)
        out, first, words = np.empty(n, np.int32), np.empty(n, np.int64), values.view(np.uint64)
        known, done, fresh = self.size, 0, 0
        while True:
            numbers = self._slots.view(np.uint32)
            done, fresh = _hash_ids(done, words, self._slots, numbers, self.size, self._lines, out, first, fresh)
            self.size = known + fresh
            if done == n:
                return out, first[:fresh]
            self._slots = larger(self._slots, 4)

    def state(self) -> dict[str, Any]:
        return {"keys": keys_of(self._slots).view(np.int64)}

    def load(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.assign(np.asarray(state["keys"], np.int64))


def _codes(column: Column, strings: StringPool) -> Array:
    """Codes of texts; nulls get the code of the text 'null'."""
    if column.null is None:
        return column.values
    out: Array = np.where(column.null, np.int32(strings.code("null")), column.values)
    return out


def key_numbers(column: Column, strings: StringPool) -> Array:
    """int64[n]: equal numbers for values that are equal as group-by keys."""
    t, v = column.type, column.values
    if t is Type.STRING:
        return _codes(column, strings).astype(np.int64)
    if t is Type.OBJECT:
        return strings.encode(["null" if x is None else repr(x) for x in v.tolist()]).astype(np.int64)
    if t in (Type.FLOAT, Type.DOUBLE):
        out: Array = v.astype(np.float64).view(np.int64)
    else:
        out = v.astype(np.int64)
    if column.null is not None:
        out = np.where(column.null, _NULL_KEY, out)
    return out


_HALF = 33
"""Bits of a pair's right half: an int, and one bit for null."""


@kernel
def _pair_numbers(left: Array, right: Array, out: Array) -> None:
    """One number for each pair of a number that is at least 0 and below 2^31, and one of `_HALF` bits."""
    for i in range(len(out)):
        out[i] = np.int64(left[i]) << _HALF | np.int64(right[i])


class Keys:
    """Dense ids for tuples of column values; stores the values of every id as columns. `instances`: the first column is
    the number of a partition instance."""

    def __init__(self, types: Sequence[Type], strings: StringPool, *, instances: bool = False) -> None:
        self.types = tuple(types)
        self.strings = strings
        self.size = 0
        self._instances = instances
        self._lut: Array | None = None
        """The id of each text's code, -1 where it has none; None while ids are codes, as where all texts are keys."""
        self._singles = [IdTable() for _ in self.types]
        self._pairs = [IdTable() for _ in self.types[1:]]
        self._log = EventLog(self.types, partitioned=False, timed=False)

    @property
    def _direct(self) -> bool:
        return len(self.types) == 1 and self.types[0] is Type.STRING

    def ids(self, columns: Sequence[Column]) -> Array:
        """int32[n] ids of the rows of `columns`. Read-only: it may be the array of a column."""
        n = len(columns[0])
        if n == 0:
            return np.empty(0, np.int32)
        if self._direct:
            out, first = self._of_codes(_codes(columns[0], self.strings))
        else:
            out = self._number(0, columns[0])
            if len(columns) == 1:
                out, first = self._singles[0].assign(out)
            for i, table in enumerate(self._pairs, 1):
                pair = np.empty(n, np.int64)
                _pair_numbers(out, self._number(i, columns[i]), pair)
                out, first = table.assign(pair)
        if len(first):
            self._log.append(Rows([c.take(first) for c in columns], first, first, first))
            self.size += len(first)
        return out

    def _of_codes(self, codes: Array) -> tuple[Array, Array]:
        """The ids of texts' codes, and the rows that introduced new ones, in the order of their ids."""
        if self._lut is None:
            first = np.empty(len(codes), np.int64)
            fresh = _in_turn(codes, self.size, first)
            if fresh >= 0:
                return codes, first[:fresh]
            self._lut = np.arange(self.size, dtype=np.int32)
        self._lut = grown(self._lut, len(self.strings), -1)
        out, first = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
        return out, first[: _dense_ids(codes, self._lut, self.size, out, first)]

    def _number(self, i: int, column: Column) -> Array:
        """A number for each value of column `i` that a pair can take, or that a single column's table takes."""
        if len(self.types) == 1:
            return key_numbers(column, self.strings)
        if i == 0 and self._instances:
            return column.values
        if column.type is Type.STRING:
            return _codes(column, self.strings)
        if i > 0 and column.type is Type.INT:
            number: Array = column.values.view(np.uint32)
            return number if column.null is None else np.where(column.null, np.int64(1 << 32), number)
        return self._singles[i].assign(key_numbers(column, self.strings))[0]

    def columns(self) -> list[Column]:
        """The key values by id: one column per key attribute, `size` rows."""
        return self._log.between(0, self.size)

    def state(self) -> dict[str, Any]:
        return {"values": self.columns()}

    def save_state(self) -> dict[str, Any]:
        return {"values": self._log.save_state(0, self.size)["columns"]}

    def load(self, state: dict[str, Any]) -> None:
        self.__init__(self.types, self.strings, instances=self._instances)  # type: ignore[misc]
        values = state["values"]
        if len(values[0]):
            self.ids(values)
