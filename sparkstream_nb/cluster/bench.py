"""Times workloads end to end on Spark: parquet files to committed outputs, with checkpointed state."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ..engine.bench import table_of
from ..plan import compile_app
from .deploy import deploy

FIRST = 250_000
"""Events of the first feed, which starts everything and is not counted."""


def run(
    workload: Mapping[str, str], path: str | Path, rows: int | None = None, master: str = "local[2]"
) -> dict[str, Any]:
    """Runs one workload over the events of a headless CSV (last column: the time in ms) on one node.

    The events are written to two parquet files first; the second one is timed from `feed` until all of it is committed.
    Answers as `engine.bench.run` does, `events` and `seconds` of the second file.
    """
    plan = compile_app(workload["app"])
    stream = next(s for s, d in plan.streams.items() if d.kind == "defined")
    schema = plan.schema(stream)
    table = table_of(path, plan, stream)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "first.parquet"), Path(folder, "rest.parquet")]
        for file, part in zip(files, (table.slice(0, FIRST), table.slice(FIRST)), strict=True):
            pa.parquet.write_table(part, file, row_group_size=rows or 1_000_000)
        name, home = f"bench-{workload['name']}", str(Path(folder, "home"))
        app = deploy(workload["app"], name=name, master=master, home=home, fresh=True)
        try:
            time_column = schema.names[-1]
            app.feed(stream, str(files[0]), time=time_column)
            began = time.perf_counter()
            app.feed(stream, str(files[1]), time=time_column)
            seconds = time.perf_counter() - began
            stats = app.stats()
        finally:
            app.stop()
    events = max(0, len(table) - FIRST)
    return {
        "name": workload["name"],
        "on": "spark",
        "events": events,
        "seconds": round(seconds, 4),
        "events_per_second": round(events / seconds),
        "out": stats["outputs"].get("Out", 0),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "state_bytes": sum(n["state_bytes"] for n in stats["nodes"].values()),
    }
