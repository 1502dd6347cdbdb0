"""What nodes put out, as rows of Spark: encoded in the workers, decoded where the micro-batch is committed.

One row is (node, seq, last, kind, name, rows, blob). Kinds: `stream`, `in` and `out` (a traced query's current and
expired events), `partial` (of an aggregation), `error`, `log`, `answer`, and one `mark` per node and packed blob, which
tells how far the node is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..engine.aggregation import from_table, merge_stored
from ..engine.aggregation.stored import to_table
from ..engine.batch import Answer, Emitted, Outputs
from ..engine.columns import Strings
from ..engine.expressions import Context
from ..engine.services import Services
from ..engine.snapshot import pack, unpack
from ..errors import SparkStreamError
from ..plan.nodes import AggregationDef

SCHEMA = "node int, seq long, last long, kind string, name string, rows long, blob binary"
COLUMNS = ("node", "seq", "last", "kind", "name", "rows", "blob")

Row = tuple[int, int, int, str, str, int, bytes]

_OBJECT = {b"type": b"object"}


def to_ipc(table: pa.RecordBatch | pa.Table) -> bytes:
    """An Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    out: bytes = sink.getvalue().to_pybytes()
    return out


def from_ipc(blob: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()


def emitted_table(emitted: Emitted, base: int) -> pa.RecordBatch:
    """Columns `step` (numbered through the app's life), `ts`, then the attributes under their names.

    Strings are spelt out, as a node's dictionary holds far more than one output uses; objects are packed one by one.
    """
    arrays = [pa.array(emitted.step + base, pa.int64()), pa.array(emitted.ts, pa.int64())]
    fields = [pa.field("step", pa.int64()), pa.field("ts", pa.int64())]
    for name, column in zip(emitted.names, emitted.columns, strict=True):
        metadata = None
        if isinstance(column, list):
            strings = Strings()
            column = pa.array([None if v is None else pack(v, strings) for v in column], pa.binary())
            metadata = _OBJECT
        elif pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        arrays.append(column)
        fields.append(pa.field(name, column.type, metadata=metadata))
    return pa.record_batch(arrays, schema=pa.schema(fields))


def column_values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Python values of a column of `emitted_table`."""
    values = column.to_pylist()
    if field.metadata == _OBJECT:
        strings = Strings()
        return [None if v is None else unpack(v, strings) for v in values]
    return list(values)


def is_object(field: pa.Field) -> bool:
    """Whether the column holds packed objects."""
    return bool(field.metadata == _OBJECT)


def emitted_of(blob: bytes) -> Emitted:
    """The inverse of `emitted_table` and `to_ipc`; `step` stays numbered through the app's life."""
    table = from_ipc(blob)
    columns: list[Any] = []
    for field, column in zip(list(table.schema)[2:], table.columns[2:], strict=True):
        columns.append(column_values(column, field) if is_object(field) else column.combine_chunks())
    return Emitted(tuple(table.schema.names[2:]), table.column(0).to_numpy(), table.column(1).to_numpy(), columns)


def encode(outputs: Outputs, node: int, seq: int, last: int, base: int) -> list[Row]:
    """The rows of one `NodeEngine.step`, whose first step has number `base`; partials go separately (`partials`)."""
    out: list[Row] = []

    def add(kind: str, name: str, rows: int, blob: bytes) -> None:
        out.append((node, seq, last, kind, name, rows, blob))

    for stream, emitted in outputs.streams.items():
        if len(emitted):
            add("stream", stream, len(emitted), to_ipc(emitted_table(emitted, base)))
    for query, (current, expired) in outputs.queries.items():
        for kind, emitted in (("in", current), ("out", expired)):
            if len(emitted):
                add(kind, query, len(emitted), to_ipc(emitted_table(emitted, base)))
    if outputs.errors:
        found = [[e.stream, e.ts, e.values, f"{e.query}: {e.message}"] for e in outputs.errors]
        add("error", "", len(found), error_lines(found))
    if outputs.logs:
        add("log", "", len(outputs.logs), json.dumps(outputs.logs).encode())
    return out


def merged_partials(definition: AggregationDef, tables: Sequence[pa.Table]) -> pa.Table:
    """Partials of several steps as one table, a row for each duration, bucket and group as the store wants them."""
    if len(tables) == 1:
        return tables[0]
    services = Services(Strings(), Context())
    whole = pa.concat_tables([_spelt_out(t) for t in tables])
    parts = []
    for duration in definition.durations:
        rows = whole.filter(pc.equal(whole["duration"], duration))
        if rows.num_rows:
            merged = merge_stored(from_table(definition, rows, services), services)
            parts.append(_spelt_out(to_table(merged, duration, services)))
    return pa.concat_tables(parts)


def _spelt_out(table: pa.Table) -> pa.Table:
    """The table without dictionaries, so that tables of several dictionaries can be joined."""
    columns = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def error_lines(errors: Sequence[Sequence[Any]]) -> bytes:
    """Errors (stream, timestamp, values, reason) as JSON lines; what JSON lacks becomes text."""
    return b"".join(json.dumps(e, default=str).encode() + b"\n" for e in errors)


def errors_of(blob: bytes) -> list[list[Any]]:
    """The inverse of `error_lines`."""
    return [json.loads(line) for line in blob.splitlines()]


@dataclass(frozen=True)
class Failed:
    """An on-demand query that failed: the class of the error, and its message."""

    kind: str
    message: str


def encode_answer(answer: Answer | SparkStreamError) -> bytes:
    """An answer to an on-demand query, or its failure."""
    if isinstance(answer, SparkStreamError):
        return json.dumps({"kind": type(answer).__name__, "message": str(answer)}).encode()
    return pack({"columns": [list(c) for c in answer.columns], "rows": answer.rows}, Strings())


def answer_of(blob: bytes) -> Answer | Failed:
    """The inverse of `encode_answer`."""
    if blob.startswith(b"{"):
        return Failed(**json.loads(blob))
    found = unpack(blob, Strings())
    return Answer([(n, t) for n, t in found["columns"]], found["rows"])
