"""Apps in which each query and partition is an execution group of its own: what they put out, against one node.

Two topics have no order between each other, so apps are left out in which a group reads several streams, or a stream
has several writers: where these carry events of one moment, no deployment gives what one node does.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from profiles import a_third, examples
from reference import replay
from reference.parts import Case, failing
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import OutputOptions, Outputs
from sparkstream_nb.errors import Misuse, SiddhiBindError
from sparkstream_nb.lang.tree import Annotation, AnnotationElement
from sparkstream_nb.nodes.distributed import Distributed, DistributedLane, apps_of
from sparkstream_nb.plan.distributed.distribute import Split, distribute
from sparkstream_nb.plan.distributed.placement import connected_streams
from sparkstream_nb.plan.nodes import Partition, Plan, Query
from sparkstream_nb.plan.query_parts import sources
from sparkstream_nb.plan.shard_safety.safety_rules import tables_of
from sparkstream_nb.simulation.resources import ResourceCluster, ResourceNode, ResourceScenario
from tests.plan.shards import app_and_events, one_by_one

PARTS = 6
SHARE = int(os.environ.get("SPARKSTREAM_SHARE", "4"))
"""One case of so many is run."""
CLUSTER = ResourceCluster(tuple(ResourceNode(f"worker-{i}") for i in (1, 2, 3)))
Bags = dict[str, Counter[str]]


def _queries(e: Query | Partition) -> tuple[Query, ...]:
    return e.queries if isinstance(e, Partition) else (e,)


def divided(plan: Plan) -> Plan:
    """The plan with a group for each element; those that share a table, a window, an aggregation or the errors of a
    stream are one group."""
    uses: list[set[str]] = []
    faulty = {s.id[1:] for q in plan.queries for s in sources(q) if s.id.startswith("!")}
    for e in plan.elements:
        found = {s.id for q in _queries(e) for s in sources(q)} | {q.output.target.id for q in _queries(e)}
        found |= {t for q in _queries(e) for t in tables_of(q)}
        kept = {*plan.tables, *plan.windows, *plan.aggregations, *faulty}
        uses.append({u for u in found if u in kept or u.startswith("!")} | {u[1:] for u in found if u.startswith("!")})
    group = list(range(len(uses)))
    for i, mine in enumerate(uses):
        for j in range(i):
            if mine & uses[j]:
                group = [group[j] if g == group[i] else g for g in group]
    elements = []
    for e, g in zip(plan.elements, group, strict=True):
        dist = Annotation("dist", (AnnotationElement("execGroup", f"g{g}", span=e.span),), span=e.span)
        elements.append(replace(e, annotations=(*e.annotations, dist)))
    return replace(plan, elements=tuple(elements))


def one_way(plan: Plan, split: Split) -> bool:
    """Whether no event of one moment reaches a group by two topics, or a topic from two queries."""
    writers = Counter(q.output.target.id for q in plan.queries)
    return all(len(g.reads) <= 1 for g in split.groups) and all(writers[t.stream] <= 1 for t in split.topics)


def bags(outputs: Iterable[Outputs]) -> Bags:
    found: Bags = defaultdict(Counter)
    for o in outputs:
        for stream, emitted in o.streams.items():
            if "#" not in stream:
                found[stream].update(json.dumps(row, default=str) for row in emitted.rows())
    return {s: c for s, c in found.items() if c}


def differing(case: Case) -> Iterator[str]:
    """What an app in parts puts out otherwise than one node; nothing where it cannot be divided."""
    made = app_and_events(case)
    if made is None or connected_streams(made[0], types=("inMemory",)):
        return
    plan, batch = divided(made[0]), one_by_one(made[1])
    try:
        split = distribute(plan, "A")
        app = Distributed(split, ResourceScenario(CLUSTER, apps_of(split), 1))
    except (SiddhiBindError, Misuse):
        return
    if not any(t.writers for t in split.topics) or not one_way(plan, split):
        return
    truth = bags([NodeEngine(plan, allow_scripts=True).step(batch)])
    chunks = OutputOptions(chunks=True)
    lane = DistributedLane(plan, app, lambda part: NodeEngine(part, allow_scripts=True, outputs=chunks))
    found = bags(p.outputs for p in lane.step(batch))
    for s in {*truth, *found}:
        one, parts = truth.get(s, Counter()), found.get(s, Counter())
        if one != parts:
            yield f"{case['id']} {s}: lost {list(one - parts)[:2]}, spurious {list(parts - one)[:2]}\n{case['app']}"


@pytest.mark.parametrize("part", a_third(range(PARTS)))
def test_the_cases_in_parts(part: int) -> None:
    failing(replay.siddhi_cases()[1::SHARE][part::PARTS], lambda case: "\n".join(differing(case)) or None)


@settings(max_examples=examples(60, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False), area=st.sampled_from(sorted(AREAS)))
def test_composed_apps_in_parts(random: Random, area: str) -> None:
    composer = Composer(random)
    AREAS[area](composer)
    assert list(differing(composer.case("composed", 15))) == []


def test_a_topic_that_loses_an_event_is_found() -> None:
    case = {
        "id": "lossy",
        "app": "define stream S (k string, v long); from S[v > 1] select v insert into M; "
        "partition with (v of M) begin from M select v insert into O; end;",
        "feed": [["S", i, ["a", i]] for i in range(8)],
    }
    assert list(differing(case)) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DistributedLane, "_arrivals", lambda *_: [])
        assert any("O: lost" in what for what in differing(case))
