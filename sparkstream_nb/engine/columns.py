"""Columns: how values lie in memory inside a node.

A column is a numpy array and a null mask. Strings are int32 codes of the node's dictionary (`Strings`), so that
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

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from ..types import Type
from .arrays import Array as Array
from .arrays import Mask as Mask
from .texts import TextArray, TextTable

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


class Strings:
    """The dictionary of a node: every string it holds, by code. Codes are stable while the node lives.

    It is kept twice, in Python and in Arrow's form, as most texts come and go in the latter and are never looked at.
    Each gets what the other has more when it is asked for.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._arrow = TextArray()
        self._table = TextTable()
        self.halves = False
        """Whether Arrow's form lacks a text: one with half a character."""

    def __len__(self) -> int:
        return max(len(self._texts), len(self._arrow))

    @property
    def texts(self) -> list[str]:
        """By code. Not to be changed."""
        known = len(self._texts)
        if known < len(self._arrow):
            added = self._arrow.array().slice(known).to_pylist()
            self._texts += added
            self._codes.update(zip(added, range(known, known + len(added)), strict=True))
        return self._texts

    def code(self, text: str | None) -> int:
        """The code of `text`, new if need be; -1 for None."""
        return self._code(text, self.texts)

    def _code(self, text: str | None, texts: list[str]) -> int:
        """As `code`; `texts` are all there are."""
        if text is None:
            return -1
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(texts)
            texts.append(text)
        return found

    def text(self, code: int) -> str | None:
        """The string behind `code`; None for -1."""
        return None if code < 0 else self.texts[code]

    def encode(self, texts: Iterable[str | None]) -> Array:
        """int32 codes of Python strings."""
        known = self.texts
        return np.fromiter((self._code(t, known) for t in texts), dtype=np.int32)

    def encode_arrow(self, array: pa.Array, rows: Array | None = None) -> Array:
        """int32 codes of an Arrow string or dictionary array, or of its `rows` alone."""
        if pa.types.is_dictionary(array.type):
            table = np.append(self.encode_arrow(array.dictionary), np.int32(-1)).astype(np.int32)
            indices = array.indices
            if indices.null_count:
                indices = indices.fill_null(len(table) - 1)
            at = indices.to_numpy(zero_copy_only=False)
            out: Array = table[at if rows is None else at[rows]]
            return out
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            array = array.cast(pa.string())
        self._in_arrow()
        out, *new = self._table.encode(array, rows)
        self._arrow.extend(*new)
        return out

    def _in_arrow(self) -> None:
        """Brings Arrow's form up to what came from Python."""
        if len(self._arrow) < len(self._texts):
            added = self._texts[len(self._arrow) :]
            self._table.encode(pa.array([t.encode("utf-8", "surrogatepass") for t in added], pa.binary()))
            # Half a character is a text to an app, but none in UTF-8: there it becomes "?", as Java writes it.
            written = [t.encode("utf-8", "replace") for t in added]
            self.halves = self.halves or any(b"?" in w and w.decode() != t for w, t in zip(written, added, strict=True))
            sizes = np.array([len(w) for w in written])
            texts = np.column_stack([np.cumsum(sizes) - sizes, sizes])
            self._arrow.extend(texts, np.frombuffer(b"".join(written), np.uint8))

    def decode(self, codes: Array) -> list[str | None]:
        """Python strings of codes."""
        texts = self.texts
        return [texts[c] if c >= 0 else None for c in codes.tolist()]

    def to_arrow(self, codes: Array) -> pa.Array:
        """An Arrow dictionary array (int32 → string) over codes; the dictionary is shared between calls."""
        self._in_arrow()
        mask = codes < 0
        indices = _in_arrow(codes, pa.int32(), mask if mask.any() else None)
        # Not `safe`, which looks at every index: codes are never beyond the end.
        return pa.DictionaryArray.from_arrays(indices, self._arrow.array(), safe=False)


def _in_arrow(values: Array, type: pa.DataType, null: Mask | None) -> pa.Array:
    """An Arrow array over the memory of `values`, but for booleans, which are bits there. (`pa.array` goes through the
    nulls one by one.)"""
    data = _bits(values) if pa.types.is_boolean(type) else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type, len(values), [None if null is None else _bits(~null), data])


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


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
        return Column(self.type, self.values[index], None if self.null is None else self.null[index])

    def slice(self, a: int, b: int) -> Column:
        """Rows a ≤ i < b, as a view."""
        return Column(self.type, self.values[a:b], None if self.null is None else self.null[a:b])

    def nulls(self) -> Mask:
        """The null mask, made if there is none."""
        return np.zeros(len(self), np.bool_) if self.null is None else self.null

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
    def constant(type: Type, value: Any, n: int, strings: Strings) -> Column:
        """`value` `n` times (None: nulls)."""
        if value is None:
            return Column.all_null(type, n)
        if type is Type.OBJECT:
            out = np.empty(n, object)
            out[:] = [value] * n
            return Column(type, out)
        return Column(type, np.full(n, strings.code(value) if type is Type.STRING else value, DTYPES[type]))

    @staticmethod
    def of(type: Type, values: Sequence[Any], strings: Strings) -> Column:
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
    def from_arrow(type: Type, array: pa.Array | pa.ChunkedArray, strings: Strings) -> Column:
        """A column over an Arrow array of `ARROW[type]`; zero copy for numbers without nulls.

        OBJECT columns take any Arrow array, as Python values.
        """
        if type is Type.OBJECT:
            return Column.of(type, array.to_pylist(), strings)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
            if isinstance(array, pa.ChunkedArray):  # no chunks at all
                return Column.empty(type)
        null: Mask | None = None
        if array.null_count:
            null = array.is_null().to_numpy(zero_copy_only=False)
        if type is Type.STRING:
            return _Texts(array, null, strings)
        if array.type != ARROW[type]:
            array = array.cast(ARROW[type])
        if null is not None:
            array = array.fill_null(False if type is Type.BOOL else 0)
        return Column(type, writable(array.to_numpy(zero_copy_only=False)), null)

    def to_arrow(self, strings: Strings) -> pa.Array:
        """An Arrow array: dictionary for strings, else `ARROW[type]`. OBJECT raises TypeError: it has no Arrow form."""
        if self.type is Type.STRING:
            return strings.to_arrow(self.values)
        if self.type is Type.OBJECT:
            raise TypeError("an object column has no Arrow form")
        return _in_arrow(self.values, ARROW[self.type], self.null)

    def to_list(self, strings: Strings) -> list[Any]:
        """Python values, None for null."""
        if self.type is Type.STRING:
            return list(strings.decode(self.values))
        out: list[Any] = self.values.tolist()
        if self.null is not None:
            for i in np.flatnonzero(self.null).tolist():
                out[i] = None
        return out


class _Texts(Column):
    """An Arrow array of strings, whose codes are looked up when somebody asks for them, and only those asked for."""

    __slots__ = ("_array", "_codes", "_strings")

    def __init__(self, array: pa.Array, null: Mask | None, strings: Strings) -> None:
        self.type, self.null = Type.STRING, null
        self._array, self._strings = array, strings
        self._codes: Array | None = None

    def __len__(self) -> int:
        return len(self._array)

    @property
    def values(self) -> Array:  # type: ignore[override]
        if self._codes is None:
            self._codes = self._strings.encode_arrow(self._array)
        return self._codes

    def take(self, index: Array) -> Column:
        null = None if self.null is None else self.null[index]
        if self._codes is None and 2 * len(index) < len(self):
            return Column(self.type, self._strings.encode_arrow(self._array, index), null)
        return Column(self.type, self.values[index], null)

    def slice(self, a: int, b: int) -> Column:
        if self._codes is not None:
            return super().slice(a, b)
        return _Texts(self._array.slice(a, b - a), None if self.null is None else self.null[a:b], self._strings)


class Held(Sequence[Column]):
    """Columns of events that lie somewhere, at the positions `pos` (int64), gathered when somebody asks for them.

    `events` are the columns there. Nobody may move what lies at the positions.
    """

    __slots__ = ("_known", "events", "pos")

    def __init__(self, events: Sequence[Column], pos: Array) -> None:
        self.events, self.pos = events, pos
        self._known: dict[int, Column] = {}

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
        if i not in self._known:
            c = self.events[i].take(self.pos)
            if c.null is not None and not c.null.any():
                c.null = None
            self._known[i] = c
        return self._known[i]

    def take(self, index: Array) -> Held:
        """The rows at `index`."""
        return Held(self.events, self.pos[index])

    def pick(self, places: Sequence[int]) -> Held:
        """The columns at `places`."""
        out = Held([self.events[p] for p in places], self.pos)
        out._known = {i: self._known[p] for i, p in enumerate(places) if p in self._known}
        return out


def take_columns(columns: Sequence[Column], index: Array) -> Sequence[Column]:
    """The rows of columns at `index`."""
    return columns.take(index) if isinstance(columns, Held) else [c.take(index) for c in columns]


class _Memory:
    """Memory that `array` looks at, as numpy takes it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def writable(array: Array) -> Array:
    """The same memory without numpy's mark that it must not be written to, as compiled loops are made anew for arrays
    that have it. Nobody writes into a column.
    """
    return array if array.flags.writeable or len(array) == 0 else np.asarray(_Memory(array))


def concat(parts: Sequence[Column]) -> Column:
    """Columns of one type, one after the other. Raises ValueError for no parts."""
    if not parts:
        raise ValueError("no columns to concatenate")
    if len(parts) == 1:
        return parts[0]
    null = None
    if any(p.null is not None for p in parts):
        null = np.concatenate([p.nulls() for p in parts])
    return Column(parts[0].type, np.concatenate([p.values for p in parts]), null)
