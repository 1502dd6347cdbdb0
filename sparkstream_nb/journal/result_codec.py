"""Outputs of nodes as bytes: events and partials in Arrow, errors in JSON lines, answers packed.

Encoded in the workers, decoded where the micro-batch is committed (`result_rows.py`, `commit.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..engine.columnar.column_data import StringPool
from ..engine.expressions.java_values import with_whole_characters
from ..engine.state.node_batch import Emitted, RetrievalAnswer
from ..engine.state.snapshot import pack, unpack
from ..errors import SparkStreamError

_OBJECT = {b"type": b"object"}
_ESCAPE_OF_SURROGATE = b"\\ud"
"""The beginning of a character beyond U+FFFF, or of half of one, in JSON that is ASCII."""


def to_ipc(table: pa.RecordBatch | pa.Table) -> bytes:
    """An Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    out: bytes = sink.getvalue().to_pybytes()
    return out


def from_ipc(blob: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()


def emitted_table(events: Emitted, base: int, *, dictionary_encoded: bool = False) -> pa.RecordBatch:
    """Columns `step` (numbered through the app's life), `ts`, then the attributes under their names.

    Strings are spelt out, as a node's dictionary may hold far more than one output uses, unless they are to be
    `dictionary_encoded`; objects are packed one by one.
    """
    arrays = [pa.array(events.step + base, pa.int64()), pa.array(events.ts, pa.int64())]
    fields = [pa.field("step", pa.int64()), pa.field("ts", pa.int64())]
    for name, column in zip(events.names, events.columns, strict=True):
        metadata = None
        if isinstance(column, list):
            strings = StringPool()
            column = pa.array([None if v is None else pack(v, strings) for v in column], pa.binary())
            metadata = _OBJECT
        elif pa.types.is_dictionary(column.type) and not (dictionary_encoded and len(column.dictionary) <= len(column)):
            column = column.dictionary_decode()
        if dictionary_encoded and column.type == pa.string():
            column = column.dictionary_encode()
        arrays.append(column)
        fields.append(pa.field(name, column.type, metadata=metadata))
    return pa.record_batch(arrays, schema=pa.schema(fields))


def column_values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Python values of a column of `emitted_table`."""
    values = column.to_pylist()
    if field.metadata == _OBJECT:
        strings = StringPool()
        return [None if v is None else _in_utf8(v, unpack(v, strings)) for v in values]
    return list(values)


def _in_utf8(blob: bytes, value: Any) -> Any:
    """An object's value out of a packed blob or a JSON text: halves of surrogate pairs, which a program of the user's
    could neither print nor write, become question marks, as in a string (and as Java writes them)."""
    return with_whole_characters(value) if _ESCAPE_OF_SURROGATE in blob else value


def is_object(field: pa.Field) -> bool:
    """True if the column holds packed objects."""
    return bool(field.metadata == _OBJECT)


def error_lines(errors: Sequence[Sequence[Any]]) -> bytes:
    """Errors (stream, timestamp, values, reason) as JSON lines; values that JSON lacks become text."""
    return b"".join(json.dumps(e, default=str).encode() + b"\n" for e in errors)


def errors_of(blob: bytes) -> list[list[Any]]:
    """The inverse of `error_lines`."""
    errors = []
    for line in blob.splitlines():
        stream, ts, values, reason = json.loads(line)
        errors.append([stream, ts, _in_utf8(line, values), reason])
    return errors


@dataclass(frozen=True)
class QueryFailed:
    """An on-demand query that failed: the class of the error, and its message."""

    kind: str
    message: str

    @staticmethod
    def of(error: SparkStreamError) -> QueryFailed:
        return QueryFailed(type(error).__name__, str(error))


def encode_answer(answer: RetrievalAnswer | QueryFailed) -> bytes:
    """An answer to an on-demand query, or its failure."""
    if isinstance(answer, QueryFailed):
        return json.dumps({"kind": answer.kind, "message": answer.message}).encode()
    return pack({"columns": [list(c) for c in answer.columns], "rows": answer.rows}, StringPool())


def answer_of(blob: bytes) -> RetrievalAnswer | QueryFailed:
    """The inverse of `encode_answer`."""
    if blob.startswith(b"{"):
        return QueryFailed(**json.loads(blob))
    answer = unpack(blob, StringPool())
    return RetrievalAnswer([(n, t) for n, t in answer["columns"]], answer["rows"])
