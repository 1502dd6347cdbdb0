"""Outputs of nodes on their way through Spark: messages of many events, and the columns that they become.

As with rows that come in, Spark moves messages: the events of an output are unpacked last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.columnar.column_data import ARROW
from ...engine.expressions.objects import to_json
from ...engine.state.node_batch import Emitted, EventError
from ...ingest.ingest import plain
from ...types import Schema, Type
from .column_types import SPARK
from .operator_spec import ERRORS, LATE, NODE, OUTPUT, TIMESTAMP, OperatorSpec

MESSAGES = "output string, events bigint, rows binary"
"""The columns of messages, as Spark writes a schema: the name of an output, how many events it has, and these."""
_ARROW = pa.schema({"output": pa.string(), "events": pa.int64(), "rows": pa.binary()})
_TEXT = pa.string()
_ADDED = {
    LATE: {"stream": _TEXT, "row": _TEXT},
    ERRORS: {"query": _TEXT, "stream": _TEXT, "message": _TEXT, "row": _TEXT},
}
"""The columns of the outputs that an operator adds."""
_TIMESTAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class LateRow:
    """A row that came after the watermark had passed its time (ms)."""

    stream: str
    ts: int
    values: list[Any]


def columns_of_output(spec: OperatorSpec, output: str) -> str:
    """The columns of an output's frame, as Spark writes a schema."""
    return _with_stamps(_fields(spec, output))


def columns_of_events(schema: Schema) -> str:
    """The columns of a frame of a stream's events, as Spark writes a schema."""
    return _with_stamps([(a.name, SPARK[a.type]) for a in schema])


def columns_of_schema(schema: Schema) -> str:
    """The columns of a frame of rows, as Spark writes a schema."""
    return ", ".join(f"{_quote(a.name)} {SPARK[a.type]}" for a in schema)


def _with_stamps(fields: Sequence[tuple[str, str]]) -> str:
    columns = [f"{_quote(name)} {spark}" for name, spark in fields]
    return ", ".join([*columns, f"{TIMESTAMP} timestamp", f"{NODE} int"])


def columns_of_all(spec: OperatorSpec, outputs: Sequence[str]) -> str:
    """The columns of the frame of several outputs: a struct for each, null in the rows of the others."""
    structs = [
        f"{_quote(o)} struct<{', '.join(f'{_quote(n)}: {spark}' for n, spark in _fields(spec, o))}>" for o in outputs
    ]
    return ", ".join([f"{OUTPUT} string", f"{TIMESTAMP} timestamp", f"{NODE} int", *structs])


def _fields(spec: OperatorSpec, output: str) -> list[tuple[str, str]]:
    if output in _ADDED:
        return [(name, "string") for name in _ADDED[output]]
    return [(a.name, SPARK[a.type]) for a in dict(spec.outputs)[output]]


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class OutputRows:
    """Outputs of a node, as messages."""

    def __init__(self, spec: OperatorSpec, node: int) -> None:
        self._node = node
        self._types = {name: arrow_types(schema) for name, schema in spec.outputs} | _ADDED
        self._batches: dict[str, list[pa.RecordBatch]] = {}

    def put_events(self, output: str, events: Emitted) -> None:
        """Adds the events of an output."""
        if len(events):
            self._put(output, events.ts, [_spark_column(c) for c in events.columns])

    def put_errors(self, errors: Iterable[EventError]) -> None:
        """Adds errors of events."""
        event_errors = list(errors)
        if event_errors:
            rows = [(e.query, e.stream, e.message, to_json(e.values)) for e in event_errors]
            self._put_texts(ERRORS, [e.ts for e in event_errors], rows)

    def put_late(self, late: Sequence[LateRow]) -> None:
        """Adds late rows."""
        if late:
            self._put_texts(LATE, [row.ts for row in late], [(row.stream, to_json(row.values)) for row in late])

    def _put_texts(self, output: str, times: Sequence[int], rows: Sequence[Sequence[str]]) -> None:
        columns = [pa.array(list(c), pa.string()) for c in zip(*rows, strict=True)]
        self._put(output, np.array(times, np.int64), columns)

    def _put(self, output: str, ts: Any, columns: Sequence[pa.Array]) -> None:
        times = as_timestamps(pa.array(ts, pa.int64()))
        nodes = pa.array(np.full(len(ts), self._node, np.int32))
        types = self._types[output]
        arrays = [c.cast(t) if c.type != t else c for c, t in zip(columns, types.values(), strict=True)]
        batch = pa.record_batch([*arrays, times, nodes], names=[*types, TIMESTAMP, NODE])
        self._batches.setdefault(output, []).append(batch)

    def take(self) -> list[tuple[str, int, bytes]]:
        """The messages since the last call: output, number of events, and events."""
        batches_by_output, self._batches = self._batches, {}
        return [
            (output, sum(b.num_rows for b in batches), _pack(batches)) for output, batches in batches_by_output.items()
        ]


def _pack(batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def as_batch(messages: Sequence[tuple[str, int, bytes]]) -> pa.RecordBatch:
    """Messages as a record batch of `MESSAGES`."""
    columns = list(zip(*messages, strict=True)) or [(), (), ()]
    return pa.record_batch([pa.array(list(c), f.type) for c, f in zip(columns, _ARROW, strict=True)], schema=_ARROW)


def unpack_output(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of messages of one output, from record batches of `MESSAGES`."""
    for batch in batches:
        for data in batch.column(2):
            yield from pa.ipc.open_stream(data.as_buffer())


def unpack_all(outputs: Sequence[str], types: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of messages of several outputs, as rows of their frame; `types`: of `struct_types`."""
    for batch in batches:
        for output, data in zip(batch.column(0).to_pylist(), batch.column(2), strict=True):
            for events in pa.ipc.open_stream(data.as_buffer()):
                yield _as_struct(outputs, types, output, events)


def struct_types(spec: OperatorSpec, outputs: Sequence[str]) -> dict[str, pa.DataType]:
    """The type of each output's struct."""
    types = {name: arrow_types(schema) for name, schema in spec.outputs} | _ADDED
    return {output: pa.struct(types[output]) for output in outputs}


def _as_struct(outputs: Sequence[str], types: Any, output: str, events: pa.RecordBatch) -> pa.RecordBatch:
    n = events.num_rows
    *columns, times, nodes = events.columns
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), [output]).dictionary_decode()
    struct = pa.StructArray.from_arrays(columns, fields=list(types[output]))
    structs = [struct if o == output else pa.nulls(n, types[o]) for o in outputs]
    return pa.record_batch([names, times, nodes, *structs], names=[OUTPUT, TIMESTAMP, NODE, *outputs])


def as_timestamps(ms: Any) -> Any:
    """Times (ms since 1970), an Arrow array or several chunks, as Spark takes them."""
    return ms.cast(pa.timestamp("ms", "UTC")).cast(_TIMESTAMP, safe=False)


def arrow_types(schema: Schema) -> dict[str, pa.DataType]:
    """The Arrow type of each attribute as Spark takes it: an object is its JSON."""
    return {a.name: pa.string() if a.type is Type.OBJECT else ARROW[a.type] for a in schema}


def _spark_column(column: Any) -> pa.Array:
    """A column of an output as Spark takes it: texts without a dictionary, objects as JSON."""
    if isinstance(column, list):
        return pa.array([None if v is None else to_json(v) for v in column], pa.string())
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def pack_errors(errors: Sequence[EventError]) -> bytes:
    """Errors as bytes, for `unpack_errors`."""
    rows = [(e.query, e.stream, e.ts, [plain(v) for v in e.values], e.message) for e in errors]
    return json.dumps(rows, default=str).encode()


def unpack_errors(data: bytes) -> list[EventError]:
    """The inverse of `pack_errors`."""
    return [EventError(*row) for row in json.loads(data)]
