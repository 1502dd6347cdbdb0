"""Apps of a fully distributed deployment: execution groups, their instances, and the topics between them.

The rules and refusals follow the job manager of WSO2's Stream Processor (`SiddhiTopologyCreatorImpl`,
carbon-analytics). `@dist(execGroup='g', parallel='2')` on queries, partitions and aggregations names their group;
elements without one are in a group of the app's own. Each instance of a group becomes an app, `<app>-<group>-<number>`.

With Kafka as messaging layer a topic is called `<app>.<stream>`, and `<app>.<stream>.<key>` with partitions if it is
divided by key; with NATS (`NatsSiddhiAppCreator`) a subject is `<app>_<stream>`, or one for each partition,
`<app>_<stream>_<key>_<number>`.

It differs from the manager in two things, and names both in `Split.notes` where they matter. The manager connects
a stream only to groups that come later in the text, so that one which reads it earlier gets nothing. And an aggregation
without `@dist` has no instance there; here it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

from ...errors import NOWHERE, SiddhiBindError, Span
from ...lang.tree import Annotation, find_annotation
from ...messaging import Messaging
from .. import nodes as n
from ..query_parts import expressions, inputs, tables_of_aggregation

PASSTHROUGH = "passthrough"
"""The element of a group that passes the events of a source on to the groups that read it."""


MOST_PARALLEL = 100
"""Instances of a group that are simulated."""


class Strategy(Enum):
    """Sharing of a stream among the instances of a group: each gets all of it, they take turns, or each has its keys.
    """

    ALL = "all"
    ROUND_ROBIN = "round robin"
    FIELD_GROUPING = "field grouping"


@dataclass(frozen=True)
class Subscription:
    """A stream that a group reads. `key`: the attribute, if it is shared by key."""

    stream: str
    strategy: Strategy
    key: str | None = None


@dataclass(frozen=True)
class ExecutionGroup:
    """An execution group of `parallel` instances: the names of its queries, partitions and aggregations, the streams it
    reads from others, and the streams it writes for them. A `receiver` has `sources` that the app defines: streams that
    clients send to it.
    """

    name: str
    parallel: int
    elements: tuple[str, ...]
    reads: tuple[Subscription, ...]
    writes: tuple[str, ...]
    sources: tuple[str, ...] = ()
    aggregations: tuple[str, ...] = ()
    """Elements that are aggregations."""
    passes_on: bool = False
    """True if it only passes events on, from a source of the app to a topic."""

    @property
    def receiver(self) -> bool:
        """True if it runs on receiver nodes alone."""
        return bool(self.sources)

    @property
    def instances(self) -> tuple[str, ...]:
        """The apps that it becomes."""
        return tuple(f"{self.name}-{i + 1}" for i in range(self.parallel))


@dataclass(frozen=True)
class Topic:
    """A stream between groups, as a topic of the messaging layer: `writers` and `readers` are groups, no writer is the
    outside. With a `key` it has a partition for each instance of the largest reader, else one; of NATS each partition
    is a subject."""

    name: str
    stream: str
    key: str | None
    partitions: int
    writers: tuple[str, ...]
    readers: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """An app as its manager deploys it."""

    app: str
    groups: tuple[ExecutionGroup, ...]
    topics: tuple[Topic, ...]
    notes: tuple[str, ...] = ()
    messaging: Messaging = Messaging.KAFKA


def distribute(plan: n.Plan, name: str | None = None, messaging: Messaging = Messaging.KAFKA) -> Split:
    """The groups and topics of an app, which is called `name` (default: the app's own name). Raises SiddhiBindError,
    with the annotation's place, for anything that the manager refuses.
    """
    return _Splitting(plan, name or plan.name or "SiddhiApp", messaging).split()


def shares(partitions: int, instances: int) -> list[list[int]]:
    """The partitions (from 0) of each instance: equally many each, and the remainder to the last one."""
    each = partitions // instances
    out = [list(range(i * each, (i + 1) * each)) for i in range(instances)]
    out[-1] += range(instances * each, partitions)
    return out


@dataclass
class _OpenGroup:
    """A group that is being made."""

    name: str
    parallel: int
    elements: list[str] = field(default_factory=list)
    reads: dict[str, Subscription] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    aggregations: list[str] = field(default_factory=list)
    passes_on: bool = False


class _Splitting:
    def __init__(self, plan: n.Plan, app: str, messaging: Messaging) -> None:
        self.plan, self.app, self.messaging = plan, app, messaging
        self.groups: dict[str, _OpenGroup] = {}
        self.keys: dict[str, str] = {}
        """The attribute by which a stream was partitioned last."""
        self.partition_keys: dict[tuple[str, str], set[str]] = {}
        """By stream and group, the keys of its partitions."""
        self.group_by_id: dict[str, str] = {}
        """The group of each table in memory, and window."""
        self.faults: list[tuple[str, _OpenGroup]] = []
        """The streams whose errors a group reads."""
        self.notes: list[str] = []

    def split(self) -> Split:
        """All rules, in the order in which the manager has them."""
        for e in self.plan.elements:
            if not self._joins_aggregation(e):
                self._element(e)
        for aggregation in self.plan.aggregations.values():
            self._aggregation(aggregation)
        for stream, group in self.faults:
            if stream not in group.reads:
                self.notes.append(
                    f"group '{group.name}' reads '!{stream}', and not '{stream}': errors are those of a group's own "
                    "queries, so it gets none"
                )
        self._sources()
        inner = {g.name: self._inner(g) for g in self.groups.values()}
        self._check_inner_partitions(inner)
        for g in self.groups.values():
            g.writes = [s for s in dict.fromkeys(g.writes) if s not in inner[g.name]]
            g.reads = {s: r for s, r in g.reads.items() if s not in inner[g.name]}
        groups = tuple(
            ExecutionGroup(
                g.name,
                g.parallel,
                tuple(g.elements),
                tuple(g.reads.values()),
                tuple(g.writes),
                tuple(g.sources),
                tuple(g.aggregations),
                g.passes_on,
            )
            for g in self.groups.values()
        )
        topics = tuple(self._topics(groups))
        return Split(self.app, groups, topics, tuple(self.notes), self.messaging)

    # ---------------------------------------------------------------------------------------------- groups

    def _group(self, annotations: Sequence[Annotation], span: Span) -> _OpenGroup:
        """The group that an element's @dist names."""
        dist = find_annotation(tuple(annotations), "dist")
        group_name = None if dist is None else dist.get("execGroup")
        name, parallel = f"{self.app}-{group_name or 'default'}", _parallel(dist)
        group = self.groups.setdefault(name, _OpenGroup(name, parallel))
        if group.parallel != parallel:
            raise SiddhiBindError(
                f"execGroup '{group_name or 'default'}' has parallel {group.parallel} before, and {parallel} here",
                span if dist is None else dist.span,
                hint="Give all parts of a group the same parallel.",
            )
        return group

    def _element(self, e: n.Query | n.Partition, group: _OpenGroup | None = None) -> None:
        group = self._group(e.annotations, e.span) if group is None else group
        if isinstance(e, n.Query):
            group.elements.append(e.name)
            self._query(e, group, inside=False)
            return
        group.elements.append(e.id)
        self._partition(e, group)
        for q in e.queries:
            inner = find_annotation(q.annotations, "dist")
            if inner is not None:
                raise SiddhiBindError(
                    "a query in a partition has no @dist of its own", inner.span, hint="Write it before 'partition'."
                )
            self._query(q, group, inside=True)

    def _partition(self, p: n.Partition, group: _OpenGroup) -> None:
        for key in p.keys:
            if isinstance(key, n.RangeKey):
                raise SiddhiBindError(
                    "partitions by ranges cannot be distributed", p.span, hint="Partition by a value."
                )
            if not isinstance(key.expr, n.Ref):
                raise SiddhiBindError(
                    "a partition that is distributed has an attribute as its key",
                    p.span,
                    hint="Compute it in a query before.",
                )
            key_names = self.partition_keys.setdefault((key.stream, group.name), set())
            if key.expr.name in key_names:
                raise SiddhiBindError(
                    f"group '{group.name}' has two partitions of '{key.stream}' by '{key.expr.name}'",
                    p.span,
                    hint="Put both into one partition, or into two groups.",
                )
            key_names.add(key.expr.name)
            self.keys[key.stream] = key.expr.name

    def _query(self, q: n.Query, group: _OpenGroup, *, inside: bool) -> None:
        for source in (*(i.source for i in inputs(q.input)), q.output.target):
            if source.id.startswith("#"):
                raise SiddhiBindError(
                    f"inner stream '{source.id}' outside of a partition cannot be distributed",
                    q.span,
                    hint="Give it a name without '#'.",
                )
        read = [i for i in inputs(q.input) if "#" not in i.source.id]
        if group.parallel > 1:
            self._check_parallel(q, group, inside=inside)
        for i in read:
            self._use(i.source, group, q.span)
            if i.source.id.startswith("!"):
                self.faults.append((i.source.id[1:], group))
            # A trigger fires in each instance that reads it.
            elif i.source.kind == "stream" and i.source.id not in self.plan.triggers:
                self._subscribe(i.source.id, group, q.span, inside=inside)
        for top in expressions(q):
            for e in n.walk(top):
                if isinstance(e, n.InTable):
                    self._use(self.plan.tables[e.table].source, group, q.span)
        target = q.output.target
        if "#" not in target.id:
            self._use(target, group, q.span)
            if target.kind == "stream":
                group.writes.append(target.id)

    def _check_parallel(self, q: n.Query, group: _OpenGroup, *, inside: bool) -> None:
        """Refuse elements that may not run in several instances outside of a partition."""
        is_keyed = any("#" in i.source.id or (i.source.id, group.name) in self.partition_keys for i in inputs(q.input))
        if inside and is_keyed:
            return
        what = None
        if isinstance(q.input, n.JoinInput):
            joins_aggregation = "aggregation" in (q.input.left.source.kind, q.input.right.source.kind)
            what = None if joins_aggregation else "a join"
        elif isinstance(q.input, n.StateInput):
            what = f"a {q.input.kind}"
        elif any(isinstance(step, n.WindowStep) for step in q.input.steps):
            what = "a window"
        if what is not None:
            raise SiddhiBindError(
                f"{what} cannot run in {group.parallel} instances outside of a partition",
                _place(q.annotations, q.span),
                hint="Partition its stream, or leave parallel out.",
            )

    def _use(self, source: n.Source, group: _OpenGroup, span: Span) -> None:
        """Tables in memory and windows are in one group, of one instance."""
        if source.kind not in ("table", "window"):
            return
        if source.kind == "table" and self.plan.tables[source.id].is_stored:
            return
        what = "table" if source.kind == "table" else "window"
        if group.parallel > 1:
            hint = "Give it a @store, or leave parallel out." if what == "table" else "Leave parallel out."
            raise SiddhiBindError(
                f"{what} '{source.id}' is in memory, and its group has {group.parallel} instances", span, hint=hint
            )
        first = self.group_by_id.setdefault(source.id, group.name)
        if first != group.name:
            raise SiddhiBindError(
                f"{what} '{source.id}' is in memory, and used by groups '{first}' and '{group.name}'",
                span,
                hint="Put its queries into one group" + (", or give it a @store." if what == "table" else "."),
            )

    def _subscribe(self, stream: str, group: _OpenGroup, span: Span, *, inside: bool) -> None:
        if group.parallel == 1:
            strategy = Strategy.ALL
        elif (stream, group.name) in self.partition_keys:
            strategy = Strategy.FIELD_GROUPING
        else:
            strategy = Strategy.ALL if inside else Strategy.ROUND_ROBIN
        subscription = group.reads.get(stream)
        if subscription is not None and subscription.strategy is not strategy:
            if (subscription.strategy, strategy) != (Strategy.ROUND_ROBIN, Strategy.FIELD_GROUPING):
                raise SiddhiBindError(
                    f"the instances of '{group.name}' cannot share '{stream}' by {subscription.strategy.value} and by "
                    f"{strategy.value} at once",
                    span,
                    hint="Put these queries into two groups.",
                )
        key = self.keys.get(stream) if strategy is Strategy.FIELD_GROUPING else None
        group.reads[stream] = Subscription(stream, strategy, key)

    # ---------------------------------------------------------------------------------------------- aggregations

    def _joins_aggregation(self, e: n.Query | n.Partition) -> bool:
        """True if an element joins an aggregation: it runs beside that."""
        return any(i.source.kind == "aggregation" for q in _queries(e) for i in inputs(q.input))

    def _aggregation(self, aggregation: n.AggregationDef) -> None:
        dist = find_annotation(aggregation.annotations, "dist")
        parallel = _parallel(dist)
        joining = [
            e
            for e in self.plan.elements
            if any(i.source.id == aggregation.id for q in _queries(e) for i in inputs(q.input))
        ]
        name = f"{self.app}-aggregation-{aggregation.id}"
        if joining and parallel > 1 and find_annotation(aggregation.annotations, "store") is None:
            raise SiddhiBindError(
                f"aggregation '{aggregation.id}' is in memory, and is joined in {parallel} instances",
                _place(aggregation.annotations, aggregation.span),
                hint="Give it a @store, or leave parallel out.",
            )
        if dist is None:
            self.notes.append(f"aggregation '{aggregation.id}' has no @dist: WSO2's manager makes no instance of it")
        self._check_free(name, _place(aggregation.annotations, aggregation.span))
        group = self.groups[name] = _OpenGroup(name, parallel)
        group.elements.append(aggregation.id)
        group.aggregations.append(aggregation.id)
        stream = aggregation.input.source.id
        strategy = Strategy.ROUND_ROBIN if parallel > 1 else Strategy.ALL
        if stream not in self.plan.triggers:
            group.reads.setdefault(stream, Subscription(stream, strategy))
        for table in tables_of_aggregation(aggregation):
            self._use(self.plan.tables[table].source, group, aggregation.span)
        for e in joining:
            others = [g for g in self.groups.values() if g is not group and element_name(e) in g.elements]
            if others:
                raise SiddhiBindError(
                    f"'{element_name(e)}' joins several aggregations, each of which is in a group of its own",
                    _place(e.annotations, e.span),
                    hint="Write a partition or query for each aggregation.",
                )
            annotation = find_annotation(tuple(e.annotations), "dist")
            if _parallel(annotation) != parallel:
                raise SiddhiBindError(
                    f"'{element_name(e)}' has parallel {_parallel(annotation)}, and aggregation '{aggregation.id}', "
                    f"which it joins, {parallel}",
                    _place(e.annotations, e.span),
                    hint="Give both the same parallel.",
                )
            if element_name(e) not in group.elements:
                self._element(e, group)

    def _check_free(self, name: str, span: Span) -> None:
        """A group that is made here has a name that no @dist has given."""
        if name in self.groups:
            group_name = name.removeprefix(f"{self.app}-")
            hint = "Give that execGroup another name."
            raise SiddhiBindError(f"execGroup '{group_name}' has the name of a group that is made", span, hint=hint)

    # ---------------------------------------------------------------------------------------------- streams

    def _sources(self) -> None:
        """A source that several instances would read is read by a group of its own, which passes its events on."""
        front = []
        for stream, d in self.plan.streams.items():
            source_annotations = [a for a in d.annotations if a.name.lower() == "source"]
            readers = [g for g in self.groups.values() if stream in g.reads]
            if not source_annotations or not readers:
                continue
            if len(readers) == 1 and readers[0].parallel == 1:
                readers[0].sources.append(stream)
                del readers[0].reads[stream]
                for writer in (g for g in self.groups.values() if stream in g.writes and g is not readers[0]):
                    self.notes.append(
                        f"'{stream}' has a source, so what group '{writer.name}' writes to it does not reach "
                        f"'{readers[0].name}'"
                    )
                continue
            for i, a in enumerate(source_annotations):
                name = f"{self.app}-passthrough-{stream}" + (f"-{i + 1}" if len(source_annotations) > 1 else "")
                dist = next((x for x in a.nested if x.name.lower() == "dist"), None)
                self._check_free(name, a.span)
                front.append(_OpenGroup(name, _parallel(dist), [PASSTHROUGH], {}, [stream], [stream], passes_on=True))
        self.groups = {g.name: g for g in chain(front, self.groups.values())}

    def _inner(self, group: _OpenGroup) -> set[str]:
        """The streams that a group makes and no other group reads."""
        others = [g for g in self.groups.values() if g is not group]
        return {
            s for s in group.writes if not any(s in g.reads for g in others) and not any(s in g.writes for g in others)
        }

    def _check_inner_partitions(self, inner: dict[str, set[str]]) -> None:
        for e in self.plan.elements:
            if not isinstance(e, n.Partition):
                continue
            group = next(g for g in self.groups.values() if e.id in g.elements)
            inner_streams = [s for s in (i.source.id for i in inputs(e.queries[0].input)) if s in inner[group.name]]
            if group.parallel > 1 and inner_streams:
                raise SiddhiBindError(
                    f"a partition reads '{inner_streams[0]}', which its own group makes, in {group.parallel} instances",
                    _place(e.annotations, e.span),
                    hint="Put the query that makes it into a group of its own: then its events go by key.",
                )

    def _note_early_readers(self, stream: str, groups: Sequence[ExecutionGroup]) -> None:
        """Notes the groups that read a stream before all of its writers."""
        writers = [i for i, g in enumerate(groups) if stream in g.writes]
        for i, group in enumerate(groups):
            for _ in (r for r in group.reads if r.stream == stream and writers and min(writers) > i):
                before = f"group '{group.name}' reads '{stream}' before the group that makes it"
                self.notes.append(f"{before}: under WSO2's manager it gets nothing")

    def _topics(self, groups: Sequence[ExecutionGroup]) -> Iterator[Topic]:
        separator = "." if self.messaging is Messaging.KAFKA else "_"
        for stream in self.plan.streams:
            self._note_early_readers(stream, groups)
            writers = tuple(g.name for g in groups if stream in g.writes)
            subscriptions = [(g, r) for g in groups for r in g.reads if r.stream == stream]
            for key in dict.fromkeys(r.key for _, r in subscriptions):
                key_subscriptions = [(g, r) for g, r in subscriptions if r.key == key]
                for g, r in key_subscriptions:
                    if r.strategy is Strategy.ROUND_ROBIN and self.messaging is Messaging.KAFKA:
                        turns = f"the instances of '{g.name}' take turns with '{stream}'"
                        self.notes.append(
                            f"{turns}, whose topic has one partition: Kafka gives all of it to one of them"
                        )
                yield Topic(
                    separator.join((self.app, stream) if key is None else (self.app, stream, key)),
                    stream,
                    key,
                    1 if key is None else max(g.parallel for g, _ in key_subscriptions),
                    writers,
                    tuple(g.name for g, _ in key_subscriptions),
                )


def _queries(e: n.Query | n.Partition) -> Sequence[n.Query]:
    return e.queries if isinstance(e, n.Partition) else (e,)


def element_name(e: n.Query | n.Partition) -> str:
    """The name of a query, or the id of a partition."""
    return e.id if isinstance(e, n.Partition) else e.name


def _place(annotations: Sequence[Annotation], otherwise: Span) -> Span:
    """The place of an element's @dist, where it has one."""
    dist = find_annotation(tuple(annotations), "dist")
    return otherwise if dist is None or dist.span == NOWHERE else dist.span


def _parallel(dist: Annotation | None) -> int:
    text = None if dist is None else dist.get("parallel")
    if dist is None or text is None:
        return 1
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= MOST_PARALLEL:
        what = f"parallel is a whole number from 1 to {MOST_PARALLEL}, not '{text}'"
        raise SiddhiBindError(what, dist.span, hint="Write parallel='2'.")
    return int(text)
