"""Records in memory by name: their declarations, for compiled loops (`pointers`) and for numpy.

A class marked `record` declares a record of 64-bit words. Its annotations are the fields, in order: `int`, `bool` or
`float` (a word each), and last, if need be, `Words` or a `Table`, which take the rest of a record whose length is known
only when it runs. A field `Annotated[..., Same("other")]` is another reading of the same word. On the class itself a
field is its offset in words.

A class marked `header` declares a record whose words are constants and registers, addresses of other memory, and
functions (its methods): the argument of all compiled functions.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")
C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class Same:
    """Marks a field that is another reading of the word of field `name`."""

    name: str


@dataclass(frozen=True)
class Columns:
    """Marks memory that has the fields of a record column by column; field `capacity` of the header tells how long a
    column is."""

    capacity: str


WRITTEN = "written"
"""Marks a word of the header, or memory, that compiled code writes."""

RECORDED = "recorded"
"""Marks memory whose writes compiled code records, so that the written blocks are known."""


class Words(Protocol):
    """A pointer to int64 (`Octets`: uint8)."""

    def __getitem__(self, i: int) -> int: ...
    def __setitem__(self, i: int, value: int) -> None: ...


class Octets(Words, Protocol):
    """A pointer to uint8."""


class Reals(Protocol):
    """A pointer to float64."""

    def __getitem__(self, i: int) -> float: ...
    def __setitem__(self, i: int, value: float) -> None: ...


class Pool(Generic[T]):
    """Records that are found by their offset in words, which is what other records refer to them by."""

    def __getitem__(self, offset: int) -> T:
        raise NotImplementedError


class Table(Generic[T]):
    """Records that are found by their number."""

    def __getitem__(self, number: int) -> T:
        raise NotImplementedError


class Grid(Protocol):
    """Columns that are found by number; [column, row]."""

    def __getitem__(self, at: tuple[int, int]) -> int: ...
    def __setitem__(self, at: tuple[int, int], value: int) -> None: ...


@dataclass(frozen=True)
class Field:
    """A field: its offset in words, and its `kind`: `int`, `bool`, `float`, `words`, `octets`, `reals`, `pool`,
    `table`, `grid`, `columns` or `method`. `item` names the record of a pool, a table or columns; `column_length` the
    field of the header that tells the length of columns; a method has `arguments`. `is_reading`: it is
    another reading of a word."""

    name: str
    offset: int
    kind: str
    item: str = ""
    is_written: bool = False
    is_recorded: bool = False
    column_length: str = ""
    arguments: int = 0
    is_reading: bool = False


@dataclass(frozen=True)
class Record:
    """The fields of a record by name, and its length in words (without a rest of unknown length)."""

    words: int
    fields: dict[str, Field]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The record for numpy, whose fields are 64-bit words; it has no rest."""
        fields = [f for f in self.fields.values() if f.offset < self.words]
        return np.dtype({
            "names": [f.name for f in fields],
            "formats": [np.float64 if f.kind == "float" else np.int64 for f in fields],
            "offsets": [8 * f.offset for f in fields],
            "itemsize": 8 * self.words,
        })  # fmt: skip


RECORDS: dict[str, Record] = {}
"""The declared records by class name."""

_SCALARS = {int: "int", bool: "bool", float: "float"}
_MEMORY = {Words: "words", Octets: "octets", Reals: "reals", Pool: "pool", Table: "table", Grid: "grid"}


def record(words: int = 0) -> Any:
    """Declares a class as a record, which takes at least `words` words."""

    def declare(cls: C) -> C:
        _declare(cls, words, has_rest=True)
        return cls

    return declare


def header(cls: C) -> C:
    """Declares a class as a header."""
    _declare(cls, 0, has_rest=False)
    return cls


def _declare(cls: type, least: int, has_rest: bool) -> None:
    fields: dict[str, Field] = {}
    offset = words = 0
    for name, annotation in get_type_hints(cls, include_extras=True).items():
        fields[name] = field = _field(name, offset, annotation, fields)
        if field.offset == offset:
            offset += 1
            words = offset if field.kind in _SCALARS.values() or not has_rest else words
    for name, method in [(n, f) for n, f in vars(cls).items() if callable(f) and not n.startswith("_")]:
        fields[name] = Field(name, offset, "method", arguments=method.__code__.co_argcount - 1)
        offset = words = offset + 1
    RECORDS[cls.__name__] = Record(max(words, least), fields)
    for field in fields.values():
        if field.kind != "method":
            setattr(cls, field.name, field.offset)


def _field(name: str, offset: int, annotation: Any, others: dict[str, Field]) -> Field:
    marks: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        marks = tuple(rest)
    items = get_args(annotation)
    kind = _SCALARS.get(annotation) or _MEMORY.get(get_origin(annotation) or annotation, "columns")
    item = annotation if kind == "columns" else items[0] if items else None
    field = Field(name, offset, kind, item.__name__ if item else "", WRITTEN in marks, RECORDED in marks)
    for mark in marks:
        if isinstance(mark, Same):
            field = replace(field, offset=others[mark.name].offset, is_reading=True)
            field = replace(field, is_written=others[mark.name].is_written)
        elif isinstance(mark, Columns):
            field = replace(field, column_length=mark.capacity)
    return field


def words_of(cls: type) -> int:
    """The length of a record in words."""
    return RECORDS[cls.__name__].words


def offset_of(cls: type, name: str) -> int:
    """The offset of a field in its record, in words."""
    return RECORDS[cls.__name__].fields[name].offset


def view_of(cls: type, words: np.ndarray[Any, Any]) -> Any:
    """The record that is the array `words`: its fields are the attributes, numbers all of them."""
    fields = sorted((f.offset, name) for name, f in RECORDS[cls.__name__].fields.items() if not f.is_reading)
    layout = [(name, ctypes.c_int64) for _, name in fields]
    structure: Any = type(cls.__name__, (ctypes.Structure,), {"_fields_": layout})
    return structure.from_buffer(words)


def columns_of(cls: type, columns: np.ndarray[Any, Any]) -> Any:
    """Columns (int64[columns, n]) of a record by name; a grid has all from its offset on."""
    *names, rest = RECORDS[cls.__name__].fields
    out = SimpleNamespace(**dict(zip(names, columns, strict=False)))
    setattr(out, rest, columns[len(names) :])
    return out


def dtype_of(cls: type) -> np.dtype[Any]:
    """A record for numpy."""
    return RECORDS[cls.__name__].dtype
