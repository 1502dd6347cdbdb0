"""Runs `siddhi(...)` on a master, as a batch and as a stream that begins twice. A program for tests.

over_master.py MASTER FOLDER prints what both give, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROWS = [(1000 * (i + 1), f"card-{i % 7}", float(300 + 37 * i % 400)) for i in range(200)]
SCHEMA = "at long, card string, amount double"
TEXT = """
    from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > a.amount] within 1 min
    select a.card as card, a.amount as first, b.amount as then insert into Sprees;
"""
OPTIONS = {"name": "Payments", "time": "at", "key": "card", "nodes": 3}


def main(master: str, folder: Path) -> None:
    from sparkstream_nb import siddhi
    from sparkstream_nb.runners.spark.shared_session import spark_session

    spark: Any = spark_session(master, conf={"spark.sql.shuffle.partitions": "2"})

    def rows(frame: Any) -> list[list[Any]]:
        return sorted([r["card"], r["first"], r["then"], r["_node"]] for r in frame.collect())

    batch = rows(siddhi(spark.createDataFrame(ROWS, SCHEMA), TEXT, **OPTIONS))
    late = siddhi(
        spark.createDataFrame(ROWS, SCHEMA), TEXT, late=True, errors=True, output=["Sprees"], **OPTIONS
    ).errors.count()
    for begin, end in ((0, 90), (90, len(ROWS))):
        more = spark.createDataFrame(ROWS[begin:end], SCHEMA).coalesce(1)
        more.write.mode("append").parquet(str(folder / "in"))
        stream = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))
        query = (
            siddhi(stream, TEXT, delay="0 seconds", **OPTIONS)
            .writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    print(json.dumps({"batch": batch, "late": late, "stream": rows(spark.read.parquet(str(folder / "out")))}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
