"""`siddhi(...)` on Spark beside an app on the same rows, and beside the same query written for Spark by hand.

    python -m tests.bench.spark_operator [--rows 10000000] [--rounds 2] [--only pattern] [--nodes 2 64]

Each query runs in turn: DataFrame code (the pattern: `applyInPandasWithState`, on a tenth of the rows), an app that is
fed the files, and `siddhi()` over them as a batch and as a stream. The sink discards. Seconds on the clock, and of CPU
of this process with all that it started, with which a busy machine interferes less; the best of the rounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .commits import cpu

FILES = 10
SCHEMA = "at long, card string, amount double"
START = 1_700_000_000_000
QUERIES = {
    "filter": "from Payments[amount > 300] select card, amount insert into Out;",
    "average": "from Payments#window.time(10 sec) select card, avg(amount) as mean group by card insert into Out;",
    "pattern": """
        from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > a.amount] within 10 min
        select a.card as card, a.amount as first, b.amount as then insert into Out;""",
    "aggregation": """
        define aggregation Sums from Payments select card, sum(amount) as total, count() as n group by card
        aggregate every sec;""",
}
OUTPUT = {"aggregation": "Sums.sec"}


def write_rows(folder: Path, rows: int) -> None:
    """Files of payments with 1,000 cards, ten in a ms."""
    draw = np.random.default_rng(7)
    cards = pa.array([f"card-{i}" for i in range(1000)])
    n = rows // FILES
    for f in range(FILES):
        at = START + (np.arange(n) + f * n) // 10
        amount = np.round(draw.gamma(2, 100, n), 2)
        table = pa.table({"at": at, "card": cards.take(pa.array(draw.integers(0, 1000, n))), "amount": amount})
        pq.write_table(table, folder / f"{f:02}.parquet")


def discard(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def run_stream(frame: Any, checkpoint: Path) -> None:
    shutil.rmtree(checkpoint, ignore_errors=True)
    sink = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    sink.trigger(availableNow=True).start().awaitTermination()


def by_hand(spark: Any, query: str, folder: Path, checkpoint: Path) -> Callable[[], None] | None:
    """The query in Spark's own terms."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    batch = spark.read.schema(SCHEMA).parquet(str(folder))
    if query == "filter":
        return lambda: discard(batch.where("amount > 300").select("card", "amount"))
    if query == "average":
        last = Window.partitionBy("card").orderBy("at").rangeBetween(-10_000, 0)
        return lambda: discard(batch.select("card", F.avg("amount").over(last).alias("mean")))
    if query == "aggregation":
        second = F.floor(F.col("at") / 1000)
        return lambda: discard(batch.groupBy(second, "card").agg(F.sum("amount"), F.count("*")))
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(folder))
    found = stream.groupBy("card").applyInPandasWithState(
        sprees, "card string, first double, then double", "waiting string", "append", "NoTimeout"
    )
    return lambda: run_stream(found, checkpoint)


def sprees(key: tuple[str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The pattern for a card, as a user of Spark writes it: payments that wait for a larger one."""
    waiting = json.loads(state.get[0]) if state.exists else []
    found = []
    for frame in frames:
        for at, amount in frame.sort_values("at")[["at", "amount"]].itertuples(index=False):
            left = []
            for since, first in waiting:
                if at - since > 600_000:
                    continue
                if amount > first:
                    found.append((key[0], first, amount))
                else:
                    left.append((since, first))
            waiting = left
            if amount > 300:
                waiting.append((int(at), float(amount)))
    state.update((json.dumps(waiting),))
    yield pd.DataFrame(found, columns=["card", "first", "then"])


def in_app(query: str, folder: Path, home: Path) -> Callable[[], None]:
    from sparkstream_nb import deploy

    def run() -> None:
        shutil.rmtree(home, ignore_errors=True)
        text = f"define stream Payments (at long, card string, amount double); {QUERIES[query]}"
        how: dict[str, Any] = {"nodes": 8, "mode": "active-active", "routing": "hash:card", "master": "local[2]"}
        app = deploy(text, name="bench", home=home, **how)
        app.send("Payments", [START - 1, "card-0", 1.0], at=START - 1)
        app.flush()
        before = time.perf_counter(), cpu()
        app.feed({"Payments": [str(f) for f in sorted(folder.glob("*.parquet"))]}, time="at")
        run.cost = time.perf_counter() - before[0], cpu() - before[1]  # type: ignore[attr-defined]
        app.stop()
        app.close()

    return run


def as_operator(spark: Any, query: str, folder: Path, nodes: int, checkpoint: Path | None) -> Callable[[], None]:
    from sparkstream_nb import SiddhiFrames, siddhi

    if checkpoint is None:
        frame = spark.read.schema(SCHEMA).parquet(str(folder))
    else:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(folder))
    delay = None if checkpoint is None else "0 seconds"
    found = siddhi(
        frame, QUERIES[query], name="Payments", time="at", key="card", nodes=nodes, delay=delay,
        output=OUTPUT.get(query),
    )  # fmt: skip
    assert not isinstance(found, SiddhiFrames)
    return lambda: discard(found) if checkpoint is None else run_stream(found, checkpoint)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark_operator")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=list(QUERIES), action="append")
    parser.add_argument("--nodes", type=int, nargs="*", default=[8])
    o = parser.parse_args()
    from sparkstream_nb.runners.spark.shared_session import spark_session

    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for name, rows in (("rows", o.rows), ("tenth", o.rows // 10)):
            (place / name).mkdir()
            write_rows(place / name, rows)
        # The JVM compiles as that of a session that a user makes, and not as for an app's short micro-batches.
        jvm = {"spark.driver.extraJavaOptions": "-XX:+TieredCompilation"}
        spark = spark_session("local[2]", conf={"spark.sql.shuffle.partitions": "2", **jvm})
        for query in o.only or QUERIES:
            few = query == "pattern"
            hand = by_hand(spark, query, place / ("tenth" if few else "rows"), place / "hand")
            ways: dict[str, tuple[int, Callable[[], None] | None]] = {
                "by hand": (o.rows // 10 if few else o.rows, hand),
                "app": (o.rows, in_app(query, place / "rows", place / "home")),
            }
            for nodes in o.nodes:
                ways[f"siddhi() batch, {nodes} nodes"] = o.rows, as_operator(spark, query, place / "rows", nodes, None)
                checkpoint = place / f"checkpoint-{nodes}"
                stream = as_operator(spark, query, place / "rows", nodes, checkpoint)
                ways[f"siddhi() stream, {nodes} nodes"] = o.rows, stream
            best: dict[str, tuple[float, float]] = {}
            for _ in range(o.rounds):
                for way, (_, run) in ways.items():
                    assert run is not None
                    before = time.perf_counter(), cpu()
                    run()
                    cost = getattr(run, "cost", (time.perf_counter() - before[0], cpu() - before[1]))
                    best[way] = tuple(map(min, best.get(way, cost), cost))  # type: ignore[assignment]
            for way, (rows, _) in ways.items():
                wall, used = best[way]
                print(
                    f"{query:12} {way:28} {wall:7.2f} s {used:7.2f} CPU-s  {rows / wall / 1000:7.0f} k rows/s, "
                    f"{used / rows * 1e6:.2f} us of CPU a row",
                    flush=True,
                )


if __name__ == "__main__":
    main()
