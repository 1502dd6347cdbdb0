"""Nodes at any moment: going forth and back gives what a fresh replay gives, and a node that can be described puts out
what any node does."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from plan.shards import NODES, app_and_events, one_by_one
from profiles import a_sixth, examples, seed
from reference import replay as reference
from reference.parts import Case, failing
from sparkstream_nb.engine.state.node_batch import InputBatch
from sparkstream_nb.journal.entries import StepsEntry
from sparkstream_nb.nodes.batches import between
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.replay import time_machine
from sparkstream_nb.replay.replay import ONE, NodeReplay, Nodes, Recorded, Recording, Way, replay_nodes
from sparkstream_nb.replay.time_machine import TimeMachine

PARTS, SHARE = 12, 16
"""One of so many cases is run."""


def recording_of(plan: Plan, batch: InputBatch, items: int = 3) -> Recording:
    """The batch as input that came in so many items."""
    schemas = {s: d.source.schema for s, d in plan.streams.items()}
    steps, number, recorded = len(batch.clock), 0, []
    bounds = [steps * i // items for i in range(items + 1)]
    for i, (first, end) in enumerate(pairwise(bounds)):
        if end > first:
            part = between(batch, first, end)
            entry = StepsEntry(
                seq=i, step=first, request=first, steps=end - first, clock=int(part.clock[-1]), route="round_robin"
            )
            recorded.append(Recorded.of_batch(entry, part, number))
            number += recorded[-1].events
    return Recording(recorded, schemas, NODES)


def rows(replays: list[NodeReplay]) -> dict[tuple[int, str], list[str]]:
    return {(r.node, s): [str(row) for row in r.rows(s)] for r in replays for s in r.streams if any(r.rows(s))}


def difference(plan: Plan, batch: InputBatch, start: int, random: Random) -> str | None:
    """The first thing that a time machine says otherwise than a replay; None if there is none."""
    recording, nodes = recording_of(plan, one_by_one(batch)), Nodes(plan, start, True)
    way = random.choice([ONE, Way(2, "round_robin"), Way(3, "random:1")])
    plain, described = (replay_nodes(recording, way, n) for n in (nodes, replace(nodes, describes=True)))
    if rows(plain) != rows(described):
        return f"outputs of nodes that can be described\n{rows(plain)}\n{rows(described)}"
    machine = TimeMachine(recording, way, nodes)
    for _ in range(6):
        position = random.randrange(machine.steps + 1)
        for target in (position, max(0, position - 1), min(machine.steps, position + 1)):
            machine.seek(target)
            fresh = TimeMachine(recording, way, nodes)
            fresh.seek(target)
            if str(machine.describe()) != str(fresh.describe()):
                return f"position {target}\n{machine.describe()}\n{fresh.describe()}"
    return None


def wrong(case: Case) -> str | None:
    app = app_and_events(case)
    if app is None or not len(app[1].clock):
        return None
    found = difference(*app, case.get("start") or 0, Random(f"{seed()} {case['id']}"))
    return None if found is None else f"{case['id']} {found}\n{case['app']}"


@pytest.mark.thorough
@pytest.mark.parametrize("part", a_sixth(range(PARTS)))
def test_cases_forth_and_back(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_machine, "STRIDE", 7)
    monkeypatch.setattr(time_machine, "NEAR", 3)
    failing(reference.siddhi_cases()[seed() % SHARE :: SHARE][part::PARTS], wrong)


@settings(max_examples=examples(40, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False), area=st.sampled_from(sorted(AREAS)))
def test_composed_apps_forth_and_back(random: Random, area: str) -> None:
    composer = Composer(random)
    AREAS[area](composer)
    assert wrong(composer.case("composed", 15)) is None
