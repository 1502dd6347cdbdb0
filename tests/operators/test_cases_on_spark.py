"""Siddhi's own answers through `siddhi(...)` on Spark: cases as batch frames, and as streams that are started again.

`test_cases.py` has all cases without Spark. Here `OPERATOR_CASES` and `OPERATOR_STREAMS` say how many cases are drawn.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.cases import TIME, OperatorCase, runnable, shuffled_cases
from operators.test_cases import _between
from profiles import examples, seed
from reference.parts import failing
from sparkstream_nb import SiddhiFrames, siddhi

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.rotates, pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(3000)]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark, with one task a micro-batch, and one watermark for all inputs."""
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.multipleWatermarkPolicy": "max",
        "spark.sql.session.timeZone": "UTC",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, former in before.items():
        if former is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, former)


def has_distinct_columns(case: OperatorCase) -> bool:
    """True if no two columns differ in capitals alone, which Spark takes for one."""
    return all(len({c.lower() for c in case.columns(s)}) == len(case.columns(s)) for s in case.rows)


def drawn(count: int) -> list[OperatorCase]:
    return list(islice(filter(has_distinct_columns, runnable(shuffled_cases(seed()))), count))


def run(case: OperatorCase, frames: dict[str, DataFrame], **given: Any) -> DataFrame:
    found = siddhi(frames, case.case["app"], time=TIME, output=list(case.outputs), errors=True, **given)
    assert isinstance(found, SiddhiFrames)
    return found.frame


def schema(case: OperatorCase, stream: str) -> str:
    return ", ".join(f"`{name}` {type}" for name, type in case.columns(stream).items())


def test_batches(session: SparkSession, tmp_path: Path) -> None:
    cases = drawn(examples(50, "OPERATOR_CASES"))

    def wrong(case: OperatorCase) -> str | None:
        frames = {}
        for stream in case.rows:
            file = tmp_path / f"of-{stream}.parquet"  # Spark leaves out files that begin with _
            pq.write_table(pa.Table.from_batches([case.batch(stream)]), file)
            frames[stream] = session.read.schema(schema(case, stream)).parquet(str(file))
        return case.difference([run(case, frames).toArrow()])

    failing([c.case for c in cases], lambda found: wrong(next(c for c in cases if c.case["id"] == found["id"])))


def test_streams_cut_into_micro_batches_with_restarts(session: SparkSession, tmp_path: Path) -> None:
    cases = drawn(examples(8, "OPERATOR_STREAMS"))

    def wrong(case: OperatorCase) -> str | None:
        folder = tmp_path / "case"
        shutil.rmtree(folder, ignore_errors=True)
        draw = random.Random(f"{seed()} {case.case['id']}")
        times = sorted({ts for rows in case.rows.values() for ts, _ in rows})
        cuts = sorted(draw.sample(times, min(len(times), draw.randint(1, 3))))
        batches: list[pa.Table] = []
        for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, times[-1] + 1], strict=True)):
            for stream in case.rows:
                rows = _between(case, stream, begin, end) or [case.batch(stream, 0, 0)]
                (folder / f"of-{stream}").mkdir(parents=True, exist_ok=True)
                file = folder / f"of-{stream}" / f"{number}.parquet"
                pq.write_table(pa.Table.from_batches(rows), file)
                os.utime(file, (1_700_000_000 + number,) * 2)  # Spark reads the older ones first
            if draw.random() < 0.5 or end > times[-1]:
                run_to_the_end(session, case, folder, batches)
        return case.difference(batches)

    failing([c.case for c in cases], lambda found: wrong(next(c for c in cases if c.case["id"] == found["id"])))


def run_to_the_end(session: SparkSession, case: OperatorCase, folder: Path, batches: list[pa.Table]) -> None:
    """Runs the query over all files that are there, one of each stream in a micro-batch."""
    streams = {
        stream: session.readStream.schema(schema(case, stream)).option("maxFilesPerTrigger", 1).parquet(
            str(folder / f"of-{stream}")
        )
        for stream in case.rows
    }  # fmt: skip
    out = run(case, streams, delay="0 seconds")
    query = (
        out.writeStream.foreachBatch(lambda frame, _: batches.append(frame.toArrow()))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

