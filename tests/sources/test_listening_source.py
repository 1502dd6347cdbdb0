"""Tables that are listened to, in apps, with real servers: every change once, whatever is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import servers
from sparkstream_nb.app import App, deploy
from sparkstream_nb.errors import NotInThisBuild, SiddhiBindError
from sparkstream_nb.stores.dialects import DIALECTS
from tests.apps.listening_crashing import app_text, deployed
from tests.apps.programs import ROOT, wait_until_free
from tests.apps.waiting import rows, until
from tests.marks import thorough


@pytest.fixture(params=[thorough("mariadb"), "postgresql"], scope="module")
def started(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    servers.skip_without(request.param)
    with servers.SERVERS[request.param]() as server:
        yield server


@pytest.fixture
def server(started: servers.Server, monkeypatch: pytest.MonkeyPatch) -> servers.Server:
    """A server with an empty table `trades`, and its password in the environment."""
    assert started.database.password is not None
    monkeypatch.setenv("DB_PASSWORD", started.database.password.reveal())
    run_sql(started, "DROP TABLE IF EXISTS trades", "CREATE TABLE trades (id BIGINT PRIMARY KEY, v BIGINT)")
    if started.database.kind == "postgresql":
        run_sql(started, "ALTER TABLE trades REPLICA IDENTITY FULL")
        drop_slots(started)
    return started


def run_sql(server: servers.Server, *statements: str) -> None:
    """Runs statements in one transaction."""
    engine = DIALECTS[server.database.kind].engine(server.database)
    with engine.begin() as c:
        for statement in statements:
            c.execute(sa.text(statement))
    engine.dispose()


def drop_slots(server: servers.Server) -> None:
    from tests.sources.test_intake import until as wait

    engine = DIALECTS["postgresql"].engine(server.database)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        wait(lambda: not c.exec_driver_sql("SELECT 1 FROM pg_replication_slots WHERE active").all())
        c.exec_driver_sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    engine.dispose()


def insert(server: servers.Server, ids: range) -> None:
    run_sql(server, "INSERT INTO trades VALUES " + ", ".join(f"({i}, {i * 10})" for i in ids))


def address(server: servers.Server) -> str:
    return server.jdbc.removeprefix("jdbc:")


def outputs(app: App) -> list[tuple[Any, ...]]:
    """(id, value, former value, operation) of each change."""
    return list(app.output("O").frame[["id", "v", "was", "op"]].itertuples(index=False, name=None))


@pytest.mark.timeout(300)
def test_changes_come_once_whatever_stops(run: Callable[..., App], server: servers.Server) -> None:
    insert(server, range(5))  # these were there before
    app = run(app_text(address(server)), **deployed(address(server)))
    assert app.catch_up(180)
    insert(server, range(5, 25))
    run_sql(server, "UPDATE trades SET v = v + 1 WHERE id = 3", "DELETE FROM trades WHERE id = 4")
    assert app.catch_up(180)
    expected = [(i, i * 10, 0, "insert") for i in range(5, 25)] + [(3, 31, 30, "update"), (0, 0, 40, "delete")]
    assert outputs(app) == expected
    source = app.stats().sources[0]
    assert (source.received, source.events, source.rejected, source.lag) == (22, 22, 0, 0)
    assert source.origin == f"changes of trades in {server.database}"
    app.stop()
    insert(server, range(25, 35))
    again = run(app_text(address(server)), **deployed(address(server)))
    until(again, lambda: rows(again, "O") == 32)
    server.stop()
    until(again, lambda: again.stats().sources[0].last_error is not None)
    assert server.database.password is not None
    texts = [*again.logs, again.stats().sources[0].last_error or "", str(again.explain()), repr(again.stats())]
    assert server.database.password.reveal() not in " ".join(texts)
    server.start()
    insert(server, range(35, 40))
    until(again, lambda: rows(again, "O") == 37)
    assert outputs(again) == expected + [(i, i * 10, 0, "insert") for i in range(25, 40)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["before", "after", "middle"])
def test_killed(run: Callable[..., App], server: servers.Server, tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/apps/listening_crashing.py"), str(home), address(server), place],
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert "begun" in process.stdout.readline(), process.stderr.read()
        wait_for_beginning(home)
        insert(server, range(500))
        _, said = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == -9, said
    wait_until_free(home / "store.duckdb")
    insert(server, range(500, 600))
    app = run(app_text(address(server)), name="crash", home=home, **deployed(address(server)))
    until(app, lambda: rows(app, "O") >= 600)
    assert outputs(app) == [(i, i * 10, 0, "insert") for i in range(600)]
    assert app.output("O").frame["n"].tolist() == list(range(1, 601))


def wait_for_beginning(home: Path) -> None:
    """Waits until the journal of an app has where its source begins."""
    from tests.sources.test_intake import until as wait

    wait(lambda: any("trades@" in f.read_text(errors="replace") for f in home.rglob("journal/*")), 60)


@pytest.mark.timeout(300)
def test_a_change_that_does_not_fit_is_mended_and_sent_again(run: Callable[..., App], server: servers.Server) -> None:
    app = run(app_text(address(server)).replace("v long", "v bool"), **deployed(address(server)))
    assert app.catch_up(180)
    insert(server, range(7, 8))
    until(app, lambda: len(app.errors.frame) == 1)
    wrong = app.errors.frame
    assert wrong["reason"].tolist() == ["v: 70 is not a bool"]
    message = '{"id": 7, "v": true, "was": 0, "op": "insert"}'
    assert wrong["values"].tolist()[0]["message"] == message.replace("true", '"70"')
    wrong.at[wrong.index[0], "values"] = {"source": "S-cdc-1", "message": message}
    assert app.replay(wrong).sent == 1
    app.flush()
    assert outputs(app) == [(7, True, 0, "insert")]


def test_offline_leaves_it_out(run: Callable[..., App]) -> None:
    app = run(app_text("postgresql://db.example:5432/shop"), offline=True)
    app.send("S", (1, 2, 3, "insert"))
    app.flush()
    assert outputs(app) == [(1, 2, 3, "insert")]


# -------------------------------------------------------------------------------------------- options that are refused

PLACE = "postgresql://db.example:5432/shop"
GOOD = {
    "url": f"jdbc:{PLACE}",
    "username": "reader",
    "password": "${sec:db.password}",
    "table.name": "trades",
    "operation": "insert",
}


def text_of(mapping: str = "@map(type='keyvalue')", **changed: str | None) -> str:
    """An app with the good options, but those that are changed; None leaves one out."""
    options = {
        k: v for k, v in {**GOOD, **{k.replace("_", "."): v for k, v in changed.items()}}.items() if v is not None
    }
    written = ", ".join(f"{k}='{v}'" for k, v in options.items())
    return (
        f"@source(type='cdc', {written}, {mapping}) define stream S (id long, k string, m string, n string); "
        "from S select k insert into O;"
    )


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"url": None}, "has no 'url'"),
    ({"username": None}, "has no 'username'"),
    ({"password": None}, "Write password='${sec:NAME}'."),
    ({"table_name": None}, "has no 'table.name'"),
    ({"operation": None}, "has no 'operation'"),
    ({"operation": "insert,truncate"}, "'truncate' is unknown"),
    ({"mode": "binlog"}, "mode='binlog' of a source of type 'cdc' is unknown"),
    ({"url": "jdbc:postgresql://h:5432"}, "is not a complete address"),
    ({"url": f"jdbc:{PLACE}?user=a&password=geheim"}, "'url' has user or password in it"),
    ({"password": "geheim"}, "the password does not belong into the app's text"),
    ({"slot_name": "Not-A-Slot"}, "slot.name has small letters, digits and _, 63 at most, not 'Not-A-Slot'"),
    ({"connector_properties": "slot.name=A"}, "slot.name has small letters"),
    ({"connector_properties": "slot.name"}, "'slot.name' in connector.properties is not NAME=VALUE"),
    ({"url": "jdbc:mysql://h/shop", "table_name": "pay.trades"}, "'pay' is another database than"),
    (
        {"url": "jdbc:mysql://h/shop", "database_server_id": "0"},
        "'database.server.id' of @source(type='cdc') is a whole number from 1 to",
    ),
    (
        {"url": "jdbc:mysql://h/shop", "connector_properties": "database.server.id=x"},
        "from 1 to 4,294,967,295, not 'x'",
    ),
    ({"connector_properties": "plugin.name=x"}, "plugin.name is one of pgoutput, decoderbufs, wal2json, not 'x'"),
    ({"mapping": "@map(type='json')"}, "Write @map(type='keyvalue')"),
    (
        {"mapping": "@map(type='keyvalue', @attributes(id='trp:a', k='trp:b', m='trp:c', n='trp:d'))"},
        "a change has 3 transport properties, its operation and two times, and 'trp:d' is one more",
    ),
]


@pytest.mark.parametrize(("changed", "message"), WRONG, ids=[m for _, m in WRONG])
def test_wrong_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], message: str) -> None:
    monkeypatch.setenv("DB_PASSWORD", "geheim")
    allow = [f"jdbc={PLACE}", "jdbc=mysql://h:3306/shop"]
    with pytest.raises(SiddhiBindError) as error:
        deploy(text_of(**changed), name="x", home=tmp_path / "home", allow=allow, allow_env=["DB_PASSWORD"])
    assert message in str(error.value).replace("\n", " ")
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"url": "jdbc:oracle:thin://h:1521/x"}, "a database of type 'oracle'"),
        ({"url": "jdbc:sqlserver://h:1433;databaseName=x"}, "a database of type 'sqlserver'"),
        ({"url": "jdbc:mongodb://rs/h:1/x"}, "a database of type 'mongodb'"),
        ({"datasource_name": "DB"}, "'datasource.name'"),
        ({"connector_properties": "database.password=geheim"}, "'database.password' in connector.properties"),
    ],
)
def test_gaps_are_named(tmp_path: Path, changed: dict[str, str], what: str) -> None:
    with pytest.raises(NotInThisBuild) as error:
        deploy(text_of(**changed), name="x", home=tmp_path / "home", allow=[f"jdbc={PLACE}"])
    assert what in str(error.value)
    assert "geheim" not in str(error.value)


def test_a_database_that_is_not_allowed(tmp_path: Path) -> None:
    with pytest.raises(SiddhiBindError) as error:
        deploy(text_of(), name="x", home=tmp_path / "home", allow=["jdbc=postgresql://db.example:5432/other"])
    assert f"reads from {PLACE}, which is not allowed" in str(error.value)
    assert f"--allow jdbc={PLACE}" in str(error.value)
