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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from ..errors import StoreError
from ..plan.nodes import AggDuration, AggregationDef
from ..system import put_in_place, runs
from ..types import Type
from .address import MEMORY
from .aggregation_store import AggregationStore
from .duckdb_blocks import check_blocks
from .layout import (
    DROPPED,
    ERRORS,
    LAST_TIMESTAMP,
    LEDGER,
    PURGED,
    SHARD,
    SUFFIX,
    TIMESTAMP,
    StoredColumn,
    TableLayout,
    layouts_of,
    rows_from_store,
    rows_to_store,
)
from .store_protocol import ErrorRow, GroupFilter
from .table_checks import FoundTable, check_table, missing_table

_open_stores: weakref.WeakSet[DuckDBStore] = weakref.WeakSet()

T = TypeVar("T")
_FRESH = "fresh_rows"
_PARAMETER = re.compile(r"\\:|(?<![:\w]):(\w+)")
"""A value's name in a statement, or a colon of the statement's own."""

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
_KIND = re.compile(r"^([A-Za-z][A-Za-z ]* Error: )+")
"""The beginnings of DuckDB's messages."""


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


def last_batch(path: Path, run: str) -> int:
    """The number of the last micro-batch of a run in a store; -1 for none. Raises as `read_all_tables` does."""
    with contextlib.closing(DuckDBStore(path, read_only=True)) as store, store._usable():
        if not store._db.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [LEDGER]).fetchall():
            return -1  # made, and not used
        ((batch,),) = store._db.execute(f"SELECT max(batch) FROM {LEDGER} WHERE run = ?", [run]).fetchall()
    return -1 if batch is None else int(batch)


class _DuckDBTransaction:
    """A `Transaction` on a connection."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db

    def execute(self, sql: str) -> None:
        self._db.execute(sql)

    def run(self, sql: str, values: Mapping[str, Any] | None = None) -> int:
        rows = self.rows(sql, values)
        return int(rows[0][0]) if rows and isinstance(rows[0][0], int) else 0

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        # All of them: a result that is not read to its end keeps the connection in use.
        return self._db.execute(*_bind(sql, values or {})).fetchall()

    def table(self, sql: str, values: Mapping[str, Any], columns: Sequence[StoredColumn]) -> pa.Table:
        statement, bound_values = _bind(sql, values)
        rows = self._db.sql(statement, params=bound_values).to_arrow_table()
        arrays = [rows.column(i).cast(c.arrow) for i, c in enumerate(columns)]
        return pa.table(arrays, schema=pa.schema([(c.name, c.arrow) for c in columns]))

    def load(self, sql: str, rows: pa.Table) -> None:
        """Runs a statement that reads `rows` as the view `_FRESH`."""
        self._db.register(_FRESH, rows)
        try:
            self._db.execute(sql)
        finally:
            self._db.unregister(_FRESH)


def _bind(sql: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A statement with the names of its values as DuckDB writes them, and those values that it names."""
    names = {m[1] for m in _PARAMETER.finditer(sql) if m[1]}
    return _PARAMETER.sub(lambda m: f"${m[1]}" if m[1] else ":", sql), {n: values[n] for n in names}


class DuckDBStore(AggregationStore[_DuckDBTransaction]):
    """A `Store` in a DuckDB file (`:memory:` for a temporary one). Thread-safe.

    Raises StoreError if the file cannot be opened, for example because another process has it open. With `read_only`
    the file must be there, and nothing is written: `prepare` raises StoreError for a table that is missing. `threads`
    is the number for DuckDB: one for each core of the machine, if that is None.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, threads: int | None = None) -> None:
        super().__init__()
        self.path = str(path)
        self._read_only = read_only
        self._lock = threading.RLock()
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
        with contextlib.suppress(duckdb.InvalidInputException):  # without ipywidgets there is no bar either
            self._db.execute("SET enable_progress_bar = false")
        # Writes are planned as written. There is nothing to improve in a merge, and looking for it is a quarter of the
        # cost of a small one; a merge of 200,000 rows takes as long.
        self._db.execute("PRAGMA disable_optimizer")
        # Reads have a connection of their own: they see committed rows, and do not wait for a commit under way.
        self._reading = threading.Lock()
        self._reader: duckdb.DuckDBPyConnection | None = self._db.cursor()
        if not read_only:
            self._transaction(self._make_own_tables)
        _open_stores.add(self)

    def _make_own_tables(self, c: _DuckDBTransaction) -> None:
        c.execute(
            f"CREATE TABLE IF NOT EXISTS {LEDGER} "
            "(app VARCHAR, run VARCHAR, batch BIGINT, PRIMARY KEY (app, run, batch))"
        )
        number = f"id BIGINT DEFAULT nextval('{ERRORS}_IDS')"
        c.execute(f"CREATE SEQUENCE IF NOT EXISTS {ERRORS}_IDS")
        c.execute(
            f"CREATE TABLE IF NOT EXISTS {ERRORS} "
            '(app VARCHAR NOT NULL, stream VARCHAR NOT NULL, ts BIGINT, "values" VARCHAR NOT NULL, '
            f"reason VARCHAR NOT NULL, {number})"
        )
        c.execute(f"CREATE TABLE IF NOT EXISTS {PURGED} (name VARCHAR PRIMARY KEY, begins BIGINT NOT NULL)")
        c.execute(f"CREATE TABLE IF NOT EXISTS {DROPPED} (app VARCHAR PRIMARY KEY, errors BIGINT NOT NULL)")
        # Files made before rows without a time were kept as such, and before errors had numbers. Others are left
        # alone: DuckDB 1 cannot resume a killed process's changes of a table with such numbers.
        columns = c.rows(f"SELECT name, \"notnull\" FROM pragma_table_info('{ERRORS}')")
        is_not_null = {str(name): bool(flag) for name, flag in columns}
        if is_not_null["ts"]:
            c.execute(f"ALTER TABLE {ERRORS} ALTER COLUMN ts DROP NOT NULL")
        if "id" not in is_not_null:
            c.execute(f"ALTER TABLE {ERRORS} ADD COLUMN {number}")

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
        reason = _KIND.sub("", str(error).strip().partition("\n")[0]).rstrip(".!")
        return StoreError(
            f"The store {self.path} cannot be used: {reason}. If it is damaged: sparkstream store repair makes it "
            "again from the journal, if that has all of the input. Or put it back from a copy; fresh=True (--fresh) "
            "starts from scratch"
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

    def _transaction(self, work: Callable[[_DuckDBTransaction], T], *, reads: bool = False) -> T:
        if reads:
            with self._reading, self._usable():
                if self._reader is None:
                    raise StoreError(f"The store {self.path} is closed.")
                return work(_DuckDBTransaction(self._reader))
        with self._lock, self._usable():
            if self.path != MEMORY and not self._read_only:
                _make_log(Path(self.path))
            self._db.begin()
            try:
                result = work(_DuckDBTransaction(self._db))
            except BaseException:
                with contextlib.suppress(*_UNUSABLE):
                    self._db.rollback()
                raise
            self._db.commit()
            return result

    # ------------------------------------------------------------------------------------------------------- tables

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        layouts = layouts_of(definitions)
        self._layouts.update((x.aggregation, x) for x in layouts)
        tables = [(layout, layout.table(duration)) for layout in layouts for duration in layout.durations]

        def work(c: _DuckDBTransaction) -> None:
            for layout, table in tables:
                types = _column_types(c, table)
                if types:
                    _check(layout, FoundTable(table, types, _key(c, table)))
                elif self._read_only:
                    raise missing_table(self.path, table)
                else:
                    c.execute(self._create(layout, table))

        self._transaction(work)

    def _create(self, layout: TableLayout, table: str) -> str:
        columns = [f"{quote_name(c.name)} {_type(c)}{' NOT NULL' if c.in_key else ''}" for c in layout.columns]
        key = ", ".join(quote_name(c.name) for c in layout.key)
        return f"CREATE TABLE {quote_name(table)} ({', '.join(columns)}, PRIMARY KEY ({key}))"

    def _column_names(self, c: _DuckDBTransaction, table: str) -> Sequence[str] | None:
        return [*_column_types(c, table)] or None

    def _same(self, stored_name: str, name: str) -> bool:
        return stored_name == name

    def _text_of(self, name: str) -> str:
        return f"CAST({name} AS VARCHAR)"

    def quote_name(self, name: str) -> str:
        return quote_name(name)

    # ------------------------------------------------------------------------------------------------------- writing

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        return {}  # DuckDB holds all that SiddhiQL has

    def _merge_all(self, c: _DuckDBTransaction, layout: TableLayout, shards: Sequence[tuple[str, pa.Table]]) -> None:
        for duration in layout.durations:
            rows = [_batches(rows_to_store(layout, t, duration, shard)) for shard, t in shards]
            # Shards have keys of their own; without SHARD_ID they may share some, and go one by one.
            together = zip_longest(*rows) if layout.partitioned else ((b,) for bs in rows for b in bs)
            for batches in together:
                self._merge(c, layout, duration, pa.Table.from_batches([b for b in batches if b is not None]))

    def _note_purge(self, c: _DuckDBTransaction, table: str, begins: int) -> None:
        c.run(
            f"INSERT INTO {PURGED} AS kept VALUES (:name, :begins) "
            "ON CONFLICT (name) DO UPDATE SET begins = greatest(kept.begins, excluded.begins)",
            {"name": table, "begins": begins},
        )

    def _merge(
        self,
        c: _DuckDBTransaction,
        layout: TableLayout,
        duration: AggDuration,
        rows: pa.Table,
        *,
        overwrite: bool = False,
    ) -> None:
        if rows.num_rows:
            c.load(_upsert(layout, layout.table(duration), overwrite), rows)

    def _keep_errors(self, c: _DuckDBTransaction, app: str, errors: Sequence[ErrorRow]) -> None:
        rows = {
            "app": pa.array([app] * len(errors), pa.string()),
            "stream": pa.array([e.stream for e in errors], pa.string()),
            "ts": pa.array([e.ts for e in errors], pa.int64()),
            "values": pa.array([json.dumps(e.values, default=str) for e in errors], pa.string()),
            "reason": pa.array([e.reason for e in errors], pa.string()),
        }
        c.load(f"INSERT INTO {ERRORS} BY NAME SELECT * FROM {_FRESH}", pa.table(rows))

    # ------------------------------------------------------------------------------------------------------- reading

    def _read_sql(self, layout: TableLayout, column: StoredColumn) -> str:
        """A column of the merged rows, in SQL."""
        name = self._q(column.name)
        if column.role == "time":
            return f"{self._q(layout.time)} AS {name}"
        return name if column.in_key else f"{_merge_sql(column, layout, name)} AS {name}"

    def _read(
        self, layout: TableLayout, per: AggDuration, bounds: tuple[int, int], groups: GroupFilter, *, by_shard: bool
    ) -> pa.Table:
        # Rows are grouped even for one shard: other systems write several rows for a bucket, by AGG_TIMESTAMP.
        q, time = self._q, self._q(layout.time)
        by_group = [] if groups.merged else [c for c in layout.columns if c.role in ("group", "nulls")]
        same = [c for c in layout.columns if c in by_group or (by_shard and c.role == "shard")]
        out = [self._read_sql(layout, c) for c in layout.columns if not c.in_key or c.role == "time" or c in same]
        keys = ", ".join([time, *(q(c.name) for c in same)])
        where = self._where(layout, bounds, groups)
        sql = (
            f"SELECT {', '.join(out)} FROM {self._table(layout, per)} WHERE {where.sql} GROUP BY {keys} ORDER BY {keys}"
        )
        columns = [c for c in layout.columns if not c.in_key or c.role == "time" or c in same]
        rows = self._transaction(lambda c: c.table(sql, where.values, columns), reads=True)
        if groups.merged:
            for c in layout.groups:
                rows = rows.append_column(c.name, pa.nulls(rows.num_rows, c.arrow))
        return rows_from_store(layout, rows)


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
        table_names = {name for (name,) in db.execute("SELECT table_name FROM information_schema.tables").fetchall()}
        if LEDGER not in table_names:
            return
        note = f"INSERT INTO {LEDGER} VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING batch"
        if db.execute(note, [*once]).fetchall():
            for table in [f"{a}_{suffix}" for a in aggregations for suffix in SUFFIX.values()]:
                db.execute(f"DROP TABLE IF EXISTS {quote_name(table)}")
                if PURGED in table_names:
                    db.execute(f"DELETE FROM {PURGED} WHERE name = ?", [table])
        db.execute("COMMIT")


# ------------------------------------------------------------------------------------------------------- statements


def _type(c: StoredColumn) -> str:
    return _SQL[c.type] + ("[]" if c.role == "set" else "")


def _check(layout: TableLayout, found_table: FoundTable) -> None:
    expected_types = {c.name: _type(c) for c in layout.columns}
    types = found_table.columns
    check_table(layout, found_table, expected_types, lambda n: types[n] == expected_types[n], is_ordered=True)


def _column_types(c: _DuckDBTransaction, table: str) -> dict[str, str]:
    """Name → SQL type of the columns of `table`; empty if there is no such table."""
    rows = c.rows(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE lower(table_name) = lower(:name) AND NOT internal "
        "AND database_name = current_database() AND schema_name = current_schema() ORDER BY column_index",
        {"name": table},
    )
    return {str(n): str(t) for n, t in rows}


def _key(c: _DuckDBTransaction, table: str) -> tuple[str, ...]:
    rows = c.rows(
        "SELECT constraint_column_names FROM duckdb_constraints() WHERE lower(table_name) = lower(:name) "
        "AND constraint_type = 'PRIMARY KEY' AND database_name = current_database() "
        "AND schema_name = current_schema()",
        {"name": table},
    )
    return tuple(rows[0][0]) if rows else ()


def _upsert(layout: TableLayout, table: str, overwrite: bool) -> str:
    """Merge fresh rows into `table`; fresh rows win ties of AGG_LAST_EVENT_TIMESTAMP, or always."""
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
    insert = f"INSERT INTO {quote_name(table)} AS kept ({names}) SELECT {names} FROM {_FRESH}"
    return f"{insert} ON CONFLICT ({key}) {update}"


def _merge_sql(c: StoredColumn, layout: TableLayout, name: str) -> str:
    """The aggregate that merges a column, whose quoted name is `name`, over the rows of a bucket and group."""
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


def _wrap_long(huge: str) -> str:
    """A HUGEINT as BIGINT, wrapping as Java's long does."""
    return f"((((({huge}) + 9223372036854775808) % 18446744073709551616) + 18446744073709551616) % 18446744073709551616 - 9223372036854775808)::BIGINT"  # noqa: E501


def _distinct(values: str) -> str:
    """The distinct elements of a list, null being one too; DuckDB's `list_distinct` leaves nulls out."""
    return f"list_distinct({values}) || CASE WHEN len({values}) > list_count({values}) THEN [NULL] ELSE [] END"
