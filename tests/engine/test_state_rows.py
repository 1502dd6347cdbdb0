"""How many rows the engine says that its windows, joins, patterns and tables hold: as many as their state has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.window_declarations import DECLARATIONS

STREAM = "define stream S (symbol string, price double, at long);"
CALLS = {
    name: d.example_call(count=10, few=3, time="1 sec", at="at", key="symbol", value="price")
    for name, d in DECLARATIONS.items()
}


def fed(text: str, batches: int = 4, many: int = 500) -> NodeEngine:
    """A node that took events 10 ms apart."""
    node = NodeEngine(compile_app(f"{STREAM} {text}"))
    for b in range(batches):
        at = 10 * (np.arange(many) + b * many)
        columns = [
            pa.array([f"k{i % 7}" for i in range(many)]), pa.array(at % 90 * 0.5), pa.array(at),
        ]  # fmt: skip
        node.step(InputBatch(at, {"S": StreamRows(np.arange(many), at, columns)}))
    return node


def stored(state: Any) -> int:
    """The events in a window's state, but for those that are kept for the RESET rows to come (`reset`)."""
    if isinstance(state, dict):
        own = len(state["ts"]) if {"columns", "ts"} <= state.keys() else 0
        return own + sum(stored(v) for k, v in state.items() if k != "reset")
    return sum(stored(v) for v in state) if isinstance(state, (list, tuple)) else 0


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("partitioned", [False, True])
def test_windows(name: str, partitioned: bool) -> None:
    query = f"@info(name='q') from S#window.{CALLS[name]} select symbol, max(price) as top insert into Out;"
    if partitioned:
        query = f"partition with (symbol of S) begin {query} end;"
    node = fed(query)
    operator = next(op for op in node.operators if op.name == "q")
    assert node.stats()["state_rows"]["q"] == stored(operator.state()["steps"]["window"])


def test_other_parts() -> None:
    node = fed(
        """@PrimaryKey('symbol') define table T (symbol string, at long);
        define window W (symbol string, price double) length(5);
        @info(name='none') from S select symbol insert into Nothing;
        @info(name='put') from S select symbol, at update or insert into T on T.symbol == symbol;
        @info(name='into') from S select symbol, price insert into W;
        @info(name='join') from S#window.length(3) as a join S#window.length(4) as b on a.symbol == b.symbol
        select a.symbol insert into J;
        @info(name='wait') from every e1=S[symbol == 'k1'] -> e2=S[symbol == 'never'] select e1.symbol
        insert into P;""",
        batches=1,
        many=70,
    )
    rows = node.stats()["state_rows"]
    assert {name: rows.get(name) for name in ("none", "put", "into", "T", "W", "join", "wait")} == {
        "none": None, "put": None, "into": None, "T": 7, "W": 5, "join": 7, "wait": 11,
    }  # fmt: skip
