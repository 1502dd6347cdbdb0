"""Rows and arguments that are far from any use: errors of `siddhi(...)`, while the query continues. Without Spark."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkstream_nb.errors import Misuse
from sparkstream_nb.ingest.ingest import times
from sparkstream_nb.ingest.time_formats import TimeFormat
from sparkstream_nb.limits import FIRST_TIME, LAST_TIME
from sparkstream_nb.request import DAY
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, plan_operator
from sparkstream_nb.runners.operator.packing import pack_rows

from .in_process import RunningOperator, run_batch

TEXT = "from S#window.length(2) select t, count() as n insert into Out;"
END = 2**63


def batch(*ts: int | None) -> dict[str, Any]:
    return {"S": [[pa.record_batch([pa.array(ts, pa.int64())], names=["t"])]]}


def spec(text: str = TEXT, *, streaming: bool = True, max_ahead: int | None = DAY) -> Any:
    request = OperatorRequest(outputs=("Out",), delay="1 second", max_ahead=max_ahead)
    return plan_operator("id", text, [InputFrame("S", {"t": "bigint"}, "t", None, streaming)], request)


def by_output(batches: list[pa.RecordBatch]) -> tuple[list[int], list[str]]:
    """Times of events, and messages of errors."""
    rows = [row for b in batches for row in b.to_pylist()]  # Python has all of the times
    events = [row["Out"]["t"] for row in rows if row["_output"] == "Out"]
    return events, [row["_errors"]["message"] for row in rows if row["_output"] == "_errors"]


@pytest.mark.parametrize("text", [TEXT, "from S select t insert into Out;"])
@pytest.mark.parametrize("impossible", [END - 1, -END, LAST_TIME + 1, FIRST_TIME - 1])
def test_an_impossible_time_is_an_error(text: str, impossible: int) -> None:
    frames = batch(1000, impossible, 2000)
    for found in (run_batch(spec(text, streaming=False), frames), run_batch(spec(text), frames)):
        events, errors = by_output(found)
        assert events == [1000, 2000]
        assert errors == [
            f"t: {impossible} is not an event time in ms: Spark's timestamps are of the years 1 to 9999"
        ]


def test_a_time_far_ahead_makes_no_row_late() -> None:
    now = int(time.time() * 1000)
    running = RunningOperator(replace(spec(), delays=(1000,)))
    first = by_output(running.micro_batch(batch(now, now + 2 * DAY, LAST_TIME)))
    second = by_output(running.micro_batch(batch(now + 5000, now + 9000)))
    assert first[0] + second[0] == [now, now + 5000]
    assert [message.rpartition("after")[2][-26:] for message in first[1]] == ["no event is taken (max_ahead)"[-26:]] * 2
    free = RunningOperator(replace(spec(max_ahead=None), delays=(1000,)))
    assert by_output(free.micro_batch(batch(now + 2 * DAY, now + 3 * DAY)))[0] == [now + 2 * DAY]


@given(st.lists(st.none() | st.integers(-END, END - 1), min_size=1, max_size=8))
@example([END - 1])
@example([-END, None])
def test_times_of_messages_are_times_of_spark(ts: list[int | None]) -> None:
    packed = [row for b in pack_rows(spec(max_ahead=None), 0, 0, batch(*ts)["S"][0]) for row in b.to_pylist()]
    assert all(FIRST_TIME <= row["last"] <= LAST_TIME for row in packed)
    events, errors = by_output(run_batch(spec("from S select t insert into Out;"), batch(*ts)))
    assert sorted(events) == sorted(t for t in ts if t is not None and FIRST_TIME <= t <= LAST_TIME)
    assert len(events) + len(errors) == len(ts)


@given(st.lists(st.none() | st.integers(-(2**53), 2**53), min_size=1, max_size=5), st.sampled_from(["us", "ns"]))
@example([-1, None], "us")
def test_parts_of_a_millisecond_are_left_out_before_1970_too(numbers: list[int | None], unit: str) -> None:
    per_ms = {"us": 1000, "ns": 1_000_000}[unit]
    values, failed = times(pa.array(numbers, pa.timestamp(unit)))
    expected = [0 if n is None else n // per_ms for n in numbers]
    assert values.tolist() == expected
    assert (failed is not None) == (None in numbers)


def test_texts_before_1970_are_floored_too() -> None:
    texts = pa.array(["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000999"])
    assert times(texts)[0].tolist() == [-1, 0]
    assert times(texts, TimeFormat("%Y-%m-%d %H:%M:%S.%f"))[0].tolist() == [-1, 0]


def test_a_text_that_is_not_utf_8_is_an_error() -> None:
    data = pa.array([b"a", b"\xed\xa0\x80"]).view(pa.string())  # half of a surrogate pair, as bytes
    rows = pa.record_batch([pa.array([1, 2], pa.int64()), data], names=["t", "k"])
    columns = {"t": "bigint", "k": "string"}
    request = OperatorRequest(outputs=("Out",))
    for text in ("from S select k insert into Out;", "from S#window.length(2) select k insert into Out;"):
        planned = plan_operator("id", text, [InputFrame("S", columns, "t", "t")], request)
        found = [row for b in run_batch(replace(planned), {"S": [[rows]]}) for row in b.to_pylist()]
        assert [row["Out"]["k"] for row in found if row["_output"] == "Out"] == ["a"]
        (error,) = [row["_errors"] for row in found if row["_output"] == "_errors"]
        assert json.loads(error["row"]), error


@pytest.mark.parametrize("nodes", ["x", 1.5, True, 10**30, -1])
def test_nodes_that_are_no_number(nodes: Any) -> None:
    with pytest.raises(Misuse, match=r"nodes: .* is not a number from 1 to 10,000"):
        plan_operator(
            "id", TEXT, [InputFrame("S", {"t": "bigint"}, "t", "t")], OperatorRequest(nodes=nodes, unsafe=True)
        )
