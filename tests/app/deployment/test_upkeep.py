"""`sparkstream store`: shards that are renamed, adopted and deleted, and tables from before partitioning."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.cli import main
from sparkstream_nb.plan import compile_app
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey
from stores.trades import AGGREGATION, NOON, TRADES, partials_of, plan_of

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "trades.siddhi"
    path.write_text(TRADES + AGGREGATION)
    return path


def filled(file: Path, *shards: str | None) -> Path:
    """A store with one trade of each shard; None: of a deployment that is not partitioned."""
    store = DuckDBStore(file)
    for shard in shards:
        plan = plan_of(shard)
        store.prepare(plan.aggregations.values())
        store.commit(BatchKey("app", shard or "", 0), {(A, shard or ""): partials_of(plan, [["x", 1.0, 5, NOON]])})
    store.close()
    return file


def held(file: Path) -> dict[str, int]:
    store = DuckDBStore(file)
    store.prepare(plan_of().aggregations.values())
    rows = store.read_by_shard(A, "day", *ALWAYS).to_pylist()
    store.close()
    return {r["SHARD_ID"]: r["AGG_SUM_quantity"] for r in rows}


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main(["store", *map(str, words)])
    out = capsys.readouterr()
    return code, out.out + out.err


def test_shards_are_listed_renamed_adopted_and_deleted(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = filled(tmp_path / "s.duckdb", "a", "b")
    at = ("--store", file)
    assert run(capsys, "shards", app, *at) == (0, f"{A}: shard 'a', 6 rows\n{A}: shard 'b', 6 rows\n")
    code, said = run(capsys, "rename", app, "a", "c", *at, "--dry-run")
    assert (code, said) == (0, f"{A}: 6 rows of shard 'a' go to shard 'c'\nnothing was changed (--dry-run)\n")
    assert held(file) == {"a": 5, "b": 5}
    assert run(capsys, "rename", app, "a", "c", *at)[0] == 0
    assert held(file) == {"b": 5, "c": 5}
    assert run(capsys, "rename", app, "b", "c", *at)[0] == 0
    assert held(file) == {"c": 10}
    code, said = run(capsys, "delete", app, "d", *at)
    assert (code, said) == (2, "sparkstream: no aggregation has rows of a shard 'd'. Known: c\n")
    assert run(capsys, "delete", app, "c", *at, "--dry-run")[0] == 0
    assert held(file) == {"c": 10}
    assert run(capsys, "delete", app, "c", *at)[0] == 0
    assert held(file) == {}


@pytest.mark.contract(thorough=True)
def test_aggregations_are_rebuilt(app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = filled(tmp_path / "s.duckdb", "a", "b")
    at = ("--store", file)
    code, said = run(capsys, "rebuild", app, "--from", "months", *at)
    assert (code, said) == (
        0,
        f"{A}: 2 rows of years are made of the months; 0 stay as they are, as their months are not all stored\n",
    )
    log = tmp_path / "trades.csv"
    log.write_text(f"symbol,price,quantity,timestamp\nx,1.0,7,{NOON}\ny,2.0,x,{NOON}\n")
    code, said = run(capsys, "rebuild", app, "c", "--from", log, *at, "--dry-run")
    assert code == 0
    assert f"{A}: 1 events do not count: quantity: 'x' is not a long\nnothing was changed" in said
    assert held(file) == {"a": 5, "b": 5}
    assert run(capsys, "rebuild", app, "c", "--from", log, *at)[0] == 0
    assert held(file) == {"c": 7}
    assert run(capsys, "rebuild", app, "--from", log, *at)[0] == 0
    assert held(file) == {"c": 7}
    empty = tmp_path / "empty.csv"
    empty.write_text("symbol,price,quantity,timestamp\n")
    code, said = run(capsys, "rebuild", app, "--from", empty, *at)
    assert code == 2
    assert "empty.csv has no events for 1 stored rows of seconds of 'TradeAggregation'" in said
    assert "cannot be rebuilt from 'weeks'" in run(capsys, "rebuild", app, "--from", "weeks", *at)[1]
    assert "file not found: none.csv" in run(capsys, "rebuild", app, "--from", "none.csv", *at)[1]
    assert held(file) == {"c": 7}


def test_both_ways_out_for_tables_without_shard_id(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = filled(tmp_path / "s.duckdb", None)
    code, said = run(capsys, "shards", app, "--store", file)
    assert code == 1
    assert "has no column SHARD_ID" in said
    code, said = run(capsys, "add-shard-id", app, "node-1", "--store", file, "--dry-run")
    assert code == 0
    assert "ALTER TABLE" in said
    assert run(capsys, "shards", app, "--store", file)[0] == 1, "a dry run changed the tables"
    assert run(capsys, "add-shard-id", app, "node-1", "--store", file)[0] == 0
    assert held(file) == {"node-1": 5}
    other = filled(tmp_path / "t.duckdb", None)
    assert run(capsys, "drop", app, "--store", other)[0] == 0
    assert held(other) == {}


def test_a_database_that_the_app_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sparkstream_nb.stores.address import Database
    from sparkstream_nb.stores.sql import SqlStore

    database = tmp_path / "shared.sqlite"
    app = tmp_path / "trades.siddhi"
    app.write_text(f"{TRADES}@store(type='rdbms', jdbc.url='jdbc:sqlite:{database}')\n{AGGREGATION}")
    plan = compile_app(app.read_text(), {"partitionById": "true", "shardId": "a"})
    store = SqlStore(Database("sqlite", str(database)))
    store.prepare(plan.aggregations.values())
    store.commit(BatchKey("app", "run", 0), {(A, "a"): partials_of(plan_of("a"), [["x", 1.0, 5, NOON]])})
    store.close()
    of_app = ("--name", "none", "--allow", f"file={tmp_path}")
    assert run(capsys, "shards", app, *of_app) == (0, f"{A}: shard 'a', 6 rows\n")
    assert run(capsys, "rename", app, "a", "b", *of_app)[0] == 0
    assert run(capsys, "shards", app, *of_app) == (0, f"{A}: shard 'b', 6 rows\n")
    code, said = run(capsys, "drop", app, "--name", "none")
    assert (code, f"or allow=['file={tmp_path}']" in said) == (1, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rename", "a"], "takes 2 shard ids"),
        (["delete"], "takes 1 shard id after"),
        (["shards", "--aggregation", "Trade"], "the app has no aggregation 'Trade'"),
        (["shards", "--store", "none.duckdb"], "There is no store none.duckdb"),
        (["shard"], "shard"),
        (["shards", "--from", "days"], "--from and --time are for sparkstream store rebuild"),
    ],
)
def test_mistakes_are_one_line(words: list[str], message: str, app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, words[0], app, *words[1:])
    assert code in (1, 2)
    assert message in said
    assert said.count("\n") == 1
