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
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ..errors import StoreError
from ..masking import mask_passwords
from ..pauses import Pauses
from ..plan.nodes import AggDuration, AggregationDef
from ..types import Type
from .address import Database
from .aggregation_store import SHARD_COLUMN, AggregationStore
from .database_limits import ColumnLimits, unfit
from .dialects import DIALECTS, READS, Dialect, execute
from .layout import (
    DROPPED,
    ERRORS,
    LAST_TIMESTAMP,
    LEDGER,
    NULL_KEYS,
    PURGED,
    SHARD,
    TIMESTAMP,
    StoredColumn,
    TableLayout,
    layouts_of,
    rounds_of_keys,
    rows_from_store,
    rows_to_store,
)
from .patience import Patience
from .store_protocol import ErrorRow, GroupFilter
from .table_checks import FoundTable, check_table, missing_table

T = TypeVar("T")
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


class _SqlTransaction:
    """A `Transaction` on a connection."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def execute(self, sql: str) -> None:
        execute(self.connection, sql)

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> int:
        return self.connection.execute(sa.text(sql), dict(values or {})).rowcount

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        return self.connection.execute(sa.text(sql), dict(values or {})).fetchall()

    def table(self, sql: str, values: Mapping[str, Any], columns: Sequence[StoredColumn]) -> pa.Table:
        rows = self.rows(sql, values)
        by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        arrays = [
            _array(c, [_decode_set(v) for v in column] if c.role == "set" else column)
            for c, column in zip(columns, by_column, strict=True)
        ]
        return pa.table(arrays, schema=pa.schema([(c.name, c.arrow) for c in columns]))


class SqlStore(AggregationStore[_SqlTransaction]):
    """A `Store` in a database that SQLAlchemy knows. Thread-safe.

    Raises StoreError if the database cannot be reached, or refuses the user. With `read_only` nothing is written:
    `prepare` raises StoreError for a table that is missing.
    """

    def __init__(self, database: Database, patience: Patience | None = None, *, read_only: bool = False) -> None:
        super().__init__()
        self.database = database
        self._read_only = read_only
        self.path = str(database)
        self.patience = patience or Patience()
        self._dialect: Dialect = DIALECTS[database.kind]
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

    def _make_own_tables(self, c: _SqlTransaction) -> None:
        d, q = self._dialect, self.quote_name
        key, text = d.type_of(SHARD_COLUMN), d.types[Type.STRING]
        c.execute(
            f"CREATE TABLE IF NOT EXISTS {q(LEDGER)} "
            f"(app {key}, run {key}, batch BIGINT, PRIMARY KEY (app, run, batch))"
        )
        c.execute(
            f"CREATE TABLE IF NOT EXISTS {q(ERRORS)} (id {d.serial}, app {key} NOT NULL, stream {text} NOT NULL, "
            f"ts BIGINT, {q('values')} {text} NOT NULL, reason {text} NOT NULL)"
        )
        c.execute(f"CREATE TABLE IF NOT EXISTS {q(PURGED)} (name {key} NOT NULL PRIMARY KEY, begins BIGINT NOT NULL)")
        c.execute(f"CREATE TABLE IF NOT EXISTS {q(DROPPED)} (app {key} NOT NULL PRIMARY KEY, errors BIGINT NOT NULL)")

    def quote_name(self, name: str) -> str:
        return self._dialect.quote_name(name)

    def close(self) -> None:
        """Closes the connections. The store cannot be used afterwards."""
        self._is_closed = True
        self._engine.dispose()

    def _transaction(self, work: Callable[[_SqlTransaction], T], *, reads: bool = False) -> T:
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
                    return work(_SqlTransaction(c))

        return run_transaction(attempt, self.path, self._dialect, self.patience)

    # ------------------------------------------------------------------------------------------------------- tables

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        layouts = layouts_of(definitions)
        self._layouts.update((x.aggregation, x) for x in layouts)
        self._transaction(lambda c: self._prepare(c.connection, layouts))

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
            + ", ".join(f"MODIFY {d.quote_name(n)} {d.type_of(SHARD_COLUMN)} NOT NULL" for n in columns)
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

    def _column_names(self, c: _SqlTransaction, table: str) -> Sequence[str] | None:
        types = self._found(c.connection, table)
        return None if types is None else [*types]

    def _whole_value(self, expression: str, column: StoredColumn) -> str:
        return expression if column.role == "set" else self._dialect.read(expression, column.type)

    def _text_of(self, name: str) -> str:
        return str(sa.cast(sa.literal_column(name), sa.String).compile(dialect=self._engine.dialect))

    # ------------------------------------------------------------------------------------------------------- writing

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        layout = self._layout(aggregation)
        return unfit(self._limits[aggregation], layout.columns, partials)

    def _merge_all(self, c: _SqlTransaction, layout: TableLayout, shards: Sequence[tuple[str, pa.Table]]) -> None:
        in_order = sorted(shards, key=lambda pair: pair[0])  # as all nodes do: they wait for each other's rows
        for duration in layout.durations:
            for shard, partial in in_order:
                for part in rows_to_store(layout, partial, duration, shard).to_batches():
                    self._merge(c, layout, duration, pa.Table.from_batches([part]))

    def _note_purge(self, c: _SqlTransaction, table: str, begins: int) -> None:
        d, (name, time) = self._dialect, map(self.quote_name, ("name", "begins"))
        sql = d.upsert(PURGED, [name, time], [name], [(time, d.greatest(d.was(PURGED, time), d.now(time)))])
        types = [(name, d.type_of(SHARD_COLUMN)), (time, d.types[Type.LONG])]
        d.load(c.connection, sql, types, pa.table({"name": [table], "begins": pa.array([begins], pa.int64())}))

    def _merge(
        self, c: _SqlTransaction, layout: TableLayout, duration: AggDuration, rows: pa.Table, *, overwrite: bool = False
    ) -> None:
        if rows.num_rows == 0:
            return
        first, *others = rounds_of_keys(layout, rows)
        self._merge_round(c, layout, duration, first, overwrite=overwrite)
        for more in others:
            self._merge_round(c, layout, duration, more, overwrite=False)

    def _merge_round(
        self, c: _SqlTransaction, layout: TableLayout, duration: AggDuration, rows: pa.Table, *, overwrite: bool
    ) -> None:
        rows = rows.sort_by([(x.name, "ascending") for x in layout.key])
        sets = [x for x in layout.columns if x.role == "set"]
        if sets:
            rows = _encode_sets(rows if overwrite else self._unite_sets(c, layout, duration, rows, sets), sets)
        q = self._dialect.quote_name
        columns = [(q(x.name), self._dialect.type_of(x)) for x in layout.columns]
        self._dialect.load(c.connection, self._upsert(layout, layout.table(duration), overwrite), columns, rows)

    def _unite_sets(
        self,
        c: _SqlTransaction,
        layout: TableLayout,
        duration: AggDuration,
        rows: pa.Table,
        sets: Sequence[StoredColumn],
    ) -> pa.Table:
        """`rows` with the sets that the table holds under their keys united with theirs."""
        times = rows.column(layout.time)
        low, high = pc.min(times).as_py(), pc.max(times).as_py()
        q, key = self._q, layout.key
        names = ", ".join(self._whole_value(q(x.name), x) for x in (*key, *sets))
        sql = f"SELECT {names} FROM {self._table(layout, duration)} WHERE {q(layout.time)} BETWEEN :low AND :high"
        stored_sets: dict[tuple[Any, ...], Sequence[Any]] = {}
        for row in c.rows(sql, {"low": low, "high": high}):
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

    def _keep_errors(self, c: _SqlTransaction, app: str, errors: Sequence[ErrorRow]) -> None:
        names = f"app, stream, ts, {self._q('values')}, reason"
        sql = sa.text(f"INSERT INTO {self._q(ERRORS)} ({names}) VALUES (:app, :stream, :ts, :v, :r)")
        values = [
            {"app": app, "stream": e.stream, "ts": e.ts, "v": json.dumps(e.values, default=str), "r": e.reason}
            for e in errors
        ]
        c.connection.execute(sql, values)

    # ------------------------------------------------------------------------------------------------------- reading

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
            names = ", ".join([self._q(layout.time), *(self._whole_value(self._q(c.name), c) for c in (*same, *sets))])
            queries.append(f"SELECT {names} FROM {self._table(layout, per)} WHERE {where.sql}")

        def work(c: _SqlTransaction) -> list[Sequence[Any]]:
            return [c.rows(sql, where.values) for sql in queries]

        rows, *of_sets = self._transaction(work, reads=True)
        key = [layout.time, *(x.name for x in same)]
        out = _table_of_rows(columns, key, rows, of_sets[0] if sets else ())
        return rows_from_store(layout, _with_null_groups(out, layout) if groups.merged else out)

    def _select(
        self,
        layout: TableLayout,
        per: AggDuration,
        where: str,
        columns: Sequence[StoredColumn],
        same: Sequence[StoredColumn],
    ) -> str:
        """Rows merged by `same`; null for the sets, which are read apart."""
        q = self._q
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
            q(layout.time) if c.role == "time" else self._whole_value(q(c.name) if c.in_key else self._merge_sql(c), c)
            for c in columns
        ]
        return f"SELECT {', '.join(expressions)} FROM {rows} GROUP BY {keys}"

    def _merge_sql(self, c: StoredColumn) -> str:
        """The aggregate that merges a column over the rows of a bucket and group."""
        name = self._q(c.name)
        if c.role in ("sum", "count"):
            return self._dialect.sum_longs(name) if c.type is Type.LONG else f"sum({name})"
        if c.role == "set":
            return "NULL"
        if c.role == "last":
            return self._dialect.only(f"CASE WHEN latest_first = 1 THEN {name} END", c.type)
        return f"{'min' if c.role == 'min' else 'max'}({name})"


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
