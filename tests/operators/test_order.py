"""Rows that come late, but in time: a stream gives what a batch of all rows gives, and the sooner the better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, OperatorSpec, plan_operator

from .in_process import RunningOperator, run_batch

DELAY = 50
TEXT = """
    from every a=Payments -> b=Payments[card == a.card and amount > a.amount] within 100 milliseconds
    select a.card as card, a.at as first, b.at as then insert into Sprees;
"""
ROWS = st.lists(
    st.tuples(st.integers(1, 1000), st.integers(0, DELAY), st.sampled_from("abcde"), st.integers(0, 9)),
    min_size=1,
    max_size=40,
)
"""Time, how much later the row comes, card, amount."""


def spec(delays: tuple[int, ...] | None, key: str | None = "card") -> OperatorSpec:
    columns = {"at": "bigint", "card": "string", "amount": "double"}
    found = plan_operator("id", TEXT, [InputFrame("Payments", columns, "at", key)], OperatorRequest())
    return replace(found, delays=delays)


def frame(rows: Sequence[tuple[int, str, int]]) -> dict[str, Any]:
    at, card, amount = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(at, pa.int64()), pa.array(card, pa.string()), pa.array(amount, pa.float64())]
    batch = pa.record_batch(columns, names=["at", "card", "amount"])
    return {"Payments": [[batch.slice(0, len(rows) // 2)], [batch.slice(len(rows) // 2)]]}


def values(batches: Iterable[pa.RecordBatch]) -> list[Any]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert all(row["_output"] == "Sprees" for row in rows), rows
    return sorted((row["_node"], *row["Sprees"].values(), row["_timestamp"]) for row in rows)


@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=6), restarts=st.lists(st.booleans(), min_size=9))
def test_a_stream_gives_what_a_batch_gives(
    rows: list[tuple[int, int, str, int]], cuts: list[int], restarts: list[bool]
) -> None:
    # Of equal times those first that came first, in the batch too.
    came = [(at, card, amount) for at, late, card, amount in sorted(rows, key=lambda r: r[0] + r[1])]
    expected = values(run_batch(spec(None), frame(came)))
    ends = sorted({min(c, len(came)) for c in cuts} | {0, len(came)})
    early: dict[tuple[int, ...] | None, int] = {}
    for delays in (None, (DELAY,)):
        running, found = RunningOperator(spec(delays)), []
        for begin, end, restart in zip(ends, ends[1:], restarts, strict=False):
            own = came[begin:end]
            found += running.micro_batch(frame(own), restart=restart)
            running.watermark = max([running.watermark, *(at - DELAY for at, _, _ in own)])
        early[delays] = sum(b.num_rows for b in found)
        running.watermark = 2000
        found += running.micro_batch({}, restart=restarts[-1])
        assert values(found) == expected
    assert early[DELAY,] >= early[None]


def test_rows_are_taken_in_their_own_micro_batch_if_none_before_them_can_come() -> None:
    rows = [(1000, "a", 1), (1010, "a", 2), (1100, "b", 1)]
    running = RunningOperator(spec((DELAY,)))
    assert [v[1:4] for v in values(running.micro_batch(frame(rows)))] == [("a", 1000, 1010)]
    # What waits is stored without the rows that were taken.
    assert all(len(p) < 4000 for state in running.states.values() for p in state.pieces.values())


def test_a_row_is_late_by_the_delay_of_its_own_stream() -> None:
    """Also where another input of the query has a watermark that is far behind, and Spark's with it."""
    running = RunningOperator(spec((DELAY,), key=None))
    assert values(running.micro_batch(frame([(1000, "a", 1), (1100, "a", 0)]))) == []
    found = [row for b in running.micro_batch(frame([(1049, "a", 5), (1050, "a", 6)])) for row in b.to_pylist()]
    assert [(row["_output"], row["_late"]) for row in found if row["_late"]] == [
        ("_late", {"stream": "Payments", "row": '[1049, "a", 5.0]'})
    ]
