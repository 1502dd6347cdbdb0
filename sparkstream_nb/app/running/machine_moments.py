"""The moments of a time machine, and branches of its input."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ... import argument_checks
from ...durations import describe_time
from ...errors import Misuse, nearest, shown
from ...plan.nodes import Plan
from ...plan.output_labels import is_inner, query_of, stream_of
from ...replay.input_edits import AddedEvent, InputEdits, apply_edits
from ...replay.input_history import InputHistory, StepRows
from ...replay.replay import Recording
from ...replay.time_machine import TimeMachine
from ...types import Attribute, Schema, Type
from ..deployment.deployment import milliseconds
from ..explaining.branch import Branch, ReplayedInput
from ..explaining.why_not import WhyNot
from ..results.compared_attributes import input_places
from ..results.moment import BranchRequest, Moment, MomentEvent, MomentOutput
from .replays import Replays
from .row_condition import RowCondition


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

    def until(self, moment: Moment, name: str | None, condition: str, output: str | None) -> Moment:
        """The first moment after one at which a condition holds. Raises as `Moment.until`."""
        machine = self.machine
        if (output is None) == (name is None):
            raise Misuse("a moment is looked for by a query or table and a condition, or by output=STREAM")
        if output is not None:
            output_stream(machine.plan, self.app, output)
            with machine.lock:
                machine.seek(moment.position)
                position = machine.position_of_next_output(output)
            if position is None:
                raise Misuse(f"{output} has no output after step {moment.position:,} of {machine.steps:,}")
            return self.moment(position)
        rows = RowCondition.of(machine.plan, name, condition)
        with machine.lock:
            machine.seek(moment.position)
            position = machine.position_of_rows(rows.name, rows.least, rows.most_new)
        if position is None:
            raise Misuse(f"{rows} is not true after step {moment.position:,} of {machine.steps:,}")
        return self.moment(position)

    def since(self, moment: Moment, name: str, condition: str) -> Moment:
        """The moment since which a condition has held. Raises as `Moment.since`."""
        rows = RowCondition.of(self.machine.plan, name, condition)

        def holds(position: int) -> bool:
            with self.machine.lock:
                self.machine.seek(position)
                return self.machine.rows_of(rows.name) >= rows.least

        if not holds(moment.position):
            raise Misuse(f"{rows} is not true at step {moment.position:,}")
        first, distance = moment.position, 1
        while first > 0 and holds(max(0, first - distance)):
            first, distance = max(0, first - distance), distance * 2
        last_without = max(-1, first - distance)
        while first - last_without > 1:
            middle = (first + last_without) // 2
            first, last_without = (middle, last_without) if holds(middle) else (first, middle)
        return self.moment(first)

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


def output_stream(plan: Plan, app: str, stream: Any) -> None:
    """Raises `Misuse` for a stream that no query writes."""
    derived_streams = [q.output.target.id for q in plan.queries if q.output.target.kind == "stream"]
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
    try:
        if type in (Type.INT, Type.LONG):
            return int(value)
        if type in (Type.FLOAT, Type.DOUBLE):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Misuse(f"{name} is {type.value}: {shown(value)} is none") from None
    if type is Type.BOOL:
        if str(value).lower() not in ("true", "false"):
            raise Misuse(f"{name} is {type.value}: {shown(value)} is none")
        return str(value).lower() == "true"
    return str(value) if type is Type.STRING else value
