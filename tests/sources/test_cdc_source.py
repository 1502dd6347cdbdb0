"""Tables that are polled, in apps on Spark, with real servers: every row once, whatever is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import servers
from sparkstream_nb.app import App, deploy
from sparkstream_nb.app.connectors.sources import SourcePlans
from sparkstream_nb.errors import NotInThisBuild, SiddhiBindError
from sparkstream_nb.sources import cdc
from sparkstream_nb.stores.dialects import DIALECTS
from tests.apps import cdc_crashing
from tests.apps.cdc_crashing import app_text, deployed, source
from tests.apps.programs import ROOT, wait_until_free
from tests.apps.waiting import rows, until
from tests.marks import thorough


@pytest.fixture(params=[thorough("mariadb"), "postgresql"], scope="module")
def started(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    servers.skip_without(request.param)
    with servers.SERVERS[request.param]() as found:
        yield found


@pytest.fixture
def server(started: servers.Server, monkeypatch: pytest.MonkeyPatch) -> servers.Server:
    """A server with an empty table `trades`, and its password in the environment."""
    assert started.database.password is not None
    monkeypatch.setenv("DB_PASSWORD", started.database.password.reveal())
    run_sql(
        started, "DROP TABLE IF EXISTS trades", "CREATE TABLE trades (id BIGINT PRIMARY KEY, k VARCHAR(9), v BIGINT)"
    )
    return started


def run_sql(server: servers.Server, *statements: str) -> None:
    engine = DIALECTS[server.database.kind].engine(server.database)
    with engine.begin() as c:
        for statement in statements:
            c.execute(sa.text(statement))
    engine.dispose()


def insert(server: servers.Server, ids: Iterable[int]) -> None:
    run_sql(server, "INSERT INTO trades VALUES " + ", ".join(f"({i}, 'k{i % 5}', {i * 10})" for i in ids))


def address(server: servers.Server) -> str:
    return server.jdbc.removeprefix("jdbc:")


def ids(app: App) -> list[int]:
    found: list[int] = app.output("O").frame["id"].tolist()
    return found


@pytest.mark.timeout(300)
def test_rows_come_once_whatever_stops(
    run: Callable[..., App], server: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdc, "PORTION", 30)
    insert(server, range(5))  # these were there before
    app = run(app_text(address(server)), **deployed(address(server)))
    assert app.catch_up(180)
    insert(server, range(5, 105))
    assert app.catch_up(180)
    assert ids(app) == list(range(5, 105))
    assert app.output("O").frame["v"].tolist() == [i * 10 for i in range(5, 105)]
    found = app.stats().sources[0]
    assert (found.received, found.events, found.rejected, found.lag) == (100, 100, 0, 0)
    assert found.origin == f"trades.id in {server.database}"
    app.stop()
    insert(server, range(105, 155))
    again = run(app_text(address(server)), **deployed(address(server)))
    until(again, lambda: rows(again, "O") == 150)
    server.stop()
    until(again, lambda: again.stats().sources[0].last_error is not None)
    assert server.database.password is not None
    shown = " ".join(
        [*again.logs, again.stats().sources[0].last_error or "", str(again.explain()), repr(again.stats())]
    )
    assert server.database.password.reveal() not in shown
    server.start()
    insert(server, range(155, 165))
    until(again, lambda: rows(again, "O") == 160)
    assert ids(again) == list(range(5, 165))
    assert again.output("O").frame["n"].tolist() == list(range(1, 161))


@pytest.mark.timeout(300)
def test_the_beginning_is_kept_at_once(run: Callable[..., App], server: servers.Server) -> None:
    insert(server, range(3))
    app = run(app_text(address(server)), **deployed(address(server)))
    assert app.catch_up(180)
    app.stop()
    insert(server, range(3, 6))  # it has a place, though it never had a row
    app.start()
    until(app, lambda: rows(app, "O") == 3)
    assert ids(app) == [3, 4, 5]


@pytest.mark.timeout(300)
def test_a_row_that_does_not_fit_is_mended_and_sent_again(run: Callable[..., App], server: servers.Server) -> None:
    text = app_text(address(server)).replace("k string", "k int")
    app = run(text, **deployed(address(server)))
    assert app.catch_up(180)
    run_sql(server, "INSERT INTO trades VALUES (1, '7', 1), (2, 'x', 2), (3, NULL, 3)")
    until(app, lambda: len(app.errors.frame) == 2)
    app.flush()
    assert ids(app) == [1]
    wrong = app.errors.frame
    assert wrong["reason"].tolist() == ["k: 'x' is not an int", "it has no value in column 'k' for k"]
    assert [json.loads(v["message"]) for v in wrong["values"]] == [{"id": 2, "k": "x", "v": 2}, {"id": 3, "v": 3}]
    assert len(app.replay().left) == 2
    wrong.at[wrong.index[0], "values"] = {"source": "S-cdc-1", "message": '{"id": 2, "k": 8, "v": 2}'}
    assert app.replay(wrong).sent == 1
    app.flush()
    assert app.output("O").frame[["id", "k", "v"]].to_numpy().tolist() == [[1, 7, 1], [2, 8, 2]]


@pytest.mark.timeout(300)
def test_a_table_that_comes_later(run: Callable[..., App], server: servers.Server) -> None:
    run_sql(server, "DROP TABLE trades")
    app = run(app_text(address(server)), **deployed(address(server)))
    until(app, lambda: "has no table 'trades'" in (app.stats().sources[0].last_error or ""))
    run_sql(server, "CREATE TABLE trades (id BIGINT, k VARCHAR(9), v BIGINT)")
    until(app, lambda: app.stats().sources[0].last_error is None)
    assert app.catch_up(180)
    insert(server, range(4))
    until(app, lambda: rows(app, "O") == 4)


@pytest.mark.timeout(300)
def test_a_row_has_the_time_of_a_column(run: Callable[..., App], server: servers.Server) -> None:
    datetime = "TIMESTAMP" if server.database.kind == "postgresql" else "DATETIME"
    run_sql(server, "DROP TABLE trades", f"CREATE TABLE trades (id BIGINT, at {datetime})")
    app = run(
        f"""
        {source(address(server), ", event.time='at'")}
        define stream S (id long, at long);
        from S select id insert into O;
        """,
        **deployed(address(server)),
    )
    assert app.catch_up(180)
    run_sql(server, "INSERT INTO trades VALUES (1, '2024-01-01 00:00:00'), (2, '2300-01-01 00:00:00')")
    until(app, lambda: rows(app, "O") == 1 and len(app.errors.frame) == 1)
    assert app.output("O").frame["timestamp"].tolist() == [1704067200000]
    assert "(max_ahead)" in app.errors.frame["reason"].tolist()[0]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["before", thorough("after")])
def test_killed(run: Callable[..., App], server: servers.Server, tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/apps/cdc_crashing.py"), str(home), address(server), place],
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
    app = run(cdc_crashing.app_text(address(server)), name="crash", home=home, **deployed(address(server)))
    until(app, lambda: rows(app, "O") >= 600)
    assert ids(app) == list(range(600))
    assert app.output("O").frame["n"].tolist() == list(range(1, 601))


def wait_for_beginning(home: Path) -> None:
    """Waits until the journal of an app has where its source begins."""
    from tests.sources.test_intake import until as wait

    wait(lambda: any("trades.id" in f.read_text(errors="replace") for f in home.rglob("journal/*")), 60)


# ------------------------------------------------------------------------------------- what is said before Spark starts

PLACE = "postgresql://db.example:5432/shop"
GOOD = {
    "mode": "polling",
    "url": f"jdbc:{PLACE}",
    "username": "reader",
    "password": "${sec:db.password}",
    "table.name": "trades",
    "polling.column": "id",
}


def text_of(mapping: str = "@map(type='keyvalue')", **changed: str | None) -> str:
    """An app with the good options, but those that are changed; None leaves one out."""
    options = {
        k: v for k, v in {**GOOD, **{k.replace("_", "."): v for k, v in changed.items()}}.items() if v is not None
    }
    written = ", ".join(f"{k}='{v}'" for k, v in options.items())
    return (
        f"@source(type='cdc', {written}, {mapping}) define stream S (id long, k string); from S select k insert into O;"
    )


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"url": None}, "has no 'url'"),
    ({"username": None}, "has no 'username'"),
    ({"password": None}, "Write password='${sec:NAME}'."),
    ({"table_name": None}, "has no 'table.name'"),
    ({"polling_column": ""}, "has no 'polling.column'"),
    ({"polling_interval": "0"}, "'polling.interval' of @source(type='cdc') is a whole number from 1 to 86,400"),
    ({"polling_interval": "often"}, "'polling.interval' of @source(type='cdc') is a whole number"),
    ({"url": "jdbc:oracle:thin:@h:1521/x"}, "cannot be in a database of type 'oracle'"),
    ({"url": "jdbc:sqlite:trades.db"}, "is a file, and servers are polled"),
    ({"url": "postgresql://h/d"}, "is not a JDBC address"),
    ({"url": "jdbc:postgresql://h:5432"}, "is not a complete address"),
    ({"url": f"jdbc:{PLACE}?user=a&password=geheim"}, "'url' has user or password in it"),
    ({"url": "jdbc:postgresql://${env:HOST}/d"}, "'url' cannot have a reference"),
    ({"password": "geheim"}, "the password does not belong into the app's text"),
    ({"password": "${db.password}"}, "the password does not belong into the app's text"),
    ({"password": "${sec:nowhere.to.be.found}"}, "has no value"),
    ({"url": "jdbc:mysql://db.example/shop", "table_name": "pay.trades"}, "'pay' is another database than"),
    ({"operation": "insert,delete"}, "goes with mode='listening'"),
    ({"mapping": "@map(type='passThrough')"}, "Write @map(type='keyvalue')"),
    ({"mapping": "@map(type='json')"}, "Write @map(type='keyvalue')"),
    ({"mapping": "@map(type='keyvalue', @attributes(id='id', k='trp:operation'))"}, "have no transport properties"),
    ({"event_time": "k2"}, "has no attribute 'k2'"),
    ({"table_name": "{{k}}"}, "cannot depend on the event"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG, ids=[m for _, m in WRONG])
def test_what_is_wrong_is_said(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    allow = [f"jdbc={PLACE}", "jdbc=mysql://db.example/shop"]
    with pytest.raises(SiddhiBindError) as error:
        deploy(text_of(**changed), name="x", home=tmp_path / "home", allow=allow)
    assert message in str(error.value).replace("\n", " ")
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"datasource_name": "DB"}, "'datasource.name'"),
        ({"pool_properties": "maximumPoolSize:10"}, "'pool.properties'"),
        ({"cron_expression": "0/5 * * * * ?"}, "'cron.expression'"),
        ({"wait_on_missed_record": "true"}, "'wait.on.missed.record'"),
    ],
)
def test_what_this_build_lacks_is_named(tmp_path: Path, changed: dict[str, str], what: str) -> None:
    with pytest.raises(NotInThisBuild) as error:
        deploy(text_of(**changed), name="x", home=tmp_path / "home", allow=[f"jdbc={PLACE}"])
    assert what in str(error.value)


def test_a_database_that_is_not_allowed(tmp_path: Path) -> None:
    for allow in ([], ["jdbc=postgresql://db.example:5432/other"], ["kafka=db.example:5432"]):
        with pytest.raises(SiddhiBindError) as error:
            deploy(text_of(), name="x", home=tmp_path / "home", allow=allow)
        assert f"reads from {PLACE}, which is not allowed" in str(error.value)
        assert f"--allow jdbc={PLACE}" in str(error.value)


def test_options_that_mean_nothing_here_are_taken(tmp_path: Path) -> None:
    from sparkstream_nb.app.config.grants import Grants
    from sparkstream_nb.app.config.secrets import References
    from sparkstream_nb.plan import compile_app

    text = text_of(jdbc_driver_name="org.postgresql.Driver", operation="Insert, update", polling_interval="5")
    references = References({}, ["DB_PASSWORD"])
    os.environ["DB_PASSWORD"] = "geheim"
    try:
        (setup,) = SourcePlans(compile_app(text), Grants.of([f"jdbc={PLACE}"]), references, tmp_path).setups(
            lambda: None
        )
    finally:
        del os.environ["DB_PASSWORD"]
    assert setup.origin == f"trades.id in {PLACE}"
    assert "geheim" not in repr(setup)
    with pytest.raises(SiddhiBindError, match="is not allowed"):
        SourcePlans(compile_app(text), Grants(), references, tmp_path)
