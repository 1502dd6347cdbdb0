"""Any moment of an app's input, on each node: replayed, and described."""

from __future__ import annotations

import datetime as dt
from typing import Any

from ... import argument_checks
from ...durations import describe_time
from ...errors import Misuse, nearest
from ...plan.output_labels import is_inner, query_of, stream_of
from ...replay.replay import Way
from ...replay.time_machine import TimeMachine
from ..deployment.deployment import milliseconds
from ..results.moment import Moment, MomentEvent, MomentOutput
from .replays import Replays
from .runtime import AppRuntime


class Moments:
    """Moments of an app's input. Nodes that were replayed once are kept for the next moment."""

    def __init__(self, app: AppRuntime, replays: Replays) -> None:
        self._app, self._replays = app, replays
        self._machine: tuple[Any, TimeMachine] | None = None

    def at(
        self,
        time: int | str | dt.datetime | None = None,
        *,
        event: int | None = None,
        output: tuple[str, int] | None = None,
        nodes: int | None = None,
        routing: str | None = None,
    ) -> Moment:
        """The state of each node at a moment: the events in its windows, its partial matches, the rows of its tables.

        The moment is after the last step up to a `time` of the app's clock (ms, or a text such as
        "2024-06-01 10:00:42"); after the `event` with this number, the first that came in is 1; or after the `output`
        of a stream with this number, as ("Alerts", 1); or after all that came in. The input is replayed as the nodes
        took it, or as `nodes` would have under a `routing`. Raises `Misuse` for a moment that is none, and
        SparkStreamError as `divergence` does.
        """
        if sum(x is not None for x in (time, event, output)) > 1:
            raise Misuse("a moment is a time, an event or an output: give one of them")
        machine = self._time_machine(self._replays.way(nodes, routing))
        if not machine.steps:
            raise Misuse(f"{self._app.name} has no input yet: feed it, or send events")
        if time is not None:
            return self._moment(machine, self._position_of_time(machine, time))
        if event is not None:
            argument_checks.require_int("event", event, 1)
            if event > machine.recording.events:
                raise Misuse(f"{self._app.name} took {machine.recording.events:,} events: there is no {event:,}th")
            return self._moment(machine, machine.position_of_event(event - 1))
        if output is not None:
            return self._moment(machine, self._position_of_output(machine, *output))
        return self._moment(machine, machine.steps)

    def _time_machine(self, way: Way) -> TimeMachine:
        source = self._replays.input_so_far()
        key = source, way
        if self._machine is None or self._machine[0] != key:
            self._machine = key, TimeMachine(source.read(), way, self._replays.replayed_nodes())
        return self._machine[1]

    def _position_of_time(self, machine: TimeMachine, time: int | str | dt.datetime) -> int:
        ms = milliseconds(time, "time")
        first = machine.recording.start
        if ms < first:
            raise Misuse(f"the input of {self._app.name} begins at {describe_time(first)}, after {describe_time(ms)}")
        position = machine.position_of_time(ms)
        if position == machine.steps:
            last = int(machine.recording.recorded_events[-1].batch.clock.max())
            if ms > last:
                raise Misuse(f"the input of {self._app.name} ends at {describe_time(last)}, before {describe_time(ms)}")
        return position

    def _position_of_output(self, machine: TimeMachine, stream: str, number: int) -> int:
        """The position after the step that brought an output of a stream, the first of all nodes is 1."""
        argument_checks.require_int("the number of the output", number, 1)
        derived_streams = [q.output.target.id for q in self._app.plan.queries if q.output.target.kind == "stream"]
        if stream not in derived_streams:
            raise Misuse(nearest(f"{self._app.name} has no output stream '{stream}'", stream, derived_streams))
        position = machine.position_of_output(stream, number)
        if position is None:
            raise Misuse(f"{stream} has fewer than {number:,} outputs")
        return position

    def _moment(self, machine: TimeMachine, position: int) -> Moment:
        machine.seek(position)
        names = self._node_names(machine)
        events = []
        for number, stream, node in machine.events_of_step():
            _, ts, values = machine.recording.event(number)
            events.append(MomentEvent(number + 1, stream, ts, values, names[node]))
        outputs = []
        for replay in machine.last_step.outputs if machine.last_step is not None else ():
            for label in replay.streams:
                if is_inner(label):
                    continue
                query = query_of(label, self._app.plan)
                outputs += [
                    MomentOutput(stream_of(label), query, ts, values, names[replay.node])
                    for _, ts, values in replay.rows(label)
                ]
        states = dict(zip(names, machine.describe(), strict=True))
        clock = None if machine.last_step is None else machine.last_step.clock
        return Moment(
            self._app.name, self._app.plan, position, machine.steps, clock, states, events, outputs,
            lambda other: self._moment(machine, other),
        )  # fmt: skip

    def _node_names(self, machine: TimeMachine) -> list[str]:
        shards = self._app.app_run.shards
        count = machine.nodes
        return list(shards) if machine.way.route is None and len(shards) == count else [
            f"node-{i + 1}" for i in range(count)
        ]  # fmt: skip
