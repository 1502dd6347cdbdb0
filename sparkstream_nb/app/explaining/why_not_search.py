"""Why an output did not come: found by trying.

First the events are given to one node that sees all: if that has the output, the routing prevents it. Else each clause
of the queries that the output comes from is relaxed (`lang.relaxations`). An output that comes then is traced to its
events (`plan.reports.lineage`), and these are changed, as little as possible, until the output comes under the app's
own text. Last, events are moved and added. A change counts only if the output comes with it; the smallest one is the
answer.

The changes are tried over a part of a long recording, and the answer over all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, islice

from ...charts.value_texts import row_text
from ...durations import describe_time
from ...errors import Misuse, SiddhiError
from ...lang.relaxations import Limit, Relaxation, relaxations
from ...plan.reports.lineage import events_of
from ...replay.input_edits import InputEdits, apply_edits
from ...replay.replay import ONE
from ..results.output_matching import Alert, pair_outputs
from .clause_edits import ADDED_COST, MOST_EVENTS, ClauseEdits, ExplainedEdits, SizedEdits
from .event_edits import missing_events, order_edits
from .smallest_change import smallest_part
from .why_not import ChangeKind, EventChange, Explanation, Reason
from .why_not_trials import WHOLE, Trials

_NEAR = 1_000
"""Difference (ms) from the given time up to which an output is the one that was asked for."""
_TARGETS = 3
"""Outputs of a relaxed text whose events are changed."""
_OTHERS = 4
"""Further explanations at most."""
_LARGE = 0.3
"""Changes of events that no relaxed text names are tried if the smallest change is larger than this."""


@dataclass(frozen=True)
class Answer:
    """An explanation, the edits that bring the output, and this output (None: no edits bring it)."""

    explanation: Explanation
    edits: InputEdits = field(default_factory=InputEdits)
    output: Alert | None = None


class WhyNotSearch:
    """The search for what prevents an output."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._relaxed_outputs: dict[tuple[int, ...], list[Alert]] = {}

    def answers(self) -> list[Answer]:
        """The explanations, ordered by the size of their changes. Raises `Misuse` if the output did come."""
        self._require_absence()
        if self._trials.way.nodes > 1 and (answer := self._routing()) is not None:
            return [answer]
        edits = sorted(self._explained_edits(), key=lambda e: (e.size, -len(e.explanation.events)))
        answers: list[Answer] = []
        for candidate in edits:
            if len(answers) <= _OTHERS and not any(candidate.edits == a.edits for a in answers):
                answers += filter(None, [self._prove(candidate)])
        return answers or [self._no_answer()]

    def _require_absence(self) -> None:
        question = self._trials.question
        for alert in self._trials.nodes_outputs:
            if question.at is None or abs(alert.clock - question.at) <= _NEAR:
                when = describe_time(alert.clock)
                raise Misuse(f"{question.stream} {row_text(alert.values)} did come, at {when}")

    # ----------------------------------------------------------------------------------------------------- the nodes

    def _routing(self) -> Answer | None:
        """The answer if one node that sees all events has the output: the fewest events to move to another node."""
        trials = self._trials
        on_one_node = trials.outputs(trials.plan, trials.recording, with_lineage=True)
        _, on_one_node, _ = pair_outputs(on_one_node, trials.nodes_outputs, lambda a: (a.times, a.identity))
        if trials.question.at is not None:
            on_one_node = trials.near(on_one_node, trials.question.at)
        if not on_one_node:
            return None
        target = on_one_node[0]
        numbers = events_of(target.made_of)
        explanation = Explanation(
            Reason.ROUTING,
            "its events went to different nodes" if len(self._nodes_of(numbers)) > 1 else "its node missed an event",
            events=[trials.event(x) for x in numbers[:MOST_EVENTS]],
        )
        candidates = [numbers] if trials.recording.events > WHOLE else [numbers, trials.input_numbers]

        @cache
        def proof(node: int, *part: int) -> Alert | None:
            return trials.proof(InputEdits(nodes=dict.fromkeys(part, node)), target.clock)

        for candidate in candidates:
            for node in self._nodes_of(numbers):

                def works(part: Sequence[int], node: int = node) -> bool:
                    return proof(node, *part) is not None

                part = smallest_part([x for x in candidate if trials.source.node(x) != node], works)
                if part is not None:
                    explanation = replace(explanation, changes=self._moves(part, node))
                    return Answer(explanation, InputEdits(nodes=dict.fromkeys(part, node)), proof(node, *part))
        return Answer(explanation)

    def _nodes_of(self, numbers: Sequence[int]) -> list[int]:
        """The nodes of events, ordered by their number of events."""
        nodes = [self._trials.source.node(x) for x in numbers]
        return sorted(dict.fromkeys(nodes), key=nodes.count, reverse=True)

    def _moves(self, numbers: Sequence[int], node: int) -> list[EventChange]:
        name = self._trials.names[node]
        return [EventChange(ChangeKind.NODE, self._trials.event(x), value=name) for x in numbers]

    def _prove(self, candidate: ExplainedEdits) -> Answer | None:
        """The answer with its output, over the whole recording and as the nodes take it; None if the output does not
        come there."""
        output = self._trials.proof(candidate.edits, candidate.time)
        if output is not None:
            return Answer(candidate.explanation, candidate.edits, output)
        return None if self._trials.way.nodes == 1 else self._proved_on_one_node(candidate)

    def _proved_on_one_node(self, candidate: ExplainedEdits) -> Answer | None:
        """The answer with further changes: the events of the output go to one node."""
        trials = self._trials
        branch = apply_edits(trials.recording, ONE, candidate.edits)
        targets = trials.near(trials.outputs(trials.plan, branch, with_lineage=True), candidate.time)
        numbers = events_of(targets[0].made_of) if targets else []
        recorded_numbers = [x for x in numbers if x < trials.first_free]
        for node in range(trials.way.nodes):
            additions = [replace(a, node=node) if a.number in numbers else a for a in candidate.edits.additions]
            edits = replace(candidate.edits, additions=additions, nodes=dict.fromkeys(recorded_numbers, node))
            if (output := trials.proof(edits, candidate.time)) is not None:
                moves = self._moves([x for x in recorded_numbers if trials.source.node(x) != node], node)
                explanation = candidate.explanation
                if moves:
                    sentence = f"{explanation.sentence}; and its events go to different nodes"
                    explanation = replace(explanation, sentence=sentence, changes=[*explanation.changes, *moves])
                return Answer(explanation, edits, output)
        return None

    # --------------------------------------------------------------------------------------------------- the queries

    def _explained_edits(self) -> Iterator[ExplainedEdits]:
        """Changes of events that clauses refuse; then of others that might have come, of their order, and events that
        are missing."""
        smallest = 1e9
        for candidate in self._edits_by_clause():
            smallest = min(smallest, candidate.size)
            yield candidate
        if smallest > _LARGE:
            for candidate in self._edits_of_fitting_events():
                smallest = min(smallest, candidate.size)
                yield candidate
        if smallest > ADDED_COST:
            yield from islice(chain(order_edits(self._trials), missing_events(self._trials)), 1)

    def _edits_by_clause(self) -> Iterator[ExplainedEdits]:
        preventing = [c for c in self._clauses if self._new_outputs([c])]
        for clause in preventing:
            for target in self._new_outputs([clause])[:_TARGETS]:
                goal = self._trials.goal(self._trials.plan, target.clock)
                clause_edits = ClauseEdits.of_output(self._trials, clause, target, goal, InputEdits())
                yield from (clause_edits.explain_edits(e) for e in clause_edits.all())
        if not preventing:
            together = smallest_part(self._clauses, lambda part: bool(self._new_outputs(part)))
            if together is not None:
                yield from self._edits_together(together)

    def _edits_together(self, clauses: Sequence[Relaxation]) -> Iterator[ExplainedEdits]:
        """Edits for clauses that prevent the output together: one clause after the other is enforced again."""
        target = self._new_outputs(clauses)[0]
        edits, size, parts = InputEdits(), 0.0, []
        for i, clause in enumerate(clauses):
            goal = self._trials.goal(self._trials.relaxed_plan(clauses[i + 1 :]), target.clock)
            clause_edits = ClauseEdits.of_output(self._trials, clause, target, goal, edits)
            sized_edits: SizedEdits | None = min(clause_edits.all(), key=lambda s: s.size, default=None)
            if sized_edits is None:
                return
            size, edits = size + sized_edits.size, edits | sized_edits.edits
            parts.append(clause_edits.explain(sized_edits.changes))
        events = list({e.number: e for p in parts for e in p.events}.values())
        explanation = Explanation(
            Reason.SEVERAL, "; and ".join(p.sentence for p in parts), [c for p in parts for c in p.clauses], events,
            [c for p in parts for c in p.changes],
        )  # fmt: skip
        yield ExplainedEdits(size, edits, target.clock, explanation)

    def _edits_of_fitting_events(self) -> Iterator[ExplainedEdits]:
        """Edits of the given events, or of events with the values that were asked for where a condition is false."""
        given_events = sorted(self._trials.question.events)
        for number in reversed(given_events) if given_events else self._trials.fitting_events:
            goal = self._trials.goal(self._trials.plan, self._trials.event(number).time)
            for clause in self._clauses:
                clause_edits = ClauseEdits(self._trials, clause, given_events or [number], goal)
                if clause.limit is Limit.CONDITION and (given_events or clause_edits.is_false_of(number)):
                    yield from (clause_edits.explain_edits(e) for e in clause_edits.of_values(number, far=False))

    @cached_property
    def _clauses(self) -> list[Relaxation]:
        """The clauses of the queries that the output comes from."""
        return [c for c in relaxations(self._trials.text.tree) if c.query in self._trials.queries]

    def _new_outputs(self, clauses: Sequence[Relaxation]) -> list[Alert]:
        """The outputs that come with relaxed clauses and not without, the nearest ones first."""
        key = tuple(map(id, clauses))
        if key not in self._relaxed_outputs:
            trials = self._trials
            try:
                outputs = trials.outputs(trials.relaxed_plan(clauses), trials.part, with_lineage=True)
            except SiddhiError:
                outputs = []
            had = {(a.times, a.identity) for a in trials.own_outputs}
            fresh = [a for a in outputs if (a.times, a.identity) not in had and events_of(a.made_of)]
            if trials.question.at is not None:
                fresh = trials.near(fresh, trials.question.at)
            self._relaxed_outputs[key] = sorted(fresh, key=self._distance)
        return self._relaxed_outputs[key]

    def _distance(self, alert: Alert) -> tuple[int, int]:
        """The distance of an output from the time that was asked for, and of its events from each other (ms)."""
        numbers, at = events_of(alert.made_of), self._trials.question.at
        first, last = (self._trials.part.event(x)[1] for x in (numbers[0], numbers[-1]))
        span = abs(last - first)
        return (span, -alert.clock) if at is None else (abs(alert.clock - at) + span, 0)

    def _no_answer(self) -> Answer:
        trials = self._trials
        queries = {c.query for c in self._clauses if self._new_outputs([c])}
        preventing = dict.fromkeys(c.text for c in self._clauses if c.query in queries)
        period = "" if trials.part is trials.recording else f" of the {trials.part.events:,} nearest ones"
        if preventing:
            sentence = f"no change of one event{period} fulfils {' and '.join(preventing)}"
        elif not trials.fitting_events and trials.question.values:
            sentence = "no event with these values came"
        else:
            sentence = f"no change of one event{period} brings it"
        return Answer(Explanation(Reason.UNKNOWN, sentence, list(preventing)))
