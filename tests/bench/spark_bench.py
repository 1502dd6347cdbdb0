"""Measures workloads end to end on Spark: from parquet files to committed outputs, with checkpointed state.

If a workload has an equivalent plain DataFrame job, that is measured too, with `on` "bare".
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from sparkstream_nb import deploy
from sparkstream_nb.plan import compile_app
from sparkstream_nb.runners.spark.shared_session import spark_session

from . import baseline
from .engine_bench import peak_memory, table_of

FIRST = 250_000
"""Events of the first feed, which starts everything and is not counted."""
GROUP = 1_000_000
"""Rows of a row group of the parquet files."""


def run(
    workload: Mapping[str, str], path: str | Path, rows: int | None = None, master: str = "local[2]"
) -> list[dict[str, Any]]:
    """Runs one workload over the events of a headless CSV (last column: the time in ms) on one node.

    The events are written to two parquet files first; the second one is measured from `feed` until all of it is
    committed. `rows` are the events of a micro-batch at most. Returns the same fields as `engine_bench.run`,
    `events` and `seconds` of the second file.
    """
    plan = compile_app(workload["app"])
    stream = next(s for s, d in plan.streams.items() if d.kind == "defined")
    time_column = plan.schema(stream).names[-1]
    table = table_of(path, plan, stream)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "first.parquet"), Path(folder, "rest.parquet")]
        for file, part in zip(files, (table.slice(0, FIRST), table.slice(FIRST)), strict=True):
            pa.parquet.write_table(part, file, row_group_size=min(rows or GROUP, GROUP))
        events = max(0, len(table) - FIRST)
        del table, part
        name, home = f"bench-{workload['name']}", str(Path(folder, "home"))
        app = deploy(workload["app"], name=name, master=master, home=home, fresh=True, rows_per_micro_batch=rows)
        try:
            app.feed(stream, str(files[0]), time=time_column)
            began = time.perf_counter()
            app.feed(stream, str(files[1]), time=time_column)
            seconds = time.perf_counter() - began
            stats = app.stats()
        finally:
            app.stop()
        state = sum(n.state_bytes for n in stats.nodes.values())
        out.append(_line(workload, "spark", events, seconds, stats.outputs.get("Out", 0), state))
        job = baseline.job(plan)
        if job is not None:
            session, result = spark_session(), str(Path(folder, "bare"))
            job(session, str(files[0]), result)
            began = time.perf_counter()
            job(session, str(files[1]), result)
            seconds = time.perf_counter() - began
            out.append(_line(workload, "bare", events, seconds, pa.parquet.read_table(result).num_rows, 0))
    return out


def _line(
    workload: Mapping[str, str], on: str, events: int, seconds: float, out: int, state_bytes: int
) -> dict[str, Any]:
    return {
        "name": workload["name"],
        "on": on,
        "events": events,
        "seconds": round(seconds, 4),
        "events_per_second": round(events / seconds),
        "out": out,
        "peak_bytes": peak_memory(),
        "state_bytes": state_bytes,
    }
