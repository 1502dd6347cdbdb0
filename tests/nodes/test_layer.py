"""A partitioning layer: which group gets which event, against its rules written as a loop; and groups that are cut into
micro-batches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, Outputs, StreamRows
from sparkstream_nb.errors import Misuse
from sparkstream_nb.nodes.batches import between
from sparkstream_nb.nodes.member import PairMember
from sparkstream_nb.nodes.pair import Loss
from sparkstream_nb.nodes.partitioning_layer import GroupLane, GroupShare
from sparkstream_nb.plan import compile_app
from sparkstream_nb.simulation.faults import Cut, Fault, Kill, Slow, random_schedule
from sparkstream_nb.simulation.node_groups import Distribution, NodeGroups, groups_of
from sparkstream_nb.simulation.timeline import Role, roles
from sparkstream_nb.simulation.topology import CLIENTS, DATABASE, Pair

SCHEDULES = examples(30, "SPARKSTREAM_SCHEDULES")
PLAN = compile_app(
    "define stream S (k string, v long); define stream T (v long);"
    "from S#window.time(30 sec) select k, sum(v) as total group by k insert into O;"
    "from T select v insert into P;"
)
SCHEMAS = {s: d.source.schema for s, d in PLAN.streams.items()}
START = 1_000_000
Row = tuple[str, int, tuple[object, ...]]


def pairs(count: int) -> tuple[Pair, ...]:
    return tuple(Pair((f"{i}-a", f"{i}-b"), f"g{i}", persist=20_000) for i in range(count))


@st.composite
def runs(draw: st.DrawFn) -> tuple[NodeGroups, tuple[Fault, ...], InputBatch]:
    """Two or three groups, each with faults of its own, and 200 events of two streams."""
    count, seed = draw(st.integers(2, 3)), draw(st.integers(0, 1000))
    how = draw(st.sampled_from([Distribution("partitioned", "k"), Distribution("broadcast"), Distribution()]))
    groups = groups_of(pairs(count), seed, streams=(("S", how),))
    rng = np.random.default_rng(seed)
    clock = START + np.sort(rng.integers(0, 600_000, 200))
    faults = [
        f
        for i, p in enumerate(groups.pairs)
        for f in random_schedule(p, seed + i, (START + 1, int(clock[-1])), rate=4).faults
    ]
    faults += [
        Slow(at, a, b, by, at + 90_000)
        for p in groups.pairs
        for a, b in ((p.nodes[0], DATABASE), p.nodes)
        for at, by in [(START + int(rng.integers(1, 500_000)), int(rng.choice([2_000, 15_000])))]
    ]
    first = rng.random(200) < 0.6
    keys = pa.array([f"key-{i}" for i in rng.integers(0, 7, int(first.sum()))])
    s, t = np.flatnonzero(first), np.flatnonzero(~first)
    rows = {
        "S": StreamRows(s, clock[s], [keys, pa.array(np.arange(len(s)))]),
        "T": StreamRows(t, clock[t], [pa.array(np.arange(len(t)))]),
    }
    return groups, tuple(faults), InputBatch(clock, rows)


def lanes(groups: NodeGroups, faults: tuple[Fault, ...]) -> list[GroupLane]:
    out = [GroupLane(groups, i, PLAN, lambda: NodeEngine(PLAN)) for i in range(len(groups.pairs))]
    for lane in out:
        for fault in faults:
            lane.happen(fault)
    return out


def bag(outputs: Outputs) -> Counter[Row]:
    return Counter((s, ts, tuple(v)) for s, e in outputs.streams.items() for ts, v in e.rows())


def serving(lane: GroupLane, at: int) -> bool:
    """Whether a node of a group that failed over by itself is there at `at` (ms): by its log alone."""
    happenings = lane.lane.timeline(at).happenings
    active = {s.node for s in roles(happenings, at + 1) if s.role is Role.ACTIVE and s.first <= at < s.end}
    cut = {frozenset(f.nodes) for f in lane.lane.faults if isinstance(f, Cut) and f.at <= at < f.until}
    return any(frozenset({n, CLIENTS}) not in cut for n in active)


@given(runs())
@settings(max_examples=SCHEDULES, deadline=None)
def test_each_event_goes_where_the_rules_say(run: tuple[NodeGroups, tuple[Fault, ...], InputBatch]) -> None:
    groups, faults, batch = run
    group_lanes = lanes(groups, faults)
    parts = [lane.part(batch) for lane in group_lanes]
    count, turns = len(groups.pairs), Counter[str]()
    got: dict[tuple[str, int], set[int]] = {}
    for place, part in enumerate(parts):
        assert (part.clock == batch.clock).all()
        for stream, rows in part.rows.items():
            for v in rows.columns[-1].to_pylist():
                got.setdefault((stream, v), set()).add(place)
    for lane in group_lanes:
        lane.lane.start = START if len(batch.clock) == 0 else int(batch.clock[0])
    for stream, rows in batch.rows.items():
        how = groups.distributions.get(stream, Distribution())
        for i, (step, v) in enumerate(zip(rows.step.tolist(), rows.columns[-1].to_pylist(), strict=True)):
            if how.strategy == "broadcast":
                expected = set(range(count))
            elif how.strategy == "partitioned":
                value = 0
                for c in rows.columns[0][i].as_py():
                    value = (31 * value + ord(c)) & 0xFFFFFFFF
                expected = {abs((value ^ 0x80000000) - 0x80000000) % count}
            else:
                there = [p for p, lane in enumerate(group_lanes) if serving(lane, int(batch.clock[step]))]
                expected = {there[turns[stream] % len(there)] if there else turns[stream] % count}
                turns[stream] += bool(there)
            assert got[stream, v] == expected


@given(runs(), st.lists(st.integers(1, 60), max_size=6))
@settings(max_examples=SCHEDULES, deadline=None)
def test_members_that_are_restored_between_batches_are_the_groups(
    run: tuple[NodeGroups, tuple[Fault, ...], InputBatch], sizes: list[int]
) -> None:
    groups, faults, batch = run
    expected = {n: Counter[Row]() for n in groups.nodes}
    whole = lanes(groups, faults)
    for lane in whole:
        for p in lane.step(batch):
            expected[p.node] += bag(p.outputs)

    def member(node: str) -> PairMember:
        return PairMember(groups, node, PLAN, lambda: NodeEngine(PLAN))

    members = {node: member(node) for node in groups.nodes}
    for m in members.values():
        for fault in faults:
            m.happen(fault)
    found = {n: Counter[Row]() for n in groups.nodes}
    at = 0
    for size in [*sizes, len(batch.clock)]:
        end = min(at + size, len(batch.clock))
        for node, m in members.items():
            found[node] += bag(m.step(between(batch, at, end)))
            members[node] = member(node)
            members[node].restore(m.snapshot())
        at = end
    assert found == expected


def test_a_slow_group_is_each_of_its_nodes() -> None:
    groups = groups_of(pairs(2), 0, (Slow(0, DATABASE, "g1", 500, 10_000),))
    assert [str(f) for s in groups.scenarios for f in s.faults] == [
        "slow the link of 1-a and database by 0.5 s for 10 s",
        "slow the link of 1-b and database by 0.5 s for 10 s",
    ]


def test_a_request_of_several_events_is_not_taken_apart() -> None:
    groups = groups_of(pairs(2), 0)
    ts = np.full(6, START)
    batch = InputBatch(
        np.array([START, START, START]), {"T": StreamRows(np.array([0, 0, 1, 1, 2, 2]), ts, [pa.array(range(6))])}
    )
    share = GroupShare(groups, 0, SCHEMAS)
    assert share.of(batch, START).rows["T"].columns[0].to_pylist() == [0, 1, 4, 5]
    assert share.turns == {"T": 3}


def test_a_group_that_is_alone_takes_all_and_one_that_is_cut_off_loses_its_own() -> None:
    groups = groups_of(pairs(2), 0, (Cut(0, "g1", CLIENTS, 10_000),))
    assert [[str(f) for f in s.faults] for s in groups.scenarios] == [
        [],
        ["cut 1-a from clients for 10 s", "cut 1-b from clients for 10 s"],
    ]
    ts = START + 1000 * np.arange(20)
    keys = pa.array(["a", "b"] * 10)
    batch = InputBatch(ts, {"S": StreamRows(np.arange(20), ts, [keys, pa.array(range(20))])})
    keyed = NodeGroups(groups.scenarios, (("S", Distribution("partitioned", "k")),))
    reports = []
    for lane in lanes(keyed, ()):
        lane.step(batch)
        reports.append(lane.lane.report)
    assert [r.events for r in reports] == [10, 10]
    assert [{why: len(s) for why, s in r.lost_events.items()} for r in reports] == [{}, {Loss.NOBODY: 5}]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Kill(1, "9-a"), "there is no node '9-a'"),
        (Cut(1, "g7", CLIENTS, 2), "there is no node 'g7'"),
        (Cut(1, "0-a", "1-a", 2), "there is no node '1-a'"),
        (Slow(1, "0-a", "1-a", 3, 2), "there is no node '1-a'"),
        (Slow(1, "g1", CLIENTS, 3, 9), "clients are never slow"),
        (Cut(1, CLIENTS, DATABASE, 2), "there is no node 'clients'"),
    ],
)
def test_faults_that_name_nothing(fault: Fault, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        groups_of(pairs(2), 0, (fault,))


def test_names_are_of_one_node_or_group() -> None:
    with pytest.raises(Misuse, match="called '0-a'"):
        groups_of((Pair(("0-a", "0-b"), "g"), Pair(("0-a", "1-b"), "h")), 0)
    with pytest.raises(Misuse, match="called 'g'"):
        groups_of((Pair(("0-a", "0-b"), "g"), Pair(("1-a", "1-b"), "g")), 0)
