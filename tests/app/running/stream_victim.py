"""An app that is fed, and a streaming query over its outputs: `stream_victim.py FOLDER EVENTS`, to be killed and run
again until it prints `done`."""

from __future__ import annotations

import sys
from pathlib import Path

from sparkstream_nb.app import deploy
from sparkstream_nb.runners.choice import INLINE
from sparkstream_nb.runners.spark.shared_session import spark_session

APP = "define stream S (k string, v int); @info(name='doubled') from S select k, v * 2 as d insert into O;"
STEP = 50


def main(folder: Path, events: int) -> None:
    app = deploy(APP, name="victim", home=folder / "home", master=INLINE, nodes=2)
    session = spark_session("local[2]")
    writer = app.stream("O", max_rows=3 * STEP, session=session).writeStream.format("parquet")
    writer = writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start()
    print("began", flush=True)
    while (sent := app.runtime.inbox.position.events.get("S", 0)) < events:
        app.send("S", [["k", v] for v in range(sent, min(events, sent + STEP))], at=1000 * (1 + sent))
        app.flush()
    query.processAllAvailable()
    query.stop()
    app.stop()
    session.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
