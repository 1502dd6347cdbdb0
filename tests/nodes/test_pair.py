"""Two nodes of minimum high availability: what they put out, against one node that never failed, and against the events
that the report says each state is made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import THIRDS, examples, third
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, Outputs, StreamRows
from sparkstream_nb.nodes.batches import between
from sparkstream_nb.nodes.group_figures import MemberFigures, TakeoverCounts
from sparkstream_nb.nodes.member import PairMember
from sparkstream_nb.nodes.pair import Loss, PairLane, Published
from sparkstream_nb.nodes.spans import Spans
from sparkstream_nb.plan import compile_app
from sparkstream_nb.simulation.faults import (
    Cut,
    Fault,
    Kill,
    Pause,
    Restart,
    Scenario,
    Schedule,
    Slow,
    random_schedule,
)
from sparkstream_nb.simulation.node_groups import NodeGroups
from sparkstream_nb.simulation.topology import CLIENTS, DATABASE, Coordination, Pair
from tests.marks import thorough

SCHEDULES = examples(30, "SPARKSTREAM_SCHEDULES")
A, B = "node-1", "node-2"
EACH = compile_app("define stream S (k string, v long); from S select k, v insert into O;")
STATEFUL = compile_app(
    """define stream S (k string, v long);
    @info(name = 'length') from S#window.length(4) select k, sum(v) as total insert into O;
    @info(name = 'time') from S#window.time(20 sec) select count() as n insert all events into Times;
    @info(name = 'pattern') from every e1=S[v > 70] -> e2=S[k == e1.k and v < 30] within 1 min
    select e1.v as high, e2.v as low insert into Falls;"""
)
Row = tuple[str, int, tuple[object, ...]]


def feed(times: Sequence[int], seed: int = 1) -> InputBatch:
    """An event at each time, each a step; the values are the events' numbers where the seed is 0."""
    rng = np.random.default_rng(seed)
    n = len(times)
    keys = pa.array([f"k{i}" for i in rng.integers(0, 3, n)])
    values = pa.array(np.arange(n) if seed == 0 else rng.integers(0, 100, n))
    ts = np.array(times, np.int64)
    return InputBatch(ts, {"S": StreamRows(np.arange(n), ts, [keys, values])})


def rows(outputs: Outputs) -> Counter[Row]:
    return Counter((s, ts, tuple(v)) for s, e in outputs.streams.items() for ts, v in e.rows())


def all_rows(published: Sequence[Published]) -> Counter[Row]:
    return sum((rows(p.outputs) for p in published), Counter[Row]())


def lane(*faults: Fault, pair: Pair | None = None, plan: object = EACH, seed: int = 1) -> PairLane:
    return PairLane(Scenario(pair or Pair(), seed), lambda: NodeEngine(plan), faults)  # type: ignore[arg-type]


SECONDS = [1000 * s for s in range(300)]


def test_without_faults_it_is_one_node() -> None:
    batch = feed(SECONDS)
    run = lane(plan=STATEFUL)
    found = run.step(batch)
    assert all_rows(found) == rows(NodeEngine(STATEFUL).step(batch))
    assert {p.node for p in found} == {A}
    assert (len(run.report.taken_events), run.report.lost_events, run.report.unqueued_events) == (300, {}, {})
    assert run.report.revisions == {A: 5}


def test_a_failover_loses_what_nobody_takes_and_repeats_what_came_since_the_last_revision() -> None:
    """The active one dies at 1:30. Its last revision is of 1:00, so the other one replays 30 events; those that came
    till it took over are nobody's."""
    batch = feed(SECONDS, seed=0)
    run = lane(Kill(90_000, A))
    found = run.step(batch)
    (takeover,) = run.report.takeovers[1:]
    at = takeover.at
    assert takeover.node == B
    assert takeover.revision == 60_000
    assert takeover.replayed == Spans((60, 90))
    assert not takeover.missing
    lost = Spans((90, -(-at // 1000)))
    assert run.report.lost_events == {Loss.NOBODY: lost}
    assert run.counts.lost_between == [(90_000, 1000 * (-(-at // 1000) - 1))]
    assert run.counts.takeovers[-1] == TakeoverCounts(B, at, 60_000, len(lost), 30, 0, 0)
    values = Counter(v for _, _, (_, v) in all_rows(found).elements())
    assert values == Counter({v: 1 + (60 <= v < 90) for v in range(300) if v not in lost})
    assert all(p.node == B for p in found if p.replayed)


def test_a_queue_that_is_too_small() -> None:
    batch = feed(SECONDS, seed=0)
    run = lane(Kill(90_000, A), pair=Pair(queue=10))
    run.step(batch)
    (takeover,) = run.report.takeovers[1:]
    assert takeover.replayed == Spans((60, 70))
    assert takeover.missing == Spans((70, 90))
    assert run.report.unqueued_events[Loss.FULL] == Spans((10, 60), (70, 90))


def test_both_down() -> None:
    """The first to come back has the last revision, and no queue."""
    run = lane(Kill(90_000, A), Kill(91_000, B), Restart(150_000, B), plan=STATEFUL)
    run.step(feed(SECONDS))
    last = run.report.takeovers[-1]
    assert (last.node, last.at, last.revision) == (B, 150_000, 60_000)
    assert last.state_events == Spans((0, 60))
    assert last.missing == Spans((60, 90))
    assert run.report.lost_events == {Loss.NOBODY: Spans((90, 150))}


def test_a_node_that_is_back_before_it_is_missed_has_lost_what_came_since_the_revision() -> None:
    """It is active at once and has the last revision; the queue of the other one is for takeovers only. It counts its
    messages from 1 again, so the other one takes them for old ones until their numbers pass those it was told of."""
    run = lane(Kill(90_000, A), Restart(95_000, A), Kill(120_000, A))
    run.step(feed(SECONDS, seed=0))
    start, takeover = run.report.takeovers[1:]
    assert (start.node, start.state_events, start.missing) == (A, Spans((0, 60)), Spans((60, 90)))
    assert Loss.STALE in run.report.unqueued_events
    assert takeover.node == B
    assert takeover.missing


def test_the_balancer_may_send_to_the_passive_node() -> None:
    run = lane(pair=Pair(balancer="round_robin"))
    found = run.step(feed(SECONDS, seed=0))
    assert len(run.report.lost_events[Loss.PASSIVE]) == 150
    assert sum(all_rows(found).values()) == 150


def test_two_active_nodes_each_see_a_part() -> None:
    """The active one does not reach the database, the clients reach both nodes."""
    for seed in range(20):
        run = lane(Cut(70_000, A, DATABASE, until=280_000), pair=Pair(balancer="round_robin"), plan=STATEFUL, seed=seed)
        found = run.step(feed(SECONDS))
        both = {p.node for p in found if not p.replayed and p.outputs.streams}
        if both == {A, B} and any(t.node == B for t in run.report.takeovers):
            return
    raise AssertionError("no seed has two active nodes")


def test_without_the_database_there_is_no_revision_and_the_queue_is_trimmed_nonetheless() -> None:
    run = lane(Cut(58_000, A, DATABASE, until=62_000), Kill(90_000, A))
    run.step(feed(SECONDS, seed=0))
    takeover = run.report.takeovers[-1]
    assert takeover.revision == 0
    assert takeover.missing == Spans((0, 60))


# ------------------------------------------------------------------------------------------------------- slow links


def test_a_revision_counts_once_it_is_in_the_database() -> None:
    """That of 1:00 is there at 1:10. A node that dies before leaves the first one, and the queue that belongs to it."""
    slow = Slow(50_000, A, DATABASE, 10_000, until=80_000)
    for dies, revision in ((65_500, 0), (71_500, 60_000)):
        run = lane(slow, Kill(dies, A))
        run.step(feed(SECONDS, seed=0))
        takeover = run.report.takeovers[-1]
        assert (takeover.node, takeover.revision) == (B, revision)
        assert takeover.state_events == Spans((0, 60 if revision else 0)) or takeover.replayed
        assert run.report.revisions[A] == (1 if revision == 0 else 2)


def test_events_that_come_while_a_revision_is_written_are_old_and_in_no_revision() -> None:
    """The message about a revision is numbered as it is there, so the other node lets go of what came meanwhile."""
    run = lane(Slow(50_000, A, DATABASE, 10_000, until=80_000), Kill(90_000, A))
    run.step(feed(SECONDS, seed=0))
    takeover = run.report.takeovers[-1]
    assert takeover.revision == 60_000
    assert takeover.replayed == Spans((70, 90))
    assert takeover.missing == Spans((60, 70))


def test_a_node_writes_one_revision_at_a_time() -> None:
    """Every 10 s with 25 s each: one begins as the other is there. That of 1:10 is there with the next."""
    pair = Pair(persist=10_000, coordination=Coordination(retries=50))
    run = lane(Slow(15_000, A, DATABASE, 25_000, until=94_000), pair=pair)
    made = []
    for second in SECONDS[:120]:
        run.step(feed([second]))
        assert run.revision is not None
        made.append(run.revision.at)
    assert sorted(set(made)) == [0, 10_000, 20_000, 45_000, 95_000, 100_000, 110_000]
    assert made[44:46] == [10_000, 20_000]


def test_a_node_that_stands_still_ends_its_writing_as_it_goes_on() -> None:
    run = lane(Slow(50_000, A, DATABASE, 5_000, until=70_000), Pause(62_000, A, until=72_000), plan=STATEFUL)
    batch = feed(SECONDS)
    run.step(between(batch, 0, 71))
    assert run.revision is not None
    assert run.revision.at == 0
    run.step(between(batch, 71, 74))
    assert run.revision.at == 60_000


def test_what_is_under_way_arrives_after_the_sender_has_died() -> None:
    """All 30 events since the revision, though those of the last 20 s arrive late."""
    run = lane(Slow(50_000, A, B, 20_000, until=200_000), Kill(90_000, A))
    run.step(feed(SECONDS, seed=0))
    takeover = run.report.takeovers[-1]
    assert takeover.replayed == Spans((60, 90))
    assert not takeover.missing
    assert Loss.UNDERWAY not in run.report.unqueued_events


def test_what_is_under_way_as_the_other_node_takes_over_is_lost() -> None:
    run = lane(Slow(50_000, A, B, 45_000, until=200_000), Kill(90_000, A))
    run.step(feed(SECONDS, seed=0))
    takeover = run.report.takeovers[-1]
    arrived = (takeover.at - 45_000) // 1000 + 1
    assert takeover.replayed == Spans((60, arrived))
    assert takeover.missing == run.report.unqueued_events[Loss.UNDERWAY] == Spans((arrived, 90))
    assert not takeover.twice


def test_a_node_that_hears_of_a_revision_too_late_replays_what_is_in_it() -> None:
    """The message about the revision of 1:00 is behind the events that it is about."""
    run = lane(Slow(50_000, A, B, 55_000, until=200_000), Kill(61_500, A))
    run.step(feed(SECONDS, seed=0))
    takeover = run.report.takeovers[-1]
    arrived = (takeover.at - 55_000) // 1000 + 1
    assert (takeover.revision, takeover.at < 115_000) == (60_000, True)
    assert takeover.replayed == takeover.twice == Spans((0, max(50, arrived)))
    assert run.report.unqueued_events[Loss.UNDERWAY] == Spans((max(50, arrived), 62))


@pytest.mark.parametrize(
    ("fault", "lost"),
    [
        (Kill(61_000, B), Spans((51, 61))),
        (Cut(61_000, A, B, until=70_000), Spans((52, 61))),
        (Pause(61_000, B, until=70_000), Spans()),
    ],
)
def test_what_breaks_a_link_loses_what_is_under_way(fault: Fault, lost: Spans) -> None:
    """A node that stands still finds what has arrived meanwhile."""
    run = lane(Slow(50_000, A, B, 10_000, until=60_000), fault, pair=Pair(persist=1_000_000))
    run.step(feed(SECONDS, seed=0))
    lost_under_way = run.report.unqueued_events.get(Loss.UNDERWAY, Spans())
    assert lost_under_way.without(lost) == Spans()
    assert bool(lost_under_way) == bool(lost)


def test_messages_keep_their_order_as_a_link_is_fast_again() -> None:
    """What is sent afterwards waits for what is under way, and the queue has it behind that."""
    run = lane(Slow(10_000, A, B, 20_000, until=15_000), pair=Pair(persist=1_000_000))
    batch = feed(SECONDS, seed=0)
    run.step(between(batch, 0, 21))
    assert run.servers[B].queue_events == 10
    run.step(between(batch, 21, 32))
    assert run.servers[B].queue_events == 12
    run.step(between(batch, 32, 36))
    assert run.servers[B].queue_events == 36
    held = [int(n) for q in run.servers[B].queue for n in q.first[q.mask]]
    assert held == list(range(36))


def test_revisions_between_steps_that_are_far_apart() -> None:
    """From 0:10 on one after the other, 70 s each: that of 3:40 is the last to be there as the node dies at 5:50."""
    pair = Pair(coordination=Coordination(heartbeat=100_000))
    run = lane(Slow(5_000, A, DATABASE, 70_000, until=345_000), Kill(350_000, A), pair=pair)
    run.step(feed([10_000, 310_000, *range(400_000, 1_500_000, 10_000)]))
    assert run.report.takeovers[-1].revision == 220_000


def test_what_arrives_while_no_event_comes() -> None:
    run = lane(Slow(5_000, A, B, 10_000, until=200_000))
    run.step(feed(SECONDS[:20]))
    assert run.servers[B].queue_events == 10
    run.step(InputBatch(np.array([40_000], np.int64)))
    assert run.servers[B].queue_events == 20


PATIENT = Coordination(heartbeat=30_000, retries=2)


@pytest.mark.parametrize(
    ("pair", "faults"),
    [
        (Pair(), [Slow(50_000, A, DATABASE, 10_000, until=80_000), Kill(75_000, A)]),
        (Pair(), [Slow(50_000, A, DATABASE, 10_000, until=61_000), Kill(68_000, A)]),
        (
            Pair(persist=10_000, coordination=PATIENT),
            [Slow(15_000, A, DATABASE, 25_000, until=94_000), Kill(72_000, A)],
        ),
        (Pair(persist=1_000_000), [Slow(10_000, A, B, 20_000, until=15_000), Kill(31_000, A)]),
        (Pair(), [Slow(50_000, A, B, 45_000, until=200_000), Kill(90_000, A)]),
        (
            Pair(coordination=PATIENT),
            [Slow(50_000, A, DATABASE, 5_000, until=70_000), Pause(62_000, A, until=72_000), Kill(90_000, A)],
        ),
    ],
)
@pytest.mark.parametrize("each", [THIRDS, thorough(1)])
def test_what_is_under_way_is_part_of_a_state(pair: Pair, faults: list[Fault], each: int) -> None:
    """Restored after every step, or after each third one, members put out what the pair does that takes all at once."""
    batch = feed(SECONDS[:200])
    expected = {node: Counter[Row]() for node in (A, B)}
    whole = lane(*faults, pair=pair, plan=STATEFUL)
    for p in whole.step(batch):
        expected[p.node] += rows(p.outputs)
    assert len(whole.report.takeovers) == 2
    assert expected[B]
    groups = NodeGroups((Scenario(pair, 1),))
    for node in (A, B):
        member, found = PairMember(groups, node, STATEFUL, lambda: NodeEngine(STATEFUL)), Counter[Row]()
        for fault in faults:
            member.happen(fault)
        for i in range(len(batch.clock)):
            found += rows(member.step(between(batch, i, i + 1)))
            if i % each == third() % each:
                state = member.snapshot()
                member = PairMember(groups, node, STATEFUL, lambda: NodeEngine(STATEFUL))
                member.restore(state)
        assert found == expected[node]


# -------------------------------------------------------------------------------------------------------------- laws


slow_links = st.lists(
    st.builds(
        lambda at, ends, by, span: Slow(at, *ends, by, at + span),
        st.integers(1_000, 300_000),
        st.sampled_from([(A, DATABASE), (B, DATABASE), (A, B)]),
        st.sampled_from([1, 700, 3_000, 9_000, 20_000, 50_000]),
        st.integers(1, 200_000),
    ),
    max_size=4,
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Schedule, InputBatch, int]:
    pair = Pair(
        persist=draw(st.sampled_from([7_000, 60_000])),
        queue=draw(st.sampled_from([5, 30, 20_000])),
        balancer=draw(st.sampled_from(["failover", "round_robin"])),
    )
    seed = draw(st.integers(0, 10**9))
    schedule = random_schedule(pair, seed, (1_000, 400_000), rate=draw(st.sampled_from([1.0, 5.0, 20.0])))
    schedule = schedule.plus(*draw(slow_links))
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.choice([0, 1, 500, 2_000, 9_000], draw(st.integers(1, 120))))
    return schedule, feed(times.tolist(), draw(st.integers(1, 100))), draw(st.integers(0, 1000))


@given(runs())
@settings(max_examples=SCHEDULES, deadline=None)
def test_without_state_the_report_is_the_difference_to_one_node(run: tuple[Schedule, InputBatch, int]) -> None:
    """Each output is an event's: it is put out once for the node that took it, and once for each replay."""
    schedule, batch, seed = run
    numbered = replace(batch.rows["S"], columns=[batch.rows["S"].columns[0], pa.array(np.arange(len(batch.clock)))])
    batch = InputBatch(batch.clock, {"S": numbered})
    pair = PairLane(Scenario(schedule.pair, seed), lambda: NodeEngine(EACH), schedule.faults)
    values = Counter(v for _, _, (_, v) in all_rows(pair.step(batch)).elements())
    report = pair.report
    lost = [n for spans in report.lost_events.values() for first, end in spans for n in range(first, end)]
    assert len(lost) == len(set(lost))
    expected = Counter({n: 1 for n in range(len(batch.clock)) if n not in set(lost)})
    for takeover in report.takeovers:
        expected.update(n for first, end in takeover.replayed for n in range(first, end))
    assert values == expected
    assert report.taken_events == Spans(*((n, n + 1) for n in range(len(batch.clock)) if n not in set(lost)))


@given(runs(), st.lists(st.integers(1, 40), max_size=8))
@settings(max_examples=SCHEDULES, deadline=None)
def test_cuts_into_batches_change_nothing(run: tuple[Schedule, InputBatch, int], sizes: list[int]) -> None:
    schedule, batch, seed = run
    whole = PairLane(Scenario(schedule.pair, seed), lambda: NodeEngine(STATEFUL), schedule.faults)
    parts = PairLane(Scenario(schedule.pair, seed), lambda: NodeEngine(STATEFUL), schedule.faults)
    expected = all_rows(whole.step(batch))
    found: Counter[Row] = Counter()
    at = 0
    for size in [*sizes, len(batch.clock)]:
        found += all_rows(parts.step(between(batch, at, min(at + size, len(batch.clock)))))
        at = min(at + size, len(batch.clock))
    assert found == expected
    assert parts.report == whole.report


@given(runs(), st.lists(st.integers(1, 40), max_size=8))
@settings(max_examples=SCHEDULES, deadline=None)
def test_members_that_are_restored_between_batches_are_the_pair(
    run: tuple[Schedule, InputBatch, int], sizes: list[int]
) -> None:
    """Each member computes the pair and puts out its own part; faults come into the stream of entries as they do."""
    schedule, batch, seed = run
    whole = PairLane(Scenario(schedule.pair, seed), lambda: NodeEngine(STATEFUL), schedule.faults)
    expected = {node: Counter[Row]() for node in (A, B)}
    for p in whole.step(batch):
        expected[p.node] += rows(p.outputs)

    def member(node: str) -> PairMember:
        return PairMember(NodeGroups((Scenario(schedule.pair, seed),)), node, STATEFUL, lambda: NodeEngine(STATEFUL))

    members = {node: member(node) for node in (A, B)}
    for m in members.values():
        for fault in schedule.faults:
            m.happen(fault)
    found = {node: Counter[Row]() for node in (A, B)}
    at = 0
    for size in [*sizes, len(batch.clock)]:
        part = between(batch, at, min(at + size, len(batch.clock)))
        at = min(at + size, len(batch.clock))
        for node, m in members.items():
            found[node] += rows(m.step(part))
            members[node] = member(node)
            members[node].restore(m.snapshot())
    assert found == expected
    assert all(m.steps == 1 + len(batch.clock) for m in members.values())
    report = whole.report
    assert whole.counts.taken == len(report.taken_events)
    assert whole.counts.lost == {why.value: len(spans) for why, spans in report.lost_events.items()}
    assert whole.counts.revisions == report.revisions.total()
    counted = [(t.node, t.at, t.replayed, t.missing, t.doubled) for t in whole.counts.takeovers]
    assert counted == [
        (t.node, t.at, len(t.replayed), len(t.missing), len(t.twice)) for t in report.takeovers
    ]  # fmt: skip
    for m in members.values():
        assert replace(m.lane.counts, losing=whole.counts.losing) == whole.counts
        assert m.lane.report.taken_events == report.taken_events
        assert MemberFigures.of(json.loads(json.dumps(m.figures().as_dict()))) == m.figures()


class Buffering(NodeEngine):
    """An engine that notes its clock as it was restored."""

    clocks: ClassVar[list[int]] = []

    def restore(self, blob: bytes) -> None:
        super().restore(blob)
        self.clocks.append(self.now)


@given(runs())
@settings(max_examples=SCHEDULES, deadline=None)
def test_a_state_is_made_of_the_events_that_the_report_says(run: tuple[Schedule, InputBatch, int]) -> None:
    """Each node's outputs are those of an engine that takes the events that its state holds, and then its own."""
    schedule, batch, seed = run
    Buffering.clocks.clear()
    pair = PairLane(Scenario(schedule.pair, seed), lambda: Buffering(STATEFUL), schedule.faults)
    models: dict[str, NodeEngine] = {}
    for i in range(len(batch.clock)):
        step = between(batch, i, i + 1)
        known = len(pair.report.takeovers)
        published = pair.step(step)
        expected: dict[str, Counter[Row]] = {A: Counter(), B: Counter()}
        for takeover in pair.report.takeovers[known:]:
            if takeover.twice:
                return
            model = models[takeover.node] = NodeEngine(STATEFUL)
            for n in numbers(takeover.state_events.without(takeover.replayed)):
                model.step(between(batch, n, n + 1))
            if takeover.revision is not None and (clock := Buffering.clocks.pop(0)):
                model.step(InputBatch(np.array([clock], np.int64)))
            for n in numbers(takeover.replayed):
                expected[takeover.node] += rows(model.step(between(batch, n, n + 1)))
        for p in published:
            if not p.replayed:
                took = i in pair.report.taken_events and i in pair.servers[p.node].state_events
                expected[p.node] += rows(models[p.node].step(step if took else InputBatch(step.clock)))
        for node in (A, B):
            found = all_rows([p for p in published if p.node == node])
            if any(p.node == node and not p.replayed for p in published):
                assert found == expected[node]
            else:
                assert found == expected[node]


def numbers(spans: Spans) -> list[int]:
    return [n for first, end in spans for n in range(first, end)]


@pytest.mark.parametrize("balancer", ["failover", "round_robin"])
def test_clients_that_reach_nobody(balancer: str) -> None:
    cuts = [Cut(10_000, node, CLIENTS, until=20_000) for node in (A, B)]
    run = lane(*cuts, pair=Pair(balancer=balancer))
    run.step(feed(SECONDS, seed=0))
    assert run.report.lost_events[Loss.NOBODY] == Spans((10, 20))


def test_a_pause_keeps_the_state() -> None:
    run = lane(Pause(60_500, A, until=75_500), plan=STATEFUL)
    found = run.step(feed(SECONDS))
    assert run.report.lost_events == {Loss.NOBODY: Spans((61, 76))}
    assert len(run.report.takeovers) == 1
    model = NodeEngine(STATEFUL)
    batch = feed(SECONDS)
    expected = rows(model.step(between(batch, 0, 61))) + rows(model.step(between(batch, 76, 300)))
    assert all_rows(found) == expected


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10))),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10))),
)
def test_spans_are_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    one, other = (Spans(*((f, f + n) for f, n in given)) for given in (a, b))
    sets = [{i for f, n in given for i in range(f, f + n)} for given in (a, b)]

    assert set(numbers(one)) == sets[0]
    assert len(one) == len(sets[0])
    assert set(numbers(one.without(other))) == sets[0] - sets[1]
    assert set(numbers(one.common(other))) == sets[0] & sets[1]
    assert all(e < f for (_, e), (f, _) in zip(list(one), list(one)[1:], strict=False))
    assert all((i in one) == (i in sets[0]) for i in range(60))
