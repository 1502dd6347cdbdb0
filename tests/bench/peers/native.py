"""Spark Structured Streaming as a user would write it, from a folder of parquet files to parquet files.

Two tasks for each shuffle, states in RocksDB, all that is there in one run (`availableNow`).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .protocol import Peer, Query, Result, python_module, read_queries, tree_cpu

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

MASTER = "local[2]"
SCHEMA = "symbol string, price double, quantity long, timestamp long"


def _session(folder: str) -> SparkSession:
    from pyspark.sql import SparkSession

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _trades(session: SparkSession, folder: str) -> DataFrame:
    return session.readStream.schema(SCHEMA).parquet(folder)


def _timed(session: SparkSession, folder: str) -> DataFrame:
    from pyspark.sql import functions as F

    return _trades(session, folder).withColumn("at", F.timestamp_millis("timestamp")).withWatermark("at", "0 seconds")


def _filter(session: SparkSession, folder: str) -> DataFrame:
    rows = _trades(session, folder).where("price > 100.0 and quantity < 500")
    return rows.selectExpr("symbol", "price * 1.1D as p", "quantity")


def _tumble(session: SparkSession, folder: str) -> DataFrame:
    from pyspark.sql import functions as F

    groups = _timed(session, folder).groupBy(F.window("at", "1 second"), "symbol")
    values = groups.agg(F.max("price").alias("hi"), F.min("price").alias("lo"), F.sum("quantity").alias("q"))
    return values.select("symbol", "hi", "lo", "q")


def _join(session: SparkSession, folder: str) -> DataFrame:
    """A join on symbol and second, one side with the three seconds that the other can be in: on the symbol alone each
    row is compared with all of its symbol in the micro-batch, which takes time by the square."""
    from pyspark.sql import functions as F

    second = "timestamp div 1000"
    trades = _timed(session, folder)
    seconds = F.expr(f"explode(array({second} - 1, {second}, {second} + 1))").alias("k")
    a = trades.where("quantity > 900").select("symbol", F.col("price").alias("pa"), "at", seconds)
    b = trades.where("quantity < 50").selectExpr("symbol as s", "price as pb", "at as other", f"{second} as second")
    near = "at between other - interval 999 milliseconds and other + interval 999 milliseconds"
    return a.join(b, F.expr(f"symbol = s and k = second and {near}")).select("symbol", "pa", "pb")


def rises(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The pattern for one symbol: its state is the prices and times that still wait for a higher price.

    The state is a text, since Spark 4.3.0 fails on states with arrays.
    """
    import pandas as pd

    waiting = json.loads(state.get[0]) if state.exists else []
    found: list[tuple[str, float, float]] = []
    events = pd.concat(frames).sort_values("timestamp", kind="stable")
    columns = (events[c].tolist() for c in ("price", "quantity", "timestamp"))
    for price, quantity, at in zip(*columns, strict=True):
        left = []
        for first, since in waiting:
            if at - since > 1000:
                continue
            if price > first:
                found.append((key[0], first, price))
            else:
                left.append((first, since))
        waiting = left
        if quantity > 950:
            waiting.append((price, at))
    state.update((json.dumps(waiting),))
    yield pd.DataFrame(found, columns=["symbol", "p1", "p2"])


def _pattern(session: SparkSession, folder: str) -> DataFrame:
    groups = _trades(session, folder).groupBy("symbol")
    output, state = "symbol string, p1 double, p2 double", "waiting string"
    return groups.applyInPandasWithState(rises, output, state, "append", "NoTimeout")


PROGRAMS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "filter": _filter,
    "tumble": _tumble,
    "pattern": _pattern,
    "join": _join,
}


def repetition(session: SparkSession, query: Query, source: str, folder: Path) -> Result:
    """Runs the query with a new checkpoint until all that is there is written."""
    before, began = tree_cpu(), time.perf_counter()
    writer = PROGRAMS[query.name](session, source).writeStream.format("parquet").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start(str(folder / "out")).awaitTermination()
    used, wall = tree_cpu() - before, time.perf_counter() - began
    output = session.read.parquet(str(folder / "out")).selectExpr("count(*)", f"coalesce(sum({query.column}), 0)")
    rows, summed = output.collect()[0]
    return Result(query.name, rows, float(summed), round(used, 4), round(wall, 4))


def version() -> str:
    import pyspark

    return f"Spark {pyspark.__version__}"


def main() -> None:
    name, source, repetitions = sys.argv[1:4]
    query = read_queries()[name]
    # A plain session takes the python3 of the PATH for its workers.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        session = _session(folder)
        for k in range(int(repetitions)):
            print(repetition(session, query, source, Path(folder, str(k))).line(), flush=True)
        session.stop()


PEER = Peer(
    "native", "Spark's own streaming", "folder", version, lambda q: python_module("native"), frozenset(PROGRAMS)
)

if __name__ == "__main__":
    main()
