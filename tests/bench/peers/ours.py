"""Our node engine in process: events in memory, or from the parquet file, of which it reads the columns it needs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import Emitted, InputBatch, StreamRows, UnreadAttribute
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.needed import needed_attributes
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.types import Type

from ..engine_bench import BATCH, batches, table_of
from .protocol import Query, repeat

STREAM, TIME = "Trades", "timestamp"


@functools.cache
def _plan(app: str) -> Plan:
    return compile_app(app)


@functools.cache
def _in_memory(app: str, file: str) -> list[InputBatch]:
    columns = [c.combine_chunks() for c in table_of(file, _plan(app), STREAM).columns]
    return list(batches(columns, STREAM, BATCH))


def _steps(plan: Plan, fed: Sequence[InputBatch]) -> list[Emitted]:
    node = NodeEngine(plan)
    found = (node.step(batch).streams.get("Out") for batch in fed)
    return [e for e in found if e is not None]


def from_memory(query: Query, file: str) -> tuple[list[Emitted], None]:
    """Runs the query over the events of a CSV without a header, which are read before."""
    return _steps(_plan(query.app), _in_memory(query.app, file)), None


def read(plan: Plan, file: str) -> list[InputBatch]:
    """Micro-batches of a parquet file; the columns that the plan does not read stay in the file."""
    schema = plan.schema(STREAM)
    wanted = {schema.names[i] for i in needed_attributes(plan)[STREAM]}
    with pq.ParquetFile(
        file, memory_map=True, read_dictionary=[a.name for a in schema if a.type is Type.STRING]
    ) as parquet:
        table = parquet.read(sorted(wanted | {TIME}), use_threads=False)
    out = []
    for at in range(0, len(table), BATCH):
        part = table.slice(at, BATCH)
        ts = part[TIME].to_numpy()
        columns = [part[n].combine_chunks() if n in wanted else UnreadAttribute(len(ts)) for n in schema.names]
        out.append(InputBatch(ts, {STREAM: StreamRows(np.arange(len(ts)), ts, columns)}))
    return out


def from_parquet(query: Query, file: str) -> tuple[list[Emitted], None]:
    """Reads the file and runs the query."""
    plan = _plan(query.app)
    return _steps(plan, read(plan, file)), None


def total(query: Query, output: list[Emitted]) -> tuple[int, float]:
    """Rows, and the sum of the query's column."""
    sums: list[Any] = [pc.sum(pa.array(e.columns[e.names.index(query.column)])).as_py() or 0.0 for e in output]
    return sum(map(len, output)), float(sum(sums))


if __name__ == "__main__":
    repeat(from_parquet if sys.argv[2].endswith(".parquet") else from_memory, total)
