"""Values that a database does not hold: they are found before the write, and the rest is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from sparkstream_nb.engine.aggregation import storable
from sparkstream_nb.errors import StoreError
from sparkstream_nb.plan.nodes import DURATIONS
from sparkstream_nb.stores import Store
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.sql import SqlStore
from sparkstream_nb.stores.store_protocol import BatchKey
from tests.run_servers import ServerOf
from tests.servers import Server

from .conftest import Stores
from .trades import NOON, partials_of, plan_of

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)
NAN, INF = float("nan"), float("inf")
UNLIKE = "".join(map(chr, np.random.default_rng(1).integers(0x4E00, 0x9FFF, 3000).tolist()))
"""A text that cannot be compressed, of 9000 bytes."""

# What is sent as (symbol, price), and what of it is left out, by the kinds of databases that do so.
BAD: dict[str, tuple[list[tuple[str, float]], dict[str, str]]] = {
    "255 characters": ([("ä" * 255, 1.0)], {"mariadb": "symbol is longer than the 254 characters of its column"}),
    "254 characters": ([("ä" * 254, 1.0)], {}),
    "9000 bytes": ([(UNLIKE, 1.0)], {"mariadb": "longer than the 254", "postgresql": "longer than the 2,400 bytes"}),
    "NUL": ([("a\0b", 1.0)], {"postgresql": "symbol contains NUL"}),
    "NaN": ([("n", NAN)], {"mariadb": "price is NaN", "sqlite": "price is NaN"}),
    "infinity": ([("i", INF)], {"mariadb": "price is infinite"}),
    "a large sum": ([("l", 1e308)], {"mariadb": r"AGG_SUM_price is above 1e\+300"}),
    "texts that are nearly equal": ([(x, 1.0) for x in ("a", "A", "a ", "ä", "😀", "😁", "", " ")], {}),
    "texts that mean something": ([(x, 1.0) for x in ("\\.\n\\.", "'", "\\'", '"', "%s", ":x", "\\", "\x1a\r,")], {}),
}


def kind_of(store: Store) -> str:
    return store.database.kind if isinstance(store, SqlStore) else "duckdb"


def symbols(store: Store, per: Any) -> dict[str, Any]:
    return {r["symbol"]: r["AGG_SUM_quantity"] for r in store.read(A, per, *ALWAYS).to_pylist()}


@pytest.mark.parametrize("what", BAD)
def test_what_a_database_does_not_hold_is_left_out(open_store: Callable[[], Store], what: str) -> None:
    rows, left_out = BAD[what]
    store, plan = open_store(), plan_of()
    store.prepare(plan.aggregations.values())
    events = [["good", 1.0, 1, NOON], *([s, price, 1, NOON] for s, price in rows), ["good", 1.0, 1, NOON + 1000]]
    partials, left = storable(plan.aggregations[A], "GMT", partials_of(plan, events), lambda t: store.unfit(A, t))
    reason = left_out.get(kind_of(store))
    if reason is None:
        assert left == []
    else:
        (row,) = left
        assert row.bucket == NOON
        assert row.values[0] == rows[0][0]
        assert row.reason.startswith("per sec: ")
        assert re.search(reason, row.reason)
    for batch in range(3):  # a second time with keys that are there, and once more
        assert store.commit(BatchKey("app", "run", batch), {(A, "node-1"): partials})
    expected = {"good": 6} | ({} if reason else {s: 3 for s, _ in rows})
    assert symbols(store, "day") == expected
    assert symbols(store, "year") == expected


def test_larger_buckets_have_what_smaller_ones_keep(open_store: Callable[[], Store]) -> None:
    """A NaN in one second takes that second along, and no more."""
    store, plan = open_store(), plan_of()
    store.prepare(plan.aggregations.values())
    events = [["x", price, 1, NOON + 1000 * i] for i, price in enumerate([1.0, NAN, 4.0])]
    whole = partials_of(plan, events)
    partials, left = storable(plan.aggregations[A], "GMT", whole, lambda t: store.unfit(A, t))
    assert store.commit(BatchKey("app", "run", 0), {(A, "node-1"): partials})
    if kind_of(store) not in ("mariadb", "sqlite"):
        assert partials is whole
        return
    assert [(x.bucket, x.values[0]) for x in left] == [(NOON + 1000, "x")]
    for per in DURATIONS[1:]:
        (row,) = store.read(A, per, *ALWAYS).to_pylist()
        assert (row["AGG_SUM_price"], row["AGG_SUM_quantity"], row["AGG_MIN_price"]) == (5.0, 2, 1.0)


def test_sums_that_are_too_large_become_infinite(open_store: Callable[[], Store]) -> None:
    """As in Java; MariaDB, which holds no infinity, takes no sums that come near."""
    store, plan = open_store(), plan_of()
    store.prepare(plan.aggregations.values())
    large = 1e300 if kind_of(store) == "mariadb" else 1.2e308
    rows = [["up", large, 2**63 - 1, NOON], ["down", -large, -(2**63), NOON], ["small", 5e-324, 0, NOON]]
    partials = partials_of(plan, rows)
    assert store.unfit(A, partials) == {}
    for batch in range(2):
        assert store.commit(BatchKey("app", "run", batch), {(A, "node-1"): partials})
    read = store.read(A, "sec", *ALWAYS).to_pylist()
    found = {r["symbol"]: (r["AGG_SUM_price"], r["AGG_SUM_quantity"]) for r in read}
    double = 2 * large
    assert found == {"up": (double, -2), "down": (-double, 0), "small": (1e-323, 0)}


def test_what_a_copy_is_refused_for_is_an_error_of_the_store(stores: Stores, tmp_path: Path) -> None:
    """So many rows that PostgreSQL copies them."""
    store, plan = stores("postgresql", tmp_path), plan_of()
    store.prepare(plan.aggregations.values())
    partials = partials_of(plan, [[f"a\0{i}", 1.0, 1, NOON] for i in range(3000)])
    with pytest.raises(StoreError, match="invalid byte sequence"):
        store.commit(BatchKey("app", "run", 0), {(A, "node-1"): partials})
    store.close()


@pytest.fixture(scope="module")
def mariadb(server_of: ServerOf) -> Server:
    return server_of("mariadb")


def made(server: Server, name: str, key: str) -> tuple[SqlStore, sa.Engine]:
    """A store whose tables another server made, with group texts of the type `key`."""
    store = SqlStore(server.made(name))
    store.prepare(plan_of().aggregations.values())
    engine = sa.create_engine(DIALECTS["mariadb"].url(server.made(name)))
    with engine.begin() as c:
        for table in [r[0] for r in c.exec_driver_sql(f"SHOW TABLES LIKE '{A}%%'")]:
            c.exec_driver_sql(f"ALTER TABLE `{table}` MODIFY symbol {key} NOT NULL")
    return store, engine


def test_a_column_that_ignores_case_is_refused_with_the_way_out(mariadb: Server) -> None:
    definitions = plan_of().aggregations.values()
    store, engine = made(mariadb, "ignores_case", "VARCHAR(254) CHARACTER SET latin1 COLLATE latin1_swedish_ci")
    with pytest.raises(StoreError, match="compares texts by latin1_swedish_ci") as raised:
        store.prepare(definitions)
    statements = str(raised.value).split("Change it: ")[1].split("; ")
    assert len(statements) == 6
    with engine.begin() as c:
        for statement in statements:
            c.exec_driver_sql(statement)
    store.prepare(definitions)
    engine.dispose()
    store.close()


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", {"elevencharacters": "longer than the 10"}),
        ("VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", {"a ": "ends in a space"}),
        ("VARCHAR(254) CHARACTER SET latin1 COLLATE latin1_bin", {"日": "lacks", "😀": "lacks", "a ": "in a space"}),
        ("VARCHAR(254) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin", {"😀": "lacks", "a ": "ends in a space"}),
    ],
)
def test_tables_that_another_server_made(mariadb: Server, key: str, refused: dict[str, str]) -> None:
    store, engine = made(mariadb, f"other_{abs(hash(key))}", key)
    engine.dispose()
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    sent = ["a", "A", "a ", "é", "日", "😀", "elevencharacters"]
    whole = partials_of(plan, [[s, 1.0, 1, NOON] for s in sent])
    partials, left = storable(plan.aggregations[A], "GMT", whole, lambda t: store.unfit(A, t))
    assert {x.values[0] for x in left} == set(refused)
    assert all(refused[x.values[0]] in x.reason for x in left)
    assert store.commit(BatchKey("app", "run", 0), {(A, "node-1"): partials})
    assert symbols(store, "year") == {s: 1 for s in sent if s not in refused}
    store.close()


def test_nothing_is_found_in_no_rows(open_store: Callable[[], Store]) -> None:
    store, plan = open_store(), plan_of()
    store.prepare(plan.aggregations.values())
    none = partials_of(plan, [["x", 1.0, 1, NOON]]).slice(0, 0)
    assert store.unfit(A, none) == {}
    assert isinstance(storable(plan.aggregations[A], "GMT", none, lambda t: store.unfit(A, t))[0], pa.Table)
