"""Tables of apps in PostgreSQL, MySQL, MariaDB or SQLite (`@store`), which several nodes and other programs share.

A node takes its turn: a transaction locks the rows that the node may change, and lasts until the node has finished its
micro-batch. The same transaction notes which batch it was, so a batch that Spark repeats does not change a table twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from ..errors import StoreError
from ..plan.table_requests import StoredTableLayout, TableChanges, Terms, Values
from ..types import Type
from .address import Database
from .dialects import DIALECTS, READS, execute
from .layout import StoredColumn
from .patience import Patience
from .sql import describe_sql_error, run_transaction

T = TypeVar("T")
TURNS = "SPARKSTREAM_TABLE_TURNS"
"""By table: the row that a node holds while it is its turn."""
BATCHES = "SPARKSTREAM_TABLE_BATCHES"
"""By life of an app and node: the last micro-batch whose changes are in the tables."""
_LONGEST_NAME = 60
"""The maximum length of an index name; PostgreSQL allows 63 characters."""
_ALTERNATIVES = 200
"""Conditions in one statement."""


class SqlTables:
    """The tables of a deployment that are in one database. Not thread-safe.

    Raises StoreError if the database cannot be reached, or refuses the user.
    """

    def __init__(
        self, database: Database, layouts: Iterable[StoredTableLayout], patience: Patience | None = None
    ) -> None:
        if database.kind not in DIALECTS:
            raise StoreError(
                f"Tables cannot be in a database of type '{database.kind}' ({database}), which one process alone can "
                "open. Use PostgreSQL, MySQL, MariaDB or SQLite (jdbc:sqlite:FILE)."
            )
        self.database, self.dialect = database, DIALECTS[database.kind]
        self.layouts = {x.id: x for x in layouts}
        self.patience = patience or Patience()
        self._engine = self.dialect.engine(database)
        self._lengths: dict[str, Mapping[int, int]] = {}

    def close(self) -> None:
        """Closes the connections."""
        self._engine.dispose()

    def run_transaction(self, work: Callable[[], T]) -> T:
        """Runs `work`, which carries out a transaction, again from its beginning where the database was busy or gone.

        Raises StoreError if the database refuses, or stays away for longer than there is patience.
        """
        return run_transaction(work, str(self.database), self.dialect, self.patience)

    def prepare(self) -> None:
        """Makes the tables that are missing. Raises StoreError for one that was made for something else."""
        try:
            with self._engine.connect() as c:
                self.dialect = self.dialect.of_server(c)
        except sa.exc.SQLAlchemyError as e:
            raise StoreError(f"The store {self.database} cannot be opened: {describe_sql_error(e)}") from None

        def work() -> None:
            with self._engine.begin() as c:
                self._make_own(c)
                for layout in self.layouts.values():
                    self._prepare(c, layout)

        self.run_transaction(work)

    def _make_own(self, c: sa.Connection) -> None:
        d, q = self.dialect, self.dialect.quote_name
        key = d.type_of(StoredColumn("name", "group", Type.STRING))
        execute(c, f"CREATE TABLE IF NOT EXISTS {q(TURNS)} (name {key} PRIMARY KEY)")
        execute(
            c,
            f"CREATE TABLE IF NOT EXISTS {q(BATCHES)} (run {key}, node INTEGER, batch {key}, PRIMARY KEY (run, node))"
        )
        for layout in self.layouts.values():
            lookup = sa.text(f"SELECT 1 FROM {q(TURNS)} WHERE name = :name")
            if c.execute(lookup, {"name": layout.name}).first() is None:
                c.execute(sa.text(f"INSERT INTO {q(TURNS)} VALUES (:name)"), {"name": layout.name})

    def _prepare(self, c: sa.Connection, layout: StoredTableLayout) -> None:
        d, q = self.dialect, self.dialect.quote_name
        inspector, name = sa.inspect(c), d.stored_name(layout.name)
        if inspector.has_table(name):
            self._check(layout, {str(x["name"]): x["type"] for x in inspector.get_columns(name)},
                        inspector.get_pk_constraint(name)["constrained_columns"])  # fmt: skip
            return
        columns = [
            f"{q(x.name)} {self._type(layout, a)}{' NOT NULL' if a in layout.key else ''}"
            for a, x in enumerate(layout.schema)
        ]
        key = [f"PRIMARY KEY ({', '.join(q(layout.schema[a].name) for a in layout.key)})"] if layout.key else []
        execute(c, f"CREATE TABLE {q(layout.name)} ({', '.join([*columns, *key])})")
        for attrs in layout.indexes:
            names = [layout.schema[a].name for a in attrs]
            index, over = q(_index_name(layout.name, names)), ", ".join(map(q, names))
            execute(c, f"CREATE INDEX {index} ON {q(layout.name)} ({over})")

    def _type(self, layout: StoredTableLayout, attr: int) -> str:
        a, length = layout.schema[attr], layout.lengths.get(attr)
        if a.type is Type.STRING and length is not None:
            return f"VARCHAR({length}){self.dialect.text_collation}"
        in_key = attr in layout.key or any(attr in attrs for attrs in layout.indexes)
        return self.dialect.type_of(StoredColumn(a.name, "group" if in_key else "last", a.type))

    def _check(self, layout: StoredTableLayout, types: Mapping[str, Any], key: Sequence[str]) -> None:
        stored_names = [self.dialect.stored_name(n) for n in layout.schema.names]
        wrong = [f"no column '{n}'" for n, s in zip(layout.schema.names, stored_names, strict=True) if s not in types]
        for a, s in zip(layout.schema, stored_names, strict=True):
            column = StoredColumn(a.name, "last", a.type)
            if s in types and not self.dialect.fits(column, types[s]):
                wrong.append(f"'{a.name}' is {types[s]}, which does not hold a {a.type}")
        if {stored_names[a] for a in layout.key} != set(key):
            has, expected_key = ", ".join(key) or "none", ", ".join(layout.schema[a].name for a in layout.key) or "none"
            wrong.append(f"its primary key is {has}, not {expected_key}")
        if wrong:
            raise StoreError(
                f"Table '{layout.name}' in {self.database} does not fit table '{layout.id}' of the app: "
                f"{'; '.join(wrong)}. Name another one: @store(..., table.name='NAME')."
            )

    def lengths(self, table: str) -> Mapping[int, int]:
        """Maximum number of characters of the columns of a table, by attribute, if limited."""
        if not self._lengths:
            with self._engine.connect() as c:
                inspector = sa.inspect(c.execution_options(**{READS: True}))
                self._lengths = {x.id: self._lengths_of(x, inspector) for x in self.layouts.values()}
        return self._lengths[table]

    def _lengths_of(self, layout: StoredTableLayout, inspector: sa.Inspector) -> Mapping[int, int]:
        name = self.dialect.stored_name
        types = {str(x["name"]): x["type"] for x in inspector.get_columns(name(layout.name))}
        sizes = {a: getattr(types[name(x.name)], "length", None) for a, x in enumerate(layout.schema)}
        return {a: n for a, n in sizes.items() if n is not None and n < _LONGEST}

    def why_unfit(self, table: str, row: Values) -> str | None:
        """Why the database cannot hold a row; None if it can."""
        layout = self.layouts[table]
        for a, v in enumerate(row):
            name = layout.schema[a].name
            reason = None if v is None else self.dialect.holds.unfit(v)
            if reason is not None:
                return f"'{name}' {reason}, which {self.database.kind} cannot hold"
            if isinstance(v, str):
                most = self.lengths(table).get(a)
                if most is not None and len(v) > most:
                    return f"'{name}' has {len(v):,} characters, and its column in {layout.name} holds {most:,}"
        return None

    def begin(self) -> Turn:
        """Begins a node's turn: waits until no other node changes these tables."""
        self.lengths(next(iter(self.layouts)))  # before the turn, which SQLite's file allows no one else
        return Turn(self, self._engine)


_LONGEST = 1 << 24
"""From this length on a column is as good as without a limit (MySQL says one for LONGTEXT)."""


class Turn:
    """A transaction over the tables, for one micro-batch of one node. `end` or `leave` it."""

    def __init__(self, tables: SqlTables, engine: sa.Engine) -> None:
        self._tables, self._dialect = tables, tables.dialect
        self._connection = engine.connect()
        self._began = self._connection.begin()
        q = self._dialect.quote_name
        # In one order for all, so that no two wait for each other.
        turn = sa.text(f"SELECT name FROM {q(TURNS)} WHERE name = :name{self._dialect.for_update}")
        for name in sorted(x.name for x in tables.layouts.values()):
            self._connection.execute(turn, {"name": name}).all()

    def last(self, run: str, node: int) -> str | None:
        """The last micro-batch of a node whose changes are in the tables."""
        batch = self._connection.execute(
            sa.text(f"SELECT batch FROM {self._dialect.quote_name(BATCHES)} WHERE run = :run AND node = :node"),
            {"run": run, "node": node},
        ).scalar()
        return None if batch is None else str(batch)

    def fetch(self, table: str, terms: Sequence[Terms] | None) -> list[Values]:
        """The rows that fulfil any of `terms`; all for None."""
        layout, d = self._tables.layouts[table], self._dialect
        names = ", ".join(d.read(d.quote_name(a.name), a.type) for a in layout.schema)
        sql = f"SELECT {names} FROM {d.quote_name(layout.name)}"
        convert = [_READ[a.type] for a in layout.schema]
        rows: list[Values] = []
        for where, values in [("", {})] if terms is None else self._conditions(layout, terms):
            result = self._connection.execute(sa.text(sql + where + d.for_update), values)
            rows += [
                tuple(None if v is None else f(v) for f, v in zip(convert, r, strict=True)) for r in result
            ]
        return rows

    def _conditions(
        self, layout: StoredTableLayout, alternatives: Sequence[Terms]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        holds = (w for w in alternatives if not any(self._dialect.holds.unfit(t.value) for t in w))
        while some := list(islice(holds, _ALTERNATIVES)):
            values: dict[str, Any] = {}
            parts = []
            for terms in some:
                holding = []
                for t in terms:
                    values[f"v{len(values)}"] = t.value
                    op = "=" if t.op == "==" else t.op
                    holding.append(f"{self._dialect.quote_name(layout.schema[t.attr].name)} {op} :v{len(values) - 1}")
                parts.append(" AND ".join(holding))
            yield f" WHERE {' OR '.join(parts)}", values

    def end(self, changes: Iterable[TableChanges], run: str, node: int, batch: str) -> None:
        """Writes changes, notes the batch, and commits."""
        q = self._dialect.quote_name
        for c in changes:
            self._write(self._tables.layouts[c.table], c)
        key = {"run": run, "node": node, "batch": batch}
        self._connection.execute(sa.text(f"DELETE FROM {q(BATCHES)} WHERE run = :run AND node = :node"), key)
        self._connection.execute(sa.text(f"INSERT INTO {q(BATCHES)} VALUES (:run, :node, :batch)"), key)
        self._began.commit()
        self._connection.close()

    def leave(self) -> None:
        """Ends the transaction with nothing changed."""
        self._began.rollback()
        self._connection.close()

    def _write(self, layout: StoredTableLayout, changes: TableChanges) -> None:
        if changes.removals and layout.key:
            self._remove_by_key(layout, changes.removals)
        elif changes.removals:
            self._remove_equal(layout, changes.removals)
        if changes.new and layout.key:
            self._upsert(layout, changes.new)
        elif changes.new:
            self._insert(layout, changes.new)

    def _remove_by_key(self, layout: StoredTableLayout, keys: Sequence[Values]) -> None:
        """Removes the rows with these primary keys."""
        q = self._dialect.quote_name
        where = " AND ".join(f"{q(layout.schema[a].name)} = :k{i}" for i, a in enumerate(layout.key))
        self._connection.execute(
            sa.text(f"DELETE FROM {q(layout.name)} WHERE {where}"),
            [{f"k{i}": v for i, v in enumerate(k)} for k in keys],
        )

    def _remove_equal(self, layout: StoredTableLayout, rows: Sequence[Values]) -> None:
        """Removes rows of a table without a primary key, by all their values."""
        d, q = self._dialect, self._dialect.quote_name
        for row in rows:
            same = [
                f"{d.read(q(a.name), a.type)} = {d.given(f':v{i}', a.type)}" if row[i] is not None
                else f"{q(a.name)} IS NULL"
                for i, a in enumerate(layout.schema)
            ]  # fmt: skip
            values = {f"v{i}": v for i, v in enumerate(row) if v is not None}
            self._connection.execute(sa.text(f"DELETE FROM {q(layout.name)} WHERE {' AND '.join(same)}"), values)

    def _insert(self, layout: StoredTableLayout, rows: Sequence[Values]) -> None:
        """Adds rows to a table without a primary key."""
        q = self._dialect.quote_name
        names = [q(a.name) for a in layout.schema]
        marks = ", ".join(f":v{i}" for i in range(len(names)))
        insert = sa.text(f"INSERT INTO {q(layout.name)} ({', '.join(names)}) VALUES ({marks})")
        self._connection.execute(insert, [{f"v{i}": v for i, v in enumerate(row)} for row in rows])

    def _upsert(self, layout: StoredTableLayout, new_rows: Sequence[Values]) -> None:
        """Adds rows, in the place of those with their primary keys."""
        d = self._dialect
        names = [d.quote_name(a.name) for a in layout.schema]
        sets = [(n, d.now(n)) for a, n in enumerate(names) if a not in layout.key]
        sql = d.upsert(layout.name, names, [names[a] for a in layout.key], sets)
        columns = [StoredColumn(a.name, "last", a.type) for a in layout.schema]
        rows = pa.table(
            [pa.array(list(v), x.arrow) for v, x in zip(zip(*new_rows, strict=True), columns, strict=True)],
            names=[x.name for x in columns],
        )
        types = [self._tables._type(layout, a) for a in range(len(columns))]
        d.load(self._connection, sql, list(zip(names, types, strict=True)), rows)


_READ: Mapping[Type, Callable[[Any], Any]] = {
    Type.STRING: str, Type.INT: int, Type.LONG: int, Type.BOOL: bool, Type.DOUBLE: float,
    Type.FLOAT: lambda v: float(np.float32(v)),
}  # fmt: skip
"""Conversions of a driver's values to the engine's: it may give numbers for bools, and decimals for numbers."""


def _index_name(table: str, columns: Sequence[str]) -> str:
    """The name of an index, shortened to the limit of the database."""
    name = "_".join([table, *columns])
    return name if len(name) <= _LONGEST_NAME else f"{name[:50]}_{zlib.crc32(name.encode()):08x}"

