"""Aggregations inside a node: meaning, errors, state, and independence of how events were cut into batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.aggregation import AggregationOp
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.plan import bind_retrieval, compile_app

B = 1678788000000
S = "define stream S (k string, v int, w double, ts long);\n"
ALWAYS = "within 0L, 4102444800000L"


def node_of(aggregation: str, **properties: str) -> NodeEngine:
    return NodeEngine(compile_app(S + aggregation, properties=properties))


def send(node: NodeEngine, rows: Sequence[Sequence[Any]], at: int | None = None) -> Any:
    """Events of S, one step each."""
    types = node.plan.schema("S").types
    ts = (node.now + 1 if at is None else at) + np.arange(len(rows))
    columns = [pa.array([r[i] for r in rows], ARROW[t]) for i, t in enumerate(types)]
    return node.step(InputBatch(ts, {"S": StreamRows(np.arange(len(rows)), ts, columns)}))


def ask(node: NodeEngine, text: str) -> list[list[Any]]:
    return node.answer(bind_retrieval(parse_on_demand(text), node.plan, text)).rows


def per(node: NodeEngine, duration: str, order: str = "AGG_TIMESTAMP") -> list[list[Any]]:
    return ask(node, f"from A {ALWAYS} per '{duration}' select * order by {order}")


def test_a_filter_records_what_passes() -> None:
    node = node_of(
        "define aggregation A from S[v > 10] select k, sum(v) as s group by k aggregate by ts every sec, min;"
    )
    send(node, [["a", 5, 1.0, B], ["a", 20, 1.0, B], ["b", 30, 1.0, B + 1], ["b", None, 1.0, B]])
    assert per(node, "min", "k") == [[B, "a", 20], [B, "b", 30]]


def test_an_average_leaves_nulls_out() -> None:
    node = node_of("define aggregation A from S select avg(w) as a, count() as n aggregate by ts every min;")
    send(node, [["a", 1, 4.0, B], ["a", 1, None, B], ["a", 1, 8.0, B]])
    assert per(node, "min") == [[B, 6.0, 3]]
    send(node, [["a", 1, None, B + 60_000]])
    assert per(node, "min")[1] == [B + 60_000, None, 1]


def test_a_snapshot_in_the_middle_of_a_bucket_loses_nothing() -> None:
    text = "define aggregation A from S select k, w, sum(v) as s, distinctCount(v) as d, sum(v) / count() as m "
    text += "group by k aggregate by ts every sec ... day;"
    rows = [["ab"[i % 2], i % 5, i * 1.0, B + 700 * i] for i in range(30)]
    whole, first = node_of(text), node_of(text)
    send(whole, rows)
    send(first, rows[:11])
    second = node_of(text)
    second.restore(first.snapshot())
    send(second, rows[11:])
    for duration in ("sec", "min", "hour", "day"):
        assert per(second, duration, "AGG_TIMESTAMP, k") == per(whole, duration, "AGG_TIMESTAMP, k")
    assert second.snapshot() == whole.snapshot()


def test_an_event_without_a_usable_time_is_an_error_and_no_more() -> None:
    node = node_of("define aggregation A from S select k, count() as n group by k aggregate by k every sec;")
    out = send(
        node,
        [
            ["2023-03-14 10:00:00", 1, 1.0, 1],
            ["never", 2, 1.0, 1],
            [None, 3, 1.0, 1],
            ["2023-03-14 10:00:00", 4, 1.0, 1],
        ],
    )
    assert [(e.query, e.stream, e.values[1]) for e in out.errors] == [("A", "S", 2), ("A", "S", 3)]
    assert "'never' is not a time" in out.errors[0].message
    assert per(node, "sec") == [[B, "2023-03-14 10:00:00", 2]]
    out = send(node, [["never", 5, 1.0, 1]])
    assert len(out.errors) == 1


def test_a_time_beyond_the_calendar_is_an_error() -> None:
    node = node_of("define aggregation A from S select count() as n aggregate by ts every sec ... year;")
    out = send(node, [["a", 1, 1.0, 10**17], ["a", 1, 1.0, B], ["a", 1, 1.0, -(10**17)]])
    assert len(out.errors) == 2
    assert per(node, "year") == [[1672531200000, 1]]


@pytest.mark.parametrize("zone", ["GMT", "Asia/Kolkata", "America/New_York"])
def test_the_first_and_the_last_times_of_the_calendar(zone: str) -> None:
    """Every long is a time or an error."""
    text = "define aggregation A from S select sum(v) as s aggregate by ts every sec ... year;"
    node = node_of(text, aggTimeZone=zone)
    inside = [-62135596800000, -1, 0, 253402300799999]
    outside = [-(2**63), -62135596800001, 253402300800000, 2**62, 9 * 10**18, 2**63 - 1]
    out = send(node, [["a", 1, 1.0, ts] for ts in (*outside, *inside)])
    assert [e.values[3] for e in out.errors] == outside
    assert {e.message for e in out.errors} == {"the event's time lies outside the years 1 to 9999"}
    every = f"from A within {-(2**63) + 1}L, {2**63 - 1}L per '%s' select * order by AGG_TIMESTAMP"
    assert ask(node, every % "sec") == [[-62135596800000, 1], [-1000, 1], [0, 1], [253402300799000, 1]]
    for duration in ("min", "hour", "day", "month", "year"):
        assert sum(n for _, n in ask(node, every % duration)) == len(inside)


def test_sums_of_longs_wrap() -> None:
    node = node_of("define aggregation A from S select sum(ts) as s aggregate every sec ... year;")
    send(node, [["a", 1, 1.0, 2**63 - 1], ["a", 1, 1.0, 2**63 - 1], ["a", 1, 1.0, 2**63 - 1]])
    assert [s for _, s in per(node, "year")] == [2**63 - 3]


def test_partials_are_what_a_step_added() -> None:
    node = node_of("define aggregation A from S select k, sum(v) as s group by k aggregate by ts every min, hour;")
    send(node, [["a", 1, 1.0, B], ["a", 2, 1.0, B + 60_000]])
    table = send(node, [["a", 4, 1.0, B]]).partials["A"]
    assert table.to_pylist() == [
        {"duration": d, "AGG_TIMESTAMP": B, "AGG_EVENT_TIMESTAMP": B, "k": "a", "AGG_SUM_v": 4} for d in ("min", "hour")
    ]
    assert send(node, []).partials == {}
    assert per(node, "hour") == [[B, "a", 7]]


def test_where_a_store_takes_the_partials_nothing_is_kept() -> None:
    node = node_of("define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec ... year;")
    op = AggregationOp(node.plan.aggregations["A"], node.services, keep=False)
    batch_rows = node._rows("S", np.arange(3), np.arange(3), [["a"] * 3, [1, 2, 3], [1.0] * 3, [B, B, B + 1000]])
    op.run(batch_rows, node._clock(np.arange(3)))
    table = op.partials()
    assert table is not None
    assert table.num_rows == 2 + 5
    assert op.bytes == 0
    assert op.partials() is None
    with pytest.raises(ValueError, match="read its store"):
        op.read("sec", 0, 1)


def test_hours_of_a_zone() -> None:
    node = node_of(
        "define aggregation A from S select count() as n aggregate by ts every hour;", aggTimeZone="Asia/Kolkata"
    )
    send(node, [["a", 1, 1.0, B], ["a", 1, 1.0, B + 1_800_000]])
    assert per(node, "hour") == [[B - 1_800_000, 1], [B + 1_800_000, 1]]


@settings(max_examples=examples(40), deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "null", None]),
            st.none() | st.integers(-(2**31), 2**31 - 1),
            st.none() | st.integers(-50, 50).map(lambda x: x / 4),
            st.integers(0, 10**11) | st.integers(B, B + 3000),
        ),
        max_size=30,
    ),
    cuts=st.sets(st.integers(1, 29)),
    by=st.sampled_from(["", " by ts"]),
)
def test_cuts_into_batches_do_not_matter(rows: list[Any], cuts: set[int], by: str) -> None:
    app = (
        S + "define aggregation A from S select k, w, sum(v) as s, avg(w) as a, min(w) as lo, max(v) as hi, "
        f"distinctCount(v) as d, count() as n group by k aggregate{by} every sec ... year;"
    )
    feed: list[Any] = [["S", r[3] if by == "" else 1000 + i, list(r)] for i, r in enumerate(rows)]
    feed += [{"query": f"from A {ALWAYS} per '{d}' select *"} for d in ("sec", "min", "hour", "day", "month", "year")]
    case = {"app": app, "feed": feed}
    whole = run_case(case)
    assert run_case(case, cuts=sorted(cuts)) == whole
    assert run_case(case, by_chunk=True) == whole
    counts = [sum(r[-1] for r in result["rows"]) for result in whole["results"]]
    assert counts == [len(rows)] * 6
