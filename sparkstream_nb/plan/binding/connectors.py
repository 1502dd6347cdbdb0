"""Checks of the annotations `@source`, `@sink`, `@store`, `@async` and `@OnError`.

Rules of Siddhi's `DefinitionParserHelper`, `StreamJunction`, and the `init` of its own sources, sinks and mappers.
Names of types and of options are case-sensitive there, except `type` and `ref`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, cast

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ...types import Schema
from ..connectors.connector_options import FORMER_TYPES, TABLES
from ..connectors.mappings import MAPPED, sink_mapping, source_mapping
from ..extensions import types
from ..query_parts import configured_options, connector_options, connector_type, is_open, template_attributes
from .single_annotations import single

SOURCES = frozenset(types("source")) | TABLES["source"].keys() | {"inMemory"}
SINKS = frozenset(types("sink")) | TABLES["sink"].keys() | {"inMemory", "log"}
STORES = frozenset(types("store"))
MAPPINGS = frozenset(types("source-mapping")) | {"passThrough"}
STRATEGIES = frozenset({"roundRobin", "partitioned", "broadcast"})

OnError = Literal["LOG", "STREAM", "STORE"]
_STREAM_ACTIONS = ("LOG", "STREAM", "STORE")
_SINK_ACTIONS = TABLES["sink"]["file"]["on.error"].values
_PRIORITIES = ("INFO", "DEBUG", "WARN", "FATAL", "ERROR", "OFF", "TRACE")
_RUNS: Mapping[str, frozenset[str]] = {
    "source": frozenset({"inMemory", *TABLES["source"]}) - FORMER_TYPES["source"].keys(),
    "sink": frozenset({"inMemory", "log", *TABLES["sink"]}) - FORMER_TYPES["sink"].keys(),
    "mapping": MAPPED,
    "store": frozenset({"rdbms"}),
}
"""The types of each kind that run here, under one name each."""
_OWN = frozenset({"inMemory", "log"})
"""Types that run here, of which all options are known."""

_DYNAMIC = re.compile(r"\{\{.*?\}\}")
_INT = re.compile(r"[+-]?\d+")
_INT_MAX = 2**31 - 1


# --------------------------------------------------------------------------------------------------- @async, @OnError


def check_async(annotations: tuple[tree.Annotation, ...]) -> None:
    """`@async` of a stream or window: its numbers must be numbers that Siddhi can start with."""
    a = single(annotations, "async")
    if a is None:
        return
    for key in ("buffer.size", "workers", "batch.size.max"):
        e = _element(a, key)
        if e is None:
            continue
        hint = f"Write {key}='64'."
        number = int(e.value) if _INT.fullmatch(e.value) else None
        if number is None or not -_INT_MAX - 1 <= number <= _INT_MAX:
            raise SiddhiBindError(f"'{key}' of @async is a number, found '{e.value}'", e.span, hint=hint)
        if number <= 0:
            raise SiddhiBindError(f"'{key}' of @async must be above 0, found '{e.value}'", e.span, hint=hint)
        if key == "buffer.size" and number & (number - 1):
            raise SiddhiBindError(
                f"'buffer.size' of @async must be a power of 2, found '{e.value}'",
                e.span,
                hint=f"The next one is '{1 << number.bit_length()}'.",
            )


def on_error_action(annotations: tuple[tree.Annotation, ...]) -> OnError | None:
    """The action of `@OnError` of a stream or window; None if there is none."""
    a = single(annotations, "OnError")
    if a is None:
        return None
    e = _element(a, "action")
    if e is None:
        raise SiddhiBindError("@OnError has no 'action'", a.span, hint="Write @OnError(action='STREAM').")
    if e.value.upper() not in _STREAM_ACTIONS:
        hint = "Expected LOG, STREAM or STORE."
        raise SiddhiBindError(f"'{e.value}' is not an action of @OnError", e.span, hint=hint)
    return cast(OnError, e.value.upper())


# ---------------------------------------------------------------------------------------------- @source, @sink, @store


def check_store(annotations: tuple[tree.Annotation, ...], properties: Mapping[str, str]) -> None:
    """`@store` of a table or aggregation: its `ref` must be defined, its type one that exists."""
    a = single(annotations, "store")
    if a is not None and not is_open(a, properties):
        _check_ref(a, "store", properties)
        _type(a, "store", STORES, properties)


def check_connectors(
    annotations: tuple[tree.Annotation, ...], schema: Schema, stream: str, properties: Mapping[str, str]
) -> None:
    """Every `@source` and `@sink` of `stream`. `properties` are the node's. Raises SiddhiBindError for the first one
    that Siddhi would refuse.
    """
    for a in annotations:
        if a.name.lower() == "source":
            _check_source(a, schema, stream, properties)
        elif a.name.lower() == "sink":
            _check_sink(a, schema, properties)


def _check_source(a: tree.Annotation, schema: Schema, stream: str, properties: Mapping[str, str]) -> None:
    if is_open(a, properties):
        return
    _check_ref(a, "source", properties)
    type_ = _type(a, "source", SOURCES, properties)
    mapping = single(a.nested, "map")
    if mapping is not None:
        _type(mapping, "mapping", MAPPINGS, {})
        _check_options(mapping, None, ())
        _check_no_deployment(mapping, "a mapping")
        _check_mapped_attributes(mapping, schema, stream)
        if mapping.get("type") in MAPPED:
            source_mapping(mapping, schema)
    _check_options(a, connector_options(a, properties), ())
    if type_ in _OWN:
        _check_no_deployment(a, f"a source of type '{type_}'")


def _check_sink(a: tree.Annotation, schema: Schema, properties: Mapping[str, str]) -> None:
    if is_open(a, properties):
        return
    _check_ref(a, "sink", properties)
    type_ = _type(a, "sink", SINKS, properties)
    options = connector_options(a, properties)
    has_options = type_ in _OWN
    dynamic = ("topic",) if type_ == "inMemory" else ()
    _check_options(a, options, dynamic if has_options else None)
    if has_options:
        _check_no_deployment(a, f"a sink of type '{type_}'")
        _check_template(options.get("topic", ""), schema, _span(a, "topic"))
    _check_value(a, options, "on.error", _SINK_ACTIONS)
    if type_ == "log":
        _check_value(a, options, "priority", _PRIORITIES)
    mapping = single(a.nested, "map")
    if mapping is not None:
        has_mapping = _type(mapping, "mapping", MAPPINGS, {}) in MAPPED
        _check_options(mapping, None, () if has_mapping else None)
        _check_no_deployment(mapping, "a mapping")
        _check_payload(mapping, schema)
        if has_mapping:
            sink_mapping(mapping, schema)
    distribution = single(a.nested, "distribution")
    if distribution is not None:
        _check_distribution(distribution, schema)
        for place in _destinations(distribution):
            _check_destination(place, type_, options, schema, properties)
    elif type_ == "inMemory" and "topic" not in options:
        raise _no_topic(a)


def _check_ref(a: tree.Annotation, what: str, properties: Mapping[str, str]) -> None:
    ref = a.get("ref")
    if ref is not None and not configured_options(ref, properties):
        raise SiddhiBindError(
            f"no configuration defines the {what} '{ref}'",
            _span(a, "ref"),
            hint="Define it under refs in a deployment file (--conf, conf=), or write the options here.",
        )


def _type(a: tree.Annotation, what: str, known_types: frozenset[str], properties: Mapping[str, str]) -> str:
    """The type of a connector or mapping, which must be given and exist."""
    type_ = connector_type(a, properties)
    if not type_:
        example = min(known_types & {"inMemory", "passThrough", "rdbms"})
        raise SiddhiBindError(f"@{a.name} has no 'type'", a.span, hint=f"Write @{a.name}(type='{example}', ...).")
    if type_ not in known_types:
        raise SiddhiBindError(
            f"unknown {what} type '{type_}'",
            _span(a, "type"),
            hint=_meant(type_, known_types) or _instead(type_, what),
            kind="ExtensionNotFoundException",
        )
    return type_


def _meant(type_: str, known_types: frozenset[str]) -> str | None:
    """Hint for a type that is nearly a known one. One whose last part is known is that: http-sse is sse, and not
    http-response. Three letters of which one is another are another abbreviation: sms is not jms."""
    last = re.split(r"[-_.:]", type_)[-1]
    if last != type_ and last in known_types:
        return f"Did you mean '{last}'?"
    same = sorted(type_.lower())
    return did_you_mean(type_, (k for k in known_types if not len(k) == len(type_) <= 3 or sorted(k.lower()) == same))


def _instead(type_: str, what: str) -> str | None:
    """Hint when no known type is similar: the types that run here."""
    if what in ("source", "sink") and type_ in MAPPED:
        return f"'{type_}' is a mapping: write @{what}(type='file', ..., @map(type='{type_}'))."
    runs = _RUNS.get(what)
    return None if runs is None else f"Types that run here: {', '.join(sorted(runs))}."


def _check_options(a: tree.Annotation, options: Mapping[str, str] | None, dynamic: tuple[str, ...] | None) -> None:
    """Check that every option has a name, and that only options in `dynamic` (None: any) depend on the event.

    `options`: all options, if a configuration adds some.
    """
    for e in a.elements:
        if e.key is None:
            raise SiddhiBindError(f"an option of @{a.name} has no name", e.span, hint=f"Write name='{e.value}'.")
    values = {e.key: e.value for e in a.elements if e.key is not None} if options is None else options
    for key, value in values.items():
        if dynamic is not None and key not in dynamic and _DYNAMIC.search(value):
            raise SiddhiBindError(
                f"'{key}' of this @{a.name} cannot depend on the event",
                _span(a, key),
                hint=f"Write a text without {{{{...}}}}{', as only topic may have it' if 'topic' in dynamic else ''}.",
            )


def _check_no_deployment(a: tree.Annotation, what: str) -> None:
    for e in a.elements:
        if e.key is not None and e.key.startswith("dep:"):
            raise SiddhiBindError(f"'{e.key}' is not a known option of {what}", e.span, hint="Leave it out.")


def _check_value(a: tree.Annotation, options: Mapping[str, str], key: str, allowed_values: tuple[str, ...]) -> None:
    value = options.get(key)
    if value is not None and value.upper() not in allowed_values:
        raise SiddhiBindError(
            f"'{value}' is not a known value of '{key}' of @{a.name}",
            _span(a, key),
            hint=f"Expected {', '.join(allowed_values[:-1])} or {allowed_values[-1]}.",
        )


def _check_template(value: str, schema: Schema, span: Span) -> None:
    for name in template_attributes(value):
        if schema.find(name) is None:
            raise SiddhiBindError(
                f"the stream has no attribute '{name}' for '{{{{{name}}}}}'",
                span,
                hint=did_you_mean(name, schema.names) or f"It has {', '.join(schema.names)}.",
            )


# --------------------------------------------------------------------------------------------------------------- @map


def _check_mapped_attributes(mapping: tree.Annotation, schema: Schema, stream: str) -> None:
    """`@attributes` of a source's mapping names all attributes of the stream, or gives one place for each in order."""
    a = next((x for x in mapping.nested if x.name.lower() == "attributes"), None)
    if a is None:
        return
    named_elements = [e for e in a.elements if e.key is not None]
    if named_elements and len(named_elements) < len(a.elements):
        other = next(e for e in a.elements if (e.key is None) is not (a.elements[0].key is None))
        raise SiddhiBindError(
            "some attributes of @attributes are named and some are not",
            other.span,
            hint=f"Name each, as in {schema.names[0]}='...', or none.",
        )
    if not named_elements and len(a.elements) != len(schema):
        raise SiddhiBindError(
            f"@attributes maps {len(a.elements)} attributes, stream '{stream}' has {len(schema)}",
            a.span,
            hint=f"It has {', '.join(schema.names)}.",
        )
    if named_elements:
        _check_all_mapped(a, schema, stream)


def _check_all_mapped(attributes: tree.Annotation, schema: Schema, stream: str) -> None:
    """Raises SiddhiBindError for an attribute of the stream that the names of `@attributes` leave out."""
    keys = dict.fromkeys(e.key for e in attributes.elements)
    missing = next((name for name in schema.names if name not in keys), None)
    if missing is not None:
        near = did_you_mean(missing, (key for key in keys if key is not None and key not in schema.names))
        raise SiddhiBindError(
            f"@attributes does not map '{missing}' of stream '{stream}'",
            attributes.span,
            hint=near or f"It must map {', '.join(schema.names)}.",
        )


def _check_payload(mapping: tree.Annotation, schema: Schema) -> None:
    payloads = [a for a in mapping.nested if a.name.lower() == "payload"]
    if len(payloads) > 1:
        raise SiddhiBindError("@map takes one @payload", payloads[1].span, hint="Keep one.")
    keys: set[str | None] = set()
    for e in payloads[0].elements if payloads else ():
        _check_template(e.value, schema, e.span)
        if e.key in keys:
            what = "parts without a name" if e.key is None else f"parts '{e.key}'"
            raise SiddhiBindError(f"@payload has two {what}", e.span, hint="Give each a name of its own.")
        keys.add(e.key)


# ------------------------------------------------------------------------------------------------------- @distribution


def _destinations(distribution: tree.Annotation) -> list[tree.Annotation]:
    return [a for a in distribution.nested if a.name.lower() == "destination"]


def _check_distribution(a: tree.Annotation, schema: Schema) -> None:
    _check_options(a, None, ())
    options = {e.key: e.value for e in a.elements}
    strategy = options.get("strategy")
    if strategy is None:
        raise SiddhiBindError("@distribution has no 'strategy'", a.span, hint="Write strategy='roundRobin'.")
    if strategy not in STRATEGIES:
        hint = did_you_mean(strategy, STRATEGIES) or f"Expected {', '.join(sorted(STRATEGIES))}."
        raise SiddhiBindError(
            f"unknown strategy '{strategy}'", _span(a, "strategy"), hint=hint, kind="ExtensionNotFoundException"
        )
    if strategy == "partitioned":
        key = options.get("partitionKey")
        if key is None:
            raise SiddhiBindError(
                "strategy 'partitioned' needs a 'partitionKey'",
                a.span,
                hint=f"Write partitionKey='{schema.names[0]}'.",
            )
        if schema.find(key) is None:
            raise SiddhiBindError(
                f"the stream has no attribute '{key}'",
                _span(a, "partitionKey"),
                hint=did_you_mean(key, schema.names) or f"It has {', '.join(schema.names)}.",
                kind="SiddhiAppValidationException",
            )
    if not _destinations(a):
        raise SiddhiBindError("@distribution has no @destination", a.span, hint="Write @destination(topic='...').")


def _check_destination(
    a: tree.Annotation, sink: str, above: Mapping[str, str], schema: Schema, properties: Mapping[str, str]
) -> None:
    """One destination of a sink of type `sink` with the options `above`."""
    if is_open(a, properties):
        return
    _check_ref(a, "destination", properties)
    options = connector_options(a, properties)
    _check_options(a, options, ("topic",) if sink == "inMemory" else () if sink == "log" else None)
    if sink in _OWN:
        _check_no_deployment(a, f"a sink of type '{sink}'")
        _check_template(options.get("topic", ""), schema, _span(a, "topic"))
    if sink != "inMemory":
        return
    topic = above.get("topic", options.get("topic"))
    if topic is None:
        raise _no_topic(a)
    if options.keys() == {"topic"} and (topic == "" or _DYNAMIC.search(topic)):
        raise SiddhiBindError(
            "the topic of a destination is a text that is the same for all events",
            _span(a, "topic"),
            hint="Write a text without {{...}}.",
            kind="SiddhiAppValidationException",
        )


def _no_topic(a: tree.Annotation) -> SiddhiBindError:
    return SiddhiBindError(
        f"@{a.name} has no 'topic'", a.span, hint="Write topic='...'.", kind="SiddhiAppValidationException"
    )


def _element(a: tree.Annotation, key: str) -> tree.AnnotationElement | None:
    return next((e for e in a.elements if e.key is not None and e.key.lower() == key), None)


def _span(a: tree.Annotation, key: str) -> Span:
    """Position of the option `key`; of the annotation, if a configuration supplies the option."""
    e = _element(a, key.lower())
    return a.span if e is None else e.span
