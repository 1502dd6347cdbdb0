"""Plans without connections to other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import SiddhiBindError
from ...lang.source_text import variables_in
from ...lang.tree import Annotation, find_annotation
from ..nodes import Plan
from ..open_names import OpenName, compile_open
from ..query_parts import connector_type

_CONNECTORS = ("source", "sink", "store")


def compile_offline(
    text: str, properties: Mapping[str, str], variables: Mapping[str, str], *, tables: bool = True
) -> tuple[Plan, Plan]:
    """The plan of a text, and that plan without connections: sources, sinks, `@store`s of aggregations and (`tables`)
    of tables. Names that only they use need no value. Raises SiddhiError for a wrong app."""
    connected_plan, names = compile_open(text, properties, variables)
    check_variables(connected_plan, names, "Give its value: --param {0}=VALUE, or variables={{'{0}': ...}}.")
    return connected_plan, move_stores_to_memory(disconnect_streams(connected_plan), tables=tables)


def check_variables(plan: Plan, names: Sequence[OpenName], hint: str) -> None:
    """Raises SiddhiBindError, with a hint of the form `hint`, for a `${NAME}` without a value outside of connectors."""
    unknown = {x.name for x in names if x.kind == "variable"}
    if not unknown:
        return
    of_definitions = [
        *(d.annotations for d in plan.streams.values()),
        *(d.annotations for d in plan.tables.values()),
        *(d.annotations for d in plan.aggregations.values()),
    ]
    spans = [a.span for annotations in of_definitions for a in annotations if a.name.lower() in _CONNECTORS]
    for name, span in variables_in(plan.text):
        if name in unknown and not any(s.start <= span.start < s.end for s in spans):
            error = SiddhiBindError(f"${{{name}}} has no value", span, hint=hint.format(name))
            raise error.with_source(plan.text)


def list_connections(plan: Plan) -> str:
    """The sources, sinks and stores of a plan in words: `1 source (Payments: http) and 2 stores (Cards, Totals)`; empty
    if there are none. Type inMemory is none."""
    names_by_connector: dict[str, list[str]] = {kind: [] for kind in _CONNECTORS}
    for id_, stream in plan.streams.items():
        for a in stream.annotations:
            type_ = connector_type(a, plan.properties)
            if a.name.lower() in ("source", "sink") and type_.lower() != "inmemory":
                names_by_connector[a.name.lower()].append(f"{id_}: {type_}" if type_ else id_)
    annotations_by_id = {id_: t.annotations for id_, t in plan.tables.items()}
    annotations_by_id |= {id_: a.annotations for id_, a in plan.aggregations.items()}
    names_by_connector["store"] += [
        id_ for id_, annotations in annotations_by_id.items() if find_annotation(annotations, "store") is not None
    ]
    words = [
        f"{len(names)} {kind}{'' if len(names) == 1 else 's'} ({', '.join(names)})"
        for kind, names in names_by_connector.items()
        if names
    ]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


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
