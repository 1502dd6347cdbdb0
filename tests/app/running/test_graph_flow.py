"""The events on the edges of an app's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.graph_flow import FlowMeter
from sparkstream_nb.lab import display
from sparkstream_nb.lab.graph import graph_drawing
from sparkstream_nb.lab.graph.edge_labels import rate_label, total_labels

TEXT = """
@source(type='inMemory', topic='t')
define stream S (k string, v int);
define table T (k string, v int);
define trigger Tick at every 1 sec;
@info(name='high') from S[v > 2] select k, v insert into Mid;
@info(name='one') from S[v == 1] select k, v insert into Out;
@info(name='two') from Mid select k, v insert into Out;
@info(name='keep') from S select k, v update or insert into T set T.v = v on T.k == k;
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
    "one → Out": None,  # one of two writers
    "two → Out": None,
    "S → keep": 100,
    "keep → T": None,
    "Tick → ticks": 99,
    "ticks → Ticks": 99,
    "S → first": 100,
    "first → partition0#I": None,
    "partition0#I → second": None,
    "second → Parts": 100,
}
"""Each edge with its events, of 100 events of S, one each second, of which v is 0 to 99."""


def by_name(app: App, totals: Sequence[int | None]) -> dict[str, int | None]:
    """The totals by edge, as text."""
    graph = app.graph().graph
    return {
        f"{e.start.removeprefix('stream:').removeprefix('query:')} → "
        f"{e.end.removeprefix('stream:').removeprefix('query:').removeprefix('table:')}": total
        for e, total in zip(graph.edges, totals, strict=True)
    }


def test_events_on_each_edge(run: Callable[..., App]) -> None:
    app = run(TEXT, offline=True)
    flow = app.graph().flow
    assert flow is not None
    assert not any(flow.totals)
    assert "S\n  → high\n" in display.text(app.graph())
    n = range(100)
    events = pd.DataFrame({"k": ["a", "b"] * 50, "v": n, "at": [1000 * i for i in n]})
    app.feed("S", events, time="at", progress=lambda p: None)
    assert by_name(app, flow.read()) == EDGES
    shown = display.text(app.graph())
    assert "stream S\n" in shown
    assert "  → high (100)\n" in shown
    assert "  → T (update or insert)\n" in shown
    assert ">97</text>" in graph_drawing.svg(app.graph().graph, total_labels(app.graph()))


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
