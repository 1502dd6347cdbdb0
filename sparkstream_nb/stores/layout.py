"""The table layout of an aggregation, independent of the database (Siddhi's `AggregationParser.initDefaultTables`).

One table per duration, `<Agg>_SECONDS` to `<Agg>_YEARS`, keyed by AGG_TIMESTAMP, SHARD_ID, AGG_EVENT_TIMESTAMP and the
group-by attributes, if present. Key columns cannot be null: a group-by attribute that is null is stored as its
type's zero, and AGG_NULL_KEYS, last in the key, has the bit of its position set. -0.0 is stored as 0.0, which
databases find equal, with a bit of AGG_NULL_KEYS too: the highest bit for the first group-by attribute.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import StoreError
from ..plan.nodes import AggDuration, AggregationDef, PurgeRule, Ref
from ..types import Type
from .store_protocol import EVERY, GroupFilter

TIMESTAMP = "AGG_TIMESTAMP"
SHARD = "SHARD_ID"
EVENT_TIMESTAMP = "AGG_EVENT_TIMESTAMP"
LAST_TIMESTAMP = "AGG_LAST_EVENT_TIMESTAMP"
NULL_KEYS = "AGG_NULL_KEYS"

LEDGER = "SPARKSTREAM_LEDGER"
"""The table of the micro-batches that are committed."""
ERRORS = "SPARKSTREAM_ERRORS"
DROPPED = "SPARKSTREAM_DROPPED"
"""The table that says, for each app, how many errors are not kept any more."""
PURGED = "SPARKSTREAM_PURGED"
"""The table that says, for each table of an aggregation, before which time `@purge` has deleted its buckets."""

SUFFIX: dict[AggDuration, str] = {
    "sec": "SECONDS", "min": "MINUTES", "hour": "HOURS", "day": "DAYS", "month": "MONTHS", "year": "YEARS",
}  # fmt: skip

Role = Literal["time", "shard", "group", "nulls", "sum", "count", "min", "max", "set", "last", "latest"]
"""Role of a column. `last` is the value of a plain attribute, `latest` the time of the event that it is from."""

_SIGN_BIT = 62
"""The bit of AGG_NULL_KEYS for a first group-by attribute that is -0.0; the next attribute has the bit below."""

_ZERO: dict[Type, Any] = {
    Type.STRING: "", Type.INT: 0, Type.LONG: 0, Type.FLOAT: 0.0, Type.DOUBLE: 0.0, Type.BOOL: False,
}  # fmt: skip
_ARROW: dict[Type, pa.DataType] = {
    Type.STRING: pa.string(), Type.INT: pa.int32(), Type.LONG: pa.int64(),
    Type.FLOAT: pa.float32(), Type.DOUBLE: pa.float64(), Type.BOOL: pa.bool_(),
}  # fmt: skip


@dataclass(frozen=True)
class StoredColumn:
    """A column of a table. `type` is the elements' type if `role` is `set`."""

    name: str
    role: Role
    type: Type

    @property
    def arrow(self) -> pa.DataType:
        return pa.list_(_ARROW[self.type]) if self.role == "set" else _ARROW[self.type]

    @property
    def in_key(self) -> bool:
        return self.role in ("time", "shard", "group", "nulls")


@dataclass(frozen=True)
class TableLayout:
    """The tables of one aggregation: columns in order, the key's first."""

    aggregation: str
    durations: tuple[AggDuration, ...]
    columns: tuple[StoredColumn, ...]
    partitioned: bool
    external: bool
    retention: PurgeRule | None = None

    def table(self, duration: AggDuration) -> str:
        """The name of a table, not quoted."""
        return f"{self.aggregation}_{SUFFIX[duration]}"

    @property
    def key(self) -> tuple[StoredColumn, ...]:
        return tuple(c for c in self.columns if c.in_key)

    @property
    def groups(self) -> tuple[StoredColumn, ...]:
        return tuple(c for c in self.columns if c.role == "group")

    @property
    def values(self) -> tuple[StoredColumn, ...]:
        return tuple(c for c in self.columns if not c.in_key)

    @property
    def time(self) -> str:
        """The time column that readers use: an event's own bucket, even if another system stored it in a later one."""
        return EVENT_TIMESTAMP if self.external else TIMESTAMP

    @property
    def marks_nulls(self) -> bool:
        """True if there is AGG_NULL_KEYS."""
        return any(c.role == "nulls" for c in self.columns)

    def without_null_keys(self) -> TableLayout:
        """The layout of tables that another server made: they have no AGG_NULL_KEYS."""
        return replace(self, columns=tuple(c for c in self.columns if c.role != "nulls"))

    def null_bit(self, group: int) -> int:
        """The bit of AGG_NULL_KEYS that says that group-by attribute number `group` is null."""
        return 1 << group

    def sign_bit(self, group: int) -> int:
        """The bit that says that it is -0.0; 0 for an attribute that cannot be."""
        return 1 << (_SIGN_BIT - group) if self.groups[group].type in (Type.FLOAT, Type.DOUBLE) else 0

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(c.name, c.arrow) for c in self.columns])


def several_rows(path: str, table: str) -> StoreError:
    """Why a table is not rebuilt."""
    return StoreError(
        f"The store {path}: table '{table}' has several rows for a bucket, which another server wrote; it is not "
        "rebuilt. Rebuild the aggregation from its events, after `sparkstream store drop`."
    )


def layout_of(definition: AggregationDef) -> TableLayout:
    """The layout of an aggregation. Raises StoreError for values that a table cannot hold."""
    columns = [StoredColumn(TIMESTAMP, "time", Type.LONG)]
    if definition.partitioned:
        columns.append(StoredColumn(SHARD, "shard", Type.STRING))
    if definition.by is not None:
        columns.append(StoredColumn(EVENT_TIMESTAMP, "time", Type.LONG))
    groups = [StoredColumn(g.name, "group", g.type) for g in definition.select.group_by if isinstance(g, Ref)]
    columns += groups
    if len(groups) > _SIGN_BIT // 2:
        raise StoreError(
            f"Aggregation '{definition.id}' has {len(groups)} group-by attributes; a table holds {_SIGN_BIT // 2}."
        )
    if groups:
        columns.append(StoredColumn(NULL_KEYS, "nulls", Type.LONG))
    for b in definition.base:
        if b.kind == "set":
            assert b.arg is not None
            columns.append(StoredColumn(b.name, "set", b.arg.type))
        else:
            columns.append(StoredColumn(b.name, b.kind, b.type))
    if any(b.kind == "last" for b in definition.base):
        columns.append(StoredColumn(LAST_TIMESTAMP, "latest", Type.LONG))
    seen: dict[str, str] = {}
    for c in columns:
        if c.type is Type.OBJECT:
            raise StoreError(f"Aggregation '{definition.id}' stores '{c.name}', an object, which a table cannot hold.")
        if c.name.upper() in seen:
            raise StoreError(
                f"Aggregation '{definition.id}' has columns '{seen[c.name.upper()]}' and '{c.name}', "
                "which differ only in case; rename one of them."
            )
        seen[c.name.upper()] = c.name
    return TableLayout(
        definition.id, definition.durations, tuple(columns), definition.partitioned, definition.by is not None,
        definition.retention,
    )  # fmt: skip


def layouts_of(definitions: Iterable[AggregationDef]) -> list[TableLayout]:
    """The layouts of an app's aggregations. Raises StoreError if two would share tables."""
    layouts = [layout_of(d) for d in definitions]
    names: dict[str, str] = {}
    for layout in layouts:
        other = names.setdefault(layout.aggregation.upper(), layout.aggregation)
        if other != layout.aggregation:
            raise StoreError(
                f"Aggregations '{other}' and '{layout.aggregation}' would share tables, because table names "
                "ignore case; rename one of them."
            )
    return layouts


def rounds_of_keys(layout: TableLayout, rows: pa.Table) -> list[pa.Table]:
    """`rows` such that each key is in a table once: several where the layout cannot tell null, -0.0 and zero apart."""
    names = [c.name for c in layout.key]
    if layout.marks_nulls or not layout.groups or rows.group_by(names).aggregate([]).num_rows == rows.num_rows:
        return [rows]
    seen: Counter[tuple[Any, ...]] = Counter()
    turns = np.zeros(rows.num_rows, np.int64)
    for i, key in enumerate(zip(*(rows.column(n).to_pylist() for n in names), strict=True)):
        turns[i] = seen[key]
        seen[key] += 1
    return [rows.filter(pa.array(turns == turn)) for turn in range(int(turns.max()) + 1)]


def rows_to_store(layout: TableLayout, partials: pa.Table, duration: AggDuration, shard: str) -> pa.Table:
    """The rows of `duration` among `partials`, as they are stored (columns of `layout.schema`)."""
    rows = partials.filter(pc.equal(partials.column("duration"), duration))
    n = rows.num_rows
    marks = np.zeros(n, np.int64)
    arrays: list[Any] = []
    position = 0
    for c in layout.columns:
        if c.role == "shard":
            arrays.append(pa.array([shard] * n, pa.string()))
        elif c.role == "nulls":
            arrays.append(pa.array(marks))
        elif c.role == "group":
            array = rows.column(c.name)
            if array.null_count:
                marks |= array.is_null().to_numpy().astype(np.int64) * layout.null_bit(position)
                array = array.fill_null(_ZERO[c.type])
            if sign := layout.sign_bit(position):
                values = array.to_numpy()
                marks |= ((values == 0) & np.signbit(values)).astype(np.int64) * sign
                array = pa.array(np.where(np.isnan(values), np.nan, values + 0.0))
            position += 1
            arrays.append(array)
        else:
            arrays.append(rows.column(c.name))
    return pa.table([a.cast(c.arrow) for a, c in zip(arrays, layout.columns, strict=True)], schema=layout.schema)


@dataclass(frozen=True)
class KeyConditions:
    """Conditions on a table's key: `equal` pairs of a column and its value, and bits of AGG_NULL_KEYS.

    `null_mask`, `null_bits`: AGG_NULL_KEYS & null_mask = null_bits; without effect where the mask is 0.
    """

    equal: list[tuple[str, Any]]
    null_mask: int = 0
    null_bits: int = 0


def key_conditions(layout: TableLayout, groups: GroupFilter) -> KeyConditions:
    """The conditions for `groups`. Null and -0.0 are stored as the zero of their type, with a bit of AGG_NULL_KEYS."""
    equal = list(groups.equal)
    if groups.only is None:
        return KeyConditions(equal)
    mask = bits = 0
    for i, (c, v) in enumerate(zip(layout.groups, groups.only, strict=True)):
        if v is not EVERY:
            equal.append((c.name, _ZERO[c.type] if v is None else v))
            null, sign = layout.null_bit(i), layout.sign_bit(i)
            mask |= null | sign
            bits |= null if v is None else sign if v == 0 and math.copysign(1, v) < 0 else 0
    return KeyConditions(equal, mask if layout.marks_nulls else 0, bits)


def key_value(layout: TableLayout, group: int, value: Any, marks: int) -> Any:
    """The value of group-by attribute number `group` that is stored as `value` with these bits of AGG_NULL_KEYS."""
    return None if marks & layout.null_bit(group) else -0.0 if marks & layout.sign_bit(group) else value


def like_pattern(text: str) -> str:
    """The pattern of LIKE for texts in lower case that contain `text`; its escape character is '!'."""
    escaped_text = "".join(f"!{c}" if c in "!%_" else c for c in text.lower())
    return f"%{escaped_text}%"


def rows_from_store(layout: TableLayout, rows: pa.Table) -> pa.Table:
    """Stored rows with the nulls and signs of their group-by attributes put back, and without AGG_NULL_KEYS."""
    if NULL_KEYS not in rows.column_names:
        return rows
    marks = np.asarray(rows.column(NULL_KEYS).to_numpy(), np.int64)
    if marks.any():
        for i, c in enumerate(layout.groups):
            for bit, value in ((layout.null_bit(i), None), (layout.sign_bit(i), -0.0)):
                mask = (marks & bit).astype(np.bool_)
                if mask.any():
                    array = pc.if_else(pa.array(mask), pa.scalar(value, c.arrow), rows.column(c.name))
                    rows = rows.set_column(rows.column_names.index(c.name), c.name, array)
    return rows.drop_columns([NULL_KEYS])
