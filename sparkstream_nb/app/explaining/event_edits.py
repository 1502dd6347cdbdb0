"""Changes of an input that no clause names: an event at another place of the order, and an event that is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...charts.value_texts import row_text, when
from ...durations import describe_duration
from ...lang import tree as t
from ...lang.clause_changes import nodes_of
from ...replay.input_edits import AddedEvent, InputEdits, move_event
from ...types import Schema, Type
from ..results.moment import MomentEvent
from .clause_edits import ADDED_COST, MOST_EVENTS, ExplainedEdits
from .why_not import ChangeKind, EventChange, Explanation, Reason
from .why_not_trials import Trials

_DEFAULTS: Mapping[Type, Any] = {
    Type.STRING: "", Type.INT: 0, Type.LONG: 0, Type.FLOAT: 0.0, Type.DOUBLE: 0.0, Type.BOOL: False,
}  # fmt: skip
_FACTORS = (0.9, 1.1, 0.5, 2)
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def order_edits(trials: Trials) -> Iterator[ExplainedEdits]:
    """Edits that move one event behind or before another."""
    for number in trials.fitting_events:
        event = trials.event(number)
        for other in trials.fitting_events:
            if other == number:
                continue
            other_event = trials.event(other)
            position_behind = trials.recording.position_of_event(other)
            goal = trials.goal(trials.plan, max(event.time, other_event.time))
            for position in (position_behind, position_behind - 1):
                edits = move_event(trials.recording, number, other_event.time, position)
                if trials.works(goal, edits):
                    change = EventChange(ChangeKind.TIME, event, value=other_event.time)
                    events = sorted((event, other_event), key=lambda e: e.number)
                    explanation = Explanation(Reason.TIME, _order_text(event, other_event), (), events, [change])
                    yield ExplainedEdits(ADDED_COST, edits, goal.time, explanation)


def _order_text(event: MomentEvent, other: MomentEvent) -> str:
    by = event.time - other.time
    side = "after" if (by or event.number - other.number) > 0 else "before"
    apart = f"{describe_duration(abs(by))} " if by else ""
    return f"event {event.number:,} came {apart}{side} event {other.number:,}"


def missing_events(trials: Trials) -> Iterator[ExplainedEdits]:
    """Edits that add an event, with values that fulfil the conditions, else with others near them."""
    for values_of in (_likely_values, _values_near):
        for stream in trials.input_streams:
            for anchor in trials.anchors:
                for time, position in _times_beside(trials, anchor):
                    output_time = trials.question.at if trials.question.at is not None else time
                    goal = trials.goal(trials.plan, output_time)
                    for values in values_of(trials, stream, anchor):
                        event = AddedEvent(stream, time, values, trials.first_free, position)
                        if trials.works(goal, InputEdits(additions=[event])):
                            yield _explain_missing(trials, event, goal.time)


def _explain_missing(trials: Trials, event_to_add: AddedEvent, time: int) -> ExplainedEdits:
    new = event_to_add
    event = MomentEvent(new.number + 1, new.stream, new.time, new.values, trials.names[0])
    sentence = f"no event of {event.stream} like {row_text(event.values)} came about {when(event.time)}"
    beside = [trials.event(x) for x in trials.fitting_events[:MOST_EVENTS]]
    change = EventChange(ChangeKind.ADDED, event)
    explanation = Explanation(Reason.MISSING, sentence, (), beside, [change])
    return ExplainedEdits(ADDED_COST, InputEdits(additions=[new]), time, explanation)


def _times_beside(trials: Trials, anchor: int) -> Iterator[tuple[int, int | None]]:
    """Times (ms) and positions for an event that is added beside another."""
    time, position = trials.part.event(anchor)[1], trials.recording.position_of_event(anchor)
    yield time, position
    yield time, position - 1
    for duration in trials.durations:
        yield time + duration + 1, None
        yield time - duration + 1, None


def _likely_values(trials: Trials, stream: str, anchor: int) -> Iterator[list[Any]]:
    """Values for an added event: the values of an event near it, the expected values, and values that fulfil the
    conditions at each place that reads the stream."""
    schema = trials.schema(stream)
    candidates = (*trials.anchors, *reversed(trials.input_numbers))
    near = next((x for x in candidates if trials.part.event(x)[0] == stream), None)
    template = [_DEFAULTS.get(a.type) for a in schema] if near is None else trials.part.event(near)[2]
    values = dict(zip(schema.names, template, strict=True))
    values.update({name: value for name, value in trials.known_values.items() if name in values})
    anchor_stream, _, anchor_values = trials.part.event(anchor)
    known_values = {**dict(zip(trials.schema(anchor_stream).names, anchor_values, strict=True)), **trials.known_values}
    seen: list[list[Any]] = []
    for place in _places_of(trials, stream):
        row = list(place.fulfil(values, known_values, schema).values())
        if row not in seen:
            seen.append(row)
            yield row


def _values_near(trials: Trials, stream: str, anchor: int) -> Iterator[list[Any]]:
    """Likely values with another number."""
    schema = trials.schema(stream)
    for values in _likely_values(trials, stream, anchor):
        for at, attribute in enumerate(schema):
            if attribute.type.numeric and attribute.name not in trials.known_values and values[at] is not None:
                for factor in _FACTORS:
                    number = values[at] * factor
                    new = int(number) if attribute.type in (Type.INT, Type.LONG) else float(number)
                    yield [*values[:at], new, *values[at + 1 :]]


def _places_of(trials: Trials, stream: str) -> list[_Place]:
    """The places of the queries that read a stream."""
    out = []
    for query in trials.queries.values():
        of_select, of_input = (
            [c for c in nodes_of(part) if isinstance(c, t.Comparison)] for part in (query.select, query.input)
        )
        arguments = {
            a.name: x.name for a in query.select.attributes if a.name and isinstance(a.expression, t.FunctionCall)
            for x in a.expression.args if isinstance(x, t.Variable)
        }  # fmt: skip
        for place in nodes_of(query.input):
            if isinstance(place, t.StandardStream | t.JoinSide | t.StreamState) and place.source.id == stream:
                of_place = [c for c in nodes_of(place.handlers) if isinstance(c, t.Comparison)]
                names = (stream, getattr(place, "alias", None), getattr(place, "ref", None))
                others = [c for c in of_input if c not in of_place]
                out.append(_Place(frozenset(x for x in names if x), of_place, of_select, others, arguments))
    return out or [_Place(frozenset([stream]), (), (), (), {})]


@dataclass(frozen=True)
class _Place:
    """A place of a query that reads a stream: the stream's names there, the comparisons of its filters, of the
    selection, and of the query's other inputs, and the aggregated attributes of the selection."""

    names: frozenset[str]
    of_place: Sequence[t.Comparison]
    of_select: Sequence[t.Comparison]
    others: Sequence[t.Comparison]
    arguments: Mapping[str, str]

    def fulfil(self, values: Mapping[str, Any], known_values: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
        """Values that fulfil comparisons of an attribute with a constant, or with an attribute that is known, where
        they can."""
        out = dict(values)
        for comparison in (*self.of_place, *self.of_select, *self.others):
            sides = (comparison.left, comparison.right, comparison.op), (
                comparison.right, comparison.left, _MIRRORED[comparison.op]
            )  # fmt: skip
            for one, other, op in sides:
                name = self._attribute(one, comparison)
                if name not in out:
                    continue
                bound = None
                if isinstance(other, t.Constant):
                    bound = other.value
                elif isinstance(one, t.Variable) and isinstance(other, t.Variable) and other.source != one.source:
                    bound = known_values.get(other.name)
                if bound is not None:
                    out[name] = _beyond(out[name], op, bound, schema[schema.names.index(name)].type)
                break
        return out

    def _attribute(self, expression: t.Expression, comparison: t.Comparison) -> str:
        """The attribute of the place's events in an expression that is an attribute or an aggregate of one; else ""."""
        if not isinstance(expression, t.Variable):
            return ""
        if expression.source is None:
            name = expression.name if comparison in self.of_place else ""
            return self.arguments.get(expression.name, expression.name) if comparison in self.of_select else name
        return expression.name if expression.source.id in self.names else ""


def _beyond(value: Any, op: str, bound: Any, type: Type) -> Any:
    """The value, or one next to the bound, for which a comparison with the bound is true."""
    if op == "==":
        return bound
    if not isinstance(bound, int | float) or isinstance(bound, bool) or op == "!=":
        return value
    step = 1 if op in (">", ">=") else -1
    if isinstance(value, int | float) and (value - bound) * step > 0:
        return value
    return int(bound + step) if type in (Type.INT, Type.LONG) else float(bound + step)
