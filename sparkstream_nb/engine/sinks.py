"""Sinks and sources inside a node: `inMemory` topics between streams of one app, and the `log` sink.

Siddhi publishes a chunk at once (`SinkCallback`, `PassThroughSinkMapper`), so a chunk stays one chunk. A sink runs
after the queries that read the stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..lang.tree import Annotation
from ..plan import nodes
from ..plan.query_parts import connector_option
from .columns import Array
from .expressions.values import text
from .graph import OpNode
from .javamap import hash_code, string_hash
from .operators import Passing
from .rows import Clock, Rows, chunk_numbers
from .services import Services

LINES = 1000
"""How many events a log sink writes out per step at most."""


@dataclass(frozen=True)
class _Route:
    """Sink number `sink`'s way to a topic: destination `number` of `of`, chosen by `strategy` (None: there is one)."""

    sink: int
    topic: str
    strategy: str | None
    number: int
    of: int
    key: int | None


def _routes(stream: nodes.StreamDef, properties: Mapping[str, str]) -> Iterator[_Route]:
    """The topics that a stream's inMemory sinks publish to."""
    for n, sink in enumerate(stream.annotations):
        if sink.name.lower() != "sink" or connector_option(sink, "type", properties).lower() != "inmemory":
            continue
        topic = connector_option(sink, "topic", properties)
        distribution = next((a for a in sink.nested if a.name.lower() == "distribution"), None)
        if distribution is None:
            yield _Route(n, topic, None, 0, 1, None)
            continue
        strategy = (distribution.get("strategy") or "").lower()
        places = [a for a in distribution.nested if a.name.lower() == "destination"]
        by = distribution.get("partitionKey")
        key = stream.source.schema.names.index(by) if strategy == "partitioned" and by is not None else None
        for i, place in enumerate(places):
            yield _Route(n, place.get("topic") or topic, strategy, i, len(places), key)


def _topics(stream: nodes.StreamDef, properties: Mapping[str, str]) -> Iterator[str]:
    """The topics that a stream's inMemory sources listen to."""
    for source in stream.annotations:
        if source.name.lower() == "source" and connector_option(source, "type", properties).lower() == "inmemory":
            yield connector_option(source, "topic", properties)


def sink_operators(plan: nodes.Plan, services: Services) -> list[GroupOperator | TopicOperator | LogOperator]:
    """The operators of all sinks, in the order of the text."""
    out: list[GroupOperator | TopicOperator | LogOperator] = []
    for s, stream in plan.streams.items():
        for route in _routes(stream, plan.properties):
            source = s
            if route.key is not None:
                source = f"{s}|{route.sink}"
                if route.number == 0:
                    out.append(GroupOperator(source, route.key, route.of, OpNode((s,), source), services))
            for r, receiver in plan.streams.items():
                for _ in range(sum(t == route.topic for t in _topics(receiver, plan.properties))):
                    if receiver.source.schema.types == stream.source.schema.types:
                        out.append(TopicOperator(f"{s} > {route.topic} > {r}", route, OpNode((source,), r), services))
        for sink in stream.annotations:
            if sink.name.lower() == "sink" and connector_option(sink, "type", plan.properties).lower() == "log":
                out.append(LogOperator(s, _prefix(sink, plan, s), OpNode((s,), None), services))
    return out


def _prefix(sink: Annotation, plan: nodes.Plan, stream: str) -> str:
    return sink.get("prefix") or f"{plan.name} : {stream}"


@dataclass(slots=True)
class GroupOperator(Passing):
    """What `PartitionedGroupDeterminer` does before a partitioned sink: a chunk's events with one remainder of their
    key's hash become a chunk, which goes where its first event's text says.
    """

    name: str
    key: int
    of: int
    node: OpNode
    services: Services

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        if len(rows) == 0:
            return None
        key = rows.columns[self.key]
        codes = [_remainder(hash_code(key.type, v), self.of) for v in key.to_list(self.services.strings)]
        order: list[int] = []
        chunks: list[int] = []
        for chunk in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows.chunk)) + 1):
            groups: dict[int, list[int]] = {}
            for i in chunk.tolist():
                groups.setdefault(codes[i], []).append(i)
            for at in groups.values():
                chunks += [chunks[-1] + 1 if chunks else 0] * len(at)
                order += at
        out = rows.take(np.array(order))
        return Rows(out.columns, out.ts, out.root, np.array(chunks, np.int64))


@dataclass(slots=True)
class TopicOperator(Passing):
    """Passes events from a sink to a stream that is subscribed to its topic."""

    name: str
    route: _Route
    node: OpNode
    services: Services
    count: int = 0

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        if len(rows) == 0:
            return None
        rows = Rows(rows.columns, rows.ts, rows.root, rows.chunk)
        route = self.route
        if route.strategy == "roundrobin":  # Siddhi's next destination takes the next chunk
            number = chunk_numbers(rows.chunk) + self.count
            self.count = (int(number[-1]) + 1) % route.of
            return rows.where(number % route.of == route.number)
        if route.key is not None:
            first = rows.columns[route.key].take(np.append(0, np.flatnonzero(np.diff(rows.chunk)) + 1))
            values = first.to_list(self.services.strings)
            hit = [abs(_remainder(string_hash(text(first.type, v)), route.of)) == route.number for v in values]
            return rows.where(np.array(hit)[chunk_numbers(rows.chunk)])
        return rows

    def state(self) -> Any:
        return self.count

    def load(self, state: Any) -> None:
        self.count = state


@dataclass(slots=True)
class LogOperator(Passing):
    """`@sink(type='log')`: a line per event, the first thousand of a step."""

    name: str
    prefix: str
    node: OpNode
    services: Services

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        shown: Array = np.arange(min(len(rows), LINES))
        values = [c.take(shown).to_list(self.services.strings) for c in rows.columns]
        for ts, data in zip(rows.ts[shown].tolist(), zip(*values, strict=True), strict=True):
            line = ", ".join(text(c.type, v) for c, v in zip(rows.columns, data, strict=True))
            self.services.logs.append(f"{self.prefix} : Event{{timestamp={ts}, data=[{line}], isExpired=false}}")
        if len(rows) > LINES:
            self.services.logs.append(f"{self.prefix} : {len(rows) - LINES} more events")
        return None


def _remainder(a: int, n: int) -> int:
    """Java's `a % n`."""
    return int(math.fmod(a, n))
