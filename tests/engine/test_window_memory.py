"""What windows hold in memory. A time window holds its events at no more than three times the bytes of their values,
also inside a partition; what left a window takes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app

STREAM = "define stream Trades (symbol string, price double, quantity long, timestamp long); "
INSIDE = "partition with (symbol of Trades) begin "
EVENT = 4 + 8 + 8 + 8
"""Bytes of the values of an event, a string counted as its code."""


def held(part: Any, seen: set[int]) -> int:
    """Bytes of all arrays that can be reached from `part`, each once."""
    if id(part) in seen:
        return 0
    seen.add(id(part))
    if isinstance(part, np.ndarray):
        return held(part.base, seen) if isinstance(part.base, np.ndarray) else part.nbytes
    if isinstance(part, list | tuple):
        return sum(held(x, seen) for x in part)
    own = getattr(part, "__dict__", None)
    return sum(held(x, seen) for x in own.values()) if isinstance(own, dict) else 0


@pytest.mark.parametrize("span", [2_000, 50_000])
@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("from Trades#window.time(%d) select * insert into Out;", EVENT),
        ("from Trades#window.time(%d) select symbol, avg(price) as a group by symbol insert into Out;", 4 + 8),
        ("from Trades#window.time(%d) select symbol, price insert all events into Out;", 4 + 8),
        (INSIDE + "from Trades#window.time(%d) select * insert into Out; end;", EVENT),
        (INSIDE + "from Trades#window.time(%d) select symbol, avg(price) as a insert all events into Out; end;", 4 + 8),
    ],
)
def test_bytes_of_a_time_window(query: str, values: int, span: int) -> None:
    node = NodeEngine(compile_app(STREAM + query % span))
    (op,) = (o for o in node.operators if hasattr(o, "query"))
    r = np.random.default_rng(3)
    n = span // 10
    for k in range(45):
        ts = np.arange(k * n, (k + 1) * n, dtype=np.int64)
        symbols = pa.array([f"S{x}" for x in range(20)]).take(pa.array(r.integers(0, 20, n)))
        columns = [symbols, pa.array(r.random(n)), pa.array(r.integers(1, 1000, n)), pa.array(ts)]
        node.step(InputBatch(ts, {"Trades": StreamRows(np.arange(n), ts, columns)}))
        if k > 15:  # the window is full
            assert held(op.query._steps.window, set()) <= 3 * values * span + 65_536


WINDOWS = [
    "length(50)", "lengthBatch(50)", "lengthBatch(50, true)", "time(500)", "timeBatch(500)", "timeBatch(500, true)",
    "timeLength(500, 50)", "externalTime(timestamp, 500)", "externalTimeBatch(timestamp, 500)",
    "externalTimeBatch(timestamp, 500, 0L, 900)", "externalTimeBatch(timestamp, 500, 0L, 900, true)",
    "session(40L)", "session(40L, symbol)", "session(40L, symbol, 20L)", "batch()", "delay(500)",
    "cron('*/1 * * * * ?')", "sort(50, price)", "expression('count() <= 50')", "expressionBatch('count() <= 50')",
    "frequent(5, symbol)", "lossyFrequent(0.1, 0.05, symbol)", "unique:ever(symbol)", "unique:first(symbol)",
    "unique:length(symbol, 5)", "unique:time(symbol, 500)", "unique:lengthBatch(price, 5)",
    "unique:timeBatch(price, 500)", "unique:timeLengthBatch(price, 500, 5)", "unique:firstLengthBatch(price, 5)",
    "unique:externalTimeBatch(price, timestamp, 500)", "unique:firstTimeBatch(price, 500)",
]  # fmt: skip
QUERIES = {
    "current": "from Trades#window.{} select symbol, count() as n insert into Out;",
    "expired": "from Trades#window.{} select symbol, count() as n insert all events into Out;",
    "partition": INSIDE + "from Trades#window.{} select symbol, count() as n insert into Out; end;",
    "partition, expired": INSIDE + "from Trades#window.{} select symbol, count() as n insert all events into Out; end;",
}


@pytest.mark.thorough
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", QUERIES)
def test_events_that_left_a_window_take_no_memory(window: str, kind: str) -> None:
    """Five times as many events through a window that holds few take no more bytes."""
    # As in Siddhi the end of a batch in a partition is that of one instance, and the events of the others wait on.
    keys = 1 if window.startswith("timeBatch") else 20
    node = NodeEngine(compile_app(STREAM + QUERIES[kind].format(window)))
    (op,) = (o for o in node.operators if hasattr(o, "query"))
    r = np.random.default_rng(3)
    sizes, n = [], 4000
    for k in range(50):
        # Gaps end sessions: of each symbol, of all, and of all within a micro-batch.
        ts = k * 20_000 + np.sort(r.integers(0, 100, n)) * 100
        symbols = pa.array([f"S{x}" for x in range(keys)]).take(pa.array(r.integers(0, keys, n)))
        columns = [symbols, pa.array(r.random(n)), pa.array(r.integers(1, 1000, n)), pa.array(ts)]
        node.step(InputBatch(ts, {"Trades": StreamRows(np.arange(n), ts, columns)}))
        sizes.append(held(op.query._steps.window, set()))
    assert max(sizes[30:]) <= 1.2 * max(sizes[5:15])
    assert min(sizes) > 0 or (window == "batch()" and kind in ("current", "partition"))
