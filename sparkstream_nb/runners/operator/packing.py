"""Rows of an input frame, packed by node: one Arrow message for each node and some hundred thousand rows.

Spark moves the messages, not the rows: a message costs as much as a row does there. Within one, rows are in the order
of their times.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.aggregation.bucket_calendar import EARLIEST, LATEST
from ...engine.columnar.column_data import Array
from ...engine.state.node_batch import EventError, StreamRows, UnreadAttribute
from ...ingest.ingest import too_late
from ...ingest.row_typing import RowReading, TimeBounds, type_rows
from ...journal.division import lean_column
from ...limits import FIRST_TIME, LAST_TIME
from ...nodes.partitioning import by_hash
from ...types import Schema, Type
from .operator_spec import OperatorSpec
from .output_rows import pack_errors

PACKED = "node int, stream int, task bigint, number bigint, first bigint, last bigint, rows binary"
"""The columns of packed rows, as Spark writes a schema: the key of a node, the number of a stream, the number of the
task that packed them and of the message in it, the time (ms) of the first row, the last time of all rows that were
packed together, also for other nodes, and the rows."""
_ARROW = pa.schema(
    {
        "node": pa.int32(),
        "stream": pa.int32(),
        "task": pa.int64(),
        "number": pa.int64(),
        "first": pa.int64(),
        "last": pa.int64(),
        "rows": pa.binary(),
    }
)
ROWS = 1 << 20
BYTES = 1 << 26
"""Rows and bytes that are divided among the nodes at a time."""
CLOCK, REJECTED = -1, -2
"""Numbers in place of a stream's: of a message without rows that says how far a task's times go, and of errors."""
NO_TIME = -(1 << 62)
"""In place of a time (ms): before all times."""


@dataclass(frozen=True)
class PackedRows:
    """A message, as `PACKED`."""

    stream: int
    task: int
    number: int
    first: int
    last: int
    rows: bytes


def read_attributes(spec: OperatorSpec, stream: int) -> tuple[int, ...]:
    """The attributes of an input whose values its messages have: those that the text reads."""
    input_stream = spec.inputs[stream]
    return tuple(i for i in range(len(input_stream.schema)) if i in spec.needed_attributes[input_stream.stream])


def columns_read(spec: OperatorSpec, stream: int) -> list[str]:
    """The columns of an input's frame that are read at all."""
    input_stream = spec.inputs[stream]
    names = [input_stream.schema.names[i] for i in read_attributes(spec, stream)]
    return list(dict.fromkeys([*names, input_stream.time, *([input_stream.key] if input_stream.key else [])]))


@dataclass(frozen=True)
class InputRows:
    """Rows of an input as events: times `ts` int64[n] ms, the attributes that are read, the key (None: there is none);
    and the errors of rows that are no events of the stream."""

    ts: Array
    columns: list[pa.Array]
    key: pa.Array | None
    errors: list[EventError]


def pack_rows(
    spec: OperatorSpec, stream: int, task: int, batches: Iterable[pa.RecordBatch], *, clock: bool = False
) -> Iterator[pa.RecordBatch]:
    """The messages of a task's rows, as record batches of `PACKED`. With `clock`, each node is told the last time of
    the task's rows, also one without any of them."""
    number, last = 0, NO_TIME
    for rows in read_input(spec, stream, batches):
        messages = [*_divide(spec, stream, rows)]
        if rows.errors:
            # A watermark is computed of the last times, also of this one.
            messages.append(_Message(0, REJECTED, NO_TIME, FIRST_TIME, pack_errors(rows.errors)))
        last = max(last, int(rows.ts.max(initial=NO_TIME)))
        yield _as_batch(task, number, messages)
        number += len(messages)
    if clock and last > NO_TIME:
        yield _as_batch(task, number, [_Message(n, CLOCK, NO_TIME, last, b"") for n in range(spec.nodes)])


@dataclass(frozen=True)
class _Message:
    """A message of a task, without its number: for node `node`, from 0."""

    node: int
    stream: int
    first: int
    last: int
    rows: bytes


def _as_batch(task: int, number: int, messages: Sequence[_Message]) -> pa.RecordBatch:
    columns: list[list[object]] = [
        [key_of_place(m.node) for m in messages],
        [m.stream for m in messages],
        [task] * len(messages),
        [*range(number, number + len(messages))],
        [m.first for m in messages],
        [m.last for m in messages],
        [m.rows for m in messages],
    ]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)], schema=_ARROW)


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of small batches together."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS or size >= BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(waiting)


def read_input(spec: OperatorSpec, stream: int, batches: Iterable[pa.RecordBatch]) -> Iterator[InputRows]:
    """The rows of an input's frame as events, many at a time."""
    input_stream = spec.inputs[stream]
    attributes = [input_stream.schema[i] for i in read_attributes(spec, stream)]
    place = next((i for i, a in enumerate(attributes) if a.name == input_stream.key), None)
    if input_stream.key is not None and place is None:  # an attribute that the text does not read
        attributes.append(next(a for a in input_stream.schema if a.name == input_stream.key))
    for table in _gather(batches):
        reading = RowReading(input_stream.time, bounds=_time_bounds(spec))
        typed_rows = type_rows(table, Schema(tuple(attributes)), reading, keep=table.num_rows)
        assert typed_rows.ts is not None
        key = None if input_stream.key is None else typed_rows.columns[-1 if place is None else place]
        columns = typed_rows.columns[:-1] if input_stream.key is not None and place is None else typed_rows.columns
        errors = [
            EventError("input", input_stream.stream, _time_of_error(at), list(values), why)
            for at, values, why in typed_rows.rejected
        ]
        yield InputRows(typed_rows.ts, columns, key, errors)


def _time_of_error(at: int | None) -> int:
    """The time (ms) under which an error is listed: that of its row, or 1970 if Python has no such time."""
    return at if at is not None and EARLIEST <= at <= LATEST else 0


def _time_bounds(spec: OperatorSpec) -> TimeBounds:
    """The times of rows that are taken: those that Spark's timestamps have, up to `max_ahead` after this machine's."""
    last = LAST_TIME if spec.max_ahead is None else min(LAST_TIME, int(time.time() * 1000) + spec.max_ahead)

    def reason(ms: int) -> str:
        if not FIRST_TIME <= ms <= LAST_TIME:
            return f"{ms} is not an event time in ms: Spark's timestamps are of the years 1 to 9999"
        return too_late(ms, last)

    return TimeBounds(FIRST_TIME, last, reason)


def _divide(spec: OperatorSpec, stream: int, rows: InputRows) -> Iterator[_Message]:
    """A message for each node that has any of the rows."""
    ts = rows.ts
    if not len(ts):
        return
    input_stream, last = spec.inputs[stream], int(ts.max())
    names = _names(read_attributes(spec, stream))
    columns = [_encode_texts(c) for c in rows.columns]
    if spec.nodes == 1 or rows.key is None:
        order = _time_order(ts) if spec.in_order else None
        yield _Message(0, stream, int(ts.min()), last, _pack(names, ts, columns, order))
        return
    place = by_hash(rows.key, _type_of(input_stream.schema, input_stream.key), spec.nodes)
    narrow = place.astype(np.uint16)
    if spec.in_order and (order := _time_order(ts)) is not None:
        order = order[np.argsort(narrow[order], kind="stable")]
    else:
        order = np.argsort(narrow, kind="stable")
    ts, columns = ts[order], [c.take(pa.array(order)) for c in columns]
    ends = np.cumsum(np.bincount(place, minlength=spec.nodes)).tolist()
    for node, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > begin:
            times = ts[begin:end]
            data = _pack(names, times, [c[begin:end] for c in columns], None)
            yield _Message(node, stream, int(times.min()), last, data)


def _type_of(schema: Schema, name: str | None) -> Type:
    return next(a.type for a in schema if a.name == name)


def _time_order(ts: Array) -> Array | None:
    """The order of the times, equal ones as they come; None if they are in order."""
    return None if bool(np.all(ts[1:] >= ts[:-1])) else np.argsort(ts, kind="stable")


def _encode_texts(column: pa.Array) -> pa.Array:
    """Texts that repeat, as codes: half the bytes, and the node need not look each of them up."""
    if not pa.types.is_string(column.type) or len(column) < 64:
        return column
    sample = column[: min(len(column), 4096)]
    if 2 * len(sample.unique()) > len(sample):
        return column
    return column.dictionary_encode()


def _pack(names: Sequence[str], ts: Array, columns: Sequence[Any], order: Array | None) -> bytes:
    """Times and columns as an Arrow stream; `names`: of `_names`."""
    arrays = [pa.array(ts), *columns]
    if order is not None:
        arrays = [a.take(pa.array(order)) for a in arrays]
    arrays = [lean_column(a) for a in arrays]
    batch = pa.record_batch(arrays, names=list(names))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _names(places: Iterable[int]) -> list[str]:
    """The names of a message's columns: the times, and the attributes by their numbers."""
    return ["", *map(str, places)]


def pack_again(rows: StreamRows) -> bytes:
    """Events that were unpacked, as a message; those that are in the order of their times."""
    places = [i for i, c in enumerate(rows.columns) if not isinstance(c, UnreadAttribute)]
    return _pack(_names(places), rows.ts, [rows.columns[i] for i in places], None)


def unpack_rows(spec: OperatorSpec, stream: int, data: bytes) -> StreamRows:
    """The events of a message; their steps are not numbered yet. A message from a checkpoint has the columns that the
    text read when the message was packed."""
    table = pa.ipc.open_stream(data).read_all().combine_chunks()
    arrays = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    ts = arrays[0].to_numpy()
    return events_of(spec, stream, ts, map(int, table.column_names[1:]), arrays[1:])


def events_of(
    spec: OperatorSpec, stream: int, ts: Array, places: Iterable[int], arrays: Sequence[pa.Array]
) -> StreamRows:
    """Events of an input, of which the attributes at `places` are read; their steps are not numbered yet."""
    columns: list[Any] = [UnreadAttribute(len(ts)) for _ in spec.inputs[stream].schema]
    for place, array in zip(places, arrays, strict=True):
        columns[place] = array
    return StreamRows(np.empty(0, np.int64), ts, columns)


# ------------------------------------------------------------------------------------------------- places of nodes

_WORD = 0xFFFFFFFF


@cache
def key_of_place(place: int) -> int:
    """The INT whose hash in Spark is `place`: nodes with these keys lie in one partition after the other, however many
    partitions there are. It inverts `journal.routing.spark_hash`."""
    h = place
    h ^= h >> 16
    h = h * pow(0xC2B2AE35, -1, 1 << 32) & _WORD
    h ^= (h >> 13) ^ (h >> 26)
    h = h * pow(0x85EBCA6B, -1, 1 << 32) & _WORD
    h ^= h >> 16
    h ^= 4
    h = (h - 0xE6546B64) * pow(5, -1, 1 << 32) & _WORD
    k = 42 ^ _rotate_back(h, 13)
    value = _rotate_back(k * pow(0x1B873593, -1, 1 << 32) & _WORD, 15) * pow(0xCC9E2D51, -1, 1 << 32) & _WORD
    return value - (1 << 32) if value >> 31 else value


def _rotate_back(x: int, by: int) -> int:
    return ((x >> by) | (x << (32 - by))) & _WORD
