"""An app with an aggregation, and partials of it to put into stores."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan

LIKE_A_PARAMETER = "%(x)s" if version("SQLAlchemy") >= "2.1" else "%x"
"""A name of a column. SQLAlchemy 2.0 takes the first for a parameter of SQLite's."""
STORES = ("duckdb", "mariadb", "postgresql", "sqlite")

TRADES = "define stream TradeStream (symbol string, price double, quantity long, timestamp long);\n"
AGGREGATION = (
    "define aggregation TradeAggregation from TradeStream select symbol, price, avg(price) as avgPrice, "
    "sum(quantity) as total, distinctCount(quantity) as kinds, min(price) as low, max(quantity) as most "
    "group by symbol aggregate by timestamp every sec ... year;"
)
NOON = 1678788000000
"""2023-03-14 10:00:00 GMT."""


def plan_of(shard: str | None = "node-1", text: str = TRADES + AGGREGATION) -> Plan:
    """The plan of an app for one node; without `shard` its aggregations are not partitioned."""
    return compile_app(text, properties={} if shard is None else {"partitionById": "true", "shardId": shard})


def step(node: NodeEngine, stream: str, rows: Sequence[Sequence[Any]]) -> dict[str, pa.Table]:
    """Runs events (one step each, a millisecond apart) through a node and returns what it adds to its aggregations."""
    types = node.plan.schema(stream).types
    columns = [pa.array([r[i] for r in rows], ARROW[t]) for i, t in enumerate(types)]
    ts = np.arange(len(rows)) + node.now + 1
    batch = InputBatch(ts, {stream: StreamRows(np.arange(len(rows)), ts, columns)})
    return node.step(batch).partials


def partials_of(plan: Plan, rows: Sequence[Sequence[Any]], aggregation: str = "TradeAggregation") -> pa.Table:
    """What a fresh node makes of events."""
    return step(NodeEngine(plan), "TradeStream", rows)[aggregation]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of a read as Python data that compares: sets sorted."""
    out = []
    for row in table.to_pylist():
        out.append(
            {k: sorted(v, key=lambda x: (x is not None, x)) if isinstance(v, list) else v for k, v in row.items()}
        )
    return sorted(out, key=lambda r: [(v is not None, v) for k, v in r.items() if not isinstance(v, list)][:4])
