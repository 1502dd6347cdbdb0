"""How long retrievals take on many stored rows: `python -m tests.bench.retrieval KIND [MILLIONS]`.

KIND is duckdb or postgresql. The rows, 30 million of seconds by default, belong to 100 shards and 10 keys: in each
second 35 shards hold a row, 3 or 4 of them for each key. The year of days has a row for each day, shard and key. The
database makes them itself.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import duckdb
import sqlalchemy as sa

from sparkstream_nb.outputs.shard_retrieval import retrieve
from sparkstream_nb.plan import compile_app, compile_retrieval
from sparkstream_nb.plan.nodes import AggDuration
from sparkstream_nb.stores import DuckDBStore, Store
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.layout import TableLayout, layout_of
from sparkstream_nb.stores.sql import SqlStore
from tests import servers

APP = """define stream Trades (symbol string, price double, at long);
@PartitionById define aggregation Prices from Trades select symbol, sum(price) as total, count() as n
group by symbol aggregate every sec...year;
"""
SHARDS, KEYS, IN_A_SECOND = 100, 10, 35
BEGIN = 1_704_067_200_000
"""2024-01-01 00:00 UTC."""
DAY = 86_400_000
RUNS = 5
QUERIES = {
    "a day of seconds, one key": "from Prices on symbol == 'K3' within '2024-01-02 **:**:**' per 'seconds' select *",
    "a year of days, all keys": "from Prices within '2024-**-** **:**:**' per 'days' select *",
}


def insert(layout: TableLayout, duration: AggDuration, source: str, time: str, shard: str, key: str) -> str:
    """The statement that makes the rows of one table from the series `source`."""
    made = {"time": time, "shard": f"'node-' || ({shard})", "group": f"'K' || ({key})", "nulls": "0"}
    values = ", ".join(made.get(c.role, "1") for c in layout.columns)
    return f"INSERT INTO {layout.table(duration)} SELECT {values} FROM {source}"


def statements(layout: TableLayout, millions: int) -> list[str]:
    seconds = millions * 1_000_000 // IN_A_SECOND
    return [
        insert(
            layout, "sec", f"generate_series(0, {seconds - 1}) AS a(s), generate_series(0, {IN_A_SECOND - 1}) AS b(k)",
            f"{BEGIN} + s::BIGINT * 1000", f"(k * 7 + s) % {SHARDS}", f"k % {KEYS}",
        ),
        insert(
            layout, "day",
            f"generate_series(0, 365) AS a(d), generate_series(0, {SHARDS - 1}) AS b(n), "
            f"generate_series(0, {KEYS - 1}) AS c(k)",
            f"{BEGIN} + d::BIGINT * {DAY}", "n", "k",
        ),
    ]  # fmt: skip


def measure(store: Store, fill: Callable[[list[str]], None], millions: int) -> None:
    plan = compile_app(APP, {"shardId": "node-0"})
    definition = plan.aggregations["Prices"]
    store.prepare([definition])
    began = perf_counter()
    fill(statements(layout_of(definition), millions))
    print(f"filled in {perf_counter() - began:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    for name, text in QUERIES.items():
        took, rows = [], 0
        for _ in range(RUNS):
            began = perf_counter()
            rows = len(retrieve(plan, compile_retrieval(text, plan), store).answer.rows)
            took.append(perf_counter() - began)
        each = ", ".join(f"{t:.2f}" for t in took)
        print(f"{name}: {rows:,} rows, median {statistics.median(took):.2f} s of {each}; load {os.getloadavg()[0]:.1f}",
              flush=True)  # fmt: skip


def on_duckdb(millions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.duckdb"
        DuckDBStore(file).close()

        def fill(texts: list[str]) -> None:
            with duckdb.connect(str(file)) as db:
                for text in texts:
                    db.execute(text)

        store = DuckDBStore(file)
        measure(store, fill, millions)
        store.close()


def on_postgresql(millions: int) -> None:
    with servers.postgresql() as server:

        def fill(texts: list[str]) -> None:
            engine = sa.create_engine(DIALECTS["postgresql"].url(server.database), isolation_level="AUTOCOMMIT")
            with engine.connect() as c:
                for text in texts:
                    c.exec_driver_sql(text.replace("%", "%%"))
                c.exec_driver_sql("VACUUM ANALYZE")
            engine.dispose()

        store = SqlStore(server.database)
        measure(store, fill, millions)
        store.close()


if __name__ == "__main__":
    kind, millions = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
    {"duckdb": on_duckdb, "postgresql": on_postgresql}[kind](millions)
