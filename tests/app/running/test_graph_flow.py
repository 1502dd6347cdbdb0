"""The events on the edges of an app's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.graph_flow import FlowMeter
from sparkstream_nb.lab import display
from sparkstream_nb.lab.graph import graph_drawing
from sparkstream_nb.lab.graph.edge_labels import rate_label, total_labels

TEXT = """
@source(type='inMemory', topic='t')
@OnError(action='STREAM')
define stream S (k string, v int);
define window W (k string, v int) length(3) output all events;
define table T (k string, v int);
define trigger Tick at every 1 sec;
@info(name='high') from S[v > 2] select k, v insert into Mid;
@info(name='one') from S[v == 1] select k, v insert into Out;
@info(name='two') from Mid select k, v insert into Out;
@info(name='keep') from S select k, v update or insert into T set T.v = v on T.k == k;
@info(name='into') from S select k, v insert into W;
@info(name='recent') from W select k, v insert into Recent;
@info(name='cast') from S select cast(k, 'int') as k insert into Numbers;
@info(name='failures') from !S select k insert into Failures;
@info(name='look') from Mid join T on Mid.k == T.k select Mid.k as k insert into Looks;
@info(name='ticks') from Tick select count() as n insert into Ticks;
partition with (k of S) begin
@info(name='first') from S select k, v insert into #I;
@info(name='second') from #I select v insert into Parts;
end;
"""
EDGES = {
    "source:0:S → S": 100,
    "S → high": 100,
    "S → one": 100,
    "high → Mid": 97,
    "Mid → two": 97,
    "one → Out": 1,
    "two → Out": 97,
    "S → keep": 100,
    "keep → T": 100,
    "S → into": 100,
    "into → W": 100,
    "W → recent": 197,
    "recent → Recent": 100,
    "S → cast": 100,
    "cast → Numbers": 0,
    "S → !S": 100,
    "!S → failures": 100,
    "failures → Failures": 100,
    "T → look": None,
    "Mid → look": 97,
    "look → Looks": 97,
    "Tick → ticks": 99,
    "ticks → Ticks": 99,
    "S → first": 100,
    "first → partition0#I": 100,
    "partition0#I → second": 100,
    "second → Parts": 100,
}
"""Each edge with its events, of 100 events of S, one each second, of which v is 0 to 99."""
WITHOUT_TOTALS = (
    "one → Out", "two → Out", "keep → T", "into → W", "W → recent", "first → partition0#I", "partition0#I → second",
    "T → look",
)  # fmt: skip
"""Edges of which no events are counted since the app began: only queries and windows count theirs."""


def by_name(app: App, totals: Sequence[int | None]) -> dict[str, int | None]:
    """The totals by edge, as text."""

    def name(node: str) -> str:
        kind, _, rest = node.partition(":")
        return node if kind == "source" else rest

    return {f"{name(e.start)} → {name(e.end)}": n for e, n in zip(app.graph().graph.edges, totals, strict=True)}


@pytest.mark.contract
def test_events_on_each_edge(run: Callable[..., App]) -> None:
    app = run(TEXT, offline=True)
    flow = app.graph().flow
    assert flow is not None
    assert not any(flow.present.counts)
    assert "stream S\n  → !S (on error)\n  → high\n" in display.text(app.graph())
    n = range(100)
    events = pd.DataFrame({"k": ["a", "b"] * 50, "v": n, "at": [1000 * i for i in n]})
    app.feed("S", events, time="at", progress=lambda p: None)
    reading = flow.read()
    assert by_name(app, reading.counts) == EDGES
    assert by_name(app, reading.totals) == {**EDGES, **dict.fromkeys(WITHOUT_TOTALS)}
    shown = display.text(app.graph())
    assert "stream S\n" in shown
    assert "  → high (100)\n" in shown
    assert "  → T (update or insert)\n" in shown
    assert ">97</text>" in graph_drawing.svg(app.graph().graph, total_labels(app.graph()))


SHARED = """
define stream S (k string, v int);
define stream Out (k string, v int);
@info(name='low') from S[v <= 10] select k, v insert into Out;
@info(name='high') from S[v > 10]#window.length(2) select k, v insert into Out;
"""


@pytest.mark.parametrize(
    "deployed",
    [{"nodes": 3}, {"nodes": 3, "routing": "hash:k"}, {"mode": "ha"}, {"mode": "distributed", "nodes": 2}],
    ids=lambda d: "-".join(map(str, d.values())),
)
def test_queries_that_share_a_stream_in_each_mode(run: Callable[..., App], deployed: dict[str, Any]) -> None:
    app = run(SHARED, **deployed)
    events = pd.DataFrame({"k": ["a", "b"] * 10, "v": range(20), "at": [1000 * i for i in range(20)]})
    app.feed("S", events, time="at", progress=lambda p: None)
    assert app.runtime.progress.element_rows.queries == {"low": 11, "high": 9}
    flow = app.graph().flow
    assert flow is not None
    counts = by_name(app, flow.present.counts)
    if deployed.get("mode") != "distributed":  # its graph has no stream that both write, as it is no topic
        assert (counts["low → Out"], counts["high → Out"]) == (11, 9)


def test_rows_that_only_the_leader_needs_are_not_counted_twice(run: Callable[..., App]) -> None:
    text = """
    define stream S (k string, v int);
    @info(name='low') from S[v <= 10] select k, v insert into Low;
    @info(name='pairs') from Low#window.lengthBatch(2) select sum(v) as v insert into Pairs;
    """
    app = run(text, nodes=3, alerts="leader")
    events = pd.DataFrame({"k": ["a", "b"] * 10, "v": range(20), "at": [1000 * i for i in range(20)]})
    app.feed("S", events, time="at", progress=lambda p: None)
    assert app.deployment.led == ("pairs",)
    assert app.runtime.progress.element_rows.queries == {"low": 11, "pairs": 5}


def test_rates_are_of_the_last_seconds() -> None:
    now = [0.0]
    meter = FlowMeter(lambda: now[0])
    assert meter.add((0, None)) == (None, None)
    for second in range(1, 20):
        now[0] = float(second)
        rates = meter.add((100 * min(second, 10), None))
        assert rates[1] is None
        if second <= 10:
            assert rates[0] == 100
    assert rates[0] == 0


def test_a_rate_ends_within_the_window() -> None:
    now = [0.0]
    meter = FlowMeter(lambda: now[0])
    meter.add((0,))
    now[0] = 1.0
    assert meter.add((50,)) == (50,)
    now[0] = 2.0
    assert meter.add((50,)) == (25,)
    now[0] = 6.0
    assert meter.add((50,)) == (0,)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0/s"), (0.26, "0.3/s"), (9.94, "9.9/s"), (9.96, "10/s"), (1234.6, "1,235/s"), (999_999.4, "999,999/s"),
     (1_250_000, "1.2 M/s")],
)  # fmt: skip
def test_the_text_of_a_rate(rate: float, text: str) -> None:
    assert rate_label(rate) == text
