"""Partial apps of a fully distributed deployment: what they put out, against one node that takes everything, and
against the events that the report says each state is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.errors import SiddhiBindError, SiddhiRuntimeError
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.messaging import Messaging
from sparkstream_nb.nodes.batches import between
from sparkstream_nb.nodes.distributed import Distributed, DistributedLane, apps_of
from sparkstream_nb.nodes.instance import InstanceLane
from sparkstream_nb.nodes.pair import Published
from sparkstream_nb.nodes.spans import Spans
from sparkstream_nb.plan import bind_retrieval, compile_app
from sparkstream_nb.plan.distributed.distribute import distribute
from sparkstream_nb.plan.distributed.partial_apps import without_sources
from sparkstream_nb.plan.nodes import Plan, Retrieval
from sparkstream_nb.simulation.faults import Cut, Fault, Kill, Pause, Restart
from sparkstream_nb.simulation.resources import ResourceCluster, ResourceNode, ResourceScenario
from sparkstream_nb.simulation.topology import DATABASE
from tests.nodes.test_pair import Row, rows

SCHEDULES = examples(15, "SPARKSTREAM_SCHEDULES")
WORKERS = tuple(ResourceNode(f"worker-{i}") for i in (1, 2, 3))
S = "define stream S (k string, v long);"
ONE = S + "@dist(execGroup='all') from S select k, v insert into O;"
KEYED = (
    S
    + """
@dist(execGroup='keyed', parallel='2') partition with (k of S) begin
  from S select k, v, sum(v) as total insert into O;
end;
"""
)
CHAIN = (
    S
    + """
@dist(execGroup='first') from S[v > 20] select k, v insert into M;
@dist(execGroup='sums', parallel='2') partition with (k of M) begin
  @info(name = 'sum') from M#window.length(3) select k, sum(v) as total insert into Sums;
end;
@dist(execGroup='falls') from every e1=M[v > 70] -> e2=M[k == e1.k and v < 40] within 1 min
select e1.v as high, e2.v as low insert into Falls;
@dist(execGroup='counts') from Sums#window.time(20 sec) select count() as n, max(total) as most
insert all events into Counts;
@dist(execGroup='late') from S#window.timeBatch(15 sec) select k, count() as n group by k insert into Batches;
@dist(execGroup='sums-of-batches') from Batches#window.length(4) select sum(n) as n insert into Last;
"""
)
TURNS = (
    S
    + """
@dist(execGroup='first') from S[v >= 0] select k, v insert into M;
@dist(execGroup='turns', parallel='2') from M[v >= 0] select k, v insert into O;
"""
)
NATS = ResourceCluster(WORKERS, messaging=Messaging.NATS)
SECONDS = [1000 * s for s in range(300)]


def feed(times: Sequence[int], seed: int = 1) -> InputBatch:
    """An event at each time, each a step; the values are the events' numbers where the seed is 0."""
    rng = np.random.default_rng(seed)
    n = len(times)
    keys = pa.array([f"k{i}" for i in rng.integers(0, 3, n)])
    values = pa.array(np.arange(n) if seed == 0 else rng.integers(0, 100, n))
    ts = np.array(times, np.int64)
    return InputBatch(ts, {"S": StreamRows(np.arange(n), ts, [keys, values])})


def lane(
    text: str, *faults: Fault, cluster: ResourceCluster | None = None, seed: int = 1, rate: float = 0.0
) -> DistributedLane:
    plan, cluster = compile_app(text), cluster or ResourceCluster(WORKERS)
    split = distribute(plan, "A", cluster.messaging)
    scenario = ResourceScenario(cluster, apps_of(split), seed, faults, rate)
    return DistributedLane(plan, Distributed(split, scenario), engine)


def engine(plan: Plan) -> NodeEngine:
    return NodeEngine(plan, outputs=OutputOptions(chunks=True))


def of(run: DistributedLane, name: str) -> InstanceLane:
    return next(i.lane for i in run.instances if i.lane.name == f"A-{name}")


def put_out(published: Sequence[Published]) -> Counter[Row]:
    return sum((rows(p.outputs) for p in published), Counter[Row]())


def truth(text: str, batch: InputBatch) -> Counter[Row]:
    return rows(NodeEngine(compile_app(text)).step(batch))


@pytest.mark.parametrize("text", [ONE, KEYED, CHAIN])
def test_without_faults_it_is_one_node(text: str) -> None:
    batch = feed(SECONDS)
    assert put_out(lane(text).step(batch)) == truth(text, batch)


def test_a_timer_reaches_the_next_group_before_the_event_that_comes_later() -> None:
    """The batch of 15 s ends at 15 s, though the next event of the app comes at 100 s."""
    text = (
        S
        + """
    @dist(execGroup='a') from S#window.timeBatch(15 sec) select count() as n insert into M;
    @dist(execGroup='b') from M#window.time(10 sec) select sum(n) as n insert all events into O;
    """
    )
    batch = feed([0, 1_000, 100_000])
    assert put_out(lane(text).step(batch)) == truth(text, batch)
    assert (25_000, (0,)) in {(at, v) for s, at, v in truth(text, batch) if s == "O"} or truth(text, batch)


def test_a_dead_node_s_app_goes_on_elsewhere_and_finds_what_was_published_meanwhile() -> None:
    """The node dies at 1:30. Its revision is of 1:00: its subscriptions continue where they were, so the state lacks 30
    events; what came in till it is deployed again waits in the topic. Nothing is lost."""
    run = lane(ONE)
    run.step(feed([0]))
    (node,) = of(run, "all-1").runs
    run = lane(ONE, Kill(90_000, node))
    found = run.step(feed(SECONDS, seed=0))
    report = of(run, "all-1").report
    (start, again) = report.beginnings
    assert (start.node, start.revision, again.revision) == (node, None, 60_000)
    assert again.node != node
    assert 96_000 <= again.at <= 102_000  # three looks of the leader, a heartbeat that is 2 × 2 s old
    assert again.state_events == Spans((0, 60), (90, -(-again.at // 1000)))
    assert again.missing == Spans((60, 90))
    assert again.waiting == Spans((90, -(-again.at // 1000)))
    assert not again.again
    assert put_out(found) == truth(ONE, feed(SECONDS, seed=0))


def test_what_comes_by_key_is_processed_again_from_the_revision_on() -> None:
    run = lane(KEYED)
    run.step(feed([0]))
    lanes = {n: of(run, f"keyed-{n}") for n in (1, 2)}
    (node,) = lanes[1].runs
    run = lane(KEYED, Kill(90_000, node))
    batch = feed(SECONDS, seed=0)
    found = put_out(run.step(batch))
    true = truth(KEYED, batch)
    again = of(run, "keyed-1").report.beginnings[1]
    assert again.revision == 60_000
    assert not again.missing
    assert len(again.again) == sum((found - true).values()) > 0
    assert not true - found


def test_over_nats_every_source_begins_at_the_revision() -> None:
    """The node dies at 1:30, 30 s after its revision: a subscription of NATS Streaming begins there, one of Kafka's
    where its group was. Nothing is missing from the state, and what came since is put out twice."""
    run = lane(ONE, cluster=NATS)
    run.step(feed([0]))
    (node,) = of(run, "all-1").runs
    run = lane(ONE, Kill(90_000, node), cluster=NATS)
    found, true = put_out(run.step(feed(SECONDS, seed=0))), truth(ONE, feed(SECONDS, seed=0))
    again = of(run, "all-1").report.beginnings[1]
    assert (again.revision, again.missing, again.again) == (60_000, Spans(), Spans((60, 90)))
    assert found - true == Counter({row: n for row, n in true.items() if 60_000 <= row[1] < 90_000})
    assert not true - found


def test_over_nats_an_app_without_a_revision_begins_at_the_first_event() -> None:
    run = lane(ONE, cluster=NATS)
    run.step(feed([0]))
    (node,) = of(run, "all-1").runs
    run = lane(ONE, Kill(30_000, node), cluster=NATS)
    run.step(feed(SECONDS, seed=0))
    again = of(run, "all-1").report.beginnings[1]
    assert (again.revision, again.missing, again.again) == (None, Spans(), Spans((0, 30)))


@pytest.mark.parametrize("cuts", [[], [1], [7, 50, 51]])
def test_over_nats_instances_take_turns(cuts: list[int]) -> None:
    """Each message goes to one member of the queue group; Kafka gives the only partition to the first."""
    batch = feed(SECONDS)
    run, found = lane(TURNS, cluster=NATS), Counter[Row]()
    for first, end in zip([0, *cuts], [*cuts, len(SECONDS)], strict=True):
        found += put_out(run.step(between(batch, first, end)))
    assert found == truth(TURNS, batch)
    assert [len(of(run, f"turns-{n}").report.taken_events) for n in (1, 2)] == [150, 150]
    kafka = lane(TURNS)
    assert put_out(kafka.step(batch)) == found
    assert [len(of(kafka, f"turns-{n}").report.taken_events) for n in (1, 2)] == [300, 0]


def test_turns_over_nats_go_on_after_a_restart() -> None:
    batch = feed(SECONDS)
    whole, run = lane(TURNS, cluster=NATS), lane(TURNS, cluster=NATS)
    expected = in_order(whole.step(batch))
    found = in_order(run.step(between(batch, 0, 101)))
    state = run.state()
    run = lane(TURNS, cluster=NATS)
    run.load(state)
    assert found + in_order(run.step(between(batch, 101, 300))) == expected


def test_a_node_that_is_cut_off_runs_its_app_beside_the_one_that_the_manager_started() -> None:
    """The manager gives it up after some 8 s; the node itself notices at its next try, after ten."""
    run = lane(KEYED)
    run.step(feed([0]))
    (node,) = of(run, "keyed-1").runs
    run = lane(KEYED, Cut(90_000, node, "managers", 150_000))
    found = run.step(feed(SECONDS, seed=0))
    told = [str(h) for h in run.timeline(300_000).happenings]
    assert any("reaches no manager" in t for t in told)
    report = of(run, "keyed-1").report
    assert report.several
    assert len({p.node for p in found}) > 1
    missing = truth(KEYED, feed(SECONDS, seed=0)) - put_out(found)
    assert not missing


def test_a_leader_that_dies_takes_every_app_down_with_it() -> None:
    """Nodes that do not find a leader wait ten seconds, which is longer than they may be without one."""
    run = lane(CHAIN, Kill(90_000, "manager-1"))
    run.step(feed(SECONDS))
    assert all(len(i.lane.report.beginnings) > 1 for i in run.instances)
    told = [str(h) for h in run.timeline(300_000).happenings]
    assert any("manager-2 leads" in t for t in told)


def test_fewer_nodes_than_the_minimum_leave_copies_that_nobody_ends() -> None:
    cluster = ResourceCluster(WORKERS, minimum=3)
    run = lane(CHAIN, cluster=cluster)
    run.step(feed([0]))
    lost = next(iter(of(run, "first-1").runs))
    run = lane(CHAIN, Kill(90_000, lost), cluster=cluster)
    run.step(feed(SECONDS))
    assert not of(run, "first-1").runs
    elsewhere = [i.lane for i in run.instances if i.lane.report.beginnings[0].node != lost]
    assert elsewhere
    assert all(lane.runs for lane in elsewhere)


def test_sources_of_the_app_need_a_receiver() -> None:
    text = (
        "@source(type='http', @map(type='json')) "
        + S
        + """
    @dist(execGroup='a') from S select k, v insert into M;
    @dist(execGroup='b') from M select k, v insert into O;
    """
    )
    plan = compile_app(text)
    split = distribute(plan, "A")

    def started(*workers: ResourceNode) -> DistributedLane:
        scenario = ResourceScenario(ResourceCluster(workers), apps_of(split), 1)
        return DistributedLane(without_sources(plan), Distributed(split, scenario), engine)

    run = started(*WORKERS)
    assert not run.step(feed(SECONDS))
    assert of(run, "a-1").report.lost_events == Spans((0, 300))
    assert any("lets the app wait" in str(h) for h in run.timeline(300_000).happenings)
    run = started(*WORKERS, ResourceNode("receiver-1", receiver=True))
    found = run.step(feed(SECONDS))
    assert {p.node for p in found if "M" in p.outputs.streams} == {"receiver-1"}
    assert sum(n for (s, *_), n in put_out(found).items() if s == "O") == 300


@pytest.mark.parametrize(
    "text",
    [
        # an aggregation that looks into a table, and one over a trigger
        S + "define table U (k string); define aggregation A from S[U.k == S.k in U] select count() as n "
        "aggregate every sec; @dist(execGroup='a') from S select k insert into U;",
        S + "define trigger T at every 1 sec; define aggregation A from T select count() as n aggregate every sec;"
        "from T select triggered_time as t insert into O; @dist(execGroup='b') from T select triggered_time as t "
        "insert into P;",
        # names that groups and elements share
        S + "@info(name='passthrough') @dist(execGroup='a') from S select k, v insert into M;",
        S + "define aggregation Ag from S select count() as n aggregate every sec;"
        "@info(name='Ag') @dist(execGroup='a') from S select k, v insert into M; from M select k insert into O;",
    ],
)
def test_odd_apps_are_one_node(text: str) -> None:
    batch = feed(SECONDS[:20])
    plan = compile_app(text)
    try:
        assert put_out(lane(text).step(batch)) == truth(text, batch)
    except SiddhiBindError as refused:
        assert "in memory, and used by groups" in str(refused)  # noqa: PT017
        assert plan.tables


def test_what_an_aggregation_over_a_trigger_holds() -> None:
    aggregation = "define aggregation A from T select count() as n aggregate every sec;"
    run = lane(S + "define trigger T at every 1 sec;" + aggregation)
    run.step(feed(SECONDS[:5]))
    found = run.answer(bound(run.plan, "from A within 0L, 100000L per 'sec' select n"))
    assert [a.rows for answers in found.values() for a in answers] == [[[1]] * 4]


def bound(plan: Plan, text: str) -> Retrieval:
    return bind_retrieval(parse_on_demand(text), plan, text)


def test_tables_of_two_groups_cannot_be_asked_together() -> None:
    run = lane(
        S + "define table T (k string); define table U (k string);"
        "@dist(execGroup='a') from S select k insert into T; @dist(execGroup='b') from S select k insert into U;"
    )
    run.step(feed(SECONDS[:5]))
    assert run.answer(bound(run.plan, "from T select k"))
    for text in ("from T on (U.k == k) in U select k", "delete T on (U.k == T.k in U)"):
        with pytest.raises(SiddhiRuntimeError, match="no partial app has all of T, U"):
            run.answer(bound(run.plan, text))


def test_a_stream_that_a_group_makes_takes_what_is_sent_to_it() -> None:
    text = S + "define stream M (v long); @dist(execGroup='a') from S select v insert into M;"
    text += "@dist(execGroup='a') from M select v + 1L as w insert into O;"
    batch = feed(SECONDS[:4])
    batch.rows["M"] = StreamRows(np.array([1]), np.array([1000]), [pa.array([70])])
    del batch.rows["S"]
    assert put_out(lane(text).step(batch)) == Counter({("O", 1000, (71,)): 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "define aggregation A from S select count() as n aggregate every sec;"
            "@dist(execGroup='aggregation-A') from S select k insert into O;",
            "execGroup 'aggregation-A' has the name of a group that is made",
        ),
        (
            "define aggregation A from S select k, count() as n group by k aggregate every sec;"
            "define aggregation B from S select k, count() as n group by k aggregate every sec;"
            "partition with (k of S) begin from S as s join A as a on s.k == a.k within 0L, 9L per 'sec' "
            "select s.k as k insert into O; from S as s join B as b on s.k == b.k within 0L, 9L per 'sec' "
            "select s.k as k insert into P; end;",
            "'partition0' joins several aggregations",
        ),
        ("@dist(execGroup='a', parallel='1000') from S select k insert into O;", "parallel is a whole number from 1"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SiddhiBindError, match=message):
        lane(S + text)


def test_two_copies_answer_once() -> None:
    text = S + "define aggregation A from S select count() as n aggregate every min;"
    cut = Cut(90_000, "worker-1", "managers", 200_000)
    for node in NODES:
        run = lane(text, replace(cut, a=node))
        run.step(feed([*SECONDS[:100]]))
        if len(of(run, "aggregation-A-1").runs) == 2:
            found = run.answer(bound(run.plan, "from A within 0L, 1000000L per 'min' select n"))
            assert [len(answers) for answers in found.values()] == [1]
            return
    raise AssertionError("no node ran the aggregation")


def test_ticks_between_logged_events_do_not_depend_on_cuts() -> None:
    """A worker is away for a while in which one event comes, among ticks; its trigger fires when it is back."""
    text = S + "define trigger T at every 1 sec; from T select triggered_time as t insert into O;"
    text += "from S select v insert into P;"
    ticks = InputBatch(np.array([0, 1500, 3000, 4500, 5500, 6000, 7500, 21_000, 30_000]))
    ticks.rows["S"] = StreamRows(np.array([4]), np.array([5500]), [pa.array(["a"]), pa.array([1])])
    cluster = ResourceCluster((ResourceNode("worker-1"),), persist=None)
    faults = (Kill(1000, "worker-1"), Restart(20_000, "worker-1"))
    whole = in_order(lane(text, *faults, cluster=cluster).step(ticks))
    run, found = lane(text, *faults, cluster=cluster), Counter[tuple[str, Row]]()
    for i in range(9):
        found += in_order(run.step(between(ticks, i, i + 1)))
    assert found == whole


# ---------------------------------------------------------------------------------------------------------------- laws

NODES = [w.name for w in WORKERS]


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Fault, ...]:
    """Kills with restarts, pauses and cuts in the first five minutes."""
    faults: list[Fault] = []
    free = dict.fromkeys([*NODES, "manager-1", "manager-2"], 0)
    for _ in range(draw(st.integers(0, 4))):
        node = draw(st.sampled_from(sorted(free)))
        at = free[node] + draw(st.integers(1, 150_000))
        until = at + draw(st.integers(1, 60_000))
        free[node] = until + 1
        kinds = ["kill", "pause", "database"] + (["managers"] if node in NODES else [])
        match draw(st.sampled_from(kinds)):
            case "kill":
                faults.append(Kill(at, node))
                if draw(st.booleans()):
                    faults.append(Restart(until, node))
                else:
                    del free[node]
            case "pause":
                faults.append(Pause(at, node, until))
            case "database":
                faults.append(Cut(at, node, DATABASE, until))
            case _:
                faults.append(Cut(at, node, "managers", until))
        if not free:
            break
    return tuple(faults)


TIMES = st.lists(st.integers(1, 4_000), min_size=20, max_size=80).map(lambda gaps: np.cumsum([0, *gaps]).tolist())
CLUSTERS = st.builds(
    lambda minimum, retry, persist, messaging: ResourceCluster(
        WORKERS, minimum=minimum, retry=retry, persist=persist, messaging=messaging
    ),
    st.sampled_from([1, 2, 3]), st.sampled_from([5_000, 10_000]), st.sampled_from([None, 7_000, 60_000]),
    st.sampled_from(Messaging),
)  # fmt: skip


def in_order(published: Sequence[Published]) -> Counter[tuple[str, Row]]:
    """Who published what."""
    return sum((Counter({(p.node, r): n for r, n in rows(p.outputs).items()}) for p in published), Counter())


@settings(max_examples=SCHEDULES, deadline=None)
@given(schedules(), TIMES, CLUSTERS, st.integers(0, 5), st.lists(st.integers(0, 80), max_size=4), st.booleans())
def test_cuts_and_restarts_change_nothing(
    faults: tuple[Fault, ...], times: list[int], cluster: ResourceCluster, seed: int, cuts: list[int], restart: bool
) -> None:
    batch = feed(times)
    whole = in_order(lane(CHAIN, *faults, cluster=cluster, seed=seed).step(batch))
    run, found = lane(CHAIN, *faults, cluster=cluster, seed=seed), Counter[tuple[str, Row]]()
    ends = sorted({min(c, len(times)) for c in cuts} | {len(times)})
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        found += in_order(run.step(between(batch, first, end)))
        if restart:
            state = run.state()
            run = lane(CHAIN, *faults, cluster=cluster, seed=seed)
            run.load(state)
    assert found == whole


PAUSED = (Pause(at=1, node="worker-1", until=13459),)
AFTER_IT = [0, 4000, *range(4001, 4010), 7800, 11800, 15800]


@settings(max_examples=SCHEDULES, deadline=None)
@given(schedules(), TIMES, CLUSTERS, st.integers(0, 5), st.sampled_from([ONE, KEYED]))
@example(PAUSED, AFTER_IT, ResourceCluster(WORKERS, minimum=2, retry=10000, persist=60000), 0, KEYED)
def test_the_report_says_what_is_repeated_and_what_is_left(
    faults: tuple[Fault, ...], times: list[int], cluster: ResourceCluster, seed: int, text: str
) -> None:
    """Of apps that put out an event for each: what was taken, and what of it more than once."""
    batch = feed(times, seed=0)
    run = lane(text, *faults, cluster=cluster, seed=seed)
    found = Counter(v[1] for _, _, v in put_out(run.step(batch)).elements())
    twice = 0
    for i in run.instances:
        again = i.lane.report.several.copy()
        for begun in i.lane.report.beginnings:
            again.add_all(begun.again)
        twice += len(again)
    assert len(found) == sum(len(i.lane.report.taken_events) for i in run.instances)
    assert sum(n > 1 for n in found.values()) == twice
    if text == ONE:
        taken = of(run, "all-1").report.taken_events
        assert found.keys() == {v for first, end in taken for v in range(first, end)}


@settings(max_examples=SCHEDULES, deadline=None)
@given(schedules(), TIMES, CLUSTERS, st.integers(0, 5))
def test_a_state_is_made_of_the_events_that_the_report_names(
    faults: tuple[Fault, ...], times: list[int], cluster: ResourceCluster, seed: int
) -> None:
    """Each state is the sum of what it holds."""
    batch = feed(times, seed=0)
    text = S + "@dist(execGroup='sum') from S select sum(v) as total insert into O;"
    run = lane(text, *faults, cluster=cluster, seed=seed)
    published = [p for p in run.step(batch) if "O" in p.outputs.streams]
    for node, r in of(run, "sum-1").runs.items():
        own = [p for p in published if p.node == node]
        ends = [end for _, end in r.state_events]
        if own and ends and ends[-1] == len(times):
            total = own[-1].outputs.streams["O"].columns[0][-1].as_py()
            assert total == sum(sum(range(first, end)) for first, end in r.state_events)
