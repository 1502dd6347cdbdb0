"""What a cluster shows: roles, links, figures and log, as text, as pictures and in a page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from sparkstream_nb.app.views.cluster_view import (
    Action,
    ClusterNode,
    ClusterSnapshot,
    ClusterState,
    Link,
    LinkState,
    TopicView,
)
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.cluster_shown import cluster_html, cluster_text, timeline_svg
from sparkstream_nb.lab.drawings import cluster_map
from sparkstream_nb.lab.widgets.cluster_widget import ClusterView, describe_fault
from sparkstream_nb.simulation.faults import Cut, Kill, Pause, Restart, Scenario
from sparkstream_nb.simulation.node_groups import NodeGroups, groups_of
from sparkstream_nb.simulation.timeline import Role
from sparkstream_nb.simulation.topology import Pair

from .clusters import START, Members, cut_into, fed

A, B = "node-1", "node-2"
PAIR = NodeGroups((Scenario(Pair(), 1, (Kill(90_000, A),)),))
BARE = NodeGroups((Scenario(Pair(), 1),))


def allowed(shown: ClusterSnapshot, node: str) -> list[str]:
    """What can be done to a node now."""
    return [a.other or a.kind for a in shown.node(node).actions if not a.refused]


def test_a_failover_as_text() -> None:
    shown = fed(PAIR, 200).cluster.snapshot()
    lines = cluster_text(shown, 3).splitlines()
    assert lines[0] == "App: 2 nodes, ha · clock 2024-06-01 10:03:19 UTC · 176 events taken, 24 lost"
    assert lines[1:3] == ["  last revision 19 s old, 4 made", "  lost: 24 × no node took it"]
    assert lines[6:8] == ["node-1  ✕ down", "node-2  ● active  App"]
    assert lines[-2].endswith("node-1 is down")
    assert lines[-1] == "showing 3 of 4 lines"
    assert "node-2 takes over, with the last revision: 24 events lost before it, 30 replayed" in "\n".join(lines)


def test_before_anything_came_in() -> None:
    members = Members(BARE)
    shown = members.cluster.snapshot()
    assert "no event was received yet" in cluster_text(shown, 20)
    assert {a.refused for n in shown.state.nodes for a in n.actions} == {"no event was received yet"}
    assert timeline_svg(shown) == ""
    assert "<img" in cluster_html(shown, 20)
    with pytest.raises(Misuse, match="no event was received yet"):
        members.cluster.act(Action("kill", A))


def test_restored_nodes_show_the_same() -> None:
    """The counts and the log do not depend on where micro-batches end, nor on restarts of workers."""
    whole, parts = fed(PAIR, 200), Members(PAIR)
    cut_into(parts, [50, 45, 10, 20, 75])
    assert parts.cluster.snapshot().state == whole.cluster.snapshot().state


def test_what_can_be_done_follows_the_roles() -> None:
    members = fed(BARE, 60)
    everything = ["kill", "pause", "database", "clients"]
    assert allowed(members.cluster.snapshot(), A) == [*everything, B]
    cluster = members.cluster
    killed = cluster.act(Action("kill", A))
    waiting = cluster.snapshot()
    assert (killed, waiting.waits(killed)) == (Kill(START + 59_001, A), True)
    assert waiting.node(A).role is Role.ACTIVE
    assert allowed(waiting, A) == ["restart", "database", "clients", B]
    assert waiting.node(A).actions[0].refused == "kill node-1 waits for the clock"
    assert "waits for the clock: kill node-1 at 2024-06-01 10:00:59.001" in cluster_text(waiting, 20)
    cluster.act(Action("pause", B))
    cluster.act(Action("cut", B, "database"))
    members.feed(20)
    shown = cluster.snapshot()
    assert (shown.node(A).role, shown.node(B).role) == (Role.DOWN, Role.HALTED)
    assert shown.node(B).until == START + 89_001
    assert "stands still until 10:01:29.001" in cluster_text(shown, 20)
    assert allowed(shown, B) == ["kill", "clients", A]
    states = {frozenset((k.a, k.b)): k.state for k in shown.state.links}
    assert states[frozenset((B, "database"))] is LinkState.CUT
    assert states[frozenset((A, "database"))] is LinkState.DOWN
    cluster.act(Action("restart", A))
    members.feed(5)
    assert cluster.snapshot().node(A).role is Role.ACTIVE
    for wrong in (Action("restart", A), Action("kill", "node-7"), Action("cut", A), Action("melt", A)):
        with pytest.raises(Misuse):
            cluster.act(wrong)


def test_a_fault_and_what_followed_in_words() -> None:
    members = fed(BARE, 60)
    fault = members.cluster.act(Action("kill", A))
    assert "waits for the clock. It happens at 2024-06-01 10:00:59.001, and the clock is at" in describe_fault(
        members.cluster.snapshot(), fault
    )
    members.feed(60)
    told = describe_fault(members.cluster.snapshot(), fault)
    assert told.startswith("kill node-1 at 2024-06-01 10:00:59.001: at once node-1 is down; 2")
    assert "events lost before it, 60 replayed" in told


def test_a_node_that_is_back_gets_no_events_until_the_active_one_knows() -> None:
    shown = fed(NodeGroups((Scenario(Pair(), 1, (Kill(90_000, A), Restart(200_000, A))),)), 202).cluster.snapshot()
    assert "no events are sent to a second node" in {k.note for k in shown.state.links}
    assert "no events" in cluster_map.svg(shown)


def test_groups_behind_a_layer() -> None:
    pairs = tuple(Pair(nodes=(f"g{i}-a", f"g{i}-b"), group=f"g{i}") for i in (1, 2))
    groups = groups_of(pairs, 1, (Cut(60_000, "g2", "clients", 500_000), Pause(70_000, "g1-a", 80_000)))
    shown = fed(groups, 100).cluster.snapshot()
    text = cluster_text(shown, 20)
    assert text.startswith("App: 4 nodes, scalable")
    assert "group  events taken  lost  last revision  revisions" in text
    assert [g.name for g in shown.state.groups] == ["g1", "g2"]
    assert shown.taken + shown.lost == 100
    assert text.count("g2-a and clients: cut until") == 1
    # What is told of a fault is of its own group.
    assert {h.group for h in shown.followed(Pause(START + 70_000, "g1-a", START + 80_000))} == {"g1"}


def test_names_are_escaped_in_every_form() -> None:
    bad = "<i>&\"'"
    pair = Pair(nodes=(f"{bad}1", f"{bad}2"), group=bad)
    faults = (Kill(30_000, f"{bad}1"), Cut(40_000, f"{bad}2", "clients", 90_000))
    shown = fed(NodeGroups((Scenario(pair, 1, faults),)), 80, app=bad).cluster.snapshot()
    topic = TopicView(bad, (bad,), (bad,), 3)
    shown = replace(shown, state=replace(shown.state, topics=[topic], links=[*shown.state.links, Link(bad, bad)]))
    page = cluster_html(shown, 20)
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    for drawn in (cluster_map.svg(shown), timeline_svg(shown)):
        assert "<i>" not in drawn
        texts = {t for e in ElementTree.fromstring(drawn).iter() for t in (e.text, e.get("aria-label")) if t}
        assert any(bad in t for t in texts)


def test_pictures_are_drawn_within_their_width() -> None:
    """Also with long names, and with a stretch of time that leaves faults out."""
    long = "a-node-with-a-very-long-name-of-the-data-centre-in-"
    pair = Pair(nodes=(f"{long}1", f"{long}2"))
    shown = fed(NodeGroups((Scenario(pair, 1, (Kill(90_000, f"{long}1"),)),)), 200).cluster.snapshot()
    for width in (320, 900):
        for drawn in (
            cluster_map.svg(shown, width),
            timeline_svg(shown, None, width),
            timeline_svg(shown, 20_000, width),
        ):
            for e in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect"):
                assert float(e.get("x", 0)) >= 0
                assert float(e.get("x", 0)) + float(e.get("width", 0)) <= width
    assert "stroke-dasharray" in timeline_svg(shown)
    assert "stroke-dasharray" not in timeline_svg(shown, 20_000)


def test_messages_of_a_page() -> None:
    members = fed(BARE, 60)
    view = ClusterView(members.cluster)
    drawn: list[dict[str, Any]] = []
    view._output.show = drawn.append  # type: ignore[method-assign]
    view._handle_message({"do": "here", "width": 700})
    assert json.loads(json.dumps(drawn[-1])) == drawn[-1]
    assert 'width="700"' in drawn[-1]["map"]
    view._handle_message({"do": "act", "kind": "kill", "node": A, "other": None})
    assert "waits for the clock" in drawn[-1]["said"]
    view._handle_message({"do": "act", "kind": "kill", "node": A, "other": None})
    assert drawn[-1]["failed"] == "kill node-1 at 1717236059001 ms: node-1 is down already"
    view._handle_message({"do": "stretch", "stretch": "last 2 min"})
    assert (drawn[-1]["failed"], drawn[-1]["stretch"]) == ("", "last 2 min")
    view._handle_message({"do": "stretch", "stretch": "<b>"})
    assert drawn[-1]["stretch"] == "all"
    buttons = drawn[-1]["nodes"][0]["actions"]
    assert [b["label"] for b in buttons] == ["Kill", "Restart", "Pause 30 s", "database", "clients", "node-2"]
    view._handle_message({"do": "gone"})


def test_what_a_node_runs_has_room_in_its_box() -> None:
    def drawn(name: str, *runs: str) -> list[str]:
        nodes = [ClusterNode(name, "resource nodes", Role.ACTIVE, runs), ClusterNode("n", "resource nodes", Role.IDLE)]
        shown = ClusterSnapshot("Leaderless", "distributed", ClusterState(nodes))
        return [e.text or "" for e in ElementTree.fromstring(cluster_map.svg(shown)).iter("{http://www.w3.org/2000/svg}text")]

    assert "runs group-1-1" in drawn("n1", "Leaderless-group-1-1")
    many = drawn("a-resource-node-of-two", *(f"Leaderless-group-{i}-1" for i in range(5)))
    assert {"runs 5 parts", "a-resource-node-of-two"} <= set(many)


def test_the_clock_moves_on_without_events() -> None:
    members = fed(BARE, 30)
    members.cluster.kill("node-1")
    assert members.cluster.snapshot().state.nodes[0].role.value == "active"
    members.cluster.advance(60_000)
    shown = members.cluster.snapshot()
    assert shown.state.clock == START + 29_000 + 60_000
    assert shown.state.nodes[0].role.value == "down"
    with pytest.raises(Misuse, match="by is a number of milliseconds above 0, not 0"):
        members.cluster.advance(0)
    with pytest.raises(Misuse, match="no event was received yet"):
        fed(BARE, 0).cluster.advance(1_000)
