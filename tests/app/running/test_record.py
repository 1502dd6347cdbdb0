"""What an app's folder keeps of its deployment, and what of that can be attached."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import attachable
from sparkstream_nb.app.attaching import attach, attachable_names
from sparkstream_nb.app.config.record import DeploymentRecord
from sparkstream_nb.app.deployment.app_folder import AppRun, default_home, former_life, open_folder
from sparkstream_nb.app.deployment.deployment import Deployment
from sparkstream_nb.app.deployment.owner import acquire_home
from sparkstream_nb.errors import Misuse
from sparkstream_nb.limits import Limits
from sparkstream_nb.messaging import Messaging
from sparkstream_nb.plan import compile_app
from sparkstream_nb.request import DeployRequest, parameters
from sparkstream_nb.retention import Retention
from sparkstream_nb.simulation.faults import Kill, Slow
from sparkstream_nb.simulation.resources import ResourceCluster, ResourceNode
from sparkstream_nb.simulation.topology import Coordination, Pair

APP = "define stream S (v int); from S select v insert into O;"


def record(text: str = APP, **asked: Any) -> DeploymentRecord:
    """The record as `app.json` gives it back."""
    made = DeploymentRecord.of("app", DeployRequest(text=text, **asked))
    life = AppRun("0123456789ab", "plan", 1, ("a",), (0,), "single", deployed=made)
    return DeploymentRecord.read(json.loads(json.dumps(dataclasses.asdict(life)))["deployed"])


def test_a_record_deploys_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = {
        "nodes": 2,
        "mode": "ha",
        "shard_ids": ("a", "b"),
        "routing": "hash:v",
        "conf": ["one.yaml", Path("two.yaml")],
        "store": "aggregations.duckdb",
        "variables": {"K": "v"},
        "allow_env": ("HOST",),
        "allow": ["file=out", "kafka=localhost:9092"],
        "start": 7,
        "max_ahead": None,
        "pair": Pair(("a", "b"), coordination=Coordination(1, 2, 3), persist=5),
        "resources": ResourceCluster((ResourceNode("w", True),), ("m",), persist=None, messaging=Messaging.NATS),
        "faults": [Kill(1, "a"), Slow(2, "a", "b", 3, 9)],
        "seed": 3,
        "retention": "recording=500MB,days=7",
        "limits": "characters=1MB",
    }
    text = APP + "-- ${K}"
    kept = record(text, **asked)
    assert set(kept.arguments) == {p.name for p in parameters()} - {"text", "name", "home", "fresh"}
    request = kept.request(tmp_path)
    assert (request.text, request.name, request.home, request.fresh) == (text, "app", tmp_path, False)
    found = dataclasses.asdict(request) | {k: getattr(request, k) for k in ("pair", "resources", "faults", "retention")}
    assert found["conf"] == [str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml")]
    assert found["store"] == str(tmp_path / "aggregations.duckdb")
    assert found["allow"] == [f"file={tmp_path / 'out'}", "kafka=localhost:9092"]
    assert found["retention"] == Retention.of("recording=500MB,days=7")
    assert Limits.of(found["limits"]) == Limits.of("characters=1MB")
    assert (found["shard_ids"], found["allow_env"]) == (["a", "b"], ["HOST"])
    plain = ("nodes", "mode", "routing", "variables", "start", "max_ahead", "pair", "resources", "faults", "seed")
    assert {k: found[k] for k in plain} == {k: asked[k] for k in plain}


@pytest.mark.parametrize(
    ("text", "variable", "kept"),
    [
        ("@app:name('${N}')" + APP, "N", True),
        ("@store(type='rdbms', password='${X}')" + APP, "X", False),
        ("@store(type='rdbms', jdbc.url='jdbc:mysql://u:${X}@host/db')" + APP, "X", False),
        ("-- ${X} \n@store(password='${X}')" + APP, "X", False),
        (APP, "X", False),  # deployment files alone use it
        (APP + "-- ${DB_PASSWORD}", "DB_PASSWORD", False),
    ],
)
def test_values_that_may_be_secrets_are_not_kept(text: str, variable: str, kept: bool) -> None:
    made = record(text, variables={variable: "s3cret"})
    assert (made.arguments["variables"] == {variable: "s3cret"}) is kept
    assert made.withheld == (() if kept else (variable,))
    assert ("s3cret" in json.dumps(made.arguments)) is kept


def test_the_token_of_a_spark_address_is_not_kept() -> None:
    assert record(master="sc://host:15002/;token=abc;user_id=u").arguments["master"] == "sc://host:15002/;user_id=u"


def test_what_is_granted_shows_no_password() -> None:
    granted = record(
        allow=["http=http://h/x", "http=http://h/?token=abc"], allow_env=["A"], allow_scripts=True
    ).describe_grants()
    assert granted == ["http=http://h/x", "http=http://h/?token=***", "environment variable A", "scripts"]


def deployed(name: str, home: Path | None = None) -> Path:
    """A folder as a deployment leaves it."""
    home = default_home(name) if home is None else home
    home.mkdir(parents=True)
    open_folder(Deployment(DeployRequest(text=APP), name, "single", "round_robin", ("node-1",), home), compile_app(APP))
    return home


def test_the_record_is_private_and_goes_with_the_life(tmp_path: Path) -> None:
    home = deployed("one", tmp_path / "one")
    assert (home / "app.json").stat().st_mode & 0o777 == 0o600
    found = former_life(home).deployed
    assert found is not None
    assert (found.name, found.text) == ("one", APP)


def test_names_that_can_be_attached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    with pytest.raises(Misuse, match=r"no app 'x' was deployed here before. No app can be attached yet"):
        attach("x")
    for name in ("Alerts", "Trades"):
        deployed(name)
    (tmp_path / "apps" / "other").mkdir()
    (tmp_path / "apps" / "other" / "app.json").write_text("[]")
    kept = acquire_home(default_home("Alerts"), "Alerts")
    assert [(f.name, f.owner) for f in attachable()] == [("Alerts", "this process"), ("Trades", None)]
    kept.release()
    assert [f.owner for f in attachable()] == [None, None]
    assert attachable_names() == ["Alerts", "Trades"]
    with pytest.raises(Misuse, match=r"no app 'x' was deployed here before. Can be attached: Alerts, Trades"):
        attach("x")
    with pytest.raises(Misuse, match="Did you mean 'Trades'"):
        attach("Trade")


def test_folders_that_cannot_be_attached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path))
    with pytest.raises(Misuse, match=r"is no app's folder: it has no app.json"):
        attach("x", tmp_path)
    home = deployed("one", tmp_path / "one")
    with pytest.raises(Misuse, match=r"the app in .*one is 'one', not 'two'"):
        attach("two", home)
    AppRun("0123456789ab", "plan", 1, ("a",), (0,), "single").write(home)
    with pytest.raises(Misuse, match="was deployed by an earlier version, which kept no record"):
        attach("one", home)
    assert [f.name for f in attachable(home)] == []
    for place in (tmp_path / "apps" / "a", tmp_path / "apps" / "b"):
        deployed("twice", place)
    with pytest.raises(Misuse, match="several apps are called 'twice': say which by home"):
        attach("twice")


def test_a_record_follows_the_nodes() -> None:
    scaled = record(nodes=2).with_nodes(["node-1", "node-2", "node-3"], None)
    assert (scaled.arguments["nodes"], scaled.arguments["shard_ids"]) == (3, ["node-1", "node-2", "node-3"])
    by_files = record(conf="a.yaml").with_nodes(["x"], None)
    assert (by_files.scaled, by_files.arguments["nodes"]) == (("x",), None)
    assert by_files.with_nodes(["x", "y"], ["c.yaml"]).scaled is None
