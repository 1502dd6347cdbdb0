"""However a feed is cut into micro-batches, wherever the node is restarted, and in both ways of running: the same
comes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import a_third_of_pairs, examples
from reference.engine_cases import run_case

WINDOWS = [
    "length(3)",
    "lengthBatch(3)",
    "lengthBatch(3, true)",
    "time(500)",
    "timeBatch(700)",
    "timeBatch(500, 100, true)",
    "timeLength(700, 3)",
    "externalTime(ts, 500)",
    "externalTimeBatch(ts, 700)",
    "externalTimeBatch(ts, 500, 0, 400)",
    "externalTimeBatch(ts, 500, 0, 400, true)",
    "session(300 milliseconds)",
    "session(300 milliseconds, sym)",
    "session(300 milliseconds, sym, 200 milliseconds)",
    "batch()",
    "batch(2)",
    "delay(400)",
    "cron('*/2 * * * * ?')",
    "sort(3, px, 'desc', sym)",
    "expression('sum(qty) < 20 and last.px - first.px < 30.0')",
    "expression(ex)",
    "expressionBatch('count() <= 3', true)",
    "expressionBatch(ex, ok)",
    "expressionBatch(ex, false, true)",
    "frequent(2, sym)",
    "lossyFrequent(0.3, 0.2, sym)",
    "unique:ever(sym)",
    "unique:ever(sym, qty % 2)",
    "unique:first(qty)",
    "unique:length(sym, 2)",
    "unique:time(sym, 500)",
    "unique:lengthBatch(qty, 3)",
    "unique:timeBatch(px, 700)",
    "unique:timeLengthBatch(qty, 700, 100, 3)",
    "unique:externalTimeBatch(sym, ts, 700)",
    "unique:externalTimeBatch(sym, ts, 500, 0, 400)",
    "unique:firstLengthBatch(qty, 3)",
    "unique:firstTimeBatch(qty, 700, 0)",
]
SCHEMA = "define stream S (sym string, px double, qty int, ts long, ok bool, ex string);\n"
AGGREGATES = (
    "select sym, count() as n, sum(qty) as s, avg(px) as a, min(qty) as lo, max(px) as hi, stdDev(qty) as d,"
    " distinctCount(sym) as k, minForever(px) as f, or(ok) as o, str:groupConcat(sym) as c, list:collect(qty) as l"
)
QUERIES = {
    "aggregates": f"@info(name='q') from S#window.{{}} {AGGREGATES} insert all events into Out;",
    "grouped": "@info(name='q') from S#window.{} select sym, sum(qty) as s, stdDev(px) as d, "
    "math:percentile(px, 40.0) as p, str:groupConcat(sym) as c group by sym having s > 3 insert into Out;",
    "partition": "partition with (sym of S) begin @info(name='q') from S#window.{} select sym, qty, sum(qty) as s "
    "insert all events into Out; end;",
}

EVENT = st.tuples(
    st.sampled_from(["A", "B", "C", "EE"]),
    st.sampled_from([1.5, 20.25, 47.5, 80.0]),
    st.integers(0, 12),
    st.integers(0, 4000),
    st.booleans(),
    st.sampled_from(["count() <= 2", "sum(qty) < 15"]),
)


@st.composite
def feeds(draw: st.DrawFn) -> list[Any]:
    """Events, batches and ticks; times stand still, jump, and an event may be late."""
    steps: list[Any] = []
    now = 1000
    for _ in range(draw(st.integers(3, 14))):
        now += draw(st.sampled_from([0, 0, 90, 250, 400, 1300]))
        kind = draw(st.sampled_from(["event", "event", "event", "late", "batch", "tick"]))
        if kind == "tick":
            steps.append({"tick": now})
        elif kind == "batch":
            events = [[now, list(draw(EVENT))] for _ in range(draw(st.integers(2, 4)))]
            steps.append({"stream": "S", "batch": events})
        else:
            steps.append(["S", now - (300 if kind == "late" else 0), list(draw(EVENT))])
    return [*steps, {"tick": now + 600}, {"tick": now + 5000}]


def as_written(steps: list[Any], restarts: set[int]) -> list[Any]:
    """The feed with a restart before each of these steps."""
    out: list[Any] = []
    for i, step in enumerate(steps):
        if i in restarts:
            out.append({"restart": True})
        out.append(step)
    return out


@pytest.mark.parametrize(("window", "kind"), a_third_of_pairs(WINDOWS, QUERIES))
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(feed=feeds(), at=st.sets(st.integers(0, 15), max_size=4))
def test_cuts_restarts_and_ways(window: str, kind: str, feed: list[Any], at: set[int]) -> None:
    app = SCHEMA + QUERIES[kind].format(window)
    whole = run_case({"app": app, "feed": feed})
    assert "error" not in whole, whole
    assert run_case({"app": app, "feed": feed}, by_chunk=True) == whole
    assert run_case({"app": app, "feed": feed}, cuts=sorted(at)) == whole
    for by_chunk in (False, True):
        assert run_case({"app": app, "feed": as_written(feed, at)}, by_chunk=by_chunk) == whole
