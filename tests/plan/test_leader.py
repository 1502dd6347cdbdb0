"""A leader: with one, several nodes put out what one node does, whatever the routing."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from profiles import a_sixth, examples
from reference import replay
from reference.engine_cases import input_batch
from reference.parts import Case, failing
from sparkstream_nb.engine.state.node_batch import InputBatch
from sparkstream_nb.journal.entries import StepsEntry
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.distributed.leader import led_by, split_plan
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.replay.replay import (
    ONE,
    Merged,
    NodeReplay,
    Nodes,
    Recorded,
    Recording,
    Way,
    merged_rows,
    replay_nodes,
)

from .shards import NODES, app_and_events, one_by_one

PARTS = 12
SHARE = int(os.environ.get("SPARKSTREAM_SHARE", "4"))
"""One case of so many is run."""
ROUTES = ("round_robin", "random:1")
Bags = dict[str, Counter[str]]


def recorded(plan: Plan, batch: InputBatch) -> Recording:
    """The batch as what came in to an app of so many nodes."""
    entry = StepsEntry(seq=0, step=0, request=0, steps=len(batch.clock), clock=0, route="round_robin")
    schemas = {s: d.source.schema for s, d in plan.streams.items()}
    return Recording([Recorded.of_batch(entry, batch, 0)], schemas, NODES)


def bags(replays: Sequence[NodeReplay]) -> Bags:
    """What each stream got from all nodes."""
    out: Bags = defaultdict(Counter)
    for r in replays:
        for stream in r.streams:
            if "#" not in stream:
                out[stream].update(json.dumps(row, default=str) for row in r.rows(stream))
    return {s: c for s, c in out.items() if c}


def stored(plan: Plan, replays: Sequence[NodeReplay], nodes: Nodes, way: Way) -> dict[str, Merged]:
    """The rows of the aggregations that are the leader's."""
    parts = nodes.split_plans(way)
    led = () if parts is None else parts.duty.aggregations
    return {a: merged_rows(replays, plan.aggregations[a], nodes) for a in led}


def differing(plan: Plan, batch: InputBatch, start: int) -> Iterator[str]:
    """What several nodes with a leader put out otherwise than one node."""
    events, nodes = recorded(plan, one_by_one(batch)), Nodes(plan, start, True, ())
    truth = replay_nodes(events, ONE, nodes)
    for route in ROUTES:
        way = Way(NODES, route)
        found = replay_nodes(events, way, nodes)
        one, several = bags(truth), bags(found)
        for s in {*one, *several}:
            a, b = one.get(s, Counter()), several.get(s, Counter())
            if a != b:
                yield f"{route} {s}: lost {list(a - b)[:2]}, spurious {list(b - a)[:2]}"
        if stored(plan, truth, nodes, way) != stored(plan, found, nodes, way):
            yield f"{route}: aggregations"


def wrong(case: Case) -> list[str]:
    """What differs in a case."""
    found = app_and_events(case)
    if found is None or not len(found[1].clock):
        return []
    return [f"{case['id']} {what}\n{case['app']}" for what in differing(*found, case.get("start") or 0)]


@pytest.mark.thorough
@pytest.mark.parametrize("part", a_sixth(range(PARTS)))
def test_with_a_leader_the_cases_are_right_on_three_nodes(part: int) -> None:
    failing(replay.siddhi_cases()[1::SHARE][part::PARTS], lambda case: "\n".join(wrong(case)) or None)


@settings(max_examples=examples(40, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False), area=st.sampled_from(sorted(AREAS)))
def test_with_a_leader_composed_apps_are_right_on_three_nodes(random: Random, area: str) -> None:
    composer = Composer(random)
    AREAS[area](composer)
    assert wrong(composer.case("composed", 15)) == []


def test_a_leader_that_misses_a_query_is_found() -> None:
    app = "define stream S (v int); @info(name='q') from S#window.length(2) select sum(v) as s insert into O;"
    plan = compile_app(app)
    steps = input_batch(plan, [["S", i, [i]] for i in range(6)])
    assert list(differing(plan, steps, 0)) == []
    events = recorded(plan, steps)
    alone, none = (bags(replay_nodes(events, way, Nodes(plan))) for way in (ONE, Way(NODES, "round_robin")))
    assert alone != none
    assert sum(c.total() for c in none.values()) == 6


APP = """
define stream S (k string, v int);
define stream U (k string);
define stream Sums (s long);
define table T (k string, n int);
define table L (k string);
define trigger Tick at every 5 sec;
define aggregation A from Sums select sum(s) as s aggregate every sec;
define aggregation B from S select count() as n aggregate every sec;
@info(name='big') from S[v > 1]#log('big') select k, v insert into Big;
@info(name='sums') from Big#window.length(2) select sum(v) as s insert into Sums;
@info(name='more') from S[v > 9] select 1L as s insert into Sums;
@info(name='ticks') from Tick select eventTimestamp() as t insert into Ticks;
@info(name='known') from U select k insert into L;
@info(name='fill') from S select k, v as n insert into T;
@info(name='look') from S join T on S.k == T.k select S.k as k, T.n as n insert into Looked;
"""


def test_what_a_leader_takes_and_what_it_only_computes() -> None:
    plan = compile_app(APP)
    led = led_by(plan, "round_robin")
    assert led is not None
    parts = split_plan(plan, led)
    assert led == ("sums", "more", "ticks", "known", "fill", "look")
    assert [q.name for q in parts.nodes.queries] == ["big"]
    assert [q.name for q in parts.leader.queries] == ["big", "sums", "more", "ticks", "known", "fill", "look"]
    assert (parts.duty.silent, parts.duty.aggregations, parts.state) == ({"big"}, {"A"}, {"T", "L"})
    assert parts.duty.streams == {"Sums", "Ticks", "Tick", "Looked"}
    assert (set(parts.nodes.aggregations), set(parts.leader.aggregations)) == ({"B"}, {"A"})
    assert not parts.nodes.triggers
    assert "log" not in str([q.input for q in parts.leader.queries if q.name == "big"])


def test_a_key_needs_no_leader() -> None:
    app = "define stream S (k string); partition with (k of S) begin from S#window.length(2) insert into O; end;"
    assert led_by(compile_app(app), "hash:k") is None
    assert led_by(compile_app(app), "round_robin") is not None
