"""What live clusters answered: one to four real Siddhi 5.1.30 nodes on one database, in playback and alive.

Each line of the files in `tests/cases/live/` is an app, the shard ids of its nodes, and steps in their order: an event
of a node, whose last attribute is its time, or a retrieval from a node with the `rows` of its answer. The bounds of
retrievals lie anywhere. `tests/live` records more.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.outputs.shard_retrieval import retrieve
from sparkstream_nb.plan import compile_app, compile_retrieval
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

FOLDER = Path(__file__).parents[1] / "cases" / "live"
PLAYBACK = (FOLDER / "playback.jsonl").read_text(encoding="utf-8").splitlines()
ALIVE = (FOLDER / "alive.jsonl").read_text(encoding="utf-8").splitlines()
RENAMED = (FOLDER / "renamed.jsonl").read_text(encoding="utf-8").splitlines()


def in_order(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows in an order that does not depend on the last digits of their numbers."""
    return sorted(rows, key=lambda row: [f"{v:.9g}" if isinstance(v, (int, float)) else str(v) for v in row])


def equal(one: Any, other: Any) -> bool:
    """Equality of two values; of floats up to the order in which a database adds."""
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


@pytest.mark.parametrize("line", [pytest.param(line, id=str(i)) for i, line in enumerate(PLAYBACK, 1)])
def test_each_node_answers_as_a_real_one_in_playback(line: str) -> None:
    check_answers(json.loads(line))


@pytest.mark.parametrize("line", [pytest.param(line, id=str(i)) for i, line in enumerate(ALIVE, 1)])
def test_nodes_answer_as_real_ones_whose_clock_is_the_walls(line: str) -> None:
    check_answers(json.loads(line), as_wso2="alive")


@pytest.mark.parametrize("line", [pytest.param(line, id=str(i)) for i, line in enumerate(RENAMED, 1)])
def test_nodes_that_are_restarted_as_other_shards_answer_as_real_ones(line: str) -> None:
    check_answers(json.loads(line))


def check_answers(case: dict[str, Any], as_wso2: str | None = None) -> None:
    """Asserts that the retrievals of a case have the rows of its answers, each from its node or as `as_wso2` says."""
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
        if "restart" in step:  # with its state: an app here continues with it
            shards[step["node"]] = step["restart"]
            continue
        answer = retrieve(plan, compile_retrieval(step["query"], plan), store, as_wso2=as_wso2 or node).answer
        answer_rows, expected = in_order([list(row) for row in answer.rows]), in_order(step["rows"])
        assert len(answer_rows) == len(expected), step["query"]
        for row, real in zip(answer_rows, expected, strict=True):
            assert all(map(equal, row, real)), step["query"]


def test_there_are_cases_with_several_nodes_and_bounds_inside_buckets() -> None:
    cases = [json.loads(line) for line in [*PLAYBACK, *ALIVE]]
    queries = [step["query"] for case in cases for step in case["steps"] if "query" in step]
    assert len(queries) > 100
    assert sum(len(case["nodes"]) > 1 for case in cases) > 20
