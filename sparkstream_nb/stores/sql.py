"""A store in PostgreSQL, MySQL, MariaDB or SQLite, which several processes may write to at once.

The tables are those that WSO2's servers make (`layout`), with AGG_NULL_KEYS more where this package creates them. Rows
are merged by the database itself, in one upsert per table and micro-batch. Two things are merged here instead, because
not every database can: sets, and in reads the value of the latest event.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ..errors import StoreError
from ..masking import mask_passwords
from ..pauses import Pauses
from ..plan.nodes import AggDuration, AggregationDef, BatchClock
from ..types import Type
from .address import Database
from .database_limits import ColumnLimits, unfit
from .dialects import DIALECTS, READS, Dialect, execute
from .layout import (
    DROPPED,
    EVENT_TIMESTAMP,
    LAST_TIMESTAMP,
    NULL_KEYS,
    PURGED,
    SHARD,
    TIMESTAMP,
    StoredColumn,
    TableLayout,
    key_conditions,
    key_value,
    layouts_of,
    like_pattern,
    rounds_of_keys,
    rows_from_store,
    rows_to_store,
    several_rows,
)
from .patience import Patience
from .store_protocol import EACH_GROUP, KEPT_BATCHES, BucketRange, Buckets, ErrorRow, GroupFilter, ShardRows
from .table_checks import FoundTable, check_table, missing_table

T = TypeVar("T")
LEDGER = "SPARKSTREAM_LEDGER"
ERRORS = "SPARKSTREAM_ERRORS"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two tries of a database that is busy or gone."""


def run_transaction(work: Callable[[], T], where: str, dialect: Dialect, patience: Patience) -> T:
    """Runs `work`, which carries out a transaction, again from its beginning where the database was busy or gone.

    `where` names the database. Raises StoreError if it refuses, or stays away for longer than there is patience.
    """
    waited_seconds, pauses = 0.0, Pauses(FIRST_PAUSE, LONGEST_PAUSE)
    while True:
        try:
            return work()
        except sa.exc.DBAPIError as e:
            trouble = dialect.trouble(e)
            if trouble is None or waited_seconds >= patience.seconds:
                raise StoreError(f"The store {where}: {describe_sql_error(e)}") from e
            if trouble == "gone":
                patience.tell(f"The store {where} cannot be reached and is tried again: {describe_sql_error(e)}")
            delay = pauses.next()
            patience.wait(delay)
            waited_seconds += delay


def of_database(error: Exception) -> bool:
    """True if a database failed, and not for the values that it was given."""
    of_values = sa.exc.IntegrityError | sa.exc.DataError
    return isinstance(error, sa.exc.SQLAlchemyError) and not isinstance(error, of_values)


class SqlStore:
    """A `Store` in a database that SQLAlchemy knows. Thread-safe.

    Raises StoreError if the database cannot be reached, or refuses the user. With `read_only` nothing is written:
    `prepare` raises StoreError for a table that is missing.
    """

    def __init__(self, database: Database, patience: Patience | None = None, *, read_only: bool = False) -> None:
        self.database = database
        self._read_only = read_only
        self.path = str(database)
        self.patience = patience or Patience()
        self._dialect: Dialect = DIALECTS[database.kind]
        self._layouts: dict[str, TableLayout] = {}
        self._limits: dict[str, ColumnLimits] = {}
        self._lock = threading.RLock()
        self._is_closed = False
        self._engine = self._dialect.engine(database)
        try:
            with self._engine.connect() as c:
                self._dialect = self._dialect.of_server(c)
            if not read_only:
                self._transaction(self._make_own_tables)
        except sa.exc.SQLAlchemyError as e:
            self._engine.dispose()
            raise StoreError(f"The store {self.path} cannot be opened: {describe_sql_error(e)}") from None

    def _make_own_tables(self, c: sa.Connection) -> None:
        d, q = self._dialect, self._dialect.quote_name
        key, text = d.type_of(_SHARD_COLUMN), d.types[Type.STRING]
        execute(
            c,
            f"CREATE TABLE IF NOT EXISTS {q(LEDGER)} "
            f"(app {key}, run {key}, batch BIGINT, PRIMARY KEY (app, run, batch))",
        )
        execute(
            c,
            f"CREATE TABLE IF NOT EXISTS {q(ERRORS)} (id {d.serial}, app {key} NOT NULL, stream {text} NOT NULL, "
            f"ts BIGINT, {q('values')} {text} NOT NULL, reason {text} NOT NULL)",
        )
        execute(c, f"CREATE TABLE IF NOT EXISTS {q(PURGED)} (name {key} NOT NULL PRIMARY KEY, begins BIGINT NOT NULL)")
        execute(c, f"CREATE TABLE IF NOT EXISTS {q(DROPPED)} (app {key} NOT NULL PRIMARY KEY, errors BIGINT NOT NULL)")

    def close(self) -> None:
        """Closes the connections. The store cannot be used afterwards."""
        self._is_closed = True
        self._engine.dispose()

    def _transaction(self, work: Callable[[sa.Connection], T], *, reads: bool = False) -> T:
        """Run `work` in a transaction, again from its beginning if the database was busy or gone.

        `work` must leave nothing behind except its writes; with `reads` it writes nothing, and waits for no commit of
        this process. Raises StoreError if the database refuses, or stays away for longer than `Patience` allows.
        """

        def attempt() -> T:
            if self._is_closed:
                raise StoreError(f"The store {self.path} is closed.")
            with contextlib.nullcontext() if reads else self._lock, self._engine.connect() as c:
                if reads:
                    c = c.execution_options(**{READS: True})
                with c.begin():
                    return work(c)

        return run_transaction(attempt, self.path, self._dialect, self.patience)

    # ------------------------------------------------------------------------------------------------------- tables

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        layouts = layouts_of(definitions)
        self._layouts.update((x.aggregation, x) for x in layouts)
        self._transaction(lambda c: self._prepare(c, layouts))

    def _prepare(self, c: sa.Connection, layouts: Sequence[TableLayout]) -> None:
        for layout in layouts:
            plain = False
            for duration in layout.durations:
                table = layout.table(duration)
                self._check_name(table)
                types = self._found(c, table)
                if types is None and self._read_only:
                    raise missing_table(self.path, table)
                if types is None:
                    execute(c, self._create(layout, table))
                    continue
                plain = plain or not any(self._same(n, NULL_KEYS) for n in types)
                self._check(layout.without_null_keys() if plain else layout, c, table, types)
            self._check_collations(layout, c)
            self._limits[layout.aggregation] = self._limits_of(layout, c)
            if plain:  # made by another server, which cannot tell null keys either
                self._layouts[layout.aggregation] = layout.without_null_keys()

    def _check_name(self, table: str) -> None:
        if len(table.encode()) > self._dialect.longest_name:
            raise StoreError(
                f"The table's name '{table}' is too long for {self.database.kind}, which takes "
                f"{self._dialect.longest_name} bytes. Give the aggregation a shorter name."
            )

    def _check(self, layout: TableLayout, c: sa.Connection, table: str, found_types: Mapping[str, Any]) -> None:
        """Names in the layout's spelling, so that the check can compare them."""
        spelling = {self._dialect.stored_name(x.name): x for x in layout.columns}
        types = {spelling[n].name if n in spelling else n: t for n, t in found_types.items()}
        types = {SHARD if self._same(n, SHARD) else n: t for n, t in types.items()}
        key = sa.inspect(c).get_pk_constraint(self._dialect.stored_name(table))["constrained_columns"]
        found_table = FoundTable(
            table, {n: str(t) for n, t in types.items()}, [spelling[k].name if k in spelling else k for k in key]
        )
        expected_types = {x.name: self._dialect.type_of(x) for x in layout.columns}
        columns = {x.name: x for x in layout.columns}
        check_table(
            layout, found_table, expected_types, lambda n: self._dialect.fits(columns[n], types[n]), is_ordered=False
        )

    def _check_collations(self, layout: TableLayout, c: sa.Connection) -> None:
        """Raises StoreError if a table would put groups together whose texts differ."""
        d = self._dialect
        tables = [layout.table(duration) for duration in layout.durations]
        inexact = {table: d.inexact(c, d.stored_name(table)) for table in tables}
        changes = [
            f"ALTER TABLE {d.quote_name(table)} "
            + ", ".join(f"MODIFY {d.quote_name(n)} {d.type_of(_SHARD_COLUMN)} NOT NULL" for n in columns)
            for table, columns in inexact.items()
            if columns
        ]
        if changes:
            table, columns = next((t, inexact_columns) for t, inexact_columns in inexact.items() if inexact_columns)
            column, collation = next(iter(columns.items()))
            raise StoreError(
                f"Column '{column}' of table '{table}' compares texts by {collation}, in which different texts, such "
                f"as 'a' and 'A', are one group. Change it: {'; '.join(changes)}"
            )

    def _limits_of(self, layout: TableLayout, c: sa.Connection) -> ColumnLimits:
        """Limits of the tables, from the table of the smallest duration: an aggregation's tables are made alike."""
        d = self._dialect
        name = d.stored_name(layout.table(layout.durations[0]))
        types = self._found(c, name) or {}
        texts = d.text_columns(c, name, types)
        columns = {x.name: texts[d.stored_name(x.name)] for x in layout.columns if d.stored_name(x.name) in texts}
        return ColumnLimits(self.database.kind, d.holds, columns)

    def _same(self, stored_name: str, name: str) -> bool:
        return stored_name == self._dialect.stored_name(name)

    def _found(self, c: sa.Connection, table: str) -> dict[str, Any] | None:
        """SQLAlchemy's type by name of a table's columns, None if there is no such table."""
        inspector, name = sa.inspect(c), self._dialect.stored_name(table)
        if not inspector.has_table(name):
            return None
        return {str(x["name"]): x["type"] for x in inspector.get_columns(name)}

    def _create(self, layout: TableLayout, table: str) -> str:
        q = self._dialect.quote_name
        columns = [
            f"{q(c.name)} {self._dialect.type_of(c)}{' NOT NULL' if c.in_key else ''}"
            f"{' DEFAULT 0' if c.role == 'nulls' else ''}"
            for c in layout.columns
        ]
        key = ", ".join(q(c.name) for c in layout.key)
        return f"CREATE TABLE {q(table)} ({', '.join(columns)}, PRIMARY KEY ({key}))"

    def drop(self, aggregation: str) -> None:
        layout = self._layout(aggregation)

        def work(c: sa.Connection) -> None:
            for duration in layout.durations:
                execute(c, f"DROP TABLE IF EXISTS {self._table(layout, duration)}")
                deletion = sa.text(f"DELETE FROM {self._dialect.quote_name(PURGED)} WHERE name = :name")
                c.execute(deletion, {"name": layout.table(duration)})

        self._transaction(work)

    def add_shard_id(self, aggregation: str, shard: str, *, dry_run: bool = False) -> list[str]:
        layout, q = self._layout(aggregation), self._dialect.quote_name
        quoted_shard = "'" + shard.replace("'", "''") + "'"

        def work(c: sa.Connection) -> list[str]:
            statements: list[str] = []
            for duration in layout.durations:
                table = layout.table(duration)
                types = self._found(c, table)
                if types is None or any(self._same(n, SHARD) for n in types):
                    continue
                columns = [x for x in layout.columns if any(self._same(n, x.name) for n in types)]
                new_layout = TableLayout(
                    layout.aggregation, (), (*columns[:1], _SHARD_COLUMN, *columns[1:]), True, layout.external
                )
                old_table = f"{table}_WITHOUT_SHARD_ID"
                names = ", ".join(q(x.name) for x in new_layout.columns)
                values = ", ".join(quoted_shard if x.role == "shard" else q(x.name) for x in new_layout.columns)
                statements += [
                    f"ALTER TABLE {q(table)} RENAME TO {q(old_table)}",
                    self._create(new_layout, table),
                    f"INSERT INTO {q(table)} ({names}) SELECT {values} FROM {q(old_table)}",
                    f"DROP TABLE {q(old_table)}",
                ]
            if not dry_run:
                for sql in statements:
                    c.execute(sa.text(sql.replace(":", "\\:")))
            return statements

        return self._transaction(work)

    def _layout(self, aggregation: str) -> TableLayout:
        layout = self._layouts.get(aggregation)
        if layout is None:
            raise StoreError(f"The store {self.path} was not prepared for aggregation '{aggregation}'.")
        return layout

    def _table(self, layout: TableLayout, duration: AggDuration) -> str:
        return self._dialect.quote_name(layout.table(duration))

    # ------------------------------------------------------------------------------------------------------- writing

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        layout = self._layout(aggregation)
        return unfit(self._limits[aggregation], layout.columns, partials)

    def commit(
        self,
        app: str,
        run: str,
        batch: int,
        partials: Mapping[tuple[str, str], pa.Table],
        errors: Sequence[ErrorRow] = (),
        clock: BatchClock | None = None,
    ) -> bool:
        def work(c: sa.Connection) -> bool:
            key = {"app": app, "run": run, "batch": batch}
            ledger = self._dialect.quote_name(LEDGER)
            lookup = sa.text(f"SELECT 1 FROM {ledger} WHERE app = :app AND run = :run AND batch = :batch")
            if c.execute(lookup, key).first() is not None:
                return False
            c.execute(sa.text(f"INSERT INTO {ledger} VALUES (:app, :run, :batch)"), key)
            if batch % KEPT_BATCHES == 0:
                deletion = sa.text(f"DELETE FROM {ledger} WHERE app = :app AND run = :run AND batch < :batch")
                c.execute(deletion, {**key, "batch": batch - KEPT_BATCHES})
            if clock is not None:
                self._purge(c, clock)
            for aggregation in dict.fromkeys(a for a, _ in partials):
                layout = self._layout(aggregation)
                tables = [(shard, t) for (a, shard), t in sorted(partials.items()) if a == aggregation]
                for duration in layout.durations:
                    for shard, partial in tables:
                        for part in rows_to_store(layout, partial, duration, shard).to_batches():
                            self._merge(c, layout, duration, pa.Table.from_batches([part]))
            self._keep_errors(c, app, errors)
            return True

        return self._transaction(work)

    def _purge(self, c: sa.Connection, clock: BatchClock) -> None:
        for layout in self._layouts.values():
            retention = layout.retention
            due = None if retention is None else retention.due(clock)
            if retention is None or due is None:
                continue
            for duration in layout.durations:
                begins = retention.begins(duration, due)
                if begins is not None:
                    condition = f"{self._dialect.quote_name(layout.time)} < {int(begins)}"
                    execute(c, f"DELETE FROM {self._table(layout, duration)} WHERE {condition}")
                    self._note_purge(c, layout.table(duration), begins)

    def _note_purge(self, c: sa.Connection, table: str, begins: int) -> None:
        d = self._dialect
        name, time_ = d.quote_name("name"), d.quote_name("begins")
        sql = d.upsert(PURGED, [name, time_], [name], [(time_, d.greatest(d.was(PURGED, time_), d.now(time_)))])
        types = [(name, d.type_of(_SHARD_COLUMN)), (time_, d.types[Type.LONG])]
        d.load(c, sql, types, pa.table({"name": [table], "begins": pa.array([begins], pa.int64())}))

    def purged_before(self, aggregation: str, duration: AggDuration) -> int | None:
        table, q = self._layout(aggregation).table(duration), self._dialect.quote_name
        sql = sa.text(f"SELECT begins FROM {q(PURGED)} WHERE name = :name")
        row = self._transaction(lambda c: c.execute(sql, {"name": table}).first(), reads=True)
        return None if row is None else int(row[0])

    def replace(self, aggregation: str, partials: Mapping[str, Sequence[pa.Table]], *, alone: bool = False) -> None:
        layout, q = self._layout(aggregation), self._dialect.quote_name

        def work(c: sa.Connection) -> None:
            for duration in layout.durations:
                table = self._table(layout, duration)
                if alone and layout.partitioned:
                    others = sa.text(f"DELETE FROM {table} WHERE {q(SHARD)} NOT IN :kept")
                    c.execute(others.bindparams(sa.bindparam("kept", expanding=True)), {"kept": list(partials)})
                if layout.external:
                    late = f"SELECT 1 FROM {table} WHERE {q(TIMESTAMP)} <> {q(EVENT_TIMESTAMP)} LIMIT 1"
                    if execute(c, late).first() is not None:
                        raise several_rows(self.path, layout.table(duration))
                for shard, tables in partials.items():
                    for partial in tables:
                        rows = rows_to_store(layout, partial, duration, shard)
                        self._merge(c, layout, duration, rows, overwrite=True)

        self._transaction(work)

    def _merge(
        self, c: sa.Connection, layout: TableLayout, duration: AggDuration, rows: pa.Table, *, overwrite: bool = False
    ) -> None:
        """Merge `rows`, one for each key, into a table, or replace the existing rows with them."""
        if rows.num_rows == 0:
            return
        first, *others = rounds_of_keys(layout, rows)
        self._merge_round(c, layout, duration, first, overwrite=overwrite)
        for more in others:
            self._merge_round(c, layout, duration, more, overwrite=False)

    def _merge_round(
        self, c: sa.Connection, layout: TableLayout, duration: AggDuration, rows: pa.Table, *, overwrite: bool
    ) -> None:
        rows = rows.sort_by([(x.name, "ascending") for x in layout.key])
        sets = [x for x in layout.columns if x.role == "set"]
        if sets:
            rows = _encode_sets(rows if overwrite else self._unite_sets(c, layout, duration, rows, sets), sets)
        q = self._dialect.quote_name
        columns = [(q(x.name), self._dialect.type_of(x)) for x in layout.columns]
        self._dialect.load(c, self._upsert(layout, layout.table(duration), overwrite), columns, rows)

    def _unite_sets(
        self, c: sa.Connection, layout: TableLayout, duration: AggDuration, rows: pa.Table, sets: Sequence[StoredColumn]
    ) -> pa.Table:
        """`rows` with the sets that the table holds under their keys united with theirs."""
        times = rows.column(layout.time)
        low, high = pc.min(times).as_py(), pc.max(times).as_py()
        q, key = self._dialect.quote_name, layout.key
        names = ", ".join(q(x.name) for x in (*key, *sets))
        sql = f"SELECT {names} FROM {self._table(layout, duration)} WHERE {q(layout.time)} BETWEEN :low AND :high"
        stored_sets: dict[tuple[Any, ...], Sequence[Any]] = {}
        for row in c.execute(sa.text(sql), {"low": low, "high": high}):
            stored_sets[_hashable_key(row[: len(key)])] = row[len(key) :]
        if not stored_sets:
            return rows
        keys = list(map(_hashable_key, zip(*(rows.column(x.name).to_pylist() for x in key), strict=True)))
        for i, x in enumerate(sets):
            fresh = rows.column(x.name).to_pylist()
            both = [
                _union([_decode_set(stored_sets[k][i]), f]) if k in stored_sets else f
                for k, f in zip(keys, fresh, strict=True)
            ]
            rows = rows.set_column(rows.column_names.index(x.name), x.name, pa.array(both, x.arrow))
        return rows

    def _upsert(self, layout: TableLayout, table: str, overwrite: bool) -> str:
        """Merge fresh rows into `table`; fresh rows win ties of AGG_LAST_EVENT_TIMESTAMP, or always."""
        d = self._dialect
        sets = []
        for c in layout.values:
            name = d.quote_name(c.name)
            was, now = d.was(table, name), d.now(name)
            if overwrite:
                expression = now
            elif c.role in ("sum", "count"):
                both = d.add_longs(was, now) if c.type is Type.LONG else d.add_doubles(was, now)
                expression = f"coalesce({both}, {was}, {now})"
            elif c.role == "min":
                expression = d.least(was, now)
            elif c.role == "set":
                expression = now
            elif c.role == "last":
                latest = d.quote_name(LAST_TIMESTAMP)
                expression = f"CASE WHEN {d.now(latest)} >= {d.was(table, latest)} THEN {now} ELSE {was} END"
            else:
                expression = d.greatest(was, now)
            sets.append((name, expression))
        names, key = ([d.quote_name(c.name) for c in columns] for columns in (layout.columns, layout.key))
        return d.upsert(table, names, key, sets)

    def _keep_errors(self, c: sa.Connection, app: str, errors: Sequence[ErrorRow]) -> None:
        if errors:
            q = self._dialect.quote_name
            names = f"app, stream, ts, {q('values')}, reason"
            sql = f"INSERT INTO {q(ERRORS)} ({names}) VALUES (:app, :stream, :ts, :v, :r)"
            values = [
                {"app": app, "stream": e.stream, "ts": e.ts, "v": json.dumps(e.values, default=str), "r": e.reason}
                for e in errors
            ]
            c.execute(sa.text(sql), values)

    # ------------------------------------------------------------------------------------------------------- reading

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

    def _read(
        self, layout: TableLayout, per: AggDuration, bounds: tuple[int, int], groups: GroupFilter, *, by_shard: bool
    ) -> pa.Table:
        # Rows are grouped even for one shard: other systems write several rows for a bucket, by AGG_TIMESTAMP.
        by_group = [] if groups.merged else [c for c in layout.columns if c.role in ("group", "nulls")]
        same = [c for c in layout.columns if c in by_group or (by_shard and c.role == "shard")]
        columns = [c for c in layout.columns if not c.in_key or c.role == "time" or c in same]
        where = self._where(layout, bounds, groups)
        sets = [c for c in columns if c.role == "set"]
        queries = [self._select(layout, per, where.sql, columns, same)]
        if sets:
            names = ", ".join(self._dialect.quote_name(x) for x in [layout.time, *(x.name for x in (*same, *sets))])
            queries.append(f"SELECT {names} FROM {self._table(layout, per)} WHERE {where.sql}")

        def work(c: sa.Connection) -> list[list[Any]]:
            return [list(c.execute(sa.text(sql), where.values).fetchall()) for sql in queries]

        rows, *of_sets = self._transaction(work, reads=True)
        key = [layout.time, *(x.name for x in same)]
        out = _table_of_rows(columns, key, rows, of_sets[0] if sets else ())
        return rows_from_store(layout, _with_null_groups(out, layout) if groups.merged else out)

    def _where(self, layout: TableLayout, bounds: tuple[int, int], groups: GroupFilter) -> _Where:
        """The rows of a range of time and of some groups."""
        time_ = self._dialect.quote_name(layout.time)
        low, high = (min(max(b, -(2**63)), 2**63 - 1) for b in bounds)
        parts, values = [f"{time_} >= :low", f"{time_} < :high"], {"low": low, "high": high}
        if layout.external:
            # Late rows are stored under a later AGG_TIMESTAMP, by which the table is ordered.
            parts.append(f"{self._dialect.quote_name(TIMESTAMP)} >= :low")
        conditions = key_conditions(layout, groups)
        if conditions.null_mask:
            parts.append(f"({self._dialect.quote_name(NULL_KEYS)} & {conditions.null_mask}) = {conditions.null_bits}")
        for i, (name, value) in enumerate(conditions.equal):
            parts.append(f"{self._dialect.quote_name(name)} = :group_{i}")
            values[f"group_{i}"] = value
        return _Where(" AND ".join(parts), values)

    def count(
        self,
        aggregation: str,
        per: AggDuration,
        bounds: tuple[int, int],
        groups: GroupFilter = EACH_GROUP,
        *,
        most: int,
    ) -> int:
        layout = self._layout(aggregation)
        where = self._where(layout, bounds, groups)
        rows = f"SELECT 1 AS one FROM {self._table(layout, per)} WHERE {where.sql} LIMIT {int(most)}"
        sql = sa.text(f"SELECT count(*) FROM ({rows}) counted")
        return self._transaction(lambda c: int(c.execute(sql, where.values).scalar_one()), reads=True)

    def buckets(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> Buckets:
        layout = self._layout(aggregation)
        time_, table = self._dialect.quote_name(layout.time), self._table(layout, per)
        where = self._where(layout, (bucket_range.start, bucket_range.end), groups)
        every = self._where(layout, (-(2**63), 2**63 - 1), groups)
        order, most = "DESC" if bucket_range.latest else "ASC", int(bucket_range.most)

        def work(c: sa.Connection) -> tuple[list[int], int, int]:
            sql = f"SELECT DISTINCT {time_} FROM {table} WHERE {where.sql} ORDER BY 1 {order} LIMIT {most}"
            starts = sorted(int(row[0]) for row in c.execute(sa.text(sql), where.values))
            first = starts[0] if starts else bucket_range.start
            count_sql = (
                f"SELECT count(DISTINCT CASE WHEN {time_} < :first THEN {time_} END), count(DISTINCT {time_}) "
                f"FROM {table} WHERE {every.sql}"
            )
            before, total = c.execute(sa.text(count_sql), {**every.values, "first": first}).one()
            return starts, int(before), int(total)

        starts, before, total = self._transaction(work, reads=True)
        return Buckets(np.array(starts, np.int64), before, total)

    def last_bucket(
        self, aggregation: str, per: AggDuration, shard: str, end: int, groups: GroupFilter = EACH_GROUP
    ) -> int | None:
        layout = self._sharded_layout(aggregation)
        q = self._dialect.quote_name
        where = self._where(layout, (-(2**63), end), groups)
        sql = sa.text(
            f"SELECT max({q(layout.time)}) FROM {self._table(layout, per)} WHERE {where.sql} AND {q(SHARD)} = :shard"
        )
        values = {**where.values, "shard": shard}
        bucket = self._transaction(lambda c: c.execute(sql, values).scalar_one(), reads=True)
        return None if bucket is None else int(bucket)

    def key_values(
        self,
        aggregation: str,
        per: AggDuration,
        key: int,
        most: int,
        groups: GroupFilter = EACH_GROUP,
        containing: str = "",
    ) -> list[Any]:
        layout = self._layout(aggregation)
        column = layout.groups[key]
        name = self._dialect.quote_name(column.name)
        bits = [layout.null_bit(key), layout.null_bit(key) | layout.sign_bit(key)]
        null, marks = (
            f"({self._dialect.quote_name(NULL_KEYS)} & {bit})" if layout.marks_nulls else "0" for bit in bits
        )
        where = self._where(layout, (-(2**63), 2**63 - 1), groups)
        condition, values = where.sql, dict(where.values)
        if containing:
            text = sa.cast(sa.literal_column(name), sa.String).compile(dialect=self._engine.dialect)
            condition += f" AND lower({text}) LIKE :containing ESCAPE '!' AND {null} = 0"
            values["containing"] = like_pattern(containing)
        sql = sa.text(
            f"SELECT DISTINCT {name}, {marks} FROM {self._table(layout, per)} WHERE {condition} "
            f"ORDER BY 1, 2 LIMIT {int(most)}"
        )
        rows = self._transaction(lambda c: c.execute(sql, values).fetchall(), reads=True)
        keys = _array(column, [v for v, _ in rows]).to_pylist()
        return [key_value(layout, key, v, int(bits)) for v, (_, bits) in zip(keys, rows, strict=True)]

    def _select(
        self,
        layout: TableLayout,
        per: AggDuration,
        where: str,
        columns: Sequence[StoredColumn],
        same: Sequence[StoredColumn],
    ) -> str:
        """Rows merged by `same`; null for the sets, which are read apart."""
        q = self._dialect.quote_name
        keys = ", ".join([q(layout.time), *(q(c.name) for c in same)])
        rows = f"{self._table(layout, per)} WHERE {where}"
        if any(c.role == "last" for c in columns):
            by = [LAST_TIMESTAMP, TIMESTAMP, *([SHARD] if layout.partitioned else [])]
            order = ", ".join(f"{q(n)} DESC{self._dialect.nulls_last}" for n in by)
            rows = (
                f"(SELECT t.*, row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS latest_first "
                f"FROM {self._table(layout, per)} t WHERE {where}) numbered"
            )
        expressions = [
            q(layout.time) if c.role == "time" else q(c.name) if c.in_key else self._merge_sql(c) for c in columns
        ]
        return f"SELECT {', '.join(expressions)} FROM {rows} GROUP BY {keys}"

    def _merge_sql(self, c: StoredColumn) -> str:
        """The aggregate that merges a column over the rows of a bucket and group."""
        name = self._dialect.quote_name(c.name)
        if c.role in ("sum", "count"):
            return self._dialect.sum_longs(name) if c.type is Type.LONG else f"sum({name})"
        if c.role == "set":
            return "NULL"
        if c.role == "last":
            return self._dialect.only(f"CASE WHEN latest_first = 1 THEN {name} END", c.type)
        return f"{'min' if c.role == 'min' else 'max'}({name})"

    def last_committed(self, app: str, run: str) -> int:
        last = sa.text(f"SELECT max(batch) FROM {self._dialect.quote_name(LEDGER)} WHERE app = :app AND run = :run")
        batch = self._transaction(lambda c: c.execute(last, {"app": app, "run": run}).scalar(), reads=True)
        return -1 if batch is None else int(batch)

    def errors(self, app: str) -> pa.Table:
        q = self._dialect.quote_name
        sql = sa.text(f"SELECT id, stream, ts, {q('values')}, reason FROM {q(ERRORS)} WHERE app = :app ORDER BY id")
        rows = self._transaction(lambda c: c.execute(sql, {"app": app}).fetchall(), reads=True)
        texts = [(name, pa.string()) for name in ("values", "reason")]
        schema = pa.schema([("id", pa.int64()), ("stream", pa.string()), ("ts", pa.int64()), *texts])
        return pa.table([pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)], schema=schema)

    def forget_errors(self, app: str, ids: Sequence[int]) -> None:
        sql = sa.text(f"DELETE FROM {self._dialect.quote_name(ERRORS)} WHERE app = :app AND id = :id")
        self._transaction(lambda c: c.execute(sql, [{"app": app, "id": i} for i in ids]))

    def trim_errors(self, app: str, most: int | None) -> int:
        errors, dropped_errors = self._dialect.quote_name(ERRORS), self._dialect.quote_name(DROPPED)
        whose = {"app": app}

        def work(c: sa.Connection) -> int:
            dropped_count = c.execute(sa.text(f"SELECT errors FROM {dropped_errors} WHERE app = :app"), whose).scalar()
            if most is None:
                return int(dropped_count or 0)
            # MySQL deletes nothing by a query of the same table.
            last = sa.text(f"SELECT id FROM {errors} WHERE app = :app ORDER BY id DESC LIMIT 1 OFFSET :most")
            id = c.execute(last, {**whose, "most": most}).scalar()
            if id is None:
                return int(dropped_count or 0)
            deletion = c.execute(sa.text(f"DELETE FROM {errors} WHERE app = :app AND id <= :id"), {**whose, "id": id})
            total = int(dropped_count or 0) + deletion.rowcount
            c.execute(sa.text(f"DELETE FROM {dropped_errors} WHERE app = :app"), whose)
            c.execute(sa.text(f"INSERT INTO {dropped_errors} (app, errors) VALUES (:app, :n)"), {**whose, "n": total})
            return total

        return self._transaction(work)

    # -------------------------------------------------------------------------------------------------------- shards

    def shards(self, aggregation: str) -> list[ShardRows]:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            return []
        shard = self._dialect.quote_name(SHARD)
        every = " UNION ALL ".join(f"SELECT {shard} FROM {self._table(layout, d)}" for d in layout.durations)
        sql = f"SELECT {shard}, count(*) FROM ({every}) held GROUP BY {shard}"
        rows: Sequence[Any] = self._transaction(lambda c: execute(c, sql).fetchall(), reads=True)
        return sorted((ShardRows(str(s), int(n)) for s, n in rows), key=lambda s: s.shard)

    def move_shard(self, aggregation: str, old: str, new: str) -> None:
        layout = self._sharded_layout(aggregation)
        if old == new:
            return

        def work(c: sa.Connection) -> None:
            q = self._dialect.quote_name
            for duration in layout.durations:
                table = self._table(layout, duration)
                names = ", ".join(q(x.name) for x in layout.columns)
                sql = sa.text(f"SELECT {names} FROM {table} WHERE {q(SHARD)} = :old")
                rows = c.execute(sql, {"old": old}).fetchall()
                c.execute(sa.text(f"DELETE FROM {table} WHERE {q(SHARD)} = :old"), {"old": old})
                values = list(zip(*rows, strict=True)) if rows else [()] * len(layout.columns)
                arrays = [
                    pa.array([new] * len(rows), pa.string()) if x.role == "shard"
                    else pa.array([_decode_set(v) for v in column], x.arrow) if x.role == "set"
                    else _array(x, column)
                    for x, column in zip(layout.columns, values, strict=True)
                ]  # fmt: skip
                self._merge(c, layout, duration, pa.table(arrays, schema=layout.schema))

        self._transaction(work)

    def delete_shard(self, aggregation: str, shard: str) -> None:
        layout = self._sharded_layout(aggregation)

        def work(c: sa.Connection) -> None:
            for duration in layout.durations:
                sql = f"DELETE FROM {self._table(layout, duration)} WHERE {self._dialect.quote_name(SHARD)} = :shard"
                c.execute(sa.text(sql), {"shard": shard})

        self._transaction(work)

    def _sharded_layout(self, aggregation: str) -> TableLayout:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            raise StoreError(f"Aggregation '{aggregation}' is not partitioned by id; it has no shards.")
        return layout


@dataclass(frozen=True)
class _Where:
    """A condition, and the values of its parameters."""

    sql: str
    values: dict[str, Any]


_SHARD_COLUMN = StoredColumn(SHARD, "shard", Type.STRING)


def describe_sql_error(error: sa.exc.SQLAlchemyError) -> str:
    """The driver's message, in one line, without passwords."""
    cause = getattr(error, "orig", None) or error
    words = " ".join(str(cause).split())
    return mask_passwords(words)


def _array(column: StoredColumn, values: Sequence[Any]) -> pa.Array:
    """A column of a driver's values, which may count bools as numbers and give sums as decimals."""
    if column.role == "set":
        return pa.array(list(values), column.arrow)
    convert = {Type.BOOL: bool, Type.INT: int, Type.LONG: int, Type.FLOAT: float, Type.DOUBLE: float}.get(column.type)
    if convert is not None:
        values = [None if v is None else convert(v) for v in values]
    return pa.array(list(values), column.arrow)


def _hashable_key(values: Iterable[Any]) -> tuple[Any, ...]:
    """A key as Python finds it again: NaN does not equal itself."""
    return tuple("NaN" if v != v else v for v in values)


def _union(sets: Iterable[Sequence[Any] | None]) -> list[Any] | None:
    """The distinct elements of several sets, in the order in which they come; None if all are null."""
    seen: dict[Any, Any] = {}
    some = False
    for s in sets:
        if s is not None:
            some = True
            for v in s:
                seen.setdefault("NaN" if v != v else v, v)
    return list(seen.values()) if some else None


def _table_of_rows(
    columns: Sequence[StoredColumn], key: Sequence[str], rows: Sequence[Any], of_sets: Iterable[Any]
) -> pa.Table:
    """Rows of an aggregation in the order of their key. `of_sets`: the key and the sets of each row of the database,
    which are united where several rows of it are one here."""
    values = dict(zip((c.name for c in columns), zip(*rows, strict=True), strict=True)) if rows else {}
    sets = [c.name for c in columns if c.role == "set"]
    if rows:
        sets_by_key = _united_by_key(of_sets, len(key), len(sets))
        keys = list(map(_hashable_key, zip(*(values[name] for name in key), strict=True)))
        values |= {name: tuple(sets_by_key[k][i] for k in keys) for i, name in enumerate(sets)}
    arrays = [_array(c, values.get(c.name, ())) for c in columns]
    table = pa.table(arrays, schema=pa.schema([(c.name, c.arrow) for c in columns]))
    return table.sort_by([(name, "ascending") for name in key])


def _with_null_groups(table: pa.Table, layout: TableLayout) -> pa.Table:
    """Rows of all groups together, whose group columns are null."""
    for c in layout.groups:
        table = table.append_column(c.name, pa.nulls(table.num_rows, c.arrow))
    return table


def _united_by_key(rows: Iterable[Any], keys: int, sets: int) -> dict[tuple[Any, ...], list[list[Any] | None]]:
    sets_by_key: dict[tuple[Any, ...], list[list[Any] | None]] = {}
    for row in rows:
        row_sets = sets_by_key.setdefault(_hashable_key(row[:keys]), [None] * sets)
        for i in range(sets):
            row_sets[i] = _union([row_sets[i], _decode_set(row[keys + i])])
    return sets_by_key


def _encode_sets(rows: pa.Table, sets: Sequence[StoredColumn]) -> pa.Table:
    """`rows` with sets as JSON texts."""
    for x in sets:
        texts = [None if v is None else json.dumps(v) for v in rows.column(x.name).to_pylist()]
        rows = rows.set_column(rows.column_names.index(x.name), x.name, pa.array(texts, pa.string()))
    return rows


def _decode_set(text: str | None) -> list[Any] | None:
    return None if text is None else json.loads(text)
