"""Modes: how the nodes of an app work together, an object for each.

A mode defines the nodes, their shared parts, and its restrictions. All else of a deployment is the same
in each (`app/planning.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...errors import Misuse, nearest
from ...nodes.distributed import Distributed
from ...plan import compile_app
from ...plan.distributed.layer_streams import layer_of
from ...plan.distributed.partial_apps import without_sources
from ...plan.nodes import Plan
from ...request import CLOCKS, MODES, DeployRequest
from ...simulation.node_groups import NodeGroups
from ...simulation.resources import ResourceCluster
from ...simulation.topology import Pair
from ..config.conf import DISTRIBUTED, NodeFile
from ..config.conf_pair import pair_of, pairs_of
from .deployment import HA, SCALABLE, check_count, input_schemas, playback, shards_of
from .distribution import distributed_for, resource_cluster
from .grouping import (
    Layer,
    Trial,
    check_no_groups,
    check_stateless,
    groups_for,
    mode_of_files,
    nodes_of_groups,
    pair_figures,
    refs_of_layer,
)


@dataclass(frozen=True)
class AskedNodes:
    """The arguments about an app's nodes: the request, its deployment files and the layer before the nodes."""

    request: DeployRequest
    files: Sequence[NodeFile]
    layer: Layer

    @property
    def trial(self) -> Trial:
        """The figures and faults of groups."""
        r = self.request
        return Trial(r.pair, r.resources, r.faults, r.seed)


@dataclass(frozen=True)
class NodesOfMode:
    """The shard ids of an app's nodes; in mode distributed the resource nodes and managers too."""

    shard_ids: tuple[str, ...]
    cluster: ResourceCluster | None = None


class Mode:
    """A deployment mode; the methods here are those that most modes share."""

    name: ClassVar[str]
    default_nodes: ClassVar[int] = 1
    fails: ClassVar[bool] = False
    """True if its nodes are simulated in virtual time, and may fail."""

    def layer(self, request: DeployRequest, files: Sequence[NodeFile]) -> Layer:
        """The layer that divides events over the nodes."""
        return Layer(request.routing, {})

    def refs(self, files: Sequence[NodeFile]) -> Mapping[str, str]:
        """Properties of all nodes that deployment files give besides."""
        return {}

    def properties(self, files: Sequence[NodeFile]) -> Mapping[str, str]:
        """Properties of all nodes that the mode gives."""
        return {}

    def nodes(self, node_request: AskedNodes) -> NodesOfMode:
        """The nodes: one for each deployment file, or as many as are asked for. Raises `Misuse`."""
        r, files = node_request.request, node_request.files
        if not files:
            return self._nodes(r.nodes, r.shard_ids)
        if r.nodes is not None and r.nodes != len(files):
            raise Misuse(
                f"there are {len(files)} deployment files, one for each node, and nodes={r.nodes}: leave nodes out"
            )
        if r.shard_ids is not None:
            raise Misuse("the deployment files give the shard ids (siddhi: properties: shardId): leave shard_ids out")
        return self._nodes(len(files), [f.shard_id for f in files])

    def _nodes(self, count: int | None, shard_ids: Sequence[str] | None) -> NodesOfMode:
        count = self.default_nodes if count is None else count
        check_count(count)
        self.check_nodes(count)
        return NodesOfMode(shards_of(shard_ids, count))

    def check_nodes(self, count: int) -> None:
        """Raises `Misuse` for a number of nodes that the mode cannot have."""

    def plan(self, plan: Plan) -> Plan:
        """The plan that nodes run."""
        return plan

    def groups(
        self, plan: Plan, name: str, nodes: NodesOfMode, node_request: AskedNodes
    ) -> NodeGroups | Distributed | None:
        """The groups of nodes that take over from each other, and their faults; None without groups.
        `plan` and `name`: of the app. Raises `Misuse`, in mode distributed also SiddhiBindError.
        """
        check_no_groups(self.name, node_request.files, node_request.trial)
        return None


class Single(Mode):
    """One node."""

    name = "single"

    def check_nodes(self, count: int) -> None:
        if count != 1:
            raise Misuse(f"mode single has one node, not {count}: use mode active-active")


class ActiveActive(Mode):
    """Nodes that each run the whole app on a share of the events."""

    name = "active-active"

    def properties(self, files: Sequence[NodeFile]) -> Mapping[str, str]:
        return {} if files else {"partitionById": "true"}


class _OfPairs(Mode):
    """Nodes in groups of two, of which one is active and the other takes over."""

    fails = True
    default_nodes = 2

    def groups(
        self, plan: Plan, name: str, nodes: NodesOfMode, node_request: AskedNodes
    ) -> NodeGroups | Distributed | None:
        figures = pair_figures(self.name, node_request.files, node_request.trial)
        pairs = self._pairs(figures, nodes.shard_ids, node_request.files)
        return groups_for(pairs, node_request.trial, node_request.layer.streams(input_schemas(plan)))

    def _pairs(self, figures: Pair, nodes: Sequence[str], files: Sequence[NodeFile]) -> Sequence[Pair]:
        raise NotImplementedError


class MinimumHa(_OfPairs):
    """Two nodes, of which one is active and the other takes over."""

    name = HA

    def _pairs(self, figures: Pair, nodes: Sequence[str], files: Sequence[NodeFile]) -> Sequence[Pair]:
        return [pair_of(files)] if files else [replace(figures, nodes=(nodes[0], nodes[1]))]

    def check_nodes(self, count: int) -> None:
        if count != 2:
            raise Misuse(f"mode ha has two nodes, not {count}: use mode active-active")


class Scalable(_OfPairs):
    """Several pairs behind a layer that divides the events; nodes in turn without a layer."""

    name = SCALABLE

    def layer(self, request: DeployRequest, files: Sequence[NodeFile]) -> Layer:
        properties, variables = self.refs(files), request.variables
        return Layer(request.routing, layer_of(compile_app(request.text, properties=properties, variables=variables)))

    def refs(self, files: Sequence[NodeFile]) -> Mapping[str, str]:
        return refs_of_layer(files)

    def nodes(self, node_request: AskedNodes) -> NodesOfMode:
        if not node_request.layer.is_keyed:
            return super().nodes(node_request)
        return self._nodes(
            *nodes_of_groups(
                node_request.layer, node_request.files, node_request.request.nodes, node_request.request.shard_ids
            )
        )

    def groups(
        self, plan: Plan, name: str, nodes: NodesOfMode, node_request: AskedNodes
    ) -> NodeGroups | Distributed | None:
        if node_request.layer.is_keyed:
            return super().groups(plan, name, nodes, node_request)
        check_stateless(plan, node_request.trial)
        return None

    def _pairs(self, figures: Pair, nodes: Sequence[str], files: Sequence[NodeFile]) -> Sequence[Pair]:
        if files:
            return pairs_of(files)
        two = zip(nodes[::2], nodes[1::2], strict=True)
        return [replace(figures, nodes=ids, group=f"group-{i}") for i, ids in enumerate(two, 1)]


class FullyDistributed(Mode):
    """The parts that `@dist` makes of an app, on resource nodes where managers place them."""

    name = DISTRIBUTED
    fails = True

    def nodes(self, node_request: AskedNodes) -> NodesOfMode:
        r = node_request.request
        if r.nodes is not None:
            check_count(r.nodes)
        cluster = resource_cluster(node_request.files, r.resources, r.nodes, r.shard_ids)
        return NodesOfMode(self._nodes(len(cluster.nodes), cluster.nodes).shard_ids, cluster)

    def plan(self, plan: Plan) -> Plan:
        return without_sources(plan)

    def groups(
        self, plan: Plan, name: str, nodes: NodesOfMode, node_request: AskedNodes
    ) -> NodeGroups | Distributed | None:
        assert nodes.cluster is not None
        node_request.trial.check(self.name)
        return distributed_for(plan, name, nodes.cluster, node_request.trial)


_BY_NAME: Mapping[str, Mode] = {
    m.name: m for m in (Single(), ActiveActive(), MinimumHa(), Scalable(), FullyDistributed())
}


def mode_named(name: str) -> Mode:
    """The mode of a name. Raises `Misuse` for another name."""
    if name not in _BY_NAME:
        raise Misuse(nearest(f"'{name}' is not a deployment mode", name, MODES))
    return _BY_NAME[name]


def mode_of(request: DeployRequest, files: Sequence[NodeFile]) -> Mode:
    """The mode that was asked for, or that the deployment files or the number of nodes mean. Raises `Misuse`."""
    name = mode_of_files(files) if request.mode is None else request.mode
    if name is not None:
        return mode_named(name)
    count = len(files) if files else 1 if request.nodes is None else check_count(request.nodes)
    return mode_named(ActiveActive.name if count > 1 else Single.name)


def check_clock(clock: str, mode: Mode, plan: Plan, start: int | None) -> str:
    """Raises `Misuse` for anything but "virtual" and "wall", and for "wall" where time is simulated or set."""
    if clock not in CLOCKS:
        raise Misuse(nearest(f"clock='{clock}' is neither 'virtual' nor 'wall'", clock, CLOCKS))
    if clock == "virtual":
        return clock
    if mode.fails:
        raise Misuse(
            f"clock='wall' is not for mode {mode.name}, whose nodes are simulated in virtual time: leave clock out"
        )
    if playback(plan):
        raise Misuse(
            "clock='wall' contradicts @app:playback, by which events and nothing else move the clock: leave one of the "
            "two out"
        )
    if start is not None:
        raise Misuse("with clock='wall' the app's clock starts with the deployment: leave start out")
    return clock
