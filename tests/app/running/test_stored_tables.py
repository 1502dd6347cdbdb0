"""Tables in a database that the nodes of a deployment share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SiddhiBindError, SiddhiRuntimeError, StoreError
from sparkstream_nb.outputs.commit import Commit
from tests.apps.crashing import die
from tests.apps.programs import killed

STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:{}')\n"
QUERIES = """
@info(name='count') from S select symbol, n
update or insert into T set T.n = T.n + n on T.symbol == symbol;
@info(name='unseen') from Q[not (T.symbol == symbol in T)] select symbol insert into Unseen;
@info(name='found') from Q join T on Q.symbol == T.symbol select T.symbol as symbol, T.n as n insert into Found;
"""
STREAMS = "define stream S (symbol string, n long);\ndefine stream Q (symbol string);\n"


def text(database: Path | str) -> str:
    return f"{STREAMS}{STORE.format(database)}@primaryKey('symbol') define table T (symbol string, n long);\n{QUERIES}"


@pytest.fixture
def run(run: Callable[..., App], tmp_path: Path) -> Callable[..., App]:
    """`deploy` with databases in the test's folder allowed."""
    return partial(run, allow=[f"file={tmp_path}"])


def rows(app: App, query: str = "from T select symbol, n") -> list[tuple[object, ...]]:
    return sorted(map(tuple, app.query(query).rows))


@pytest.mark.contract
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


@pytest.mark.contract
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


def fill(app: App, *, killed: bool = False) -> None:
    """Writes the table and reads it. `killed`: the process ends after the last commit, which is then not noted."""
    app.feed("S", pd.DataFrame({"symbol": ["a", "b"] * 50, "n": 1}), progress=lambda p: None)
    app.feed("Q", pd.DataFrame({"symbol": ["a", "z"] * 20}), progress=lambda p: None)
    if killed:
        commit = Commit.commit
        Commit.commit = lambda self, *given: (commit(self, *given), die())  # type: ignore[assignment, method-assign]
    app.feed("S", pd.DataFrame({"symbol": ["a", "z"] * 50, "n": 1}), progress=lambda p: None)


KILLED = """
import sys
from pathlib import Path
from sparkstream_nb.app import deploy
from tests.apps.programs import master
from tests.app.running.test_stored_tables import fill, text
home, database = map(Path, sys.argv[1:])
allow = [f"file={database.parent}"]
fill(deploy(text(database), name="app", nodes=2, home=home, master=master(), allow=allow), killed=True)
"""


@pytest.mark.contract(thorough=True)
def test_a_repeated_micro_batch_changes_nothing(run: Callable[..., App], tmp_path: Path, master: str | None) -> None:
    killed(tmp_path / "home", KILLED, tmp_path / "home", tmp_path / "t.db", master=master)
    again = run(text(tmp_path / "t.db"), nodes=2)
    assert rows(again) == [("a", 100), ("b", 50), ("z", 50)]
    undisturbed = run(text(tmp_path / "other.db"), nodes=2, name="other", home=tmp_path / "other")
    fill(undisturbed)
    found, expected = (a.output("Found").frame.drop(columns="timestamp") for a in (again, undisturbed))
    pd.testing.assert_frame_equal(found, expected)


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
    server = "jdbc:postgresql://localhost:1/d?sslmode=require&sslkey="
    with pytest.raises(SiddhiBindError, match="with sslkey /etc/hosts, which is not allowed"):
        run(text("").replace("jdbc:sqlite:", f"{server}/etc/hosts"), allow=["jdbc=postgresql://localhost:1/d"])
