"""The sinks of a deployment, from the app's annotations, grants and secrets, and their threads."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from ...engine.columnar.column_data import Array
from ...errors import Misuse, SiddhiBindError, SparkStreamError
from ...journal.result_codec import column_values, is_object
from ...nodes.partitioning import by_hash
from ...plan.connectors.mapping import Avro, Binary
from ...plan.connectors.outside import CALLS, SERVICE_RESPONSES, SINK_ID, OutsideSink, outside_sinks, promise
from ...plan.nodes import Plan
from ...plan.query_parts import IN_MEMORY, template_attributes
from ...retention import bytes_of
from ...sinks.delivery import Delivery, DeliverySource, SinkFigures, SinkSetup
from ...sinks.file_sink import BatchFiles, FilePlace, GrowingFile, NamedFiles, ReplacedFile
from ...sinks.http_sink import Calls
from ...sinks.memory_sink import MemoryTarget
from ...sinks.sink_messages import MessageWriter
from ...sinks.target import Target
from ...sinks.turns import Turns
from ...system import path_of
from ...types import Schema
from ..config.grants import Grants
from ..config.secrets import References
from .hl7_places import Hl7Gate
from .http_sinks import HttpGate
from .kafka_sinks import KafkaGate
from .mail_sinks import MailGate
from .mqtt_places import MqttGate
from .nats_places import NatsGate
from .prometheus_sinks import PrometheusGate
from .rabbitmq_places import RabbitGate
from .response_links import ResponseLinks
from .schema_registry import SchemaRegistries
from .service_places import ServiceGate
from .tcp_sinks import TcpGate
from .typed_options import OptionValues
from .websocket_places import WebSocketGate

DISTRIBUTED = "distributed"
_FAILING = ("ha", "scalable", DISTRIBUTED)
_OWN = {"file": "file", "prometheus": "metric.name"}
"""The types of sinks that do not share what they write to."""
_MOST_ROLL = 1 << 50


class SinkPlans:
    """The sinks that an app was deployed with, and their grants: targets are created from it, as often as an app is
    opened. Raises SiddhiBindError, at the annotation, for a sink that is wrong, not allowed, or that has a secret in
    the app's text; `Misuse` if two sinks write to one file.
    """

    def __init__(
        self, plan: Plan, grants: Grants, references: References, links: ResponseLinks | None = None
    ) -> None:
        """`links` to sources of the app."""
        self._plan, self._grants, self._references = plan, grants, references
        self._links = links or ResponseLinks()
        self._sinks = SchemaRegistries(grants).resolve(outside_sinks(plan), plan)
        self.setups("0" * 12)

    def __len__(self) -> int:
        return len(self._sinks)

    def setups(self, run: str) -> list[SinkSetup]:
        """The sinks of the run `run` of the app, one for each target."""
        out: list[SinkSetup] = []
        for sink in self._sinks:
            try:
                out += self._of(sink, run)
            except SiddhiBindError:
                raise
            except SparkStreamError as error:
                wrong = SiddhiBindError(str(error), sink.span)
                raise (wrong.with_source(self._plan.text) if self._plan.text else wrong) from None
        exclusive_targets = Counter((s.type, s.target_name) for s in out if s.type in _OWN)
        twice = next((place for place, count in exclusive_targets.items() if count > 1), None)
        if twice is not None:
            raise Misuse(f"two sinks of this app write to {twice[1]}: give each a {_OWN[twice[0]]} of its own")
        return out

    def _of(self, sink: OutsideSink, run: str) -> list[SinkSetup]:
        schema = self._plan.schema(sink.stream)
        name = f"{quote(sink.stream, safe='')}-{sink.type}-{sink.number}"
        make_target = self._target_maker(sink, run, name)
        targets = [make_target(options) for options in sink.destinations]
        if sink.strategy == "roundRobin":
            targets = [
                (", ".join(name_of_target for name_of_target, _ in targets), Turns([target for _, target in targets]))
            ]
        several = len(targets) > 1
        return [
            SinkSetup(
                name=f"{name}-{i}" if several else name,
                stream=sink.stream,
                type=sink.type,
                target_name=name_of_target,
                promise=promise(sink.type),
                on_error=self._on_error(sink),
                writer=MessageWriter(sink.mapping, schema, target.templates),
                target=target,
                share=_share(sink, schema, i - 1, len(targets)),
            )
            for i, (name_of_target, target) in enumerate(targets, 1)
        ]

    def _target_maker(
        self, sink: OutsideSink, run: str, name: str
    ) -> Callable[[Mapping[str, str]], tuple[str, Target]]:
        """The function that makes a target of a destination's options, with its name as it may be shown."""
        what, key = f"the sink of stream '{sink.stream}'", f"{run}-{name}"
        schema = self._plan.schema(sink.stream)
        writer = MessageWriter(sink.mapping, schema)
        match sink.type:
            case "file":
                return lambda options: self._file(what, options, writer, run)
            case "kafka":
                return KafkaGate(self._grants, self._references, what, key).target
            case "email":
                return MailGate(self._grants, self._references, what, key).target
            case "tcp":
                return TcpGate(self._grants, what).target
            case "hl7":
                return Hl7Gate(self._grants, what).target
            case "nats":
                subjects = NatsGate(self._grants, self._references, what)
                return lambda options: subjects.target(options, key)
            case "mqtt":
                return MqttGate(self._grants, self._references, what).target
            case "rabbitmq":
                exchanges = RabbitGate(self._grants, self._references, what)
                return lambda options: exchanges.target(options, key, writer.content_type)
            case "websocket":
                servers = WebSocketGate(self._grants, self._references, what)
                is_binary = isinstance(sink.mapping.format, Avro | Binary)
                return lambda options: servers.target(options, is_binary=is_binary)
            case "prometheus":
                return PrometheusGate(self._grants, what, sink.stream, schema).target
        if sink.type == IN_MEMORY:
            return self._memory_target
        if sink.type in SERVICE_RESPONSES:
            service = ServiceGate(self._links.services, self._references, what)
            return lambda options: service.target(options, writer.content_type)
        if sink.type == "http" or sink.type in CALLS:
            calls = self._calls(sink, schema) if sink.type in CALLS else None
            gate = HttpGate(self._grants, self._references, what, key, calls)
            return lambda options: gate.target(options, writer.content_type)
        raise NotImplementedError(f"no target is made for sinks of type '{sink.type}': add it to `SinkPlans`")

    def _memory_target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        return f"topic {options['topic']}", MemoryTarget(options["topic"], self._links.topics)

    def _calls(self, sink: OutsideSink, schema: Schema) -> Calls:
        desk = self._links.desks.of(sink.destinations[0][SINK_ID].strip())
        return Calls(desk, tuple(name for name in schema.names if name in desk.names))

    def _on_error(self, sink: OutsideSink) -> str:
        """The handling of an event that cannot be delivered. STREAM leaves it to `@OnError` of the stream, as Siddhi's
        `StreamJunction.handleError` does: without one it is logged."""
        if sink.on_error != "STREAM":
            return sink.on_error
        return self._plan.streams[sink.stream].on_error or "LOG"

    def _file(self, what: str, options: Mapping[str, str], writer: MessageWriter, run: str) -> tuple[str, Target]:
        o = OptionValues.of("sink", "file", options, what)
        uri = o.raw("file.uri")
        if "${" in uri:
            raise Misuse(f"{what}: file.uri cannot have a reference such as ${{sec:...}} in it: paths are shown")
        if "\0" in uri or any(c < " " or c == "\x7f" for c in uri):
            raise Misuse(f"{what}: file.uri has a control character in it")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", uri):
            raise Misuse(f"{what}: file.uri is a path of this machine, not an address: {uri.split('://')[0]}://...")
        ends_lines = o.flag("add.line.separator") and not writer.breaks
        between = b"\n" if ends_lines else b""
        if template_attributes(uri):
            return self._named_files(o, writer.head, between)
        path = path_of(uri).expanduser().absolute()
        folder = uri.endswith("/") or path.is_dir()
        root = self._grants.folder_of(path, f"{what} writes to", file=not folder)
        append = o.flag("append")
        place = FilePlace(path.resolve(), root, writer.head, between)
        roll = o.optional("roll.size")
        if roll is not None and not folder:
            raise Misuse(f"{what}: roll.size is for a folder: end file.uri with '/'")
        if not append and folder:
            raise Misuse(f"{what}: append='false' is for a file, and {uri} is a folder")
        if not append:
            return str(place.path), ReplacedFile(place)
        if not folder:
            return str(place.path), GrowingFile(place)
        if roll is None:
            return f"{place.path}/", BatchFiles(place, run, writer.extension)
        size = bytes_of(f"{what}: roll.size", roll)
        if not 0 < size < _MOST_ROLL:
            raise Misuse(f"{what}: roll.size is a size such as 64MB, not '{roll}'")
        return f"{place.path}/", GrowingFile(place, size, run, writer.extension)


    def _named_files(self, o: OptionValues, head: bytes, between: bytes) -> tuple[str, Target]:
        """The target of a `file.uri` that depends on the event: what is before that names the folder."""
        uri, what = o.raw("file.uri").removeprefix("file:"), o.what
        before, _, _ = uri.partition("{{")
        folder, slash, _ = before.rpartition("/")
        template = uri[len(folder) + len(slash) :]
        if not folder or template.endswith("/"):
            raise Misuse(f"{what}: a file.uri that depends on the event is FOLDER/NAME, as 'out/{{{{symbol}}}}.csv'")
        if o.has("roll.size"):
            raise Misuse(f"{what}: roll.size is for a folder, and file.uri names files")
        if any(part.startswith(".") or not part for part in template.split("/")):
            raise Misuse(f"{what}: the names in file.uri cannot be empty or begin with a dot")
        path = Path(folder).expanduser().absolute()
        root = self._grants.folder_of(path / "x", f"{what} writes to")
        place = FilePlace(path.resolve(), root, head, between)
        return f"{place.path}/{template}", NamedFiles(place, template, o.flag("append"))


def check_sinks(plan: Plan, mode: str) -> None:
    """Raises SiddhiBindError for a sink, in mode distributed, on a stream that comes in from outside: it would be part
    of several partial apps; and, in modes whose nodes fail, for one that sends to a fault stream: one node alone would
    take an event that its copies, and its state after a failure, do not have."""
    output_streams = {q.output.target.id for q in plan.queries} | set(plan.triggers)
    for sink in outside_sinks(plan):
        if mode == DISTRIBUTED and sink.stream not in output_streams:
            error = SiddhiBindError(
                f"mode distributed has no sinks on input streams, such as '{sink.stream}'",
                sink.span,
                hint=f"Let a query write the events to publish: from {sink.stream} select * insert into ...",
            )
            raise error.with_source(plan.text) if plan.text else error
        if mode == DISTRIBUTED and sink.type in CALLS | SERVICE_RESPONSES:
            why = "that takes its responses" if sink.type in CALLS else "whose requests it answers"
            error = SiddhiBindError(
                f"mode distributed has no sink of type '{sink.type}': no source runs there {why}",
                sink.span,
                hint="Deploy in another mode, or use a sink of type 'http'.",
            )
            raise error.with_source(plan.text) if plan.text else error
        if mode in _FAILING and (sink.on_error, plan.streams[sink.stream].on_error) == ("STREAM", "STREAM"):
            error = SiddhiBindError(
                f"mode {mode} has no on.error='STREAM' of a sink of type '{sink.type}'",
                sink.span,
                hint="Write on.error='STORE', or deploy in mode active-active.",
            )
            raise error.with_source(plan.text) if plan.text else error


def _share(sink: OutsideSink, schema: Schema, number: int, of: int) -> Callable[[pa.Table], Array] | None:
    """Rows for destination `number` (from 0) of a partitioned sink: those with one remainder of Java's hash of
    the key. None: all do."""
    if sink.key is None or of == 1:
        return None
    return partial(_of_key, schema.names.index(sink.key), schema, number, of)


def _of_key(key: int, schema: Schema, number: int, of: int, table: pa.Table) -> Array:
    field, column = table.schema.field(3 + key), table.column(3 + key)
    values = column_values(column, field) if is_object(field) else column.combine_chunks()
    is_of_key: Array = by_hash(values, schema[key].type, of) == number
    return is_of_key


class Deliveries:
    """The running sinks of an app."""

    def __init__(self, setups: Sequence[SinkSetup], source: DeliverySource, begin: int) -> None:
        """`begin`: the micro-batch with which a sink begins that has no position yet."""
        self._all = [Delivery(setup, source, begin) for setup in setups]
        self._source = source
        source.outputs.followers = list(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def start(self) -> None:
        """Starts those that do not run."""
        for delivery in self._all:
            delivery.start()

    def stop(self) -> None:
        """Ends all; a call that is under way has a second to end."""
        for delivery in self._all:
            delivery.end()
        for delivery in self._all:
            delivery.stop()

    def close(self) -> None:
        """End all, and wait until they have closed their targets."""
        self.stop()
        for delivery in self._all:
            delivery.join()

    def drain(self, seconds: float) -> int:
        """Wait up to `seconds` until all committed outputs are delivered; returns the number still to be sent."""
        deadline, batch = time.monotonic() + seconds, self._source.progress.batch
        for delivery in self._all:
            delivery.drain(batch, deadline)
        return sum(f.pending for f in self.figures())

    def drain_topics(self, seconds: float) -> int:
        """Waits up to `seconds` until the sinks of topics within the app have delivered all committed outputs; returns
        the number of outputs that they have delivered since the app's run began."""
        deadline, batch = time.monotonic() + seconds, self._source.progress.batch
        deliveries = [d for d in self._all if d.setup.type == IN_MEMORY]
        for delivery in deliveries:
            delivery.drain(batch, deadline)
        return sum(d.position.sent for d in deliveries)

    def figures(self) -> tuple[SinkFigures, ...]:
        """The progress of each."""
        return tuple(d.figures() for d in self._all)
