"""Events as Arrow tables whose columns any database takes: an object is its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ..engine.columnar.column_data import ARROW
from ..engine.expressions.objects import to_json
from ..journal import result_codec
from ..types import Schema, Type
from .output_files import series_of, stamps

NODES = pa.dictionary(pa.int32(), pa.string())
"""The type of the column that names nodes."""


def event_fields(schema: Schema) -> pa.Schema:
    """The columns of an event: `node` (shard id), `timestamp` (ms), then the attributes; beside an attribute of that
    name, `event_node` and `event_timestamp`."""
    node, timestamp = stamps(schema.names)
    attributes = [pa.field(a.name, ARROW.get(a.type, pa.string())) for a in schema]
    return pa.schema([pa.field(node, NODES), pa.field(timestamp, pa.int64()), *attributes])


def event_table(node_numbers: Any, columns: Sequence[Any], shards: Sequence[str], schema: Schema) -> pa.Table:
    """Events with the columns of `event_fields`, without copies of plain ones. `node_numbers`: their nodes, from 0;
    `columns`: times, then attributes, each an array of Arrow's or of numbers, or Python values."""
    fields = event_fields(schema)
    numbers = node_numbers.combine_chunks() if isinstance(node_numbers, pa.ChunkedArray) else pa.array(node_numbers)
    nodes = pa.DictionaryArray.from_arrays(numbers.cast(pa.int32()), pa.array(shards, pa.string()))
    types = [Type.LONG, *schema.types]
    arrays = [_plain(column, type) for column, type in zip(columns, types, strict=True)]
    return pa.table([nodes, *arrays], schema=fields)


def output_table(outputs: pa.Table, shards: Sequence[str], schema: Schema) -> pa.Table:
    """Outputs as `OutputFiles.read` gives them, with the columns of `event_fields`."""
    columns: list[Any] = [outputs.column(2)]
    for column, field in zip(outputs.columns[3:], list(outputs.schema)[3:], strict=True):
        columns.append(result_codec.column_values(column, field) if result_codec.is_object(field) else column)
    return event_table(outputs.column(0), columns, shards, schema)


def frame_of_events(table: pa.Table) -> pd.DataFrame:
    """A table of events as a pandas frame."""
    return pd.DataFrame({name: series_of(c) for name, c in zip(table.column_names, table.columns, strict=True)})


def _plain(column: Any, type: Type) -> pa.Array | pa.ChunkedArray:
    """A column with the type that Arrow has for `type`."""
    if type is Type.OBJECT:
        values = column if isinstance(column, list) else column.to_pylist()
        return pa.array([None if v is None else to_json(v) for v in values], pa.string())
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    return array if array.type == ARROW[type] else array.cast(ARROW[type])
