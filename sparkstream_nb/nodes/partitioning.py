"""Events divided over destinations: by Java's hash of an attribute, and the part of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import Array
from ..engine.expressions.java_texts import text
from ..engine.state.node_batch import InputBatch, StreamRows
from ..types import Type


def java_hash(texts: Sequence[str]) -> Array:
    """Java's `String.hashCode` of each text, as int64 holding 32-bit signed values."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    width = int(lengths.max(initial=0))
    if width == 0:
        return np.zeros(len(texts), np.int64)
    points = np.array(list(texts), dtype=f"U{width}").view(np.uint32).reshape(len(texts), width)
    out = np.zeros(len(texts), np.uint32)
    for i in range(width):
        inside = lengths > i
        out[inside] = out[inside] * np.uint32(31) + points[inside, i]
    # Beyond the basic plane Java counts two units per character.
    for i in np.flatnonzero((points > 0xFFFF).any(axis=1)).tolist():
        units = np.frombuffer(texts[i].encode("utf-16-le"), np.uint16).tolist()
        value = 0
        for unit in units:
            value = (31 * value + unit) & 0xFFFFFFFF
        out[i] = value
    return out.view(np.int32).astype(np.int64)


def by_hash(column: pa.Array | list[object], type: Type, nodes: int) -> Array:
    """int64[n]: the node (from 0) of every value of a column: of its text, but of -0.0 that of 0.0, which joins and
    conditions find equal."""
    if type is Type.OBJECT:  # values of any kinds, which Arrow cannot hold in one column
        return np.asarray(np.abs(java_hash([text(type, v) for v in column])) % nodes, np.int64)
    array = column if isinstance(column, pa.Array) else pa.array(column)
    dictionary_array = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
    values = dictionary_array.dictionary.to_pylist()
    if type in (Type.FLOAT, Type.DOUBLE):
        values = [v + 0.0 for v in values]
    texts = [text(type, v) for v in values] + ["null"]
    node = np.abs(java_hash(texts)) % nodes
    index = dictionary_array.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(node[index], np.int64)


def parts(batch: InputBatch, places: Mapping[str, Array], count: int) -> list[InputBatch]:
    """Divide a batch among `count` nodes, as `part` does: the rows are ordered by node once."""
    out = [InputBatch(batch.clock) for _ in range(count)]
    for stream, r in batch.rows.items():
        place = places[stream].astype(np.uint16 if count < 1 << 16 else np.int64)
        rows_by_node = r.take(np.argsort(place, kind="stable"))
        ends = np.cumsum(np.bincount(place, minlength=count)).tolist()
        for node_batch, first, end in zip(out, [0, *ends], ends, strict=False):
            if end > first:
                columns = [c[first:end] for c in rows_by_node.columns]
                node_batch.rows[stream] = StreamRows(rows_by_node.step[first:end], rows_by_node.ts[first:end], columns)
    return out


def part(batch: InputBatch, places: Mapping[str, Array], node: int) -> InputBatch:
    """The part of one node: the whole clock, and the rows whose place it is."""
    rows = {}
    for stream, r in batch.rows.items():
        index = np.flatnonzero(places[stream] == node)
        if len(index) == len(r.ts):
            rows[stream] = r
        elif len(index):
            rows[stream] = r.take(index)
    return InputBatch(batch.clock, rows)
