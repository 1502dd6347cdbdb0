"""Replays of an app's input with changes, which show whether an expected output comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...lang import tree as t
from ...lang.clause_changes import nodes_of
from ...lang.printer import to_text
from ...lang.relaxations import Relaxation, queries_of, relax
from ...plan.nodes import Plan, Ref
from ...plan.reports.lineage import events_of
from ...plan.upstream import upstream_of
from ...replay.input_edits import InputEdits, apply_edits, part_of
from ...replay.replay import ONE, Nodes, Recording, Way, replay_nodes
from ...types import Schema
from ..results.moment import MomentEvent
from ..results.output_matching import Alert, alerts_of

WHOLE = 5_000
"""Events of a recording up to which all of it is searched; of a longer one, as many before the output's time."""
_BEHIND = 500
"""Events after the output's time that are searched."""
_LEAST_SLACK = 60_000
_ANCHORS = 8


@dataclass(frozen=True)
class OutputQuestion:
    """An expected output: of a stream, or one query that writes it ("": any), with some values by attribute, about a
    time of the clock (ms; None: any), from some events (numbers from 0)."""

    stream: str
    query: str
    values: Mapping[str, Any]
    at: int | None = None
    events: frozenset[int] = frozenset()

    def accepts(self, alert: Alert, names: Sequence[str]) -> bool:
        """True if an output has the values, and comes from the events."""
        if self.query and alert.query != self.query:
            return False
        values = dict(zip(names, alert.values, strict=False))
        if any(values[name] != value for name, value in self.values.items()):
            return False
        return not self.events or self.events <= set(events_of(alert.made_of))


@dataclass(frozen=True)
class AppText:
    """An app's text: its tree, and a function that makes a plan of a text, which raises SiddhiError."""

    tree: t.App
    compile: Callable[[str], Plan]


@dataclass(frozen=True)
class AppInput:
    """An app's input: its recording, how it was routed, and the names of the nodes."""

    recording: Recording
    way: Way
    names: Sequence[str]

    def node(self, number: int) -> int:
        """The node (from 0) of an event, by its number from 0."""
        if self.way == ONE:
            return 0
        place, stream, row = self.recording.locate(number)
        return int(self.way.places(self.recording, self.recording.recorded_events[place])[stream][row])

    def event(self, number: int) -> MomentEvent:
        """An event, by its number from 0."""
        stream, time, values = self.recording.event(number)
        return MomentEvent(number + 1, stream, time, values, self.names[self.node(number)])


@dataclass(frozen=True)
class Goal:
    """An additional output near a time of the clock (ms), under a plan; `before`: the number without edits."""

    plan: Plan
    time: int
    before: int


class Trials:
    """Replays of an app's input, on one node or as the nodes took it. `nodes` have the app's plan.

    `part` is the part of a long recording that is searched; edits have the positions of the whole one.
    """

    def __init__(self, text: AppText, nodes: Nodes, source: AppInput, question: OutputQuestion) -> None:
        self.text, self.question = text, question
        self.source, self.recording, self.way, self.names = source, source.recording, source.way, source.names
        self._nodes = nodes
        self.part, self._first = self.recording, 0
        if self.recording.events > WHOLE:
            end = self.recording.steps if question.at is None else self.recording.position_of_time(question.at)
            self._first = max(0, end - WHOLE)
            self.part = part_of(self.recording, self._first, min(self.recording.steps, end + _BEHIND))

    @property
    def plan(self) -> Plan:
        """The app's own plan."""
        return self._nodes.plan

    # ----------------------------------------------------------------------------------------------------- replays

    def outputs(self, plan: Plan, recording: Recording, way: Way = ONE, *, with_lineage: bool = False) -> list[Alert]:
        """The outputs that answer the question; `with_lineage`: with their lineage."""
        nodes = replace(self._nodes, plan=upstream_of(plan, [self.question.stream]))
        if with_lineage or self.question.events:
            nodes = nodes.with_tracing(every=recording.events <= 2 * WHOLE)
        alerts = alerts_of(replay_nodes(recording, way, nodes), nodes.plan, way).get(self.question.stream, [])
        names = plan.streams[self.question.stream].source.schema.names
        return [a for a in alerts if self.question.accepts(a, names)]

    @cached_property
    def own_outputs(self) -> list[Alert]:
        """The part's outputs without any change, with their lineage."""
        return self.outputs(self.plan, self.part, with_lineage=True)

    @cached_property
    def nodes_outputs(self) -> list[Alert]:
        """The outputs of the whole recording as the nodes took it."""
        return self.outputs(self.plan, self.recording, self.way)

    def relaxed_plan(self, clauses: Sequence[Relaxation]) -> Plan:
        """The plan with relaxed clauses. Raises SiddhiError."""
        return self.text.compile(to_text(relax(self.text.tree, clauses))) if clauses else self.plan

    def goal(self, plan: Plan, time: int) -> Goal:
        """The goal of one more output near a time."""
        outputs = self.own_outputs if plan is self.plan else self.outputs(plan, self.part)
        return Goal(plan, time, len(self.near(outputs, time)))

    def works(self, goal: Goal, edits: InputEdits) -> bool:
        """True if edits reach the goal, on one node."""
        branch = apply_edits(self.part, ONE, edits.shift_positions(-self._first))
        return len(self.near(self.outputs(goal.plan, branch), goal.time)) > goal.before

    def proof(self, edits: InputEdits, time: int) -> Alert | None:
        """The output near a time that edits bring, over the whole recording and as the nodes take it."""
        outputs = self.near(self.outputs(self.plan, apply_edits(self.recording, self.way, edits), self.way), time)
        return outputs[0] if len(outputs) > len(self.near(self.nodes_outputs, time)) else None

    def near(self, outputs: Sequence[Alert], time: int) -> list[Alert]:
        """The outputs near a time, the nearest ones first."""
        near = [a for a in outputs if abs(a.clock - time) <= self.slack]
        return sorted(near, key=lambda a: abs(a.clock - time))

    # ------------------------------------------------------------------------------------------------ the app's text

    @cached_property
    def queries(self) -> dict[int, t.Query]:
        """The queries that the output comes from, by their number in the text."""
        question = self.question
        upstream = {
            q.name for q in upstream_of(self.plan, [question.stream]).queries
            if not question.query or q.name == question.query or q.output.target.id != question.stream
        }  # fmt: skip
        queries = zip(self.plan.queries, queries_of(self.text.tree), strict=True)
        return {i: query for i, (bound, (_, query)) in enumerate(queries) if bound.name in upstream}

    @cached_property
    def durations(self) -> list[int]:
        """The durations (ms) in these queries."""
        return sorted({x.millis for q in self.queries.values() for x in nodes_of(q) if isinstance(x, t.TimeConstant)})

    @property
    def slack(self) -> int:
        """Difference (ms) from an expected time up to which an output counts."""
        return max(_LEAST_SLACK, sum(self.durations))

    @cached_property
    def input_streams(self) -> list[str]:
        """The streams from outside that the output comes from."""
        read = {x.id for q in self.queries.values() for x in nodes_of(q.input) if isinstance(x, t.SourceName)}
        return [s for s in self.plan.input_streams if s in read]

    # ------------------------------------------------------------------------------------------------------- events

    @cached_property
    def input_numbers(self) -> list[int]:
        """The numbers of the part's events of these streams."""
        items, streams = self.part.recorded_events, set(self.input_streams)
        return sorted(int(x) for item in items for s in item.first if s in streams for x in item.numbers_of(s))

    @property
    def first_free(self) -> int:
        """The first number that no event has."""
        return self.recording.events

    def schema(self, stream: str) -> Schema:
        """The attributes of an input stream."""
        return self.recording.schemas[stream]

    def event(self, number: int) -> MomentEvent:
        """An event, by its number from 0."""
        return self.source.event(number)

    @cached_property
    def known_values(self) -> dict[str, Any]:
        """The expected values, by their names in the output and in the streams."""
        out = dict(self.question.values)
        for query in upstream_of(self.plan, [self.question.stream]).queries:
            for item in query.select.items:
                if item.name in self.question.values and isinstance(item.expr, Ref):
                    out.setdefault(item.expr.name, self.question.values[item.name])
        return out

    @cached_property
    def fitting_events(self) -> list[int]:
        """Events that the output might have come from: the given ones, or those with the values that were asked for,
        the nearest in time first."""
        if self.question.events:
            return sorted(self.question.events)
        fitting = []
        for number in self.input_numbers:
            stream, _, values = self.part.event(number)
            by_name = dict(zip(self.schema(stream).names, values, strict=True))
            common = self.known_values.keys() & by_name.keys()
            if common and all(by_name[name] == self.known_values[name] for name in common):
                fitting.append(number)
        return self._nearest(fitting)[:_ANCHORS]

    @cached_property
    def anchors(self) -> list[int]:
        """Events beside which others are put: `fitting_events`, else the nearest ones and some others."""
        if self.fitting_events:
            return self.fitting_events
        nearest = self._nearest(self.input_numbers)[: _ANCHORS // 2]
        spread = self.input_numbers[:: max(1, len(self.input_numbers) // (_ANCHORS // 2))]
        return list(dict.fromkeys([*nearest, *spread]))

    def _nearest(self, numbers: Sequence[int]) -> list[int]:
        at = self.question.at
        if at is None:
            return list(reversed(numbers))
        return sorted(numbers, key=lambda number: abs(self.part.event(number)[1] - at))
