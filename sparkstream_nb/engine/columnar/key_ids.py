"""Dense ids for composite keys: group-by keys, partition keys, join keys.

A key is a tuple of column values. Each column is reduced to an int64, columns are combined pairwise, and every
distinct combination gets the next id (0, 1, 2 ...), which never changes while the node lives. Values are equal as
Java's boxed ones are: 0.0 and -0.0 are two keys, NaN is one, and null is a key of its own. Only a null string and the
text 'null' are one key where Siddhi's keys are texts (`GroupByKeyGenerator`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..expressions.java_texts import object_text
from ..notation.intrinsics import prefetch
from ..notation.kernels import compiled, kernel, struct
from .arrays import grown
from .bucket_hash import BLOCK, BucketTable
from .column_data import Array, Column, Mask, StringPool
from .eventlog import EventLog
from .rows import Rows

_NULL_KEY = np.int64(-(2**63))
"""The number of null where no value has it: of ints and bools."""
_NULL_TEXT = np.int32(2**31 - 1)
"""The number of a null string that is not the text 'null': more codes of texts than a node has room for."""
_NAN = np.float64(np.nan).view(np.int64)
_NULL_REAL = np.int64(_NAN + 1)
"""The number of null among doubles: the bits of a NaN that `key_numbers` gives to no value."""


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
def _in_turn(codes: Array, first_new: int, first: Array) -> int:
    """Number of codes that are not below `first_new`, if new codes appear in order: `first_new`, `first_new + 1` and so
    on; else -1. The row of each one's first occurrence goes into `first`. A block of rows is searched only if it has a
    new code.
    """
    fresh = 0
    for begin in range(0, len(codes), _LATE):
        end = min(begin + _LATE, len(codes))
        late = 0
        for i in range(np.uint64(begin), np.uint64(end)):
            late += codes[i] >= first_new + fresh
        for i in range(begin, end if late else begin):
            if codes[i] > first_new + fresh:
                return -1
            if codes[i] == first_new + fresh:
                first[fresh] = i
                fresh += 1
    return fresh


_ID = np.uint64(1 << 31)
"""The tag of the numbers of `IdTable`, and more than any id."""


@struct
class IdTable:
    """int64 → dense id, by hashing."""

    table: BucketTable

    def __init__(self) -> None:
        self.size = 0
        self.table = BucketTable(128)
        self.lines = np.empty(2 * BLOCK, np.uint64)
        """The first slots of the buckets of two blocks of values."""
        self._null = -1

    def assign(self, values: Array, null: Mask | None = None) -> tuple[Array, Array]:
        """Ids (int32[n]) of `values` (int64[n]), and the rows that introduced new ones, in id order. The rows of `null`
        have an id of their own, whatever their values."""
        if null is None or not null.any():
            return self._assign(values)
        out = np.empty(len(values), np.int32)
        cut = int(null.argmax()) if self._null < 0 else 0
        out[:cut], fresh = self._assign(values[:cut])
        if self._null < 0:
            self._null = self.size
            self.size += 1
            fresh = np.append(fresh, cut)
        rest = cut + np.flatnonzero(~null[cut:])
        out[null] = self._null
        out[rest], later = self._assign(values[rest])
        return out, np.concatenate([fresh, rest[later]])

    def _assign(self, values: Array) -> tuple[Array, Array]:
        n = len(values)
        out, first, words = np.empty(n, np.int32), np.empty(n, np.int64), values.view(np.uint64)
        size_before, next_row = self.size, 0
        while True:
            next_row, self.size = self._look_up(next_row, words, size_before, out, first)
            if next_row == n:
                return out, first[: self.size - size_before]
            self.table = self.table.grown(4)

    @compiled
    def _look_up(self, begin: int, values: Array, size_before: int, out: Array, first: Array) -> tuple[int, int]:
        """Ids of values from `begin` on; numbers of the table are ids with `_ID`. The row of id `size_before + k` goes
        into `first[k]`. Stops when the table has to grow. Works by blocks, as `StringDictionary`; half of `lines` has
        room for one. Returns (values done, ids so far).
        """
        end = len(values)
        side: Any = np.uint64(0)
        other: Any = np.uint64(BLOCK)
        for block_start in range(begin, end + BLOCK, BLOCK):
            for later in range(np.uint64(block_start), np.uint64(min(block_start + BLOCK, end))):
                soon = self.table.line_of(values[later])
                prefetch(self.table.slots, soon)
                self.lines[later - np.uint64(block_start) + side] = soon
            side, other = other, side
            if block_start == begin:
                continue
            i: Any = np.uint64(block_start - BLOCK)
            stop = np.uint64(min(block_start, end))
            shift = side - i
            while True:
                while i < stop:  # rows with known groups
                    number = self.table.find(self.lines[i + shift], values[i], _ID, _ID)
                    if number >= _ID:
                        break
                    out[i] = np.int64(number)
                    i += np.uint64(1)
                if i == stop:
                    break
                if self.size >= self.table.most:
                    next_row: Any = np.int64(i)
                    return next_row, self.size
                self.table.enter(self.lines[i + shift], values[i], np.uint64(self.size) | _ID)
                out[i] = self.size
                first[self.size - size_before] = np.int64(i)
                self.size += 1
                i += np.uint64(1)
        return end, self.size


def _codes(column: Column, strings: StringPool, null_is_text: bool) -> Array:
    """Codes of texts; nulls get the code of the text 'null', or a number of their own."""
    if column.null is None:
        return column.values
    code = np.int32(strings.code("null")) if null_is_text else _NULL_TEXT
    out: Array = np.where(column.null, code, column.values)
    return out


def key_numbers(column: Column, strings: StringPool, *, null_is_text: bool = True) -> tuple[Array, Mask | None]:
    """(int64[n], mask of nulls): equal numbers for values that are equal as keys; the numbers of the rows in the mask
    mean nothing. There is a mask only of longs, as null has a number elsewhere. `null_is_text`: a null string is the
    text 'null'."""
    t, v = column.type, column.values
    if t is Type.STRING:
        return _codes(column, strings, null_is_text).astype(np.int64), None
    if t is Type.OBJECT:
        return strings.encode([object_text(x) for x in v.tolist()]).astype(np.int64), None
    if t is Type.LONG:
        return v.astype(np.int64), column.null
    if t in (Type.FLOAT, Type.DOUBLE):
        real = v.astype(np.float64)
        out: Array = real.view(np.int64)
        nan = np.isnan(real)
        if nan.any():
            out = np.where(nan, _NAN, out)
        return out if column.null is None else np.where(column.null, _NULL_REAL, out), None
    out = v.astype(np.int64)
    return out if column.null is None else np.where(column.null, _NULL_KEY, out), None


_HALF = 33
"""Bits of a pair's right half: an int, and one bit for null."""


@kernel
def _pair_numbers(left: Array, right: Array, out: Array) -> None:
    """One number for each pair of a number that is at least 0 and below 2^31, and one of `_HALF` bits."""
    for i in range(len(out)):
        out[i] = np.int64(left[i]) << _HALF | np.int64(right[i])


class Keys:
    """Dense ids for tuples of column values; stores the values of every id as columns. `instances`: the first column is
    the number of a partition instance. `null_is_text`: a null string is the text 'null'."""

    def __init__(
        self, types: Sequence[Type], strings: StringPool, *, instances: bool = False, null_is_text: bool = True
    ) -> None:
        self.types = tuple(types)
        self.strings = strings
        self.size = 0
        self._instances = instances
        self._null_is_text = null_is_text
        self._first_code = 0
        """The place in `_lut` of the first code: 1, behind the place of null, once a null came that is no text."""
        self._lut: Array | None = None
        """The id of each text's code, -1 where it has none; None while ids are codes, as where all texts are keys."""
        self._singles = [IdTable() for _ in self.types]
        self._pairs = [IdTable() for _ in self.types[1:]]
        self._log = EventLog(self.types, is_partitioned=False, has_times=False)

    @property
    def _direct(self) -> bool:
        return len(self.types) == 1 and self.types[0] is Type.STRING

    def ids(self, columns: Sequence[Column]) -> Array:
        """int32[n] ids of the rows of `columns`. Read-only: it may be the array of a column."""
        n = len(columns[0])
        if n == 0:
            return np.empty(0, np.int32)
        if self._direct:
            out, first = self._of_codes(self._direct_codes(columns[0]))
        elif len(columns) == 1:
            out, first = self._singles[0].assign(*self._key_numbers(columns[0]))
        else:
            out = self._number(0, columns[0])
            for i, table in enumerate(self._pairs, 1):
                pair = np.empty(n, np.int64)
                _pair_numbers(out, self._number(i, columns[i]), pair)
                out, first = table.assign(pair)
        if len(first):
            self._log.append(Rows([c.take(first) for c in columns], first, first, first))
            self.size += len(first)
        return out

    def _direct_codes(self, column: Column) -> Array:
        """The places in `_lut` of the ids of a single column of texts; codes while all ids are codes."""
        if self._null_is_text:
            return _codes(column, self.strings, True)
        if self._first_code == 0:
            if column.null is None or not column.null.any():
                return column.values
            ids = np.arange(self.size, dtype=np.int32) if self._lut is None else self._lut
            self._lut, self._first_code = np.append(np.int32(-1), ids), 1
        return column.values + np.int32(1)  # null is -1

    def _of_codes(self, codes: Array) -> tuple[Array, Array]:
        """The ids of texts' codes, and the rows that introduced new ones, in the order of their ids."""
        if self._lut is None:
            first = np.empty(len(codes), np.int64)
            fresh = _in_turn(codes, self.size, first)
            if fresh >= 0:
                return codes, first[:fresh]
            self._lut = np.arange(self.size, dtype=np.int32)
        self._lut = grown(self._lut, len(self.strings) + self._first_code, -1)
        out, first = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
        return out, first[: _dense_ids(codes, self._lut, self.size, out, first)]

    def _number(self, i: int, column: Column) -> Array:
        """A number for each value of column `i` that a pair can take."""
        if i == 0 and self._instances:
            return column.values
        if column.type is Type.STRING:
            return _codes(column, self.strings, self._null_is_text)
        if i > 0 and column.type is Type.INT:
            number: Array = column.values.view(np.uint32)
            return number if column.null is None else np.where(column.null, np.int64(1 << 32), number)
        return self._singles[i].assign(*self._key_numbers(column))[0]

    def _key_numbers(self, column: Column) -> tuple[Array, Mask | None]:
        return key_numbers(column, self.strings, null_is_text=self._null_is_text)

    def columns(self) -> list[Column]:
        """The key values by id: one column per key attribute, `size` rows."""
        return self._log.between(0, self.size)

    def state(self) -> dict[str, Any]:
        return {"values": self.columns()}

    def save_state(self) -> dict[str, Any]:
        return {"values": self._log.save_state(0, self.size)["columns"]}

    def load(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]
            self.types, self.strings, instances=self._instances, null_is_text=self._null_is_text
        )
        values = state["values"]
        if len(values[0]):
            self.ids(values)
