"""Reads the outputs of an app on a master as frames, in two queries of one checkpoint. A program for tests.

outputs_over_master.py MASTER FOLDER prints what they give, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TEXT = """
    define stream S (k string, v int);
    define table T (v int);
    from S select k, v * 2 as d insert into O;
    from S select v insert into T;
"""


def main(master: str, folder: Path) -> None:
    from sparkstream_nb import deploy
    from sparkstream_nb.runners.spark.shared_session import spark_session

    spark: Any = spark_session(master)
    app = deploy(TEXT, name="app", home=folder / "home", master=master)
    found: dict[str, list[int]] = {}
    for values in ((1, 2, 3), (4, 5)):
        app.send("S", [["k", v] for v in values])
        app.flush()
        if not found:
            found["table"] = sorted(r["d"] for r in app.table("O").collect())
        query = (
            app.stream("O").writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )  # fmt: skip
        query.awaitTermination()
    found["stream"] = sorted(r["d"] for r in spark.read.parquet(str(folder / "out")).collect())
    found["held"] = sorted(r["v"] for r in app.table("T").collect())
    app.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
