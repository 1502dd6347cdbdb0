"""Happenings of a deployment, in virtual time (ms): the output of a simulation, and the input of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar


@dataclass(frozen=True)
class Happening:
    """A happening at `at` (ms). `sentence` is its text, with its members in braces."""

    at: int
    sentence: ClassVar[str]

    def __str__(self) -> str:
        return self.sentence.format_map(vars(self))


@dataclass(frozen=True)
class Faulted(Happening):
    """A fault of the schedule begins, or ends: its `text` says which."""

    text: str
    sentence = "{text}"


@dataclass(frozen=True)
class NodeHappening(Happening):
    """A happening at a node."""

    node: str


class Down(NodeHappening):
    """A node's process has ended."""

    sentence = "{node} is down"


class Halted(NodeHappening):
    """A node is halted."""

    sentence = "{node} stands still"


class Resumed(NodeHappening):
    """A halted node resumes."""

    sentence = "{node} goes on"


@dataclass(frozen=True)
class LinkHappening(Happening):
    """A happening on the link between two ends, `a` and `b`."""

    a: str
    b: str


@dataclass(frozen=True)
class LinkChanged(LinkHappening):
    """True if two ends reach each other, from now on."""

    whether: bool

    def __str__(self) -> str:
        return f"{self.a} and {self.b} {'reach' if self.whether else 'do not reach'} each other"


@dataclass(frozen=True)
class Delayed(LinkHappening):
    """Messages between two ends arrive `by` ms later, from now on; 0: without delay."""

    by: int

    def __str__(self) -> str:
        how = f"slower by {self.by / 1000:g} s" if self.by else "as fast as before"
        return f"the link between {self.a} and {self.b} is {how}"


@dataclass(frozen=True)
class Elected(NodeHappening):
    """A node found the coordinator's heartbeat `age` ms old (None: there was none), and took its place."""

    age: int | None

    def __str__(self) -> str:
        why = "there is no coordinator" if self.age is None else f"the coordinator's heartbeat is {self.age:,} ms old"
        return f"{self.node} is elected: {why}"


class Deposed(NodeHappening):
    """A coordinator found that it is not one any more."""

    sentence = "{node} is not the coordinator any more"


@dataclass(frozen=True)
class Active(NodeHappening):
    """A node becomes the active one: from a start (`started`), else by taking over, with its queue."""

    started: bool = False

    def __str__(self) -> str:
        how = "starts as the active node" if self.started else "takes over"
        return f"{self.node} {how}, with the last revision"


@dataclass(frozen=True)
class Passive(NodeHappening):
    """A node becomes the passive one: from a start (`started`), else because it lost its place."""

    started: bool = False

    def __str__(self) -> str:
        return f"{self.node} {'starts as' if self.started else 'becomes'} the passive node"


@dataclass(frozen=True)
class Syncing(NodeHappening):
    """The active `node` sends its events to the other one (`whether`), or no longer, from now on. When it begins, it
    persists.
    """

    whether: bool

    def __str__(self) -> str:
        return f"{self.node} {'begins' if self.whether else 'ends'} to send its events to the other node"


@dataclass
class NodePauses:
    """Nodes that are halted, and the time (ms) until which each is; happenings go to `say`."""

    say: Callable[[Happening], None]
    until: dict[str, int] = field(default_factory=dict)

    def halt(self, node: str, now: int, until: int) -> None:
        """A pause begins; it may overlap with another one."""
        if node not in self.until:
            self.say(Halted(now, node))
        self.until[node] = max(until, self.until.get(node, 0))

    def resume(self, node: str, now: int) -> bool:
        """A pause ends; whether the node resumes, as no other pause lasts."""
        if self.until.get(node) != now:
            return False
        del self.until[node]
        self.say(Resumed(now, node))
        return True


@dataclass(frozen=True)
class PersistTimes:
    """When a node persists, while it is the active one: `every` ms, counted from its start."""

    node: str
    start: int
    every: int

    def due(self, after: int, upto: int) -> int:
        """Number of times in `after` < t ≤ `upto`."""
        return max(0, (upto - self.start) // self.every - max(0, (after - self.start) // self.every))

    def last(self, upto: int) -> int:
        """The last time that is not after `upto`; the node has started by then."""
        return self.start + (upto - self.start) // self.every * self.every


@dataclass
class SimulatedTimeline:
    """Happenings in order, and when nodes persist: a clock for each start of a node."""

    happenings: list[Happening] = field(default_factory=list)
    clocks: list[PersistTimes] = field(default_factory=list)

    def slow_spans(self, a: str, b: str, upto: int) -> list[tuple[int, int]]:
        """From when to when (ms) the link between two ends was slow, up to `upto` (ms)."""
        out: list[tuple[int, int]] = []
        slow_since: int | None = None
        for h in self.happenings:
            if isinstance(h, Delayed) and {h.a, h.b} == {a, b}:
                if slow_since is not None and not h.by:
                    out.append((slow_since, h.at))
                slow_since = None if not h.by else h.at if slow_since is None else slow_since
        return out if slow_since is None else [*out, (slow_since, upto)]


class Role(Enum):
    """Role of a node. Idle is a resource node that runs nothing."""

    ACTIVE = "active"
    PASSIVE = "passive"
    IDLE = "idle"
    HALTED = "stands still"
    DOWN = "down"


@dataclass(frozen=True)
class RoleSpan:
    """A node has a role from `first` to `end` (ms, exclusive)."""

    node: str
    role: Role
    first: int
    end: int


def roles(happenings: Iterable[Happening], until: int) -> list[RoleSpan]:
    """Spans of the nodes' roles, up to `until` (ms), in the order in which they end. A halted node is neither active
    nor passive meanwhile, even if it regards itself as active.
    """
    was: dict[str, tuple[Role, int]] = {}
    itself: dict[str, Role] = {}
    out = []

    def becomes(node: str, role: Role, at: int) -> None:
        before = was.get(node)
        if before is not None and before[0] is not role and at > before[1]:
            out.append(RoleSpan(node, before[0], before[1], at))
        if before is None or before[0] is not role:
            was[node] = role, at

    for h in happenings:
        match h:
            case Active(node=node) | Passive(node=node) | Down(node=node):
                role = {Active: Role.ACTIVE, Passive: Role.PASSIVE, Down: Role.DOWN}[type(h)]
                itself[node] = role
                becomes(node, role, h.at)
            case Halted(node=node):
                becomes(node, Role.HALTED, h.at)
            case Resumed(node=node):
                becomes(node, itself[node], h.at)
    return out + [RoleSpan(node, role, at, until) for node, (role, at) in was.items() if until > at]


def gap_before(at: int, happenings: Iterable[Happening]) -> int | None:
    """Time (ms) without an active node before one became active at `at` (ms); None: there was one until then."""
    before = roles([h for h in happenings if h.at <= at], at)
    last = max((s.end for s in before if s.role is Role.ACTIVE), default=None)
    return None if last is None or last == at else at - last
