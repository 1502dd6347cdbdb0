"""A streaming query in a process of its own: python query_with_state.py FOLDER → one line of JSON.

Counts events per key over three micro-batches, in a Python operator whose state Spark keeps in RocksDB.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from sparkstream_nb.runners.spark.shared_session import spark_session


class Count(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        n = (self.count.get()[0] if self.count.exists() else 0) + sum(len(frame) for frame in rows)
        self.count.update((n,))
        yield pd.DataFrame({"key": [key[0]], "n": [n]})

    def close(self) -> None:
        pass


def main(folder: Path) -> None:
    spark = spark_session("local[2]")
    for batch in range(3):
        rows = [(f"k{i % 2}",) for i in range(10 + batch)]
        spark.createDataFrame(rows, "key string").coalesce(1).write.parquet(str(folder / "in" / str(batch)))
    pattern = str(folder).replace("[", r"\[") + "/in/*"
    events = spark.readStream.schema("key string").option("maxFilesPerTrigger", 1).parquet(pattern)
    counted = events.groupBy("key").transformWithStateInPandas(Count(), "key string, n long", "Update", "none")
    batches: list[dict[str, int]] = []
    query = (
        counted.writeStream.foreachBatch(lambda df, _: batches.append({row.key: row.n for row in df.collect()}))
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    system = spark.sparkContext._jvm.java.lang.System
    state = [path.name for path in (folder / "checkpoint" / "state").rglob("*.changelog")]
    print(json.dumps({"batches": batches, "java.home": system.getProperty("java.home"), "changelogs": len(state)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
