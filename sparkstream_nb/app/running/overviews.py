"""The overview of the apps of this process."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ...errors import Misuse
from ...journal.throughput import RECENT
from ...masking import mask_passwords
from ...system import memory_of_process
from ..config.conf import DISTRIBUTED
from ..results.answers import NodeStats, Stats
from ..results.overview import AppOverview, NodeOverview, Overview
from ..views.cluster_view import ClusterNode
from .app import App


def overview_of(apps: Iterable[App]) -> Overview:
    """The overview of these apps, by name."""
    return Overview(tuple(app_overview(a) for a in sorted(apps, key=lambda a: a.name)), memory_of_process())


def app_overview(app: App) -> AppOverview:
    """The figures of an app and of its nodes as of the last committed micro-batch: nothing is waited for."""
    return overview_with(app, app.stats())


def overview_with(app: App, stats: Stats) -> AppOverview:
    """The same, of figures that were read before."""
    cluster_nodes, failure = _cluster_nodes(app), app.runtime.stream.failure()
    names = [*dict.fromkeys([*cluster_nodes, *stats.nodes])]
    nodes = [_node(app, name, cluster_nodes.get(name), stats.nodes.get(name)) for name in names]
    last_commit = stats.recent[-1].ended if stats.recent else None
    is_idle = last_commit is not None and time.time() - last_commit > RECENT
    return AppOverview(
        name=app.name,
        state=app.state,
        mode=app.mode,
        input_per_second=0.0 if is_idle else stats.rates.input,
        processing_per_second=stats.rates.processing,
        events=sum(stats.came.values()),
        lag=stats.lag,
        outputs=sum(stats.outputs.values()),
        errors=stats.errors,
        last_event=stats.clock,
        last_commit=None if last_commit is None else int(1000 * last_commit),
        state_bytes=sum(n.state_bytes or 0 for n in nodes),
        nodes=tuple(nodes),
        problems=tuple(mask_passwords(line) for line in ([failure] if failure else []) + app.away),
    )


def _cluster_nodes(app: App) -> dict[str, ClusterNode]:
    """The nodes of a mode whose nodes can fail, by name; else none."""
    try:
        return {n.name: n for n in app.cluster.reader.read().state.nodes}
    except Misuse:
        return {}


def _node(app: App, name: str, cluster_node: ClusterNode | None, stats: NodeStats | None) -> NodeOverview:
    is_distributed = app.mode == DISTRIBUTED
    role = "" if cluster_node is None else cluster_node.role.value
    runs = tuple(cluster_node.runs) if cluster_node is not None and is_distributed else ()
    if stats is None:
        return NodeOverview(name, role, runs)
    # The report of a distributed app has the state of all nodes: the first one works for all.
    state_bytes = sum(s.bytes for s in stats.held.values()) if is_distributed else stats.state_bytes
    return NodeOverview(name, role, runs, stats.events, stats.events_per_second, state_bytes, stats.clock)
