"""Follows an event through the nodes of a time machine whose outputs and state carry their lineage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...charts.value_texts import format_count, row_text
from ...durations import describe_duration, describe_time
from ...engine.node import NodeEngine
from ...engine.runtime.holdings import HoldingPlace, PartialPlace, RowPlace, WindowPlace, holding_places
from ...engine.state.node_batch import Emitted, take_rows
from ...plan import nodes as n
from ...plan.output_labels import is_inner, query_of, stream_of
from ...plan.reports.lineage import HELD, LINEAGE, events_of
from ...plan.reports.show_input import state_names
from ...replay.replay import NodeReplay
from ...replay.time_machine import TimeMachine
from ..results.moment import MomentEvent
from .event_conditions import ConditionCheck, EventConditions
from .event_history import EntryKind, HistoryEntry, values_text

MOST_CHANGES = 200
"""Moments at which something changes for an event, at most."""
MOST_OUTPUTS = 5
"""Outputs of a query that are listed, and outputs whose way through further queries is."""
EVERY = 100_000
"""Events of a recording up to which the lineage of an aggregate has all that it holds."""
NodePlaces = tuple[tuple[HoldingPlace, ...], ...]
"""By node, the places that hold an event."""


@dataclass(frozen=True)
class FollowedOutput:
    """An output that an event is in: after which step, the clock (ms), the node (from 0), the query, its stream, its
    time (ms), its values without the lineage, and the lineage."""

    position: int
    clock: int
    node: int
    query: str
    stream: str
    time: int
    values: Sequence[Any]
    lineage: Any


@dataclass(frozen=True)
class _PlaceChange:
    position: int
    clock: int
    before: NodePlaces
    after: NodePlaces


@dataclass(frozen=True)
class FollowedEvent:
    """The entries of an event's history, what still holds it at the end, and notes; `is_complete`: all is listed."""

    entries: list[HistoryEntry]
    rest: list[str]
    notes: list[str]
    is_complete: bool


class EventFollower:
    """Follows an event. `machine`: its nodes have lineage, and these `names`. `plan` is the app's own."""

    def __init__(
        self, machine: TimeMachine, plan: n.Plan, names: Sequence[str], conditions: EventConditions, event: MomentEvent
    ) -> None:
        self._machine, self._plan, self._names, self._conditions = machine, plan, names, conditions
        self._event, self._number = event, event.number - 1
        self._position = machine.recording.position_of_event(self._number)

    def follow(self) -> FollowedEvent:
        """Its history."""
        changes, end = self._changes()
        outputs = self._outputs(end)
        by_position: dict[int, list[FollowedOutput]] = defaultdict(list)
        for output in outputs:
            by_position[output.position].append(output)
        entries = [self._arrival(changes[0].clock), *self._condition_entries(changes[0].clock)]
        for change in changes:
            entries += self._change_entries(change, by_position[change.position])
        entries += self._output_entries(outputs)
        order = list(EntryKind)
        entries.sort(key=lambda e: (e.position, order.index(e.kind)))
        is_complete = len(changes) <= MOST_CHANGES
        rest = [] if not is_complete else [
            f"{_place_text(place)} on {self._names[node]}"
            for node, places in enumerate(changes[-1].after) for place in _by_query(places)
        ]  # fmt: skip
        return FollowedEvent(entries, rest, list(self._notes(outputs)), is_complete)

    # ---------------------------------------------------------------------------------------------- its way in time

    def _places(self, engines: Sequence[NodeEngine]) -> NodePlaces:
        return tuple(tuple(holding_places(engine, self._number)) for engine in engines)

    def _changes(self) -> tuple[list[_PlaceChange], int]:
        """The changes of the places that hold it, from its step on, and the position up to which it was followed."""
        machine = self._machine
        machine.seek(self._position)
        places = machine.read(self._places)
        changes = [_PlaceChange(self._position, self._clock(), ((),) * len(places), places)]
        while any(places) and len(changes) <= MOST_CHANGES:
            position = machine.position_of_change(self._places)
            if position is None:
                break
            new_places = machine.read(self._places)
            changes.append(_PlaceChange(position, self._clock(), places, new_places))
            places = new_places
        return changes, machine.position

    def _clock(self) -> int:
        return self._machine.read(lambda engines: max(engine.now for engine in engines))

    def _outputs(self, end: int) -> list[FollowedOutput]:
        """The outputs that it is in, of its step and the following ones up to a position."""
        machine = self._machine
        machine.seek(self._position - 1)
        return [
            output for placed_outputs in machine.outputs_until(end)
            for replay in placed_outputs.outputs for output in self._outputs_of(replay, placed_outputs.first)
        ]  # fmt: skip

    def _outputs_of(self, replay: NodeReplay, first: int) -> Iterator[FollowedOutput]:
        for label, parts in replay.streams.items():
            query = query_of(label, self._machine.plan)
            for rows, clock in parts if not is_inner(label) else ():
                for i, values, lineage in rows_with_lineage(rows):
                    if self._names_it(lineage, query):
                        step = int(rows.step[i])
                        yield FollowedOutput(
                            first + step, int(clock[step]), replay.node, query, stream_of(label), int(rows.ts[i]),
                            values, lineage,
                        )  # fmt: skip

    def _names_it(self, lineage: Any, query: str) -> bool:
        """True if a lineage names the event, or an aggregate that holds it."""
        if isinstance(lineage, int):
            return lineage == self._number
        if not isinstance(lineage, list | tuple):
            return False
        if len(lineage) == 4 and lineage[0] == HELD:
            first, last = lineage[2:]
            if not isinstance(first, int):  # all of them, or none
                return self._names_it(first, query)
            is_between = first <= self._number <= last
            return is_between and query not in self._failed_queries and self._is_of_group(query, first)
        return any(self._names_it(part, query) for part in lineage)

    @cached_property
    def _failed_queries(self) -> set[str]:
        """The queries that it does not pass a filter of, as an event of their stream."""
        return {c.query for c in self._checks if c.holds is False and not c.state}

    def _is_of_group(self, query: str, other: int) -> bool:
        """True if it has the values of another event in the attributes by which a query groups."""
        stream, _, values = self._machine.recording.event(other)
        by_name = {q.name: q for q in self._plan.queries}
        if stream != self._event.stream:
            return False
        places = [e.attr for key in by_name[query].select.group_by for e in n.walk(key) if isinstance(e, n.Ref)]
        return all(values[p] == self._event.values[p] for p in places if p < len(values))

    # ------------------------------------------------------------------------------------------------------ entries

    def _arrival(self, clock: int) -> HistoryEntry:
        late = clock - self._event.time
        text = f"came in with {row_text(self._event.values)}"
        if late > 0:
            text += f", {describe_duration(late)} late: the clock was at {describe_time(clock)}"
        return HistoryEntry(EntryKind.CAME, self._position, clock, self._event.node, self._event.stream, text)

    @cached_property
    def _checks(self) -> list[ConditionCheck]:
        return self._conditions.check(self._event.stream, self._event.time, self._event.values)

    def _condition_entries(self, clock: int) -> Iterator[HistoryEntry]:
        for check in self._checks:
            yield self._condition_entry(check, self._position, clock, self._event.node)

    def _condition_entry(self, check: ConditionCheck, position: int, clock: int, node: str) -> HistoryEntry:
        verdict = "depends on other events" if check.holds is None else "true" if check.holds else "false"
        text = f"{check.text}: {verdict}"
        if check.values:
            text += f"; {values_text(check.values)}"
        if check.state:
            text = f"{check.state}: {text}"
        return HistoryEntry(EntryKind.CONDITION, position, clock, node, check.query, text, check.holds)

    def _output_entries(self, outputs: Sequence[FollowedOutput]) -> Iterator[HistoryEntry]:
        """The first outputs of each query, and the conditions that they meet in turn."""
        counts: Counter[str] = Counter()
        checked_outputs = 0
        order = [q.name for q in self._plan.queries]
        for output in sorted(outputs, key=lambda o: (o.position, order.index(o.query) if o.query in order else -1)):
            counts[output.query] += 1
            if counts[output.query] > MOST_OUTPUTS:
                continue
            node = self._names[output.node]
            text = f"{output.stream} {row_text(output.values)}"
            others = set(events_of(output.lineage)) - {self._number}
            if others:
                text += f", with {_events_text(sorted(others))}"
            yield HistoryEntry(EntryKind.OUTPUT, output.position, output.clock, node, output.query, text)
            if checked_outputs < MOST_OUTPUTS and self._conditions.readers(output.stream):
                checked_outputs += 1
                for check in self._conditions.check(output.stream, output.time, output.values):
                    yield self._condition_entry(check, output.position, output.clock, node)

    def _change_entries(self, change: _PlaceChange, outputs: Sequence[FollowedOutput]) -> Iterator[HistoryEntry]:
        for node, (before, after) in enumerate(zip(change.before, change.after, strict=True)):
            name = self._names[node]
            for subject, text, kind in (
                *_window_changes(before, after), *_row_changes(before, after),
                *self._partial_changes(before, after, change, outputs),
            ):  # fmt: skip
                yield HistoryEntry(kind, change.position, change.clock, name, subject, text)

    def _partial_changes(
        self, before: Sequence[HoldingPlace], after: Sequence[HoldingPlace], change: _PlaceChange,
        outputs: Sequence[FollowedOutput],
    ) -> Iterator[tuple[str, str, EntryKind]]:  # fmt: skip
        counts = [Counter(p for p in places if isinstance(p, PartialPlace)) for places in (before, after)]
        endings, beginnings = list((counts[0] - counts[1]).elements()), list((counts[1] - counts[0]).elements())
        for partial in beginnings:
            states = self._states(partial)
            waits_for = ", ".join(dict.fromkeys(states[i] for i in partial.waits_for))
            earlier = next((p for p in endings if _continues(partial, p)), None)
            if earlier is not None:
                endings.remove(earlier)
                more = _new_events(partial, earlier)
                events = " and ".join(f"{states[i]} is {_events_text(numbers)}" for i, numbers in more.items())
                text = f"the partial match moved on: {events}" if events else "the partial match moved on"
            else:
                own_states = [states[i] for i, of_state in enumerate(partial.events) if self._number in of_state]
                others = sorted({e for of_state in partial.events for e in of_state} - {self._number})
                text = f"is {' and '.join(own_states)} of a partial match"
                text = f"{text} with {_events_text(others)}" if others else f"{text} that it begins"
            yield partial.query, f"{text}; it waits for {waits_for}", EntryKind.PARTIAL_MATCH
        for partial in endings:
            reason = self._end_of(partial, change, outputs)
            yield partial.query, f"the partial match ended{reason}", EntryKind.PARTIAL_MATCH

    def _end_of(self, partial: PartialPlace, change: _PlaceChange, outputs: Sequence[FollowedOutput]) -> str:
        """Why a partial match ended, as the rest of a sentence."""
        numbers = {e for of_state in partial.events for e in of_state}
        if any(o.query == partial.query and numbers <= set(events_of(o.lineage)) for o in outputs):
            return " in a match"
        source = self._input(partial.query)
        first = min(self._machine.recording.event(number)[1] for number in numbers)
        if source.within is not None and change.clock - first > source.within:
            return f": {describe_duration(source.within)} had passed"
        return ": another event came in between" if source.kind == "sequence" else " without a match"

    def _input(self, query: str) -> n.StateInput:
        source = next(q.input for q in self._plan.queries if q.name == query)
        assert isinstance(source, n.StateInput)
        return source

    def _states(self, partial: PartialPlace) -> list[str]:
        """The names of the states of a pattern."""
        names = state_names(self._input(partial.query))
        return [names[slot] for slot in partial.slots]

    def _notes(self, outputs: Sequence[FollowedOutput]) -> Iterator[str]:
        readers = self._conditions.readers(self._event.stream)
        if not readers:
            yield f"Nothing reads {self._event.stream}."
        for name in readers:
            if name in self._failed_queries:
                continue
            if name in self._plan.aggregations:
                yield f"It counts in aggregation {name}."
            elif self._is_running(name):
                yield f"The running aggregates of {name} hold it for good."
        for query, count in Counter(o.query for o in outputs).items():
            if count > MOST_OUTPUTS:
                rest = format_count(count - MOST_OUTPUTS, "output")
                last = max(o.clock for o in outputs if o.query == query)
                yield f"{query} has {rest} more with it, up to {describe_time(last)}."

    def _is_running(self, name: str) -> bool:
        """True if a query has aggregates over all events."""
        query = next(q for q in self._plan.queries if q.name == name)
        if not query.select.aggregates or not isinstance(query.input, n.StreamInput):
            return False
        return not any(isinstance(s, n.WindowStep) for s in query.input.steps) and query.input.source.kind == "stream"


def rows_with_lineage(rows: Emitted) -> Iterator[tuple[int, list[Any], Any]]:
    """The number, values and lineage of each output; none of outputs without lineage."""
    if LINEAGE not in rows.names:
        return
    at, every = list(rows.names).index(LINEAGE), np.arange(len(rows))
    columns = [take_rows(c, every) for i, c in enumerate(rows.columns) if i != at]
    names = tuple(name for i, name in enumerate(rows.names) if i != at)
    values = Emitted(names, rows.step, rows.ts, columns).rows()
    for i, ((_, own_values), lineage) in enumerate(zip(values, take_rows(rows.columns[at], every), strict=True)):
        yield i, own_values, lineage


def _continues(partial: PartialPlace, earlier: PartialPlace) -> bool:
    """True if a partial match has all events of a earlier one, state by state."""
    return (partial.query, partial.key) == (earlier.query, earlier.key) and all(
        numbers[: len(first)] == first for numbers, first in zip(partial.events, earlier.events, strict=True)
    )


def _new_events(partial: PartialPlace, earlier: PartialPlace) -> dict[int, list[int]]:
    """By state, the events that a partial match has and a earlier one has not."""
    pairs = enumerate(zip(partial.events, earlier.events, strict=True))
    return {i: list(numbers[len(first) :]) for i, (numbers, first) in pairs if len(numbers) > len(first)}


def _events_text(numbers: Sequence[int]) -> str:
    """ "event 5", "events 5 and 7", "12 events from 5 to 90"; numbers from 0 are texts from 1."""
    texts = [f"{number + 1:,}" for number in numbers]
    if len(texts) > 3:
        return f"{len(texts):,} events from {texts[0]} to {texts[-1]}"
    return f"event {texts[0]}" if len(texts) == 1 else f"events {', '.join(texts[:-1])} and {texts[-1]}"


def _window_changes(
    before: Sequence[HoldingPlace], after: Sequence[HoldingPlace]
) -> Iterator[tuple[str, str, EntryKind]]:  # fmt: skip
    sides = [{(p.query, p.side): p for p in places if isinstance(p, WindowPlace)} for places in (before, after)]
    for key, place in {**sides[0], **sides[1]}.items():
        before_size, size = (
            (p.events + p.waiting, p.waiting) if (p := of_side.get(key)) is not None else (0, 0) for of_side in sides
        )
        window = f"#window.{place.function}"
        if size[0] > before_size[0]:
            text = f"entered {window}, and waits to be emitted" if size[1] else f"entered {window}"
        elif size != before_size:
            text = f"left {window}" if size[0] < before_size[0] else f"was emitted by {window}"
        else:
            continue
        yield place.query, text, EntryKind.WINDOW


def _row_changes(
    before: Sequence[HoldingPlace], after: Sequence[HoldingPlace]
) -> Iterator[tuple[str, str, EntryKind]]:  # fmt: skip
    rows = [{p.name: p for p in places if isinstance(p, RowPlace)} for places in (before, after)]
    for name, place in {**rows[0], **rows[1]}.items():
        before_count, count = (p.rows if (p := of_side.get(name)) is not None else 0 for of_side in rows)
        if count == before_count:
            continue
        if place.is_window:
            yield name, "entered the window" if count > before_count else "left the window", EntryKind.WINDOW
        else:
            text = "a row of the table comes from it" if count > before_count else "its row is overwritten or deleted"
            yield name, text, EntryKind.TABLE


def _by_query(places: Sequence[HoldingPlace]) -> Sequence[HoldingPlace]:
    """The places, with one partial match of each query."""
    return list({(type(p), p.name if isinstance(p, RowPlace) else p.query): p for p in places}.values())


def _place_text(place: HoldingPlace) -> str:
    match place:
        case WindowPlace():
            return f"the window of {place.query}"
        case PartialPlace():
            return f"partial matches of {place.query}"
    return f"window {place.name}" if place.is_window else f"table {place.name}"
