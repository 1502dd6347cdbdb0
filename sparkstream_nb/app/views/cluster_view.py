"""The nodes of an app as they are after the last committed micro-batch, as plain data, and who reads it.

Nothing here knows how the nodes work together. That is for a `ClusterAdapter` to tell: `pair_view.PairAdapter` for
pairs of minimum HA.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ...errors import SparkStreamError
from ...journal.result_rows import NodeReport
from ...simulation.faults import Fault
from ...simulation.timeline import Role, RoleSpan
from ..results.frontend import Displayed
from ..results.listeners import OnCommit, always_running

ACTION_KINDS = ("kill", "restart", "pause", "cut")


@dataclass(frozen=True)
class Action:
    """An action on a node: one of `ACTION_KINDS`, of a cut with its `other` end. `refused`: why it cannot be
    done now; "": it can."""

    kind: str
    node: str
    other: str | None = None
    refused: str = ""


@dataclass(frozen=True)
class Queue:
    """The events that a node holds for another one, and the most that it can."""

    held: int
    capacity: int


@dataclass(frozen=True)
class ClusterNode:
    """A node: its group, its role now, the apps that it `runs`, its queue where it has one, the possible actions on it,
    and the time (ms) until which it is halted, if it is.
    """

    name: str
    group: str
    role: Role
    runs: tuple[str, ...] = ()
    queue: Queue | None = None
    actions: tuple[Action, ...] = ()
    until: int | None = None


class LinkState(Enum):
    """The kind of a link."""

    UP = "up"
    CUT = "cut"
    DOWN = "an end is down"


@dataclass(frozen=True)
class Link:
    """A link between two ends: nodes, or a node and an end outside of the cluster, as "database". `until`:
    when a cut ends (ms). `source`: the end that sends events over it now; `note`: a remark on it.
    """

    a: str
    b: str
    state: LinkState = LinkState.UP
    until: int | None = None
    source: str | None = None
    note: str = ""


@dataclass(frozen=True)
class TopicView:
    """A topic between nodes: who writes to it, who reads from it, and how many events wait in it."""

    name: str
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    waiting: int = 0


@dataclass(frozen=True)
class GroupState:
    """A group's events so far: `taken` by a node, and `lost` by reason. When (ms) the last `revision` of its state was
    made (None: there is none), and how many `revisions` were."""

    name: str
    taken: int
    lost: Mapping[str, int] = field(default_factory=dict)
    revision: int | None = None
    revisions: int = 0


class LogKind(Enum):
    """The subject of a line of the log."""

    FAULT = "fault"
    ELECTION = "election"
    TAKEOVER = "takeover"
    OTHER = "other"


@dataclass(frozen=True)
class LogLine:
    """A line of the log, at `at` (ms), in words; `node`: the node that it concerns, if it is one; `group`: its group.
    """

    at: int
    text: str
    kind: LogKind = LogKind.OTHER
    node: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class ClusterState:
    """The state that an adapter gives. Times are ms by the app's clock.

    `start` and `clock`: when the first event came, and the last one that is committed; None before there was any.
    `spans`: the roles of the nodes over time. `log`: happenings after the start, in order. `lost_between`: spans of
    time (both ends included) in which events were lost. `ahead`: faults that wait for the clock, in order.
    """

    nodes: Sequence[ClusterNode]
    links: Sequence[Link] = ()
    groups: Sequence[GroupState] = ()
    start: int | None = None
    clock: int | None = None
    spans: Sequence[RoleSpan] = ()
    log: Sequence[LogLine] = ()
    lost_between: Sequence[tuple[int, int]] = ()
    ahead: Sequence[Fault] = ()
    topics: Sequence[TopicView] = ()


@dataclass(frozen=True, repr=False, eq=False)
class ClusterSnapshot(Displayed):
    """The nodes of the app `app` in its `mode`, as of the last committed micro-batch."""

    app: str
    mode: str
    state: ClusterState

    def node(self, name: str) -> ClusterNode:
        """A node by its id. Raises KeyError if there is none."""
        node = next((n for n in self.state.nodes if n.name == name), None)
        if node is None:
            raise KeyError(name)
        return node

    @property
    def taken(self) -> int:
        """The number of events that a node took."""
        return sum(g.taken for g in self.state.groups)

    @property
    def lost(self) -> int:
        """The number of events that no node took."""
        return sum(n for g in self.state.groups for n in g.lost.values())

    def followed(self, fault: Fault) -> Sequence[LogLine]:
        """The log after a fault in the groups of its nodes, without itself; empty if it waits for the
        clock."""
        groups = {n.group for n in self.state.nodes if n.name in fault.nodes}
        later = [h for h in self.state.log if h.at >= fault.at and h.text != str(fault)]
        return [h for h in later if h.group is None or h.group in groups]

    def waits(self, fault: Fault) -> bool:
        """True if a fault has not happened yet."""
        return self.state.clock is None or fault.at > self.state.clock

    def summary(self) -> str:
        roles = ", ".join(f"{n.name} {n.role.value}" for n in self.state.nodes)
        return f"<Cluster of {self.app}: {roles}>"


class ClusterAdapter(Protocol):
    """The view of a mode's nodes."""

    def state(self, reports: Mapping[str, NodeReport]) -> ClusterState:
        """The cluster according to the nodes' last reports, by their ids; without reports, before anything came in."""
        ...


@dataclass(frozen=True)
class ClusterReader:
    """Reads the cluster of the app `app`: its nodes' last `reports`, by their ids. `follow` calls after commits, and
    returns a function that ends that; `settle` waits until sent events are committed, for some seconds at most; `state`
    is as in `Followed`.
    """

    app: str
    mode: str
    adapter: ClusterAdapter
    reports: Callable[[], Mapping[str, NodeReport]]
    follow: Callable[[OnCommit], Callable[[], None]]
    settle: Callable[[], None]
    state: Callable[[], str] = always_running

    def read(self) -> ClusterSnapshot:
        """The cluster as of the last committed micro-batch."""
        return ClusterSnapshot(self.app, self.mode, self.adapter.state(self.reports()))

    def read_settled(self) -> ClusterSnapshot:
        """The cluster when sent events are committed; its present state, if the app has failed."""
        with contextlib.suppress(SparkStreamError):  # the card and `App.flush` say why
            self.settle()
        return self.read()
