"""Sources that read from outside the app: their annotations as typed data.

`kafka`, `file`, `http`, `http-call-response`, `tcp`, `nats` and `cdc` run here. Their options follow siddhi-io-kafka,
-file, -http, -tcp and -cdc; an option of theirs that this build does not have is a declared gap (`gaps.py`), never left
out in silence, unless its value says no more than leaving it out (`off_values.py`). `event.time` is an option of this
build: the attribute that has an event's time. So is `on.error`: Siddhi's sinks and stores have it, and its sources put
messages that cannot be mapped into the error store. So are user and password of the http source, whose users WSO2 takes
from its server, and the port of the tcp source, which is a setting of the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang.tree import Annotation
from ...types import Type
from .. import nodes as n
from ..query_parts import connector_options, connector_type
from .kafka import CONFIGURATION, CONSUMER, client_settings
from .mapping import CsvSource, KeyValueSource, PassThrough, SourceMapping
from .mappings import MAPPED, source_mapping
from .off_values import is_off
from .outside import BINARY, BYTES, SINK_ID

TIME = "event.time"
ON_ERROR = "on.error"
ERROR_ACTIONS = ("STORE", "LOG")
"""Actions for a message that cannot be read: an error of the app, or a line of its log."""
RESPONSES = frozenset({"http-call-response", "http-response"})
"""The types of sources that receive the responses to a sink's calls."""
_COMMON = frozenset({"type", TIME, ON_ERROR})
INCOMING_OPTIONS = {
    "kafka": _COMMON
    | {
        "bootstrap.servers", "topic.list", "group.id", "threading.option", "partition.no.list", "is.binary.message",
        "topic.offsets.map", CONFIGURATION, "enable.offsets.commit", "enable.async.commit",
    },
    "file": _COMMON
    | {
        "dir.uri", "file.uri", "mode", "tailing", "action.after.process", "move.after.process", "header.present",
        "file.name.pattern", "file.polling.interval", "dir.polling.interval",
    },
    "http": _COMMON
    | {
        "receiver.url", "worker.count", "socket.idle.timeout", "basic.auth.enabled", "basic.auth.username",
        "basic.auth.password",
    },
    "http-call-response": _COMMON | {SINK_ID, "http.status.code"},
    "http-response": _COMMON | {SINK_ID, "http.status.code"},
    "tcp": _COMMON | {"context", "port"},
    "nats": _COMMON
    | {
        "destination", "server.urls", "bootstrap.servers", "client.id", "queue.group.name", "auth.type", "username",
        "password", "token",
    },
    "cdc": _COMMON
    | {
        "mode", "url", "username", "password", "jdbc.driver.name", "table.name", "polling.column", "polling.interval",
        "operation",
    },
}  # fmt: skip
INCOMING = frozenset(INCOMING_OPTIONS)
"""The types of sources that read from outside."""
FILE_MODES = ("line", "text.full", "parquet")
"""Modes of the file source; `parquet` is a mode of this build."""
_NEEDED = {
    "kafka": (("bootstrap.servers",), ("topic.list",), ("group.id",), ("threading.option",)),
    "file": (("dir.uri", "file.uri"),),
    "http": (("receiver.url",),),
    **dict.fromkeys(RESPONSES, ((SINK_ID,),)),
    "tcp": (),
    "nats": (("destination",),),
    "cdc": (("url",), ("username",), ("password",), ("table.name",), ("polling.column",)),
}
_TAKEN = {
    "kafka": "each message once",
    "file": "each line or file once",
    "http": "what is answered with 200 is kept",
    **dict.fromkeys(RESPONSES, "each response, as often as its call is made"),
    "tcp": "what is taken is kept; senders are not answered",
    "nats": "what is taken is kept; servers keep nothing",
    "cdc": "each row once, as the polling column grows",
}
_EXAMPLE = {
    SINK_ID: "sink.id='rates', as the http-call sink has it",
    "bootstrap.servers": "bootstrap.servers='localhost:9092'",
    "topic.list": "topic.list='trades'",
    "group.id": "group.id='my-app'",
    "threading.option": "threading.option='single.thread'",
    "dir.uri": "dir.uri='/data/in' or file.uri='/data/in/trades.csv'",
    "receiver.url": "receiver.url='http://localhost:8006/trades'",
    "destination": "destination='trades'",
    "url": "url='jdbc:postgresql://localhost:5432/shop'",
    "username": "username='reader'",
    "password": "password='${sec:NAME}'",
    "table.name": "table.name='orders'",
    "polling.column": "polling.column='id'",
}


@dataclass(frozen=True)
class IncomingSource:
    """A source of `stream`. `number` counts the stream's sources of this type, from 1. `time` is the attribute that
    has an event's time; None: events have the time at which they are taken. `on_error` is one of `ERROR_ACTIONS`."""

    stream: str
    type: str
    number: int
    options: Mapping[str, str] = field(repr=False)
    time: str | None
    on_error: str
    mapping: SourceMapping
    span: Span

    @property
    def name(self) -> str:
        """Unique in the app."""
        return f"{self.stream}-{self.type}-{self.number}"


def taken(type_: str) -> str:
    """Delivery guarantee of a source of this type, in words."""
    return _TAKEN[type_]


def is_incoming(a: Annotation, properties: Mapping[str, str]) -> bool:
    """True if an annotation is a source that reads from outside."""
    return a.name.lower() == "source" and connector_type(a, properties) in INCOMING


def incoming_annotations(plan: n.Plan) -> Iterator[tuple[n.StreamDef, Annotation]]:
    """The `@source`s that read from outside, with their streams, in the order of the text."""
    for stream in plan.streams.values():
        for a in stream.annotations:
            if is_incoming(a, plan.properties):
                yield stream, a


def incoming_sources(plan: n.Plan) -> tuple[IncomingSource, ...]:
    """The sources that read from outside, in the order of the text. Raises SiddhiBindError, with the text, for one that
    lacks an option that it needs."""
    out: list[IncomingSource] = []
    for stream, a in incoming_annotations(plan):
        type_ = connector_type(a, plan.properties)
        number = 1 + sum(s.stream == stream.source.id and s.type == type_ for s in out)
        try:
            out.append(_source(stream, a, plan.properties, number))
        except SiddhiBindError as error:
            raise (error.with_source(plan.text) if plan.text else error) from None
    return tuple(out)


def _source(stream: n.StreamDef, a: Annotation, properties: Mapping[str, str], number: int) -> IncomingSource:
    type_, options = connector_type(a, properties), connector_options(a, properties)
    for names in _NEEDED[type_]:
        if not any(options.get(name, "").strip() for name in names):
            needed = " or ".join(f"'{name}'" for name in names)
            raise SiddhiBindError(
                f"a source of type '{type_}' has no {needed}", a.span, hint=f"Write {_EXAMPLE[names[0]]}."
            )
    schema = stream.source.schema
    time = options.get(TIME)
    if time is not None:
        found = schema.find(time)
        if found is None:
            hint = did_you_mean(time, schema.names) or f"It has {', '.join(schema.names)}."
            raise SiddhiBindError(f"stream '{stream.source.id}' has no attribute '{time}'", a.span, hint=hint)
        if schema[found].type not in (Type.LONG, Type.STRING):
            raise SiddhiBindError(
                f"'{TIME}' names a long (ms since 1970) or a string (ISO 8601), and '{time}' is a {schema[found].type}",
                a.span,
            )
    mapping = source_mapping(next((m for m in a.nested if m.name.lower() == "map"), None), schema)
    parquet = type_ == "file" and options.get("mode", "").lower() == "parquet"
    if isinstance(mapping.format, CsvSource) and mapping.format.header:
        raise SiddhiBindError(
            f"header='true' of a CSV mapping is of no use in a source of type '{type_}', whose messages are lines",
            a.span,
            hint="Of a file with mode='line', write header.present='true' in the @source.",
        )
    if type_ == "cdc":
        _check_rows(a, options, mapping)
    elif isinstance(mapping.format, PassThrough) and not parquet:
        raise SiddhiBindError(
            f"a source of type '{type_}' has no @map of messages", a.span, hint="Write @map(type='json') or another."
        )
    on_error = options.get(ON_ERROR, ERROR_ACTIONS[0]).upper()
    return IncomingSource(stream.source.id, type_, number, options, time, on_error, mapping, a.span)


def _check_rows(a: Annotation, options: Mapping[str, str], mapping: SourceMapping) -> None:
    """Further checks of a source of rows, `cdc`."""
    if not isinstance(mapping.format, KeyValueSource):
        raise SiddhiBindError(
            "a source of type 'cdc' gives rows, whose columns are keys", a.span, hint="Write @map(type='keyvalue')."
        )
    header = next((h for h in mapping.headers if h is not None), None)
    if header is not None:
        raise SiddhiBindError(
            f"rows that are polled have no transport properties, and 'trp:{header}' names one",
            a.span,
            hint="Name a column of the table.",
        )
    operations = {o.strip().lower() for o in options.get("operation", "insert").split(",")}
    if not operations <= {"insert", "update"}:
        raise SiddhiBindError(
            f"operation='{options['operation']}' goes with mode='listening': polling finds rows that are inserted, or "
            "updated with a greater value in the polling column",
            a.span,
            hint="Leave 'operation' out.",
        )


def list_gaps(a: Annotation, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Options and modes of an outside source that this build lacks: names of gaps, each with a description."""
    type_ = connector_type(a, properties)
    source = f"a source of type '{type_}'"
    mode = connector_options(a, properties).get("mode", "listening")
    if type_ == "cdc" and mode.lower() != "polling":
        given = "" if "mode" in connector_options(a, properties) else ", which is its default,"
        yield "source-option", f"mode='{mode}'{given} of {source} (polling runs: mode='polling', polling.column='id')"
        return
    for key, value in connector_options(a, properties).items():
        if key.lower() not in INCOMING_OPTIONS[type_]:
            if not is_off("source", type_, key, value):
                yield "source-option", f"'{key}' of {source}"
        elif key == ON_ERROR and value.upper() not in ERROR_ACTIONS:
            yield (
                "source-option",
                f"on.error='{value}' of {source} (a message that cannot be read has no values for a fault stream, and "
                f"waiting does not mend it: write {' or '.join(ERROR_ACTIONS)})",
            )
        elif (type_, key) == ("file", "mode") and value.lower() not in FILE_MODES:
            yield "source-option", f"mode='{value}' of {source} ({', '.join(FILE_MODES)} run)"
        elif key == CONFIGURATION:
            for name, _ in client_settings(value):
                if name and name not in CONSUMER:
                    yield "source-option", f"'{name}' in {CONFIGURATION} of {source}"
    mapping = next((m for m in a.nested if m.name.lower() == "map"), None)
    written = None if mapping is None else mapping.get("type")
    if mapping is not None and (written not in MAPPED or (written in BYTES and type_ not in BINARY)):
        yield "mapping", f"{source} with mapping '{written}'"
