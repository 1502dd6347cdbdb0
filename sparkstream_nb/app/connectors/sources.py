"""The sources of a deployment, from the app's annotations, grants and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from ...errors import SiddhiBindError, SparkStreamError
from ...mapping.decoding import Decoder, decoder
from ...plan.connectors.incoming import FILE_EVENTS, RESPONSES, SERVICES, IncomingSource, incoming_sources
from ...plan.connectors.mapping import JsonSource, PassThrough, SourceMapping, XmlSource
from ...plan.connectors.outside import SINK_ID, SOURCE_ID
from ...plan.connectors.source_options import SOURCES
from ...plan.nodes import Plan
from ...plan.query_parts import IN_MEMORY
from ...sources.file_events import FileEventsReader
from ...sources.file_source import FilesReader
from ...sources.hl7_source import Hl7Reader
from ...sources.http_source import HttpReader, HttpService
from ...sources.intake import IntakeSetup
from ...sources.reader import SourceReader
from ...sources.responses import ResponseReader
from ...sources.subscription_reader import SubscriptionReader
from ...sources.tcp_source import TcpReader
from ...types import Schema
from ..config.conf import NodeFile
from ..config.grants import Grants
from ..config.http_logins import logins_of
from ..config.secrets import References
from .cdc_sources import make_cdc_reader
from .file_sources import make_file_events_place, make_files_place
from .hl7_places import make_hl7_port
from .http_sources import ListenerToken, make_listener
from .kafka_sources import make_kafka_place
from .mqtt_places import MqttGate
from .nats_places import NatsGate
from .prometheus_sources import PrometheusSourceGate
from .rabbitmq_places import RabbitGate
from .response_links import ResponseLinks
from .schema_registry import SchemaRegistries
from .tcp_sources import make_tcp_place
from .typed_options import OptionValues
from .websocket_places import WebSocketGate

_GATES: Mapping[str, type[NatsGate | MqttGate | RabbitGate | WebSocketGate]] = {
    "nats": NatsGate,
    "mqtt": MqttGate,
    "rabbitmq": RabbitGate,
    "websocket": WebSocketGate,
}
"""By type of source, the class that makes a place of its options that is subscribed to."""


@dataclass(frozen=True)
class MessageReader:
    """The decoder of a source's messages; `time` is the position of the attribute with their time, or None."""

    decoder: Decoder
    time: int | None


class SourcePlans:
    """The sources that an app was deployed with, and their grants: readers are created from it, as often as an app is
    opened. Raises SiddhiBindError, at the annotation, for a source that is wrong or not allowed.
    """

    def __init__(
        self,
        plan: Plan,
        grants: Grants,
        references: References,
        home: Path,
        files: Sequence[NodeFile] = (),
        links: ResponseLinks | None = None,
    ) -> None:
        """`files`: the deployment files, which may have users; `links` to sinks of the app."""
        self._plan, self._grants, self._references, self._home = plan, grants, references, home
        self._files, self._links = files, links or ResponseLinks()
        self._sources = SchemaRegistries(grants).resolve(incoming_sources(plan), plan)
        self.setups(lambda: None)

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def read_outside(self) -> bool:
        """True if one of them reads from outside the app, and not a topic of the app."""
        return any(source.type != IN_MEMORY for source in self._sources)

    def setups(self, latest: Callable[[], int | None]) -> list[IntakeSetup]:
        """The sources, each with a reader of its own. `latest()` is the last time (ms) of an event that is taken."""
        return [self._setup(source, latest) for source in self._sources]

    def messages_of(self, name: str) -> MessageReader | None:
        """The decoder of the source of this name; None if there is no such source."""
        for s in self._sources:
            if quote(s.name, safe="") == name:
                schema = self._plan.schema(s.stream)
                rows = isinstance(s.mapping.format, PassThrough) or s.type in ("cdc", "prometheus")
                mapping = _rows_as_json(schema, s.mapping) if rows else s.mapping
                return MessageReader(decoder(mapping, schema), _time_of(s, schema))
        return None

    def _setup(self, source: IncomingSource, latest: Callable[[], int | None]) -> IntakeSetup:
        try:
            place, reader = self._reader(source, latest)
        except SiddhiBindError:
            raise
        except SparkStreamError as error:
            wrong = SiddhiBindError(str(error), source.span)
            raise (wrong.with_source(self._plan.text) if self._plan.text else wrong) from None
        schema = self._plan.schema(source.stream)
        return IntakeSetup(
            name=quote(source.name, safe=""),
            stream=source.stream,
            type=source.type,
            origin=place,
            schema=schema,
            reader=reader,
            time=_time_of(source, schema),
            together=source.mapping.together and not _line_by_line(source),
            keeps_errors=source.on_error == "STORE",
        )

    def _reader(self, source: IncomingSource, latest: Callable[[], int | None]) -> tuple[str, SourceReader]:
        """(where a source reads, as it may be shown; its reader)."""
        schema = self._plan.schema(source.stream)
        option_values = OptionValues.of(
            "source", source.type, source.options, f"the source of stream '{source.stream}'"
        )
        if source.type == "kafka":
            from ...sources.kafka_source import EventTime, KafkaReader  # kafka-python is loaded where an app needs it

            place = make_kafka_place(option_values, self._grants, self._references)
            servers = ",".join(place.options["bootstrap_servers"])
            attribute = _time_of(source, schema)
            time = None if attribute is None else EventTime(attribute, latest)
            return f"{', '.join(place.topics)} at {servers}", KafkaReader(place, source.mapping, schema, time)
        if source.type == "file":
            files = make_files_place(option_values, self._grants, has_documents=_has_documents(source.mapping))
            decodes = None if files.mode == "parquet" else decoder(source.mapping, schema)
            return str(files.path) + ("/" if files.folder else ""), FilesReader(files, schema, decodes)
        if source.type == FILE_EVENTS:
            folder = make_file_events_place(option_values, self._grants)
            return f"{folder.path}/", FileEventsReader(folder)
        if source.type == "cdc":
            return make_cdc_reader(option_values, source.mapping, schema, self._grants, self._references)
        if source.type == "tcp":
            tcp = make_tcp_place(option_values, self._grants, f"{self._plan.name or 'SiddhiApp'}/{source.stream}")
            return f"tcp://localhost:{tcp.port}/{tcp.channel}", TcpReader(tcp, decoder(source.mapping, schema))
        if source.type == "hl7":
            hl7 = make_hl7_port(option_values, self._grants, source.mapping, schema)
            return f"hl7://localhost:{hl7.port}", Hl7Reader(hl7, decoder(source.mapping, schema))
        if source.type == "prometheus":
            metrics = PrometheusSourceGate(self._grants, self._references, source.stream)
            return metrics.reader(option_values, source.mapping, schema)
        if source.type in _GATES:
            gate = _GATES[source.type](self._grants, self._references, option_values.what)
            topic = gate.subscription(source.options)
            return topic.origin, SubscriptionReader(topic, decoder(source.mapping, schema))
        if source.type == IN_MEMORY:
            name, desk = quote(source.name, safe=""), self._links.topics.desk
            origin = f"topic {option_values.text('topic')}"
            return origin, ResponseReader(desk, name, decoder(source.mapping, schema))
        if source.type in RESPONSES:
            sink_id, name = option_values.text(SINK_ID), quote(source.name, safe="")
            reader = ResponseReader(self._links.desks.of(sink_id), name, decoder(source.mapping, schema))
            return f"responses to {sink_id}", reader
        token = ListenerToken(self._home / "sources" / f"{source.name}.token")
        listener, url = make_listener(option_values, self._grants, token)
        if option_values.flag("basic.auth.enabled"):
            logins = logins_of(source.options, self._files, self._references, option_values.what)
            listener, url = replace(listener, logins=logins), url.partition(", token in ")[0]
        service = None
        if source.type in SERVICES:
            requests = self._links.services.of(option_values.text(SOURCE_ID))
            service = HttpService(requests, option_values.number("connection.timeout") / 1000)
        return url, HttpReader(listener, decoder(source.mapping, schema), service)


def _rows_as_json(schema: Schema, mapping: SourceMapping) -> SourceMapping:
    """The reader of rejected rows of parquet files and tables: they are kept as JSON."""
    places = tuple(f"$['{name}']" for name in schema.names)
    return replace(mapping, format=JsonSource(), places=places, headers=(None,) * len(places))


def _time_of(source: IncomingSource, schema: Schema) -> int | None:
    return None if source.time is None else schema.find(source.time)


def _has_documents(mapping: SourceMapping) -> bool:
    """True if messages are documents that programs write line by line."""
    return isinstance(mapping.format, XmlSource) and mapping.format.is_streamed


def _line_by_line(source: IncomingSource) -> bool:
    """True if a message is a line of a file: no chunk, but an event."""
    if _has_documents(source.mapping):
        return False
    mode = source.options.get("mode", SOURCES["file"]["mode"].default)
    return source.type == "file" and mode.lower() in ("line", "parquet")
