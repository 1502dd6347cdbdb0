"""`siddhi()` counts each key alike on one node and on several, whatever the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_keys import ODD_VALUES, counts, identity, values_of
from profiles import examples
from sparkstream_nb import SiddhiFrames, siddhi
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.runners.operator.column_types import SPARK
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, plan_operator
from sparkstream_nb.types import Type

from .in_process import run_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "from S select k, count() as n group by k insert into Counts;"
ROWS = st.sampled_from([*ODD_VALUES]).flatmap(
    lambda type: st.tuples(st.just(type), st.lists(values_of(type), min_size=1, max_size=30), st.integers(0, 30))
)


def last_counts(pairs: Sequence[tuple[Any, int]]) -> dict[tuple[Any, ...], int]:
    out: dict[tuple[Any, ...], int] = {}
    for value, n in pairs:
        key = (identity(value, null_is_text=True),)
        out[key] = max(n, out.get(key, 0))
    return out


@settings(deadline=None, max_examples=examples(60))
@given(ROWS, st.sampled_from([1, 2, 5]))
def test_nodes_count_as_one(case: tuple[Type, list[Any], int], nodes: int) -> None:
    type, values, cut = case
    columns = {"at": "bigint", "k": SPARK[type]}
    spec = plan_operator("id", TEXT, [InputFrame("S", columns, "at", "k")], OperatorRequest(nodes=nodes))
    arrays = [pa.array(range(1, len(values) + 1), pa.int64()), pa.array(values, ARROW[type], from_pandas=False)]
    batch = pa.record_batch(arrays, names=["at", "k"])
    found = run_batch(spec, {"S": [[batch.slice(0, cut)], [batch.slice(cut)]]})
    rows = [r["Counts"] for b in found for r in b.to_pylist() if r["_output"] == "Counts"]
    assert len(rows) == len(values)
    assert last_counts([(r["k"], r["n"]) for r in rows]) == counts([[v] for v in values], null_is_text=True)


@pytest.mark.spark
def test_on_spark(spark: SparkSession) -> None:
    values = [-0.0, None, 1.0, float("nan"), 0.0, -0.0, None, float("nan"), 0.0]
    rows = [(i + 1, v) for i, v in enumerate(values)]
    frame = spark.createDataFrame(rows, "at long, k double")
    for nodes in (1, 3):
        out = siddhi(frame, TEXT, name="S", time="at", key="k", nodes=nodes, output="Counts")
        assert not isinstance(out, SiddhiFrames)
        assert last_counts([(r.k, r.n) for r in out.collect()]) == counts([[v] for v in values], null_is_text=True)
