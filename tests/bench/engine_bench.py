"""Measures workloads on a node: input columns in memory, one core, every output materialized as columns."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan

BATCH = 250_000
"""Default number of events of a micro-batch."""


def table_of(path: str | Path, plan: Plan, stream: str) -> pa.Table:
    """The events of a headless CSV, typed as the stream is; the last column is their time in ms."""
    schema = plan.schema(stream)
    return pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(column_names=list(schema.names)),
        convert_options=pa.csv.ConvertOptions(column_types={a.name: ARROW[a.type] for a in schema}),
    )


def batches(columns: Sequence[pa.Array], stream: str, rows: int) -> Iterator[InputBatch]:
    """Micro-batches of `rows` events, each event a step of its own."""
    n = len(columns[0])
    for a in range(0, n, rows):
        part = [c.slice(a, rows) for c in columns]
        ts = part[-1].to_numpy()
        yield InputBatch(ts, {stream: StreamRows(np.arange(len(ts)), ts, part)})


def time_batches(plan: Plan, fed: Sequence[InputBatch]) -> tuple[float, int, NodeEngine]:
    """Runs the batches on a new node. Returns seconds, the number of events of the stream `Out`, and the node."""
    node = NodeEngine(plan)
    out = 0
    began = time.perf_counter()
    for batch in fed:
        emitted = node.step(batch).streams.get("Out")
        out += 0 if emitted is None else len(emitted)
    return time.perf_counter() - began, out, node


def peak_memory() -> int:
    """The most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(workload: Mapping[str, str], path: str | Path, rows: int = BATCH) -> dict[str, Any]:
    """Runs one workload over the events of a CSV, after a warm-up of two batches on a node of its own.

    Returns `name, on, events, seconds, events_per_second, out, peak_bytes, state_bytes`; `out` counts the events of the
    stream `Out`, as the bench of the reference engine does.
    """
    plan = compile_app(workload["app"])
    stream = next(s for s, d in plan.streams.items() if d.kind == "defined")
    columns = [c.combine_chunks() for c in table_of(path, plan, stream).columns]
    fed = list(batches(columns, stream, rows))
    time_batches(plan, fed[:2])
    seconds, out, node = time_batches(plan, fed)
    return {
        "name": workload["name"],
        "on": "engine",
        "events": len(columns[0]),
        "seconds": round(seconds, 4),
        "events_per_second": round(len(columns[0]) / seconds),
        "out": out,
        "peak_bytes": peak_memory(),
        "state_bytes": sum(node.stats()["state_bytes"].values()),
    }
