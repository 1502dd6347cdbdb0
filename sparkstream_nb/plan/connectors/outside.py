"""Sinks that publish outside the app: their annotations as typed data.

Their options (`sink_options.py`) follow the rules of WSO2's extensions, such as siddhi-io-http; an option of theirs
that this build does not have is a declared gap (`gaps.py`), never left out in silence, unless its value says no more
than leaving it out (`refused_options.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...errors import SiddhiBindError, Span
from ...lang.tree import Annotation
from .. import nodes as n
from ..query_parts import IN_MEMORY, connector_options, connector_type, has_event_topic, template_attributes
from .connector_options import (
    describe_option_gap,
    describe_template_gap,
    describe_value_gap,
    find_missing_option,
    list_setting_gaps,
)
from .kafka_client_settings import CONFIGURATION, PRODUCER
from .mapping import SinkMapping
from .mappings import MAPPED, sink_mapping
from .sink_options import SINKS

CALLS = frozenset({"http-call", "http-request"})
"""The types of sinks whose servers' responses come in by sources; `http-request` is the former name."""
SERVICE_RESPONSES = frozenset({"http-service-response", "http-response"})
"""The types of sinks that answer the requests of a source; `http-response` is the former name."""
OUTSIDE = frozenset(SINKS)
"""The types of sinks that publish outside."""
SINK_ID, SOURCE_ID = "sink.id", "source.id"
ON_ERROR = "on.error"
MAPPINGS = MAPPED - {"passThrough"}
"""Mappings of the messages of outside sinks."""

BINARY = frozenset(
    {
        "http", *CALLS, "http-call-response", "http-service", *SERVICE_RESPONSES, "kafka", "tcp", "nats", "mqtt",
        "rabbitmq", "websocket", IN_MEMORY,
    }
)  # fmt: skip
"""The types of sinks and sources whose messages may be bytes that are no text."""
BYTES = ("binary", "avro")
"""Mappings of such messages."""
_ONE_PLACE = ("file", "prometheus")
"""The types of sinks that do not take turns among destinations."""

_NO_TLS_CHECK = "ssl.verification.disabled"
"""An option of sinks that is refused where it would mean something: certificates are always checked."""
_ADDRESSES = ("publisher.url", "token.url")

Strategy = Literal["partitioned", "roundRobin", "broadcast"]
_PROMISES = {
    "file": "exactly once, after the commit",
    "http": "at least once, after the commit; each message has an Idempotency-Key",
    **dict.fromkeys(CALLS, "at least once, after the commit, each with its response; each has an Idempotency-Key"),
    **dict.fromkeys(SERVICE_RESPONSES, "once, after the commit, while the request waits"),
    "kafka": "at least once, after the commit; each record has an Idempotency-Key",
    "email": "at least once, after the commit; each mail has a Message-ID of its own",
    "tcp": "sent once, after the commit; servers do not answer",
    "nats": "at least once to the server, after the commit; each message has a Nats-Msg-Id",
    "mqtt": "at least once to the broker, after the commit; once without its confirmation with quality.of.service='0'",
    "rabbitmq": "at least once to the broker, after the commit; each message has a message_id",
    "websocket": "sent once, after the commit; servers do not answer",
    "hl7": "at least once, after the commit, until the server acknowledges it",
    "prometheus": "exactly once, after the commit",
    IN_MEMORY: "at least once, after the commit, to each source of the topic",
}


@dataclass(frozen=True)
class OutsideSink:
    """A sink of `stream`. `number` counts the stream's sinks of this type, from 1. `destinations` are the options of
    each `@destination`, which override the sink's; without `@distribution`, the sink's options alone. `key` is the
    attribute that a partitioned sink divides by. `on_error` is LOG, STORE, STREAM or WAIT. `mapping` comes from `@map`.
    """

    stream: str
    type: str
    number: int
    destinations: tuple[Mapping[str, str], ...] = field(repr=False)
    strategy: Strategy | None
    key: str | None
    on_error: str
    mapping: SinkMapping
    span: Span


def outside_annotations(plan: n.Plan) -> Iterator[tuple[n.StreamDef, Annotation]]:
    """The `@sink`s that publish outside, with their streams, in the order of the text."""
    for stream in plan.streams.values():
        for a in stream.annotations:
            if is_outside(a, plan.properties):
                yield stream, a


def is_outside(a: Annotation, properties: Mapping[str, str]) -> bool:
    """True if an annotation is a sink that publishes outside."""
    is_sink = a.name.lower() == "sink" and connector_type(a, properties) in OUTSIDE
    return is_sink and not has_event_topic(a, properties)


def published_streams(plan: n.Plan) -> frozenset[str]:
    """The streams with a sink that publishes outside: all of their events are outputs, those that come in too."""
    return frozenset(stream.source.id for stream, _ in outside_annotations(plan))


def promise(type_: str) -> str:
    """Delivery guarantee of a sink of this type, in words."""
    return _PROMISES[type_]


def outside_sinks(plan: n.Plan) -> tuple[OutsideSink, ...]:
    """The sinks that publish outside. Raises SiddhiBindError, with the text, for one that lacks an option that it
    needs."""
    out: list[OutsideSink] = []
    for stream, a in outside_annotations(plan):
        try:
            same = sum(s.stream == stream.source.id and s.type == connector_type(a, plan.properties) for s in out)
            out.append(_sink(stream, a, plan.properties, same + 1))
        except SiddhiBindError as error:
            raise (error.with_source(plan.text) if plan.text else error) from None
    return tuple(out)


def _check_destination(stream: n.StreamDef, type_: str, options: Mapping[str, str], span: Span) -> None:
    """Raises SiddhiBindError for a missing option, and for a template with an attribute that the stream lacks."""
    missing = find_missing_option("sink", type_, options)
    if missing is not None:
        raise SiddhiBindError(missing[0], span, hint=missing[1])
    schema = stream.source.schema
    for key, value in options.items():
        unknown = [x for x in template_attributes(value) if schema.find(x) is None]
        if unknown:
            raise SiddhiBindError(
                f"stream '{stream.source.id}' has no attribute '{unknown[0]}', which '{key}' of its sink names",
                span,
                hint=f"It has {', '.join(schema.names)}.",
            )


def _sink(stream: n.StreamDef, a: Annotation, properties: Mapping[str, str], number: int) -> OutsideSink:
    type_, options = connector_type(a, properties), connector_options(a, properties)
    mapping = next((m for m in a.nested if m.name.lower() == "map"), None)
    if mapping is None:
        raise SiddhiBindError(
            f"a sink of type '{type_}' has no @map", a.span, hint="Write @map(type='json') or @map(type='csv')."
        )
    distribution = next((d for d in a.nested if d.name.lower() == "distribution"), None)
    distribution_options = (
        {} if distribution is None else {e.key: e.value for e in distribution.elements if e.key is not None}
    )
    places = [] if distribution is None else [d for d in distribution.nested if d.name.lower() == "destination"]
    destinations = tuple(options | connector_options(d, properties) for d in places) or (options,)
    for options_of_destination in destinations:
        _check_destination(stream, type_, options_of_destination, a.span)
    mapping_of_sink = sink_mapping(mapping, stream.source.schema)
    return OutsideSink(
        stream=stream.source.id,
        type=type_,
        number=number,
        destinations=destinations,
        strategy=distribution_options.get("strategy"),  # type: ignore[arg-type]  # the binder has checked it
        key=distribution_options.get("partitionKey") if distribution_options.get("strategy") == "partitioned" else None,
        on_error=options.get(ON_ERROR, SINKS[type_][ON_ERROR].default).upper(),
        mapping=mapping_of_sink,
        span=a.span,
    )


def list_gaps(a: Annotation, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Options and modes of an outside sink that this build lacks: names of gaps, each with a description."""
    type_, options = connector_type(a, properties), connector_options(a, properties)
    distribution = next((d for d in a.nested if d.name.lower() == "distribution"), None)
    places = [] if distribution is None else [d for d in distribution.nested if d.name.lower() == "destination"]
    for options_of_place in (options, *(connector_options(d, properties) for d in places)):
        for words in _list_option_gaps(type_, options_of_place):
            yield "sink-option", words
    if type_ in _ONE_PLACE and distribution is not None and distribution.get("strategy") == "roundRobin":
        yield "sink-option", f"strategy='roundRobin' of a sink of type '{type_}'"
    for key, value in options.items():
        objection = describe_value_gap("sink", type_, key, value)
        if objection is not None:
            yield "sink-option", objection
    mapping = next((m for m in a.nested if m.name.lower() == "map"), None)
    if mapping is not None:
        yield from (("mapping", words) for words in _list_mapping_gaps(type_, mapping))


def _list_option_gaps(type_: str, options: Mapping[str, str]) -> Iterator[str]:
    """The words for what of the options of a sink or destination this build lacks."""
    for key, value in options.items():
        if key.lower() == _NO_TLS_CHECK and not _uses_tls(options):
            continue
        words = describe_option_gap("sink", type_, key, value)
        words = words or describe_template_gap("sink", type_, key, value)
        if words is not None:
            yield words
    yield from list_setting_gaps("sink", type_, options.get(CONFIGURATION, ""), PRODUCER)


def _uses_tls(options: Mapping[str, str]) -> bool:
    """True if a sink sends to an address that has a certificate, or may have one."""
    addresses = [options.get(key, "").strip().lower() for key in _ADDRESSES]
    return any(address and not address.startswith("http://") for address in addresses)


def _list_mapping_gaps(type_: str, mapping: Annotation) -> Iterator[str]:
    """The words for a mapping that a sink of this type does not have."""
    sink, map_type = f"a sink of type '{type_}'", mapping.get("type") or ""
    unfit = (type_ == "prometheus" and map_type != "keyvalue") or (map_type in BYTES and type_ not in BINARY)
    if map_type not in MAPPINGS or unfit:
        yield f"{sink} with mapping '{map_type}'"
    elif type_ == "prometheus" and mapping.nested:  # siddhi-io-prometheus does not take it either
        yield f"@{mapping.nested[0].name} in the mapping of {sink}"
    elif map_type == "csv" and type_ != "file" and (mapping.get("header") or "").strip().lower() == "true":
        yield f"header='true' of mapping 'csv' of {sink}"
