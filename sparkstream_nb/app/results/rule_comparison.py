"""Outputs under another text of the app, compared with outputs under its own, and the clause that causes a difference.

Both texts take the same events. An output of either one is paired with one of the other (`match_outputs`). A cause is
proved by trying: the old text with one change alone is run too, and a change causes the outputs that differ then.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from ...durations import describe_duration
from ...errors import Misuse, SiddhiError
from ...lang import tree as t
from ...lang.clause_changes import Change, TextComparison
from ...lang.printer import to_text
from ...plan.nodes import Agg, Plan, Query, walk
from ...plan.reports.lineage import events_of
from ...replay.replay import Nodes, Recorded, Recording, Way, merged_rows, replay_nodes
from ...types import Type
from .divergence import MergedCheck
from .frontend import Displayed
from .output_matching import Alert, alerts_of, are_equal, count_equal, pair_outputs, place_of

Outcome = Literal["same", "gone", "new", "other values", "other time"]
OUTCOMES: tuple[Outcome, ...] = ("same", "gone", "new", "other values", "other time")
MOST_TRIED = 24
"""Changes of a text up to which each is tried alone; of more, all of a query's are named."""
_KEYS = (Type.STRING, Type.INT, Type.LONG, Type.BOOL)
"""The types of attributes that can tell outputs apart."""
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class OutputPair:
    """An output under the old text, under the new one, or under both."""

    outcome: Outcome
    before: Alert | None
    after: Alert | None

    @property
    def alert(self) -> Alert:
        """The output under the old text, else that under the new one."""
        alert = self.before or self.after
        assert alert is not None
        return alert


def match_outputs(before: Sequence[Alert], after: Sequence[Alert], keys: Sequence[int]) -> list[OutputPair]:
    """Pairs each output of the old text with one of the new text; `keys` are the places of the values that
    identify its subject.

    `same`: equal values at one time. `other time`: equal values, from the same events if these are known. `other
    values`: from the same events, or of one key at one time. The rest is `gone` or `new`.
    """
    out: list[OutputPair] = []

    def pair(key: Callable[[Alert], Any], outcome: Outcome, *, with_origin: bool = False) -> None:
        nonlocal before, after
        ones, others = ([a for a in alerts if not with_origin or a.origin is not None] for alerts in (before, after))
        pairs, rest_before, rest_after = pair_outputs(ones, others, key)
        out.extend(OutputPair(outcome, a, b) for a, b in pairs)
        before, after = (
            [*(a for a in alerts if with_origin and a.origin is None), *rest]
            for alerts, rest in ((before, rest_before), (after, rest_after))
        )

    def about(a: Alert) -> tuple[Any, ...]:
        return tuple(a.identity[k] for k in keys)

    pair(lambda a: (a.times, a.identity, a.origin), "same")
    pair(lambda a: (a.times, a.identity), "same")
    pair(lambda a: (a.ts, a.identity), "same")
    pair(lambda a: (a.identity, a.origin), "other time", with_origin=True)
    pair(lambda a: (about(a), a.origin), "other values", with_origin=True)
    pair(lambda a: (a.ts, about(a)), "other values")
    out += [OutputPair("gone", a, None) for a in before]
    out += [OutputPair("new", None, a) for a in after]
    return sorted(out, key=lambda p: place_of(p.alert))


@dataclass(frozen=True, eq=False)
class Run:
    """The outputs of nodes under a text, by derived stream, and the rows of aggregations, merged over the nodes."""

    alerts: Mapping[str, Sequence[Alert]]
    rows_by_aggregation: Mapping[str, Any]

    @cached_property
    def counts(self) -> Counter[Any]:
        """`count_equal` of the outputs."""
        return count_equal(self.alerts)


@dataclass(frozen=True, eq=False)
class RuleCause:
    """Why an output is not the same: the changes that cause it, and a sentence."""

    changes: tuple[Change, ...]
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, repr=False, eq=False)
class RuleComparison(Displayed):
    """The outputs of an app under its own text (old) and under another one (new), over the same events.

    `texts` is the comparison of the two; `pairs` are by derived stream of the old text, in the order of time. `before`
    is the run of the old text, and `alone` has a run with one change alone, for the changes with which it compiles.
    """

    app: str
    way: Way
    texts: TextComparison
    plan: Plan
    recording: Recording
    pairs: Mapping[str, Sequence[OutputPair]]
    checks: Mapping[str, MergedCheck]
    before: Run
    alone: Mapping[Change, Run] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The clauses that differ."""
        return self.texts.changes

    @property
    def events(self) -> int:
        """The number of events that came in."""
        return self.recording.events

    @property
    def counts(self) -> pd.DataFrame:
        """The number of outputs of each outcome, by query and stream."""
        tallies: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for stream, pairs in self.pairs.items():
            for p in pairs:
                tallies[p.alert.query, stream][p.outcome] += 1
        order = {q.name: i for i, q in enumerate(self.plan.queries)}
        keys = sorted(tallies, key=lambda key: order.get(key[0], len(order)))
        rows = [[*key, *(tallies[key][o] for o in OUTCOMES)] for key in keys]
        return pd.DataFrame(rows, columns=["query", "stream", *OUTCOMES])

    @property
    def totals(self) -> dict[Outcome, int]:
        """The number of outputs of each outcome."""
        tally = Counter(p.outcome for pairs in self.pairs.values() for p in pairs)
        return {outcome: tally[outcome] for outcome in OUTCOMES}

    @property
    def differences(self) -> int:
        """The number of outputs that are not the same."""
        return sum(p.outcome != "same" for pairs in self.pairs.values() for p in pairs)

    @property
    def aggregations(self) -> pd.DataFrame:
        """The number of rows of each aggregation in all durations, and how many differ."""
        rows = [[a, check.rows, len(check.differing)] for a, check in self.checks.items()]
        return pd.DataFrame(rows, columns=["aggregation", "rows", "differing"])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each output: query, stream, outcome, timestamp (ms; the old one if there is one), node, values, new
        values (where they are others), new timestamp, cause (a `RuleCause`; None for `same`)."""
        return self._rows((s, p) for s, pairs in self.pairs.items() for p in pairs)

    def first_differences(self, most: int) -> pd.DataFrame:
        """Rows of `frame` that are not the same, the first ones of all streams by time."""
        return self._rows(sorted(self._differences(), key=lambda difference: place_of(difference[1].alert))[:most])

    def cause(self, stream: str, pair: OutputPair) -> RuleCause:
        """The changes that cause an outcome, each by itself; several if it takes all of them."""
        changes = tuple(c for c in self.changes if self._is_cause(c, stream, pair))
        is_proved = bool(changes)
        changes = changes or self._changes_of_query(pair)
        reason = "; ".join(dict.fromkeys(self._explain(c, pair) for c in changes))
        return RuleCause(changes, reason if is_proved or len(changes) < 2 else f"together: {reason}")

    def summary(self) -> str:
        return f"<RuleComparison of {self.app}: {', '.join(f'{n:,} {o}' for o, n in self.totals.items())}>"

    # ------------------------------------------------------------------------------------------------------ internals

    def _differences(self) -> Iterator[tuple[str, OutputPair]]:
        return ((s, p) for s, pairs in self.pairs.items() for p in pairs if p.outcome != "same")

    def _rows(self, pairs: Iterable[tuple[str, OutputPair]]) -> pd.DataFrame:
        rows = []
        for stream, p in pairs:
            new_values = list(p.after.values) if p.outcome == "other values" and p.after is not None else None
            new_time = p.after.ts if p.outcome == "other time" and p.after is not None else None
            cause = None if p.outcome == "same" else self.cause(stream, p)
            alert = p.alert
            rows.append(
                [alert.query, stream, p.outcome, alert.ts, alert.node, list(alert.values), new_values, new_time, cause]
            )
        columns = ["query", "stream", "outcome", "timestamp", "node", "values", "new values", "new timestamp", "cause"]
        return pd.DataFrame(rows, columns=columns)

    def _is_cause(self, change: Change, stream: str, pair: OutputPair) -> bool:
        """True if the change alone takes the old output away, or brings the new one."""
        if len(self.changes) == 1:
            return True
        run = self.alone.get(change)
        if run is None:
            return False
        for alert, is_old in ((pair.before, True), (pair.after, False)):
            if alert is not None:
                key = (stream, alert.ts, alert.identity)
                fewer, more = run.counts[key] < self.before.counts[key], run.counts[key] > self.before.counts[key]
                if fewer if is_old else more:
                    return True
        return False

    def _changes_of_query(self, pair: OutputPair) -> tuple[Change, ...]:
        """The changes of the query that wrote the output; all of them if it has none."""
        of_query = tuple(c for c in self.changes if c.element == f"query {pair.alert.query}")
        return of_query or self.changes

    def _explain(self, change: Change, pair: OutputPair) -> str:
        """The change, with the values of the event that one text lets pass and the other does not."""
        for before, after in change.comparisons:
            for stream, values in self._events(pair):
                verdicts = [_holds(c, stream, values) for c in (before, after)]
                if None not in verdicts and verdicts[0] != verdicts[1]:
                    yes, no = (before, after) if verdicts[0] else (after, before)
                    name = _attribute_of(before)
                    return f"{name} {values[name]} is {_bound(yes)} and not {_bound(no)}"
        times = [self.recording.event(number)[1] for number in self._numbers(pair)]
        if change.clause == "within" and len(times) > 1:
            bounds = [change.text_before, change.text_after]
            longer, shorter = bounds if pair.before is not None else reversed(bounds)
            if longer and shorter:
                span = describe_duration(max(times) - min(times))
                return f"{span} from first to last event, within {longer} and not {shorter}"
        return str(change)

    def _numbers(self, pair: OutputPair) -> list[int]:
        """The numbers of the events that an output was made of; none if they are not known."""
        return [] if pair.alert.made_of is None else list(events_of(pair.alert.made_of))

    def _events(self, pair: OutputPair) -> Iterator[tuple[str, dict[str, Any]]]:
        """The stream and the values of the events that an output was made of, the last one first."""
        for number in reversed(self._numbers(pair)):
            stream, _, values = self.recording.event(number)
            yield stream, dict(zip(self.recording.schemas[stream].names, values, strict=True))


def _attribute_of(comparison: t.Comparison) -> str:
    variable = comparison.left if isinstance(comparison.left, t.Variable) else comparison.right
    assert isinstance(variable, t.Variable)
    return variable.name


_WORDS = {"==": "", "!=": "other than ", "<": "under ", "<=": "at most ", ">": "over ", ">=": "at least "}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _bound(comparison: t.Comparison) -> str:
    """ "over 300"."""
    if isinstance(comparison.left, t.Variable):
        return _WORDS[comparison.op] + to_text(comparison.right)
    return _WORDS[_TURNED.get(comparison.op, comparison.op)] + to_text(comparison.left)


def _holds(comparison: t.Comparison, stream: str, values: Mapping[str, Any]) -> bool | None:
    """True if a comparison of an attribute with a constant holds for an event; None if it is no such comparison."""
    if not any(isinstance(side, t.Variable) for side in (comparison.left, comparison.right)):
        return None
    sides = []
    for side in (comparison.left, comparison.right):
        match side:
            case t.Variable() if side.name in values:
                sides.append(values[side.name])
            case t.Constant():
                sides.append(side.value)
            case t.TimeConstant():
                sides.append(side.millis)
            case _:
                return None
    if None in sides or isinstance(sides[0], str) != isinstance(sides[1], str):
        return None
    return bool(_SIGNS[comparison.op](*sides))


# ------------------------------------------------------------------------------------------------------------- running


@dataclass(frozen=True)
class RuleTrial:
    """Two texts of an app and how to run them: `nodes` have the old text's plan; `compile` makes a plan of a text, and
    raises SiddhiError."""

    app: str
    texts: TextComparison
    nodes: Nodes
    compile: Callable[[str], Plan]

    def over(self, recording: Recording, way: Way) -> RuleComparison:
        """Compares the outputs over a recording, on one node or several. Raises `Misuse` where the new text reads a
        stream of the recording with other attributes."""
        changes = self.texts.changes
        before = self._run(self.nodes.plan, recording, way)
        new_plan = self.compile(to_text(self.texts.with_changes(changes)))
        after = self._run(new_plan, recording, way) if changes else before
        alone = {}
        if 1 < len(changes) <= MOST_TRIED:
            for change in changes:
                try:
                    plan = self.compile(to_text(self.texts.with_changes([change])))
                except SiddhiError:
                    continue  # it needs another change
                alone[change] = self._run(plan, recording, way, is_traced=False)
        pairs = {}
        for stream in dict.fromkeys([*self.nodes.plan.streams, *new_plan.streams]):
            if stream not in before.alerts and stream not in after.alerts:
                continue
            plan = self.nodes.plan if stream in self.nodes.plan.streams else new_plan
            pairs[stream] = _match_by_query(before.alerts.get(stream, []), after.alerts.get(stream, []), plan, stream)
        one, other = before.rows_by_aggregation, after.rows_by_aggregation
        checks = {a: MergedCheck.of(one.get(a, {}), other.get(a, {})) for a in dict.fromkeys([*one, *other])}
        return RuleComparison(
            self.app, way, self.texts, self.nodes.plan, recording, pairs, checks, before, alone
        )  # fmt: skip

    def _run(self, plan: Plan, recording: Recording, way: Way, *, is_traced: bool = True) -> Run:
        nodes, recording = replace(self.nodes, plan=plan), recording_of(recording, plan)
        plain = replay_nodes(recording, way, nodes)
        alerts = alerts_of(plain, plan, way)
        if is_traced:
            traced_nodes = nodes.with_tracing()
            with_events = alerts_of(replay_nodes(recording, way, traced_nodes), traced_nodes.plan, way)
            # Outputs that tracing changes (a window that counts equal events) have no events.
            alerts = {s: with_events[s] if are_equal(alerts[s], with_events.get(s, [])) else alerts[s] for s in alerts}
        return Run(alerts, {a: merged_rows(plain, d, nodes) for a, d in plan.aggregations.items()})


def recording_of(recording: Recording, plan: Plan) -> Recording:
    """The events of the streams that a plan has. Raises `Misuse` for one with other attributes there."""
    names = {s for item in recording.recorded_events for s in item.batch.rows}
    streams = [s for s in names if s in plan.streams]
    for stream in streams:
        if plan.streams[stream].source.schema != recording.schemas[stream]:
            raise Misuse(f"the new text gives stream {stream} other attributes than its events have")

    def fit(item: Recorded | str) -> Recorded | str:
        if isinstance(item, str):
            return item
        return replace(item, batch=replace(item.batch, rows={s: r for s, r in item.batch.rows.items() if s in streams}))

    return replace(recording, items=[fit(item) for item in recording.items])


def _match_by_query(before: Sequence[Alert], after: Sequence[Alert], plan: Plan, stream: str) -> list[OutputPair]:
    """`match_outputs` for each query, where the same ones write the stream under both texts; else for all together."""
    writers = {a.query for a in before}, {a.query for a in after}
    is_split = all(writers) and (writers[0] <= writers[1] or writers[1] <= writers[0])
    names = sorted(writers[0] | writers[1]) if is_split else None
    keys_by_query = {q.name: _keys(q) for q in plan.queries if q.output.target.id == stream}
    if names is None or len(names) == 1:
        return match_outputs(before, after, next(iter(keys_by_query.values()), ()))
    parts = [
        match_outputs([a for a in before if a.query == n], [a for a in after if a.query == n], keys_by_query.get(n, ()))
        for n in names
    ]
    return sorted((p for part in parts for p in part), key=lambda p: place_of(p.alert))


def _keys(query: Query) -> tuple[int, ...]:
    """The places of a query's attributes that identify its subject: no aggregates, no fractions."""
    items = enumerate(query.select.items)
    return tuple(
        i for i, item in items
        if item.expr.type in _KEYS and not any(isinstance(e, Agg) for e in walk(item.expr))
    )  # fmt: skip
