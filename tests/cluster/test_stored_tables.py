"""Tables in a database that the nodes of a deployment share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.cluster import App
from sparkstream_nb.errors import SiddhiBindError, SiddhiRuntimeError, StoreError

STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:{}')\n"
QUERIES = """
@info(name='count') from S select symbol, n
update or insert into T set T.n = T.n + n on T.symbol == symbol;
@info(name='unseen') from Q[not (T.symbol == symbol in T)] select symbol insert into Unseen;
@info(name='found') from Q join T on Q.symbol == T.symbol select T.symbol as symbol, T.n as n insert into Found;
"""
STREAMS = "define stream S (symbol string, n long);\ndefine stream Q (symbol string);\n"


def text(database: Path) -> str:
    return f"{STREAMS}{STORE.format(database)}@primaryKey('symbol') define table T (symbol string, n long);\n{QUERIES}"


@pytest.fixture
def run(run: Callable[..., App], tmp_path: Path) -> Callable[..., App]:
    """`deploy` with databases in the test's folder allowed."""
    return partial(run, allow=[f"file={tmp_path}"])


def rows(app: App, query: str = "from T select symbol, n") -> list[tuple[object, ...]]:
    return sorted(map(tuple, app.query(query).rows))


def test_nodes_share_a_table(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(text(tmp_path / "t.db"), nodes=2)
    for i in range(1, 7):
        app.send("S", ["ab"[i % 2], i], at=i)
    assert rows(app) == [("a", 12), ("b", 9)]
    for node in (1, 2):
        app.send("Q", ["a"], at=10, node=node)
        app.send("Q", ["z"], at=11, node=node)
    app.flush()
    assert app.output("Found").frame[["node", "symbol", "n"]].values.tolist() == [
        ["node-1", "a", 12],
        ["node-2", "a", 12],
    ]
    assert app.output("Unseen").frame["symbol"].tolist() == ["z", "z"]
    assert "shared by all nodes; each change is made exactly once" in str(app.explain())


def test_a_queried_change_is_made_once(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(text(tmp_path / "t.db"), nodes=3)
    app.query("select 'a' as symbol, 1L as n insert into T")
    app.query("update T set T.n = T.n + 10L on T.symbol == 'a'")
    assert rows(app) == [("a", 11)]
    with pytest.raises(SiddhiRuntimeError, match="table T has a row with this primary key already"):
        app.query("select 'a' as symbol, 1L as n insert into T")
    assert rows(app, "from T on n > 10 and symbol != 'b' select n") == [(11,)]
    app.query("delete T on T.symbol == 'a'")
    assert rows(app) == []


def test_a_repeated_micro_batch_changes_nothing(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(text(tmp_path / "t.db"), nodes=2)
    app.feed("S", pd.DataFrame({"symbol": ["a", "b"] * 50, "n": 1}), progress=lambda p: None)
    app.feed("Q", pd.DataFrame({"symbol": ["a", "z"] * 20}), progress=lambda p: None)
    app.feed("S", pd.DataFrame({"symbol": ["a", "z"] * 50, "n": 1}), progress=lambda p: None)
    before = rows(app)
    assert before == [("a", 100), ("b", 50), ("z", 50)]
    found = app.output("Found").frame
    app.stop()
    commits = app.home.glob("life-*/checkpoint/commits/[0-9]*")
    last = max(commits, key=lambda f: int(f.name))
    for file in last.parent.glob(f"*{last.name}*"):
        file.unlink()  # Spark was killed before it noted its last micro-batch, a query; and one before, of events
    again = run(text(tmp_path / "t.db"), nodes=2)
    assert rows(again) == before
    pd.testing.assert_frame_equal(again.output("Found").frame, found)


def test_another_database_program_sees_the_rows(run: Callable[..., App], tmp_path: Path) -> None:
    import sqlite3

    app = run(text(tmp_path / "t.db"))
    app.send("S", ["a", 5])
    app.flush()
    with sqlite3.connect(tmp_path / "t.db") as other:
        assert other.execute("SELECT symbol, n FROM T").fetchall() == [("a", 5)]
        other.execute("UPDATE T SET n = 100")
    app.send("S", ["a", 1])
    assert rows(app) == [("a", 101)]


def test_what_cannot_be_a_table_is_refused_before_spark_starts(run: Callable[..., App], tmp_path: Path) -> None:
    with pytest.raises(SiddhiBindError, match=r"is not allowed\. Add --allow 'file="):
        run(text(tmp_path / "t.db"), allow=[])
    with pytest.raises(SiddhiBindError, match="names no database"):
        run(text(tmp_path).replace("jdbc.url", "other"))
    with pytest.raises(SiddhiBindError, match="cannot hold 'o' of type object"):
        run(f"{STREAMS}{STORE.format(tmp_path / 't.db')}define table T (o object);")
    with pytest.raises(SiddhiBindError, match=r"field\.length of table 'T' says 'n:3'"):
        run(text(tmp_path / "t.db").replace("rdbms'", "rdbms', field.length='n:3'"))
    with pytest.raises(StoreError, match="Use PostgreSQL, MySQL, MariaDB or SQLite"):
        run(text(tmp_path / "t.db").replace("sqlite", "duckdb"))
