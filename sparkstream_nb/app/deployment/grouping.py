"""The groups of nodes of a deployment: the pair of minimum HA, and the pairs behind a partitioning layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Misuse, shown
from ...journal.routing import Route
from ...lang.tree import find_annotation
from ...plan.distributed.layer_streams import DividedStream
from ...plan.nodes import Plan
from ...simulation.faults import Fault
from ...simulation.node_groups import PARTITIONED, Distribution, NodeGroups, groups_of
from ...simulation.resources import ResourceCluster
from ...simulation.topology import Pair
from ...types import Schema
from ..config.conf import DISTRIBUTED, NodeFile
from ..config.conf_pair import pairs_of
from ..config.fault_schedule import plan_faults
from .deployment import HA, SCALABLE


@dataclass(frozen=True)
class Trial:
    """The arguments of `deploy` about groups: their figures, their faults, the seed."""

    pair: Pair | None = None
    resources: ResourceCluster | None = None
    faults: str | Path | Sequence[Fault] | None = None
    seed: int = 0

    def refuse(self, why: str) -> None:
        """Raises `Misuse` with the reason `why` where anything was given."""
        arguments = {"pair": self.pair, "resources": self.resources, "faults": self.faults, "seed": self.seed or None}
        for name, value in arguments.items():
            if value is not None:
                raise Misuse(f"{name} is for {why}")

    def check(self, mode: str) -> None:
        """Raise `Misuse` for parameters that a mode with faults has no use for, and for an invalid seed."""
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise Misuse(f"seed is a whole number, not {shown(self.seed)}")
        other_argument = "pair" if mode == DISTRIBUTED else "resources"
        if getattr(self, other_argument) is not None:
            raise Misuse(f"mode {mode} has no use for {other_argument}: leave it out")


def mode_of_files(files: Sequence[NodeFile]) -> str | None:
    """The mode that deployment files mean: distributed by files of that type, minimum HA by two of its type, scaled out
    by more of them or by files of a partitioning layer beside them; None: another one.
    """
    if any(f.kind == DISTRIBUTED for f in files):
        return DISTRIBUTED
    pairs = sum(f.kind == HA for f in files)
    return None if not pairs else HA if pairs == len(files) <= 2 else SCALABLE


def refs_of_layer(files: Sequence[NodeFile]) -> dict[str, str]:
    """Definitions in the files of a partitioning layer: the destinations that a @distribution refers to."""
    return {k: v for f in files if f.kind != HA for k, v in f.properties.items()}


@dataclass(frozen=True)
class Layer:
    """The rule that divides events over groups: `@distribution` by stream, else the routing."""

    routing: str
    divided_streams: Mapping[str, DividedStream]

    @property
    def is_keyed(self) -> bool:
        """True if there is one: else events go to nodes in turn."""
        return bool(self.divided_streams) or self.routing != "round_robin"

    @property
    def route(self) -> str:
        """The routing that means the same to queries: by the key, where all divided streams have one."""
        keys = {d.key for d in self.divided_streams.values()}
        return f"hash:{keys.pop()}" if len(keys) == 1 and None not in keys else self.routing

    def streams(self, inputs: Mapping[str, Schema]) -> tuple[tuple[str, Distribution], ...]:
        """The division of each input stream's events."""
        out = {s: Distribution(d.strategy, d.key) for s, d in self.divided_streams.items()}
        key = Route.parse(self.routing, 1).attribute
        if not self.divided_streams and key is not None:
            out = {s: Distribution(PARTITIONED, key) for s, schema in inputs.items() if schema.find(key) is not None}
        return tuple(out.items())


def check_no_groups(mode: str, files: Sequence[NodeFile], trial: Trial) -> None:
    """Raise `Misuse` for parameters that a mode without groups has no use for."""
    trial.refuse(f"modes {HA}, {SCALABLE} and {DISTRIBUTED}, and the mode is {mode}")
    if files and files[0].kind == HA:
        raise Misuse(f"{files[0].path} is of minimum HA: leave mode out, or give mode='{HA}'")


def pair_figures(mode: str, files: Sequence[NodeFile], trial: Trial) -> Pair:
    """The figures of a pair where deployment files give none. Raises `Misuse` if arguments do not fit together."""
    trial.check(mode)
    if trial.pair is not None and not isinstance(trial.pair, Pair):
        raise Misuse(f"pair is a Pair, not {shown(trial.pair)}")
    if files and trial.pair is not None:
        raise Misuse("the deployment files give the figures of the pair: leave pair out")
    return trial.pair or Pair()


def groups_for(pairs: Sequence[Pair], trial: Trial, streams: Sequence[tuple[str, Distribution]]) -> NodeGroups:
    """The groups of two nodes each, with their faults. Raises `Misuse` for faults that are impossible."""
    pairs, faults, rate = plan_faults(pairs, trial.faults)
    return groups_of(tuple(pairs), trial.seed, faults, rate=rate, streams=tuple(streams))


def nodes_of_groups(
    layer: Layer, files: Sequence[NodeFile], nodes: int | None, shard_ids: Sequence[str] | None
) -> tuple[int, Sequence[str]]:
    """The number of nodes behind a layer, two for each destination, and their ids. Raises `Misuse` if the arguments do
    not fit together.
    """
    destinations = next((d.destinations for d in layer.divided_streams.values()), None)
    if files:
        if nodes is not None or shard_ids is not None:
            raise Misuse("the deployment files say which nodes there are: leave nodes and shard_ids out")
        names = [n for p in pairs_of(files) for n in p.nodes]
        if destinations is not None and len(names) != 2 * destinations:
            has = f"the deployment files have {len(names) // 2} groups of two nodes"
            raise Misuse(f"{has}, and the app's @distribution {destinations} destinations")
        return len(names), names
    count = nodes if nodes is not None else 2 * (destinations or 2)
    if isinstance(count, int) and (count < 2 or count % 2 or (destinations is not None and count != 2 * destinations)):
        groups = f"{destinations} destinations" if destinations is not None else "groups"
        raise Misuse(f"behind a partitioning layer there are {groups} of two nodes each: nodes={count} does not fit")
    return count, shard_ids or [f"group-{i + 1}-node-{j + 1}" for i in range(count // 2) for j in range(2)]


def check_groups(plan: Plan, mode: str, routing: str, alerts: str) -> None:
    """Raise `Misuse` for parameters that groups of nodes have no use for."""
    if mode == HA and routing != "round_robin":
        remedy = "one node takes all. Pair(balancer=...) says which pair an event goes to"
        raise Misuse(f"mode {HA} has no routing: {remedy}")
    if mode == DISTRIBUTED and routing != "round_robin":
        raise Misuse(f"mode {DISTRIBUTED} has no routing: the app's partitions decide which node takes an event")
    if alerts != "on":
        why = "runs what @dist says where it says" if mode == DISTRIBUTED else "has one active node in a group"
        raise Misuse(f"mode {mode} {why}: leave alerts out")
    refuse_stores(plan, mode)


def refuse_stores(plan: Plan, mode: str) -> None:
    """Raise `Misuse` for a table or an aggregation with a store, in a mode whose nodes have them in memory."""
    for what, elements in (("aggregation", plan.aggregations), ("table", plan.tables)):
        for name, definition in elements.items():
            if find_annotation(definition.annotations, "store") is not None:
                raise Misuse(
                    f"mode {mode} keeps tables and aggregations in the nodes' memory, and {what} '{name}' has a "
                    "@store. Leave @store out"
                )


def check_stateless(plan: Plan, trial: Trial) -> None:
    """Raises `Misuse` if the nodes of an app that is scaled out with no layer would have to keep something."""
    trial.refuse("groups of nodes; this app has no partitioning layer: give routing='hash:ATTRIBUTE'")
    queries = [q for q in plan.queries if q.safety.level != "stateless"]
    stateful_parts = [f"query '{q.name}' does ({q.safety.reason})" for q in queries]
    stateful_parts += [f"aggregation '{a}' does" for a in plan.aggregations]
    stateful_parts += [f"table '{t}' does" for t in plan.tables]
    if stateful_parts:
        raise Misuse(
            f"nodes without a partitioning layer keep nothing, and {stateful_parts[0]}: give "
            "routing='hash:ATTRIBUTE', or a @distribution for the input stream"
        )
