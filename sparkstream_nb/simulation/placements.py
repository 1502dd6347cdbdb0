"""What comes to pass in a fully distributed deployment besides what `timeline` has: who leads, which node is there, and
which partial app runs where."""

from __future__ import annotations

from dataclasses import dataclass

from .timeline import Happening


@dataclass(frozen=True)
class Leads(Happening):
    """A manager takes over the resource pool as the last leader stored it."""

    node: str

    def __str__(self) -> str:
        return f"{self.node} leads the resource pool"


@dataclass(frozen=True)
class StartedUp(Happening):
    """A node's process has begun."""

    node: str

    def __str__(self) -> str:
        return f"{self.node} starts"


@dataclass(frozen=True)
class Joined(Happening):
    """A manager takes a resource node into its pool."""

    node: str
    manager: str

    def __str__(self) -> str:
        return f"{self.node} joins the pool of {self.manager}"


@dataclass(frozen=True)
class GivenUp(Happening):
    """A manager gives a resource node up, whose last heartbeat is `age` ms old."""

    node: str
    manager: str
    age: int

    def __str__(self) -> str:
        return f"{self.manager} gives {self.node} up: its last heartbeat is {self.age:,} ms old"


@dataclass(frozen=True)
class Placed(Happening):
    """A partial app begins to run on a node, with its last revision."""

    node: str
    app: str

    def __str__(self) -> str:
        return f"{self.app} begins on {self.node}"


@dataclass(frozen=True)
class Dropped(Happening):
    """A partial app ends on a node; `why` in a few words."""

    node: str
    app: str
    why: str

    def __str__(self) -> str:
        return f"{self.app} ends on {self.node}: {self.why}"


@dataclass(frozen=True)
class HeldBack(Happening):
    """A manager cannot place a partial app: the whole app waits for nodes."""

    manager: str
    app: str
    needed: int
    there: int

    def __str__(self) -> str:
        nodes = "1 node is" if self.there == 1 else f"{self.there} nodes are"
        return f"{self.manager} lets the app wait: {self.app} needs {self.needed} nodes of its kind, and {nodes} there"
