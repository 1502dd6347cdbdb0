"""The moments of a time machine, and branches of its input."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ... import argument_checks
from ...durations import describe_time
from ...engine.columnar.column_data import ARROW
from ...errors import Misuse, nearest, shown
from ...plan.nodes import Plan
from ...plan.output_labels import is_inner, output_streams, query_of, stream_of
from ...replay.input_edits import AddedEvent, InputEdits, apply_edits
from ...replay.input_history import InputHistory, StepRows
from ...replay.replay import Recording
from ...replay.time_machine import TimeMachine
from ...types import Attribute, Schema, Type
from ..deployment.deployment import milliseconds
from ..explaining.branch import Branch, ReplayedInput
from ..explaining.why_not import WhyNot
from ..results.compared_attributes import input_places
from ..results.moment import BranchRequest, Moment, MomentEvent, MomentOutput, Sought
from .replays import Replays
from .row_condition import RowCondition

STEP_BY_STEP = 1_000
"""Steps after a moment that are looked at one by one for a change of a query's state."""


class AppRecords(Protocol):
    """An app, as the moments of its own input ask it."""

    def why_not(
        self, output: str, values: Mapping[str, Any], /, *, at: str | None, nodes: int | None, routing: str | None
    ) -> WhyNot:
        """The answer of `App.why_not`."""
        ...

    def commit_steps(self) -> list[int]:
        """The last step with an output of each micro-batch whose outputs are kept, ascending."""
        ...


@dataclass(frozen=True, eq=False)
class MachineMoments:
    """The moments of an app's input, or of a branch of it, by the position of its time machine. `records`: of the app,
    None for a branch."""

    app: str
    replays: Replays
    machine: TimeMachine
    names: Sequence[str]
    records: AppRecords | None = None

    @property
    def is_branch(self) -> bool:
        """True for a branch of the input."""
        return self.records is None

    def moment(self, position: int) -> Moment:
        """The moment after a number of steps."""
        machine = self.machine
        with machine.lock:
            machine.seek(position)
            step = machine.last_step
            return Moment(
                self.app, machine.plan, position, machine.steps, None if step is None else step.clock,
                dict(zip(self.names, machine.describe(), strict=True)), list(self._events()), list(self._outputs()),
                self,
            )  # fmt: skip

    def _events(self) -> Iterator[MomentEvent]:
        for number, stream, node in self.machine.events_of_step():
            _, ts, values = self.machine.recording.event(number)
            yield MomentEvent(number + 1, stream, ts, values, self.names[node])

    def _outputs(self) -> Iterator[MomentOutput]:
        step, plan = self.machine.last_step, self.machine.plan
        order = {q.name: i for i, q in enumerate(plan.queries)}
        for replay in step.outputs if step is not None else ():
            queries = {label: query_of(label, plan) for label in replay.streams if not is_inner(label)}
            for label in sorted(queries, key=lambda x: (order.get(queries[x], -1), x)):
                for _, ts, values in replay.rows(label):
                    yield MomentOutput(stream_of(label), queries[label], ts, values, self.names[replay.node])

    def until(self, moment: Moment, sought: Sought) -> Moment:
        """The first moment after one at which something is found. Raises as `Moment.until`."""
        machine = self.machine
        if sum(x is not None for x in (sought.name, sought.output, sought.change)) != 1:
            raise Misuse("a moment is sought by a query or table and a condition, by output=STREAM or change=QUERY")
        with machine.lock:
            machine.seek(moment.position)
            if sought.output is not None:
                output_stream(machine.plan, self.app, sought.output)
                position = machine.history.outputs[sought.output].next(moment.position)
                failure = f"{sought.output} has no output"
            elif sought.change is not None:
                query = _query_with_state(moment, sought.change)
                # As texts, in which a NaN is equal to another one.
                position = machine.position_of_change(lambda _: str(machine.state_of(query)), step_by_step=STEP_BY_STEP)
                failure = f"the state of {query} is the same"
            else:
                rows = RowCondition.of(machine.plan, sought.name, sought.condition)
                position = machine.position_of_rows(rows.name, rows.least, rows.most_new)
                failure = f"{rows} is not true"
        if position is None:
            raise Misuse(f"{failure} after step {moment.position:,} of {machine.steps:,}")
        return self.moment(position)

    def since(self, moment: Moment, sought: Sought) -> Moment:
        """The moment since which something has been so. Raises as `Moment.since`."""
        machine = self.machine
        if (sought.name is None) == (sought.change is None):
            raise Misuse("since takes a query or table and a condition, or change=QUERY")
        if sought.change is not None:
            query = _query_with_state(moment, sought.change)
            state = str(list(moment[query].by_node.values()))
            return self.moment(self._first_position(moment.position, lambda: str(machine.state_of(query)) == state))
        rows = RowCondition.of(machine.plan, sought.name, sought.condition)
        position = self._first_position(moment.position, lambda: machine.rows_of(rows.name) >= rows.least)
        if position < 0:
            raise Misuse(f"{rows} is not true at step {moment.position:,}")
        return self.moment(position)

    def _first_position(self, position: int, holds_here: Callable[[], bool]) -> int:
        """The first position of the stretch up to one in which something holds, looked for at growing distances; -1 if
        it does not hold there."""

        def holds(other: int) -> bool:
            with self.machine.lock:
                self.machine.seek(other)
                return holds_here()

        if not holds(position):
            return -1
        first, distance = position, 1
        while first > 0 and holds(max(0, first - distance)):
            first, distance = max(0, first - distance), distance * 2
        last_without = max(-1, first - distance)
        while first - last_without > 1:
            middle = (first + last_without) // 2
            first, last_without = (middle, last_without) if holds(middle) else (first, middle)
        return first

    def history(self) -> InputHistory:
        """The positions of all events and outputs."""
        return self.machine.history

    def commits(self) -> StepRows:
        """The position of the last output of each micro-batch that the app committed; none on other nodes."""
        records = self.records if self.machine.way.route is None else None
        steps = np.array([] if records is None else records.commit_steps(), np.int64)
        steps = steps[steps < self.machine.steps]
        return StepRows(steps + 1, np.zeros(len(steps), np.int64))

    def position_of(self, time: int | str | dt.datetime | None = None, event: int | None = None) -> int:
        """The position after the last step up to a time, or after an event. Raises `Misuse` for one that is none."""
        recording = self.machine.recording
        if time is None:
            return recording.position_of_event(event_number(event, recording))
        ms = milliseconds(time, "time")
        first = recording.start
        if ms < first:
            raise Misuse(f"the input of {self.app} begins at {describe_time(first)}, after {describe_time(ms)}")
        position = recording.position_of_time(ms)
        if position == self.machine.steps:
            last = int(recording.recorded_events[-1].batch.clock.max())
            if ms > last:
                raise Misuse(f"the input of {self.app} ends at {describe_time(last)}, before {describe_time(ms)}")
        return position

    def why_not(self, output: str, values: Mapping[str, Any], at: str | None) -> WhyNot:
        """The answer of `App.why_not` for the nodes of these moments. Raises as that does, and `Misuse` of a branch."""
        if self.records is None:
            raise Misuse("why an output did not come is asked of the app's own input, not of a branch")
        way = self.machine.way
        nodes = None if way.route is None else way.nodes
        return self.records.why_not(output, values, at=at, nodes=nodes, routing=way.route)

    def branch(self, moment: Moment, request: BranchRequest) -> Branch:
        """A branch of the input, at a moment. Raises as `Moment.branch`."""
        if self.is_branch:
            raise Misuse("a branch begins at a moment of the app's own input: give all its differences at once")
        edits, changes = BranchEdits(self.machine.recording, moment, request).edits()
        way, nodes, text = self.machine.way, self.replays.replayed_nodes(), request.text
        if request.nodes is not None or request.routing is not None:
            way = self.replays.way(request.nodes, request.routing)
            changes.append(f"{way.nodes} {'node' if way.nodes == 1 else 'nodes'}, {way.route}")
        recording = apply_edits(self.machine.recording, way, edits)
        if text is not None:
            argument_checks.require_str("text", text)
            plan = self.replays.app_text().compile(text)
            nodes = replace(nodes, plan=plan, inputs=input_places(recording, plan, {}), led=None)
            changes.append("another text")
        if not changes:
            raise Misuse("a branch has a difference: give drop, change, insert, nodes, routing or text")
        names = self.names if way.nodes == len(self.names) else [f"node-{i + 1}" for i in range(way.nodes)]
        own_nodes = self.replays.replayed_nodes().with_frozen_chance()
        before = ReplayedInput(self.machine.recording, self.machine.way, own_nodes, self.names)
        after = ReplayedInput(recording, way, nodes.with_frozen_chance(), names)

        def moment_of_branch() -> Moment:
            branch_moments = MachineMoments(self.app, self.replays, TimeMachine(recording, way, nodes), names)
            position = 0 if moment.clock is None else recording.position_of_time(moment.clock)
            return branch_moments.moment(position)

        return Branch(self.app, changes, before, after, moment_of_branch)


@dataclass(frozen=True)
class BranchEdits:
    """The edits of a recording that a branch has, at a moment."""

    recording: Recording
    moment: Moment
    request: BranchRequest

    def edits(self) -> tuple[InputEdits, list[str]]:
        """The edits, and each in words. Raises `Misuse`."""
        drop, change, insert = self.request.drop, self.request.change, self.request.insert
        omissions = frozenset(self._number(event) for event in drop)
        values = {self._number(event): self._values(event, new) for event, new in change.items()}
        additions = [self._addition(i, event) for i, event in enumerate(insert)]
        words = [f"without event {event:,}" for event in drop]
        for event, new in change.items():
            words += [f"event {event:,} with {name} {shown(value)}" for name, value in new.items()]
        words += [f"an event of {e.stream} at {describe_time(e.time)}" for e in additions]
        return InputEdits(omissions, values, additions), words

    def _number(self, event: int) -> int:
        return event_number(event, self.recording)

    def _values(self, event: int, new: Any) -> dict[str, Any]:
        stream, _, _ = self.recording.event(self._number(event))
        schema = self.recording.schemas[stream]
        if not isinstance(new, dict) or not new:
            raise Misuse(f"the new values of event {event:,} are a dict by attribute, not {shown(new)}")
        return {name: value_of(value, attribute_of(stream, schema, name)) for name, value in new.items()}

    def _addition(self, i: int, event: Any) -> AddedEvent:
        if not isinstance(event, tuple | list) or len(event) not in (2, 3):
            raise Misuse(f"an event to insert is (stream, values) or (stream, values, time), not {shown(event)}")
        stream, values, *times = event
        schemas = self.recording.schemas
        if stream not in schemas:
            raise Misuse(nearest(f"{self.moment.app} has no input stream '{stream}'", str(stream), schemas))
        schema = schemas[stream]
        if not isinstance(values, tuple | list) or len(values) != len(schema):
            raise Misuse(f"{stream} has {len(schema)} attributes: {shown(values)} are not its values")
        typed_values = [value_of(v, a) for v, a in zip(values, schema, strict=True)]
        number = self.recording.events + i
        if times:
            return AddedEvent(stream, milliseconds(times[0], "the time of an event"), typed_values, number)
        clock = self.recording.start if self.moment.clock is None else self.moment.clock
        return AddedEvent(stream, clock, typed_values, number, self.moment.position)


def _query_with_state(moment: Moment, name: Any) -> str:
    """The name of a query that has state. Raises `Misuse`."""
    names = [query.name for query in moment.queries()]
    if name not in names:
        raise Misuse(nearest(f"{moment.app} has no query '{name}' that keeps something", str(name), names))
    return str(name)


def output_stream(plan: Plan, app: str, stream: Any) -> None:
    """Raises `Misuse` for a stream that no query writes, or that is inside a partition."""
    derived_streams = output_streams(plan)
    if stream not in derived_streams:
        raise Misuse(nearest(f"{app} has no output stream '{stream}'", str(stream), derived_streams))


def event_number(event: Any, recording: Recording) -> int:
    """The number from 0 of an event by its number from 1. Raises `Misuse` if there is no such event."""
    argument_checks.require_int("event", event, 1)
    if event > recording.events:
        raise Misuse(f"{recording.events:,} events came: there is no {event:,}th")
    return int(event) - 1


def attribute_of(stream: str, schema: Schema, name: Any) -> Attribute:
    """An attribute of a stream. Raises `Misuse` if it has none of that name."""
    if name not in schema.names:
        raise Misuse(nearest(f"{stream} has no attribute '{name}'", str(name), schema.names))
    return schema[schema.names.index(name)]


def value_of(value: Any, attribute: Attribute) -> Any:
    """A value of an attribute; a text is read as one. Raises `Misuse`."""
    type, name = attribute.type, attribute.name
    if value is None:
        return None
    if type is Type.OBJECT:
        return value
    try:
        if type is Type.BOOL:
            return {"true": True, "false": False}[str(value).lower()]
        one_value = (int if type in (Type.INT, Type.LONG) else str if type is Type.STRING else float)(value)
        pa.scalar(one_value, ARROW[type])  # refuses what is too large, and half of a surrogate pair
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException):
        raise Misuse(f"{name} is {type.value}: {shown(value)} is none") from None
    return one_value
