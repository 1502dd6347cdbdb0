"""A time window holds its events at no more than three times the bytes of their values, also inside a partition."""

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
    return sum(held(x, seen) for x in vars(part).values()) if hasattr(part, "__dict__") else 0


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
