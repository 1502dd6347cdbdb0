"""Rows that the engine cannot process become errors, also where the text reads only some of their columns."""

from __future__ import annotations

import pyarrow as pa

from operators.in_process import RunningOperator, run_batch
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, OperatorSpec, plan_operator

COLUMNS = {"at": "bigint", "a": "int", "b": "int"}
ROWS = pa.record_batch([pa.array([1, 2]), pa.array([1, 5], pa.int32()), pa.array([3, 4], pa.int32())], names=[*COLUMNS])


def endless() -> OperatorSpec:
    """A text whose streams feed each other without end for events with `a` above 4."""
    text = "from S select a insert into Loop; from Loop[a > 4] select a insert into Loop;"
    return plan_operator("id", text, [InputFrame("S", COLUMNS, "at", None)], OperatorRequest(outputs=("Loop",)))


def check(found: list[pa.RecordBatch]) -> None:
    rows = [row for batch in found for row in batch.to_pylist()]
    assert [row["Loop"]["a"] for row in rows if row["_output"] == "Loop"] == [1]
    (error,) = (row["_errors"] for row in rows if row["_output"] == "_errors")
    assert (error["query"], error["stream"]) == ("set aside", "S")
    assert error["row"] == "[null, 5, null]"


def test_in_a_batch() -> None:
    check(run_batch(endless(), {"S": [[ROWS]]}))


def test_in_a_stream() -> None:
    running = RunningOperator(endless())
    running.micro_batch({"S": [[ROWS]]})
    running.watermark = 2
    check(running.micro_batch({}))
