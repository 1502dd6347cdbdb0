"""Changes of the events of an output that a clause prevents, such that it comes though the clause is kept."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...charts.value_texts import text_of
from ...durations import describe_duration
from ...lang import tree as t
from ...lang.clause_changes import nodes_of
from ...lang.relaxations import Limit, Relaxation
from ...plan.reports.lineage import events_of
from ...replay.input_edits import InputEdits, move_event
from ...types import Schema, Type
from ..results.moment import MomentEvent
from ..results.output_matching import Alert
from .smallest_change import nearest_number, smallest_part
from .why_not import ChangeKind, EventChange, Explanation, Reason
from .why_not_trials import Goal, Trials

MOST_EVENTS = 6
"""Events of an output that are changed, and others that are left out, at most."""
_SHOWN = 3
"""Events whose values a sentence has."""
ADDED_COST = 0.5
_KEY_COST, _TEXT_COST, _SPELLING_COST, _LEFT_OUT_COST, _TIME_COST = 0.7, 0.45, 0.1, 0.3, 0.5
"""The sizes of changes. That of a number is relative: one that is doubled has 0.5. A time that is moved by the longest
duration of the queries has `_TIME_COST`, a text that becomes another event's `_KEY_COST`."""
_DERIVED = 1.5
"""Factor for a condition on a computed value, not on an attribute of an event."""
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class SizedEdits:
    """Edits that bring an output, as changes of events, and their size."""

    size: float
    edits: InputEdits
    changes: Sequence[EventChange]


@dataclass(frozen=True)
class ExplainedEdits:
    """Edits that bring an output near a time (ms), their size, and the explanation of the missing output."""

    size: float
    edits: InputEdits
    time: int
    explanation: Explanation


@dataclass(frozen=True)
class ClauseEdits:
    """The edits that bring an output although a clause prevents it: edits of the events with these `numbers`, or of
    others up to a time (ms). `base`: edits that are always applied."""

    trials: Trials
    clause: Relaxation
    numbers: Sequence[int]
    goal: Goal
    base: InputEdits = field(default_factory=InputEdits)

    @staticmethod
    def of_output(trials: Trials, clause: Relaxation, output: Alert, goal: Goal, base: InputEdits) -> ClauseEdits:
        """The edits for an output that the relaxed clause lets pass."""
        return ClauseEdits(trials, clause, events_of(output.made_of), goal, base)

    def all(self) -> Iterator[SizedEdits]:
        """All edits."""
        limit = self.clause.limit
        if limit is Limit.CONDITION:
            for number in list(reversed(self.numbers))[:MOST_EVENTS]:
                yield from self.of_values(number)
        elif limit in (Limit.WITHIN, Limit.WINDOW, Limit.RATE):
            yield from self._of_times()
        if limit not in (Limit.CONDITION, Limit.WITHIN):
            yield from self._of_other_events()

    def of_values(self, number: int, *, far: bool = True) -> Iterator[SizedEdits]:
        """Edits of one event's attributes that the clause names, or of any if it names none. `far`: a number is also
        looked for beyond what the clause names."""
        trials = self.trials
        names = {v.name for v in self._variables}
        stream, _, values = trials.part.event(number)
        schema = trials.schema(stream)
        is_named = any(names & set(trials.schema(trials.part.event(x)[0]).names) for x in self.numbers)
        for attribute, value in zip(schema, values, strict=True):
            if is_named and attribute.name not in names:
                continue
            others = self._other_values(number, names)
            targets = [*self._constants, *others, *trials.question.values.values()]

            def works(new: Any, name: str = attribute.name) -> bool:
                return trials.works(self.goal, self.base | InputEdits(values={number: {name: new}}))

            new = _nearest_value(value, attribute.type, targets, works, far=far)
            if new is not None:
                size = _KEY_COST if isinstance(new, str) and new in others else _value_size(value, new)
                change = EventChange(ChangeKind.VALUE, trials.event(number), attribute.name, new)
                edits = InputEdits(values={number: {attribute.name: new}})
                yield SizedEdits(size * (1 if is_named else _DERIVED), edits, [change])

    def is_false_of(self, number: int) -> bool:
        """True if the clause compares an attribute with a constant, and is false of an event."""
        stream, _, values = self.trials.part.event(number)
        by_name = dict(zip(self.trials.schema(stream).names, values, strict=True))
        match self.clause.clause:
            case t.Comparison(op, t.Variable(name), t.Constant(bound)) if name in by_name:
                try:
                    return not _SIGNS[op](by_name[name], bound)
                except TypeError:
                    return by_name[name] is None
        return False

    def _other_values(self, number: int, names: set[str]) -> list[Any]:
        """The values of the clause's attributes in the other events."""
        out = []
        for other in self.numbers:
            if other != number:
                stream, _, values = self.trials.part.event(other)
                attributes = self.trials.schema(stream).names
                out += [v for v, name in zip(values, attributes, strict=True) if name in names]
        return out

    def _of_times(self) -> Iterator[SizedEdits]:
        """Edits that give the first or the last event another time."""
        trials, numbers = self.trials, self.numbers
        longest = max(trials.durations, default=trials.slack)
        times = {x: trials.part.event(x)[1] for x in numbers}
        for number in dict.fromkeys((numbers[-1], numbers[0])):
            offsets = [sign * d for d in (0, *trials.durations) for sign in (1, -1)]
            bounds = [times[x] + offset for x in numbers if x != number for offset in offsets]

            def works(time: float, number: int = number) -> bool:
                return trials.works(self.goal, self.base | move_event(trials.recording, number, int(time)))

            new = nearest_number(times[number], bounds, Type.LONG, works)
            if new is not None and abs(new - times[number]) <= 2 * longest:
                change = EventChange(ChangeKind.TIME, trials.event(number), value=int(new))
                size = _TIME_COST * abs(new - times[number]) / longest
                yield SizedEdits(size, move_event(trials.recording, number, int(new)), [change])

    def _of_other_events(self) -> Iterator[SizedEdits]:
        """Edits that leave out other events up to the output."""
        trials = self.trials
        others = [
            x for x in trials.input_numbers if x not in self.numbers and trials.part.event(x)[1] <= self.goal.time
        ]

        def works(part: Sequence[int]) -> bool:
            return trials.works(self.goal, self.base | InputEdits(frozenset(part)))

        part = smallest_part(others, works)
        if part is not None and len(part) <= MOST_EVENTS:
            changes = [EventChange(ChangeKind.LEFT_OUT, trials.event(x)) for x in part]
            yield SizedEdits(_LEFT_OUT_COST * len(part), InputEdits(frozenset(part)), changes)

    # ---------------------------------------------------------------------------------------------------- sentences

    def explain_edits(self, sized_edits: SizedEdits) -> ExplainedEdits:
        """Edits with the reason why the clause prevents the output."""
        explanation = self.explain(sized_edits.changes)
        return ExplainedEdits(sized_edits.size, sized_edits.edits, self.goal.time, explanation)

    @property
    def _variables(self) -> list[t.Variable]:
        return [x for x in nodes_of(self.clause.clause) if isinstance(x, t.Variable)]

    @property
    def _constants(self) -> list[Any]:
        return [x.value for x in nodes_of(self.clause.clause) if isinstance(x, t.Constant)]

    def explain(self, changes: Sequence[EventChange]) -> Explanation:
        """Why the clause prevents the output, by the changes with which it comes."""
        clause, first = self.clause, changes[0]
        events = [self.trials.event(x) for x in self.numbers[:MOST_EVENTS]]
        event = f"event {first.event.number:,}"
        match first.kind:
            case ChangeKind.VALUE:
                reason = Reason.CONDITION
                sentence = f"{clause.text} was not true: {self._values_in(first)}"
            case ChangeKind.TIME:
                reason = Reason.TIME
                by = first.value - first.event.time
                side = "early" if by > 0 else "late"
                sentence = f"{event} came {describe_duration(abs(by))} too {side} for {self._name}"
            case _:
                reason = Reason.OTHER_EVENT
                events += [c.event for c in changes]
                numbers = ", ".join(f"{c.event.number:,}" for c in changes)
                sentence = self._sentence_about_others(event if len(changes) == 1 else f"events {numbers}")
        return Explanation(reason, f"{clause.title}: {sentence}", [clause.text], events, changes)

    @property
    def _name(self) -> str:
        return f"within {self.clause.text}" if self.clause.limit is Limit.WITHIN else self.clause.text

    def _sentence_about_others(self, events: str) -> str:
        match self.clause.limit:
            case Limit.NEXT:
                return f"{events} came between, which a sequence does not allow"
            case Limit.ABSENCE:
                return f"{events} came, which {self._name} does not allow"
            case Limit.FIRST:
                return f"without every, {self._name} matches once, and {events} did"
        return f"{events} came before, which leaves no place in {self._name}"

    def _values_in(self, change: EventChange) -> str:
        """The values that made a condition false: the changed event's, then other events' that it is compared with."""
        trials, variables = self.trials, self._variables
        names = {v.name for v in variables}
        if change.attribute not in names:  # a computed value
            names = {change.attribute}
        elif len(variables) == 1:
            names = set()
        parts = [_value_text(change.event, change.attribute, trials.schema(change.event.stream))]
        for number in self.numbers:
            event = trials.event(number)
            schema = trials.schema(event.stream)
            name = next((x for x in schema.names if x in names), None)
            if number + 1 != change.event.number and name is not None and len(parts) < _SHOWN:
                parts.append(_value_text(event, name, schema))
        return ", ".join(parts)


def _nearest_value(
    value: Any, type: Type, targets: Sequence[Any], works: Callable[[Any], bool], *, far: bool
) -> Any:  # fmt: skip
    """The nearest value of an attribute that works; None if there is none."""
    if type.numeric:
        numbers = [float(x) for x in targets if isinstance(x, int | float) and not isinstance(x, bool)]
        return nearest_number(0 if value is None else value, numbers, type, works, far=far)
    if type is Type.BOOL:
        return next((x for x in (True, False) if x is not value and works(x)), None)
    if type is Type.STRING:
        texts = dict.fromkeys(x for x in (*targets, "") if isinstance(x, str) and x != value)
        return next((x for x in sorted(texts, key=lambda x: _value_size(value, x)) if works(x)), None)
    return None


def _value_text(event: MomentEvent, attribute: str, schema: Schema) -> str:
    value = event.values[schema.names.index(attribute)]
    return f"event {event.number:,} had {attribute} {text_of(value)}"


def _value_size(value: Any, new: Any) -> float:
    """The size of a change of a value."""
    if isinstance(value, str) and isinstance(new, str):
        return _SPELLING_COST if _plain(value) == _plain(new) else _TEXT_COST
    if isinstance(value, bool) or value is None:
        return _TEXT_COST
    return float(abs(new - value) / max(abs(new), abs(value), 1e-300))


def _plain(text: str) -> str:
    """The letters and digits of a text, in lower case: spaces and signs are easily mistyped."""
    return "".join(c for c in text.casefold() if c.isalnum())
