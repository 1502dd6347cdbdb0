"""Runs an app and kills itself, with its JVM, at a given place of a given micro-batch. A program for tests.

crashing.py HOME MASTER PLACE BATCH [SHARED], PLACE one of: computing (the nodes are at work), before (outputs are
written, the store's transaction is not), after (the store's transaction is committed, the micro-batch is not done),
never. One that is never killed leaves what it found in HOME/found and prints how long (s) it took to stop. SHARED: an
address where Spark's machines and this one meet.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

APP = """
define stream Trades (symbol string, price double, qty int);
define aggregation Sums from Trades select symbol, sum(qty) as total, count() as n
group by symbol aggregate every sec, min;
@info(name = 'q') from Trades#window.length(5) select symbol, sum(qty) as total insert all events into Totals;
"""
FEEDS, EVENTS = 4, 60_000  # so many that outputs go through files
DEPLOYED = {"name": "crash", "nodes": 2, "mode": "active-active"}


def feed(number: int) -> pa.Table:
    """Feed `number`; one of its rows is bad."""
    rng = np.random.default_rng(number)
    qty = rng.integers(1, 100, EVENTS).astype(object)
    qty[17] = 0.5
    at = 1_400_000_000_000 + number * 1_000_000 + np.cumsum(rng.integers(0, 5, EVENTS))
    symbols = np.array(["IBM", "WSO2", "ORCL"])[rng.integers(0, 3, EVENTS)]
    return pa.table({"symbol": symbols, "price": rng.random(EVENTS), "qty": pa.array(qty.astype(float)), "at": at})


def work(app: Any) -> None:
    """Feeds what is not in the app yet, and waits for all of it."""
    for number in range(app.stats().events // (EVENTS - 1), FEEDS):
        app.feed("Trades", feed(number), time="at")
    app.flush()


def found(app: Any) -> tuple[pd.DataFrame, ...]:
    """Outputs, aggregation merged and by shard, errors."""
    merged, by_shard = app.aggregation("Sums", per="min")
    return app.output("Totals").frame, merged, by_shard, app.errors.frame.astype({"values": str})


def die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(home: str, master: str, place: str, batch: int, shared: str | None = None) -> None:
    from sparkstream_nb.app import deploy
    from sparkstream_nb.outputs.commit import Commit
    from sparkstream_nb.runners import inline
    from sparkstream_nb.runners.inline_checkpoint import InlineCheckpoint
    from sparkstream_nb.stores.duckdb import DuckDBStore
    from tests.objects import settings

    store_commit = DuckDBStore.commit
    called, worked_off, inline_plan = Commit.__call__, inline.process_entries, InlineCheckpoint.plan
    planned: list[int] = []

    def commit(self: Any, key: Any, *rest: Any, **named: Any) -> bool:
        if key.batch == batch and place == "before":
            die()
        done = store_commit(self, key, *rest, **named)
        if key.batch == batch and place == "after":
            die()
        return done

    def call(self: Any, frame: Any, number: int) -> None:
        if number == batch and place == "computing":
            threading.Timer(0.05, die).start()
        called(self, frame, number)

    def process_entries(*given: Any) -> Any:  # in this process only without Spark
        if place == "computing" and planned[-1:] == [batch]:
            die()
        return worked_off(*given)

    def plan(self: Any, *given: Any) -> Any:
        found = inline_plan(self, *given)
        planned.append(found.batch)
        return found

    DuckDBStore.commit = commit  # type: ignore[method-assign]
    Commit.__call__ = call  # type: ignore[method-assign]
    InlineCheckpoint.plan = plan  # type: ignore[method-assign]
    inline.process_entries = process_entries
    if shared is not None and not master.startswith("sc://"):
        from sparkstream_nb.runners.spark.shared_session import spark_session

        spark_session(master, conf=settings())
    app = deploy(APP, home=Path(home), master=master, shared=shared, **DEPLOYED)
    work(app)
    Path(home, "found").write_bytes(pickle.dumps(found(app)))
    began = time.perf_counter()
    app.stop()
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
