"""Partition keys that `@purge` forgets leave nothing behind, whatever window holds their events."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from profiles import a_third_of_pairs
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.window_declarations import DECLARATIONS

STREAM = "define stream S (symbol string, name string, price double, qty int, ok bool, at long);"
PARTITION = "@purge(enable='true', interval='1 sec', idle.period='2 sec') partition with (symbol of S) begin"
AGGREGATES = (
    "sum(qty) as q, sum(price) as s, avg(price) as a, count() as n, min(price) as low, max(price) as high, "
    "stdDev(price) as d, distinctCount(name) as k, minForever(price) as l, maxForever(price) as h, and(ok) as y, "
    "or(ok) as z, unionSet(createSet(name)) as u"
)
EXTREMES = "max(price) as high, min(qty) as low, maxForever(price) as h"
CALLS = {
    name: d.example_call(count=3, few=3, time="4 sec", at="at", key="name", value="price")
    for name, d in DECLARATIONS.items()
}
KEYS, EACH = 12, 10
Batch = tuple[np.ndarray, list[pa.Array]]  # type: ignore[type-arg]


QUERIES = {
    "totals": f"from S#window.{{}} select symbol, {AGGREGATES} insert all events into Out;",
    "groups": f"from S#window.{{}} select symbol, name, {EXTREMES} group by name insert all events into Out;",
    "join": "from S[qty > 2]#window.{} as a join S#window.length(4) as b on a.name == b.name and a.price <= b.price "
    "select a.symbol as symbol, a.price as p, b.qty as q, count() as n insert all events into Out;",
}


def app(call: str, query: str) -> str:
    return f"{STREAM} {PARTITION} {QUERIES[query].format(call)} end;"


@cache
def generation(g: int) -> Batch:
    """Events of keys that have not been there before and that no event comes for again."""
    r, n = np.random.default_rng(g), KEYS * EACH
    ts = 10_000 * g + 10 * np.arange(n)
    symbols = [f"{g:04d}/{i % KEYS:02d}" for i in range(n)]
    return ts, [
        pa.array(symbols), pa.array([f"n{k}" for k in r.integers(0, 4, n)]), pa.array(r.integers(0, 50, n) * 0.5),
        pa.array(r.integers(0, 9, n), pa.int32()), pa.array(r.random(n) < 0.5), pa.array(ts),
    ]  # fmt: skip


def rows(node: NodeEngine, batch: Batch) -> list[tuple[int, tuple[Any, ...]]]:
    ts, columns = batch
    out = node.step(InputBatch(ts, {"S": StreamRows(np.arange(len(ts)), ts, columns)})).streams.get("Out")
    found = [] if out is None else out.rows()
    return [(t, tuple(sorted(v) if isinstance(v, set) else v for v in values)) for t, values in found]


def size(node: NodeEngine) -> int:
    return len(node.snapshot()) + sum(node.stats()["state_bytes"].values())


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "query"), a_third_of_pairs(DECLARATIONS, QUERIES))
def test_state_does_not_grow_with_the_keys_that_are_gone(name: str, query: str) -> None:
    node = NodeEngine(compile_app(app(CALLS[name], query)))
    sizes = []
    for g in range(60):
        rows(node, generation(g))
        if g >= 10:
            sizes.append(size(node))
    # A window may hold a part of what is gone until it tidies up: so the most of one time against the most of another.
    assert max(sizes[-20:]) <= 1.02 * max(sizes[:20]), "as much is held for 720 keys as for 240"


def comes_and_goes() -> list[Batch]:
    """Events of few keys, which go and come again, at few different times."""
    r = np.random.default_rng(7)
    out, now = [], 0
    for _ in range(24):
        n = int(r.integers(3, 30))
        now += int(r.choice([500, 2500, 6000]))
        ts = now + 500 * np.sort(r.integers(0, 6, n))
        now = int(ts[-1])
        some = r.choice(14, 5, replace=False)
        out.append(
            (
                ts,
                [
                    pa.array([f"K{k}" for k in r.choice(some, n)]), pa.array([f"n{k}" for k in r.integers(0, 4, n)]),
                    pa.array(r.integers(0, 50, n) * 0.5), pa.array(r.integers(0, 9, n), pa.int32()),
                    pa.array(r.random(n) < 0.5), pa.array(ts + r.integers(-300, 300, n)),
                ],
            )
        )  # fmt: skip
    return out


def whole(batches: list[Batch]) -> Batch:
    columns = [pa.concat_arrays(c) for c in zip(*(b[1] for b in batches), strict=True)]
    return np.concatenate([b[0] for b in batches]), columns


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "query"), a_third_of_pairs(DECLARATIONS, QUERIES))
def test_what_is_left_of_a_key_that_is_gone_shows_nowhere(name: str, query: str) -> None:
    """The same comes out whether keys that come again find their numbers taken by others or not."""
    plan = compile_app(app(CALLS[name], query))
    batches = comes_and_goes()
    expected = rows(NodeEngine(plan), whole(batches))
    assert expected
    assert rows(NodeEngine(plan, by_chunk=True), whole(batches)) == expected
    node, found = NodeEngine(plan), []
    for i, batch in enumerate(batches):
        found += rows(node, batch)
        if i % 5 == 4:
            blob, node = node.snapshot(), NodeEngine(plan)
            node.restore(blob)
    assert found == expected
    (instances,) = node.parts.instances.values()
    assert instances.count <= 14, "numbers are used again"
