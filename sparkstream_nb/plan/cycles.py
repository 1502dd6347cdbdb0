"""Finds cycles of queries, which run in slices as small as needed, down to one event."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from . import nodes as n
from .dataflow import Dataflow
from .query_parts import expressions, inputs


def cycles(plan: n.Plan) -> tuple[tuple[str, ...], ...]:
    """Cycles of streams, each as the names of its queries."""
    flow = Dataflow(plan)
    after = {q.name: [r.name for r in flow.readers(q.output.target.id)] for q in flow.queries}
    ways: list[tuple[str, ...]] = []
    node_sets: set[frozenset[str]] = set()
    for name in _on_cycles(after):
        way = _way_round(name, after)
        if way is not None and frozenset(way) not in node_sets:
            node_sets.add(frozenset(way))
            ways.append(way)
    return tuple(ways)


def _on_cycles(after: Mapping[str, list[str]]) -> list[str]:
    """Nodes that can be on a cycle: the rest after nodes with nothing before or nothing after them are removed
    repeatedly.
    """
    left = dict.fromkeys(after)
    before: dict[str, list[str]] = {name: [] for name in after}
    for name, following in after.items():
        for other in following:
            before[other].append(name)
    for next_nodes, previous_nodes in ((after, before), (before, after)):
        degrees = {name: sum(other in left for other in next_nodes[name]) for name in left}
        todo = [name for name, n_ in degrees.items() if n_ == 0]
        while todo:
            name = todo.pop()
            del left[name]
            for other in previous_nodes[name]:
                if other in left:
                    degrees[other] -= 1
                    if degrees[other] == 0:
                        todo.append(other)
    return list(left)


def _way_round(start: str, after: Mapping[str, list[str]]) -> tuple[str, ...] | None:
    """The shortest way from a query back to itself, or None."""
    previous: dict[str, str] = {}
    todo = deque([start])
    while todo:
        name = todo.popleft()
        for following in after[name]:
            if following == start:
                way = [name]
                while way[-1] != start:
                    way.append(previous[way[-1]])
                return tuple(reversed(way))
            if following not in previous:
                previous[following] = name
                todo.append(following)
    return None


def shared_tables(plan: n.Plan) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """(table, queries that read it, queries that write it) if both exist."""
    out, flow = [], Dataflow(plan)
    for id_ in plan.tables:
        readers = tuple(q.name for q in flow.users(id_) if _reads(q, id_))
        writers = tuple(q.name for q in flow.writers(id_))
        if readers and writers:
            out.append((id_, readers, writers))
    return tuple(out)


def serial_tables(plan: n.Plan) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(table, the queries on the way from one that reads it to one that writes it) for tables that feed themselves by a
    way with a query that keeps state: the engine processes the events of such a way one after the other.
    """
    flow = Dataflow(plan)
    after = {q.name: [r.name for r in flow.readers(q.output.target.id)] for q in flow.queries}
    queries = {q.name: q for q in flow.queries}
    out = []
    for table, readers, writers in shared_tables(plan):
        lookups = [name for name in readers if _looks_up(queries[name], table)]
        ways = (way for r in lookups for w in writers if (way := _way_to(r, w, after)) is not None)
        serial = next((way for way in ways if any(_keeps_state(queries[name]) for name in way)), None)
        if serial is not None:
            out.append((table, serial))
    return tuple(out)


def _way_to(start: str, end: str, after: Mapping[str, list[str]]) -> tuple[str, ...] | None:
    """The shortest way from a query to another, both included, or None."""
    previous: dict[str, str | None] = {start: None}
    todo = deque([start])
    while todo:
        name = todo.popleft()
        if name == end:
            way: list[str] = []
            at: str | None = name
            while at is not None:
                way.append(at)
                at = previous[at]
            return tuple(reversed(way))
        for following in after[name]:
            if following not in previous:
                previous[following] = name
                todo.append(following)
    return None


def _keeps_state(q: n.Query) -> bool:
    """True if the output of a query depends on earlier events, besides tables."""
    if not isinstance(q.input, n.StreamInput | n.JoinInput) or q.rate is not None or q.select.aggregates:
        return True
    return any(isinstance(step, n.WindowStep) for i in inputs(q.input) for step in i.steps)


def _reads(q: n.Query, table: str) -> bool:
    if q.output.target.id == table and not isinstance(q.output, n.Insert):
        return True
    return _looks_up(q, table)


def _looks_up(q: n.Query, table: str) -> bool:
    """True if the output of a query depends on the rows of a table."""
    if any(i.source.id == table for i in inputs(q.input)):
        return True
    return any(isinstance(e, n.InTable) and e.table == table for top in expressions(q) for e in n.walk(top))
