"""Misspelt options of `@source`, `@sink`, `@map` and `@store`, and values that are no flag or number. Siddhi drops an
option that it does not know in silence, and so does this build, with a note (`remarks.py`); a misspelt option that the
app cannot do without is refused, and any in a `@store`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import SiddhiBindError, did_you_mean, near_to
from ..lang.tree import Annotation, AnnotationElement
from . import nodes as n
from .connectors.connector_options import (
    find_meant_option,
    find_missing_option,
    find_wrong_value,
    is_ignored,
    list_options,
    option_names,
)
from .connectors.mappings import MAPPED
from .connectors.option_spec import End
from .extensions import Kind, types
from .query_parts import connector_options, connector_type

_OF_ALL = frozenset({"type", "ref", "on.error", "event.time"})
_OF_STORES = frozenset({"table.name", "field.length", "username", "password", "datasource"})


def check_options(plan: n.Plan) -> None:
    """Raises SiddhiBindError for the first option whose name is nearly one that its connector needs, or nearly one of
    its `@store`'s, or whose value is none."""
    for a, kind, type_ in _connectors(plan):
        extension = types(kind).get(type_)
        if extension is None or not extension.options:
            continue
        option_names = extension.options | _OF_ALL | (_OF_STORES if kind == "store" else frozenset())
        lower_names = {k.lower() for k in option_names}
        for e in a.elements:
            if e.key is None:
                continue
            if e.key.lower() in lower_names:
                _check_value(plan, a, e, kind, type_)
                continue
            if kind == "store":
                hint = did_you_mean(e.key, option_names)
            else:
                hint = _describe_meant(a, kind, type_, e.key, connector_options(a, plan.properties))
            if hint is not None:
                name = a.name.lower()
                raise SiddhiBindError(f"'{e.key}' is no option of @{name}(type='{type_}')", e.span, hint=hint)


def _describe_meant(a: Annotation, kind: Kind, type_: str, key: str, options: Mapping[str, str]) -> str | None:
    """The hint for an option that Siddhi ignores, where a source or sink lacks one that it needs; else None."""
    if kind not in ("source", "sink") or a.name.lower() == "destination" or not option_names(kind, type_):
        return None
    option = find_meant_option(kind, type_, key, options.keys())
    if option is not None:
        return f"Did you mean '{option}'?"
    is_divided = any(inner.name.lower() == "distribution" for inner in a.nested)  # its destinations may have it
    return None if is_divided or find_missing_option(kind, type_, options) is None else list_options(kind, type_)


def list_ignored_options(a: Annotation, properties: Mapping[str, str]) -> Iterator[tuple[Annotation, str, str | None]]:
    """The options of a source or sink, of its mapping and its destinations, that Siddhi ignores: each with its
    annotation, its name, and the option that is probably meant."""
    end: End = "source" if a.name.lower() == "source" else "sink"
    type_ = connector_type(a, properties)
    parts: list[tuple[Annotation, End, str]] = [(a, end, type_)]
    for inner in a.nested:
        if inner.name.lower() == "map":
            parts.append((inner, "source-mapping" if end == "source" else "sink-mapping", inner.get("type") or ""))
        elif inner.name.lower() == "distribution":
            parts += [(d, end, type_) for d in inner.nested if d.name.lower() == "destination"]
    for part, kind, of in parts:
        for e in part.elements:
            if e.key is not None and is_ignored(kind, of, e.key):
                extension = types(kind).get(of)
                near = near_to(
                    e.key, option_names(kind, of) | (extension.options if extension is not None else frozenset())
                )
                yield part, e.key, near[0] if near else None


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
    for of_definition in holders:
        for a in of_definition:
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
            mapping_kind: Kind = "source-mapping" if kind == "source" else "sink-mapping"
            yield inner, mapping_kind, inner.get("type") or ""
        elif inner.name.lower() == "distribution":
            yield from ((d, kind, type_) for d in inner.nested if d.name.lower() == "destination")
