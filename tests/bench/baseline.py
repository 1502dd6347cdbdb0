"""The same result without the engine: a plain DataFrame job, for the bench to compare with."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkstream_nb.plan import nodes as n
from sparkstream_nb.plan.reports.show import show

_MERGE: dict[str, Callable[[Column], Column]] = {"sum": F.sum, "count": F.sum, "min": F.min, "max": F.max}
_FIRST: dict[str, Callable[[Column], Column]] = {**_MERGE, "count": F.count}
_UNITS = {"sec": "second", "min": "minute", "hour": "hour", "day": "day", "month": "month", "year": "year"}


def job(plan: n.Plan) -> Callable[[SparkSession, str, str], None] | None:
    """A job that reads events (its second argument, a parquet file) and writes its results (to the third).

    There is one for an app of a single query that filters and selects, and for one of a single aggregation (by its last
    attribute where it does not say which).
    """
    (first,) = plan.elements if len(plan.elements) == 1 else (None,)
    aggregations = list(plan.aggregations.values())
    if isinstance(first, n.Query) and isinstance(first.input, n.StreamInput) and not aggregations:
        query, steps = first, first.input.steps
        plain = not query.select.group_by and all(isinstance(s, n.FilterStep) for s in steps)
        return (lambda session, a, b: _write(_filter_frame(session.read.parquet(a), query), b)) if plain else None
    if first is None and len(aggregations) == 1 and all(b.kind in _FIRST for b in aggregations[0].base):
        return lambda session, a, b: _write_sums(session.read.parquet(a), aggregations[0], b)
    return None


def _write(frame: DataFrame, path: str) -> None:
    frame.write.mode("overwrite").parquet(path)


def _filter_frame(frame: DataFrame, q: n.Query) -> DataFrame:
    assert isinstance(q.input, n.StreamInput)
    for step in q.input.steps:
        assert isinstance(step, n.FilterStep)
        frame = frame.where(show(step.condition))
    return frame.select(*(F.expr(show(i.expr)).alias(i.name) for i in q.select.items))


def _write_sums(frame: DataFrame, a: n.AggregationDef, path: str) -> None:
    """Sums by the smallest duration, kept, and from them those by the larger ones."""
    keys = [show(g) for g in a.select.group_by]
    time = F.timestamp_millis(F.expr(show(a.by) if a.by is not None else a.input.source.schema.names[-1]))
    parts = [_FIRST[b.kind](F.expr(show(b.arg)) if b.arg is not None else F.lit(1)).alias(b.name) for b in a.base]
    small = frame.groupBy(F.date_trunc(_UNITS[a.durations[0]], time).alias("bucket"), *keys).agg(*parts).persist()
    whole = small.withColumn("duration", F.lit(a.durations[0]))
    for duration in a.durations[1:]:
        bucket = F.date_trunc(_UNITS[duration], "bucket").alias("bucket")
        merged = small.groupBy(bucket, *keys).agg(*(_MERGE[b.kind](F.col(b.name)).alias(b.name) for b in a.base))
        whole = whole.unionByName(merged.withColumn("duration", F.lit(duration)))
    _write(whole, path)
    small.unpersist()
