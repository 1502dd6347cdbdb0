"""The graph of an app: as data, as a picture, and the ways to it."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sparkstream_nb import app as api
from sparkstream_nb import cli
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.lab import display
from sparkstream_nb.lab.graph import graph_drawing
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.reports.app_graph import graph_of

S = "define stream S (k string, v int);\n"
R = "define stream R (k string, v int);\n"
T = "define table T (k string, v int);\n"
CASES = {
    "join": (
        S + R + "from S#window.length(2) join R#window.length(2) on S.k == R.k select S.k insert into O;",
        {("stream:S", "query:query1", ""), ("stream:R", "query:query1", ""), ("query:query1", "stream:O", "")},
    ),
    "pattern": (
        S + R + "from every a=S -> b=R select a.k insert into O;",
        {("stream:S", "query:query1", ""), ("stream:R", "query:query1", ""), ("query:query1", "stream:O", "")},
    ),
    "partition": (
        S + "partition with (k of S) begin from S select v insert into #I; from #I select v insert into O; end;",
        {
            ("stream:S", "query:query1", ""),
            ("query:query1", "stream:partition0#I", ""),
            ("stream:partition0#I", "query:query2", ""),
            ("query:query2", "stream:O", ""),
        },
    ),
    "table": (
        S + T + "from S[(T.k == k) in T] select k, v update T on T.k == k;",
        {("stream:S", "query:query1", ""), ("table:T", "query:query1", "in"), ("query:query1", "table:T", "update")},
    ),
    "named window": (
        S + "define window W (k string, v int) length(3);\nfrom S insert into W; from W select v insert into O;",
        {
            ("stream:S", "query:query1", ""),
            ("query:query1", "window:W", ""),
            ("window:W", "query:query2", ""),
            ("query:query2", "stream:O", ""),
        },
    ),
    "aggregation": (
        S + "define aggregation A from S select k, sum(v) as t group by k aggregate every sec ... year;",
        {("stream:S", "aggregation:A", "")},
    ),
    "trigger": (
        "define trigger Tick at every 1 sec;\nfrom Tick select triggered_time as t insert into O;",
        {("stream:Tick", "query:query1", ""), ("query:query1", "stream:O", "")},
    ),
    "fault stream": (
        "@OnError(action='STREAM')\n" + S + "from !S select v insert into O;",
        {("stream:S", "stream:!S", "on error"), ("stream:!S", "query:query1", ""), ("query:query1", "stream:O", "")},
    ),
    "the same stream": (
        S + "from S[v < 3] select k, v + 1 as v insert into S;",
        {("stream:S", "query:query1", ""), ("query:query1", "stream:S", "")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_edges_of_an_app(name: str) -> None:
    text, edges = CASES[name]
    graph = graph_of(compile_app(text))
    assert {(e.start, e.end, e.label) for e in graph.edges} == edges
    inside = {node.id for node in graph.nodes if node.inside == "partition:partition0"}
    assert inside == ({"query:query1", "query:query2", "stream:partition0#I"} if name == "partition" else set())


def _apps() -> list[str]:
    """The first app of each file of cases, as far as it is right."""
    files = sorted((Path(__file__).parents[1] / "cases").rglob("*.jsonl"))
    return [json.loads(f.read_text(encoding="utf-8").split("\n", 1)[0]).get("app", "") for f in files]


def test_pictures_have_every_node_and_no_overlap() -> None:
    drawn = 0
    for text in _apps():
        try:
            graph = graph_of(compile_app(text, {"shardId": "a"}))
        except SiddhiError:
            continue
        picture = ElementTree.fromstring(graph_drawing.svg(graph))
        titles = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}title")]
        assert sorted(t or "" for t in titles) == sorted(graph_drawing.about(node) for node in graph.nodes)
        boxes = graph_drawing._laid_out(graph, [e.label for e in graph.edges]).boxes
        for a, b in combinations([boxes[node.id] for node in graph.nodes if node.kind != "partition"], 2):
            apart = abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
            assert apart, text
        drawn += 1
    assert drawn > 20


def test_names_are_escaped_and_the_same_text_gives_the_same_bytes() -> None:
    text = "define stream `<script>` (v int);\n@info(name='<b>')\nfrom `<script>` select v insert into O;"
    graph = graph_of(compile_app(text))
    picture, page = graph_drawing.svg(graph), graph_drawing.image(graph)
    for markup in (picture, page):
        assert "<script>" not in markup
        assert "<b>" not in markup
        assert "&lt;script&gt;" in markup
    again = graph_of(compile_app(text))
    assert (graph_drawing.svg(again), graph_drawing.image(again)) == (picture, page)


def test_command_line_and_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Any, app: Any) -> None:
    text, _ = CASES["partition"]
    file = tmp_path / "app.siddhi"
    file.write_text(text, encoding="utf-8")
    picture = graph_drawing.svg(graph_of(compile_app(text)))
    assert cli.main(["explain", str(file), "--svg", "-"]) == 0
    assert capsys.readouterr().out == picture + "\n"
    assert cli.main(["explain", str(file), "--svg", str(tmp_path / "app.svg")]) == 0
    assert (tmp_path / "app.svg").read_text(encoding="utf-8") == picture + "\n"
    shown = shell.run_cell_magic("siddhi", "--graph", text)
    assert shown == api.graph(text)
    assert "query query1  (in partition0)  ! right if routed by k\n  → #I" in display.text(shown)
    assert shell.run_line_magic("siddhi", "graph Trades").graph == graph_of(app.plan)
