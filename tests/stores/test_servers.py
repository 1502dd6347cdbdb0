"""Databases that several processes write to, that go away, and that refuse."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import servers
from sparkstream_nb.errors import StoreError
from sparkstream_nb.stores.address import Database, Secret
from sparkstream_nb.stores.patience import Patience
from sparkstream_nb.stores.sql import SqlStore
from sparkstream_nb.stores.store_protocol import BatchKey
from tests.marks import thorough

from .trades import NOON, partials_of, plan_of

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)


@pytest.fixture(params=[thorough("mariadb"), "postgresql"], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    servers.skip_without(request.param)
    with servers.SERVERS[request.param]() as started:
        yield started


def total(store: SqlStore) -> int:
    (row,) = store.read(A, "year", *ALWAYS).to_pylist()
    value: int = row["AGG_SUM_quantity"]
    return value


def test_a_database_that_goes_away_is_waited_for(server: servers.Server) -> None:
    said: list[str] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            server.start()

    store = SqlStore(server.made("gone"), Patience(wait=wait, tell=said.append))
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    part = {(A, "node-1"): partials_of(plan, [["x", 1.0, 5, NOON]])}
    assert store.commit(BatchKey("app", "run", 0), part)
    server.stop()
    assert store.commit(BatchKey("app", "run", 1), part)
    assert store.commit(BatchKey("app", "run", 1), part) is False
    assert total(store) == 10
    assert len(waits) >= 3
    assert waits[0] < waits[2], "it waits longer each time"
    assert server.database.password is not None
    assert any("cannot be reached and is tried again" in s for s in said)
    assert not any(server.database.password.reveal() in s for s in said)
    store.close()


def test_a_database_that_stays_away_is_an_error(server: servers.Server) -> None:
    waited: list[float] = []
    store = SqlStore(server.made("away"), Patience(seconds=3.0, wait=waited.append))
    store.prepare(plan_of().aggregations.values())
    server.stop()
    try:
        with pytest.raises(StoreError, match=f"The store {server.database.kind}://127.0.0.1"):
            store.commit(BatchKey("app", "run", 0), {})
        assert 3.0 <= sum(waited) < 10
    finally:
        server.start()
    assert store.commit(BatchKey("app", "run", 0), {})
    store.close()


@pytest.mark.parametrize("change", ["password", "user", "port", "database"])
def test_a_refusal_is_one_line_without_the_password(server: servers.Server, change: str) -> None:
    wrong: dict[str, Database] = {
        "password": replace(server.database, password=Secret("hunter2-hunter2")),
        "user": replace(server.database, user="nobody"),
        "port": replace(server.database, port=servers.free_port()),
        "database": replace(server.database, name="none_of_these"),
    }
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        SqlStore(wrong[change])
    shown = str(raised.value) + repr(raised.value)
    assert "\n" not in str(raised.value)
    assert server.database.password is not None
    assert server.database.password.reveal() not in shown
    assert "hunter2" not in shown


DRIVER = textwrap.dedent(
    """
    import sys
    sys.path.insert(0, sys.argv[1])
    from stores.trades import AGGREGATION, NOON, TRADES, partials_of, plan_of
    from sparkstream_nb.plan.nodes import BatchClock
    from sparkstream_nb.stores.address import Database, Secret
    from sparkstream_nb.stores.sql import SqlStore
    from sparkstream_nb.stores.store_protocol import BatchKey

    kind, port, name, shard, batches = sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6])
    database = Database(kind, name, "127.0.0.1", port, "siddhi", Secret(sys.stdin.read()))
    purge = "@purge(interval='10 sec', @retentionPeriod(sec='2 min', min='all'))\\n"
    plan = plan_of(shard, TRADES + purge + AGGREGATION)
    store = SqlStore(database)
    store.prepare(plan.aggregations.values())
    parts = [
        partials_of(plan, [[k, 1.0, 1, NOON + 1000 * s] for k in "abcde" for s in range(i, i + 4)]) for i in range(10)
    ]
    for batch in range(batches):
        now = NOON + 1000 * batch
        clock = BatchClock(NOON, now - 1000, now)
        partials = {("TradeAggregation", shard): parts[batch % 10]}
        assert store.commit(BatchKey("app-" + shard, "run", batch), partials, clock=clock)
    """
)


def test_two_drivers_lose_nothing(server: servers.Server) -> None:
    """Both write and purge the same tables at once."""
    batches = 120
    name = server.made("two").name
    assert server.database.password is not None
    here = str(Path(__file__).parents[1])
    args = [here, server.database.kind, str(server.database.port), name]
    running = []
    for shard in ("node-1", "node-2"):
        command = [sys.executable, "-c", DRIVER, *args, shard, str(batches)]
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert p.stdin is not None
        p.stdin.write(server.database.password.reveal())
        p.stdin.close()
        running.append(p)
    for p in running:
        assert p.stderr is not None
        said = p.stderr.read()
        assert p.wait(100) == 0, said
    store = SqlStore(server.made("two"))
    store.prepare(plan_of().aggregations.values())
    by_shard = store.read_by_shard(A, "day", *ALWAYS).to_pylist()
    assert {(r["SHARD_ID"], r["symbol"]): r["AGG_SUM_quantity"] for r in by_shard} == {
        (shard, k): 4 * batches for shard in ("node-1", "node-2") for k in "abcde"
    }
    store.close()
