"""What a distributed app shows of its nodes, from what its member reports."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.app.views.cluster_view import ClusterSnapshot, ClusterState, LinkState
from sparkstream_nb.app.views.resource_view import ResourceAdapter
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.journal.result_rows import NodeReport
from sparkstream_nb.lab.cluster_shown import cluster_html, cluster_text, timeline_svg
from sparkstream_nb.nodes.batches import between
from sparkstream_nb.nodes.distributed import Distributed, apps_of
from sparkstream_nb.nodes.distributed_member import DistributedMember
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.distributed.distribute import distribute
from sparkstream_nb.simulation.faults import Cut, Fault, Kill, Pause
from sparkstream_nb.simulation.resources import ResourceCluster, ResourceNode, ResourceScenario
from sparkstream_nb.simulation.timeline import Role

START = 1_717_236_000_000  # 2024-06-01 10:00 UTC
PLAN = compile_app(
    "define stream S (v long); @dist(execGroup='a') from S select v insert into M;"
    "@dist(execGroup='b') from M#window.length(3) select sum(v) as t insert into O;"
)
SPLIT = distribute(PLAN, "<A>")
CLUSTER = ResourceCluster(tuple(ResourceNode(f"worker-{i}") for i in (1, 2)))
ALL = InputBatch(
    START + 1000 * np.arange(200),
    {"S": StreamRows(np.arange(200), START + 1000 * np.arange(200), [pa.array(np.arange(200))])},
)


def state(*faults: Fault, cuts: tuple[int, ...] = (), until: int = 200) -> ClusterState:
    """The nodes after so many seconds, with restarts of the worker at `cuts`."""
    app = Distributed(SPLIT, ResourceScenario(CLUSTER, apps_of(SPLIT), 1, faults))

    def new() -> DistributedMember:
        return DistributedMember(PLAN, app, lambda plan: NodeEngine(plan, outputs=OutputOptions(chunks=True)))

    member = new()
    for first, end in zip([0, *cuts], [*cuts, until], strict=True):
        member.step(between(ALL, first, end))
        blob, member = member.snapshot(), new()
        member.restore(blob)
    told = json.loads(json.dumps(member.stats()))
    return ResourceAdapter(app).state({"worker-1": NodeReport("worker-1", 1.0, False, 1, told)})


def roles(shown: ClusterState) -> dict[str, Role]:
    return {n.name: n.role for n in shown.nodes}


def test_nodes_apps_topics_and_log() -> None:
    shown = state(Kill(90_000, "worker-2"))
    assert roles(shown) == {
        "manager-1": Role.ACTIVE,
        "manager-2": Role.PASSIVE,
        "worker-1": Role.ACTIVE,
        "worker-2": Role.DOWN,
    }
    assert {n.name: n.runs for n in shown.nodes if n.runs} == {"worker-1": ("<A>-b-1", "<A>-a-1")}
    assert [(g.name, g.taken, g.revisions) for g in shown.groups] == [("<A>-a-1", 200, 3), ("<A>-b-1", 200, 3)]
    assert [(t.name, t.writers, t.waiting) for t in shown.topics] == [
        ("<A>.S", ("outside",), 0),
        ("<A>.M", ("<A>-a",), 0),
    ]
    (begun,) = [h for h in shown.log if "begins" in h.text]
    assert "missing from its state" in begun.text
    assert {s.node for s in shown.spans if s.first == START} == set(roles(shown))
    snapshot = ClusterSnapshot("<A>", "distributed", shown)
    assert "gives worker-2 up: its last heartbeat is" in cluster_text(snapshot, 20)
    for page in (cluster_html(snapshot, 20), timeline_svg(snapshot)):
        assert "<A>" not in page


@pytest.mark.parametrize("cuts", [(50,), (91, 95, 120)])
def test_cuts_and_restarts_show_the_same(cuts: tuple[int, ...]) -> None:
    assert state(Kill(90_000, "worker-2"), cuts=cuts) == state(Kill(90_000, "worker-2"))


def test_what_waits_and_what_can_be_done() -> None:
    shown = state(Pause(190_000, "worker-2", 230_000), Cut(190_000, "worker-1", "managers", 230_000))
    nodes = {n.name: n for n in shown.nodes}
    assert (nodes["worker-2"].role, nodes["worker-2"].until) == (Role.HALTED, START + 230_000)
    assert sum(t.waiting for t in shown.topics) == 10
    cut = [k for k in shown.links if k.state is LinkState.CUT]
    assert {frozenset({k.a, k.b}) for k in cut} == {frozenset({"worker-1", m}) for m in CLUSTER.managers}
    can = {(n.name, a.other or a.kind): a.refused for n in shown.nodes for a in n.actions}
    assert can["worker-2", "kill"] == ""
    assert can["worker-2", "restart"] == "worker-2 is up"
    assert can["worker-2", "pause"] == "worker-2 stands still"
    assert can["worker-1", "managers"] == "worker-1 is cut off from managers"
    assert can["manager-1", "database"] == ""
    assert ("manager-1", "managers") not in can
    early = state(Kill(150_000, "manager-1"), until=100)
    assert [str(f) for f in early.ahead] == ["kill manager-1"]
    nothing = ResourceAdapter(Distributed(SPLIT, ResourceScenario(CLUSTER, apps_of(SPLIT), 1))).state({})
    assert {a.refused for n in nothing.nodes for a in n.actions} == {"no event was received yet"}
    assert "no event was received yet" in cluster_text(ClusterSnapshot("A", "distributed", nothing), 5)


def test_a_resource_node_without_a_part_is_idle() -> None:
    more = ResourceCluster(tuple(ResourceNode(f"worker-{i}") for i in range(1, 5)))
    app = Distributed(SPLIT, ResourceScenario(more, apps_of(SPLIT), 1, ()))
    member = DistributedMember(PLAN, app, lambda plan: NodeEngine(plan, outputs=OutputOptions(chunks=True)))
    member.step(between(ALL, 0, 60))
    told = json.loads(json.dumps(member.stats()))
    shown = ResourceAdapter(app).state({"worker-1": NodeReport("worker-1", 1.0, False, 1, told)})
    found = roles(shown)
    assert (found["manager-1"], found["manager-2"]) == (Role.ACTIVE, Role.PASSIVE)
    assert {n.name for n in shown.nodes if n.role is Role.IDLE} == {
        n.name for n in shown.nodes if n.name.startswith("worker") and not n.runs
    }
    assert sum(role is Role.IDLE for role in found.values()) == 2
    assert "· idle" in cluster_text(ClusterSnapshot("<A>", "distributed", shown), 5)
