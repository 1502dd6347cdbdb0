"""Queries that a plan gets beside its own, to count which of its parts events reach: queries, pattern states, and both
branches of filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..errors import Span
from ..plan import nodes as n
from ..plan.query_parts import stream_states
from ..types import Schema, Type

PREFIX = "__reached_"
"""The names of probes begin with this."""


@dataclass(frozen=True)
class Probe:
    """A part of an app, by its name and the line in the app's text, and the `stream` whose events count it."""

    stream: str
    name: str
    line: int


@dataclass(frozen=True)
class _Reach:
    """A part of an app, and the query's input that puts an event out for each event that reaches it."""

    name: str
    span: Span
    input: n.Input


def add_probes(plan: n.Plan) -> tuple[n.Plan, tuple[Probe, ...]]:
    """The plan with probes, which come before the queries that they are for, and the list of them."""
    builder = _ProbeBuilder()
    elements: list[n.Query | n.Partition] = []
    for element in plan.elements:
        if isinstance(element, n.Partition):
            queries = [q for query in element.queries for q in (*builder.probe_query(query), query)]
            elements.append(replace(element, queries=tuple(queries)))
        else:
            elements += [*builder.probe_query(element), element]
    for aggregation in plan.aggregations.values():
        elements += builder.probe_aggregation(aggregation)
    streams = {**plan.streams, **builder.streams}
    return replace(plan, elements=tuple(elements), streams=streams), tuple(builder.probes)


class _ProbeBuilder:
    """Makes probes, each with a stream of its own."""

    def __init__(self) -> None:
        self.streams: dict[str, n.StreamDef] = {}
        self.probes: list[Probe] = []

    def probe_query(self, query: n.Query) -> Iterator[n.Query]:
        yield self._copy(query)
        for place in _reaches(query.input, f"query {query.name}"):
            yield self._count(place, query.safety)

    def probe_aggregation(self, aggregation: n.AggregationDef) -> Iterator[n.Query]:
        what, safety = f"aggregation {aggregation.id}", n.Safety("stateless", "it counts events")
        yield self._count(_Reach(what, aggregation.span, aggregation.input), safety)
        for place in _filter_reaches(aggregation.input, what):
            yield self._count(place, safety)

    def _copy(self, query: n.Query) -> n.Query:
        """The query itself, with its outputs into the probe's stream."""
        target = self._target(f"query {query.name}", query.span, query.select.schema)
        output = n.Insert(target, query.output.event_type)
        return replace(query, name=target.id, named=False, output=output, annotations=())

    def _count(self, place: _Reach, safety: n.Safety) -> n.Query:
        select = n.Select((n.OutputItem("reached", n.Const(Type.INT, 1)),))
        target = self._target(place.name, place.span, select.schema)
        return n.Query(
            target.id, False, place.input, select, None, n.Insert(target, "current"), safety, span=place.span
        )

    def _target(self, name: str, span: Span, schema: Schema) -> n.Source:
        source = n.Source("stream", f"{PREFIX}{len(self.probes)}", schema)
        self.streams[source.id] = n.StreamDef(source, "inferred")
        self.probes.append(Probe(source.id, name, span.line))
        return source


def _reaches(input: n.Input, of: str) -> Iterator[_Reach]:
    match input:
        case n.StreamInput():
            yield from _filter_reaches(input, of)
        case n.JoinInput():
            for side in (input.left, input.right):
                yield from _filter_reaches(side, of)
        case n.StateInput():
            yield from _state_reaches(input, of)


def _filter_reaches(input: n.StreamInput, of: str) -> Iterator[_Reach]:
    """Both branches of each filter of a stream: the steps before it, and it or its opposite."""
    if input.source.kind not in ("stream", "window"):
        return
    for number, step in enumerate(input.steps):
        if not isinstance(step, n.FilterStep):
            continue
        before = input.steps[:number]
        appended_attributes = [a for s in before if isinstance(s, n.FunctionStep) for a in s.appends]
        schema = Schema((*input.source.schema, *appended_attributes))
        for branch, condition in (("true", step.condition), ("false", _negate(step.condition))):
            steps = (*before, n.FilterStep(condition, step.span))
            name = f"filter of {input.source.id} in {of}, {branch}"
            yield _Reach(name, _span_of(step), n.StreamInput(input.source, steps, schema))


def _negate(condition: n.Expr) -> n.Expr:
    return n.Not(Type.BOOL, condition, span=condition.span)


def _span_of(step: n.FilterStep) -> Span:
    return step.span if step.span.line > 1 or step.span.end else step.condition.span


def _state_reaches(input: n.StateInput, of: str) -> Iterator[_Reach]:
    """Each state of a pattern, and the false branch of its filter: the pattern up to there."""
    for state, last in _prefixes(input.state):
        for leaf in stream_states(last):
            name = input.slots[leaf.slot].ref or leaf.input.source.id
            span = next((_span_of(s) for s in leaf.input.steps if isinstance(s, n.FilterStep)), None)
            what = "absent state" if isinstance(last, n.AbsentState) else "state"
            if leaf is next(iter(stream_states(last))):
                yield _Reach(f"{what} {name} of {of}", span or _NOWHERE, replace(input, state=state))
            if span is not None and isinstance(last, n.StreamState | n.CountState):
                yield _Reach(
                    f"filter of state {name} of {of}, false",
                    span,
                    replace(input, state=_with_last(state, _opposite(last))),
                )


_NOWHERE = Span(0, 0, 1, 0)


def _prefixes(state: n.State) -> Iterator[tuple[n.State, n.State]]:
    """The beginnings of a pattern, each with its last state."""
    match state:
        case n.NextState():
            yield from _prefixes(state.first)
            for then, last in _prefixes(state.then):
                yield n.NextState(state.first, then), last
        case n.EveryState():
            for inner, last in _prefixes(state.state):
                yield n.EveryState(inner), last
        case _:
            yield state, state


def _with_last(state: n.State, last: n.State) -> n.State:
    """The pattern with another last state."""
    match state:
        case n.NextState():
            return n.NextState(state.first, _with_last(state.then, last))
        case n.EveryState():
            return n.EveryState(_with_last(state.state, last))
    return last


def _opposite(state: n.StreamState | n.CountState) -> n.State:
    """A state that waits for one event that the filters of `state` refuse."""
    leaf = state if isinstance(state, n.StreamState) else state.state
    conditions = [s.condition for s in leaf.input.steps if isinstance(s, n.FilterStep)]
    condition = conditions[0]
    for more in conditions[1:]:
        condition = n.Logic(Type.BOOL, "and", condition, more)
    others = tuple(s for s in leaf.input.steps if not isinstance(s, n.FilterStep))
    return replace(leaf, input=replace(leaf.input, steps=(*others, n.FilterStep(_negate(condition)))))
