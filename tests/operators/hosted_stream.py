"""A stream of siddhi() with a large state on a session of the user's own: `hosted_stream.py FOLDER`.

An engine host is killed between two micro-batches, and later the fork server. Prints, as JSON, the rows of the stream
and of a batch over the same rows, and how many engine hosts there were before each micro-batch.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sparkstream_nb import siddhi

TEXT = "from P#window.time(1 hour) select k, sum(v) as s, count() as n group by k insert into O;"
ROWS = 400_000


MICRO_BATCHES = 8


def main(folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    session = builder.config("spark.sql.streaming.stateStore.providerClass", provider).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    source = folder / "in"
    source.mkdir()
    _write(source, 0, ROWS)
    reader = session.readStream.schema("at long, k string, v double").option("maxFilesPerTrigger", 1)
    stream = siddhi(_timed(reader.parquet(str(source))), TEXT, name="P", time="at", key="k", nodes=2, delay="0 seconds")
    query = stream.writeStream.format("memory").queryName("rows").outputMode("append").start()
    query.processAllAvailable()
    counts = []
    for i in range(MICRO_BATCHES):
        if i in (2, 7):
            _wait_for_server()
        counts.append(len(_hosts()))
        if i == 3:
            _hosts()[0].kill()
        elif i == 5:
            _server().kill()
        _write(source, ROWS + 1000 * i, 1000)
        query.processAllAvailable()
    counts.append(len(_hosts()))
    rows = session.table("rows").toPandas()
    query.stop()
    batch = siddhi(_timed(session.read.parquet(str(source))), TEXT, name="P", time="at", key="k", nodes=2)
    print(json.dumps({"stream": _sums(rows), "batch": _sums(batch.toPandas()), "hosts": counts}))
    session.stop()


def _write(source: Path, first: int, rows: int) -> None:
    numbers = first + np.arange(rows)
    columns = {"at": 1_700_000_000_000 + numbers, "k": [f"k{n % 7}" for n in numbers], "v": numbers % 11 * 1.0}
    frame = pd.DataFrame(columns)
    frame.to_parquet(source / ".new")
    (source / ".new").rename(source / f"{first:08}.parquet")


def _timed(frame):  # type: ignore[no-untyped-def]
    return frame.withColumn("at", F.timestamp_millis("at"))


def _server_folder() -> Path | None:
    return next(Path(tempfile.gettempdir()).glob("sparkstream-hosts-*"), None)


def _server() -> psutil.Process:
    """The fork server that a worker started beside Spark's daemon."""
    folder = _server_folder()
    assert folder is not None
    return psutil.Process(int((folder / ".owner").read_text()))


def _hosts() -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error, AssertionError, OSError):
        return _server().children()
    return []


def _wait_for_server() -> None:
    """Waits until the server can fork."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        folder = _server_folder()
        if folder is not None and (folder / "ready").exists():
            return
        time.sleep(0.1)


def _sums(rows: pd.DataFrame) -> list[float]:
    """The count and the sums of the rows."""
    return [len(rows), float(rows["s"].sum()), int(rows["n"].sum())]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
