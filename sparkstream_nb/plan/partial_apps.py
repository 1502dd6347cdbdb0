"""The partial apps of a fully distributed deployment as plans: what each execution group runs of an app."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..lang.tree import Annotation
from . import nodes as n
from .distribute import PASSTHROUGH, Group, Split
from .query_parts import connector_type, sources
from .safety_rules import tables_of


def partial_plan(plan: n.Plan, split: Split, group: Group) -> n.Plan:
    """What an instance of `group` runs. Its sinks are those of streams that it writes, and of streams that nobody
    writes where it is the first to read them."""
    elements = tuple(e for e in plan.elements if _name(e) in group.elements)
    aggregations = {a: d for a, d in plan.aggregations.items() if a in group.elements}
    queries = [q for e in elements for q in (e.queries if isinstance(e, n.Partition) else (e,))]
    used = {q.output.target.id for q in queries} | {s.id for q in queries for s in sources(q)}
    used |= {t for q in queries for t in tables_of(q)}
    written = {q.output.target.id for q in plan.queries}
    own = {q.output.target.id for q in queries}
    for stream in plan.streams:
        readers = (g for g in split.groups if any(r.stream == stream for r in g.reads))
        if stream not in written and next(readers, None) is group:
            own.add(stream)
    return replace(
        plan,
        streams={s: d if s in own else replace(d, annotations=()) for s, d in plan.streams.items()},
        tables={t: d for t, d in plan.tables.items() if t in used},
        windows={w: d for w, d in plan.windows.items() if w in used},
        triggers={t: d for t, d in plan.triggers.items() if any(s.id == t for q in queries for s in sources(q))},
        aggregations=aggregations,
        elements=elements,
    )


def passes_on(group: Group) -> bool:
    """Whether a group only passes events on, from a source of the app to a topic."""
    return group.elements == (PASSTHROUGH,)


def without_sources(plan: n.Plan) -> n.Plan:
    """The plan without sources of the outside, in whose place events are sent and fed."""
    streams = {
        s: replace(d, annotations=tuple(a for a in d.annotations if not _outside(a, plan)))
        for s, d in plan.streams.items()
    }
    return replace(plan, streams=streams)


def in_memory(plan: n.Plan) -> Iterator[str]:
    """Streams with an inMemory source or sink, which works inside of one process."""
    for s, d in plan.streams.items():
        if any(a.name.lower() in ("source", "sink") and connector_type(a, plan.properties) == "inMemory"
               for a in d.annotations):  # fmt: skip
            yield s


def _outside(a: Annotation, plan: n.Plan) -> bool:
    return a.name.lower() == "source" and connector_type(a, plan.properties) != "inMemory"


def _name(e: n.Query | n.Partition) -> str:
    return e.id if isinstance(e, n.Partition) else e.name
