"""Aggregations in stores keep one row for each key, whatever the keys, and however the events are split."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odd_keys import ODD_VALUES, counts, identity, values_of
from profiles import examples
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.stores import Store
from sparkstream_nb.stores.sql import SqlStore
from sparkstream_nb.stores.store_protocol import BatchKey, GroupFilter, KeySearch
from sparkstream_nb.types import Type

from .conftest import Stores
from .trades import STORES

ALWAYS = (-(2**62), 2**62)


def plan_of(types: Sequence[Type]) -> Plan:
    names = [f"k{i}" for i in range(len(types))]
    attributes = ", ".join(f"{n} {t.value}" for n, t in zip(names, types, strict=True))
    keys = ", ".join(names)
    distinct = "" if types[0] is Type.BOOL else ", distinctCount(k0) as d"
    return compile_app(
        f"define stream S ({attributes});"
        f"define aggregation A from S select {keys}, count() as n group by {keys} aggregate every min;"
        f"define aggregation D from S select count() as n{distinct} aggregate every min;",
        properties={"partitionById": "true", "shardId": "node-1"},
    )


def store_batches(store: Store, plan: Plan, batches: Sequence[Sequence[tuple[int, Sequence[Any]]]]) -> None:
    """Commits batches of (node, row)."""
    nodes: dict[int, NodeEngine] = {}
    types = plan.schema("S").types
    for number, batch in enumerate(batches):
        partials = {}
        for own in sorted({n for n, _ in batch}):
            node = nodes.setdefault(own, NodeEngine(plan, shard=f"node-{own}"))
            rows = [r for n, r in batch if n == own]
            columns = [pa.array([r[i] for r in rows], ARROW[t], from_pandas=False) for i, t in enumerate(types)]
            ts = np.arange(len(rows)) + node.now + 1
            out = node.step(InputBatch(ts, {"S": StreamRows(np.arange(len(rows)), ts, columns)}))
            partials |= {(a, f"node-{own}"): t for a, t in out.partials.items()}
        assert store.commit(BatchKey("app", "run", number), partials)


def counts_of(table: pa.Table, keys: int) -> dict[tuple[Any, ...], int]:
    rows = zip(*(table.column(f"k{i}").to_pylist() for i in range(keys)), strict=True)
    out = dict(zip((tuple(map(identity, r)) for r in rows), table.column("AGG_COUNT").to_pylist(), strict=True))
    assert len(out) == table.num_rows
    return out


CASES = st.lists(st.sampled_from([*ODD_VALUES]), min_size=1, max_size=2).flatmap(
    lambda types: st.tuples(
        st.just(types),
        st.lists(st.tuples(st.integers(1, 3), st.tuples(*map(values_of, types))), min_size=1, max_size=20),
        st.integers(0, 20),
    )
)


def fits(kind: str, value: Any) -> bool:
    """True if a store holds the value: the others refuse such rows by `unfit`."""
    if isinstance(value, str):
        return kind != "postgresql" or "\x00" not in value
    if isinstance(value, float):
        odd = value != value or (kind == "mariadb" and abs(value) == float("inf"))
        return kind in ("duckdb", "postgresql") or not odd
    return True


@pytest.mark.parametrize("kind", STORES)
@settings(deadline=None, max_examples=examples(16), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=CASES)
@example(case=([Type.FLOAT], [(1, (float(np.finfo(np.float32).max),)), (2, (1234567.0,)), (1, (1234568.0,))], 2))
def test_every_key_has_its_row(
    kind: str, stores: Stores, case: tuple[list[Type], list[tuple[int, tuple[Any, ...]]], int]
) -> None:
    types, rows, cut = case
    rows = [r for r in rows if all(fits(kind, v) for v in r[1])]
    expected = counts([r for _, r in rows])
    plan = plan_of(types)
    for batches in ([rows], [[r] for r in rows], [rows[:cut], rows[cut:]]):
        with tempfile.TemporaryDirectory() as folder:
            store = stores(kind, Path(folder))
            store.prepare(plan.aggregations.values())
            store_batches(store, plan, [b for b in batches if b])
            read = store.read("A", "min", *ALWAYS)
            assert counts_of(read, len(types)) == expected
            for key in [*zip(*(read.column(f"k{i}").to_pylist() for i in range(len(types))), strict=True)][:3]:
                alone = store.read("A", "min", *ALWAYS, GroupFilter(only=key))
                own = tuple(map(identity, key))
                assert counts_of(alone, len(types)) == {own: expected[own]}
            firsts = {identity(k[0]) for _, k in rows}
            values = store.key_values("A", "min", KeySearch(0, 100))
            assert sorted(map(str, map(identity, values))) == sorted(map(str, firsts))
            if rows and types[0] is not Type.BOOL:
                (elements,) = store.read("D", "min", *ALWAYS).column("AGG_SET_k0").to_pylist()
                # A database finds 0.0 and -0.0 equal.
                values = {identity(k[0] + 0.0 if isinstance(k[0], float) else k[0]) for _, k in rows}
                assert len(elements) == len(values)
                assert {identity(v) for v in elements} == values
            store.close()


def test_a_table_of_another_server_counts_every_event(stores: Stores, tmp_path: Path) -> None:
    """It has no AGG_NULL_KEYS: null, -0.0 and 0.0 are one key there."""
    plan = plan_of([Type.DOUBLE])
    store = stores("sqlite", tmp_path)
    assert isinstance(store, SqlStore)
    with store._engine.begin() as c:
        c.exec_driver_sql(
            'CREATE TABLE "A_MINUTES" ("AGG_TIMESTAMP" BIGINT NOT NULL, "SHARD_ID" TEXT NOT NULL, '
            '"k0" DOUBLE NOT NULL, "AGG_COUNT" BIGINT, PRIMARY KEY ("AGG_TIMESTAMP", "SHARD_ID", "k0"))'
        )
    store.prepare(plan.aggregations.values())
    store_batches(store, plan, [[(1, [v]) for v in (None, 0.0, -0.0, None, 1.0)]])
    assert counts_of(store.read("A", "min", *ALWAYS), 1) == {("0.0",): 4, ("1.0",): 1}
    store.close()
