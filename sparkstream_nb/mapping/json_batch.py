"""Many plain JSON messages at once, by Arrow's reader, with the results of `json_reader.py`.

Arrow reads messages that are one object each with exactly the wanted fields, or, with paths, at least these. Messages
that it would read differently from Siddhi are left: null and missing fields, which are alike to it, unless missing ones
become null; whole numbers for doubles in messages by default; and numbers that are not finite.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ..engine.columnar.column_data import ARROW, Array
from ..engine.expressions.jsonpath import JsonNames, compile_path
from ..json_documents import json_object
from ..limits import MOST_NESTED
from ..plan.connectors.mapping import JsonSource, SourceMapping
from ..types import Schema, Type
from .attribute_values import Values
from .batch_readers import BatchReader, EventBatch

_BLOCK = 1 << 20
_READ = {**ARROW, Type.FLOAT: pa.float64()}
"""Arrow's types while reading: Siddhi makes floats of doubles' texts."""


def json_batch_reader(mapping: SourceMapping, schema: Schema) -> BatchReader | None:
    """The fast reader of a mapping; None if it has none."""
    nulls = not mapping.fail_on_missing
    if any(a.type is Type.OBJECT for a in schema):
        return None
    if mapping.places is None:
        if any(h is not None for h in mapping.headers):
            return None
        return _DefaultJsonBatchReader(schema, [(n,) for n in schema.names], nulls)
    assert isinstance(mapping.format, JsonSource)
    paths = _plain_paths(mapping.places) if mapping.format.enclosing == "$" else None
    return None if paths is None else _JsonBatchReader(schema, paths, nulls)


def _plain_paths(places: Sequence[object | None]) -> list[tuple[str, ...]] | None:
    """The names on the way to each place, none for one that is None; None where a place is no row of names, or one
    place is another, or is inside it."""
    paths: list[tuple[str, ...]] = []
    for place in places:
        parts = () if place is None else compile_path(str(place))
        if not all(isinstance(p, JsonNames) and len(p.names) == 1 for p in parts) or (place is not None and not parts):
            return None
        paths.append(tuple(p.names[0] for p in parts if isinstance(p, JsonNames)))
    sorted_paths = sorted(p for p in paths if p)
    return None if any(b[: len(a)] == a for a, b in itertools.pairwise(sorted_paths)) else paths


class _JsonBatchReader:
    """`paths` are the names on the way to each attribute; without names it is not read. `nulls`: fields that are
    missing are null."""

    unexpected = "ignore"

    def __init__(self, schema: Schema, paths: list[tuple[str, ...]], nulls: bool) -> None:
        self.schema, self.paths, self.nulls = schema, paths, nulls

    def __call__(self, messages: Sequence[bytes]) -> EventBatch | None:
        """See `BatchReader`."""
        return self.lines(messages, self.paths)

    def lines(self, messages: Sequence[bytes], paths: list[tuple[str, ...]]) -> EventBatch | None:
        data = b"\n".join(messages)
        plain = self._plain(data, messages)
        message_numbers = np.flatnonzero(plain)
        if len(message_numbers) < len(messages):
            messages = [messages[i] for i in message_numbers.tolist()]
            data = b"\n".join(messages)
        table = self._table(data, messages, paths) if messages else None
        if table is None or table.num_rows != len(messages):
            return None
        keep = np.ones(len(messages), np.bool_)
        columns: list[Values] = []
        for a, path in zip(self.schema, paths, strict=True):
            if not path:
                columns.append(pa.nulls(len(messages), ARROW[a.type]))
                continue
            column = _at(table, path)
            if column.null_count and not self.nulls:
                keep &= column.is_valid().to_numpy(zero_copy_only=False)
            if a.type in (Type.DOUBLE, Type.FLOAT):
                keep &= self._alike(a.type, column.fill_null(0.5).to_numpy(zero_copy_only=False))
                if a.type is Type.FLOAT:
                    column = column.cast(pa.float32(), safe=False)
            columns.append(column)
        if not keep.all():
            mask = pa.array(keep)
            columns = [c.filter(mask) for c in columns if isinstance(c, pa.Array)]
        return EventBatch(columns, message_numbers[keep])

    def _alike(self, type: Type, values: Array) -> Array:
        """Mask of the numbers that mean the same to Siddhi."""
        return np.isfinite(values)

    def _plain(self, data: bytes, messages: Sequence[bytes]) -> Array:
        """Mask of the messages that begin and end as objects do, and are not deep; `data` has all of them, with a line
        break between two. The join is unambiguous: the sequence "}", line break, "{" occurs nowhere inside an object.
        """
        raw = np.frombuffer(data, np.uint8)
        sizes = np.fromiter(map(len, messages), np.int64, len(messages))
        ends = np.cumsum(sizes + 1) - 1
        plain: Array = sizes >= 2
        at = np.flatnonzero(plain)
        plain[at] = (raw[(ends - sizes)[at]] == ord("{")) & (raw[ends[at] - 1] == ord("}"))
        if self.unexpected == "ignore":  # ignored values may be deep
            brackets = np.flatnonzero((raw == ord("{")) | (raw == ord("[")))
            plain &= np.diff(np.searchsorted(brackets, ends), prepend=0) <= MOST_NESTED
        return plain

    def _table(self, data: bytes, messages: Sequence[bytes], paths: list[tuple[str, ...]]) -> pa.Table | None:
        try:
            data.isascii() or data.decode()
            return pa.json.read_json(
                pa.BufferReader(data),
                pa.json.ReadOptions(block_size=max(_BLOCK, 2 * max(map(len, messages)) + 2)),
                pa.json.ParseOptions(
                    explicit_schema=self._schema(paths),
                    newlines_in_values=data.count(b"\n") >= len(messages) or b"\r" in data,
                    unexpected_field_behavior=self.unexpected,
                ),
            )
        except (UnicodeDecodeError, pa.ArrowException):
            return None

    def _schema(self, paths: list[tuple[str, ...]]) -> pa.Schema:
        tree: dict[str, Any] = {}
        for a, path in zip(self.schema, paths, strict=True):
            if path:
                at = tree
                for name in path[:-1]:
                    at = at.setdefault(name, {})
                at[path[-1]] = _READ[a.type]
        return pa.schema(_fields(tree))


class _DefaultJsonBatchReader(_JsonBatchReader):
    """Batch reader of a mapping by default, in which a message may have its attributes in an object `event`."""

    unexpected = "error"

    def __call__(self, messages: Sequence[bytes]) -> EventBatch | None:
        return self.lines(messages, [("event", *p) for p in self.paths] if _is_wrapped(messages[0]) else self.paths)

    def _alike(self, type: Type, values: Array) -> Array:
        finite = np.isfinite(values)
        return finite & (values != np.floor(values)) if type is Type.DOUBLE else finite


def _is_wrapped(message: bytes) -> bool:
    return isinstance(json_object(message).get("event"), dict)


def _fields(tree: dict[str, Any]) -> list[pa.Field]:
    return [pa.field(n, pa.struct(_fields(t)) if isinstance(t, dict) else t) for n, t in tree.items()]


def _at(table: pa.Table, path: tuple[str, ...]) -> pa.Array:
    """The values at a path; null where anything on the way is."""
    column = table.column(path[0])
    column = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column
