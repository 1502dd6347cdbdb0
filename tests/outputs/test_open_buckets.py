"""What WSO2's servers would answer: without the bucket of the finest duration that is open on each node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.outputs.shard_retrieval import retrieve
from sparkstream_nb.plan import compile_app, compile_retrieval
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

APP = """
define stream S (k string, v long, ts long);
@PartitionById(enable='true')
define aggregation A from S select k, sum(v) as s, max(v) as m group by k aggregate by ts every {every};
"""
NOON = 1_717_243_200_000
SEC, MIN, HOUR = 1000, 60_000, 3_600_000
EVENTS = {
    "a": [("x", 1, 0), ("x", 2, 5 * SEC), ("y", 4, 5 * SEC), ("x", 8, 2 * MIN), ("x", 16, 2 * MIN + SEC)],
    "b": [("x", 32, MIN), ("x", 64, HOUR + MIN), ("x", 128, HOUR + MIN + SEC)],
}
"""By shard: key, value, ms after noon. The last seconds are open: 16 of a, 128 of b."""


def answer(per: str, *, every: str = "sec ... day", as_wso2: bool | str = True) -> list[Sequence[object]]:
    plan = compile_app(APP.format(every=every), properties={"shardId": "a"})
    store = DuckDBStore(":memory:")
    store.prepare(plan.aggregations.values())
    for number, (shard, events) in enumerate(EVENTS.items()):
        keys, values, after = zip(*events, strict=True)
        at = NOON + np.array(after)
        rows = StreamRows(np.arange(len(at)), at, [list(keys), list(values), at.tolist()])
        partials = NodeEngine(plan, outputs=OutputOptions(stored=True)).step(InputBatch(at, {"S": rows})).partials["A"]
        store.commit(BatchKey("App", "run", number), {("A", shard): partials})
    text = f"from A within '2024-06-01 **:**:**' per '{per}' select AGG_TIMESTAMP, k, s, m"
    found = retrieve(plan, compile_retrieval(text, plan), store, as_wso2=as_wso2)
    by_shard = found.by_shard
    assert by_shard is not None
    assert sum(r[3] for r in by_shard.rows) == sum(r[2] for r in found.answer.rows)
    return sorted([(r[0] - NOON, *r[1:]) for r in found.answer.rows])


# What two real Siddhi 5.1.30 nodes on one database answered, in playback; one of them, as its clock has another hour.
@pytest.mark.parametrize(
    ("per", "asked", "expected"),
    [
        ("sec", "a", [(0, "x", 1, 1), (5 * SEC, "x", 2, 2), (5 * SEC, "y", 4, 4), (MIN, "x", 32, 32),
                      (2 * MIN, "x", 8, 8), (HOUR + MIN, "x", 64, 64)]),
        ("sec", "b", [(0, "x", 1, 1), (5 * SEC, "x", 2, 2), (5 * SEC, "y", 4, 4), (MIN, "x", 32, 32),
                      (2 * MIN, "x", 8, 8), (HOUR + MIN, "x", 64, 64)]),
        ("min", "a", [(0, "x", 3, 2), (0, "y", 4, 4), (MIN, "x", 32, 32), (2 * MIN, "x", 8, 8),
                      (HOUR + MIN, "x", 64, 64)]),
        ("min", "b", [(0, "x", 3, 2), (0, "y", 4, 4), (MIN, "x", 32, 32), (HOUR + MIN, "x", 64, 64)]),
        ("hour", "a", [(0, "x", 75, 32), (0, "y", 4, 4), (HOUR, "x", 64, 64)]),  # 32 twice
        ("hour", "b", [(0, "x", 32, 32), (HOUR, "x", 64, 64)]),  # without all of a's open hour
        ("day", "a", [(-12 * HOUR, "x", 139, 64), (-12 * HOUR, "y", 4, 4)]),
        ("day", "b", [(-12 * HOUR, "x", 96, 64)]),
    ],
)  # fmt: skip
def test_each_node_answers_as_a_real_one(per: str, asked: str, expected: list[Sequence[object]]) -> None:
    assert answer(per, as_wso2=asked) == expected


def test_the_node_with_the_latest_event_answers_where_none_is_named() -> None:
    assert answer("hour") == answer("hour", as_wso2="b") != answer("hour", as_wso2="a")


def test_all_is_there_without_it() -> None:
    assert answer("day", as_wso2=False) == [(-12 * HOUR, "x", 251, 128), (-12 * HOUR, "y", 4, 4)]


def test_an_hour_is_invisible_where_hours_are_the_finest() -> None:
    # Node a has one hour, which is open; of node b the first one is closed.
    assert answer("day", every="hour ... day") == [(-12 * HOUR, "x", 32, 32)]
    assert answer("hour", every="hour ... day") == [(0, "x", 32, 32)]
