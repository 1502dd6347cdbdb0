"""A deployment retrieves what one node retrieves: any split of a feed over shards and micro-batches, in any order, with
crashes around commits.

`make exact` runs many more examples than the tests do: SPARKSTREAM_EXAMPLES, of DuckDB and, a tenth, of PostgreSQL.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.aggregation.stored_buckets import from_table, view
from sparkstream_nb.engine.columnar.column_data import StringPool
from sparkstream_nb.engine.expressions import Context
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import OutputOptions
from sparkstream_nb.engine.state.services import Services
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import DURATIONS, Plan
from sparkstream_nb.stores import Store
from sparkstream_nb.stores.store_protocol import BatchKey

from .conftest import Stores
from .trades import step

A = "A"
EXAMPLES = examples(20, "SPARKSTREAM_EXAMPLES")
ALWAYS = (-(2**62), 2**62)
ZONES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia")
APP = (
    "define stream S (k string, g int, price double, qty long, at long);\n"
    "define aggregation A from S select k, g, count() as n, sum(qty) as total, avg(price) as mean, avg(qty) as whole, "
    "min(price) as low, max(qty) as most, distinctCount(qty) as kinds, price as latest "
    "group by k, g aggregate by at every sec ... year;"
)
SWITCHES = (1711846800000, 1729990800000, 1712415600000, 1728142200000, 1325239200000)
"""Clocks are changed in Berlin, on Lord Howe and in Apia."""

Event = tuple[str | None, int | None, float | None, int | None, int | None]
Crash = Literal["none", "before", "after"]


@dataclass
class Batch:
    """Events by shard, and where, by its commit, the process dies the first time that it runs the batch."""

    crash: Crash
    events: dict[str, list[Event]] = field(default_factory=dict)


@st.composite
def deployments(draw: st.DrawFn) -> tuple[str, list[Event], list[Batch]]:
    """A zone, a feed, and the feed in any order, split into batches of shards."""
    around = st.sampled_from(SWITCHES)
    near = st.builds(int.__add__, around, st.integers(-7_200_000, 7_200_000) | st.integers(-3000, 3000))
    # Halves, so that sums are exact in any order; times all different, so that there is one latest event.
    times = near | st.integers(-(10**12), 3 * 10**12)
    events: list[Event] = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["a", "", None]),
                st.sampled_from([0, 1, None]),
                st.none() | st.integers(-400, 400).map(lambda x: x / 2),
                st.none() | st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1),
                st.none() | times,
            ),
            max_size=30,
            unique_by=lambda e: object() if e[4] is None else e[4],
        )
    )
    crashes = draw(st.lists(st.sampled_from(("none", "none", "before", "after")), min_size=4, max_size=4))
    batches = [Batch(crash) for crash in crashes]
    for event in draw(st.permutations(events)):
        batch, shard = draw(st.integers(0, 3)), draw(st.integers(0, 4))
        batches[batch].events.setdefault(f"node-{shard}", []).append(event)
    return draw(st.sampled_from(ZONES)), events, batches


def planned(zone: str, shard: str) -> Plan:
    return compile_app(APP, {"partitionById": "true", "shardId": shard, "aggTimeZone": zone})


PLANS = {zone: planned(zone, "node-0") for zone in ZONES}


def one_node(plan: Plan, events: list[Event]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What one node that keeps its buckets retrieves, by duration, of the feed in order of its times."""
    node = NodeEngine(plan)
    ordered = sorted(events, key=lambda e: (e[4] is not None, e[4] or 0))
    step(node, "S", ordered)
    found = node.parts.aggregations[A]
    return {
        d: Counter(zip(*(c.to_list(node.services.strings) for c in found.rows(d, *ALWAYS)), strict=True))
        for d in DURATIONS
    }


def retrieved(plan: Plan, store: Store) -> dict[str, Counter[tuple[Any, ...]]]:
    services = Services(StringPool(), Context())
    out = {}
    for d in DURATIONS:
        columns = view(from_table(plan.aggregations[A], store.read(A, d, *ALWAYS), services), services)
        out[d] = Counter(zip(*(c.to_list(services.strings) for c in columns), strict=True))
    return out


def deployed(plan: Plan, store: Store, batches: list[Batch], restart: Callable[[], Store]) -> Store:
    """Runs the batches as Spark does: each is repeated, from the states before it, until it has been committed and its
    end been seen. A crash takes the nodes and the connection with it."""
    run = uuid.uuid4().hex
    states: dict[str, bytes] = {}
    for number, batch in enumerate(batches):
        committed = False
        for crash in dict.fromkeys([batch.crash, "none"]):
            partials, after = {}, dict(states)
            for shard, events in batch.events.items():
                node = NodeEngine(plan, shard=shard, outputs=OutputOptions(stored=True))
                if shard in states:
                    node.restore(states[shard])
                found = step(node, "S", events)
                if A in found:
                    partials[A, shard] = found[A]
                after[shard] = node.snapshot()
            if crash != "before":
                assert store.commit(BatchKey("app", run, number), partials) is not committed
                committed = True
            if crash == "none":
                states = after
            else:
                store = restart()
    return store


@pytest.fixture(scope="module")
def opened(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Store]]:
    """Opens the store of a kind, again as after a crash."""
    held: dict[str, Store] = {}
    folder = tmp_path_factory.mktemp("any_split")

    def open_(kind: str) -> Store:
        if kind in held:
            held[kind].close()
        held[kind] = stores(kind, folder)
        held[kind].prepare(PLANS["UTC"].aggregations.values())
        return held[kind]

    yield open_
    for store in held.values():
        store.close()


@pytest.mark.hypothesis
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("kind", "count"), [("duckdb", EXAMPLES), ("postgresql", max(2, EXAMPLES // 10))])
def test_any_split_retrieves_what_one_node_does(kind: str, count: int, opened: Callable[[str], Store]) -> None:
    store = opened(kind)

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(deployments())
    def holds(deployment: tuple[str, list[Event], list[Batch]]) -> None:
        nonlocal store
        zone, events, batches = deployment
        plan = PLANS[zone]
        for shard in store.shards(A):
            store.delete_shard(A, shard.shard)
        store = deployed(plan, store, batches, lambda: opened(kind))
        assert retrieved(plan, store) == one_node(plan, events)

    holds()
