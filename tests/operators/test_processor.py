"""Spark's stateful processor of an operator, called as versions of Spark call it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, plan_operator
from sparkstream_nb.runners.operator.packing import pack_rows
from sparkstream_nb.runners.spark.operator_processor import OperatorProcessor

from .in_process import MemoryState

COLUMNS = {"at": "bigint", "a": "int"}
ROWS = pa.record_batch([pa.array([1, 2]), pa.array([3, 4], pa.int32())], names=[*COLUMNS])


@pytest.mark.parametrize("kind", [int, np.int32])
def test_the_key_is_an_integer_of_any_kind(kind: Any) -> None:
    text = "from S#window.length(2) select sum(a) as s insert into Out;"
    spec = plan_operator("id", text, [InputFrame("S", COLUMNS, "at", None)], OperatorRequest(order="arrival"))
    (packed,) = pack_rows(spec, 0, 0, [ROWS])
    frame = packed.to_pandas()
    processor = OperatorProcessor.of(spec)
    processor.state = MemoryState()  # type: ignore[assignment]
    (out,) = processor.handleInputRows((kind(frame["node"][0]),), iter([frame]), None)
    assert out["output"].tolist() == ["Out"]
