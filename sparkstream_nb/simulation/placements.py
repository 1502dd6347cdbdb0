"""Simulated spans of a fully distributed deployment besides `timeline`: who leads, which node is there, and
which partial app runs where.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .timeline import Down, Happening, NodeHappening


class Leads(NodeHappening):
    """A manager takes over the resource pool as the last leader stored it."""

    sentence = "{node} leads the resource pool"


class StartedUp(NodeHappening):
    """A node's process has begun."""

    sentence = "{node} starts"


@dataclass(frozen=True)
class PoolHappening(NodeHappening):
    """A happening to a resource node in the pool of a manager."""

    manager: str


class Joined(PoolHappening):
    """A manager takes a resource node into its pool."""

    sentence = "{node} joins the pool of {manager}"


@dataclass(frozen=True)
class GivenUp(PoolHappening):
    """A manager gives a resource node up, whose last heartbeat is `age` ms old."""

    age: int
    sentence = "{manager} gives {node} up: its last heartbeat is {age:,} ms old"


@dataclass(frozen=True)
class AppHappening(NodeHappening):
    """A happening to a partial app on a node."""

    app: str


class Placed(AppHappening):
    """A partial app begins to run on a node, with its last revision."""

    sentence = "{app} begins on {node}"


@dataclass(frozen=True)
class Dropped(AppHappening):
    """A partial app ends on a node; `why` in a few words."""

    why: str
    sentence = "{app} ends on {node}: {why}"


@dataclass(frozen=True)
class HeldBack(Happening):
    """A manager cannot place a partial app: the whole app waits for nodes."""

    manager: str
    app: str
    why: str
    sentence = "{manager} lets the app wait: {why} for {app}"


@dataclass(frozen=True)
class RunSpan:
    """A partial app runs on a node from `first` to `end` (ms, exclusive)."""

    app: str
    node: str
    first: int
    end: int


def run_spans(happenings: Iterable[Happening], until: int) -> list[RunSpan]:
    """Spans in which each partial app runs on a node, up to `until` (ms), in order of their beginnings."""
    since: dict[tuple[str, str], int] = {}
    out: list[RunSpan] = []

    def ends(app: str, node: str, at: int) -> None:
        first = since.pop((app, node), None)
        if first is not None and at > first:
            out.append(RunSpan(app, node, first, at))

    for h in happenings:
        match h:
            case Placed(node=node, app=app):
                since.setdefault((app, node), h.at)
            case Dropped(node=node, app=app):
                ends(app, node, h.at)
            case Down(node=node):
                for app, on in [key for key in since if key[1] == node]:
                    ends(app, on, h.at)
    for app, node in list(since):
        ends(app, node, until)
    return sorted(out, key=lambda s: (s.first, s.end))


def leader_spans(happenings: Iterable[Happening], until: int) -> list[RunSpan]:
    """Spans in which each manager leads, as spans of an app called "leader". A manager that another one has replaced
    may not know of that yet.
    """
    out: list[RunSpan] = []
    leads: tuple[str, int] | None = None
    for h in happenings:
        leader_down = isinstance(h, Down) and leads is not None and h.node == leads[0]
        if (isinstance(h, Leads) or leader_down) and leads is not None:
            out.append(RunSpan("leader", leads[0], leads[1], h.at))
            leads = None
        if isinstance(h, Leads):
            leads = h.node, h.at
    return out if leads is None else [*out, RunSpan("leader", leads[0], leads[1], until)]
