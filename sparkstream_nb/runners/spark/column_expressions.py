"""Filters and projections as Spark's own column expressions, where both mean the same.

A row that Python need not see costs a tenth. Only a query that keeps nothing, and whose expressions Spark computes as
Siddhi does for each value, is translated: comparisons, `and`, `or`, `not`, `is null`, attributes, constants, and sums,
differences and products of floating-point numbers. Null and NaN are unequal to everything, as in Siddhi, and no other
comparison with them holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...limits import FIRST_TIME, LAST_TIME
from ...plan import nodes as n
from ...types import Type
from ..operator.column_types import SPARK
from ..operator.operator_spec import ERRORS, LATE, NODE, TIMESTAMP, InputFrame, OperatorSpec

_FLOATING = (Type.FLOAT, Type.DOUBLE)


def _only_writer(spec: OperatorSpec, output: str) -> n.Query | None:
    """The stateless query that alone writes the output, if it is plain."""
    writers = [q for q in spec.bound_plan.queries if q.output.target.id == output]
    return writers[0] if spec.stateless and len(writers) == 1 and _is_plain(writers[0]) else None


def _place_of(query: n.Query, frames: Sequence[InputFrame]) -> int | None:
    """The number of the frame that a query reads."""
    return next((i for i, f in enumerate(frames) if f.stream in _streams_read(query)), None)


def translate(
    spec: OperatorSpec, frames: Sequence[InputFrame], dataframes: Sequence[DataFrame], metrics: str
) -> DataFrame | None:
    """The operator's only output by Spark's expressions alone, with its counts under the name `metrics`; None if Spark
    cannot compute it as the engine does."""
    ((output, _),) = spec.outputs
    query = _only_writer(spec, output)
    place = None if query is None else _place_of(query, frames)
    if query is None or place is None:
        return None
    frame, input_frame = dataframes[place], frames[place]
    schema = spec.inputs[place].schema
    columns = {a.name: _attribute(input_frame.columns[a.name], a.name, a.type) for a in schema}
    assert isinstance(query.input, n.StreamInput)
    steps = [_condition(s.condition, columns) for s in query.input.steps if isinstance(s, n.FilterStep)]
    items = [(item.name, _value(item.expr, columns)) for item in query.select.items]
    time = _time(input_frame)
    conditions = [c for c in steps if c is not None]
    values = [(name, value) for name, value in items if value is not None]
    if len(conditions) < len(steps) or len(values) < len(items) or time is None:
        return None
    wrong = time.isNull() | ~time.between(FIRST_TIME, LAST_TIME)
    holds = reduce(lambda a, b: a & b, conditions, F.lit(True))
    return (
        frame.where(wrong | holds)
        .observe(
            metrics,
            F.count_if(~wrong).alias(output),
            F.count_if(F.lit(False)).alias(LATE),
            F.count_if(wrong).alias(ERRORS),
        )
        .where(~wrong)
        .select(
            *(value.alias(name) for name, value in values),
            F.timestamp_millis(time).alias(TIMESTAMP),
            F.lit(1).alias(NODE),
        )
    )


def _streams_read(query: n.Query) -> tuple[str, ...]:
    return (query.input.source.id,) if isinstance(query.input, n.StreamInput) else ()


def _is_plain(query: n.Query) -> bool:
    """True if the query's output for a row is its select, and nothing else."""
    i, select = query.input, query.select
    if not isinstance(i, n.StreamInput) or not all(isinstance(s, n.FilterStep) for s in i.steps):
        return False
    if select.having is not None or select.group_by or select.order_by or select.limit is not None:
        return False
    return select.offset is None and query.rate is None


def _attribute(spark: str, name: str, type: Type) -> Column | None:
    """An attribute's value; None if the frame has it as a time, which the engine reads by its own rules."""
    if spark.startswith(("timestamp", "date")):
        return None
    column = F.col(f"`{name}`")
    return column if spark == SPARK[type] else column.cast(SPARK[type])


def _time(frame: InputFrame) -> Column | None:
    """The event time in ms."""
    spark, column = frame.columns[frame.time], F.col(f"`{frame.time}`")
    if spark == "timestamp":
        name = frame.time.replace("`", "``")
        return F.expr(f"unix_millis(`{name}`)")
    return column.cast("bigint") if spark in ("bigint", "int", "smallint", "tinyint") else None


Columns = Mapping[str, Column | None]


def _condition(e: n.Expr, columns: Columns) -> Column | None:
    """A condition, which is true or false and never null."""
    match e:
        case n.Compare():
            return _comparison(e, columns)
        case n.Logic():
            left, right = _condition(e.left, columns), _condition(e.right, columns)
            if left is None or right is None:
                return None
            return left & right if e.op == "and" else left | right
        case n.Not():
            operand = _condition(e.operand, columns)
            return None if operand is None else ~operand
        case n.IsNull():
            value = _value(e.operand, columns)
            return None if value is None else value.isNull()
    return None


def _comparison(e: n.Compare, columns: Columns) -> Column | None:
    left, right = _value(e.left, columns), _value(e.right, columns)
    types = {e.left.type, e.right.type}
    if left is None or right is None or not _same_in_java(types):
        return None
    operators = {
        "==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
        ">=": left >= right,
    }  # fmt: skip
    comparison = F.coalesce(operators[e.op], F.lit(e.op == "!="))
    nan_tests = [
        F.coalesce(F.isnan(value), F.lit(False))
        for value, expr in ((left, e.left), (right, e.right))
        if expr.type in _FLOATING and not isinstance(expr, n.Const)
    ]
    if not nan_tests:
        return comparison
    nan = reduce(lambda a, b: a | b, nan_tests)
    return comparison | nan if e.op == "!=" else comparison & ~nan


def _same_in_java(types: set[Type]) -> bool:
    """True if Spark and Java compare values of these types as one type: a whole number beside a float is one of Java's
    floats, and one of Spark's doubles."""
    if Type.OBJECT in types or len(types) == 1:
        return Type.OBJECT not in types
    if types & {Type.STRING, Type.BOOL}:
        return False
    return Type.FLOAT not in types or types == {Type.FLOAT, Type.DOUBLE}


def _value(e: n.Expr, columns: Columns) -> Column | None:
    """A value, null where it is null in Siddhi."""
    match e:
        case n.Const():
            return F.lit(e.value).cast(SPARK[e.type])
        case n.Ref() if e.slot == 0 and e.index is None:
            return columns.get(e.name)
        case n.Arith() if e.type in _FLOATING and e.op in ("+", "-", "*"):
            left, right = _value(e.left, columns), _value(e.right, columns)
            if left is None or right is None:
                return None
            left, right = left.cast(SPARK[e.type]), right.cast(SPARK[e.type])
            return left + right if e.op == "+" else left - right if e.op == "-" else left * right
    return None
