"""Topology of a deployment as plain data: groups of nodes, and the figures of their coordination.

The figures are named as in a server's `deployment.yaml`; the defaults are its own (`cluster.config`,
`deployment.config`, `state.persistence` of WSO2's Streaming Integrator).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import Misuse

DATABASE = "database"
"""The database through which the nodes of a group coordinate, as an end of a link."""
CLIENTS = "clients"
"""The clients that send events, with their load balancer, as an end of a link."""

BALANCERS = ("failover", "round_robin")


@dataclass(frozen=True)
class Coordination:
    """Figures of an election through the database, in ms: a node writes a heartbeat every `heartbeat`; a heartbeat that
    is older than `heartbeat` × `retries` is void; a node reads the changes every `poll`.
    """

    heartbeat: int = 5_000
    retries: int = 5
    poll: int = 5_000

    def __post_init__(self) -> None:
        _positive("heartbeatInterval", self.heartbeat)
        _positive("heartbeatMaxRetry", self.retries)
        _positive("eventPollingInterval", self.poll)

    @property
    def oldest(self) -> int:
        """The age (ms) of the oldest heartbeat that counts."""
        return self.heartbeat * self.retries


@dataclass(frozen=True)
class Pair:
    """Two nodes of minimum high availability: one is active, the other takes over.

    `persist`: ms from one revision of the state to the next (`intervalInMin`); `revisions`: how many are kept
    (`revisionsToKeep`); `queue`: how many events the passive node holds (`eventByteBufferQueueCapacity`). `balancer`:
    whom clients send to: with "failover" one node until it refuses, with "round_robin" the two in turn.
    """

    nodes: tuple[str, str] = ("node-1", "node-2")
    group: str = "group-1"
    coordination: Coordination = field(default_factory=Coordination)
    persist: int = 60_000
    revisions: int = 2
    queue: int = 20_000
    balancer: str = "failover"

    def __post_init__(self) -> None:
        if len(self.nodes) != 2:
            raise Misuse(f"minimum HA has two nodes, and {self.group} has {len(self.nodes)}")
        if self.nodes[0] == self.nodes[1]:
            raise Misuse(f"two nodes of {self.group} have the id '{self.nodes[0]}': give each its own")
        for node in self.nodes:
            if node in (DATABASE, CLIENTS):
                raise Misuse(f"a node cannot be called '{node}', which is another end of its links")
        _positive("intervalInMin", self.persist)
        _positive("revisionsToKeep", self.revisions)
        _positive("eventByteBufferQueueCapacity", self.queue)
        if self.balancer not in BALANCERS:
            raise Misuse(f"balancer='{self.balancer}' is neither 'failover' nor 'round_robin'")

    def peer(self, node: str) -> str:
        """The other node."""
        return self.nodes[1] if node == self.nodes[0] else self.nodes[0]


def _positive(figure: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Misuse(f"{figure} must be 1 or more, not {value!r}")
