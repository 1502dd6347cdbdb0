"""The partial apps of a fully distributed app as SiddhiQL texts, with topics of Kafka or NATS between them.

Names, topics and sharing follow the job manager of WSO2's Stream Processor (`SPSiddhiAppCreator`,
`NatsSiddhiAppCreator` and `ResourceManagerConstants`, carbon-analytics): an app `<app>-<group>-<number>` for each
instance of a group, a topic `<app>.<stream>`, or `<app>.<stream>.<key>` with a partition for each instance; the
consumer group is named by the instance if each instance reads all, else by the execution group. `topic_connectors`
has the options.

Three things differ. The manager's messages are XML, which has no null, and the time of an event is lost in them: here
they are JSON with the event's time, and two streams are between a stream and its topic, `<stream>_sent` and
`<stream>_received`. Instances that take turns share one partition, which Kafka gives to one of them: here to the first,
as sources are assigned partitions, and the others have no source; over NATS they are a queue group. And a stream that
clients write has a source on itself, since their messages may have no event times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from ...errors import Misuse, SiddhiBindError
from ...lang import tree
from ...lang.format import format_text
from ...lang.printer import to_text
from ...types import Schema, Type
from .. import nodes as n
from ..query_parts import connector_type, sources
from .distribute import ExecutionGroup, Split, Subscription, Topic
from .partial_apps import partial_plan
from .placement import connected_streams
from .topic_connectors import TopicConnectors, connectors_of

TIME = "event_time"
"""The attribute that carries an event's time (ms since 1970) through a topic; with underscores behind it where the
stream has one of this name."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_CONNECTORS = ("source", "sink")
_SHARED = ("http",)
"""The types of sources that several instances may have: clients choose between them."""


@dataclass(frozen=True)
class PartialText:
    """A partial app: instance `number` (from 1) of the execution group `group`. `reads` and `writes` are the names of
    its topics."""

    name: str
    group: str
    number: int
    text: str = field(repr=False)
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def partial_texts(app: tree.App, plan: n.Plan, split: Split, servers: str) -> tuple[PartialText, ...]:
    """The partial apps of `app`, whose plan and split these are, in the order of the split. `servers` of the messaging
    layer: HOST:PORT, with commas.

    Raises SiddhiBindError, or `Misuse` if there is no single place, for streams that topics cannot carry.
    """
    _check(plan, split)
    connectors = connectors_of(split.messaging, servers)
    split_app = _SplitApp(app, plan, split, connectors, {g.name: partial_plan(plan, split, g) for g in split.groups})
    try:
        return tuple(_GroupInstance(split_app, g, i).partial() for g in split.groups for i in range(g.parallel))
    except ValueError as error:  # a name that SiddhiQL has no quotes for
        raise Misuse(f"a partial app cannot be written: {error}") from None


def _check(plan: n.Plan, split: Split) -> None:
    for stream in sorted(connected_streams(plan, types=("inMemory",))):
        raise Misuse(
            f"an inMemory source or sink is in one process, and stream '{stream}' has one: partial apps exchange "
            "events by topics. Leave it out"
        )
    for group in split.groups:
        for r in group.reads:
            if r.stream in group.writes:
                raise Misuse(
                    f"group '{group.name}' reads and writes '{r.stream}', which is a topic: it would get its own "
                    "events again and again. Put the queries that write it into another execGroup"
                )
        if group.passes_on and group.parallel > 1:
            _check_copies(plan, group)
    for topic in split.topics:
        schema = plan.schema(topic.stream)
        object_attribute = next((a.name for a in schema if a.type is Type.OBJECT), None)
        if object_attribute is not None:
            raise Misuse(
                f"stream '{topic.stream}' goes from group to group, and a message cannot carry its attribute "
                f"'{object_attribute}', an object. Put its queries into one execGroup, or select what they need of "
                "the object"
            )


def _check_copies(plan: n.Plan, group: ExecutionGroup) -> None:
    for a in plan.streams[group.sources[0]].annotations:
        if a.name.lower() == "source" and connector_type(a, plan.properties) not in _SHARED:
            error = SiddhiBindError(
                f"the source of '{group.sources[0]}' would run in {group.parallel} instances, each of which reads all",
                a.span,
                hint="Leave @dist out of the source.",
            )
            raise error.with_source(plan.text) if plan.text else error


@dataclass(frozen=True)
class _SplitApp:
    """The app that is split. `plans` has the plan of each group, by name."""

    app: tree.App
    plan: n.Plan
    split: Split
    connectors: TopicConnectors
    plans: Mapping[str, n.Plan]

    def topic(self, r: Subscription) -> Topic:
        """The topic of a subscription of a group."""
        return next(t for t in self.split.topics if (t.stream, t.key) == (r.stream, r.key))

    def unused_name(self, name: str) -> str:
        """A name that nothing in the app has."""
        p = self.plan
        while any(name in definitions for definitions in (p.streams, p.tables, p.windows, p.triggers, p.aggregations)):
            name += "_"
        return name

    def home_of_unread(self, stream: str) -> str | None:
        """The group that runs the sources of a stream without readers: the first one with its sinks."""
        if any(stream in g.sources for g in self.split.groups):
            return None
        return next((g for g, p in self.plans.items() if p.streams[stream].annotations), None)


@dataclass(frozen=True)
class _GroupInstance:
    """Instance `number` (from 0) of a group."""

    split_app: _SplitApp
    group: ExecutionGroup
    number: int

    @property
    def plan(self) -> n.Plan:
        return self.split_app.plans[self.group.name]

    def partial(self) -> PartialText:
        """Its app."""
        subscriptions = [(r, self.split_app.topic(r)) for r in self.group.reads]
        topics_written = [t for t in self.split_app.split.topics if self.group.name in t.writers]
        elements = [*self._elements()]
        definitions = [*self._definitions(elements)]
        receiving = []
        for r, topic in subscriptions:
            if topic.writers:
                definitions.append(self._between(topic.stream, "received", self._topic_sources(r, topic)))
                receiving.append(self._receive_query(topic.stream))
        sending = []
        for stream in dict.fromkeys(t.stream for t in topics_written):
            definitions.append(
                self._between(stream, "sent", [self._sink(t) for t in topics_written if t.stream == stream])
            )
            sending.append(self._send_query(stream))
        name = self.group.instances[self.number]
        others = [a for a in self.split_app.app.annotations if a.name.lower() != "name"]
        name_annotation = tree.Annotation("name", (tree.AnnotationElement(None, name),), app=True)
        app = tree.App((name_annotation, *others), tuple(definitions), (*receiving, *elements, *sending))
        return PartialText(
            name=name,
            group=self.group.name,
            number=self.number + 1,
            text=format_text(to_text(app)),
            reads=tuple(t.name for _, t in subscriptions),
            writes=tuple(t.name for t in topics_written),
        )

    # ------------------------------------------------------------------------------------- the user's definitions

    def _elements(self) -> Iterator[tree.Query | tree.Partition]:
        """The queries and partitions of the group, without @dist: the text is an app of its own."""
        for element, bound in zip(self.split_app.app.elements, self.split_app.plan.elements, strict=True):
            if bound in self.plan.elements:
                yield replace(element, annotations=_without_dist(element.annotations))

    def _definitions(self, elements: Sequence[tree.Node]) -> Iterator[tree.Definition]:
        """The definitions that the elements use, in the order of the text; functions come last, as definitions call
        them too.
        """
        plan, streams, calling = self.plan, self._streams(), [*elements]
        for d in self.split_app.app.definitions:
            definition: tree.Definition | None = None
            match d:
                case tree.StreamDefinition() if d.id.id in streams:
                    definition = replace(d, annotations=self._annotations(d))
                case tree.AggregationDefinition() if d.id in plan.aggregations:
                    definition = replace(d, annotations=_without_dist(d.annotations))
                case tree.TableDefinition() if d.id.id in plan.tables:
                    definition = d
                case tree.WindowDefinition() if d.id.id in plan.windows:
                    definition = d
                case tree.TriggerDefinition() if d.id in plan.triggers:
                    definition = d
            if definition is not None:
                calling.append(definition)
                yield definition
        called_names = {c.name.lower() for node in calling for c in _calls(node)}
        for d in self.split_app.app.definitions:
            if isinstance(d, tree.FunctionDefinition) and d.id.lower() in called_names:
                yield d

    def _streams(self) -> set[str]:
        """The streams that it reads, writes, or publishes."""
        plan = self.plan
        stream_ids = {s for q in plan.queries for s in (*(x.id for x in sources(q)), q.output.target.id)}
        stream_ids |= {k.stream for e in plan.elements if isinstance(e, n.Partition) for k in e.keys}
        stream_ids |= {a.input.source.id for a in plan.aggregations.values()}
        stream_ids |= {*self.group.sources, *(r.stream for r in self.group.reads)}
        stream_ids |= {s for s, d in plan.streams.items() if d.annotations and (self._sinks(s) or self._sources(s))}
        return {s.removeprefix("!") for s in stream_ids if "#" not in s}

    def _annotations(self, d: tree.StreamDefinition) -> tuple[tree.Annotation, ...]:
        """A stream's own annotations, its sources and sinks where this instance has them, and the source of the topic
        that clients write."""
        stream = d.id.id
        annotations = [a for a in d.annotations if a.name.lower() not in _CONNECTORS]
        annotations += [replace(a, nested=_without_dist(a.nested)) for a in self._sources(stream)]
        annotations += self._sinks(stream)
        for r in self.group.reads:
            topic = self.split_app.topic(r)
            if r.stream == stream and not topic.writers:
                annotations += self._topic_sources(r, topic)
        return tuple(annotations)

    def _sinks(self, stream: str) -> list[tree.Annotation]:
        """The sinks of a stream that `partial_plan` leaves to the group."""
        return [a for a in self.plan.streams[stream].annotations if a.name.lower() == "sink"]

    def _sources(self, stream: str) -> list[tree.Annotation]:
        """The sources of a stream that the instance runs: all of them, or one if it only passes that on. Sources of a
        stream without readers run with its sinks, in one instance.
        """
        app, group = self.split_app, self.group
        source_annotations = [a for a in app.plan.streams[stream].annotations if a.name.lower() == "source"]
        if group.passes_on:
            passing = [g.name for g in app.split.groups if g.passes_on and g.sources == (stream,)]
            return [source_annotations[passing.index(group.name)]] if group.name in passing else []
        unread = self.number == 0 and app.home_of_unread(stream) == group.name
        return source_annotations if stream in group.sources or unread else []

    # ------------------------------------------------------------------------------------------------- topics

    def _topic_sources(self, r: Subscription, topic: Topic) -> list[tree.Annotation]:
        """The sources by which the instance reads its share of a topic."""
        event_time: dict[str, str] = {}
        mapping = _annotation("map", {"type": "json"})
        if topic.writers:
            schema = self.split_app.plan.schema(topic.stream)
            time = event_time["event.time"] = _time_name(schema)
            paths = {name: _path(name) for name in (*schema.names, time)}
            mapping = _annotation("map", {"type": "json"}, _annotation("attributes", paths))
        source_options = self.split_app.connectors.sources(topic, r, self.group, self.number)
        return [_annotation("source", {**options, **event_time}, mapping) for options in source_options]

    def _sink(self, topic: Topic) -> tree.Annotation:
        """The sink of a topic. An event that cannot be delivered, such as a number that JSON does not have, is an error
        of the app with its values, which can be replayed.
        """
        connectors = self.split_app.connectors
        mapping = _annotation("map", {"type": "json", "enable.null.attribute.value": "true"})
        destinations = [_annotation("destination", options) for options in connectors.destinations(topic)]
        if topic.key is None or not destinations:
            return _annotation("sink", connectors.sink(topic), mapping)
        by_key = _annotation("distribution", {"strategy": "partitioned", "partitionKey": topic.key}, *destinations)
        return _annotation("sink", connectors.sink(topic), mapping, by_key)

    def _between(self, stream: str, what: str, annotations: Sequence[tree.Annotation]) -> tree.StreamDefinition:
        """The definition of the stream between `stream` and its topic."""
        schema = self.split_app.plan.schema(stream)
        attributes = [tree.AttributeDefinition(a.name, a.type) for a in schema]
        time = tree.AttributeDefinition(_time_name(schema), Type.LONG)
        name = tree.SourceName(self.split_app.unused_name(f"{stream}_{what}"))
        return tree.StreamDefinition(name, (*attributes, time), tuple(annotations))

    def _receive_query(self, stream: str) -> tree.Query:
        select = tuple(tree.OutputAttribute(tree.Variable(a)) for a in self.split_app.plan.schema(stream).names)
        return _query(self.split_app.unused_name(f"{stream}_received"), select, stream)

    def _send_query(self, stream: str) -> tree.Query:
        schema = self.split_app.plan.schema(stream)
        time = tree.OutputAttribute(tree.FunctionCall(None, "eventTimestamp"), _time_name(schema))
        select = (*(tree.OutputAttribute(tree.Variable(a)) for a in schema.names), time)
        return _query(stream, select, self.split_app.unused_name(f"{stream}_sent"))


def _query(source: str, select: tuple[tree.OutputAttribute, ...], target: str) -> tree.Query:
    stream = tree.StandardStream(tree.SourceName(source))
    return tree.Query(stream, tree.Selection(select), tree.InsertInto(tree.SourceName(target)))


def _annotation(name: str, options: Mapping[str, str], *annotations: tree.Annotation) -> tree.Annotation:
    return tree.Annotation(name, tuple(tree.AnnotationElement(k, v) for k, v in options.items()), annotations)


def _without_dist(annotations: tuple[tree.Annotation, ...]) -> tuple[tree.Annotation, ...]:
    return tuple(a for a in annotations if a.name.lower() != "dist")


def _time_name(schema: Schema) -> str:
    name = TIME
    while name in schema.names:
        name += "_"
    return name


def _path(attribute: str) -> str:
    """The JSON path of an attribute in a message by default."""
    if _PLAIN.fullmatch(attribute):
        return f"$.event.{attribute}"
    quote = "'" if "'" not in attribute else '"'
    if quote in attribute:
        raise ValueError(f"no JSON path can name the attribute {attribute!r}: it holds both kinds of quotes")
    return f"$[{quote}event{quote}][{quote}{attribute}{quote}]"


def _calls(node: object) -> Iterator[tree.FunctionCall]:
    """The function calls in a node, at any depth."""
    if isinstance(node, tree.FunctionCall):
        yield node
    if isinstance(node, tree.Node):
        for f in fields(node):
            yield from _calls(getattr(node, f.name))
    elif isinstance(node, tuple):
        for item in node:
            yield from _calls(item)
