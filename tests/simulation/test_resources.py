"""Managers and resource nodes in virtual time: who runs what when, by the rules of WSO2's job manager."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.errors import Misuse
from sparkstream_nb.simulation import resource_manager
from sparkstream_nb.simulation.faults import Cut, Fault, Kill, Pause, Restart
from sparkstream_nb.simulation.placements import leader_spans, run_spans
from sparkstream_nb.simulation.resource_incidents import RESOURCE_INCIDENTS, resource_incident
from sparkstream_nb.simulation.resource_manager import simulate_resources
from sparkstream_nb.simulation.resources import PartialApp, ResourceCluster, ResourceNode, ResourceScenario
from sparkstream_nb.simulation.topology import CLIENTS, DATABASE

SCHEDULES = examples(40, "SPARKSTREAM_SCHEDULES")
WORKERS = tuple(ResourceNode(f"worker-{i}") for i in (1, 2, 3))
CLUSTER = ResourceCluster(WORKERS)
APPS = tuple(PartialApp(f"A-g{i}-1") for i in (1, 2, 3))


def told(*faults: Fault, cluster: ResourceCluster = CLUSTER, apps: tuple[PartialApp, ...] = APPS, seed: int = 1,
         until: int = 120_000) -> list[tuple[int, str]]:  # fmt: skip
    """What comes to pass after the start."""
    found = simulate_resources(ResourceScenario(cluster, apps, seed, faults), start=0, until=until)
    return [(h.at, str(h)) for h in found.happenings if h.at > 0]


def running(*faults: Fault, at: int, cluster: ResourceCluster = CLUSTER, apps: tuple[PartialApp, ...] = APPS,
            seed: int = 1) -> dict[str, list[str]]:  # fmt: skip
    """The nodes that run each partial app at `at` (ms)."""
    found = simulate_resources(ResourceScenario(cluster, apps, seed, faults), start=0, until=at).happenings
    spans = [s for s in run_spans(found, at + 1) if s.end == at + 1]
    return {a.name: [s.node for s in spans if s.app == a.name] for a in apps}


def test_apps_are_placed_in_turn_over_the_nodes_as_javas_map_lists_them() -> None:
    """`ConcurrentHashMap` of 16 buckets: worker-2 hashes to a lower one than worker-1."""
    assert running(at=1_000) == {"A-g1-1": ["worker-2"], "A-g2-1": ["worker-1"], "A-g3-1": ["worker-3"]}
    four = (*APPS, PartialApp("A-g4-1"))
    assert running(at=1_000, apps=four)["A-g4-1"] == ["worker-2"]


def test_quiet_nodes_say_nothing() -> None:
    assert told(until=10**9) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_dead_node_is_given_up_when_its_third_look_finds_it_silent(seed: int) -> None:
    """Heartbeats of 2000 ms, two retries: 2 × 2000 ms old at three looks in a row, so after 8 to 10 s."""
    found = told(Kill(30_000, "worker-2"), seed=seed)
    (at,) = [at for at, what in found if "gives worker-2 up" in what]
    assert 36_000 <= at <= 40_100
    assert running(Kill(30_000, "worker-2"), at=60_000, seed=seed)["A-g1-1"] in (["worker-1"], ["worker-3"])


def test_a_node_that_is_back_before_it_is_missed_gets_its_apps_again() -> None:
    found = told(Kill(30_000, "worker-2"), Restart(33_000, "worker-2"))
    assert (33_000, "A-g1-1 begins on worker-2") in found
    assert not any("gives" in what for _, what in found)


def test_a_node_that_joins_gets_nothing_that_runs() -> None:
    faults = (Kill(30_000, "worker-2"), Restart(60_000, "worker-2"))
    assert (60_000, "worker-2 joins the pool of manager-1") in told(*faults)
    assert "worker-2" not in [n for nodes in running(*faults, at=110_000).values() for n in nodes]


def test_a_node_that_is_cut_off_runs_its_apps_until_it_tries_again() -> None:
    cut = Cut(30_000, "worker-1", "managers", 60_000)
    found = told(cut)
    (moved,) = [at for at, what in found if what.startswith("A-g2-1 begins")]
    (ended,) = [at for at, what in found if what == "A-g2-1 ends on worker-1: its node reaches no manager"]
    assert moved < ended
    assert len(running(cut, at=moved + 1)["A-g2-1"]) == 2
    assert len(running(cut, at=ended + 1)["A-g2-1"]) == 1


def test_a_dead_leader_costs_every_app_a_restart_and_all_end_up_on_one_node() -> None:
    """Nodes that find no leader wait leaderRetryInterval, which is longer than the new leader gives them."""
    kill = Kill(30_000, "manager-1")
    scenario = ResourceScenario(CLUSTER, APPS, 1, (kill,))
    first, second = leader_spans(simulate_resources(scenario, start=0, until=60_000).happenings, 60_000)
    assert (first.node, first.end, second.node) == ("manager-1", 30_000, "manager-2")
    assert 32_000 < second.first < 34_000
    assert {len(nodes) for nodes in running(kill, at=60_000).values()} == {1}
    assert len({n for nodes in running(kill, at=60_000).values() for n in nodes}) == 1
    begun = [what for at, what in told(kill) if " begins on " in what]
    assert {what.split()[0] for what in begun} == {a.name for a in APPS}


def test_a_leader_that_stood_still_ends_apps_that_another_one_has_placed() -> None:
    """It looks after its own copy of the pool, to which nobody sends heartbeats, and makes up for looks it missed."""
    pause = Pause(30_000, "manager-1", 45_000)
    found = told(pause)
    assert [at for at, what in found if what.startswith("manager-1 gives")] == [45_000] * 3
    after = running(pause, at=110_000)
    assert [] in after.values()


def test_an_app_below_the_minimum_waits_and_what_runs_of_it_runs_on() -> None:
    cluster = replace(CLUSTER, minimum=3)
    faults = (Kill(30_000, "worker-2"), Restart(60_000, "worker-2"))
    assert running(*faults, at=59_000, cluster=cluster) == {
        "A-g1-1": [],
        "A-g2-1": ["worker-1"],
        "A-g3-1": ["worker-3"],
    }
    assert all(running(*faults, at=110_000, cluster=cluster).values())
    alone = ResourceCluster(WORKERS[:1], minimum=2)
    assert not any(running(at=10_000, cluster=alone).values())


def test_receivers_take_receiver_groups_alone_and_there_must_be_as_many_as_instances() -> None:
    apps = (PartialApp("A-in-1", True, 2), PartialApp("A-in-2", True, 2), PartialApp("A-g-1"))
    one = ResourceCluster((*WORKERS, ResourceNode("receiver-1", receiver=True)))
    assert not any(running(at=10_000, cluster=one, apps=apps).values())
    two = ResourceCluster((*one.workers, ResourceNode("receiver-2", receiver=True)))
    found = running(at=10_000, cluster=two, apps=apps)
    assert {n for a in ("A-in-1", "A-in-2") for n in found[a]} == {"receiver-1", "receiver-2"}
    assert found["A-g-1"][0].startswith("worker")


@pytest.mark.parametrize("name", RESOURCE_INCIDENTS)
def test_incidents_are_schedules(name: str) -> None:
    cluster, faults = resource_incident(name, CLUSTER, APPS, 1)
    assert told(*faults, cluster=cluster, until=600_000)


def test_impossible_faults() -> None:
    for faults, message in (
        ((Kill(1, "worker-9"),), "there is no node 'worker-9'. Did you mean"),
        ((Kill(1, "managers"),), "there is no node 'managers'"),
        ((Cut(1, "worker-1", "worker-2", 5),), "no link between worker-1 and worker-2"),
        ((Cut(1, "worker-1", CLIENTS, 5),), "no link between worker-1 and clients"),
        ((Cut(1, "manager-1", "manager-2", 5),), "no link between manager-1 and manager-2"),
        ((Kill(1, "worker-1"), Kill(2, "worker-1")), "worker-1 is down already"),
    ):
        with pytest.raises(Misuse, match=message):
            ResourceScenario(CLUSTER, APPS, 1, faults)
    ResourceScenario(CLUSTER, APPS, 1, (Cut(1, "manager-1", DATABASE, 5), Cut(1, "managers", "worker-1", 5)))


CLUSTERS = st.builds(
    lambda minimum, retry, heartbeat: replace(CLUSTER, minimum=minimum, retry=retry, heartbeat=heartbeat),
    st.sampled_from([1, 2, 3]), st.sampled_from([5_000, 10_000]), st.sampled_from([500, 2_000]),
)  # fmt: skip


@settings(max_examples=SCHEDULES, deadline=None)
@given(CLUSTERS, st.integers(0, 2**32), st.sampled_from([1.0, 5.0, 20.0]))
def test_what_it_says_does_not_depend_on_how_far_it_runs(cluster: ResourceCluster, seed: int, rate: float) -> None:
    scenario = ResourceScenario(cluster, APPS, seed, (), rate)
    until = random.Random(seed).randrange(1, 3_000_000)
    whole = simulate_resources(scenario, start=0, until=3_000_000).happenings
    assert simulate_resources(scenario, start=0, until=until).happenings == [h for h in whole if h.at <= until]


@settings(max_examples=max(5, SCHEDULES // 4), deadline=None)
@given(CLUSTERS, st.integers(0, 2**32), st.sampled_from([1.0, 5.0, 20.0]))
def test_quiet_stretches_may_be_passed_over(cluster: ResourceCluster, seed: int, rate: float) -> None:
    scenario = ResourceScenario(cluster, APPS, seed, (), rate)
    found = simulate_resources(scenario, start=0, until=600_000).happenings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource_manager.ResourceSimulation, "_quiet", lambda self: False)
        assert simulate_resources(scenario, start=0, until=600_000).happenings == found
