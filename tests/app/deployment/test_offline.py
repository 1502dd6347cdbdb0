"""Apps that run as they are written, without their sources, sinks and databases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import App, attach, changes, deploy
from sparkstream_nb.app.config.grants import Grants
from sparkstream_nb.app.config.secrets import References
from sparkstream_nb.app.deployment.offline_advice import WAY_OUT
from sparkstream_nb.app.planning import plan_deployment
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.lab.arguments import deploy_options
from sparkstream_nb.lab.card import warnings_of
from sparkstream_nb.request import DeployRequest

CASES = Path(__file__).parents[2] / "cases" / "operator"
APP = (CASES / "Fraud.siddhi").read_text(encoding="utf-8")
PAYMENTS = [
    ["c1", 1000.5, "DE", 1000],
    ["c2", 20.0, "DE", 2000],
    ["c1", 30.0, "LK", 3000],
    ["c3", 950.0, "US", 4000],
    ["c1", 5.0, "DE", 6000],
]
ALERTS = [("c1", "large"), ("c1", "blocked"), ("c3", "large"), ("c1", "blocked")]
LEFT_OUT = (
    "Offline, without 2 sources (PaymentStream: http, ConfirmationStream: jms), 1 sink (FraudAlert: kafka) and "
    "2 stores (BlockedCards, PaymentAgg). "
)


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """No grant is asked, and no secret looked up."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it reaches outside")

    for name in ("folder_of", "check_url", "check_server", "check_database", "check_store"):
        monkeypatch.setattr(Grants, name, refuse)
    monkeypatch.setattr(References, "_value", refuse)


def end(app: App) -> None:
    app.stop()
    app.close()


def alerts_of(app: App) -> list[tuple[str, str]]:
    frame = app.output("FraudAlert").frame
    return list(zip(frame["cardId"], frame["reason"], strict=True))


@pytest.mark.usefixtures("no_connections")
@pytest.mark.parametrize("how", [{}, {"conf": str(CASES / "deployment.yaml")}, {"nodes": 3}], ids=str)
def test_an_app_runs_as_it_is_on_events_that_are_fed(how: dict[str, Any], tmp_path: Path) -> None:
    app = deploy(APP, offline=True, master="inline", home=tmp_path / "home", **how)
    for values in PAYMENTS:
        app.send("PaymentStream", values, at=values[-1])
        app.flush()
    assert sorted(alerts_of(app)) == sorted(ALERTS)  # the rows of the table are for all nodes
    rows = app.query("from PaymentAgg within 0L, 100000L per 'sec' select country, sum(payments) as n group by country")
    assert dict(rows.rows) == {"DE": 3, "LK": 1, "US": 1}
    assert [w for w in warnings_of(app) if w.startswith("Offline")] == [
        LEFT_OUT + "Streams of sources are fed, and those of sinks read, as others are; stored rows are the app's own."
    ]
    end(app)


@pytest.mark.usefixtures("no_connections")
def test_an_app_that_is_attached_stays_offline(tmp_path: Path) -> None:
    home = tmp_path / "home"
    app = deploy(APP, offline=True, master="inline", home=home)
    app.send("PaymentStream", PAYMENTS[0], at=1000)
    app.flush()
    end(app)
    again = attach("OperatorsFraud", home=home, master="inline")
    again.send("PaymentStream", PAYMENTS[2], at=3000)
    again.flush()
    assert alerts_of(again) == ALERTS[:2]
    end(again)


SINK = "@sink(type='log') define stream O (v int); "
STREAM = "@app:name('Mixed') define stream S (v int); "
FILE = "@sink(type='file', file.uri='{}/out.txt', @map(type='text')) define stream O (v int); "
QUERY = "from S select v insert into O;"


def test_states_with_and_without_connections_are_not_mixed(tmp_path: Path) -> None:
    text = STREAM + FILE.format(tmp_path) + QUERY
    how: dict[str, Any] = {"master": "inline", "home": tmp_path / "home"}
    end(deploy(text, allow=[f"file={tmp_path}"], **how))
    with pytest.raises(SparkStreamError, match="was deployed with its sources, sinks and databases before"):
        deploy(text, offline=True, **how)
    end(deploy(text, offline=True, fresh=True, **how))
    with pytest.raises(SparkStreamError, match=r"was deployed without its sources, .*--name Mixed-online"):
        deploy(text, allow=[f"file={tmp_path}"], **how)
    end(deploy(STREAM + "define stream O (v int); " + QUERY, **how))  # it has no connection


def test_a_table_of_several_nodes_goes_with_the_state(tmp_path: Path) -> None:
    how: dict[str, Any] = {"offline": True, "master": "inline", "home": tmp_path / "home", "nodes": 2}
    for fresh, expected in ((False, ["large"]), (False, ["large", "blocked"]), (True, [])):
        app = deploy(APP, fresh=fresh, **how)
        values = PAYMENTS[0] if expected == ["large"] else PAYMENTS[2]
        app.send("PaymentStream", values, at=values[-1])
        app.flush()
        assert [reason for _, reason in alerts_of(app)] == expected
        end(app)


@pytest.mark.parametrize(
    "text",
    [
        "@sink(type='http', publisher.url='http://a.example/x', @map(type='json')) define stream O (v int); ",
        "@sink(type='kafka', topic='t', bootstrap.servers='k:1', @map(type='json')) define stream O (v int); ",
        "@sink(type='kafka', topic='${TOPIC}', bootstrap.servers='k:1', @map(type='json')) define stream O (v int); ",
        "@sink(type='hl7', uri='x', @map(type='json')) define stream O (v int); ",
        "@source(type='http', receiver.url='http://0.0.0.0:8006/p', @map(type='json')) define stream T (v int); ",
        "@store(type='rdbms', datasource='DB') define table T (v int); ",
        "@store(type='mongodb', mongodb.uri='x') define table T (v int); ",
        "@store(type='rdbms', jdbc.url='jdbc:mysql://h/d', password='${sec:x}') define table T (v int); ",
        "@store(ref='shop') define table T (v int); ",
    ],
)
def test_an_error_of_a_connection_names_the_way_without_it(text: str) -> None:
    stream = "" if "stream O" in text else "define stream O (v int); "
    request = DeployRequest(text=f"define stream S (v int); {stream}{text}{QUERY}", master="inline")
    with pytest.raises(SparkStreamError) as error:
        plan_deployment(request)
    assert WAY_OUT in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "define stream S (v int); from S select w insert into O;",
        "define stream S (v int); @sink(type='log') define stream O (v int); from S[v > ${N}] select v insert into O;",
        "@source(type='http', receiver.url='http://0.0.0.0:80/p', @map(type='json')) define stream S (v int);",
    ],
)
def test_another_error_does_not_name_it(text: str) -> None:
    with pytest.raises(SparkStreamError) as error:
        plan_deployment(DeployRequest(text=text, master="inline"))
    assert "offline" not in str(error.value)


def test_a_variable_that_a_query_needs_is_asked_for() -> None:
    text = "define stream S (v int); from S[v > ${N}] select v insert into O;"
    with pytest.raises(SparkStreamError, match=re.escape("${N} has no value")) as error:
        plan_deployment(DeployRequest(text=text, master="inline", offline=True))
    assert "--param N=VALUE, or variables={'N': ...}" in str(error.value)


@pytest.mark.usefixtures("no_connections")
def test_the_command_line_and_the_magic_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, feed = tmp_path / "app.siddhi", tmp_path / "in.csv"
    app.write_text(APP)
    feed.write_text("cardId,amount,country,ts\n" + "".join(f"{','.join(map(str, row))}\n" for row in PAYMENTS))
    home = ["--home", str(tmp_path / "home"), "--conf", str(CASES / "deployment.yaml")]
    words = ["run", str(app), *home, "--master", "inline", "--feed", f"PaymentStream={feed}", "--time", "ts"]
    assert cli.main([*words, "--offline"]) == 0
    printed = capsys.readouterr()
    assert [line.split()[-3] for line in printed.out.splitlines() if "blocked" in line] == ["blocked"] * 2
    assert printed.err.count("Offline, without") == 1
    query = "from PaymentAgg within 0L, 100000L per 'sec' select country, payments"
    assert cli.main(["query", str(app), query, *home, "--offline"]) == 0
    assert "LK" in capsys.readouterr().out
    assert cli.main(words) == 1
    assert "--offline" in capsys.readouterr().err
    assert deploy_options().parse(["--offline"]).offline


@pytest.mark.usefixtures("no_connections")
def test_changes_of_a_deployment_without_connections(tmp_path: Path) -> None:
    assert changes(APP, offline=True, master="inline", home=tmp_path / "home").becomes == "begun"
