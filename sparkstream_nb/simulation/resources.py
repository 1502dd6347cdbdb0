"""A fully distributed deployment as plain data: managers, resource nodes, the partial apps that they run, and faults.

The figures follow the servers' `deployment.yaml` (`cluster.config` and `deployment.config` of a manager,
`deployment.config` and `state.persistence` of a resource node of WSO2's Stream Processor 4).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..errors import Misuse
from ..messaging import Messaging
from .faults import Cut, Fault, Kill, Pause, Restart, Slow, check_faults, random_times, shift_fault
from .topology import CLIENTS, DATABASE, Coordination

MANAGERS = "managers"
"""All managers, as an end of a link."""
MANAGEMENT = Coordination(500, 4, 1_000)
"""Default coordination of managers."""


@dataclass(frozen=True)
class ResourceNode:
    """A node that runs partial apps: a `receiver` those with sources that the app defines, others the rest."""

    name: str
    receiver: bool = False


@dataclass(frozen=True)
class PartialApp:
    """An instance of an execution group. `parallel`: how many instances its group has."""

    name: str
    receiver: bool = False
    parallel: int = 1


@dataclass(frozen=True)
class ResourceCluster:
    """Managers of which one leads, and resource nodes.

    A resource node sends a heartbeat every `heartbeat` ms; the leader looks every `heartbeat` ms as well, and gives a
    node up when it finds for the (`retries` + 1)-th time that its last heartbeat is 2 × `heartbeat` old. A node that
    reaches no manager tries again every `retry` ms. Nothing is placed while there are fewer than `minimum` nodes.
    Nodes persist the state of their apps every `persist` ms (None: never). `messaging` carries the events between apps.
    """

    workers: tuple[ResourceNode, ...]
    managers: tuple[str, ...] = ("manager-1", "manager-2")
    coordination: Coordination = field(default_factory=lambda: MANAGEMENT)
    heartbeat: int = 2_000
    retries: int = 2
    minimum: int = 1
    retry: int = 10_000
    persist: int | None = 60_000
    messaging: Messaging = Messaging.KAFKA

    def __post_init__(self) -> None:
        for figure, value in (
            ("heartbeatInterval", self.heartbeat),
            ("heartbeatMaxRetry", self.retries),
            ("minResourceCount", self.minimum),
            ("leaderRetryInterval", self.retry),
            ("intervalInMin", 1 if self.persist is None else self.persist),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Misuse(f"{figure} must be 1 or more, not {value!r}")
        if not all(isinstance(w, ResourceNode) for w in self.workers):
            raise Misuse("workers are resource nodes, as ResourceNode('worker-1')")
        if not isinstance(self.messaging, Messaging):
            raise Misuse(f"messaging is Messaging.KAFKA or Messaging.NATS, not {self.messaging!r}")
        if not self.managers or not self.workers:
            raise Misuse("a fully distributed deployment has at least one manager and one resource node")
        names = [*self.managers, *self.nodes]
        for name in names:
            if names.count(name) > 1:
                raise Misuse(f"two nodes are called '{name}': give each its own id")
            if name in (DATABASE, CLIENTS, MANAGERS):
                raise Misuse(f"a node cannot be called '{name}', which is another end of its links")

    @property
    def nodes(self) -> tuple[str, ...]:
        """The resource nodes' names."""
        return tuple(w.name for w in self.workers)

    @property
    def receivers(self) -> frozenset[str]:
        """Receiver nodes."""
        return frozenset(w.name for w in self.workers if w.receiver)


@dataclass(frozen=True)
class ResourceScenario:
    """A cluster, the partial apps that it runs, and its faults: `faults` are ms from the start on, `rate` random ones
    come in ten minutes in the mean. `seed`: seed of the loops and of random faults. Raises `Misuse` for faults that are
    impossible.
    """

    cluster: ResourceCluster
    apps: tuple[PartialApp, ...]
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    rate: float = 0.0

    def __post_init__(self) -> None:
        self._check_faults(self.faults)

    @property
    def random(self) -> bool:
        """True if faults come at random."""
        return bool(self.rate)

    def schedule(self, start: int, until: int, more: Sequence[Fault] = ()) -> tuple[Fault, ...]:
        """All that happens from `start` to `until` (ms), in order; `more` faults have the times of their own. A link
        to all managers is one to each of them. Raises `Misuse` for faults that are impossible."""
        given_faults = tuple(shift_fault(f, start) for f in self.faults)
        random_ones = random_faults(self.cluster, self.seed, (start, until), self.rate) if self.rate else ()
        return self._check_faults((*random_ones, *given_faults, *more))

    def _check_faults(self, faults: Sequence[Fault]) -> tuple[Fault, ...]:
        c = self.cluster
        checked_faults = check_faults([*_single_links(c, faults)], (*c.managers, *c.nodes), (DATABASE, CLIENTS))
        for f in checked_faults:
            if isinstance(f, Slow):
                raise Misuse(f"{f} at {f.at} ms: mode distributed has no slow links")
            if isinstance(f, Cut) and {f.a, f.b} not in _links(c):
                raise Misuse(f"{f} at {f.at} ms: there is no link between {f.a} and {f.b}")
        return checked_faults


def _single_links(cluster: ResourceCluster, faults: Iterable[Fault]) -> Iterator[Fault]:
    """The faults, with a link to all managers as one to each of them."""
    for f in faults:
        if isinstance(f, Cut) and MANAGERS in (f.a, f.b):
            for m in cluster.managers:
                yield replace(f, a=m if f.a == MANAGERS else f.a, b=m if f.b == MANAGERS else f.b)
        else:
            yield f


def _links(cluster: ResourceCluster) -> list[set[str]]:
    """The links there are, each as its two ends: clients send to receivers, and to the topics of the messaging layer,
    which is always there."""
    nodes, managers = cluster.nodes, cluster.managers
    links = [{n, m} for n in nodes for m in managers] + [{n, DATABASE} for n in (*nodes, *managers)]
    return links + [{n, CLIENTS} for n in cluster.receivers]


def random_faults(cluster: ResourceCluster, seed: int, between: tuple[int, int], rate: float) -> tuple[Fault, ...]:
    """Faults that a seed determines, in `between` (ms): `rate` for each ten minutes in the mean."""
    rng = random.Random(f"{seed}:faults")
    faults: list[Fault] = []
    until: dict[str, int] = {}
    for now in random_times(rng, between, rate):
        node = rng.choice((*cluster.nodes, *cluster.nodes, *cluster.managers))
        span = 1 + int(rng.expovariate(1 / 30_000))
        kind = rng.choice(("kill", "kill", "pause", "managers", "database"))
        if until.get(node, 0) >= now:
            continue
        until[node] = now + span
        if kind == "kill":
            faults += [Kill(now, node), Restart(now + span, node)]
        elif kind == "pause":
            faults.append(Pause(now, node, now + span))
        elif kind == "managers" and node in cluster.nodes:
            faults += [Cut(now, node, m, now + span) for m in cluster.managers]
        else:
            faults.append(Cut(now, node, DATABASE, now + span))
    return tuple(faults)
