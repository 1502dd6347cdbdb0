"""Finds cycles of queries, which run in slices as small as needed, down to one event."""

from __future__ import annotations

from collections.abc import Mapping

from . import nodes as n
from .query_parts import expressions, inputs, sources


def cycles(plan: n.Plan) -> tuple[tuple[str, ...], ...]:
    """Cycles of streams, each as the names of its queries."""
    after = {
        q.name: [r.name for r in plan.queries if any(s.id == q.output.target.id for s in sources(r))]
        for q in plan.queries
    }
    found: list[tuple[str, ...]] = []
    seen: set[frozenset[str]] = set()
    for q in plan.queries:
        way = _way_round(q.name, after)
        if way is not None and frozenset(way) not in seen:
            seen.add(frozenset(way))
            found.append(way)
    return tuple(found)


def _way_round(start: str, after: Mapping[str, list[str]]) -> tuple[str, ...] | None:
    """The shortest way from a query back to itself, or None."""
    ways: list[tuple[str, ...]] = [(start,)]
    visited: set[str] = set()
    while ways:
        way = ways.pop(0)
        for following in after[way[-1]]:
            if following == start:
                return way
            if following not in visited:
                visited.add(following)
                ways.append((*way, following))
    return None


def shared_tables(plan: n.Plan) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """(table, queries that read it, queries that write it) if both exist."""
    out = []
    for id_ in plan.tables:
        readers = tuple(q.name for q in plan.queries if _reads(q, id_))
        writers = tuple(q.name for q in plan.queries if q.output.target.id == id_)
        if readers and writers:
            out.append((id_, readers, writers))
    return tuple(out)


def _reads(q: n.Query, table: str) -> bool:
    if any(i.source.id == table for i in inputs(q.input)):
        return True
    if q.output.target.id == table and not isinstance(q.output, n.Insert):
        return True
    return any(isinstance(e, n.InTable) and e.table == table for top in expressions(q) for e in n.walk(top))
