"""Sinks that publish outside the app: their annotations as typed data.

`file`, `http`, `http-call`, `kafka`, `email`, `tcp`, `nats` and `prometheus` run here. Their options follow
siddhi-io-file, -http, -kafka, -email, -tcp, -nats and -prometheus; an option of theirs that this build does not have is
a declared gap (`gaps.py`), never left out in silence, unless its value says no more than leaving it out
(`off_values.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...errors import SiddhiBindError, Span
from ...lang.tree import Annotation
from .. import nodes as n
from ..query_parts import connector_options, connector_type, template_attributes
from .kafka import CONFIGURATION, PRODUCER, client_settings
from .mapping import SinkMapping
from .mappings import MAPPED, sink_mapping
from .off_values import is_off

CALLS = frozenset({"http-call", "http-request"})
"""The types of sinks whose servers' responses come in by sources; `http-request` is the former name."""
OUTSIDE = frozenset({"file", "http", "kafka", "prometheus", "email", "tcp", "nats", *CALLS})
"""The types of sinks that publish outside."""
SINK_ID = "sink.id"
MAPPINGS = MAPPED - {"passThrough"}
"""Mappings of the messages of outside sinks."""

BINARY = frozenset({"http", *CALLS, "http-call-response", "http-response", "kafka", "tcp", "nats"})
"""The types of sinks and sources whose messages may be bytes that are no text."""
BYTES = ("binary", "avro")
"""Mappings of such messages."""

Strategy = Literal["partitioned", "roundRobin", "broadcast"]
_COMMON = frozenset({"type", "ref", "on.error"})
_HTTP = _COMMON | {
    "publisher.url", "basic.auth.username", "basic.auth.password", "headers", "method", "socket.idle.timeout",
    "blocking.io", "chunk.disabled", "token.url", "consumer.key", "consumer.secret", "body.consumer.key",
    "body.consumer.secret", "oauth.username", "oauth.password", "oauth.scope", "refresh.token",
}  # fmt: skip
OUTSIDE_OPTIONS = {
    "file": _COMMON | {"file.uri", "append", "add.line.separator", "roll.size"},
    "http": _HTTP,
    **dict.fromkeys(CALLS, _HTTP | {SINK_ID}),
    "kafka": _COMMON
    | {"bootstrap.servers", "topic", "partition.no", "key", "headers", "is.binary.message", CONFIGURATION},
    "email": _COMMON
    | {
        "username", "address", "password", "host", "port", "ssl.enable", "starttls.enable", "auth", "content.type",
        "subject", "to", "cc", "bcc",
    },
    "nats": _COMMON
    | {
        "destination", "server.urls", "bootstrap.servers", "client.id", "auth.type", "username", "password", "token",
    },
    "tcp": _COMMON | {"url", "sync", "tcp.no.delay", "keep.alive", "worker.threads"},
    "prometheus": _COMMON
    | {
        "job", "publish.mode", "server.url", "metric.type", "metric.name", "metric.help", "value.attribute", "buckets",
    },
}  # fmt: skip
_DYNAMIC: Mapping[str, frozenset[str]] = {
    "file": frozenset({"file.uri"}),
    **dict.fromkeys(("http", *CALLS), frozenset({"headers", "method"})),
    "kafka": frozenset({"topic", "partition.no", "key", "headers"}),
    "email": frozenset({"subject", "to", "cc", "bcc"}),
    "tcp": frozenset(),
    "nats": frozenset({"destination"}),
    "prometheus": frozenset(),
}
"""Options that may depend on the event."""
_NEEDED: Mapping[str, Mapping[str, str]] = {
    "file": {"file.uri": "file.uri='out/alerts.csv'"},
    "http": {"publisher.url": "publisher.url='http://localhost:8080/alerts'"},
    **{
        type_: {"publisher.url": "publisher.url='http://localhost:8080/rates'", SINK_ID: "sink.id='rates'"}
        for type_ in CALLS
    },
    "kafka": {"bootstrap.servers": "bootstrap.servers='localhost:9092'", "topic": "topic='alerts'"},
    "email": {
        "address": "address='alerts@example.org'",
        "subject": "subject='Alert of {{room}}'",
        "to": "to='me@example.org'",
    },
    "nats": {"destination": "destination='alerts'"},
    "tcp": {"url": "url='tcp://localhost:9892/alerts'"},
    "prometheus": {"metric.type": "metric.type='counter'"},
}
"""Options that a sink must have, with an example."""
_PROMISES = {
    "file": "exactly once, after the commit",
    "http": "at least once, after the commit; each message has an Idempotency-Key",
    **dict.fromkeys(CALLS, "at least once, after the commit, each with its response; each has an Idempotency-Key"),
    "kafka": "at least once, after the commit; each record has an Idempotency-Key",
    "email": "at least once, after the commit; each mail has a Message-ID of its own",
    "tcp": "sent once, after the commit; servers do not answer",
    "nats": "at least once to the server, after the commit; each message has a Nats-Msg-Id",
    "prometheus": "exactly once, after the commit",
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
    return a.name.lower() == "sink" and connector_type(a, properties) in OUTSIDE


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


def _sink(stream: n.StreamDef, a: Annotation, properties: Mapping[str, str], number: int) -> OutsideSink:
    type_, options = connector_type(a, properties), connector_options(a, properties)
    mapping = next((m for m in a.nested if m.name.lower() == "map"), None)
    if mapping is None:
        raise SiddhiBindError(
            f"a sink of type '{type_}' has no @map", a.span, hint="Write @map(type='json') or @map(type='csv')."
        )
    distribution = next((d for d in a.nested if d.name.lower() == "distribution"), None)
    chosen = {} if distribution is None else {e.key: e.value for e in distribution.elements if e.key is not None}
    places = [] if distribution is None else [d for d in distribution.nested if d.name.lower() == "destination"]
    destinations = tuple(options | connector_options(d, properties) for d in places) or (options,)
    for found in destinations:
        for key, example in _NEEDED[type_].items():
            if not found.get(key, "").strip():
                raise SiddhiBindError(f"a sink of type '{type_}' has no '{key}'", a.span, hint=f"Write {example}.")
        for key, value in found.items():
            unknown = [x for x in template_attributes(value) if stream.source.schema.find(x) is None]
            if unknown:
                raise SiddhiBindError(
                    f"stream '{stream.source.id}' has no attribute '{unknown[0]}', which '{key}' of its sink names",
                    a.span,
                    hint=f"It has {', '.join(stream.source.schema.names)}.",
                )
    written = sink_mapping(mapping, stream.source.schema)
    return OutsideSink(
        stream=stream.source.id,
        type=type_,
        number=number,
        destinations=destinations,
        strategy=chosen.get("strategy"),  # type: ignore[arg-type]  # the binder has checked it
        key=chosen.get("partitionKey") if chosen.get("strategy") == "partitioned" else None,
        on_error=options.get("on.error", "LOG").upper(),
        mapping=written,
        span=a.span,
    )


def list_gaps(a: Annotation, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Options and modes of an outside sink that this build lacks: names of gaps, each with a description."""
    type_, options = connector_type(a, properties), connector_options(a, properties)
    sink = f"a sink of type '{type_}'"
    distribution = next((d for d in a.nested if d.name.lower() == "distribution"), None)
    places = [] if distribution is None else [d for d in distribution.nested if d.name.lower() == "destination"]
    for found in (options, *(connector_options(d, properties) for d in places)):
        for key, value in found.items():
            if key.lower() not in OUTSIDE_OPTIONS[type_]:
                if not is_off("sink", type_, key, value):
                    yield "sink-option", f"'{key}' of {sink}"
            elif key not in _DYNAMIC[type_] and template_attributes(value):
                yield "sink-option", f"'{key}' that depends on the event, of {sink}"
        for key, _ in client_settings(found.get(CONFIGURATION, "")):
            if key and key not in PRODUCER:
                yield "sink-option", f"'{key}' in {CONFIGURATION} of {sink}"
    turns = distribution is not None and distribution.get("strategy") == "roundRobin"
    if type_ in ("file", "prometheus") and turns:
        yield "sink-option", f"strategy='roundRobin' of {sink}"
    if type_ == "prometheus" and options.get("publish.mode", "server").lower() != "server":
        yield "sink-option", f"publish.mode='{options['publish.mode']}' of {sink}"
    mapping = next((m for m in a.nested if m.name.lower() == "map"), None)
    if mapping is None:
        return
    written = mapping.get("type") or ""
    unfit = (type_ == "prometheus" and written != "keyvalue") or (written in BYTES and type_ not in BINARY)
    if written not in MAPPINGS or unfit:
        yield "mapping", f"{sink} with mapping '{written}'"
    elif type_ == "prometheus" and mapping.nested:  # siddhi-io-prometheus does not take it either
        yield "mapping", f"@{mapping.nested[0].name} in the mapping of {sink}"
    elif written == "csv" and type_ != "file" and (mapping.get("header") or "").strip().lower() == "true":
        yield "mapping", f"header='true' of mapping 'csv' of {sink}"
