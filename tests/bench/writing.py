"""Rows a second into each kind of store: our commit of partials, beside the same rows written by hand.

By hand: what a person would write who knows the database and these rows alone. Rows go into a staging table by its
bulk load, and from there into the table by one INSERT that adds to the rows which are there; into SQLite, which has no
bulk load, by one prepared INSERT. No sum wraps, and nothing is checked.
"""

from __future__ import annotations

import contextlib
import csv
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import sqlalchemy as sa

from sparkstream_nb.stores.store_protocol import BatchKey

sys.path.insert(0, str(Path(__file__).parents[1]))

import servers
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import DURATIONS, Plan
from sparkstream_nb.stores import DuckDBStore, Store
from sparkstream_nb.stores.address import Database
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.layout import TableLayout, layout_of, rows_to_store
from sparkstream_nb.stores.sql import SqlStore

A, SHARD = "Trades", "node-1"
APP = """
define stream S (symbol string, price double, quantity long, ts long);
define aggregation Trades from S select symbol, sum(price) as turnover, sum(quantity) as total, max(price) as most
group by symbol aggregate by ts every sec ... year;
"""
SYMBOLS, SECONDS, NOON = 2_360, 100, 1_678_788_000_000
REPEATS = 5

Write = Callable[[int], None]
"""Writes the rows, as those of the batch of this number."""


def partials_of(plan: Plan) -> pa.Table:
    """The partials of one event for each symbol and second."""
    n = SYMBOLS * SECONDS
    rng = np.random.default_rng(1)
    second, symbol = np.divmod(np.arange(n), SYMBOLS)
    ts = NOON + 1000 * second
    columns = [
        pa.array(np.char.add("SYM", np.char.zfill(symbol.astype(str), 5))),
        pa.array(rng.random(n)), pa.array(rng.integers(1, 1000, n)), pa.array(ts),
    ]  # fmt: skip
    at = np.arange(n)
    return NodeEngine(plan).step(InputBatch(NOON + at, {"S": StreamRows(at, NOON + at, columns)})).partials[A]


def ours(store: Store, plan: Plan, partials: pa.Table) -> Write:
    """Our commit."""
    store.prepare(plan.aggregations.values())

    def write(batch: int) -> None:
        store.unfit(A, partials)
        if not store.commit(BatchKey("bench", "run", batch), {(A, SHARD): partials}):
            raise RuntimeError("the ledger has this batch")

    return write


def sums(quote: str, was: str, now: str, most: str) -> str:
    """What an INSERT sets where a row is there."""
    added = [f"{quote}{c}{quote}" for c in ("AGG_SUM_price", "AGG_SUM_quantity")]
    greatest = f"{quote}AGG_MAX_price{quote}"
    sets = [f"{c} = {was}{c} + {now.format(c)}" for c in added]
    return ", ".join([*sets, f"{greatest} = {most}({was}{greatest}, {now.format(greatest)})"])


def by_hand(kind: str, connection: Any, layout: TableLayout, tables: dict[str, pa.Table], folder: Path) -> Write:
    """The rows by the best way of a database. `tables` by the name of the table."""
    quote = "`" if kind == "mariadb" else '"'
    names = [x.name.lower() if kind == "postgresql" else x.name for x in layout.columns]
    columns = ", ".join(f"{quote}{n}{quote}" for n in names)
    key = ", ".join(f"{quote}{n}{quote}" for n, x in zip(names, layout.columns, strict=True) if x.in_key)
    return _WAYS[kind](connection, tables, columns, key, folder)


def _duckdb(c: duckdb.DuckDBPyConnection, tables: dict[str, pa.Table], columns: str, key: str, _: Path) -> Write:
    def write(_: int) -> None:
        c.begin()
        for table, rows in tables.items():
            c.register("fresh", rows)
            update = sums('"', "kept.", "excluded.{}", "greatest")
            c.execute(f'INSERT INTO "{table}" AS kept SELECT * FROM fresh ON CONFLICT ({key}) DO UPDATE SET {update}')
            c.unregister("fresh")
        c.commit()

    return write


def _postgresql(c: sa.Connection, tables: dict[str, pa.Table], columns: str, key: str, _: Path) -> Write:
    def write(_: int) -> None:
        update = sums('"', "kept.", "excluded.{}", "greatest").lower()
        cursor = c.connection.cursor()
        for table, rows in tables.items():
            name = f'"{table.lower()}"'
            cursor.execute(f"CREATE TEMPORARY TABLE stage (LIKE {name}) ON COMMIT DROP")
            out = pa.BufferOutputStream()
            arrow_csv.write_csv(rows, out, arrow_csv.WriteOptions(include_header=False))
            with cursor.copy("COPY stage FROM STDIN (FORMAT csv)") as copy:
                copy.write(out.getvalue())
            cursor.execute(f"INSERT INTO {name} AS kept SELECT * FROM stage ON CONFLICT ({key}) DO UPDATE SET {update}")
            cursor.execute("DROP TABLE stage")
        c.connection.commit()

    return write


def _mariadb(c: sa.Connection, tables: dict[str, pa.Table], columns: str, key: str, folder: Path) -> Write:
    def write(_: int) -> None:
        update = sums("`", "kept.", "VALUES({})", "greatest")
        cursor = c.connection.cursor()
        for table, rows in tables.items():
            file = folder / "rows.csv"
            arrow_csv.write_csv(rows, file, arrow_csv.WriteOptions(include_header=False))
            cursor.execute(f"CREATE TEMPORARY TABLE stage LIKE `{table}`")
            cursor.execute(
                f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE stage CHARACTER SET utf8mb4 "
                "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY ''"
            )
            cursor.execute(
                f"INSERT INTO `{table}` ({columns}) SELECT {columns} FROM stage ON DUPLICATE KEY UPDATE "
                + update.replace("kept.", f"`{table}`.")
            )
            cursor.execute("DROP TEMPORARY TABLE stage")
        c.connection.commit()

    return write


def _sqlite(c: sa.Connection, tables: dict[str, pa.Table], columns: str, key: str, _: Path) -> Write:
    def write(_: int) -> None:
        update = sums('"', "kept.", "excluded.{}", "max")
        raw = c.connection.dbapi_connection
        raw.execute("BEGIN IMMEDIATE")
        for table, rows in tables.items():
            marks = ", ".join("?" * rows.num_columns)
            values = zip(*(x.to_pylist() for x in rows.columns), strict=True)
            raw.executemany(
                f'INSERT INTO "{table}" AS kept VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {update}', values
            )
        raw.execute("COMMIT")

    return write


_WAYS: dict[str, Callable[..., Write]] = {
    "duckdb": _duckdb, "postgresql": _postgresql, "mariadb": _mariadb, "sqlite": _sqlite,
}  # fmt: skip


@contextlib.contextmanager
def places(kind: str, folder: Path) -> Iterator[Callable[[str], Database]]:
    """Databases by name, of one kind."""
    if kind in servers.SERVERS:
        with servers.SERVERS[kind]() as server:
            yield server.made
    else:
        yield lambda name: Database(kind, str(folder / f"{name}.{kind}"))


def connected(database: Database) -> Any:
    """A connection of our own."""
    if database.kind == "duckdb":
        return duckdb.connect(database.name)
    more = {"local_infile": True} if database.kind == "mariadb" else {}
    return sa.create_engine(DIALECTS[database.kind].url(database), connect_args=more).connect()


def seconds(write: Write) -> tuple[float, float]:
    """The time for fresh keys, and the median of the next times, with the same keys."""
    took = []
    for batch in range(1 + REPEATS):
        began = time.perf_counter()
        write(batch)
        took.append(time.perf_counter() - began)
    return took[0], statistics.median(took[1:])


def measure(kind: str) -> list[list[float]]:
    """(ours, by hand) in seconds, for fresh keys and for the same ones: the medians of three rounds, each with
    databases of its own."""
    plan = compile_app(APP, properties={"partitionById": "true", "shardId": SHARD})
    partials = partials_of(plan)
    layout = layout_of(plan.aggregations[A])
    tables = {
        layout.table(d): rows_to_store(layout, partials, d, SHARD).sort_by([(x.name, "ascending") for x in layout.key])
        for d in DURATIONS
    }
    found: list[list[tuple[float, float]]] = []
    with tempfile.TemporaryDirectory() as name, places(kind, Path(name)) as place:
        for i in range(3):
            database = place(f"ours_{i}")
            store: Store = DuckDBStore(database.name) if kind == "duckdb" else SqlStore(database)
            our = seconds(ours(store, plan, partials))
            store.close()
            database = place(f"hand_{i}")
            made: Store = DuckDBStore(database.name) if kind == "duckdb" else SqlStore(database)
            made.prepare(plan.aggregations.values())  # the same tables
            made.close()
            connection = connected(database)
            hand = seconds(by_hand(kind, connection, layout, tables, Path(name)))
            connection.close()
            found.append([our, hand])
    return [[statistics.median(f[who][what] for f in found) for who in (0, 1)] for what in (0, 1)]


if __name__ == "__main__":
    rows = partials_of(compile_app(APP)).num_rows
    print(f"{rows:,} rows; load {os.getloadavg()[0]:.1f}")
    out = csv.writer(sys.stdout, delimiter="|")
    out.writerow(["database", "keys", "ours, rows/s", "by hand, rows/s", "times as long"])
    for kind in sys.argv[1:] or ["duckdb", "postgresql", "mariadb", "sqlite"]:
        for keys, (our, hand) in zip(("fresh", "the same"), measure(kind), strict=True):
            out.writerow([kind, keys, f"{rows / our:,.0f}", f"{rows / hand:,.0f}", f"{our / hand:.2f}"])
            sys.stdout.flush()
    print(f"load {os.getloadavg()[0]:.1f}")
