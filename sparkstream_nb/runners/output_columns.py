"""Outputs of apps, and rows of their tables, with the columns that Spark takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.expressions.objects import to_json
from ..errors import SparkStreamError
from ..journal import result_codec
from ..types import Schema
from .operator.operator_spec import NODE, TIMESTAMP
from .operator.output_rows import arrow_types, as_timestamps

_ROWS = 10_000
"""The most rows of a record batch."""


def as_spark_table(table: pa.Table, schema: Schema, title: str) -> pa.Table:
    """Outputs (node, step, ts and attributes) with the attributes of `schema`, `_timestamp`, and `_node` from 1.

    Raises SparkStreamError, naming the stream by its `title`, if the outputs have other attributes.
    """
    fields = list(table.schema)[3:]
    types = arrow_types(schema)
    columns = [_spark_column(column, field) for column, field in zip(table.columns[3:], fields, strict=True)]
    if [f.name for f in fields] != list(types) or [c.type for c in columns] != list(types.values()):
        raise SparkStreamError(
            f"{title}: its attributes changed since the query was made, which has {schema}. Begin again with "
            "app.stream(...) of the changed app, and a new checkpoint"
        )
    nodes = pa.array(table.column(0).to_numpy() + np.int32(1), pa.int32())
    return pa.table([*columns, as_timestamps(table.column(2)), nodes], names=[*types, TIMESTAMP, NODE])


def spark_batches(tables: Iterable[pa.Table], schema: Schema, title: str) -> Iterator[pa.RecordBatch]:
    """`as_spark_table` of each table, in record batches."""
    for table in tables:
        for first in range(0, table.num_rows, _ROWS):
            yield from as_spark_table(table.slice(first, _ROWS), schema, title).to_batches()


def rows_as_table(schema: Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of Python values with the attributes of a schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = []
    for (name, type), attribute, values in zip(arrow_types(schema).items(), schema, columns, strict=True):
        is_object = str(attribute.type) == "object"
        arrays.append((name, pa.array([to_json(v) if is_object and v is not None else v for v in values], type)))
    return pa.table(dict(arrays))


def empty_table(schema: Schema) -> pa.Table:
    """No outputs, with the columns of `as_spark_table`."""
    fields = [*arrow_types(schema).items(), (TIMESTAMP, pa.timestamp("us", "UTC")), (NODE, pa.int32())]
    return pa.schema(fields).empty_table()


def _spark_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if not result_codec.is_object(field):
        return column
    values = result_codec.column_values(column, field)
    return pa.chunked_array([pa.array([None if v is None else to_json(v) for v in values], pa.string())])
