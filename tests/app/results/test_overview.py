"""All apps at a glance: their figures as data, and as HTML with all texts escaped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sparkstream_nb.app import App, overview
from sparkstream_nb.app.results.overview import AppOverview, NodeOverview, Overview, app_figures
from sparkstream_nb.app.results.overview_html import overview_html
from sparkstream_nb.app.running import overviews

START = 1_700_000_000_000
APP = "define stream S (k string, v int); from S[v / v == 1] select k, v insert into O;"
DISTRIBUTED = """
define stream S (k string, v int);
@dist(execGroup='make') from S[v > 1] select k, v insert into Big;
@dist(execGroup='sum', parallel='2') partition with (k of Big) begin
from Big#window.length(3) select k, sum(v) as s insert into O; end;
"""


def send(app: App, count: int = 20) -> None:
    for i in range(1, count + 1):
        app.send("S", ["ab"[i % 2], i], at=START + 1000 * i)
    app.flush()


def of(name: str) -> AppOverview:
    return next(a for a in overview().apps if a.name == name)


def test_the_figures_of_apps(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = run(APP, name="One", home=tmp_path / "one")
    two = run(APP, name="Two", mode="active-active", nodes=2, home=tmp_path / "two")
    assert [(a.name, a.state, a.events, a.last_event, a.last_commit) for a in overview().apps] == [
        ("One", "running", 0, None, None),
        ("Two", "running", 0, None, None),
    ]
    send(one)
    send(two, 3)
    found = of("One")
    assert (found.mode, found.events, found.outputs, found.lag, found.errors) == ("single", 20, 20, 0, 0)
    assert found.last_event == START + 20_000
    assert found.input_per_second is not None
    assert found.input_per_second > 0
    assert found.last_commit is not None
    assert [(n.name, n.role, n.events) for n in found.nodes] == [("node-1", "", 20)]
    assert sum(n.events or 0 for n in of("Two").nodes) == 3
    monkeypatch.setattr(overviews.time, "time", lambda: found.last_commit / 1000 + 11)
    assert of("One").input_per_second == 0  # the rate of the last 10 s, not of the last 10 s with events
    two.stop()
    assert [(a.name, a.state) for a in overview().apps] == [("One", "running"), ("Two", "stopped")]
    assert overview().headline().startswith("2 apps: 1 running, 1 stopped · 0 errors")


def test_nodes_have_roles_and_partial_apps(run: Callable[..., App]) -> None:
    app = run(DISTRIBUTED, name="Rooms", mode="distributed", nodes=3)
    send(app)
    nodes = {n.name: n for n in of("Rooms").nodes}
    assert {n: nodes[n].role for n in ("manager-1", "manager-2")} == {"manager-1": "active", "manager-2": "passive"}
    assert nodes["manager-1"].events is None
    running = {a: n for n, node in nodes.items() for a in node.runs}
    assert running == {a: ns[0] for a, ns in app.placement.items()}
    assert nodes[running["Rooms-make-1"]].events == 20
    killed = running["Rooms-make-1"]
    app.cluster.kill(killed)
    app.tick(START + 40_000)
    app.flush()
    node = next(n for n in of("Rooms").nodes if n.name == killed)
    assert (node.role, node.runs) == ("down", ())


def test_an_app_that_failed_says_why(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(APP, name="Failed")
    monkeypatch.setattr(app.runtime.stream, "failure", lambda: "no answer of postgresql://me:s3cret@host/db <a>")
    (problem,) = of("Failed").problems
    assert problem.startswith("no answer of postgresql://me:***")
    assert "s3cret" not in problem


SOME = AppOverview(
    name="<b>A</b>",
    state="failed",
    mode="ha",
    events=1_200,
    errors=3,
    last_event=START,
    state_bytes=1_500,
    nodes=(NodeOverview("n<1>", "down", ("A-<i>",), 7, 12.3, 1_500, START), NodeOverview("manager-1", "active")),
    problems=("source '<script>alert(1)</script>' is away",),
)


def test_html_is_escaped_and_has_no_style_of_its_own() -> None:
    text = overview_html(Overview((SOME,)))
    for tag in ("<b>", "<i>", "<1>", "<script"):
        assert tag not in text
    assert "style=" not in text  # the dashboard's content security policy forbids it
    for part in ("&lt;b&gt;A&lt;/b&gt;", "n&lt;1&gt;", "A-&lt;i&gt;", "1,200", "1.5 KB", '<tr class="down">', "alarm"):
        assert part in text


def test_columns_that_no_node_fills_are_left_out() -> None:
    plain = replace(SOME, nodes=(NodeOverview("node-1", events=0, state_bytes=0),))
    text = overview_html(Overview((plain,)))
    assert ">events</th>" in text
    assert ">role</th>" not in text
    assert ">runs</th>" not in text
    assert "No app is deployed." in overview_html(Overview(()))


def test_figures_that_are_not_known_yet() -> None:
    figures = dict(app_figures(AppOverview("A", "running", "single")))
    assert (figures["input"], figures["last event (UTC)"], figures["events"]) == ("–", "–", "0")
