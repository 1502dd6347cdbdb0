"""Input and output of a node: the engine's interface to Spark, the command line and tests.

A micro-batch for one node is a list of *steps*. A step is one event, several events sent at once (one chunk), or a bare
tick of the clock. All nodes of a deployment receive all steps. A node to which a step's events are not routed has no
rows for it, and only its clock moves.
"""

from __future__ import annotations

import io
import json
import struct
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..columnar.column_data import Array, Column, StringPool
from .snapshot import pack, unpack
from .watching import Watching

_OBJECTS, _LEFT_OUT = {b"type": b"object"}, {b"type": b"left out"}


def _pack_objects(values: list[Any]) -> pa.Array:
    """Objects of any mixture, each as bytes of its own."""
    strings = StringPool()
    return pa.array([None if v is None else pack(v, strings) for v in values], pa.binary())


def _unpack_array(array: pa.Array, metadata: Any) -> Any:
    if metadata == _LEFT_OUT:
        return UnreadAttribute(len(array))
    if metadata != _OBJECTS:
        return array
    strings = StringPool()
    return [None if v is None else unpack(v, strings) for v in array.to_pylist()]


@dataclass(frozen=True, slots=True)
class UnreadAttribute:
    """The column of an attribute that is never read and whose values stayed in their file: it only has a length."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice) -> UnreadAttribute:
        return UnreadAttribute(len(range(self.n)[rows]))


@dataclass(slots=True)
class StreamRows:
    """Events of one input stream: `step` int64[n] (not decreasing; equal steps are one chunk), `ts` int64[n] ms, and
    one Arrow array per attribute in schema order (`column_data.ARROW` types; strings may be dictionary arrays). An
    attribute of type object may be a Python list of values instead, and an attribute that is never read an
    `UnreadAttribute`.
    """

    step: Array
    ts: Array
    columns: list[Any]

    def take(self, index: Array) -> StreamRows:
        """The events at some positions, in that order."""
        return StreamRows(self.step[index], self.ts[index], [take_rows(c, index) for c in self.columns])


    @property
    def whole(self) -> bool:
        """True if no column is left out."""
        return not any(isinstance(c, UnreadAttribute) for c in self.columns)


class LazyObjects:
    """The values of an attribute of type object, which are created when they are taken."""

    def __init__(self, column: Column, strings: StringPool) -> None:
        self._column, self._strings = column, strings

    def __len__(self) -> int:
        return len(self._column)

    def take(self, index: Array) -> list[Any]:
        """The values at some positions."""
        return self._column.take(index).to_list(self._strings)


def take_rows(column: Any, index: Array) -> Any:
    """The values of a column of `StreamRows` at the positions `index`, integers."""
    if isinstance(column, UnreadAttribute):
        return UnreadAttribute(len(index))
    if isinstance(column, LazyObjects):
        return column.take(index)
    return [column[i] for i in index.tolist()] if isinstance(column, list) else column.take(pa.array(index))


@dataclass(slots=True)
class InputBatch:
    """`clock[i]` is the time (ms) to which step i moves the app's clock; `rows` the events by stream id.

    For a step with several events the time is the last one's, as in Siddhi's `InputHandler.send(Event[])`.
    """

    clock: Array
    rows: dict[str, StreamRows] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """One self-describing blob: a JSON header, then the clock, then an Arrow IPC stream per input stream."""
        parts: list[bytes] = [np.ascontiguousarray(self.clock, np.int64).tobytes()]
        names = sorted(self.rows)
        for name in names:
            r = self.rows[name]
            arrays = [pa.array(r.step, pa.int64()), pa.array(r.ts, pa.int64())]
            fields = [pa.field("step", pa.int64()), pa.field("ts", pa.int64())]
            for i, column in enumerate(r.columns):
                array, metadata = column, None
                if isinstance(column, list):
                    array, metadata = _pack_objects(column), _OBJECTS
                elif isinstance(column, UnreadAttribute):
                    array, metadata = pa.nulls(len(column)), _LEFT_OUT
                arrays.append(array)
                fields.append(pa.field(f"a{i}", array.type, metadata=metadata))
            batch = pa.record_batch(arrays, schema=pa.schema(fields))
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            parts.append(sink.getvalue())
        head = json.dumps({"streams": names, "sizes": [len(p) for p in parts]}).encode()
        head += b" " * (-(4 + len(head)) % 8)  # Arrow wants its buffers aligned
        return struct.pack("<I", len(head)) + head + b"".join(parts)

    @staticmethod
    def from_bytes(blob: bytes) -> InputBatch:
        """The inverse of `to_bytes`."""
        (n,) = struct.unpack_from("<I", blob)
        head = json.loads(blob[4 : 4 + n])
        view, at, parts = memoryview(blob), 4 + n, []
        for size in head["sizes"]:
            parts.append(view[at : at + size])
            at += size
        rows = {}
        for name, part in zip(head["streams"], parts[1:], strict=True):
            batch = pa.ipc.open_stream(pa.py_buffer(part)).read_all().combine_chunks()
            cols = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in batch.columns]
            columns = [_unpack_array(c, f.metadata) for c, f in zip(cols, batch.schema, strict=True)]
            rows[name] = StreamRows(cols[0].to_numpy(), cols[1].to_numpy(), columns[2:])
        return InputBatch(np.frombuffer(parts[0], np.int64), rows)


@dataclass(slots=True)
class Chunks:
    """Events emitted at once: `number` int64[n], not decreasing, and `timed` bool[n]: true if a timer emitted them."""

    number: Array
    timed: Array


@dataclass(slots=True)
class Emitted:
    """Output events of a stream or query in one `step` call, in order.

    `step` int64[n] (numbered as in the input batch), `ts` int64[n] ms, `columns` one Arrow array per attribute
    (for strings a dictionary array, or a plain one if nearly all are distinct; a Python list for attributes of type
    object). `chunks` if the engine was created with `chunks`.
    """

    names: tuple[str, ...]
    step: Array
    ts: Array
    columns: list[Any]
    chunks: Chunks | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def rows(self) -> list[tuple[int, list[Any]]]:
        """(timestamp, values) pairs as Python data."""
        cols = [c if isinstance(c, list) else c.to_pylist() for c in self.columns]
        return [(t, list(v)) for t, v in zip(self.ts.tolist(), zip(*cols, strict=True), strict=True)] if cols else []


@dataclass(slots=True)
class EventError:
    """An event that raised an error in a query. It is recorded, and the stream continues."""

    query: str
    stream: str
    ts: int
    values: list[Any]
    message: str


@dataclass(frozen=True)
class OutputOptions:
    """The outputs of a node beside its app's streams, and their form.

    With `trace`, `Outputs.queries` holds the output of every named query. `chunks`: outputs carry the chunks of events.
    `stored`: a store takes `Outputs.partials` and answers retrievals, so the node keeps no buckets. `publishes`:
    outputs of streams that a sink publishes outside include the events that come in. `labels`: by query, the label of
    its outputs in place of their stream (`plan.output_labels`). `watching`: the query or named window whose contents a
    trace reads; such a node has no snapshots. `lazy`: values of type object are `LazyObjects` in place of lists.
    `describes`: the node can be described (`runtime.descriptions`).
    """

    trace: bool = False
    chunks: bool = False
    stored: bool = False
    publishes: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    watching: Watching | None = None
    lazy: bool = False
    describes: bool = False


PLAIN_OUTPUTS = OutputOptions()


@dataclass(slots=True)
class ElementRows:
    """Numbers of rows that elements of an app put out: queries and named windows, by their names."""

    queries: Counter[str] = field(default_factory=Counter)
    windows: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.queries or self.windows)

    def add(self, rows: ElementRows) -> None:
        """Adds the numbers of further outputs."""
        self.queries.update(rows.queries)
        self.windows.update(rows.windows)

    def without_queries(self, names: Collection[str]) -> ElementRows:
        """The same without some queries."""
        return ElementRows(Counter({q: n for q, n in self.queries.items() if q not in names}), self.windows)


@dataclass(slots=True)
class Outputs:
    """The output of one `step` call.

    `streams`: every stream that some query wrote (not the input streams). `queries`: (current, expired) events per
    named query, only with `OutputOptions.trace`. `partials`: per aggregation id, this call's additions,
    for the store: a table `duration string, AGG_TIMESTAMP long, [AGG_EVENT_TIMESTAMP long,]` group-by attributes, base
    columns (`plan.AggregationDef.base`); rows of all durations. Base columns of kind "set" are Arrow lists.
    `element_rows`: of each query and named window, also of one that writes a table.
    """

    streams: dict[str, Emitted] = field(default_factory=dict)
    queries: dict[str, tuple[Emitted, Emitted]] = field(default_factory=dict)
    partials: dict[str, pa.Table] = field(default_factory=dict)
    errors: list[EventError] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    element_rows: ElementRows = field(default_factory=ElementRows)


@dataclass(slots=True)
class RetrievalAnswer:
    """The answer to a retrieval: `columns` as (name, type) pairs, `rows` as Python values."""

    columns: list[tuple[str, str]]
    rows: list[list[Any]]
