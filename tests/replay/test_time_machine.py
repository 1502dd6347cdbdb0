"""Nodes at any moment: going forth and back gives what a fresh replay gives, and a node that can be described puts out
what any node does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from plan.shards import NODES, app_and_events, one_by_one
from profiles import a_sixth, examples, seed
from reference import replay as reference
from reference.parts import Case, failing
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime.descriptions import DescribedNode
from sparkstream_nb.engine.runtime.holdings import PartialPlace, RowPlace, WindowPlace, holding_places
from sparkstream_nb.engine.state.node_batch import InputBatch
from sparkstream_nb.journal.entries import StepsEntry
from sparkstream_nb.nodes.batches import between
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.plan.reports.lineage import LINEAGE, events_of
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


def described_places(nodes: Sequence[DescribedNode], number: int) -> list[Counter[str]]:
    """By node, how often each window, pattern, table and named window has an event, by its description."""

    def names_it(values: Any) -> bool:
        return number in events_of([values])

    counts = []
    for node in nodes:
        places: Counter[str] = Counter()
        for name, query in node.queries.items():
            for i, window in enumerate(query.windows):
                places[f"{name} {i}"] += sum(names_it(e.values.get(LINEAGE)) for e in window.events)
            for partial in query.partial_matches or ():
                places[name] += any(names_it(e.values.get(LINEAGE)) for of_state in partial.events for e in of_state)
        for id, table in (*node.tables.items(), *node.windows.items()):
            if LINEAGE in table.names:
                at = list(table.names).index(LINEAGE)
                places[id] += sum(names_it(row[at]) for row in table.rows)
        counts.append(+places)
    return counts


def places_of(engines: Sequence[NodeEngine], number: int) -> list[Counter[str]]:
    """The same, by `holding_places`."""
    counts = []
    for engine in engines:
        places: Counter[str] = Counter()
        for place in holding_places(engine, number):
            match place:
                case WindowPlace():
                    places[f"{place.query} {place.side}"] += place.events + place.waiting
                case PartialPlace():
                    places[place.query] += 1
                case RowPlace():
                    places[place.name] += place.rows
        counts.append(places)
    return counts


def wrong_history(plan: Plan, batch: InputBatch, start: int, random: Random) -> str | None:
    """The first thing that following an event says otherwise than a look at each step; None if there is none."""
    recording = recording_of(plan, one_by_one(batch))
    nodes = Nodes(plan, start, True).with_tracing(every=True, lazy=True)
    way = random.choice([ONE, Way(2, "round_robin")])
    machine, steps = TimeMachine(recording, way, nodes), TimeMachine(recording, way, nodes)
    for _ in range(3 if recording.events else 0):
        number = random.randrange(recording.events)

        def read(engines: Sequence[NodeEngine], number: int = number) -> Any:
            return [holding_places(engine, number) for engine in engines]

        position = recording.position_of_event(number)
        machine.seek(position)
        followed = [(position, machine.read(read))]
        while any(followed[-1][1]) and (next_position := machine.position_of_change(read)) is not None:
            followed.append((next_position, machine.read(read)))
        looked_at: list[Any] = []
        for step in range(position, machine.steps + 1):
            steps.seek(step)
            places = steps.read(read)
            if described_places(steps.describe(), number) != places_of(steps.read(list), number):
                return f"event {number} at {step}\n{places}\n{described_places(steps.describe(), number)}"
            if not looked_at or places != looked_at[-1][1]:
                looked_at.append((step, places))
            if not any(places):
                break
        if followed != looked_at:
            return f"event {number}\n{followed}\n{looked_at}"
    return None


def wrong(case: Case) -> str | None:
    app = app_and_events(case)
    if app is None or not len(app[1].clock):
        return None
    random = Random(f"{seed()} {case['id']}")
    start = case.get("start") or 0
    found = difference(*app, start, random) or wrong_history(*app, start, random)
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
