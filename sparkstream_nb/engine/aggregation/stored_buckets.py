"""Stored rows of an aggregation: the format of store tables and partials, and the readers' view of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...plan.nodes import AggDuration, AggregationDef, BaseColumn, EventRef, Ref
from ...types import Type
from ..columnar.column_data import ARROW, DTYPES, Array, Column
from ..columnar.key_ids import Keys
from ..expressions import Env, compile_expr
from ..state.services import Services
from .partials import PartialRows, merge, set_elements, set_values

TIMESTAMP = "AGG_TIMESTAMP"
EVENT_TIMESTAMP = "AGG_EVENT_TIMESTAMP"
LAST_TIMESTAMP = "AGG_LAST_EVENT_TIMESTAMP"


@dataclass(slots=True)
class Stored:
    """`bucket` int64[n] (start, ms), the group-by columns, the base columns, and `last` as in `partials.Part`."""

    definition: AggregationDef
    bucket: Array
    keys: list[Column]
    base: list[Column]
    last: Array | None

    def __len__(self) -> int:
        return len(self.bucket)


def keeps_last(definition: AggregationDef) -> bool:
    """True if rows carry AGG_LAST_EVENT_TIMESTAMP: some plain attribute is selected."""
    return any(b.kind == "last" for b in definition.base)


def arrow_type(base: BaseColumn) -> pa.DataType:
    """The Arrow type of a base column; sets are lists of their argument's type.

    Raises TypeError for a plain attribute of type object, which has no stored form.
    """
    if base.kind == "set":
        assert base.arg is not None
        return pa.list_(ARROW[base.arg.type])
    if base.type is Type.OBJECT:
        raise TypeError(f"'{base.name}' is an object and cannot be stored")
    return ARROW[base.type]


def to_table(buckets: Stored, duration: AggDuration, services: Services) -> pa.Table:
    """An Arrow table as `node_batch.Outputs.partials` describes it, with AGG_LAST_EVENT_TIMESTAMP last where kept."""
    d = buckets.definition
    n = len(buckets)
    once = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), pa.array([duration]))
    columns: dict[str, Any] = {"duration": once.dictionary_decode(), TIMESTAMP: pa.array(buckets.bucket, pa.int64())}
    if d.by is not None:
        columns[EVENT_TIMESTAMP] = pa.array(buckets.bucket, pa.int64())
    for g, key in zip(group_names(d), buckets.keys, strict=True):
        columns[g] = _to_arrow(key, services)
    for b, column in zip(d.base, buckets.base, strict=True):
        if b.kind == "set":
            assert b.arg is not None
            sets = [set_values(v, b.arg.type) for v in column.values.tolist()]
            columns[b.name] = pa.array(sets, arrow_type(b))
        else:
            columns[b.name] = _to_arrow(column, services)
    if buckets.last is not None:
        columns[LAST_TIMESTAMP] = pa.array(buckets.last, pa.int64())
    return pa.table(columns)


def _to_arrow(column: Column, services: Services) -> pa.Array:
    array = column.to_arrow(services.strings)
    # Plain strings: the dictionary holds every string of the node, and partials travel.
    return array.dictionary_decode() if column.type is Type.STRING else array


def group_names(definition: AggregationDef) -> list[str]:
    """Names of the group-by attributes."""
    return [g.name for g in definition.select.group_by if isinstance(g, Ref)]


def from_table(definition: AggregationDef, table: pa.Table, services: Services) -> Stored:
    """Stored rows out of an Arrow table of partials or of a store (columns by name; others are ignored)."""
    strings = services.strings
    time = EVENT_TIMESTAMP if definition.by is not None else TIMESTAMP
    bucket = np.asarray(table.column(time if time in table.column_names else TIMESTAMP).to_numpy(), np.int64)
    keys = [
        Column.from_arrow(g.type, table.column(name), strings)
        for g, name in zip(definition.select.group_by, group_names(definition), strict=True)
    ]
    base = []
    for b in definition.base:
        array = table.column(b.name)
        if b.kind == "set":
            values = np.empty(len(array), object)
            for i, v in enumerate(array.to_pylist()):
                values[i] = frozenset(set_elements(v))
            base.append(Column(Type.OBJECT, values))
        else:
            base.append(Column.from_arrow(b.type, array, strings))
    last = np.asarray(table.column(LAST_TIMESTAMP).to_numpy(), np.int64) if keeps_last(definition) else None
    return Stored(definition, bucket, keys, base, last)


def merge_stored(buckets: Stored, services: Services) -> Stored:
    """Merge the rows of `buckets` with equal bucket and group, for example from several shards; sorted by time."""
    d = buckets.definition
    if buckets.keys:
        keys = Keys([c.type for c in buckets.keys], services.strings, null_is_text=False)
        group = keys.ids(buckets.keys)
    else:
        keys, group = None, np.zeros(len(buckets), np.int32)
    part = merge(PartialRows(buckets.bucket, group, buckets.base, buckets.last), d.base)
    part = part.take(np.argsort(part.bucket, kind="stable"))
    columns = [] if keys is None else [c.take(part.group) for c in keys.columns()]
    return Stored(d, part.bucket, columns, part.columns, part.last)


def view(buckets: Stored, services: Services) -> list[Column]:
    """The columns of the aggregation's schema: AGG_TIMESTAMP, then every selected name.

    An average of int or long is a truncated whole number, as a double, because Siddhi divides two longs.
    """
    d = buckets.definition
    source_columns: Sequence[Column] = [*buckets.keys, *buckets.base]

    def resolve(ref: Ref | EventRef) -> Column:
        assert isinstance(ref, Ref)
        return source_columns[ref.attr]

    env = Env(len(buckets), services.strings, buckets.bucket, buckets.bucket, resolve)
    out = [Column(Type.LONG, buckets.bucket)]
    for item, attribute in zip(d.output, list(d.source.schema)[1:], strict=True):
        column = compile_expr(item.expr, services.context)(env)
        if column.type is not attribute.type:
            column = Column(attribute.type, column.values.astype(DTYPES[attribute.type]), column.null)
        out.append(column)
    return out
