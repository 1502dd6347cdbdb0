"""Groups of nodes, each with its own coordination: one in minimum HA, several behind a partitioning layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import Misuse, nearest
from .faults import Fault, LinkFault, Scenario
from .topology import CLIENTS, DATABASE, Pair

PARTITIONED, ROUND_ROBIN, BROADCAST = "partitioned", "roundRobin", "broadcast"


@dataclass(frozen=True)
class Distribution:
    """Division of the events of a stream among the groups, as by a distributed sink of Siddhi: by the hash of
    attribute `key` ("partitioned"), in turn over the groups that are there ("roundRobin"), or to all ("broadcast").
    """

    strategy: str = ROUND_ROBIN
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.strategy} by {self.key}" if self.key is not None else self.strategy


@dataclass(frozen=True)
class NodeGroups:
    """Groups of two nodes, with the faults of each. `streams`: how a partitioning layer divides the events of each
    stream over them; those that are not named go in turn. Raises `Misuse` if two nodes or groups have one name.
    """

    scenarios: tuple[Scenario, ...]
    streams: tuple[tuple[str, Distribution], ...] = ()

    def __post_init__(self) -> None:
        names = [*self.nodes, *(self.names if len(self.scenarios) > 1 else ())]
        for name in names:
            if names.count(name) > 1:
                raise Misuse(f"two nodes or groups are called '{name}': give each its own name")

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The nodes of each group, and their figures."""
        return tuple(s.pair for s in self.scenarios)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups' ids."""
        return tuple(p.group for p in self.pairs)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, group by group."""
        return tuple(n for p in self.pairs for n in p.nodes)

    @cached_property
    def distributions(self) -> Mapping[str, Distribution]:
        """`streams` by name."""
        return dict(self.streams)

    @property
    def random(self) -> bool:
        """True if its faults are random."""
        return any(s.rate for s in self.scenarios)

    def place(self, node: str) -> int:
        """The number (from 0) of a node's group."""
        return next(i for i, p in enumerate(self.pairs) if node in p.nodes)

    def single_node_faults(self, fault: Fault) -> tuple[Fault, ...]:
        """A fault as faults of single nodes: a group that is cut off or slow is each of its nodes. Raises `Misuse` for
        a name that is neither a node nor a group.
        """
        if isinstance(fault, LinkFault):
            for near, far in ((fault.a, fault.b), (fault.b, fault.a)):
                if len(self.pairs) > 1 and near in self.names and far in (CLIENTS, DATABASE):
                    return tuple(replace(fault, a=n, b=far) for n in self.pairs[self.names.index(near)].nodes)
        if not any(n in self.nodes for n in fault.nodes):
            wrong = next((n for n in fault.nodes if n not in (CLIENTS, DATABASE)), fault.nodes[0])
            names = [*self.nodes, *(self.names if len(self.pairs) > 1 else ())]
            raise Misuse(nearest(f"{fault} at {fault.at} ms: there is no node '{wrong}'", wrong, names))
        return (fault,)

    def of(self, place: int, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        """The `faults` that happen to group number `place`. Raises `Misuse` as `single_node_faults`."""
        node_faults = [f for fault in faults for f in self.single_node_faults(fault)]
        return tuple(f for f in node_faults if self.place(next(n for n in f.nodes if n in self.nodes)) == place)

    @property
    def has_planned_faults(self) -> bool:
        """True if faults are planned from the start on."""
        return any(s.faults for s in self.scenarios)

    def check(self, start: int, until: int, more: tuple[Fault, ...]) -> None:
        """Raise `Misuse` for faults that are impossible in addition to the planned ones; times as in `schedule`."""
        for place, scenario in enumerate(self.scenarios):
            scenario.schedule(start, until, self.of(place, more))


def groups_of(
    pairs: tuple[Pair, ...],
    seed: int,
    faults: tuple[Fault, ...] = (),
    *,
    rate: float = 0.0,
    streams: tuple[tuple[str, Distribution], ...] = (),
) -> NodeGroups:
    """Groups with their faults: `faults` (ms from the start on), and `rate` random ones for each ten minutes in
    the mean, in each group. Raises `Misuse` for faults that are impossible.
    """
    bare = NodeGroups(tuple(Scenario(p, seed) for p in pairs), streams)
    group_faults = [bare.of(i, faults) for i in range(len(pairs))]
    return NodeGroups(tuple(Scenario(p, seed, f, rate) for p, f in zip(pairs, group_faults, strict=True)), streams)
