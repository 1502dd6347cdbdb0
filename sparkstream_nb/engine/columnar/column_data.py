"""Columns: the memory layout of values inside a node.

A column is a numpy array and a null mask. Strings are int32 codes of the node's dictionary (`StringPool`), so that
grouping, joining and comparing strings are integer work; objects (lists, maps, sets) are a numpy object array.

| type | `values.dtype` | at null positions |
| --- | --- | --- |
| STRING | int32 code | -1 |
| INT, LONG | int32, int64 | 0 |
| FLOAT, DOUBLE | float32, float64 | 0.0 |
| BOOL | bool | False |
| OBJECT | object | None |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from ...types import Type
from .arrays import Array as Array
from .arrays import Mask as Mask
from .arrays import arrow_of
from .string_pool import StringPool as StringPool

DTYPES: dict[Type, np.dtype[Any]] = {
    Type.STRING: np.dtype(np.int32),
    Type.INT: np.dtype(np.int32),
    Type.LONG: np.dtype(np.int64),
    Type.FLOAT: np.dtype(np.float32),
    Type.DOUBLE: np.dtype(np.float64),
    Type.BOOL: np.dtype(np.bool_),
    Type.OBJECT: np.dtype(object),
}

ARROW: dict[Type, pa.DataType] = {
    Type.STRING: pa.string(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.BOOL: pa.bool_(),
}


class Column:
    """Values of one attribute for `len(column)` rows. Treat both arrays as immutable."""

    __slots__ = ("null", "type", "values")

    def __init__(self, type: Type, values: Array, null: Mask | None = None) -> None:
        self.type = type
        self.values = values
        self.null = null

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: Array) -> Column:
        """The rows at `index`, in its order. Every index must be in range."""
        return Column(self.type, self.values.take(index), None if self.null is None else self.null[index])

    def slice(self, a: int, b: int) -> Column:
        """Rows a ≤ i < b, as a view."""
        return Column(self.type, self.values[a:b], None if self.null is None else self.null[a:b])

    def nulls(self) -> Mask:
        """The null mask, made if there is none."""
        return np.zeros(len(self), np.bool_) if self.null is None else self.null

    def try_concat(self, others: Sequence[Column]) -> Column | None:
        """The concatenation of this column and the others if it is possible without gathering values; else None."""
        return None

    @staticmethod
    def empty(type: Type) -> Column:
        return Column(type, np.empty(0, DTYPES[type]))

    @staticmethod
    def all_null(type: Type, n: int) -> Column:
        """`n` nulls."""
        if type is Type.STRING:
            values: Array = np.full(n, -1, np.int32)
        elif type is Type.OBJECT:
            values = np.full(n, None, object)
        else:
            values = np.zeros(n, DTYPES[type])
        return Column(type, values, np.ones(n, np.bool_))

    @staticmethod
    def constant(type: Type, value: Any, n: int, strings: StringPool) -> Column:
        """`value` `n` times (None: nulls)."""
        if value is None:
            return Column.all_null(type, n)
        if type is Type.OBJECT:
            out = np.empty(n, object)
            out[:] = [value] * n
            return Column(type, out)
        return Column(type, np.full(n, strings.code(value) if type is Type.STRING else value, DTYPES[type]))

    @staticmethod
    def of(type: Type, values: Sequence[Any], strings: StringPool) -> Column:
        """A column of Python values; None is null. INT and LONG wrap as in Java."""
        n = len(values)
        null = np.fromiter((v is None for v in values), np.bool_, n)
        if type is Type.STRING:
            data: Array = strings.encode(values)
        elif type is Type.OBJECT:
            data = np.empty(n, object)
            for i, v in enumerate(values):
                data[i] = v
        elif type in (Type.INT, Type.LONG):
            wide = np.array([0 if v is None else ((int(v) + 2**63) % 2**64) - 2**63 for v in values], np.int64)
            data = wide.astype(DTYPES[type])
        else:
            data = np.array([0 if v is None else v for v in values], DTYPES[type])
        return Column(type, data, null if null.any() else None)

    @staticmethod
    def from_arrow(type: Type, array: pa.Array | pa.ChunkedArray, strings: StringPool) -> Column:
        """A column over an Arrow array of `ARROW[type]`; zero copy for numbers without nulls.

        OBJECT columns take any Arrow array, as Python values.
        """
        if type is Type.OBJECT:
            return Column.of(type, array.to_pylist(), strings)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
            if isinstance(array, pa.ChunkedArray):  # no chunks at all
                return Column.empty(type)
        if type is Type.STRING:
            return Texts(array, strings)
        null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        if array.type != ARROW[type]:
            array = array.cast(ARROW[type])
        if null is not None:
            array = array.fill_null(False if type is Type.BOOL else 0)
        return Column(type, writable(array.to_numpy(zero_copy_only=False)), null)

    @property
    def many(self) -> bool:
        """True if this is a string column without codes in which nearly all values are distinct (see `Texts`)."""
        return False

    def texts(self, strings: StringPool) -> pa.Array:
        """An Arrow string array of texts. If `strings.halves` is true afterwards, some may differ from the originals.
        """
        return strings.to_arrow(self.values).dictionary_decode()

    def to_arrow(self, strings: StringPool) -> pa.Array:
        """An Arrow array: for strings a dictionary array, or a string array if they are `many`; else `ARROW[type]`.
        Raises TypeError for OBJECT, which has no Arrow type."""
        if self.type is Type.STRING:
            return strings.to_arrow(self.values)
        if self.type is Type.OBJECT:
            raise TypeError("an object column has no Arrow form")
        return arrow_of(self.values, ARROW[self.type], self.null)

    def to_list(self, strings: StringPool) -> list[Any]:
        """Python values, None for null."""
        if self.type is Type.STRING:
            return list(strings.decode(self.values))
        out: list[Any] = self.values.tolist()
        if self.null is not None:
            for i in np.flatnonzero(self.null).tolist():
                out[i] = None
        return out


_SAMPLE, _DIFFERENT = 1024, 960
"""A column has many texts if at least `_DIFFERENT` of a sample of `_SAMPLE` are different; of 10,000 kinds 974 are."""
_FIRST, _FEW = 64, 56
"""If fewer than `_FEW` of the first `_FIRST` are different, no sample is taken, which costs ten times as much; of 1,000
kinds 62 are.
"""


def nearly_distinct(texts: pa.Array) -> bool:
    """True if nearly all of a long array of texts are different, by a sample. A short array is not worth it."""
    if len(texts) < 4 * _SAMPLE or len(texts.slice(0, _FIRST).unique()) < _FEW:
        return False
    sample = texts.take(pa.array(np.arange(_SAMPLE) * (len(texts) // _SAMPLE)))
    return len(sample.unique()) >= _DIFFERENT


class Texts(Column):
    """A string column held as an Arrow array. Codes are looked up lazily, for the requested rows only.

    If nearly all strings are distinct (`many`), they are processed and output without codes, so that the dictionary
    does not grow.
    """

    __slots__ = ("_array", "_codes", "_many", "_strings")

    def __init__(self, array: pa.Array, strings: StringPool, *, many: bool | None = None) -> None:
        """`many` None: a sample is to tell."""
        self.type = Type.STRING
        self.null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        self._array, self._strings = array, strings
        self._codes: Array | None = None
        self._many = many

    def __len__(self) -> int:
        return len(self._array)

    @property
    def values(self) -> Array:  # type: ignore[override]
        if self._codes is None:
            self._codes = self._strings.encode_arrow(self._array)
        return self._codes

    @property
    def many(self) -> bool:
        if self._codes is not None:
            return False
        if self._many is None:
            self._many = self._array.type == pa.string() and nearly_distinct(self._array)
        return self._many

    def texts(self, strings: StringPool) -> pa.Array:
        return self._array if self.many else super().texts(strings)

    def take(self, index: Array) -> Column:
        if self.many and len(index) <= 2 * len(self):
            return Texts(self._array.take(pa.array(index)), self._strings, many=True)
        null = None if self.null is None else self.null[index]
        if self._codes is None and 2 * len(index) < len(self):
            return Column(self.type, self._strings.encode_arrow(self._array, index), null)
        return Column(self.type, self.values.take(index), null)

    def slice(self, a: int, b: int) -> Column:
        if self._codes is not None:
            return super().slice(a, b)
        return Texts(self._array.slice(a, b - a), self._strings, many=self._many)

    def try_concat(self, others: Sequence[Column]) -> Column | None:
        texts = [o for o in others if isinstance(o, Texts) and o.many]
        if not self.many or len(texts) < len(others):
            return None
        return Texts(pa.concat_arrays([t._array for t in (self, *texts)]), self._strings, many=True)

    def to_arrow(self, strings: StringPool) -> pa.Array:
        return self._array if self.many else super().to_arrow(strings)

    def to_list(self, strings: StringPool) -> list[Any]:
        return list(self._array.to_pylist()) if self.many else super().to_list(strings)


class UnreadColumn(Column):
    """A column that is never read; its values were left in their file. Rows with it can be passed on and joined.
    Reading its values, which the plan rules out (`plan.needed`), raises RuntimeError.
    """

    __slots__ = ("_n",)

    def __init__(self, type: Type, n: int) -> None:
        self.type, self._n = type, n

    def __len__(self) -> int:
        return self._n

    @property
    def values(self) -> Array:  # type: ignore[override]
        raise RuntimeError("the values of an attribute are asked for that was to be left out")

    @property
    def null(self) -> Mask | None:  # type: ignore[override]
        raise RuntimeError("the nulls of an attribute are asked for that was to be left out")

    def take(self, index: Array) -> Column:
        return UnreadColumn(self.type, len(index))

    def slice(self, a: int, b: int) -> Column:
        return UnreadColumn(self.type, len(range(self._n)[a:b]))


class SelectionView(Sequence[Column]):
    """A selection vector: the columns `events` at the positions `pos` (int64), gathered lazily.

    The values at these positions must not be moved.
    """

    __slots__ = ("_cache", "events", "pos")

    def __init__(self, events: Sequence[Column], pos: Array) -> None:
        self.events, self.pos = events, pos
        self._cache: dict[int, Column] = {}

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, i: int) -> Column: ...

    @overload
    def __getitem__(self, i: slice) -> list[Column]: ...

    def __getitem__(self, i: int | slice) -> Column | list[Column]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        if i not in self._cache:
            c = self.events[i].take(self.pos)
            if c.null is not None and not c.null.any():
                c.null = None
            self._cache[i] = c
        return self._cache[i]

    def take(self, index: Array) -> SelectionView:
        """The rows at `index`."""
        return SelectionView(self.events, self.pos[index])

    def pick(self, places: Sequence[int]) -> SelectionView:
        """The columns at `places`."""
        out = SelectionView([self.events[p] for p in places], self.pos)
        out._cache = {i: self._cache[p] for i, p in enumerate(places) if p in self._cache}
        return out


def take_columns(columns: Sequence[Column], index: Array) -> Sequence[Column]:
    """The rows of columns at `index`."""
    return columns.take(index) if isinstance(columns, SelectionView) else [c.take(index) for c in columns]


class _Memory:
    """Memory that `array` looks at, as numpy takes it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def writable(array: Array) -> Array:
    """The same memory without numpy's read-only flag, because numba compiles a loop again for read-only arrays. Columns
    are never written to.
    """
    return array if array.flags.writeable or len(array) == 0 else np.asarray(_Memory(array))


def concat(parts: Sequence[Column]) -> Column:
    """Columns of one type, one after the other. Raises ValueError for no parts."""
    if not parts:
        raise ValueError("no columns to concatenate")
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(p, UnreadColumn) for p in parts):
        return UnreadColumn(parts[0].type, sum(map(len, parts)))
    column = parts[0].try_concat(parts[1:])
    if column is not None:
        return column
    null = None
    if any(p.null is not None for p in parts):
        null = np.concatenate([p.nulls() for p in parts])
    return Column(parts[0].type, np.concatenate([p.values for p in parts]), null)
