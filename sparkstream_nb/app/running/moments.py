"""Any moment of an app's input, on each node: replayed, and described."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ... import argument_checks
from ..._version import __version__
from ...errors import Misuse, nearest
from ...replay.input_edits import apply_edits
from ...replay.replay import Nodes, Recording, Way
from ...replay.state_folder import StateFolder
from ...replay.time_machine import TimeMachine
from ..deployment.deployment import milliseconds
from ..explaining.event_conditions import EventConditions
from ..explaining.event_follower import EVERY, EventFollower
from ..explaining.event_history import EventHistory, OutputOrigin
from ..explaining.why_not import WhyNot
from ..explaining.why_not_search import WhyNotSearch
from ..explaining.why_not_trials import AppInput, OutputQuestion, Trials
from ..results.moment import Moment, MomentOutput, MomentSource
from .machine_moments import MachineMoments, attribute_of, event_number, output_stream, value_of
from .output_origins import output_origin
from .replays import Replays
from .runtime import AppRuntime


class Moments:
    """Moments of an app's input. Nodes that were replayed once are kept for the next moment."""

    def __init__(self, app: AppRuntime, replays: Replays) -> None:
        self._app, self._replays = app, replays
        self._machine: tuple[Any, TimeMachine] | None = None
        self._tracing: tuple[TimeMachine, TimeMachine] | None = None
        """The plain machine, and one with lineage."""

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
        moments = self._moments_of(machine)
        if output is not None:
            return moments.moment(self._position_of_output(machine, *output))
        if time is not None or event is not None:
            return moments.moment(moments.position_of(time, event))
        return moments.moment(machine.steps)

    def until(
        self,
        name: str | None = None,
        condition: str = "",
        *,
        output: str | None = None,
        change: str | None = None,
        nodes: int | None = None,
        routing: str | None = None,
    ) -> Moment:
        """The first moment at which a condition holds on one of the nodes, as `until("spree", "partial matches > 9")`
        (`events` of a window, `rows` of a table), at which a stream has an `output`, or at which the state of a query
        is another one than at the beginning (`change="spree"`); `Moment.until` has the next one.
        `nodes` and `routing` as in `at`. Raises `Misuse` if there is none."""
        machine = self._time_machine(self._replays.way(nodes, routing))
        if not machine.steps:
            raise Misuse(f"{self._app.name} has no input yet: feed it, or send events")
        return self._moments_of(machine).moment(0).until(name, condition, output=output, change=change)

    def follow(
        self,
        event: int | None = None,
        *,
        output: tuple[str, int] | None = None,
        nodes: int | None = None,
        routing: str | None = None,
    ) -> EventHistory | OutputOrigin:
        """The history of the `event` with this number, the first that came in is 1: its node, the filters that it
        passed or not, the windows that it entered and left, its partial matches and outputs, until no node holds it.
        Or the origin of an `output` of a stream, as ("Alerts", 1): its events. `nodes` and `routing` as in `at`.

        Up to 100,000 events are followed into aggregates one by one; of more, an aggregate has all of its group,
        from the first to the last that it holds. Raises `Misuse` for an event or output that did not come, and
        SparkStreamError as `divergence` does.
        """
        if (event is None) == (output is None):
            raise Misuse("follow takes the number of an event, or output=(STREAM, NUMBER)")
        plain = self._time_machine(self._replays.way(nodes, routing))
        if not plain.steps:
            raise Misuse(f"{self._app.name} has no input yet: feed it, or send events")
        moments = self._moments_of(plain)
        machine = self._tracing_machine(plain)
        if output is not None:
            self._position_of_output(plain, *output)
            with machine.lock:
                return output_origin(machine, moments, *output)
        source = AppInput(plain.recording, plain.way, moments.names)
        followed_event = source.event(event_number(event, plain.recording))
        conditions = EventConditions(self._replays.app_text(), self._replays.replayed_nodes())
        with machine.lock:
            history = EventFollower(machine, self._app.plan, moments.names, conditions, followed_event).follow()
        return EventHistory(
            self._app.name, followed_event, history.entries, history.rest, history.notes,
            history.is_complete, moments,
        )  # fmt: skip

    def why_not(
        self,
        /,
        output: str,
        values: Mapping[str, Any] | None = None,
        *,
        at: int | str | dt.datetime | None = None,
        events: Sequence[int] = (),
        nodes: int | None = None,
        routing: str | None = None,
        **named_values: Any,
    ) -> WhyNot:
        """Why an output did not come: of a stream, or of a query that writes one, with these values of its attributes,
        as in `why_not("Sprees", card="card-07")`.

        `at`: about when it should have come (ms or a text; by default any time). `events`: the numbers of events that
        it should come from. It is explained for the nodes as they took the input, or as `nodes` would have under a
        `routing`. The answer names the smallest change of the input with which the output comes, tried over all of it.
        Raises `Misuse` for an output that did come, or that the app cannot put out, and SparkStreamError as
        `divergence` does.
        """
        way = self._replays.way(nodes, routing)
        machine = self._time_machine(way)
        if not machine.steps:
            raise Misuse(f"{self._app.name} has no input yet: feed it, or send events")
        question = self._output_question(output, {**(values or {}), **named_values}, at, events, machine.recording)
        names = self._node_names(machine)
        source = AppInput(machine.recording, way, names)
        nodes_of_trials = self._replays.replayed_nodes().with_frozen_chance()
        trials = Trials(self._replays.app_text(), nodes_of_trials, source, question)
        answer, *others = WhyNotSearch(trials).answers()
        proof = moment_of_proof = None
        if answer.output is not None:
            alert, edits = answer.output, answer.edits
            proof = MomentOutput(question.stream, alert.query, alert.ts, alert.values, names[alert.node or 0])
            branch = apply_edits(machine.recording, way, edits)

            def moment_of_proof() -> Moment:
                branch_machine = TimeMachine(branch, way, self._replays.replayed_nodes())
                moments = MachineMoments(self._app.name, self._replays, branch_machine, names)
                return moments.moment(branch.position_of_time(alert.clock))

        return WhyNot(
            self._app.name, question.stream, question.values, answer.explanation, proof,
            [a.explanation for a in others], moment_of_proof,
        )  # fmt: skip

    def source(self, way: Way) -> MomentSource:
        """The moments of the input, as nodes take it in a way."""
        return self._moments_of(self._time_machine(way))

    def commit_steps(self) -> list[int]:
        """The last step with an output of each micro-batch whose outputs are kept, ascending."""
        with self._app.outputs.tidying:
            return self._app.outputs.commit_steps()

    def _output_question(
        self, output: str, values: Mapping[str, Any], at: Any, events: Sequence[int], recording: Recording
    ) -> OutputQuestion:
        plan = self._app.plan
        by_name = {q.name: q.output.target for q in plan.queries if q.output.target.kind == "stream"}
        streams = {target.id for target in by_name.values()}
        if output not in streams and output not in by_name:
            names = [*streams, *by_name]
            raise Misuse(nearest(f"{self._app.name} has no output stream or query '{output}'", output, names))
        stream, query = (output, "") if output in streams else (by_name[output].id, output)
        schema = plan.streams[stream].source.schema
        typed_values = {name: value_of(value, attribute_of(stream, schema, name)) for name, value in values.items()}
        numbers = frozenset(event_number(event, recording) for event in events)
        return OutputQuestion(stream, query, typed_values, None if at is None else milliseconds(at, "at"), numbers)

    def _time_machine(self, way: Way) -> TimeMachine:
        source = self._replays.input_so_far()
        key = source, way
        if self._machine is None or self._machine[0] != key:
            nodes = self._replays.replayed_nodes()
            self._machine = key, TimeMachine(source.read(), way, nodes, self._state_folder(way, nodes))
        return self._machine[1]

    def _state_folder(self, way: Way, nodes: Nodes) -> StateFolder:
        """The states of earlier replays of this text, on these nodes."""
        request = self._app.deployment.request
        parts = (__version__, nodes.plan.text, request.variables, way, nodes.start, nodes.led, nodes.limits)
        key = hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()
        return StateFolder(self._app.app_run.folder(self._app.deployment.home) / "moments", key)

    def _tracing_machine(self, machine: TimeMachine) -> TimeMachine:
        """The machine whose nodes have lineage, over the input of another one."""
        if self._tracing is None or self._tracing[0] is not machine:
            every = machine.recording.events <= EVERY
            nodes = self._replays.replayed_nodes().with_tracing(every=every, lazy=True)
            self._tracing = machine, TimeMachine(machine.recording, machine.way, nodes)
        return self._tracing[1]

    def _position_of_output(self, machine: TimeMachine, stream: str, number: int) -> int:
        """The position after the step that brought an output of a stream, the first of all nodes is 1."""
        argument_checks.require_int("the number of the output", number, 1)
        output_stream(self._app.plan, self._app.name, stream)
        positions = machine.history.outputs[stream].positions
        if number > len(positions):
            raise Misuse(f"{stream} has fewer than {number:,} outputs")
        return int(positions[number - 1])

    def _moments_of(self, machine: TimeMachine) -> MachineMoments:
        return MachineMoments(self._app.name, self._replays, machine, self._node_names(machine), self)

    def _node_names(self, machine: TimeMachine) -> list[str]:
        shards = self._app.app_run.shards
        count = machine.nodes
        return list(shards) if machine.way.route is None and len(shards) == count else [
            f"node-{i + 1}" for i in range(count)
        ]  # fmt: skip

