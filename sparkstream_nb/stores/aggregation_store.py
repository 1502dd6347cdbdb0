"""A store of aggregations in an SQL database: all that is the same in each, over a transaction's few operations.

`duckdb.py` and `sql.py` have the rest: how they open and check tables, merge rows, and read them merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from ..errors import StoreError
from ..plan.nodes import AggDuration, AggregationDef, BatchClock
from ..types import Type
from .layout import (
    DROPPED,
    ERRORS,
    EVENT_TIMESTAMP,
    LEDGER,
    NULL_KEYS,
    PURGED,
    SHARD,
    TIMESTAMP,
    StoredColumn,
    TableLayout,
    key_conditions,
    key_value,
    like_pattern,
    rows_to_store,
    several_rows,
)
from .store_protocol import (
    EACH_GROUP,
    KEPT_BATCHES,
    BatchKey,
    BucketRange,
    Buckets,
    ErrorRow,
    GroupFilter,
    KeySearch,
    Partials,
    ShardRows,
)

T = TypeVar("T")
SHARD_COLUMN = StoredColumn(SHARD, "shard", Type.STRING)
_ALWAYS = (-(2**63), 2**63 - 1)
_ERROR_COLUMNS = [
    StoredColumn("id", "latest", Type.LONG),
    StoredColumn("stream", "latest", Type.STRING),
    StoredColumn("ts", "latest", Type.LONG),
    StoredColumn("values", "latest", Type.STRING),
    StoredColumn("reason", "latest", Type.STRING),
]
_DELETED_AT_ONCE = 500


class Transaction(Protocol):
    """A transaction under way. SQL names its values as `:name`; a colon of its own is written `\\:`."""

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> int:
        """Runs a statement; returns the number of rows that it changed."""
        ...

    def execute(self, sql: str) -> None:
        """Runs a statement as it is written, without values."""
        ...

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        """The rows that a query finds."""
        ...

    def table(self, sql: str, values: Mapping[str, Any], columns: Sequence[StoredColumn]) -> pa.Table:
        """The rows that a query finds, as stored columns."""
        ...


C = TypeVar("C", bound=Transaction)


@dataclass(frozen=True)
class Where:
    """A condition, and the values of its parameters."""

    sql: str
    values: dict[str, Any]


class AggregationStore(ABC, Generic[C]):
    """A `Store` in an SQL database, whose transactions are of the class `C`."""

    path: str

    def __init__(self) -> None:
        self._layouts: dict[str, TableLayout] = {}

    # ------------------------------------------------------------------------------------ what databases differ in

    @abstractmethod
    def _transaction(self, work: Callable[[C], T], *, reads: bool = False) -> T:
        """Runs `work` with a `Transaction`: all or nothing. With `reads` it writes nothing, and waits for no commit of
        this process. Raises StoreError if the database cannot be used."""

    @abstractmethod
    def quote_name(self, name: str) -> str:
        """`name` as an SQL identifier."""

    @abstractmethod
    def _create(self, layout: TableLayout, table: str) -> str:
        """The statement that creates a table."""

    @abstractmethod
    def _column_names(self, c: C, table: str) -> Sequence[str] | None:
        """The names of a table's columns; None if there is no such table."""

    @abstractmethod
    def _same(self, stored_name: str, name: str) -> bool:
        """True if the database keeps `name` as `stored_name`."""

    @abstractmethod
    def _text_of(self, name: str) -> str:
        """A quoted column as a text, in SQL."""

    def _whole_value(self, expression: str, column: StoredColumn) -> str:
        """An expression of the column's type in a select, with all of its digits."""
        return expression

    @abstractmethod
    def _merge(
        self, c: C, layout: TableLayout, duration: AggDuration, rows: pa.Table, *, overwrite: bool = False
    ) -> None:
        """Merges `rows`, one for each key, into a table, or replaces the existing rows with them."""

    @abstractmethod
    def _merge_all(self, c: C, layout: TableLayout, shards: Sequence[tuple[str, pa.Table]]) -> None:
        """Merges the partials of shards into the tables of all durations."""

    @abstractmethod
    def _note_purge(self, c: C, table: str, begins: int) -> None:
        """Notes that buckets before `begins` (ms) were deleted, unless later ones were."""

    @abstractmethod
    def _keep_errors(self, c: C, app: str, errors: Sequence[ErrorRow]) -> None:
        """Stores errors."""

    @abstractmethod
    def _read(
        self, layout: TableLayout, per: AggDuration, bounds: tuple[int, int], groups: GroupFilter, *, by_shard: bool
    ) -> pa.Table:
        """Rows of a range of time and of some groups, merged over shards, or by shard."""

    @abstractmethod
    def prepare(self, definitions: Iterable[AggregationDef]) -> None: ...

    # ------------------------------------------------------------------------------------------------------- statements

    def _layout(self, aggregation: str) -> TableLayout:
        layout = self._layouts.get(aggregation)
        if layout is None:
            raise StoreError(f"The store {self.path} was not prepared for aggregation '{aggregation}'.")
        return layout

    def _sharded_layout(self, aggregation: str) -> TableLayout:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            raise StoreError(f"Aggregation '{aggregation}' is not partitioned by id; it has no shards.")
        return layout

    def _q(self, name: str) -> str:
        """`name` as an identifier of a statement with values."""
        return self.quote_name(name).replace(":", "\\:")

    def _table(self, layout: TableLayout, duration: AggDuration) -> str:
        return self._q(layout.table(duration))

    def _where(self, layout: TableLayout, bounds: tuple[int, int] = _ALWAYS, groups: GroupFilter = EACH_GROUP) -> Where:
        """The rows of a range of time and of some groups."""
        time = self._q(layout.time)
        low, high = (min(max(b, -(2**63)), 2**63 - 1) for b in bounds)
        parts, values = [f"{time} >= :low", f"{time} < :high"], {"low": low, "high": high}
        if layout.external:
            # Late rows are stored under a later AGG_TIMESTAMP, by which the table is ordered.
            parts.append(f"{self._q(TIMESTAMP)} >= :low")
        conditions = key_conditions(layout, groups)
        if conditions.null_mask:
            parts.append(f"({self._q(NULL_KEYS)} & {conditions.null_mask}) = {conditions.null_bits}")
        for i, (name, value) in enumerate(conditions.equal):
            parts.append(f"{self._q(name)} = :group_{i}")
            values[f"group_{i}"] = value
        return Where(" AND ".join(parts), values)

    # ---------------------------------------------------------------------------------------------------------- tables

    def drop(self, aggregation: str) -> None:
        layout = self._layout(aggregation)

        def work(c: C) -> None:
            for duration in layout.durations:
                c.run(f"DROP TABLE IF EXISTS {self._table(layout, duration)}")
                c.run(f"DELETE FROM {self._q(PURGED)} WHERE name = :name", {"name": layout.table(duration)})

        self._transaction(work)

    def add_shard_id(self, aggregation: str, shard: str, *, dry_run: bool = False) -> list[str]:
        layout, q = self._layout(aggregation), self.quote_name
        quoted_shard = "'" + shard.replace("'", "''") + "'"

        def work(c: C) -> list[str]:
            statements: list[str] = []
            for duration in layout.durations:
                table = layout.table(duration)
                stored_names = self._column_names(c, table)
                if stored_names is None or any(self._same(n, SHARD) for n in stored_names):
                    continue
                columns = [x for x in layout.columns if any(self._same(n, x.name) for n in stored_names)]
                new_layout = TableLayout(
                    layout.aggregation, (), (*columns[:1], SHARD_COLUMN, *columns[1:]), True, layout.external
                )
                old_table = q(f"{table}_WITHOUT_SHARD_ID")
                names = ", ".join(q(x.name) for x in new_layout.columns)
                values = ", ".join(quoted_shard if x.role == "shard" else q(x.name) for x in new_layout.columns)
                statements += [
                    f"ALTER TABLE {q(table)} RENAME TO {old_table}",
                    self._create(new_layout, table),
                    f"INSERT INTO {q(table)} ({names}) SELECT {values} FROM {old_table}",
                    f"DROP TABLE {old_table}",
                ]
            if not dry_run:
                for sql in statements:
                    c.run(sql.replace(":", "\\:"))
            return statements

        return self._transaction(work)

    # --------------------------------------------------------------------------------------------------------- writing

    def commit(
        self, key: BatchKey, partials: Partials, errors: Sequence[ErrorRow] = (), clock: BatchClock | None = None
    ) -> bool:
        ledger, values = self._q(LEDGER), {"app": key.app, "run": key.run, "batch": key.batch}

        def work(c: C) -> bool:
            if c.rows(f"SELECT 1 FROM {ledger} WHERE app = :app AND run = :run AND batch = :batch", values):
                return False
            c.run(f"INSERT INTO {ledger} VALUES (:app, :run, :batch)", values)
            if key.batch % KEPT_BATCHES == 0:
                oldest = {**values, "batch": key.batch - KEPT_BATCHES}
                c.run(f"DELETE FROM {ledger} WHERE app = :app AND run = :run AND batch < :batch", oldest)
            if clock is not None:
                self._purge(c, clock)
            for aggregation in dict.fromkeys(a for a, _ in partials):
                shards = [(shard, table) for (a, shard), table in partials.items() if a == aggregation]
                self._merge_all(c, self._layout(aggregation), shards)
            if errors:
                self._keep_errors(c, key.app, errors)
            return True

        return self._transaction(work)

    def last_committed(self, app: str, run: str) -> int:
        sql = f"SELECT max(batch) FROM {self._q(LEDGER)} WHERE app = :app AND run = :run"
        ((batch,),) = self._transaction(lambda c: c.rows(sql, {"app": app, "run": run}), reads=True)
        return -1 if batch is None else int(batch)

    def _purge(self, c: C, clock: BatchClock) -> None:
        for layout in self._layouts.values():
            retention = layout.retention
            due = None if retention is None else retention.due(clock)
            if retention is None or due is None:
                continue
            for duration in layout.durations:
                begins = retention.begins(duration, due)
                if begins is not None:
                    table, time = self._table(layout, duration), self._q(layout.time)
                    c.run(f"DELETE FROM {table} WHERE {time} < :begins", {"begins": int(begins)})
                    self._note_purge(c, layout.table(duration), int(begins))

    def purged_before(self, aggregation: str, duration: AggDuration) -> int | None:
        values = {"name": self._layout(aggregation).table(duration)}
        sql = f"SELECT begins FROM {self._q(PURGED)} WHERE name = :name"
        rows = self._transaction(lambda c: c.rows(sql, values), reads=True)
        return int(rows[0][0]) if rows else None

    def replace(self, aggregation: str, partials: Mapping[str, Sequence[pa.Table]], *, alone: bool = False) -> None:
        layout = self._layout(aggregation)
        shards = {f"shard_{i}": shard for i, shard in enumerate(partials)}

        def work(c: C) -> None:
            for duration in layout.durations:
                table = self._table(layout, duration)
                if alone and layout.partitioned:
                    others = f" WHERE {self._q(SHARD)} NOT IN ({', '.join(f':{name}' for name in shards)})"
                    c.run(f"DELETE FROM {table}" + (others if shards else ""), shards)
                if layout.external:
                    times = f"{self._q(TIMESTAMP)} <> {self._q(EVENT_TIMESTAMP)}"
                    if c.rows(f"SELECT 1 FROM {table} WHERE {times} LIMIT 1"):
                        raise several_rows(self.path, layout.table(duration))
                for shard, tables in partials.items():
                    for partial in tables:
                        rows = rows_to_store(layout, partial, duration, shard)
                        self._merge(c, layout, duration, rows, overwrite=True)

        self._transaction(work)

    # --------------------------------------------------------------------------------------------------------- reading

    def read(
        self, aggregation: str, per: AggDuration, start: int, end: int, groups: GroupFilter = EACH_GROUP
    ) -> pa.Table:
        return self._read(self._layout(aggregation), per, (start, end), groups, by_shard=False)

    def read_by_shard(
        self, aggregation: str, per: AggDuration, start: int, end: int, groups: GroupFilter = EACH_GROUP
    ) -> pa.Table:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            raise StoreError(f"Aggregation '{aggregation}' is not partitioned by id; its rows belong to no shard.")
        return self._read(layout, per, (start, end), groups, by_shard=True)

    def count(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> int:
        layout = self._layout(aggregation)
        where = self._where(layout, (bucket_range.start, bucket_range.end), groups)
        rows = f"SELECT 1 AS one FROM {self._table(layout, per)} WHERE {where.sql} LIMIT {int(bucket_range.most)}"
        sql = f"SELECT count(*) FROM ({rows}) counted"
        return int(self._transaction(lambda c: c.rows(sql, where.values), reads=True)[0][0])

    def buckets(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> Buckets:
        layout = self._layout(aggregation)
        time, table = self._q(layout.time), self._table(layout, per)
        where = self._where(layout, (bucket_range.start, bucket_range.end), groups)
        every = self._where(layout, groups=groups)
        order, most = "DESC" if bucket_range.latest else "ASC", int(bucket_range.most)

        def work(c: C) -> Buckets:
            sql = f"SELECT DISTINCT {time} FROM {table} WHERE {where.sql} ORDER BY 1 {order} LIMIT {most}"
            starts = sorted(int(row[0]) for row in c.rows(sql, where.values))
            first = starts[0] if starts else bucket_range.start
            counts = (
                f"SELECT count(DISTINCT CASE WHEN {time} < :first THEN {time} END), count(DISTINCT {time}) "
                f"FROM {table} WHERE {every.sql}"
            )
            ((before, total),) = c.rows(counts, {**every.values, "first": first})
            return Buckets(np.array(starts, np.int64), int(before), int(total))

        return self._transaction(work, reads=True)

    def last_bucket(
        self, aggregation: str, per: AggDuration, shard: str, end: int, groups: GroupFilter = EACH_GROUP
    ) -> int | None:
        layout = self._sharded_layout(aggregation)
        where = self._where(layout, (_ALWAYS[0], end), groups)
        shard_is = f"{self._q(SHARD)} = :shard"
        sql = f"SELECT max({self._q(layout.time)}) FROM {self._table(layout, per)} WHERE {where.sql} AND {shard_is}"
        ((bucket,),) = self._transaction(lambda c: c.rows(sql, {**where.values, "shard": shard}), reads=True)
        return None if bucket is None else int(bucket)

    def key_values(
        self, aggregation: str, per: AggDuration, search: KeySearch, groups: GroupFilter = EACH_GROUP
    ) -> list[Any]:
        layout = self._layout(aggregation)
        key, containing = search.key, search.containing
        column = layout.groups[key]
        name = self._q(column.name)
        masks = [layout.null_bit(key), layout.null_bit(key) | layout.sign_bit(key)]
        null, marks = (f"({self._q(NULL_KEYS)} & {mask})" if layout.marks_nulls else "0" for mask in masks)
        where = self._where(layout, groups=groups)
        condition, values = where.sql, where.values
        if containing:
            condition += f" AND lower({self._text_of(name)}) LIKE :containing ESCAPE '!' AND {null} = 0"
            values["containing"] = like_pattern(containing)
        rows = f"{self._table(layout, per)} WHERE {condition}"
        value = self._whole_value(name, column)
        sql = f"SELECT DISTINCT {value}, {marks} AS marks FROM {rows} ORDER BY 1, 2 LIMIT {int(search.most)}"
        columns = [column, StoredColumn("marks", "latest", Type.LONG)]
        table = self._transaction(lambda c: c.table(sql, values, columns), reads=True)
        stored_values = zip(*(c.to_pylist() for c in table.columns), strict=True)
        return [key_value(layout, key, value, bits) for value, bits in stored_values]

    # ---------------------------------------------------------------------------------------------------------- errors

    def errors(self, app: str) -> pa.Table:
        names = ", ".join(self._q(c.name) for c in _ERROR_COLUMNS)
        sql = f"SELECT {names} FROM {self._q(ERRORS)} WHERE app = :app ORDER BY id"
        return self._transaction(lambda c: c.table(sql, {"app": app}, _ERROR_COLUMNS), reads=True)

    def forget_errors(self, app: str, ids: Sequence[int]) -> None:
        def work(c: C) -> None:
            for begin in range(0, len(ids), _DELETED_AT_ONCE):
                values = {f"id_{i}": int(id) for i, id in enumerate(ids[begin : begin + _DELETED_AT_ONCE])}
                id_list = ", ".join(f":{name}" for name in values)
                c.run(f"DELETE FROM {self._q(ERRORS)} WHERE app = :app AND id IN ({id_list})", {"app": app, **values})

        self._transaction(work)

    def trim_errors(self, app: str, most: int | None) -> int:
        errors, dropped_errors, whose = self._q(ERRORS), self._q(DROPPED), {"app": app}

        def work(c: C) -> int:
            counts = c.rows(f"SELECT errors FROM {dropped_errors} WHERE app = :app", whose)
            total = int(counts[0][0]) if counts else 0
            if most is None:
                return total
            # MySQL deletes nothing by a query of the same table.
            last = f"SELECT id FROM {errors} WHERE app = :app ORDER BY id DESC LIMIT 1 OFFSET :most"
            ids = c.rows(last, {**whose, "most": most})
            if not ids:
                return total
            total += c.run(f"DELETE FROM {errors} WHERE app = :app AND id <= :id", {**whose, "id": ids[0][0]})
            change = (
                f"UPDATE {dropped_errors} SET errors = :total WHERE app = :app" if counts
                else f"INSERT INTO {dropped_errors} (app, errors) VALUES (:app, :total)"
            )  # fmt: skip
            c.run(change, {**whose, "total": total})
            return total

        return self._transaction(work)

    # ---------------------------------------------------------------------------------------------------------- shards

    def shards(self, aggregation: str) -> list[ShardRows]:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            return []
        shard = self._q(SHARD)
        every = " UNION ALL ".join(f"SELECT {shard} FROM {self._table(layout, d)}" for d in layout.durations)
        sql = f"SELECT {shard}, count(*) FROM ({every}) stored_rows GROUP BY {shard}"
        rows = self._transaction(lambda c: c.rows(sql), reads=True)
        return sorted((ShardRows(str(s), int(n)) for s, n in rows), key=lambda s: s.shard)

    def move_shard(self, aggregation: str, old: str, new: str) -> None:
        layout = self._sharded_layout(aggregation)
        if old == new:
            return
        names = ", ".join(self._whole_value(self._q(c.name), c) for c in layout.columns)
        of_shard = f"WHERE {self._q(SHARD)} = :old"

        def work(c: C) -> None:
            for duration in layout.durations:
                table = self._table(layout, duration)
                rows = c.table(f"SELECT {names} FROM {table} {of_shard}", {"old": old}, layout.columns)
                c.run(f"DELETE FROM {table} {of_shard}", {"old": old})
                shards = pa.array([new] * rows.num_rows, pa.string())
                self._merge(c, layout, duration, rows.set_column(rows.column_names.index(SHARD), SHARD, shards))

        self._transaction(work)

    def delete_shard(self, aggregation: str, shard: str) -> None:
        layout = self._sharded_layout(aggregation)

        def work(c: C) -> None:
            for duration in layout.durations:
                sql = f"DELETE FROM {self._table(layout, duration)} WHERE {self._q(SHARD)} = :shard"
                c.run(sql, {"shard": shard})

        self._transaction(work)
