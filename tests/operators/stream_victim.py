"""A streaming query with an operator and a parquet sink, to be killed. A program for tests.

stream_victim.py FOLDER: reads the files of FOLDER/in, one in a micro-batch, and prints a line for each micro-batch that
is done. It ends when all files are read. A query that fails, as a Python worker of it was killed, is started again.
"""

from __future__ import annotations

import sys
from pathlib import Path

SCHEMA = "at bigint, card string, amount double"
TEXT = """
    define table Last (card string, amount double);
    partition with (card of Payments) begin
        from every a=Payments -> b=Payments[amount > a.amount] within 1 min
        select a.card as card, 'rise' as what, a.amount as one, b.amount as other insert into Found;
        from Payments#window.length(5) select card, 'mean' as what, avg(amount) as one, max(amount) as other
        insert into Found;
    end;
"""
OPTIONS = {"name": "Payments", "time": "at", "key": "card", "nodes": 4, "output": "Found", "unsafe": True}


def main(folder: Path) -> None:
    from pyspark.errors import PySparkException

    from sparkstream_nb import siddhi
    from sparkstream_nb.runners.spark.shared_session import spark_session

    spark = spark_session("local[2]", conf={"spark.sql.shuffle.partitions": "2"})
    while True:
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        out = siddhi(stream, TEXT, delay="0 seconds", **OPTIONS)
        query = (
            out.writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        done = -1
        try:
            while query.isActive:
                last = query.lastProgress
                if last is not None and last["batchId"] != done:
                    done = last["batchId"]
                    print(done, flush=True)
                query.awaitTermination(0.05)
            query.awaitTermination()
        except PySparkException as error:
            print("again", str(error).splitlines()[0][:200], flush=True)
            continue
        print("end", flush=True)
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
