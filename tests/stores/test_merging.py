"""Merging is one thing, however events are split: shards, batches, the engine's merge and the store's."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.aggregation import from_table, merge_stored
from sparkstream_nb.engine.aggregation.stored_buckets import to_table
from sparkstream_nb.engine.columnar.column_data import StringPool
from sparkstream_nb.engine.expressions import Context
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.services import Services
from sparkstream_nb.plan.nodes import DURATIONS
from sparkstream_nb.stores.store_protocol import BatchKey

from .conftest import Stores
from .trades import NOON, STORES, plan_of, rows_of, step

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)

# Prices in halves, so that sums are exact in any order; times all different, so that there is one latest event.
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.none() | st.integers(-400, 400).map(lambda x: x / 2),
        st.none() | st.integers(-(10**6), 10**6),
        st.integers(-(10**12), 3 * 10**12) | st.integers(NOON, NOON + 10_000),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=40,
    unique_by=lambda e: e[3],
)


def filled(stores: Stores, kind: str, batches: list[dict[str, list[list[Any]]]]) -> dict[str, list[dict[str, Any]]]:
    """Reads by duration after the batches, each of which gives events by shard."""
    with tempfile.TemporaryDirectory() as folder:
        store = stores(kind, Path(folder))
        plan = plan_of()
        store.prepare(plan.aggregations.values())
        nodes: dict[str, NodeEngine] = {}
        for i, batch in enumerate(batches):
            partials = {}
            for shard, rows in batch.items():
                node = nodes.setdefault(shard, NodeEngine(plan, shard=shard))
                partials[A, shard] = step(node, "TradeStream", rows)[A]
            assert store.commit(BatchKey("app", "run", i), partials)
            assert store.commit(BatchKey("app", "run", i), partials) is False
        out = {d: rows_of(store.read(A, d, *ALWAYS)) for d in DURATIONS}
        by_engine = {d: rows_of(engine_merge(plan, store.read_by_shard(A, d, *ALWAYS), d)) for d in DURATIONS}
        store.close()
    assert by_engine == out
    return out


def engine_merge(plan: Any, rows: pa.Table, duration: Any) -> pa.Table:
    services = Services(StringPool(), Context())
    merged = merge_stored(from_table(plan.aggregations[A], rows, services), services)
    return to_table(merged, duration, services).drop_columns(["duration"])


@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_any_split_over_shards_and_batches(stores: Stores, kind: str, events: list[Any]) -> None:
    split: list[dict[str, list[list[Any]]]] = [{} for _ in range(4)]
    for *values, shard, batch in events:
        split[batch].setdefault(f"node-{shard}", []).append(values)
    whole = [{"node-0": [list(e[:4]) for e in events]}] if events else []
    assert filled(stores, kind, split) == filled(stores, kind, whole)
