"""Routings by query: which one makes several nodes give its outputs of one node, and the parts of an app whose queries
need different ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .. import nodes as n
from .repair import routes

ONE_NODE = "one node"
"""The part of the queries whose outputs depend on the node under every routing."""


@dataclass(frozen=True)
class RoutedPart:
    """Queries that share a `routing`: `hash:ATTRIBUTE`, keys of different names by stream, or `ONE_NODE`."""

    routing: str
    queries: tuple[str, ...]

    @property
    def is_hash(self) -> bool:
        """True if one `hash:ATTRIBUTE` is its routing."""
        return self.routing.startswith("hash:")


def routing_of(query: n.Query, plan: n.Plan) -> str | None:
    """The routing of the app's input under which several nodes give a query's outputs of one node. None: any does."""
    safety = query.safety
    if safety.level == "node-dependent":
        return ONE_NODE
    if safety.level != "keyed":
        return None
    keys = [(s, a) for s, a in safety.keys if s in plan.input_streams] or list(safety.keys)
    names = {a for _, a in keys}
    return f"hash:{names.pop()}" if len(names) == 1 else routes(keys)


def routed_parts(plan: n.Plan) -> list[RoutedPart]:
    """The parts of an app, each of queries that need the same routing: that of most queries first, and what needs one
    node last. Queries that are right under any routing are in none."""
    routings = {q.name: routing for q in plan.queries if (routing := routing_of(q, plan)) is not None}
    order = Counter(routings.values()).most_common()
    return [
        RoutedPart(routing, tuple(q for q, query_routing in routings.items() if query_routing == routing))
        for routing, _ in sorted(order, key=lambda pair: (pair[0] == ONE_NODE, -pair[1]))
    ]


def describe_parts(parts: Sequence[RoutedPart]) -> str:
    """`throttle, remember under hash:applicationId; errors under hash:apiName; latency on one node`."""
    return "; ".join(
        f"{', '.join(p.queries)} {'on one node' if p.routing == ONE_NODE else _under(p)}" for p in parts
    )  # fmt: skip


def _under(part: RoutedPart) -> str:
    return f"under {part.routing}" if part.is_hash else f"routed {part.routing}"
