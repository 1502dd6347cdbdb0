"""Outputs under another text of the app, compared with outputs under its own, and the clause that causes a difference.

Both texts take the same events. An output of either one is paired with one of the other (`match_outputs`). A cause is
proved by trying: the old text with one change alone is run too, and a change causes the outputs that differ then.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from ...durations import describe_duration
from ...lang import tree as t
from ...lang.clause_changes import Change, TextComparison
from ...lang.printer import to_text
from ...plan.nodes import Plan
from ...plan.reports.lineage import events_of
from ...replay.replay import Recording, Way
from .compared_tables import ComparedTable
from .divergence import MergedCheck
from .frontend import Displayed
from .output_blocks import OutputBlock
from .output_matching import Alert, pair_outputs, place_of
from .topology_share import Source, Surplus, TopologyShare, brings

Outcome = Literal["same", "gone", "new", "other values", "other time"]
OUTCOMES: tuple[Outcome, ...] = ("same", "gone", "new", "other values", "other time")
NOT_JUDGED = "not judged"
MOST_SAME = MOST_DIFFERENCES = 1_000_000
"""The number of equal outputs of a stream that are kept and not only counted, and of different ones that are judged."""
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
class ComparedStream:
    """The outputs of a stream under both texts: `pairs` have all that differ, in the order of time. Others are counted
    by query in `same`; the first `MOST_SAME` of them are in `same_blocks`. Outputs in `not_judged`, by query too, came
    within the time of warming up, or after `MOST_DIFFERENCES` that differ.
    """

    pairs: Sequence[OutputPair]
    same: Mapping[str, int]
    same_blocks: Sequence[OutputBlock]
    not_judged: Mapping[str, int]

    @cached_property
    def all_pairs(self) -> list[OutputPair]:
        """All pairs, in the order of time."""
        same = (OutputPair("same", a, a) for block in self.same_blocks for a in block.alerts())
        return sorted([*self.pairs, *same], key=lambda p: place_of(p.alert))


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

    `texts` is the comparison of the two, `notes` say what the comparison cannot tell. `alone` has, for each change with
    which the old text compiles, the equal outputs that come more often, or less, with this change alone. `topology`
    holds both texts against one node, where they ran on several. `tables` are compared after the last event.
    """

    app: str
    way: Way
    texts: TextComparison
    plan: Plan
    recording: Recording
    streams: Mapping[str, ComparedStream]
    checks: Mapping[str, MergedCheck]
    notes: tuple[str, ...] = ()
    alone: Mapping[Change, Surplus] = field(default_factory=dict)
    topology: TopologyShare | None = None
    tables: Mapping[str, ComparedTable] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The clauses that differ."""
        return self.texts.changes

    @property
    def events(self) -> int:
        """The number of events that came in."""
        return self.recording.events

    @cached_property
    def pairs(self) -> dict[str, list[OutputPair]]:
        """The outputs of both texts by derived stream of the old one, in the order of time."""
        return {stream: outputs.all_pairs for stream, outputs in self.streams.items()}

    @cached_property
    def counts(self) -> pd.DataFrame:
        """The number of outputs of each outcome, by query and stream; those that are not judged too, if any."""
        tallies: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for stream, outputs in self.streams.items():
            for p in outputs.pairs:
                tallies[p.alert.query, stream][p.outcome] += 1
            for outcome, counts in (("same", outputs.same), (NOT_JUDGED, outputs.not_judged)):
                for query, count in counts.items():
                    tallies[query, stream][outcome] += count
        order = {q.name: i for i, q in enumerate(self.plan.queries)}
        keys = sorted(tallies, key=lambda key: order.get(key[0], len(order)))
        outcomes = [*OUTCOMES, *([NOT_JUDGED] if any(t[NOT_JUDGED] for t in tallies.values()) else [])]
        rows = [[*key, *(tallies[key][o] for o in outcomes)] for key in keys]
        return pd.DataFrame(rows, columns=["query", "stream", *outcomes])

    @property
    def totals(self) -> dict[str, int]:
        """The number of outputs of each outcome, and of the outputs that are not judged, if any."""
        return {str(o): int(self.counts[o].sum()) for o in self.counts.columns[2:]}

    @property
    def differences(self) -> int:
        """The number of outputs that are not the same."""
        return sum(1 for _ in self._differences())

    @cached_property
    def by_change(self) -> pd.DataFrame:
        """A row for each change: in, clause, before, after, and the number of outputs of each outcome but `same`
        that it causes. Where several are needed, each counts."""
        tally = Counter((c, p.outcome) for s, p in self._differences() for c in self._causes(s, p)[0])
        rows = [
            [c.element, c.clause, c.text_before, c.text_after, *(tally[c, o] for o in OUTCOMES[1:])]
            for c in self.changes
        ]
        return pd.DataFrame(rows, columns=["in", "clause", "before", "after", *OUTCOMES[1:]])

    @property
    def aggregations(self) -> pd.DataFrame:
        """The number of rows of each aggregation in all durations, and how many differ."""
        rows = [[a, check.rows, len(check.differing)] for a, check in self.checks.items()]
        return pd.DataFrame(rows, columns=["aggregation", "rows", "differing"])

    @property
    def table_counts(self) -> pd.DataFrame:
        """The number of rows of each table after the last event, and how many differ; `tables["T"].frame` has them."""
        outcomes = ("gone", "new", "other values")
        rows = [[id, table.rows, *(table.counts[o] for o in outcomes)] for id, table in self.tables.items()]
        return pd.DataFrame(rows, columns=["table", "rows", *outcomes])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each output: query, stream, outcome, timestamp (ms; the old one if there is one), node, values, new
        values (where they are others), new timestamp, cause (a `RuleCause`; None for `same`), and its source:
        the `text` or, where one node has no such difference, the `nodes` (missing for `same`)."""
        return self._rows((s, p) for s, pairs in self.pairs.items() for p in pairs)

    def first_differences(self, most: int) -> pd.DataFrame:
        """Rows of `frame` that are not the same, the first ones of all streams by time."""
        return self._rows(sorted(self._differences(), key=lambda difference: place_of(difference[1].alert))[:most])

    def cause(self, stream: str, pair: OutputPair) -> RuleCause:
        """The changes that cause an outcome, each by itself; several if it takes all of them."""
        changes, is_proved = self._causes(stream, pair)
        reason = "; ".join(dict.fromkeys(self._explain(c, pair) for c in changes))
        return RuleCause(changes, reason if is_proved or len(changes) < 2 else f"together: {reason}")

    def source_of(self, stream: str, pair: OutputPair) -> Source:
        """`text`, or `nodes` if one node that takes all events does not have this difference."""
        return "text" if self.topology is None else self.topology.source_of(stream, pair.before, pair.after)

    @cached_property
    def by_source(self) -> dict[Source, int]:
        """The number of outputs that are not the same, by their origin: `text` or `nodes`."""
        counts = Counter(self.source_of(stream, pair) for stream, pair in self._differences())
        return {"text": counts["text"], "nodes": counts["nodes"]}

    def summary(self) -> str:
        return f"<RuleComparison of {self.app}: {', '.join(f'{n:,} {o}' for o, n in self.totals.items())}>"

    # ------------------------------------------------------------------------------------------------------ internals

    def _differences(self) -> Iterator[tuple[str, OutputPair]]:
        return ((s, p) for s, c in self.streams.items() for p in c.pairs if p.outcome != "same")

    def _rows(self, pairs: Iterable[tuple[str, OutputPair]]) -> pd.DataFrame:
        rows = []
        for stream, p in pairs:
            new_values = list(p.after.values) if p.outcome == "other values" and p.after is not None else None
            new_time = p.after.ts if p.outcome == "other time" and p.after is not None else None
            cause = None if p.outcome == "same" else self.cause(stream, p)
            source = None if p.outcome == "same" else self.source_of(stream, p)
            alert = p.alert
            rows.append([
                alert.query, stream, p.outcome, alert.ts, alert.node, list(alert.values), new_values, new_time, cause,
                source,
            ])  # fmt: skip
        columns = [
            "query", "stream", "outcome", "timestamp", "node", "values", "new values", "new timestamp", "cause",
            "due to",
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns).astype({"new timestamp": "Int64"})

    def _causes(self, stream: str, pair: OutputPair) -> tuple[tuple[Change, ...], bool]:
        """The changes that cause an outcome; and true if each does so by itself."""
        changes = tuple(c for c in self.changes if self._is_cause(c, stream, pair))
        return changes or self._changes_of_query(pair), bool(changes)

    def _is_cause(self, change: Change, stream: str, pair: OutputPair) -> bool:
        """True if the change alone takes the old output away, or brings the new one."""
        if len(self.changes) == 1:
            return True
        surplus = self.alone.get(change, {})
        return brings(surplus, stream, pair.before, pair.after)

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
