"""Incidents of fully distributed deployments, as ready-made schedules. Times are ms from the start on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import Misuse, nearest
from .faults import Cut, Fault, Kill, Pause, Restart
from .placements import Placed
from .resource_manager import simulate_resources
from .resources import MANAGERS, PartialApp, ResourceCluster, ResourceScenario

Made = tuple[ResourceCluster, tuple[Fault, ...]]


def _node_of_first(cluster: ResourceCluster, apps: Sequence[PartialApp], seed: int) -> str:
    """The node that runs the first partial app from the start on, or the first node where none does."""
    happenings = simulate_resources(ResourceScenario(cluster, tuple(apps), seed), start=0, until=0).happenings
    return next((h.node for h in happenings if isinstance(h, Placed)), cluster.nodes[0])


def _late(cluster: ResourceCluster) -> int:
    """A moment at nine tenths of an interval of persistence, the second one."""
    persist = cluster.persist or 60_000
    return persist + 9 * persist // 10


def _old_revision(cluster: ResourceCluster, node: str) -> Made:
    """A node dies late in its interval of persistence: its apps begin elsewhere, with a state as old as that."""
    return cluster, (Kill(_late(cluster), node),)


def _two_copies(cluster: ResourceCluster, node: str) -> Made:
    """A node is cut off from the managers: they start its apps elsewhere before it ends them itself."""
    return cluster, (Cut(_late(cluster), node, MANAGERS, _late(cluster) + 6 * cluster.retry),)


def _lost_leader(cluster: ResourceCluster, node: str) -> Made:
    """The leading manager dies: nodes wait for a leader longer than they may be without one, and end all apps."""
    return cluster, (Kill(_late(cluster), cluster.managers[0]),)


def _paused_leader(cluster: ResourceCluster, node: str) -> Made:
    """The leading manager is halted until another one leads, and then looks after its own copy of the pool."""
    long = cluster.coordination.oldest + 10 * cluster.heartbeat
    return cluster, (Pause(_late(cluster), cluster.managers[0], _late(cluster) + long),)


def _below_minimum(cluster: ResourceCluster, node: str) -> Made:
    """A node is away and as many are needed as there were: the app waits, its parts elsewhere keep running, and when
    the node is back all of it begins once more.
    """
    worker_count = len(cluster.nodes) - len(cluster.receivers)
    faults = (Kill(_late(cluster), node), Restart(_late(cluster) + 60_000, node))
    return replace(cluster, minimum=worker_count), faults


RESOURCE_INCIDENTS: dict[str, Callable[[ResourceCluster, str], Made]] = {
    "old-revision": _old_revision,
    "two-copies": _two_copies,
    "lost-leader": _lost_leader,
    "paused-leader": _paused_leader,
    "below-minimum": _below_minimum,
}


def resource_incident(name: str, cluster: ResourceCluster, apps: Sequence[PartialApp], seed: int) -> Made:
    """The cluster as the incident needs it, and its faults. Raises `Misuse` for an unknown name."""
    if name not in RESOURCE_INCIDENTS:
        what = f"faults='{name}' is no incident of mode distributed, and there is no file of that name"
        raise Misuse(nearest(what, name, RESOURCE_INCIDENTS))
    return RESOURCE_INCIDENTS[name](cluster, _node_of_first(cluster, apps, seed))
