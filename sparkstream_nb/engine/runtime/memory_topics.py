"""Sinks and sources inside a node: `inMemory` topics of events between streams of one app, and the `log` sink.

Siddhi publishes a chunk at once (`SinkCallback`, `PassThroughSinkMapper`), so a chunk stays one chunk. If the topic
depends on the event (`topic='{{k}}'`), the events of one topic are a chunk. A sink runs after the queries that read the
stream. Events published to a topic without a source go where `on.error` says if that is STREAM or STORE; Siddhi passes
on only the first event of a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...lang.tree import Annotation
from ...plan import nodes
from ...plan.query_parts import connector_options, connector_type, has_event_topic, template_parts
from ..columnar.column_data import Array
from ..columnar.error_routing import ErrorObject, Undelivered, fault_stream
from ..columnar.javamap import hash_code, string_hash
from ..columnar.rows import Clock, Rows, chunk_numbers
from ..expressions.java_texts import text
from ..state.services import Services
from .operator_graph import OpNode
from .operators import StatelessOperator

_DEFAULT_TOPIC = "input inMemory source"
"""Topic of Siddhi's `InMemorySource` if none is given."""

LINES = 1000
"""Maximum number of events that a log sink writes per step."""


@dataclass(frozen=True)
class _TopicRoute:
    """Sink number `sink`'s way to a topic: destination `number` of `of`, chosen by `strategy` (None: there is one).

    `topic` is a text at even places and an attribute's position at odd ones. `key` is the attribute that a partitioned
    sink chooses by. `on_error` is the sink's, in upper case.
    """

    sink: int
    topic: tuple[str | int, ...]
    strategy: str | None
    number: int
    of: int
    key: int | None
    on_error: str

    @property
    def dynamic(self) -> bool:
        """True if the topic depends on the event."""
        return len(self.topic) > 1

    def topics(self, rows: Rows, services: Services) -> list[str]:
        """The topic of each row."""
        out = [""] * len(rows)
        for part in self.topic:
            if isinstance(part, str):
                out = [t + part for t in out]
            else:
                column = rows.columns[part]
                values = column.to_list(services.strings)
                out = [t + text(column.type, v) for t, v in zip(out, values, strict=True)]
        return out

    def topics_of_chunks(self, rows: Rows, services: Services) -> list[str]:
        """The topic of each chunk: that of its first row."""
        return self.topics(rows.take(_first_of_chunks(rows)), services)


@dataclass(frozen=True)
class _TopicListener:
    """A stream that listens to a topic. `lacks` is a transport property (`trp:...`) that its mapping asks for: the
    inMemory source has none, so that every event fails."""

    stream: nodes.StreamDef
    topic: str
    lacks: str | None


def _routes(stream: nodes.StreamDef, properties: Mapping[str, str]) -> Iterator[_TopicRoute]:
    """The topics that a stream's inMemory sinks publish to."""
    names = stream.source.schema.names

    def topic(template: str) -> tuple[str | int, ...]:
        return tuple(names.index(p) if i % 2 else p for i, p in enumerate(template_parts(template)))

    for n, sink in enumerate(stream.annotations):
        if sink.name.lower() != "sink" or not has_event_topic(sink, properties):
            continue
        options = connector_options(sink, properties)
        on_error = options.get("on.error", "LOG").upper()
        distribution = next((a for a in sink.nested if a.name.lower() == "distribution"), None)
        if distribution is None:
            yield _TopicRoute(n, topic(options["topic"]), None, 0, 1, None, on_error)
            continue
        elements = {e.key: e.value for e in distribution.elements}
        strategy = elements["strategy"]
        key = names.index(elements["partitionKey"]) if strategy == "partitioned" else None
        places = [connector_options(a, properties) for a in distribution.nested if a.name.lower() == "destination"]
        for i, place in enumerate(places):  # the sink's own topic goes before that of a destination
            yield _TopicRoute(n, topic((place | options)["topic"]), strategy, i, len(places), key, on_error)


def _subscriptions(plan: nodes.Plan) -> Iterator[_TopicListener]:
    """Topics of inMemory sources, in the order of the text."""
    for stream in plan.streams.values():
        for source in stream.annotations:
            if source.name.lower() == "source" and has_event_topic(source, plan.properties):
                options = connector_options(source, plan.properties)
                yield _TopicListener(stream, options.get("topic", _DEFAULT_TOPIC), _transport_property(source))


def _transport_property(source: Annotation) -> str | None:
    """The first transport property that a source's mapping names."""
    mapping = next((a for a in source.nested if a.name.lower() == "map"), None)
    attributes = next((a for a in mapping.nested if a.name.lower() == "attributes"), None) if mapping else None
    values = (e.value.strip() for e in attributes.elements) if attributes else ()
    return next((v for v in values if v.startswith("trp:")), None)


SinkOperator: TypeAlias = "GroupOperator | TopicOperator | UnheardOperator | LogOperator"


def sink_operators(plan: nodes.Plan, services: Services) -> list[SinkOperator]:
    """The operators of all sinks, in the order of the text."""
    out: list[SinkOperator] = []
    subscriptions = list(_subscriptions(plan))
    for s, stream in plan.streams.items():
        for route in _routes(stream, plan.properties):
            source = s
            if route.key is not None or route.dynamic:
                source = f"{s}|{route.sink}"
                if route.number == 0:
                    out.append(GroupOperator(source, route, OpNode((s,), source), services))
            for to in subscriptions:
                r = to.stream.source.id
                if not (route.dynamic or route.topic == (to.topic,)):
                    continue
                if to.stream.source.schema.types == stream.source.schema.types:
                    out.append(TopicOperator(f"{s} > {to.topic} > {r}", route, to, OpNode((source,), r), services))
            heard = frozenset(to.topic for to in subscriptions)
            if route.strategy is None and route.on_error in ("STREAM", "STORE"):
                also = (fault_stream(s),) if (route.on_error, stream.on_error) == ("STREAM", "STREAM") else ()
                node = OpNode((source,), None, also=also)
                if route.dynamic or route.topic[0] not in heard:
                    out.append(UnheardOperator(s, route, heard, node, services))
        for sink in stream.annotations:
            if sink.name.lower() == "sink" and connector_type(sink, plan.properties) == "log":
                out.append(LogOperator(s, _prefix(sink, plan, s), OpNode((s,), None), services))
    return out


def _prefix(sink: Annotation, plan: nodes.Plan, stream: str) -> str:
    return sink.get("prefix") or f"{plan.name or 'app'} : {stream}"


@dataclass(slots=True)
class GroupOperator(StatelessOperator):
    """Siddhi's `OutputGroupDeterminer` before a sink: the events of a chunk that go to one destination become
    a chunk. For a partitioned sink these have one remainder of their key's hash
    (`PartitionedGroupDeterminer`), else one topic.
    """

    name: str
    route: _TopicRoute
    node: OpNode
    services: Services

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        if len(rows) == 0:
            return None
        codes = self._codes(rows)
        order: list[int] = []
        chunks: list[int] = []
        for chunk in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows.chunk)) + 1):
            groups: dict[int | str, list[int]] = {}
            for i in chunk.tolist():
                groups.setdefault(codes[i], []).append(i)
            for at in groups.values():
                chunks += [chunks[-1] + 1 if chunks else 0] * len(at)
                order += at
        out = rows.take(np.array(order))
        return Rows(out.columns, out.ts, out.order_key, np.array(chunks, np.int64))

    def _codes(self, rows: Rows) -> Sequence[int | str]:
        if self.route.key is None:
            return self.route.topics(rows, self.services)
        key = rows.columns[self.route.key]
        return [_remainder(hash_code(key.type, v), self.route.of) for v in key.to_list(self.services.strings)]


@dataclass(slots=True)
class TopicOperator(StatelessOperator):
    """Passes events from a sink to a stream that is subscribed to its topic."""

    name: str
    route: _TopicRoute
    to: _TopicListener
    node: OpNode
    services: Services
    count: int = 0

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        if len(rows) == 0:
            return None
        rows = self._chosen(Rows(rows.columns, rows.ts, rows.order_key, rows.chunk))
        if self.to.lacks is None:
            return rows
        errors = [ErrorObject(f"the inMemory source has no transport property '{self.to.lacks}'")] * len(rows)
        self.services.keep(self.name, self.to.stream.source.id, list(rows.columns), rows.ts, errors)
        return None

    def _chosen(self, rows: Rows) -> Rows:
        """The rows that this destination gets, and of these the ones with the topic that is listened to."""
        route = self.route
        hit: Array | None = None
        if route.strategy == "roundRobin":  # Siddhi's next destination takes the next chunk
            number = chunk_numbers(rows.chunk) + self.count
            self.count = (int(number[-1]) + 1) % route.of
            hit = number % route.of == route.number
        elif route.key is not None:
            first = rows.columns[route.key].take(_first_of_chunks(rows))
            values = first.to_list(self.services.strings)
            is_ours = [abs(_remainder(string_hash(text(first.type, v)), route.of)) == route.number for v in values]
            hit = np.array(is_ours)[chunk_numbers(rows.chunk)]
        if hit is not None:
            rows = rows.where(hit)
        if route.dynamic and len(rows):
            heard = [t == self.to.topic for t in route.topics_of_chunks(rows, self.services)]
            rows = rows.where(np.array(heard)[chunk_numbers(rows.chunk)])
        return rows

    def state(self) -> Any:
        return self.count

    def load(self, state: Any) -> None:
        self.count = state


@dataclass(slots=True)
class UnheardOperator(StatelessOperator):
    """Applies `on.error` to events that a sink of `stream` publishes to a topic that is not among `heard`."""

    stream: str
    route: _TopicRoute
    heard: frozenset[str]
    node: OpNode
    services: Services

    @property
    def name(self) -> str:
        return f"{self.stream} > nobody"

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        if len(rows) == 0:
            return None
        topics = self.route.topics_of_chunks(rows, self.services)
        unheard = [i for i, t in enumerate(topics) if t not in self.heard]
        if unheard:
            first = rows.take(_first_of_chunks(rows)[unheard])
            errors: list[ErrorObject] = [Undelivered(f"no source listens to topic '{topics[i]}'") for i in unheard]
            columns = list(first.columns)
            if self.route.on_error == "STREAM":
                self.services.route_refused(self.name, self.stream, columns, first.ts, first.order_key, errors)
            else:
                self.services.keep(self.name, self.stream, columns, first.ts, errors)
        return None


@dataclass(slots=True)
class LogOperator(StatelessOperator):
    """`@sink(type='log')`: a line per event, the first thousand of a step."""

    name: str
    prefix: str
    node: OpNode
    services: Services

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        index: Array = np.arange(min(len(rows), LINES))
        values = [c.take(index).to_list(self.services.strings) for c in rows.columns]
        for ts, data in zip(rows.ts[index].tolist(), zip(*values, strict=True), strict=True):
            line = ", ".join(text(c.type, v) for c, v in zip(rows.columns, data, strict=True))
            self.services.logs.append(f"{self.prefix} : Event{{timestamp={ts}, data=[{line}], isExpired=false}}")
        if len(rows) > LINES:
            self.services.logs.append(f"{self.prefix} : {len(rows) - LINES} more events")
        return None


def _first_of_chunks(rows: Rows) -> Array:
    """Positions of the first row of each chunk."""
    return np.append(0, np.flatnonzero(np.diff(rows.chunk)) + 1)


def _remainder(a: int, n: int) -> int:
    """Java's `a % n`."""
    return int(math.fmod(a, n))
