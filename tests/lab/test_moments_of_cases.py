"""The view of a moment over apps of cases: each moment can be drawn, and the history has what each step has."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from plan.shards import app_and_events, one_by_one
from profiles import a_sixth, examples, seed
from reference import replay as reference
from reference.parts import Case, failing
from replay.test_time_machine import recording_of
from sparkstream_nb.app import QueryMoment
from sparkstream_nb.app.results.moment import begun
from sparkstream_nb.app.results.moment_changes import partial_changes, window_changes
from sparkstream_nb.app.running.machine_moments import MachineMoments
from sparkstream_nb.engine.columnar.column_data import Array
from sparkstream_nb.lab.widgets.moment_controls import MomentControls
from sparkstream_nb.plan import nodes
from sparkstream_nb.replay.replay import ONE, Nodes, Way
from sparkstream_nb.replay.time_machine import TimeMachine

PARTS, SHARE = 12, 16
"""One of so many cases is run."""


def placed_rows(rows: Any, names: list[str]) -> Counter[tuple[int, str]]:
    """How often a stream has a row at a position on a node."""
    positions, numbers = cast(Array, rows.positions).tolist(), cast(Array, rows.nodes).tolist()
    return Counter(zip(positions, (names[node] for node in numbers), strict=True))


def events_in(query: QueryMoment) -> int:
    """The number of events in the windows of all nodes."""
    return sum(len(w.events) for state in query.by_node.values() for w in state.windows)


def wrong(case: Case) -> str | None:
    """The first thing that is wrong with the moments of a case; None if there is none."""
    app = app_and_events(case)
    if app is None or not len(app[1].clock):
        return None
    (plan, batch), random = app, Random(f"{seed()} {case['id']}")
    way = random.choice([ONE, Way(2, "round_robin")])
    machine = TimeMachine(recording_of(plan, one_by_one(batch)), way, Nodes(plan, case.get("start") or 0, True))
    names = [f"node-{i + 1}" for i in range(machine.nodes)]
    source = MachineMoments("App", cast(Any, None), machine, names)
    moments = [source.moment(position) for position in range(machine.steps + 1)]
    streams: dict[str, Counter[tuple[int, str]]] = {}
    for moment in moments:
        for row in (*moment.events, *moment.outputs):
            streams.setdefault(row.stream, Counter())[moment.position, row.node] += 1
    history = source.history()
    for stream in {*history.events, *history.outputs, *streams}:
        placed = Counter[tuple[int, str]]()
        for by_stream in (history.events, history.outputs):
            if stream in by_stream:
                placed += placed_rows(by_stream[stream], names)
        if placed != streams.get(stream, Counter()):
            return f"{case['id']} {stream}\n{placed}\n{streams.get(stream)}"
    for before, moment in pairwise(moments):
        for query in moment.queries():
            if isinstance(query.query.input, nodes.StateInput):
                present = [c for c in partial_changes(moment, before, query.name) if c.end is None]
                if len(present) != sum(len(begun(state)) for state in query.by_node.values()):
                    return f"{case['id']} {query.name} at {moment.position}: {present}"
                continue
            changes = window_changes(moment, before, query.name)
            more = sum(len(c.added_numbers) - len(c.removed_events) for c in changes)
            if more != events_in(query) - events_in(before[query.name]):
                return f"{case['id']} {query.name} at {moment.position}: {changes}"
    controls = MomentControls(moments[-1], lambda: None)
    for _ in range(4):
        controls.handle({"do": "go", "position": random.randrange(machine.steps + 1)})
        for query in controls.moment.queries():
            controls.handle({"do": "query", "query": query.name})
            state = controls.state()
            for drawing in (state["timeline"], state["state"]):
                if drawing.startswith("<svg"):
                    ElementTree.fromstring(drawing[: drawing.index("</svg>") + 6])
            controls.forms()
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("part", a_sixth(range(PARTS)))
def test_cases(part: int) -> None:
    failing(reference.siddhi_cases()[seed() % SHARE :: SHARE][part::PARTS], wrong)


@settings(max_examples=examples(40, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False), area=st.sampled_from(sorted(AREAS)))
def test_composed_apps(random: Random, area: str) -> None:
    composer = Composer(random)
    AREAS[area](composer)
    assert wrong(composer.case("composed", 15)) is None
