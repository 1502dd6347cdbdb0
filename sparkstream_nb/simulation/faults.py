"""Faults of a deployment, each at a virtual time (ms), and schedules of them.

A pause stops a node and keeps its memory, as a long collection of garbage does. A cut keeps two ends from reaching each
other: two nodes, a node and the database, a node and the clients. A slow link delays messages between two ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import Misuse, nearest, shown
from .topology import CLIENTS, DATABASE, Pair


@dataclass(frozen=True)
class Fault:
    """A fault at `at` (ms)."""

    at: int

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ends that it names."""
        raise NotImplementedError


@dataclass(frozen=True)
class NodeFault(Fault):
    """A fault of one node."""

    node: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)


@dataclass(frozen=True)
class LinkFault(Fault):
    """A fault of the link between two ends, `a` and `b`."""

    a: str
    b: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class Kill(NodeFault):
    """The node's process ends: its memory is gone."""

    def __str__(self) -> str:
        return f"kill {self.node}"


@dataclass(frozen=True)
class Restart(NodeFault):
    """A node that was killed is up again."""

    def __str__(self) -> str:
        return f"restart {self.node}"


@dataclass(frozen=True)
class Pause(NodeFault):
    """The node is halted until `until` (ms)."""

    until: int

    def __str__(self) -> str:
        return f"pause {self.node} for {(self.until - self.at) / 1000:g} s"


@dataclass(frozen=True)
class Cut(LinkFault):
    """Two ends do not reach each other until `until` (ms)."""

    until: int

    def __str__(self) -> str:
        return f"cut {self.a} from {self.b} for {(self.until - self.at) / 1000:g} s"


@dataclass(frozen=True)
class Slow(LinkFault):
    """The link between two nodes, or between a node and the database, is slower by `by` ms until `until` (ms). Of
    several on one link the slowest counts.

    Database: one run of a loop (heartbeat, poll, start) is one exchange, which takes effect and ends `by` after its
    begin, with the times that the node read at its begin. A revision is in the database `by` after it was made. A
    node's exchange under way there is a transaction: it is lost if the node dies, and waits while the node is halted.

    Nodes: messages of the active one arrive `by` later, in order. They arrive also if the sender dies: an operating
    system delivers data that a process has handed to it, and such a link is long, not jammed. They are lost if the link
    is cut, or if the receiver dies or takes over before they arrive.

    A link to the clients cannot be slow, as an event's own time is the time at which a node takes it.

    Raises `Misuse` for a `by` that is no whole number above 0.
    """

    by: int
    until: int

    def __post_init__(self) -> None:
        if isinstance(self.by, bool) or not isinstance(self.by, int) or self.by < 1:
            raise Misuse(f"slow {self.a} {self.b}: by is a whole number of ms above 0, not {shown(self.by)}")

    def __str__(self) -> str:
        return f"slow the link of {self.a} and {self.b} by {self.by / 1000:g} s for {(self.until - self.at) / 1000:g} s"


Lasting = Pause | Cut | Slow
"""Faults with an end, `until`."""


def check_faults(faults: Sequence[Fault], nodes: Sequence[str], others: Sequence[str]) -> tuple[Fault, ...]:
    """Faults in the order of their times, of `nodes` and links that also have the ends `others`. Raises `Misuse` for
    one that names a node that is not there, kills a dead one or restarts a living one, slows the clients, or ends
    before it begins."""
    sorted_faults = tuple(sorted(faults, key=lambda f: f.at))
    dead: set[str] = set()
    for fault in sorted_faults:
        when = f"{fault} at {fault.at} ms"
        for name in fault.nodes:
            if name not in nodes and (not isinstance(fault, LinkFault) or name not in others):
                raise Misuse(nearest(f"{when}: there is no node '{name}'", name, nodes))
        match fault:
            case Kill(node=node) if node in dead:
                raise Misuse(f"{when}: {node} is down already")
            case Kill(node=node):
                dead.add(node)
            case Restart(node=node) if node not in dead:
                raise Misuse(f"{when}: {node} is up")
            case Restart(node=node):
                dead.remove(node)
            case Pause(node=node) if node in dead:
                raise Misuse(f"{when}: {node} is down")
            case Cut(a=a, b=b) | Slow(a=a, b=b) if a == b or {a, b} <= {*others}:
                raise Misuse(f"{when}: there is no link between {a} and {b}")
            case Slow() if CLIENTS in fault.nodes:
                raise Misuse(f"{when}: an event comes at its own time, so clients are never slow")
        if isinstance(fault, Lasting) and fault.until <= fault.at:
            raise Misuse(f"{when}: it ends at {fault.until} ms, before it begins")
    return sorted_faults


@dataclass(frozen=True)
class Schedule:
    """Faults of a pair, in the order of their times. Raises `Misuse` as `check_faults`."""

    pair: Pair
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", check_faults(self.faults, self.pair.nodes, (DATABASE, CLIENTS)))

    def plus(self, *faults: Fault) -> Schedule:
        """The schedule with more faults."""
        return Schedule(self.pair, (*self.faults, *faults))


def random_times(rng: random.Random, between: tuple[int, int], rate: float) -> Iterator[int]:
    """Times (ms) in `between` that `rng` draws: `rate` for each ten minutes in the mean."""
    at, last = float(between[0]), between[1]
    while (at := at + rng.expovariate(rate / 600_000)) < last:
        yield int(at)


def random_schedule(pair: Pair, seed: int, between: tuple[int, int], *, rate: float = 1.0) -> Schedule:
    """Faults that a seed determines, in `between` (ms): `rate` for each ten minutes in the mean."""
    rng = random.Random(seed)
    faults: list[Fault] = []
    down: dict[str, int] = {}
    for now in random_times(rng, between, rate):
        for node in [n for n, back in down.items() if back <= now]:
            del down[node]
        node = rng.choice(pair.nodes)
        span = 1 + int(rng.expovariate(1 / 45_000))
        kind = rng.choice(("kill", "kill", "pause", "database", "peer", "clients"))
        if node in down:
            continue
        match kind:
            case "kill":
                faults += [Kill(now, node), Restart(now + span, node)]
                down[node] = now + span
            case "pause":
                faults.append(Pause(now, node, now + span))
                down[node] = now + span
            case "database":
                faults.append(Cut(now, node, DATABASE, now + span))
            case "peer":
                faults.append(Cut(now, *pair.nodes, now + span))
            case _:
                faults.append(Cut(now, node, CLIENTS, now + span))
    return Schedule(pair, tuple(faults))


@dataclass(frozen=True)
class Scenario:
    """A pair, the seed that its coordination and random faults follow, and the faults that are planned: their times are
    ms from the start on. `rate`: random ones for each ten minutes in the mean."""

    pair: Pair
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    rate: float = 0.0

    def __post_init__(self) -> None:
        Schedule(self.pair, self.faults)

    def schedule(self, start: int, until: int, more: tuple[Fault, ...] = ()) -> Schedule:
        """All that happens from `start` to `until` (ms); `more` faults have the times of their own."""
        schedule = Schedule(self.pair, tuple(shift_fault(f, start) for f in self.faults))
        if self.rate:
            schedule = random_schedule(self.pair, self.seed, (start, until), rate=self.rate).plus(*schedule.faults)
        return schedule.plus(*more)


def shift_fault(fault: Fault, by: int) -> Fault:
    """The fault `by` ms later."""
    if isinstance(fault, Lasting):
        return replace(fault, at=fault.at + by, until=fault.until + by)
    return replace(fault, at=fault.at + by)


KINDS = {kind.__name__.lower(): kind for kind in (Kill, Restart, Pause, Cut, Slow)}


def members_of(fault: Fault) -> dict[str, Any]:
    """A fault as plain data, with its kind."""
    return {"kind": type(fault).__name__.lower(), **asdict(fault)}


def fault_of(members: Mapping[str, Any]) -> Fault:
    """The inverse of `members_of`. Raises `Misuse` for a kind or members that no fault has."""
    arguments = dict(members)
    kind = str(arguments.pop("kind", ""))
    if kind not in KINDS:
        raise Misuse(nearest(f"'{kind}' is not a kind of fault", kind, KINDS))
    try:
        return KINDS[kind](**arguments)
    except TypeError:
        names = ", ".join(KINDS[kind].__dataclass_fields__)
        raise Misuse(
            f"a fault of kind '{kind}' has {names}, and {', '.join(arguments) or 'nothing'} was given"
        ) from None
