"""Retrievals of live clusters held against ours, and against the servers' source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.outputs.open_buckets import ALIVE
from sparkstream_nb.outputs.shard_retrieval import retrieve
from sparkstream_nb.plan import compile_app, compile_retrieval
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

from .random_cases import MEASURES
from .server_model import ServerNode, Table


def differing_queries(case: dict[str, Any], as_wso2: str | None = None) -> Iterator[str]:
    """The retrievals of a case that ours answers with other rows, each from its node or as `as_wso2` says. As "alive"
    ours answers for the minute in which the events came: of the others the retrievals are left out."""
    plan = compile_app(case["app"], properties={"shardId": case["nodes"][0]})
    ((stream, _),) = [(s, d) for s, d in plan.streams.items() if d.source.schema.names[-1] == "ts"]
    (aggregation,) = plan.aggregations
    store = DuckDBStore(":memory:")
    store.prepare(plan.aggregations.values())
    shards = list(case["nodes"])
    engines = [NodeEngine(plan, outputs=OutputOptions(stored=True)) for _ in shards]
    events: list[list[list[Any]]] = [[] for _ in shards]
    for number, step in enumerate(case["steps"]):
        if "data" in step:
            events[step["node"]].append(step["data"])
        if not {"query", "restart"} & {*step}:
            continue
        for engine, shard, rows in zip(engines, shards, events, strict=True):
            if rows:
                at = np.array([row[-1] for row in rows], np.int64)
                columns = [list(column) for column in zip(*rows, strict=True)]
                batch = InputBatch(at, {stream: StreamRows(np.arange(len(at)), at, columns)})
                partials = engine.step(batch).partials[aggregation]
                store.commit(BatchKey("App", shard, number), {(aggregation, shard): partials})
                rows.clear()
        node = shards[step["node"]]
        if "restart" in step:
            shards[step["node"]] = step["restart"]
            continue
        if as_wso2 == ALIVE and len({s["clock"] // 60_000 for s in case["steps"][: number + 1] if "clock" in s}) > 1:
            continue
        answer = retrieve(plan, compile_retrieval(step["query"], plan), store, as_wso2=as_wso2 or node).answer
        if not equal_rows([list(row) for row in answer.rows], step["rows"]):
            yield step["query"]


def unexplained_queries(case: dict[str, Any]) -> Iterator[str]:
    """The retrievals of a random case that do not follow from the servers' source, as `server_model` has it."""
    tables = [Table() for _ in case["durations"]]
    nodes = [ServerNode(case["durations"], tables, shard) for shard in case["nodes"]]
    places = [("symbol", "side").index(name) for name in case["group"]]
    for step in case["steps"]:
        for each in nodes:
            each.advance(step.get("clock", 0))
        if "wait" in step:
            continue
        node = nodes[step["node"]]
        if "data" in step:
            if "clock" not in step:
                node.advance(step["data"][-1])
            node.send(step["data"][-1], tuple(step["data"][place] for place in places), step["data"])
        elif "persist" in step:
            node.persist()
        elif "restart" in step:
            nodes[step["node"]] = node.started_again(step["restart"])
        elif "restore" in step:
            node.restore()
        else:
            rows = [
                [bucket, *group, *(MEASURES[measure](events) for measure in case["measures"])]
                for (bucket, group), events in node.retrieve(step["per"], *step["within"]).items()
                if step["without"] not in group[:1]
            ]
            if not equal_rows(rows, step["rows"]):
                yield step["query"]


def equal_rows(rows: list[list[Any]], others: list[list[Any]]) -> bool:
    """True if the rows are the same in any order; floats up to the order in which a database adds."""
    if len(rows) != len(others):
        return False
    pairs = zip(_in_order(rows), _in_order(others), strict=True)
    return all(all(map(_equal, row, other)) for row, other in pairs)


def _in_order(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows in an order that does not depend on the last digits of their numbers."""
    return sorted(rows, key=lambda row: [f"{v:.9g}" if isinstance(v, float) else str(v) for v in row])


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)
