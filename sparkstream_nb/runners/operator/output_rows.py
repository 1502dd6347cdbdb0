"""Outputs of nodes as rows of the operator's frame: which output, its time and node, and a struct for each output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.cases import jsonable
from ...engine.columnar.columns import ARROW
from ...engine.state.batch import Emitted, EventError, UnreadAttribute
from ...ingest.ingest import plain, python_values
from ...types import Schema, Type
from .column_types import SPARK
from .spec import ERRORS, LATE, NODE, OUTPUT, TIMESTAMP, OperatorSpec

_ERROR_FIELDS = {"query": pa.string(), "stream": pa.string(), "message": pa.string(), "row": pa.string()}
_LATE_FIELDS = {"stream": pa.string(), "row": pa.string()}
_TIMESTAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class LateRow:
    """A row that came after the watermark had passed its time (ms)."""

    stream: str
    ts: int
    values: list[Any]


def output_schema(spec: OperatorSpec) -> str:
    """The columns of the operator's frame, as Spark writes a schema."""
    structs = [f"`{name}` struct<{_fields(schema)}>" for name, schema in spec.outputs]
    errors = ", ".join(f"{name}: string" for name in _ERROR_FIELDS)
    late = ", ".join(f"{name}: string" for name in _LATE_FIELDS)
    own = [f"{OUTPUT} string", f"{TIMESTAMP} timestamp", f"{NODE} int"]
    return ", ".join([*own, *structs, f"{ERRORS} struct<{errors}>", f"{LATE} struct<{late}>"])


def _fields(schema: Schema) -> str:
    return ", ".join(f"`{a.name.replace('`', '``')}`: {SPARK[a.type]}" for a in schema)


class OutputRows:
    """Rows of a node's outputs, as record batches of the operator's frame."""

    def __init__(self, spec: OperatorSpec, node: int) -> None:
        self._node = node
        self._types = {name: pa.struct(_arrow_fields(schema)) for name, schema in spec.outputs}
        self._types |= {ERRORS: pa.struct(_ERROR_FIELDS), LATE: pa.struct(_LATE_FIELDS)}
        own = {OUTPUT: pa.string(), TIMESTAMP: _TIMESTAMP, NODE: pa.int32()}
        self.schema = pa.schema([*own.items(), *self._types.items()])
        self.found: list[pa.RecordBatch] = []

    def put_events(self, output: str, events: Emitted) -> None:
        """Adds the events of an output."""
        if len(events):
            schema = self._types[output]
            columns = [_spark_column(c, f.type) for c, f in zip(events.columns, schema, strict=True)]
            self._put(output, events.ts, pa.StructArray.from_arrays(columns, fields=list(schema)))

    def put_errors(self, errors: Iterable[EventError]) -> None:
        """Adds errors of events, in the order of `errors`."""
        listed = list(errors)
        if listed:
            rows = [(e.query, e.stream, e.message, _json(e.values)) for e in listed]
            self._put_texts(ERRORS, [e.ts for e in listed], rows)

    def put_late(self, late: Sequence[LateRow]) -> None:
        """Adds late rows."""
        if late:
            self._put_texts(LATE, [row.ts for row in late], [(row.stream, _json(row.values)) for row in late])

    def _put_texts(self, output: str, times: Sequence[int], rows: Sequence[Sequence[str]]) -> None:
        fields = list(self._types[output])
        columns = [pa.array(list(c), pa.string()) for c in zip(*rows, strict=True)]
        self._put(output, np.array(times, np.int64), pa.StructArray.from_arrays(columns, fields=fields))

    def _put(self, output: str, ts: Any, struct: pa.StructArray) -> None:
        n = len(ts)
        times = pa.array(ts, pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(_TIMESTAMP, safe=False)
        names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), [output]).dictionary_decode()
        arrays = [names, times, pa.array(np.full(n, self._node, np.int32))]
        arrays += [struct if name == output else pa.nulls(n, type) for name, type in self._types.items()]
        self.found.append(pa.record_batch(arrays, schema=self.schema))

    def take(self) -> list[pa.RecordBatch]:
        """The batches since the last call."""
        found, self.found = self.found, []
        return found


def _arrow_fields(schema: Schema) -> list[tuple[str, pa.DataType]]:
    return [(a.name, pa.string() if a.type is Type.OBJECT else ARROW[a.type]) for a in schema]


def _spark_column(column: Any, type: pa.DataType) -> pa.Array:
    """A column of an output as Spark takes it: texts without a dictionary, objects as JSON."""
    if isinstance(column, list):
        return pa.array([None if v is None else _json(v) for v in column], type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _json(value: Any) -> str:
    return json.dumps(jsonable(value))


def values_of(columns: Sequence[Any], positions: Sequence[int]) -> list[list[Any]]:
    """The values of rows at `positions`; None for an attribute that is not read."""
    index = pa.array(positions, pa.int64())
    found = []
    for column in columns:
        if isinstance(column, UnreadAttribute):
            found.append([None] * len(positions))
        elif isinstance(column, list):
            found.append([column[i] for i in positions])
        else:
            found.append(python_values(column.take(index)))
    return [list(row) for row in zip(*found, strict=True)] if found else [[] for _ in positions]


def pack_errors(errors: Sequence[EventError]) -> bytes:
    """Errors as bytes, for `unpack_errors`."""
    rows = [(e.query, e.stream, e.ts, [plain(v) for v in e.values], e.message) for e in errors]
    return json.dumps(rows, default=str).encode()


def unpack_errors(data: bytes) -> list[EventError]:
    """The inverse of `pack_errors`."""
    return [EventError(*row) for row in json.loads(data)]


def pack_batches(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Record batches as one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
