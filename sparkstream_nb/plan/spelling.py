"""Misspelt options of `@source`, `@sink`, `@map` and `@store`, and values that are no flag or number. Siddhi drops an
option that it does not know in silence; one that is nearly an option of its type is refused here, and of types that run
here any that is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import SiddhiBindError, did_you_mean
from ..lang.tree import Annotation, AnnotationElement
from . import nodes as n
from .connectors.connector_options import find_wrong_value, option_names
from .connectors.mappings import MAPPED
from .extensions import Kind, types
from .query_parts import connector_type

_OF_ALL = frozenset({"type", "ref", "on.error", "event.time"})
_OF_STORES = frozenset({"table.name", "field.length", "username", "password", "datasource"})


def check_options(plan: n.Plan) -> None:
    """Raises SiddhiBindError for the first option whose name is nearly one of its connector's, or is none of a type
    that runs here, or whose value is none."""
    for a, kind, type_ in _connectors(plan):
        found = types(kind).get(type_)
        if found is None or not found.options:
            continue
        known = found.options | _OF_ALL | (_OF_STORES if kind == "store" else frozenset())
        lowered = {k.lower() for k in known}
        for e in a.elements:
            if e.key is None:
                continue
            if e.key.lower() in lowered:
                _check_value(plan, a, e, kind, type_)
                continue
            ours = option_names(kind, type_) if kind in ("source", "sink") else frozenset()
            if e.key.lower() in ours or e.key.startswith("dep:"):
                continue
            listed = f"Its options: {', '.join(sorted(ours - _OF_ALL))}." if ours else None
            hint = did_you_mean(e.key, known) or listed
            if hint is not None:
                name = a.name.lower()
                raise SiddhiBindError(f"'{e.key}' is no option of @{name}(type='{type_}')", e.span, hint=hint)


def _check_value(plan: n.Plan, a: Annotation, e: AnnotationElement, kind: Kind, type_: str) -> None:
    """Raises SiddhiBindError for a value that is not the flag or number its option takes. The value of
    a `${NAME}` is known at deployment."""
    if kind not in ("source", "sink") or e.key is None or "${" in plan.text[e.span.start : e.span.end]:
        return
    wrong = find_wrong_value(kind, type_, e.key, e.value)
    if wrong is not None:
        raise SiddhiBindError(f"'{e.key}' of @{a.name.lower()}(type='{type_}') {wrong}", e.span)


def _connectors(plan: n.Plan) -> Iterator[tuple[Annotation, Kind, str]]:
    """The annotations with options, each with its kind and type."""
    for stream in plan.streams.values():
        for a in stream.annotations:
            yield from _of_stream(a, plan.properties)
    holders = [t.annotations for t in plan.tables.values()] + [x.annotations for x in plan.aggregations.values()]
    for found in holders:
        for a in found:
            if a.name.lower() == "store":
                yield a, "store", connector_type(a, plan.properties)


def _of_stream(a: Annotation, properties: Mapping[str, str]) -> Iterator[tuple[Annotation, Kind, str]]:
    name = a.name.lower()
    if name not in ("source", "sink"):
        return
    kind: Kind = "source" if name == "source" else "sink"
    type_ = connector_type(a, properties)
    yield a, kind, type_
    for inner in a.nested:
        if inner.name.lower() == "map" and inner.get("type") not in MAPPED:
            mapped: Kind = "source-mapping" if kind == "source" else "sink-mapping"
            yield inner, mapped, inner.get("type") or ""
        elif inner.name.lower() == "distribution":
            yield from ((d, kind, type_) for d in inner.nested if d.name.lower() == "destination")
