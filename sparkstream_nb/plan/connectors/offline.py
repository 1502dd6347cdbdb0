"""Plans without connections to other systems."""

from __future__ import annotations

from dataclasses import replace

from ...lang.tree import Annotation
from ..nodes import Plan
from ..query_parts import connector_type


def disconnect_streams(plan: Plan) -> Plan:
    """The plan without sources and sinks; type inMemory stays, as it connects streams of the app itself."""

    def is_inside(a: Annotation) -> bool:
        return a.name.lower() not in ("source", "sink") or connector_type(a, plan.properties).lower() == "inmemory"

    streams = {id_: replace(s, annotations=tuple(filter(is_inside, s.annotations))) for id_, s in plan.streams.items()}
    return replace(plan, streams=streams)


def move_stores_to_memory(plan: Plan, *, tables: bool = True) -> Plan:
    """The plan without `@store`: aggregations and (`tables`) tables are in the memory of the nodes."""

    def without_store(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
        return tuple(a for a in annotations if a.name.lower() != "store")

    in_memory = {
        id_: replace(t, annotations=without_store(t.annotations), joint_indexes=()) if tables and t.is_stored else t
        for id_, t in plan.tables.items()
    }
    aggregations = {id_: replace(a, annotations=without_store(a.annotations)) for id_, a in plan.aggregations.items()}
    return replace(plan, tables=in_memory, aggregations=aggregations)
