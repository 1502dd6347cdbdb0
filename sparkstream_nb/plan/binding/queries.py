"""Queries and partitions (Siddhi's `QueryParser`, `PartitionParser`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ...errors import SiddhiBindError
from ...lang import tree
from ..nodes import Input, Insert, Partition, Purge, Query, RangeKey, Rate, Safety, Source, StreamInput, ValueKey
from .annotation_times import parse_time
from .expressions import bind_condition, bind_expression
from .query_inputs import PartitionPlace, bind_join, bind_stream
from .query_outputs import bind_output, output_id
from .scope import Scope, VisibleEvent
from .selection import Selecting, bind_selection
from .single_annotations import single, single_value
from .states import bind_states
from .symbols import Symbols

# Replaced by `plan.shard_safety.safety` once all queries are known.
UNKNOWN = Safety("node-dependent", "not looked at yet")


@dataclass
class UniqueNames:
    """Names of queries and partitions, unique in the app; defaults count positions."""

    nodes_by_name: dict[str, tree.Node] = field(default_factory=dict)
    queries: int = 0
    partitions: int = 0

    @staticmethod
    def of(elements: tuple[tree.Query | tree.Partition, ...]) -> UniqueNames:
        """The names given in the text. Raises SiddhiBindError if two are the same."""
        names = UniqueNames()
        for element in _elements(elements):
            annotation = single(element.annotations, "info")
            name = single_value(element.annotations, "info", "name")
            if annotation is None or name is None:
                continue
            if name in names.nodes_by_name:
                raise SiddhiBindError(
                    f"two queries are called '{name}'",
                    annotation.span,
                    hint="Give each query its own name.",
                    kind="SiddhiAppValidationException",
                )
            names.nodes_by_name[name] = element
        return names

    def query(self, q: tree.Query) -> tuple[str, bool]:
        """The query's name, and whether the text gave it."""
        self.queries += 1
        annotation = tree.find_annotation(q.annotations, "info")
        given_name = annotation.get("name") if annotation is not None else None
        if given_name is not None:
            return given_name, True
        name = f"query{self.queries}"
        while name in self.nodes_by_name:
            name += "_"
        self.nodes_by_name[name] = q
        return name, False


def _elements(elements: tuple[tree.Query | tree.Partition, ...]) -> Iterator[tree.Query | tree.Partition]:
    for element in elements:
        yield element
        if isinstance(element, tree.Partition):
            yield from element.queries


def bind_query(q: tree.Query, place: PartitionPlace, names: UniqueNames) -> Query:
    """One query. It defines its target stream if nothing else has."""
    name, has_name = names.query(q)
    rate = _rate(q.rate)
    default: tree.EventType = "all" if rate is not None and rate.kind == "snapshot" else "current"
    if rate is not None and rate.kind == "snapshot" and (q.output.event_type or default) != "all":
        raise SiddhiBindError(
            f"'output snapshot' sends all events, '{q.output.event_type} events' cannot be chosen",
            q.output.span,
            hint="Write 'insert into' or 'insert all events into'.",
        )
    input_, entries = _input(q.input, place)
    several = not isinstance(input_, StreamInput)
    scope = Scope(place.symbols, entries, "a query", bare="all" if several else "first")
    selecting = Selecting(scope, output_id(q.output, place), several)
    select = bind_selection(q.select, selecting, q.output.span)
    output = bind_output(q.output, select, place, default)
    return Query(name, has_name, input_, select, rate, output, UNKNOWN, q.annotations, span=q.span)


def _input(i: tree.QueryInput, place: PartitionPlace) -> tuple[Input, tuple[VisibleEvent, ...]]:
    match i:
        case tree.StandardStream():
            bound = bind_stream(i, place)
            return bound, (VisibleEvent(0, str(i.source), bound.schema, what=bound.source.kind),)
        case tree.JoinStream():
            return bind_join(i, place)
        case tree.StateStream():
            return bind_states(i, place)
        case tree.AnonymousStream():
            raise SiddhiBindError(
                "a query cannot read a query",
                i.span,
                hint="Let the inner query insert into a stream, and read that stream.",
            )
    raise TypeError(type(i))


def _rate(r: tree.OutputRate | None) -> Rate | None:
    if r is None:
        return None
    unit: Literal["events", "time"] = "events" if r.events is not None else "time"
    every = r.events if r.events is not None else r.time.millis if r.time is not None else 0
    return Rate(r.kind, unit, every)


# ------------------------------------------------------------------------------------------------------ partitions


def bind_partition(p: tree.Partition, symbols: Symbols, names: UniqueNames) -> Partition:
    """A partition: its keys, then its queries, with inner streams of its own."""
    id_ = f"partition{names.partitions}"
    names.partitions += 1
    keys = tuple(_key(k, symbols) for k in p.keys)
    purge = _purge(p)
    place = PartitionPlace(symbols, id_)
    queries = tuple(bind_query(q, place, names) for q in p.queries)
    inner: dict[str, Source] = {}
    for q in queries:
        if isinstance(q.output, Insert) and q.output.target.id.startswith(id_ + "#"):
            inner.setdefault(q.output.target.id, q.output.target)
    return Partition(id_, keys, queries, tuple(inner.values()), purge, UNKNOWN, p.annotations, p.span)


def _key(k: tree.ValuePartition | tree.RangePartition, symbols: Symbols) -> ValueKey | RangeKey:
    source = symbols.find(k.stream)
    if source is None or source.kind in ("table", "aggregation"):
        if source is not None:
            raise SiddhiBindError(f"only streams can be partitioned, '{k.stream}' is a {source.kind}", k.span)
        raise symbols.undefined_error(tree.SourceName(k.stream, span=k.span), None, k.span)
    scope = Scope(
        symbols, (VisibleEvent(0, source.id, source.schema, what=source.kind),), "a partition's key", bare="first"
    )
    if isinstance(k, tree.ValuePartition):
        return ValueKey(source.id, bind_expression(k.expression, scope))
    return RangeKey(source.id, tuple((bind_condition(c, scope, "a range"), name) for c, name in k.ranges))


def _purge(p: tree.Partition) -> Purge | None:
    annotation = single(p.annotations, "purge")
    if annotation is None:
        return None
    enable = _require_element(annotation, "enable")
    if enable.lower() not in ("true", "false"):
        raise SiddhiBindError(f"'enable' of @purge is 'true' or 'false', found '{enable}'", annotation.span)
    idle = parse_time(_require_element(annotation, "idle.period"), annotation.span, "idle.period")
    interval = annotation.get("interval")
    every = parse_time(interval, annotation.span, "interval") if interval is not None else 300_000
    return Purge(every, idle) if enable.lower() == "true" else None


def _require_element(annotation: tree.Annotation, key: str) -> str:
    value = annotation.get(key)
    if value is None:
        raise SiddhiBindError(f"@{annotation.name} has no '{key}'", annotation.span)
    return value
