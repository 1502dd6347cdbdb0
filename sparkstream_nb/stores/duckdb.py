"""The default store: one DuckDB file per app. One process may write to it at a time."""

from __future__ import annotations

import atexit
import contextlib
import glob
import json
import os
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ..errors import StoreError
from ..plan.nodes import AggDuration, AggregationDef, BatchClock
from ..system import put_in_place, runs
from ..types import Type
from .address import MEMORY
from .duckdb_blocks import check_blocks
from .layout import (
    DROPPED,
    EVENT_TIMESTAMP,
    LAST_TIMESTAMP,
    NULL_KEYS,
    PURGED,
    SHARD,
    SUFFIX,
    TIMESTAMP,
    StoredColumn,
    TableLayout,
    key_conditions,
    key_value,
    layouts_of,
    like_pattern,
    rows_from_store,
    rows_to_store,
    several_rows,
)
from .store_protocol import EACH_GROUP, KEPT_BATCHES, BucketRange, Buckets, ErrorRow, GroupFilter, ShardRows
from .table_checks import FoundTable, check_table, missing_table

_open_stores: weakref.WeakSet[DuckDBStore] = weakref.WeakSet()

LEDGER = "SPARKSTREAM_LEDGER"
ERRORS = "SPARKSTREAM_ERRORS"

_SQL: dict[Type, str] = {
    Type.STRING: "VARCHAR", Type.INT: "INTEGER", Type.LONG: "BIGINT",
    Type.FLOAT: "FLOAT", Type.DOUBLE: "DOUBLE", Type.BOOL: "BOOLEAN",
}  # fmt: skip

_UNFINISHED = re.compile(r"\.sparkstream-(\d+)-[0-9a-f]{16}\.new(?:\.wal)?\Z")
"""The end of the name of a database that a process, whose number it has, makes."""


@atexit.register
def _close_all() -> None:
    for store in list(_open_stores):
        store.close()


def check_file(path: str | Path) -> None:
    """Raises StoreError if `path` cannot be a store: a folder, or a file of another kind. Opens no database."""
    file = Path(path)
    if str(path) == MEMORY:
        return
    if not file.exists():
        folder = next(p for p in file.absolute().parents if p.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise StoreError(f"The store {path} cannot be created: {folder} is not a folder that may be written to.")
        return
    if file.is_dir():
        raise StoreError(f"The store {path} is a folder: name a file, such as {file / 'store.duckdb'}.")
    try:
        with file.open("rb") as reader:
            head = reader.read(12)
    except OSError as e:
        raise StoreError(f"The store {path} cannot be read: {e.strerror or e}.") from None
    if head and head[8:] != b"DUCK":
        raise StoreError(f"The store {path} is not a DuckDB file: name another one, or a new one.")


def _make_file(path: Path) -> None:
    """An empty database, whole or not there: a process that dies while DuckDB writes it leaves nothing at `path`."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.sparkstream-*"):
        match = _UNFINISHED.search(left.name)
        if match and not runs(int(match[1])):
            left.unlink(missing_ok=True)
    new = path.with_name(f".{path.name}.sparkstream-{os.getpid()}-{os.urandom(8).hex()}.new")
    duckdb.connect(str(new)).close()
    new.chmod(0o600)
    put_in_place(new, path)


_UNUSABLE = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.SerializationException,
    duckdb.TransactionException,
)
"""DuckDB's errors if its file is damaged or cannot be written."""


def _make_log(path: Path) -> None:
    """Create DuckDB's write-ahead log of the database at `path`, readable by its owner alone: DuckDB continues an
    existing one, and would let others read one of its own. It removes the log whenever it is done with it.
    """
    os.close(os.open(f"{path}.wal", os.O_CREAT | os.O_WRONLY, 0o600))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise StoreError(f"The folder {folder} of the store cannot be made: {e.strerror or e}.") from None


def quote_name(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def read_all_tables(path: Path) -> int:
    """Read all blocks of a store, which have checksums, and all columns of all tables; returns the number of tables.
    Raises StoreError or DamagedFile if the file is damaged, StoreError if it is in use.
    """
    with contextlib.closing(DuckDBStore(path, read_only=True)) as store, store._usable():
        tables = store._db.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        for (name,) in tables:
            store._db.execute(f"SELECT count(hash(t)) FROM {quote_name(name)} t").fetchall()
        check_blocks(path)
    return len(tables)


class DuckDBStore:
    """A `Store` in a DuckDB file (`:memory:` for a temporary one). Thread-safe.

    Raises StoreError if the file cannot be opened, for example because another process has it open. With `read_only`
    the file must be there, and nothing is written: `prepare` raises StoreError for a table that is missing. `threads`
    is the number for DuckDB: one for each core of the machine, if that is None.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, threads: int | None = None) -> None:
        self.path = str(path)
        self._read_only = read_only
        self._lock = threading.RLock()
        self._layouts: dict[str, TableLayout] = {}
        if read_only and not Path(path).is_file():
            raise StoreError(f"There is no store {path}. Name the DuckDB file of the aggregations.")
        if self.path != MEMORY:
            _make_folder(Path(self.path).parent)
        try:
            if self.path != MEMORY and not Path(self.path).exists():
                _make_file(Path(self.path))
            self._db = duckdb.connect(self.path, read_only, {} if threads is None else {"threads": threads})
        except duckdb.Error as e:
            if re.search(r"\block\b", str(e)) is None:  # a damaged block is no lock
                raise self._unusable(e) from e
            raise StoreError(
                f"The store {self.path} cannot be opened. If another process has it, end that first; "
                f"a DuckDB file has one writer. DuckDB says: {e}"
            ) from e
        # In a notebook DuckDB would put a bar of its own into whatever cell runs.
        self._db.execute("SET enable_progress_bar = false")
        # Writes are planned as written. There is nothing to improve in a merge, and looking for it is a quarter of the
        # cost of a small one; a merge of 200,000 rows takes as long.
        self._db.execute("PRAGMA disable_optimizer")
        # Reads have a connection of their own: they see committed rows, and do not wait for a commit under way.
        self._reading = threading.Lock()
        self._reader: duckdb.DuckDBPyConnection | None = self._db.cursor()
        if not read_only:
            self._make_own_tables()
        _open_stores.add(self)

    def _make_own_tables(self) -> None:
        with self._transaction():
            self._db.execute(
                f"CREATE TABLE IF NOT EXISTS {LEDGER} "
                "(app VARCHAR, run VARCHAR, batch BIGINT, PRIMARY KEY (app, run, batch))"
            )
            number = f"id BIGINT DEFAULT nextval('{ERRORS}_IDS')"
            self._db.execute(f"CREATE SEQUENCE IF NOT EXISTS {ERRORS}_IDS")
            self._db.execute(
                f"CREATE TABLE IF NOT EXISTS {ERRORS} "
                '(app VARCHAR NOT NULL, stream VARCHAR NOT NULL, ts BIGINT, "values" VARCHAR NOT NULL, '
                f"reason VARCHAR NOT NULL, {number})"
            )
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {PURGED} (name VARCHAR PRIMARY KEY, begins BIGINT NOT NULL)")
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {DROPPED} (app VARCHAR PRIMARY KEY, errors BIGINT NOT NULL)")
            # Files made before rows without a time were kept as such, and before errors had numbers. Others are left
            # alone: DuckDB 1 cannot resume a killed process's changes of a table with such numbers.
            columns = self._db.execute(f"SELECT name, \"notnull\" FROM pragma_table_info('{ERRORS}')").fetchall()
            not_null = dict(columns)
            if not_null["ts"]:
                self._db.execute(f"ALTER TABLE {ERRORS} ALTER COLUMN ts DROP NOT NULL")
            if "id" not in not_null:
                self._db.execute(f"ALTER TABLE {ERRORS} ADD COLUMN {number}")

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        """Turn DuckDB's errors for a damaged file or a full disk into StoreError."""
        try:
            yield
        except duckdb.Error as e:
            if type(e) is duckdb.Error or isinstance(e, _UNUSABLE):
                raise self._unusable(e) from e
            raise

    def _unusable(self, error: duckdb.Error) -> StoreError:
        reason = str(error).strip().partition("\n")[0].rstrip(".!")
        return StoreError(
            f"The store {self.path} cannot be used: {reason}. If it is damaged, put it back from a copy; fresh=True "
            "(--fresh) starts from scratch"
        )

    def close(self) -> None:
        """Closes the file. The store cannot be used afterwards."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
        with self._lock, contextlib.suppress(AttributeError):  # closed already
            self._db.close()
            # What Spark's gateway still holds of the store must not keep DuckDB's objects to the end of the process.
            del self._db

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, one at a time."""
        with self._lock, self._usable():
            if self.path != MEMORY and not self._read_only:
                _make_log(Path(self.path))
            self._db.begin()
            try:
                yield
            except BaseException:
                with contextlib.suppress(*_UNUSABLE):
                    self._db.rollback()
                raise
            self._db.commit()

    # ------------------------------------------------------------------------------------------------------- tables

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        layouts = layouts_of(definitions)
        self._layouts.update((x.aggregation, x) for x in layouts)
        with self._transaction():
            for layout in layouts:
                for duration in layout.durations:
                    table = layout.table(duration)
                    columns = self._columns(table)
                    if not columns and self._read_only:
                        raise missing_table(self.path, table)
                    if not columns:
                        self._db.execute(_create(layout, table))
                    else:
                        self._check(layout, table, columns)

    def _check(self, layout: TableLayout, table: str, columns: Mapping[str, str]) -> None:
        expected_types = {c.name: _type(c) for c in layout.columns}
        found_table = FoundTable(table, columns, self._key(table))
        check_table(layout, found_table, expected_types, lambda n: columns[n] == expected_types[n], is_ordered=True)

    def _columns(self, table: str) -> dict[str, str]:
        """Name → SQL type of the columns of `table`; empty if there is no such table."""
        rows = self._db.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE lower(table_name) = lower(?) AND NOT internal "
            "AND database_name = current_database() AND schema_name = current_schema() ORDER BY column_index",
            [table],
        ).fetchall()
        return {str(n): str(t) for n, t in rows}

    def _key(self, table: str) -> tuple[str, ...]:
        rows = self._db.execute(
            "SELECT constraint_column_names FROM duckdb_constraints() WHERE lower(table_name) = lower(?) "
            "AND constraint_type = 'PRIMARY KEY' AND database_name = current_database() "
            "AND schema_name = current_schema()",
            [table],
        ).fetchall()
        return tuple(rows[0][0]) if rows else ()

    def drop(self, aggregation: str) -> None:
        layout = self._layout(aggregation)
        with self._transaction():
            for duration in layout.durations:
                self._db.execute(f"DROP TABLE IF EXISTS {quote_name(layout.table(duration))}")
                self._db.execute(f"DELETE FROM {PURGED} WHERE name = ?", [layout.table(duration)])

    def add_shard_id(self, aggregation: str, shard: str, *, dry_run: bool = False) -> list[str]:
        layout = self._layout(aggregation)
        statements: list[tuple[str, list[str]]] = []
        with self._lock:
            for duration in layout.durations:
                table = layout.table(duration)
                columns = self._columns(table)
                if not columns or SHARD in columns:
                    continue
                names = [c.name for c in layout.columns]
                values = ["?" if n == SHARD else quote_name(n) for n in names]
                old_table = quote_name(f"{table}_WITHOUT_SHARD_ID")
                statements += [
                    (f"ALTER TABLE {quote_name(table)} RENAME TO {old_table}", []),
                    (_create(layout, table), []),
                    (
                        f"INSERT INTO {quote_name(table)} ({', '.join(map(quote_name, names))}) "
                        f"SELECT {', '.join(values)} FROM {old_table}",
                        [shard],
                    ),
                    (f"DROP TABLE {old_table}", []),
                ]
            if not dry_run:
                with self._transaction():
                    for sql, values in statements:
                        self._db.execute(sql, values)
        return [sql for sql, _ in statements]

    def _layout(self, aggregation: str) -> TableLayout:
        layout = self._layouts.get(aggregation)
        if layout is None:
            raise StoreError(f"The store {self.path} was not prepared for aggregation '{aggregation}'.")
        return layout

    # ------------------------------------------------------------------------------------------------------- writing

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        return {}  # DuckDB holds all that SiddhiQL has

    def commit(
        self,
        app: str,
        run: str,
        batch: int,
        partials: Mapping[tuple[str, str], pa.Table],
        errors: Sequence[ErrorRow] = (),
        clock: BatchClock | None = None,
    ) -> bool:
        with self._transaction():
            there = f"SELECT 1 FROM {LEDGER} WHERE app = ? AND run = ? AND batch = ?"
            if self._db.execute(there, [app, run, batch]).fetchall():
                return False
            self._db.execute(f"INSERT INTO {LEDGER} VALUES (?, ?, ?)", [app, run, batch])
            if batch % KEPT_BATCHES == 0:
                oldest_batch = [app, run, batch - KEPT_BATCHES]
                self._db.execute(f"DELETE FROM {LEDGER} WHERE app = ? AND run = ? AND batch < ?", oldest_batch)
            if clock is not None:
                self._purge(clock)
            for aggregation in dict.fromkeys(a for a, _ in partials):
                shards = [(shard, t) for (a, shard), t in partials.items() if a == aggregation]
                self._merge_all(self._layout(aggregation), shards)
            self._keep_errors(app, errors)
        return True

    def _merge_all(self, layout: TableLayout, shards: Sequence[tuple[str, pa.Table]]) -> None:
        """Merges the partials of shards into the tables of all durations."""
        for duration in layout.durations:
            rows = [_batches(rows_to_store(layout, t, duration, shard)) for shard, t in shards]
            # Shards have keys of their own; without SHARD_ID they may share some, and go one by one.
            together = zip_longest(*rows) if layout.partitioned else ((b,) for bs in rows for b in bs)
            for batches in together:
                self._merge(layout, duration, pa.Table.from_batches([b for b in batches if b is not None]))

    def last_committed(self, app: str, run: str) -> int:
        with self._lock, self._usable():
            last = f"SELECT max(batch) FROM {LEDGER} WHERE app = ? AND run = ?"
            # All of it: a result that is not read to its end keeps the connection in use.
            ((batch,),) = self._db.execute(last, [app, run]).fetchall()
        return -1 if batch is None else int(batch)

    def _purge(self, clock: BatchClock) -> None:
        for layout in self._layouts.values():
            retention = layout.retention
            due = None if retention is None else retention.due(clock)
            if retention is None or due is None:
                continue
            for duration in layout.durations:
                begins = retention.begins(duration, due)
                if begins is not None:
                    sql = f"DELETE FROM {quote_name(layout.table(duration))} WHERE {quote_name(layout.time)} < ?"
                    self._db.execute(sql, [begins])
                    self._db.execute(
                        f"INSERT INTO {PURGED} AS kept VALUES (?, ?) "
                        "ON CONFLICT (name) DO UPDATE SET begins = greatest(kept.begins, excluded.begins)",
                        [layout.table(duration), begins],
                    )

    def purged_before(self, aggregation: str, duration: AggDuration) -> int | None:
        table = self._layout(aggregation).table(duration)
        begins = self._query(f"SELECT begins FROM {PURGED} WHERE name = ?", [table]).column(0)
        return int(begins[0].as_py()) if len(begins) else None

    def replace(self, aggregation: str, partials: Mapping[str, Sequence[pa.Table]], *, alone: bool = False) -> None:
        layout = self._layout(aggregation)
        with self._transaction():
            for duration in layout.durations:
                table = quote_name(layout.table(duration))
                if alone and layout.partitioned:
                    marks = ", ".join("?" * len(partials))
                    self._db.execute(f"DELETE FROM {table} WHERE {SHARD} NOT IN ({marks})", list(partials))
                if layout.external:
                    late = f"SELECT 1 FROM {table} WHERE {TIMESTAMP} <> {EVENT_TIMESTAMP} LIMIT 1"
                    if self._db.execute(late).fetchall():
                        raise several_rows(self.path, layout.table(duration))
                for shard, tables in partials.items():
                    for partial in tables:
                        rows = rows_to_store(layout, partial, duration, shard)
                        self._merge(layout, duration, rows, overwrite=True)

    def _merge(self, layout: TableLayout, duration: AggDuration, rows: pa.Table, *, overwrite: bool = False) -> None:
        """Merge `rows`, one for each key, into a table, or replace the existing rows with them."""
        if rows.num_rows == 0:
            return
        self._db.register("fresh_rows", rows)
        try:
            self._db.execute(_upsert(layout, layout.table(duration), overwrite))
        finally:
            self._db.unregister("fresh_rows")

    def _keep_errors(self, app: str, errors: Sequence[ErrorRow]) -> None:
        if not errors:
            return
        rows = pa.table(
            {
                "app": pa.array([app] * len(errors), pa.string()),
                "stream": pa.array([e.stream for e in errors], pa.string()),
                "ts": pa.array([e.ts for e in errors], pa.int64()),
                "values": pa.array([json.dumps(e.values, default=str) for e in errors], pa.string()),
                "reason": pa.array([e.reason for e in errors], pa.string()),
            }
        )
        self._db.register("fresh_errors", rows)
        try:
            self._db.execute(f"INSERT INTO {ERRORS} BY NAME SELECT * FROM fresh_errors")
        finally:
            self._db.unregister("fresh_errors")

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
        time = quote_name(layout.time)
        by_group = [] if groups.merged else [c for c in layout.columns if c.role in ("group", "nulls")]
        same = [c for c in layout.columns if c in by_group or (by_shard and c.role == "shard")]
        out: list[str] = []
        for c in layout.columns:
            if c.role == "time":
                out.append(f"{time} AS {quote_name(c.name)}")
            elif c.role == "shard":
                out += [quote_name(SHARD)] if by_shard else []
            elif c.in_key:
                out += [quote_name(c.name)] if c in by_group else []
            else:
                out.append(f"{_merge_sql(c, layout)} AS {quote_name(c.name)}")
        keys = ", ".join([time, *(quote_name(c.name) for c in same)])
        condition, values = _only(layout, groups)
        sql = (
            f"SELECT {', '.join(out)} FROM {quote_name(layout.table(per))} "
            f"WHERE {time} >= ? AND {time} < ?{condition} GROUP BY {keys} ORDER BY {keys}"
        )
        rows = self._query(sql, [*bounds, *values])
        columns = [c for c in layout.columns if c.name in rows.column_names]
        typed_rows = pa.table(
            [rows.column(c.name).cast(c.arrow) for c in columns], schema=pa.schema([(c.name, c.arrow) for c in columns])
        )
        if groups.merged:
            for c in layout.groups:
                typed_rows = typed_rows.append_column(c.name, pa.nulls(typed_rows.num_rows, c.arrow))
        return rows_from_store(layout, typed_rows)

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
        time, table = quote_name(layout.time), quote_name(layout.table(per))
        condition, values = _only(layout, groups)
        rows = f"SELECT 1 FROM {table} WHERE {time} >= ? AND {time} < ?{condition} LIMIT ?"
        return int(self._query(f"SELECT count(*) FROM ({rows})", [*bounds, *values, most]).column(0)[0].as_py())

    def buckets(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> Buckets:
        layout = self._layout(aggregation)
        time, table = quote_name(layout.time), quote_name(layout.table(per))
        condition, values = _only(layout, groups)
        rows = self._query(
            f"SELECT DISTINCT {time} FROM {table} WHERE {time} >= ? AND {time} < ?{condition} "
            f"ORDER BY 1 {'DESC' if bucket_range.latest else 'ASC'} LIMIT ?",
            [bucket_range.start, bucket_range.end, *values, bucket_range.most],
        )
        starts = np.sort(np.asarray(rows.column(0).to_numpy(), np.int64))
        first = int(starts[0]) if len(starts) else bucket_range.start
        counts = self._query(
            f"SELECT count(DISTINCT {time}) FILTER ({time} < ?), count(DISTINCT {time}) "
            f"FROM {table} WHERE true{condition}",
            [first, *values],
        )
        before, total = (int(c[0].as_py()) for c in counts.columns)
        return Buckets(starts, before, total)

    def last_bucket(
        self, aggregation: str, per: AggDuration, shard: str, end: int, groups: GroupFilter = EACH_GROUP
    ) -> int | None:
        layout = self._sharded_layout(aggregation)
        condition, values = _only(layout, groups)
        time = quote_name(layout.time)
        sql = f"SELECT max({time}) FROM {quote_name(layout.table(per))} WHERE {SHARD} = ? AND {time} < ?{condition}"
        bucket: int | None = self._query(sql, [shard, end, *values]).column(0)[0].as_py()
        return bucket

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
        name, null = quote_name(layout.groups[key].name), f"({NULL_KEYS} & {layout.null_bit(key)})"
        marks = f"({NULL_KEYS} & {layout.null_bit(key) | layout.sign_bit(key)})"
        condition, values = _only(layout, groups)
        if containing:
            condition += f" AND lower({name}::VARCHAR) LIKE ? ESCAPE '!' AND {null} = 0"
            values.append(like_pattern(containing))
        table = quote_name(layout.table(per))
        sql = f"SELECT DISTINCT {name}, {marks} FROM {table} WHERE true{condition} ORDER BY ALL LIMIT ?"
        rows = self._query(sql, [*values, most])
        stored_values = zip(*(c.to_pylist() for c in rows.columns), strict=True)
        return [key_value(layout, key, v, bits) for v, bits in stored_values]

    def _query(self, sql: str, values: Sequence[Any]) -> pa.Table:
        """Run a query over the committed rows. Raises StoreError if the store is closed."""
        with self._reading, self._usable():
            if self._reader is None:
                raise StoreError(f"The store {self.path} is closed.")
            return self._reader.sql(sql, params=values).to_arrow_table()

    def errors(self, app: str) -> pa.Table:
        with self._lock, self._usable():
            sql = f'SELECT id, stream, ts, "values", reason FROM {ERRORS} WHERE app = ? ORDER BY id'
            return self._db.sql(sql, params=[app]).to_arrow_table()

    def forget_errors(self, app: str, ids: Sequence[int]) -> None:
        with self._transaction():
            self._db.execute(f"DELETE FROM {ERRORS} WHERE app = ? AND id IN (SELECT unnest(?))", [app, list(ids)])

    def trim_errors(self, app: str, most: int | None) -> int:
        with self._transaction():
            if most is not None:
                last = f"SELECT id FROM {ERRORS} WHERE app = ? ORDER BY id DESC LIMIT 1 OFFSET ?"
                deletion = f"DELETE FROM {ERRORS} WHERE app = ? AND id <= ({last})"
                ((removed_count,),) = self._db.execute(deletion, [app, app, most]).fetchall()
                if removed_count:
                    self._db.execute(
                        f"INSERT INTO {DROPPED} AS kept VALUES (?, ?) "
                        "ON CONFLICT (app) DO UPDATE SET errors = kept.errors + excluded.errors",
                        [app, removed_count],
                    )
            rows = self._db.execute(f"SELECT errors FROM {DROPPED} WHERE app = ?", [app]).fetchall()
        return int(rows[0][0]) if rows else 0

    # -------------------------------------------------------------------------------------------------------- shards

    def shards(self, aggregation: str) -> list[ShardRows]:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            return []
        every = " UNION ALL ".join(f"SELECT {SHARD} FROM {quote_name(layout.table(d))}" for d in layout.durations)
        with self._lock:
            rows = self._db.execute(f"SELECT {SHARD}, count(*) FROM ({every}) GROUP BY 1 ORDER BY 1").fetchall()
        return [ShardRows(str(s), int(n)) for s, n in rows]

    def move_shard(self, aggregation: str, old: str, new: str) -> None:
        layout = self._sharded_layout(aggregation)
        if old == new:
            return
        with self._transaction():
            for duration in layout.durations:
                table = quote_name(layout.table(duration))
                rows = self._db.sql(f"SELECT * FROM {table} WHERE {SHARD} = ?", params=[old]).to_arrow_table()
                self._db.execute(f"DELETE FROM {table} WHERE {SHARD} = ?", [old])
                at = rows.column_names.index(SHARD)
                rows = rows.set_column(at, SHARD, pa.array([new] * rows.num_rows, pa.string()))
                self._merge(layout, duration, rows)

    def delete_shard(self, aggregation: str, shard: str) -> None:
        layout = self._sharded_layout(aggregation)
        with self._transaction():
            for duration in layout.durations:
                self._db.execute(f"DELETE FROM {quote_name(layout.table(duration))} WHERE {SHARD} = ?", [shard])

    def _sharded_layout(self, aggregation: str) -> TableLayout:
        layout = self._layout(aggregation)
        if not layout.partitioned:
            raise StoreError(f"Aggregation '{aggregation}' is not partitioned by id; it has no shards.")
        return layout


def _batches(rows: pa.Table) -> list[pa.RecordBatch]:
    """The record batches of `rows` that hold any."""
    return [b for b in rows.to_batches() if b.num_rows]


def forget_aggregations(path: Path, once: tuple[str, str, int], aggregations: Iterable[str]) -> None:
    """Drop the tables of aggregations, with any columns, in a file that is not open here. `once` is a row
    (app, run, number) of its ledger: if it is there already, nothing happens.
    """
    with contextlib.closing(duckdb.connect(str(path))) as db:
        _make_log(path)
        db.execute("BEGIN")
        there = {name for (name,) in db.execute("SELECT table_name FROM information_schema.tables").fetchall()}
        if LEDGER not in there:
            return
        note = f"INSERT INTO {LEDGER} VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING batch"
        if db.execute(note, [*once]).fetchall():
            for table in [f"{a}_{suffix}" for a in aggregations for suffix in SUFFIX.values()]:
                db.execute(f"DROP TABLE IF EXISTS {quote_name(table)}")
                if PURGED in there:
                    db.execute(f"DELETE FROM {PURGED} WHERE name = ?", [table])
        db.execute("COMMIT")


# ------------------------------------------------------------------------------------------------------- statements


def _type(c: StoredColumn) -> str:
    return _SQL[c.type] + ("[]" if c.role == "set" else "")


def _create(layout: TableLayout, table: str) -> str:
    columns = [f"{quote_name(c.name)} {_type(c)}{' NOT NULL' if c.in_key else ''}" for c in layout.columns]
    key = ", ".join(quote_name(c.name) for c in layout.key)
    return f"CREATE TABLE {quote_name(table)} ({', '.join(columns)}, PRIMARY KEY ({key}))"


def _upsert(layout: TableLayout, table: str, overwrite: bool) -> str:
    """Merge the view `fresh_rows` into `table`; fresh rows win ties of AGG_LAST_EVENT_TIMESTAMP, or always."""
    names = ", ".join(quote_name(c.name) for c in layout.columns)
    key = ", ".join(quote_name(c.name) for c in layout.key)
    sets = []
    for c in layout.values:
        was, now = f"kept.{quote_name(c.name)}", f"excluded.{quote_name(c.name)}"
        if overwrite:
            expression = now
        elif c.role in ("sum", "count"):  # a count never reaches 2^63
            wraps = c.type is Type.LONG and c.role == "sum"
            both = _wrap_long(f"{was}::HUGEINT + {now}") if wraps else f"{was} + {now}"
            expression = f"coalesce({both}, {was}, {now})"
        elif c.role in ("min", "max"):
            expression = f"{'least' if c.role == 'min' else 'greatest'}({was}, {now})"
        elif c.role == "set":
            expression = _distinct(f"list_concat({was}, {now})")
        elif c.role == "last":
            latest = quote_name(LAST_TIMESTAMP)
            expression = f"CASE WHEN excluded.{latest} >= kept.{latest} THEN {now} ELSE {was} END"
        else:
            expression = f"greatest({was}, {now})"
        sets.append(f"{quote_name(c.name)} = {expression}")
    update = f"DO UPDATE SET {', '.join(sets)}" if sets else "DO NOTHING"
    insert = f"INSERT INTO {quote_name(table)} AS kept ({names}) SELECT {names} FROM fresh_rows"
    return f"{insert} ON CONFLICT ({key}) {update}"


def _merge_sql(c: StoredColumn, layout: TableLayout) -> str:
    """The aggregate that merges a column over the rows of a bucket and group."""
    name = quote_name(c.name)
    if c.role in ("sum", "count"):
        return _wrap_long(f"sum({name})") if c.type is Type.LONG else f"sum({name})"
    if c.role in ("min", "max"):
        return f"{c.role}({name})"
    if c.role == "set":
        return _distinct(f"flatten(list({name}))")
    if c.role == "last":
        order = [LAST_TIMESTAMP, TIMESTAMP, *([SHARD] if layout.partitioned else [])]
        return f"last({name} ORDER BY {', '.join(order)})"
    return f"max({name})"


def _only(layout: TableLayout, groups: GroupFilter) -> tuple[str, list[Any]]:
    """The condition for some groups, to be added to others, and its values; empty for all groups."""
    conditions = key_conditions(layout, groups)
    sql = "".join(f" AND {quote_name(n)} = ?" for n, _ in conditions.equal)
    if conditions.null_mask:
        sql += f" AND ({NULL_KEYS} & {conditions.null_mask}) = {conditions.null_bits}"
    return sql, [v for _, v in conditions.equal]


def _wrap_long(huge: str) -> str:
    """A HUGEINT as BIGINT, wrapping as Java's long does."""
    return f"((((({huge}) + 9223372036854775808) % 18446744073709551616) + 18446744073709551616) % 18446744073709551616 - 9223372036854775808)::BIGINT"  # noqa: E501


def _distinct(values: str) -> str:
    """The distinct elements of a list, null being one too; DuckDB's `list_distinct` leaves nulls out."""
    return f"list_distinct({values}) || CASE WHEN len({values}) > list_count({values}) THEN [NULL] ELSE [] END"
