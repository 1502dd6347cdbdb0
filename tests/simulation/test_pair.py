"""Who is active from when to when: the rules of the servers' coordination, and laws of the simulation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.errors import Misuse
from sparkstream_nb.simulation.faults import Cut, Fault, Kill, Pause, Restart, Schedule, Slow, random_schedule
from sparkstream_nb.simulation.high_availability import simulate
from sparkstream_nb.simulation.timeline import Active, Delayed, Elected, Happening, Passive, Syncing
from sparkstream_nb.simulation.topology import CLIENTS, DATABASE, Coordination, Pair

A, B = PAIR_NODES = ("node-1", "node-2")
PAIR = Pair()


def happenings(*faults: Fault, seed: int = 1, until: int = 400_000, pair: Pair = PAIR) -> list[Happening]:
    return simulate(Schedule(pair, faults), seed=seed, start=0, until=until).happenings


def roles(found: list[Happening]) -> list[str]:
    """Changes after the beginning, without times."""
    out = []
    for h in found[3:]:
        if isinstance(h, Active | Passive | Syncing):
            out.append(f"{type(h).__name__} {h.node}{'' if getattr(h, 'whether', True) else ' ends'}")
    return out


def test_the_figures_of_the_manual_give_25_to_30_seconds_to_elect_and_a_poll() -> None:
    """5000 × 5: the coordinator's heartbeat is void after 25 s, which the member's next beat notices; the next poll,
    within 5 s, makes it the active one."""
    for seed in range(200):
        found = happenings(Kill(70_000, A), seed=seed)
        (elected,) = (h for h in found if isinstance(h, Elected))
        assert (seed, elected.node) == (seed, B)
        assert elected.age is not None
        assert 25_000 < elected.age <= 30_001, seed
        (active,) = (h for h in found[3:] if isinstance(h, Active))
        assert (seed, active.node, active.started) == (seed, B, False)
        assert 0 <= active.at - elected.at <= 5_001, seed


CASES = {
    "nothing": ((), []),
    "the active one dies": ((Kill(70_000, A),), [f"Active {B}"]),
    "and comes back": (
        (Kill(70_000, A), Restart(130_000, A)),
        [f"Active {B}", f"Passive {A}", f"Syncing {B}"],
    ),
    "it comes back before it is missed, and is active at once": (
        (Kill(70_000, A), Restart(75_000, A)),
        [f"Active {A}", f"Syncing {A}"],
    ),
    "the passive one dies": ((Kill(70_000, B),), [f"Syncing {A} ends"]),
    "and comes back, and is sent events again": (
        (Kill(70_000, B), Restart(130_000, B)),
        [f"Syncing {A} ends", f"Passive {B}", f"Syncing {A}"],
    ),
    "a pause that is too long": (
        (Pause(70_000, A, until=120_000),),
        [f"Active {B}", f"Passive {A}", f"Syncing {B}"],
    ),
    "a short pause": ((Pause(70_000, A, until=85_000),), []),
    "both die; the first to come back is active": (
        (Kill(70_000, A), Kill(71_000, B), Restart(150_000, B), Restart(180_000, A)),
        [f"Active {B}", f"Passive {A}", f"Syncing {B}"],
    ),
    "without the database the active one gives up": (
        (Cut(70_000, A, DATABASE, until=150_000), Cut(70_000, B, DATABASE, until=150_000)),
        [f"Passive {A}", f"Active {A}", f"Syncing {A}"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_roles(case: str) -> None:
    faults, expected = CASES[case]
    assert roles(happenings(*faults)) == expected


def test_one_missed_heartbeat_may_move_the_active_role_and_end_the_sync() -> None:
    """What fails in a heartbeat makes a coordinator a member, so nobody renews its row, which is void 25 s later.
    Mostly the same node notices first. Where the other one does, the node that is passive then was never missed,
    so it is not found again, and nothing is sent to it."""
    found = [roles(happenings(Cut(70_000, A, DATABASE, until=76_000), seed=s)) for s in range(3_000)]
    moved = [f for f in found if f]
    assert 0 < len(moved) < 30
    assert all(sorted(f) == [f"Active {B}", f"Passive {A}"] for f in moved)


def test_a_node_without_the_database_goes_on_while_the_other_takes_over() -> None:
    """The poll that makes a node give up comes 30 s after the first that failed: both are active, at times."""
    found = [happenings(Cut(70_000, A, DATABASE, until=300_000), seed=s) for s in range(60)]
    both = 0
    for f in found:
        begins = next(h.at for h in f[3:] if isinstance(h, Active))
        ends = next(h.at for h in f[3:] if isinstance(h, Passive))
        both += begins < ends
    assert both > 10


def test_other_figures() -> None:
    quick = Pair(coordination=Coordination(heartbeat=500, retries=4, poll=1_000))
    for seed in range(50):
        found = happenings(Kill(70_000, A), seed=seed, pair=quick)
        (active,) = (h for h in found[3:] if isinstance(h, Active))
        assert 1_500 < active.at - 70_000 <= 3_500


# What a heartbeat allows: a run that takes `by` writes what is `by` old, and the next one as much later, so that the
# others find a heartbeat of 2 × by before they find a new one. It is void where it is older than 5000 × 5.
ALLOWED = 12_500


def test_the_other_node_takes_over_from_one_whose_heartbeats_come_too_late() -> None:
    for seed in range(100):
        found = happenings(Slow(70_000, A, DATABASE, 17_000, until=300_000), seed=seed)
        elected = next(h for h in found if isinstance(h, Elected))
        assert (seed, elected.node) == (seed, B)
        assert elected.age is not None
        assert 25_000 < elected.age <= 34_000, seed
        assert f"Active {B}" in roles(found), seed


@pytest.mark.parametrize("by", [1, 4_999, 5_001, 9_999, ALLOWED])
def test_a_node_whose_heartbeats_come_late_keeps_its_place(by: int) -> None:
    for seed in range(200):
        assert roles(happenings(Slow(70_000, A, DATABASE, by, until=300_000), seed=seed)) == []


def test_heartbeats_allow_no_more() -> None:
    """1 ms more is enough for some moment; a quarter of an interval is, for every moment but few."""
    assert PAIR.coordination.oldest == ALLOWED * 2
    moved = [
        any(roles(happenings(Slow(70_000, A, DATABASE, by, until=900_000), seed=s)) for s in range(400))
        for by in (ALLOWED, ALLOWED + 1)
    ]
    assert moved == [False, True]


def test_a_slow_passive_node_is_missed_and_found_again() -> None:
    found = roles(happenings(Slow(70_000, B, DATABASE, 20_000, until=200_000)))
    assert found[0] == f"Syncing {A} ends"
    assert found[-1] == f"Syncing {A}"
    assert not any(f.startswith("Active") for f in found)


def test_a_slow_node_gives_up_later() -> None:
    """It reads that another one leads as late as it writes."""
    quick = happenings(Cut(70_000, A, DATABASE, until=120_000))
    slow = happenings(Cut(70_000, A, DATABASE, until=120_000), Slow(120_000, A, DATABASE, 4_000, until=400_000))

    def gives_up(found: list[Happening]) -> int:
        return next(h.at for h in found[3:] if isinstance(h, Passive) and h.node == A)

    if gives_up(quick) > 120_000:
        assert gives_up(slow) >= gives_up(quick)
    started = happenings(
        Kill(70_000, A), Slow(100_000, A, DATABASE, 4_000, until=400_000), Restart(130_000, A), until=200_000
    )
    assert gives_up(started) == 134_000


def test_a_slow_link_between_nodes_is_the_nodes_own_matter() -> None:
    found = happenings(Slow(70_000, A, B, 20_000, until=200_000), Slow(90_000, B, A, 30_000, until=100_000))
    assert roles(found) == []
    assert [(h.at, h.by) for h in found if isinstance(h, Delayed)] == [
        (70_000, 20_000),
        (90_000, 30_000),
        (100_000, 20_000),
        (200_000, 0),
    ]
    assert (
        str(next(h for h in found if isinstance(h, Delayed))) == "the link between node-1 and node-2 is slower by 20 s"
    )


slow_links = st.lists(
    st.builds(
        lambda at, ends, by, span: Slow(at, *ends, by, at + span),
        st.integers(1_000, 900_000),
        st.sampled_from([(A, DATABASE), (B, DATABASE), (A, B)]),
        st.integers(1, 40_000),
        st.integers(1, 200_000),
    ),
    max_size=4,
)
schedules = st.builds(
    lambda seed, rate, slow: random_schedule(PAIR, seed, (1_000, 900_000), rate=rate).plus(*slow),
    st.integers(0, 10**9),
    st.sampled_from([1.0, 5.0, 20.0]),
    slow_links,
)


@given(schedules, st.integers(0, 1000), st.integers(0, 900_000))
@settings(deadline=None)
def test_what_is_said_does_not_depend_on_how_far_it_runs(schedule: Schedule, seed: int, until: int) -> None:
    whole = simulate(schedule, seed=seed, start=0, until=1_000_000).happenings
    assert simulate(schedule, seed=seed, start=0, until=until).happenings == [h for h in whole if h.at <= until]


@given(schedules, st.integers(0, 1000))
@settings(deadline=None)
def test_faults_to_come_change_nothing_before_them(schedule: Schedule, seed: int) -> None:
    last = max((f.at for f in schedule.faults), default=0)
    whole = simulate(schedule, seed=seed, start=0, until=last).happenings
    for i, fault in enumerate(schedule.faults):
        try:
            shorter = Schedule(PAIR, schedule.faults[:i])
        except Misuse:
            continue
        ended = [h for h in whole if h.at < fault.at]
        assert simulate(shorter, seed=seed, start=0, until=fault.at - 1).happenings == ended


@given(schedules, st.integers(0, 1000))
@settings(deadline=None)
def test_once_all_is_well_one_node_is_active(schedule: Schedule, seed: int) -> None:
    """Some minutes after the last fault exactly one of the nodes that are up is active, where one is up."""
    last = max((getattr(f, "until", f.at) for f in schedule.faults), default=0)
    found = simulate(schedule, seed=seed, start=0, until=last + 300_000).happenings
    active: set[str] = set()
    up = set(PAIR_NODES)
    for h in found:
        match h:
            case Active(node=node):
                active.add(node)
                up.add(node)
            case Passive(node=node):
                active.discard(node)
                up.add(node)
        if type(h).__name__ == "Down":
            active.discard(h.node)  # type: ignore[attr-defined]
            up.discard(h.node)  # type: ignore[attr-defined]
    assert len(active) == min(1, len(up))
    assert active <= up


def test_years_without_faults_take_no_time() -> None:
    found = happenings(Kill(10**12, A), until=2 * 10**12)
    assert roles(found) == [f"Active {B}"]


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ((Kill(1, "node-3"),), "kill node-3 at 1 ms: there is no node 'node-3'."),
        ((Kill(1, A), Kill(2, A)), "kill node-1 at 2 ms: node-1 is down already"),
        ((Restart(1, A),), "restart node-1 at 1 ms: node-1 is up"),
        ((Kill(1, DATABASE),), "there is no node 'database'"),
        ((Pause(5, A, until=5),), "pause node-1 for 0 s at 5 ms: it ends at 5 ms, before it begins"),
        ((Cut(1, A, A, until=5),), "there is no link between node-1 and node-1"),
        ((Kill(1, A), Pause(2, A, until=5)), "node-1 is down"),
        ((Slow(1, DATABASE, CLIENTS, 3, until=5),), "there is no link between database and clients"),
        ((Slow(1, A, "node-3", 3, until=5),), "there is no node 'node-3'"),
        ((Slow(1, A, CLIENTS, 3, until=5),), "an event comes at its own time, so clients are never slow"),
        ((Slow(5, A, B, 3, until=5),), "it ends at 5 ms, before it begins"),
    ],
)
def test_wrong_schedules(faults: tuple[Fault, ...], message: str) -> None:
    with pytest.raises(Misuse) as error:
        Schedule(PAIR, faults)
    assert message in str(error.value)


@pytest.mark.parametrize("by", [0, -1, 2.5, True, "3 sec", None])
def test_a_link_is_slower_by_whole_ms(by: object) -> None:
    with pytest.raises(Misuse, match="slow node-1 node-2: by is a whole number of ms above 0, not"):
        Slow(1, A, B, by, until=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"nodes": ("a", "a")}, "two nodes of group-1 have the id 'a'"),
        ({"nodes": ("a", "database")}, "a node cannot be called 'database'"),
        ({"persist": 0}, "intervalInMin must be 1 or more, not 0"),
        ({"balancer": "random"}, "balancer='random' is neither 'failover' nor 'round_robin'"),
    ],
)
def test_wrong_figures(figures: dict[str, object], message: str) -> None:
    with pytest.raises(Misuse) as error:
        Pair(**figures)  # type: ignore[arg-type]
    assert message in str(error.value)
    with pytest.raises(Misuse, match="heartbeatInterval must be 1 or more"):
        Coordination(heartbeat=-1)
