"""Sources that read from outside the app: their annotations as typed data.

Their options (`source_options.py`) follow the rules of WSO2's extensions, such as siddhi-io-kafka; an option
of theirs that this build does not have is a declared gap (`gaps.py`), never left out in silence, unless its value says
no more than leaving it out (`refused_options.py`).
`event.time` is an option of this build: the attribute that has an event's time. So is `on.error`: Siddhi's sinks and
stores have it, and its sources put what cannot be mapped into the error store. So are user and password of the http
source, whose users are the users of the server for WSO2, and the port of the tcp source, which is a setting of the
server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang.tree import Annotation
from ...masking import mask_passwords
from ...types import Schema, Type
from .. import nodes as n
from ..query_parts import IN_MEMORY, connector_options, connector_type, has_event_topic
from .change_properties import connector_properties, describe_database_gap, list_property_gaps
from .connector_options import describe_option_gap, describe_value_gap, find_missing_option, list_setting_gaps
from .kafka_client_settings import CONFIGURATION, CONSUMER
from .mapping import CsvSource, KeyValue, PassThrough, SourceMapping
from .mappings import MAPPED, source_mapping
from .outside import BINARY, BYTES
from .source_options import SOURCES

FILE_EVENTS = "fileeventlistener"
"""The type of sources of events on files, which have no mapping of messages."""
FILE_EVENT_ATTRIBUTES = 3
"""The number of attributes of such an event: the path of the file, its name, its status."""
TIME = "event.time"
ON_ERROR = "on.error"
PROPERTIES = "connector.properties"
CHANGE_PROPERTIES = 3
"""The number of transport properties of a change: its operation, and the times of its commit and of its reading."""
RESPONSES = frozenset({"http-call-response", "http-response"})
"""The types of sources of the responses to what a sink has called."""
SERVICES = frozenset({"http-service", "http-request"})
"""The types of sources whose requests a sink answers; `http-request` is the former name."""
INCOMING = frozenset(SOURCES)
"""The types of sources that read from outside."""
_TAKEN = {
    "kafka": "each message once",
    "file": "each line or file once",
    FILE_EVENTS: "each change that a look at the folder finds, once",
    "http": "requests answered with 200 are kept",
    **dict.fromkeys(SERVICES, "each request is answered once, by the app's event, or with 504; none after a restart"),
    **dict.fromkeys(RESPONSES, "each response, as often as its call is made"),
    "tcp": "messages taken are kept; senders get no answer",
    "nats": "messages taken are kept; servers keep nothing",
    "mqtt": "messages of quality 1 and 2 at least once; while the app is away, with clean.session='false'",
    "rabbitmq": "each message of a queue at least once",
    "websocket": "messages taken are kept; servers keep nothing",
    "prometheus": "the samples of each answer that differs from the one before",
    IN_MEMORY: "each message of the app's sinks, once more if a crash comes before it is on the disk",
    "hl7": "each message at least once: it is acknowledged when it is on the disk",
    "cdc": "each change in the log once; polled, each row once, as the polling column grows",
}


@dataclass(frozen=True)
class IncomingSource:
    """A source of `stream`. `number` counts the stream's sources of this type, from 1. `time` is the attribute that
    has an event's time; None: events have the time at which they are taken. `on_error` is STORE or LOG."""

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


def delivery_guarantee(type_: str) -> str:
    """Delivery guarantee of a source of this type, in words."""
    return _TAKEN[type_]


def is_incoming(a: Annotation, properties: Mapping[str, str]) -> bool:
    """True if an annotation is a source that reads from outside."""
    is_source = a.name.lower() == "source" and connector_type(a, properties) in INCOMING
    return is_source and not has_event_topic(a, properties)


def refused_place(scheme: str, host: str, port: int) -> str | None:
    """Why an http source cannot listen at a place, with the way out; None if it can."""
    if scheme == "http" and host.lower() in ("localhost", "127.0.0.1"):
        return None
    local = f"http://localhost:{port}/..." if host == "0.0.0.0" else "http://localhost:PORT/PATH"
    usual = {"http": 80, "https": 443}.get(scheme)
    at = f"[{host}]" if ":" in host else host
    return f"it listens on this machine alone, {local}, not {scheme}://{at}{'' if port == usual else f':{port}'}"


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
    missing = find_missing_option("source", type_, options)
    if missing is not None:
        raise SiddhiBindError(missing[0], a.span, hint=missing[1])
    schema = stream.source.schema
    time = options.get(TIME)
    if time is not None:
        column = schema.find(time)
        if column is None:
            hint = did_you_mean(time, schema.names) or f"It has {', '.join(schema.names)}."
            raise SiddhiBindError(f"stream '{stream.source.id}' has no attribute '{time}'", a.span, hint=hint)
        if schema[column].type not in (Type.LONG, Type.STRING):
            raise SiddhiBindError(
                f"'{TIME}' names a long (ms since 1970) or a string (ISO 8601), and '{time}' is a "
                f"{schema[column].type}",
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
    elif type_ == "prometheus":
        _check_samples(a, mapping)
    elif type_ == FILE_EVENTS:
        _check_file_events(a, schema, mapping)
    elif isinstance(mapping.format, PassThrough) and not parquet:
        raise SiddhiBindError(
            f"a source of type '{type_}' has no @map of messages", a.span, hint="Write @map(type='json') or another."
        )
    on_error = options.get(ON_ERROR, SOURCES[type_][ON_ERROR].default).upper()
    return IncomingSource(stream.source.id, type_, number, options, time, on_error, mapping, a.span)


def _check_file_events(a: Annotation, schema: Schema, mapping: SourceMapping) -> None:
    if not isinstance(mapping.format, PassThrough):
        raise SiddhiBindError(
            f"a source of type '{FILE_EVENTS}' gives events and no messages",
            a.span,
            hint="Write @map(type='passThrough').",
        )
    if len(schema) != FILE_EVENT_ATTRIBUTES or any(x.type is not Type.STRING for x in schema):
        raise SiddhiBindError(
            f"a source of type '{FILE_EVENTS}' gives three strings: the path of a file, its name, its status",
            a.span,
            hint="Define the stream with (filepath string, filename string, status string).",
        )


def is_listening(options: Mapping[str, str]) -> bool:
    """True for a `cdc` source that reads the log of a database, which is the default."""
    mode = SOURCES["cdc"]["mode"]
    return options.get(mode.name, mode.default).strip().lower() == mode.default


def listened_operations(options: Mapping[str, str]) -> frozenset[str]:
    """The operations that a `cdc` source names, in small letters."""
    return frozenset(o.strip().lower() for o in options.get("operation", "").split(",") if o.strip())


def _check_samples(a: Annotation, mapping: SourceMapping) -> None:
    """Further checks of a source of a metric's samples, `prometheus`."""
    if not isinstance(mapping.format, KeyValue):
        raise SiddhiBindError(
            "a source of type 'prometheus' gives samples, whose labels are keys",
            a.span,
            hint="Write @map(type='keyvalue').",
        )
    _refuse_properties(a, mapping, "samples", "Name a label, or metric_name, metric_type, help, subtype or value.")


def _refuse_properties(a: Annotation, mapping: SourceMapping, what: str, hint: str) -> None:
    """Raises SiddhiBindError for a transport property, which `what` a source reads does not have."""
    header = next((h for h in mapping.headers if h is not None), None)
    if header is not None:
        message = f"{what} have no transport properties, and 'trp:{header}' names one"
        raise SiddhiBindError(message, a.span, hint=hint)


def _check_rows(a: Annotation, options: Mapping[str, str], mapping: SourceMapping) -> None:
    """Further checks of a source of rows, `cdc`."""
    if not isinstance(mapping.format, KeyValue):
        raise SiddhiBindError(
            "a source of type 'cdc' gives rows, whose columns are keys", a.span, hint="Write @map(type='keyvalue')."
        )
    mode, operations = SOURCES["cdc"]["mode"], listened_operations(options)
    mode_text = options.get(mode.name, mode.default)
    if mode_text.strip().lower() not in mode.values:
        raise SiddhiBindError(
            f"mode='{mode_text}' of a source of type 'cdc' is unknown", a.span, hint="Write 'listening' or 'polling'."
        )
    unknown = sorted(operations - {*SOURCES["cdc"]["operation"].values})
    if unknown:
        raise SiddhiBindError(
            f"operation='{options['operation']}' of a source of type 'cdc': '{unknown[0]}' is unknown",
            a.span,
            hint="Write insert, update or delete, or several of them with commas.",
        )
    if is_listening(options):
        _check_listening(a, options, mapping)
    else:
        _check_polling(a, options, mapping)


def _check_listening(a: Annotation, options: Mapping[str, str], mapping: SourceMapping) -> None:
    if not listened_operations(options):
        raise SiddhiBindError("a source of type 'cdc' has no 'operation'", a.span, hint="Write operation='insert'.")
    headers = [h for h in mapping.headers if h is not None]
    if len(headers) > CHANGE_PROPERTIES:
        raise SiddhiBindError(
            f"a change has {CHANGE_PROPERTIES} transport properties, its operation and two times, and "
            f"'trp:{headers[-1]}' is one more",
            a.span,
            hint="Name a column of the table.",
        )
    try:
        connector_properties(options.get(PROPERTIES, ""))
    except ValueError as error:
        raise SiddhiBindError(
            f"'{mask_passwords(str(error))}' in {PROPERTIES} is not NAME=VALUE",
            a.span,
            hint=f"Write {PROPERTIES}='slot.name=orders'.",
        ) from None


def _check_polling(a: Annotation, options: Mapping[str, str], mapping: SourceMapping) -> None:
    if not options.get("polling.column", "").strip():
        raise SiddhiBindError(
            "a source of type 'cdc' with mode='polling' has no 'polling.column'",
            a.span,
            hint="Write polling.column='id'.",
        )
    _refuse_properties(a, mapping, "rows that are polled", "Name a column of the table.")
    if "delete" in listened_operations(options):
        raise SiddhiBindError(
            f"operation='{options['operation']}' goes with mode='listening': polling finds rows that are inserted, or "
            "updated with a greater value in the polling column",
            a.span,
            hint="Leave 'operation' out.",
        )


def list_gaps(a: Annotation, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The gaps of a source that reads from outside this build: their names, and what each is, in words."""
    type_, options = connector_type(a, properties), connector_options(a, properties)
    if type_ == "cdc" and is_listening(options):
        words = describe_database_gap(options.get("url", ""))
        if words is not None:
            yield "source-option", words
            return
        for words in list_property_gaps(options.get(PROPERTIES, "")):
            yield "source-option", words
    for key, value in options.items():
        for words in _list_option_gaps(type_, key, value):
            yield "source-option", words
    mapping = next((m for m in a.nested if m.name.lower() == "map"), None)
    map_type = None if mapping is None else mapping.get("type")
    if mapping is not None and (map_type not in MAPPED or (map_type in BYTES and type_ not in BINARY)):
        yield "mapping", f"a source of type '{type_}' with mapping '{map_type}'"


def _list_option_gaps(type_: str, key: str, value: str) -> Iterator[str]:
    """The words for what of one option of a source this build lacks."""
    words = describe_option_gap("source", type_, key, value) or describe_value_gap("source", type_, key, value)
    if words is not None:
        yield words
    elif key == CONFIGURATION:
        yield from list_setting_gaps("source", type_, value, CONSUMER)
