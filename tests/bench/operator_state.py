"""CPU of small micro-batches of `siddhi(...)` over a state of any size, on a session of the user's own.

    python -m tests.bench.operator_state [--rows 3000000] [--package-session]

Two nodes hold the last day of `--rows` rows; then micro-batches of 1,000 rows come. Prints the seconds of CPU of this
process with all that it started, and the milliseconds of each. With `--package-session` the session is the one that
`spark_session()` of the package makes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .commits import cpu

MICRO_BATCHES, FIRST = 12, 2
STEP = 500_000
SCHEMA = "at long, card string, amount double"
TEXT = "from P#window.time(1 day) select card, avg(amount) as mean group by card insert into Out;"
CARDS = pa.array([f"card-{i}" for i in range(1000)])


def _write(folder: Path, first: int, rows: int) -> None:
    numbers = first + np.arange(rows)
    columns = {"at": 1_700_000_000_000 + numbers // 10, "card": CARDS.take(pa.array(numbers % 1000))}
    amounts = np.random.default_rng(first).random(rows) * 100
    pq.write_table(pa.table({**columns, "amount": amounts}), folder / ".new")
    (folder / ".new").rename(folder / f"{first:010}.parquet")


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "3g")
    return builder.config("spark.sql.streaming.stateStore.providerClass", rocksdb).getOrCreate()


def main(rows: int, *, is_of_package: bool) -> None:
    from pyspark.sql import functions as F

    from sparkstream_nb import siddhi
    from sparkstream_nb.runners.spark.shared_session import spark_session

    session = spark_session("local[2]") if is_of_package else _session()
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for first in range(0, rows, STEP):
            _write(folder, first, min(STEP, rows - first))
        reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        frame = reader.parquet(name).withColumn("at", F.timestamp_millis("at"))
        outputs = siddhi(frame, TEXT, name="P", time="at", key="card", nodes=2, delay="0 seconds")
        checkpoint = tempfile.mkdtemp()
        query = outputs.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        query.processAllAvailable()
        seconds = []
        for i in range(MICRO_BATCHES):
            _write(folder, rows + 1000 * i, 1000)
            before = cpu()
            query.processAllAvailable()
            seconds.append(cpu() - before)
        batches = [p.batchDuration for p in query.recentProgress if p.numInputRows][-MICRO_BATCHES:]
        query.stop()
        median_cpu, median_ms = statistics.median(seconds[FIRST:]), statistics.median(batches[FIRST:])
        each = ", ".join(f"{s:.1f}" for s in seconds)
        print(f"{rows:,} rows: {median_cpu:.2f} s of CPU, {median_ms:,.0f} ms ({each})")
    session.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--package-session", action="store_true")
    options = parser.parse_args()
    main(options.rows, is_of_package=options.package_session)
