"""Runs apps of all kinds over more events than a case has, in micro-batches of several sizes, over snapshots and chunk
by chunk, and compares what comes out. Run by `test_bounds.py` with compiled loops that look whether each index is
within its array.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.plan.window_declarations import DECLARATIONS

TESTS = Path(__file__).resolve().parents[1]
STREAM = "define stream Trades (symbol string, price double, quantity long, timestamp long); "
EVENTS, FEW = 24_000, 300
WINDOWS = tuple(
    d.example_call(count=4000, few=50, time="4 sec", at="timestamp", key="symbol", value="price")
    for d in DECLARATIONS.values()
)
QUERIES = (
    "from Trades#window.{} select symbol, sum(quantity) as q, max(price) as hi group by symbol insert into Out;",
    "from Trades#window.{} select symbol, avg(price) as p insert all events into Out;",
    "partition with (symbol of Trades) begin from Trades#window.{} select symbol, avg(price) as p, "
    "distinctCount(quantity) as d insert into Out; end;",
    "from Trades[quantity > 990]#window.length(3) as a join Trades[quantity < 60]#window.{} as b "
    "on a.symbol == b.symbol select a.symbol as s, b.price as p insert into Out;",
    "define window W (symbol string, price double, quantity long, timestamp long) {} output all events; "
    "from Trades insert into W; from W select symbol, sum(quantity) as q insert all events into Out;",
)


def apps() -> dict[str, str]:
    """By name: what is benched, and all windows in several kinds of query."""
    sets = (TESTS / "reference" / "workloads.json", TESTS / "bench" / "variety.json")
    found = {w["name"]: w["app"] for file in sets for w in json.loads(file.read_text())}
    return found | {q.format(w): STREAM + q.format(w) for w in WINDOWS for q in QUERIES}


@functools.cache
def trades() -> tuple[list[pa.Array], np.ndarray]:  # type: ignore[type-arg]
    """Columns and times of events that come now thick, now thin."""
    r, n = np.random.default_rng(3), EVENTS
    ts = 1_600_000_000_000 + np.cumsum(np.where(np.arange(n) // 3000 % 2 == 0, 1, r.integers(0, 9, n)))
    symbols = pa.array([f"S{k:03d}" for k in range(60)]).take(pa.array(r.integers(0, 60, n)))
    price = np.round(100 + 10 * np.sin(np.arange(n) / 2000) + r.normal(0, 2, n), 4)
    return [symbols, pa.array(price), pa.array(r.integers(1, 1001, n)), pa.array(ts)], ts


def outputs(
    plan: Plan, events: int, size: int, *, snapshots: bool = False, by_chunk: bool = False
) -> list[pa.Table]:
    """What comes out of stream Out, if anything does."""
    columns, ts = trades()
    node, found = NodeEngine(plan, by_chunk=by_chunk), []
    for k, a in enumerate(range(0, events, size)):
        n = min(size, events - a)
        at = ts[a : a + n]
        rows = StreamRows(np.arange(n), at, [c.slice(a, n) for c in columns])
        out = node.step(InputBatch(at, {"Trades": rows})).streams.get("Out")
        if out is not None and len(out):
            plain = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in out.columns]
            found.append(pa.table([pa.array(out.ts), *plain], [str(i) for i in range(len(plain) + 1)]))
        if snapshots and k % 3 == 2:
            blob, node = node.snapshot(), NodeEngine(plan)
            node.restore(blob)
    return [pa.concat_tables(found).combine_chunks()] if found else []


def main(first: int, step: int) -> int:
    """Runs each app of `step` ones, from number `first` on."""
    for name, app in [*apps().items()][first::step]:
        plan = compile_app(app)
        whole = outputs(plan, EVENTS, EVENTS)
        for size, snapshots in ((700, False), (2500, True)):
            if outputs(plan, EVENTS, size, snapshots=snapshots) != whole:
                print(f"{name}: other outputs in micro-batches of {size}{', over snapshots' if snapshots else ''}")
                return 1
        if outputs(plan, FEW, FEW, by_chunk=True) != outputs(plan, FEW, FEW):
            print(f"{name}: other outputs chunk by chunk")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
