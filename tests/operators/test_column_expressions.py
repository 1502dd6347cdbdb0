"""Spark's expressions beside the engine: the same rows pass, and the same values come out."""

from __future__ import annotations

import itertools
import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from operators.in_process import run_batch
from sparkstream_nb import siddhi
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import FilterStep, StreamInput
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, plan_operator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "n": "int", "at": "bigint", "i": "int", "l": "bigint", "f": "float", "d": "double", "s": "string", "b": "boolean",
}  # fmt: skip
TYPES = {"int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string()}
SIDDHI = "n int, at long, i int, l long, f float, d double, s string, b bool"
FLOATS = [None, 0.0, -0.0, 1.5, float("nan"), float("inf")]
ROWS = [
    {"n": n, "at": 1000 + n, "i": i, "l": long, "f": f, "d": d, "s": s, "b": b}
    for n, (i, long, (f, d), s, b) in enumerate(
        itertools.product([None, 1, 2], [None, 2, 2**53 + 1], [*itertools.product(FLOATS, FLOATS)][::5],
                          [None, "", "a", "A"], [None, True])
    )
]  # fmt: skip
CONDITIONS = [
    "i > 1", "i == l", "i != l", "l >= 2", "d > 1", "d == 0.0", "d != 0.0", "d < 2.0", "not (d < 2.0)", "d == d",
    "d != d", "f == f", "f != f", "f == d", "f != d", "f < d", "i < d", "l < d", "l == d", "s == 'a'", "s != 'a'",
    "s == s", "b == true", "b != true", "i is null", "not (i is null)", "d is null or f is null", "i > 1 and s == 'a'",
    "not (i > 1 and s == 'a')", "not (i > 1 or b == true)", "d + 1.0 > 2.0", "d * f > 1.0", "d - i == 0.5",
    "f + 1.5f == 3.0f", "i == 1 or l == 2 and not (s == '')", "1 < 2", "l == 2L", "d == 1.5f", "i == 1.0",
]  # fmt: skip
UNTRANSLATED = [
    "i + 1 > 2", "str:length(s) > 1", "l > f", "i == f", "b", "d / 2.0 > 1.0", "d % 2.0 > 1.0", "math:abs(d) > 1.0",
]  # fmt: skip


def engine_passes(condition: str) -> list[int]:
    text = f"from S[{condition}] select n insert into O;"
    spec = plan_operator("id", text, [InputFrame("S", COLUMNS, "at", None)], OperatorRequest())
    types = [TYPES.get(t, pa.bool_()) for t in COLUMNS.values()]
    arrays = [pa.array([r[c] for r in ROWS], t) for c, t in zip(COLUMNS, types, strict=True)]
    batch = pa.record_batch(arrays, names=list(COLUMNS))
    return [row["O"]["n"] for b in run_batch(spec, {"S": [[batch]]}) for row in b.to_pylist()]


def frame(spark: SparkSession) -> Any:
    schema = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
    return spark.createDataFrame([tuple(r.values()) for r in ROWS], schema)


@pytest.mark.contract
def test_conditions(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from sparkstream_nb.runners.spark.column_expressions import _condition

    columns = {c: F.col(c) for c in COLUMNS}
    found = []
    for condition in [*CONDITIONS, *UNTRANSLATED]:
        plan = compile_app(f"define stream S ({SIDDHI}); from S[{condition}] select n insert into O;")
        query = plan.queries[0].input
        assert isinstance(query, StreamInput)
        steps = [s for s in query.steps if isinstance(s, FilterStep)]
        found.append(F.lit(True) if not steps else _condition(steps[0].condition, columns))
    assert [c for c, column in zip(UNTRANSLATED, found[len(CONDITIONS):], strict=True) if column is not None] == []
    assert [c for c, column in zip(CONDITIONS, found, strict=False) if column is None] == []
    rows = frame(spark).select("n", *(c.alias(str(i)) for i, c in enumerate(found[:len(CONDITIONS)]))).collect()
    wrong = {}
    for i, condition in enumerate(CONDITIONS):
        passes = sorted(r["n"] for r in rows if r[str(i)])
        if passes != engine_passes(condition):
            wrong[condition] = [ROWS[n] for n in {*passes} ^ {*engine_passes(condition)}][:3]
    assert wrong == {}


def test_values(spark: SparkSession) -> None:
    text = "from S[l > 1] select n, d * f as p, f - 1.0f as q, 'x' as x, 7 as y, s, l, b insert into O;"
    translated = siddhi(frame(spark), text, name="S", time="at")
    by_engine = siddhi(frame(spark), text, name="S", time="at", errors=True)["O"]
    assert "MapInArrow" not in translated._jdf.queryExecution().toString()
    assert "MapInArrow" in by_engine._jdf.queryExecution().toString()
    assert [(f.name, f.dataType) for f in translated.schema] == [(f.name, f.dataType) for f in by_engine.schema]

    def rows(found: Any) -> list[str]:
        return sorted(json.dumps([_told(v) for v in row]) for row in found.collect())

    assert len(rows(translated)) > 100
    assert rows(translated) == rows(by_engine)


def _told(value: Any) -> Any:
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value) or value == 0):
        return str(value)
    return value if isinstance(value, int | float | str | None) else str(value)


def test_rows_without_a_time_are_left_out(spark: SparkSession) -> None:
    rows = [(1, 1.0), (None, 2.0), (3, 3.0), (None, 0.0)]
    out = siddhi(
        spark.createDataFrame(rows, "at long, amount double"), "from S[amount > 1.5] select amount insert into O;",
        name="S", time="at",
    )  # fmt: skip
    assert [r.amount for r in out.collect()] == [3.0]
