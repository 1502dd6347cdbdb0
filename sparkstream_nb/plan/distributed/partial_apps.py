"""The partial apps of a fully distributed deployment as plans: each execution group's part of an app."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from ...lang.tree import Annotation
from .. import nodes as n
from ..query_parts import connector_type, sources, tables_of, tables_of_aggregation
from .distribute import ExecutionGroup, Split, element_name

_Definition = TypeVar("_Definition")


def partial_plan(plan: n.Plan, split: Split, group: ExecutionGroup) -> n.Plan:
    """The plan of an instance of `group`. It has the sinks of the streams that it writes, and of streams that no query
    writes if it is the first to read them, or if it is the first group and none reads them.
    """
    element_names = {*group.elements} - {*group.aggregations}
    elements = tuple(e for e in plan.elements if element_name(e) in element_names)
    aggregations = _only(plan.aggregations, group.aggregations)
    queries = [q for e in elements for q in (e.queries if isinstance(e, n.Partition) else (e,))]
    read = {s.id for q in queries for s in sources(q)} | {a.input.source.id for a in aggregations.values()}
    used_ids = read | _used_ids(queries, aggregations.values())
    group_streams = {q.output.target.id for q in queries} | _given_streams(plan, split, group)
    return replace(
        plan,
        streams={s: d if s in group_streams else replace(d, annotations=()) for s, d in plan.streams.items()},
        tables=_only(plan.tables, used_ids),
        windows=_only(plan.windows, used_ids),
        triggers=_only(plan.triggers, read),
        aggregations=aggregations,
        elements=elements,
    )


def _only(definitions: Mapping[str, _Definition], names: Container[str]) -> dict[str, _Definition]:
    return {name: definition for name, definition in definitions.items() if name in names}


def _used_ids(queries: Iterable[n.Query], aggregations: Iterable[n.AggregationDef]) -> set[str]:
    """The targets of queries, and the tables that queries and aggregations look into."""
    out = {t for a in aggregations for t in tables_of_aggregation(a)}
    for q in queries:
        out |= {q.output.target.id, *tables_of(q)}
    return out


def _given_streams(plan: n.Plan, split: Split, group: ExecutionGroup) -> set[str]:
    """The streams that no query writes and that belong to the group."""
    written_streams = {q.output.target.id for q in plan.queries}
    return {s for s in plan.streams if s not in written_streams and _owner(split, s) is group}


def _owner(split: Split, stream: str) -> ExecutionGroup | None:
    """The group to which a stream without writers belongs."""
    readers = [g for g in split.groups if any(r.stream == stream for r in g.reads) or stream in g.sources]
    real = [g for g in (*readers, *split.groups) if not g.passes_on]
    return next(iter(real), None)


def without_sources(plan: n.Plan) -> n.Plan:
    """The plan without sources of the outside, in whose place events are sent and fed."""
    streams = {
        s: replace(d, annotations=tuple(a for a in d.annotations if not _outside(a, plan)))
        for s, d in plan.streams.items()
    }
    return replace(plan, streams=streams)


def _outside(a: Annotation, plan: n.Plan) -> bool:
    return a.name.lower() == "source" and connector_type(a, plan.properties) != "inMemory"
