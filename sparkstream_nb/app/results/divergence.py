"""Outputs that depend on the node which saw the events: the nodes' outputs, compared with one node's.

The truth is one node that takes all events in the order in which they came. An output (of a stream, at a time, with its
values) that both have is the same. Outputs are matched as bags: no order is guessed. The remaining outputs are
distinguished by their lineage (`plan.reports.lineage`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from ...charts.loading import draw_figure
from ...errors import Misuse
from ...journal.routing import Route
from ...plan.distributed.leader import LEADER
from ...plan.output_labels import list_labels, query_of, stream_of
from ...plan.reports.lineage import events_of, held_of
from ...plan.reports.query_routing import ONE_NODE, describe_parts, routed_parts, routing_of
from ...replay.replay import ONE, Merged, Nodes, Recording, Way, merged_rows, replay_nodes
from ...replay.replay_progress import current_progress
from ...replay.study_tasks import Input
from ..pictures.timeline_picture import OutputPlaces, divergence_picture
from .frontend import Displayed
from .output_matching import Alert, Alerts, alerts_of, are_equal, frozen, pair_outputs, place_of
from .selection_criteria import SharedSelection

if TYPE_CHECKING:
    from ...charts.loading import Figure
    from .moment import Moment, MomentSource

Verdict = Literal["same", "lost", "spurious", "late", "duplicated"]
VERDICTS: tuple[Verdict, ...] = ("same", "lost", "spurious", "late", "duplicated")
_SHOWN = 4
_TEXT = 200
"""Characters of an output's values in a figure."""
_ENDS = 3
"""The number of first and of last events of an aggregate that a cause names."""
_SAME_CLOCK = 64
"""Moments with the same clock among which the one of an output is looked for."""
FEW_EVENTS = 2_000
"""Events of a recording up to which causes name several events that an aggregate held; else the first and the last."""


@dataclass(frozen=True, eq=False)
class Match:
    """A verdict on an output of the truth, of the nodes, or of both."""

    verdict: Verdict
    true: Alert | None
    found: Alert | None

    @property
    def alert(self) -> Alert:
        """The alert of one node, else of the nodes."""
        alert = self.true or self.found
        assert alert is not None
        return alert


def match(truth: Sequence[Alert], outputs: Sequence[Alert]) -> list[Match]:
    """Match each output of the truth with the outputs of the nodes.

    `same`: both have it, at the same time. `late`: from the same events with the same values, at another time.
    `duplicated`: a further copy of an output that the truth has. `spurious`: the truth has none. `lost`: no node has
    it.
    """
    out: list[Match] = []

    def pair(
        verdict: Verdict, ones: Sequence[Alert], others: Sequence[Alert], key: Callable[[Alert], Any]
    ) -> tuple[list[Alert], list[Alert]]:
        pairs, left_ones, left_others = pair_outputs(ones, others, key)
        out.extend(Match(verdict, true, output) for true, output in pairs)
        return left_ones, left_others

    left_true, left_found = pair("same", truth, outputs, lambda a: (a.times, a.identity, a.origin))
    left_true, left_found = pair("same", left_true, left_found, lambda a: (a.times, a.identity))
    known_true = [a for a in left_true if a.origin is not None]
    known_found = [a for a in left_found if a.origin is not None]
    rest_true, rest_found = pair("late", known_true, known_found, lambda a: (a.identity, a.origin))
    left_true = [*(a for a in left_true if a.origin is None), *rest_true]
    left_found = [*(a for a in left_found if a.origin is None), *rest_found]
    had = {(a.times, a.identity) for a in truth}
    true_keys = {(a.identity, a.origin) for a in truth if a.origin is not None}
    for a in left_found:
        again = (a.times, a.identity) in had or (a.identity, a.origin) in true_keys
        out.append(Match("duplicated" if again else "spurious", None, a))
    out += [Match("lost", a, None) for a in left_true]
    return sorted(out, key=lambda m: place_of(m.alert))


def _match_by_query(truth: Sequence[Alert], outputs: Sequence[Alert]) -> list[Match]:
    """`match` for each query: an output of another one is not its own."""
    queries = dict.fromkeys(a.query for a in (*truth, *outputs))
    matches = [
        m
        for query in queries
        for m in match([a for a in truth if a.query == query], [a for a in outputs if a.query == query])
    ]
    return sorted(matches, key=lambda m: place_of(m.alert))


# ------------------------------------------------------------------------------------------------------------- causes


@dataclass(frozen=True)
class Origin:
    """An event that an output was computed from."""

    stream: str
    timestamp: int
    node: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.stream}{list(self.values)} on {self.node}"


@dataclass(frozen=True)
class Cause:
    """Cause of an output: the events that it was computed from, or would have been. For an aggregate that `held`
    events, the first and the last few.
    """

    reason: str
    events: tuple[Origin, ...] = ()
    held: int = 0

    def __str__(self) -> str:
        some = [str(e) for e in self.events[:_SHOWN]]
        more = len(self.events) - len(some)
        if not some:
            return self.reason
        if self.held > len(self.events):
            half = len(self.events) // 2
            first, last = (", ".join(map(str, part)) for part in (self.events[:half], self.events[half:]))
            return f"{self.reason}: {self.held} events, from {first} to {last}"
        return f"{self.reason}: {', '.join(some)}{f' and {more} more' if more else ''}"


@dataclass(frozen=True, repr=False, eq=False)
class Divergence(Displayed):
    """The outputs of an app's nodes, compared with one node's.

    `matches` are by derived stream; `queries` names those that write it, and each `Alert` its own; `shards` names the
    nodes. `merged` holds the aggregations' merged rows against one node's. `warning` says why causes are missing.
    """

    truth: Truth
    way: Way
    matches: Mapping[str, Sequence[Match]]
    queries: Mapping[str, str]
    shards: Sequence[str]
    merged: Mapping[str, MergedCheck]
    warning: str | None = None

    @property
    def app(self) -> str:
        """The app's name."""
        return self.truth.app

    @property
    def nodes(self) -> int:
        """The number of nodes that share the events; a leader, which takes all, is not one of them."""
        return len(self.shards) - (self.truth.nodes.led is not None)

    @cached_property
    def origins(self) -> Origins:
        """The events that outputs are computed from."""
        return Origins(self.truth.recording, self.way, self.shards)

    @cached_property
    def verdict_counts(self) -> Mapping[str, Counter[Verdict]]:
        """The number of outputs of each stream by verdict."""
        return {stream: Counter(m.verdict for m in matches) for stream, matches in self.matches.items()}

    def places(self, stream: str) -> OutputPlaces:
        """The outputs of a stream as they lie in a time line."""
        if stream not in self._places:
            self._places[stream] = OutputPlaces.of(self.matches[stream])
        return self._places[stream]

    def values_of(self, stream: str, attribute: str) -> pd.Series[Any]:
        """An attribute of the outputs of a stream, one value for each of its matches."""
        if (stream, attribute) not in self._values:
            number = self.truth.nodes.plan.schema(stream).names.index(attribute)
            values = [m.alert.values[number] for m in self.matches[stream]]
            self._values[stream, attribute] = pd.Series(values, dtype=object)
        return self._values[stream, attribute]

    @cached_property
    def _values(self) -> dict[tuple[str, str], pd.Series[Any]]:
        return {}

    @cached_property
    def _places(self) -> dict[str, OutputPlaces]:
        return {}

    def events_behind(self, alert: Alert) -> list[Origin]:
        """All events that an output was computed from; empty if it was not traced."""
        return [] if alert.made_of is None else [self.origins.of(number) for number in events_of(alert.made_of)]

    @property
    def selection(self) -> SharedSelection | None:
        """The selection of the app whose own input this is; None for another input."""
        return self.truth.selection

    @property
    def has_moments(self) -> bool:
        """True if `moment_of` can be asked: the input is the app's own."""
        return self.truth.moments is not None

    def moment_of(self, stream: str, m: Match, *, on_one_node: bool) -> Moment:
        """The moment that brought an output of a stream: on these nodes, or on one that takes all events. Raises
        `Misuse` if there is none, or the input is not the app's own."""
        alert = m.true if on_one_node else m.found
        if self.truth.moments is None or alert is None:
            raise Misuse(f"there is no moment of this output of {stream}")
        source = self.truth.moments(ONE if on_one_node else self.way)
        positions = source.history().output_positions(stream, alert.clock, alert.node or 0)
        for position in positions[:_SAME_CLOCK]:
            moment = source.moment(position)
            if any(o.query == alert.query and frozen(o.values) == alert.identity for o in moment.outputs):
                return moment
        raise Misuse(f"there is no moment of this output of {stream}")

    def rerouted(self, nodes: int, routing: str) -> Divergence:
        """The same input over another number of nodes, or under another routing."""
        Route.parse(routing, nodes, self.truth.recording.schemas)
        return self.truth.against(Way(nodes, routing))

    @property
    def counts(self) -> pd.DataFrame:
        """The number of outputs of each verdict, by query and stream: a row for each query that writes a stream with
        outputs, and for each stream with outputs that none writes."""
        plan = self.truth.nodes.plan
        tallies: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for stream, matches in self.matches.items():
            for m in matches:
                tallies[m.alert.query, stream][m.verdict] += 1
        queries_and_streams = [(query_of(label, plan), stream_of(label)) for label in list_labels(plan)]
        order = dict.fromkeys([*((q, s) for q, s in queries_and_streams if s in self.matches), *tallies])
        rows = [[*key, *(tallies[key][v] for v in VERDICTS)] for key in order]
        return pd.DataFrame(rows, columns=["query", "stream", *VERDICTS])

    @property
    def events(self) -> int:
        """The number of events that came in."""
        return self.truth.recording.events

    @property
    def repairs(self) -> dict[str, str | None]:
        """By query with outputs that differ, the routing that gives its outputs of one node, `hash:ATTRIBUTE`; None:
        any should, or the app is routed so already. "one node": no routing does."""
        counts = self.counts
        wrong = counts.loc[counts[list(VERDICTS[1:])].sum(axis=1) > 0, "query"]
        plan = self.truth.nodes.plan
        routings = {q.name: routing_of(q, plan) for q in plan.queries}
        routing_by_query = {q: routings.get(q) for q in wrong if q}
        return {q: None if r == self.way.route else r for q, r in routing_by_query.items()}

    @property
    def advice(self) -> str:
        """The routing that repairs each query whose outputs differ, in words; "" if there is nothing to say."""
        by_routing: dict[str, list[str]] = {}
        for query, routing in self.repairs.items():
            if routing is not None:
                by_routing.setdefault(routing, []).append(query)
        reasons = {q.name: q.safety.reason for q in self.truth.nodes.plan.queries}
        lines = [f"{r} repairs {', '.join(q)}." for r, q in by_routing.items() if r != ONE_NODE]
        lines += [f"No routing repairs {q}: {reasons[q]}." for q in by_routing.get(ONE_NODE, [])]
        parts = routed_parts(self.truth.nodes.plan)
        if len([p for p in parts if p.routing != ONE_NODE]) > 1 and by_routing:
            lines.append(f"No one routing does for all: split the app into {describe_parts(parts)}.")
        return " ".join(lines)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each output: query, verdict, timestamp (ms; the truth's where it has the output), node, values,
        cause (a `Cause`; None for `same`)."""
        return self._list_matches((s, m) for s, matches in self.matches.items() for m in matches)

    @property
    def differences(self) -> int:
        """The number of outputs that differ."""
        return sum(m.verdict != "same" for matches in self.matches.values() for m in matches)

    def first_differences(self, most: int) -> pd.DataFrame:
        """The first rows of `frame` that are not the same."""
        differing = ((s, m) for s, matches in self.matches.items() for m in matches if m.verdict != "same")
        return self._list_matches(islice(differing, most))

    def _list_matches(self, matches: Iterable[tuple[str, Match]]) -> pd.DataFrame:
        rows = []
        for stream, m in matches:
            node = None if m.found is None or m.found.node is None else self.shards[m.found.node]
            cause = None if m.verdict == "same" else self.cause(m)
            alert = m.alert
            rows.append([m.alert.query or self.queries[stream], m.verdict, alert.ts, node, list(alert.values), cause])
        return pd.DataFrame(rows, columns=["query", "verdict", "timestamp", "node", "values", "cause"])

    @property
    def aggregations(self) -> pd.DataFrame:
        """The number of merged rows of each aggregation in all durations, and how many differ from one node's."""
        rows = [[a, check.rows, len(check.differing)] for a, check in self.merged.items()]
        return pd.DataFrame(rows, columns=["aggregation", "rows", "differing"])

    @property
    def diverges(self) -> bool:
        """True if any output or merged row differs from the truth."""
        return self.differences > 0 or any(check.differing for check in self.merged.values())

    def cause(self, m: Match) -> Cause:
        """The reason why an output differs from the truth's."""
        alert = m.true if m.verdict == "lost" else m.found
        assert alert is not None
        if alert.made_of is None:
            return Cause("not traced")
        held_events, numbers = held_of(alert.made_of), events_of(alert.made_of)
        if held_events and len(numbers) > 2 * _ENDS:
            numbers = [*numbers[:_ENDS], *numbers[-_ENDS:]]
        events = tuple(map(self.origins.of, numbers))
        nodes = list(dict.fromkeys(e.node for e in events))
        node_name = "a node" if alert.node is None else self.shards[alert.node]
        match m.verdict:
            case "lost" if held_events > len(events):
                reason = "its input is divided over the nodes"
            case "lost" if len(nodes) > 1:
                reason = f"split over {len(nodes)} nodes"
            case "lost":
                reason = f"{nodes[0] if nodes else 'no node'} had it in other company"
            case "spurious" if held_events:
                reason = f"{node_name} held no more than its share"
            case "late":
                assert m.true is not None
                by = alert.clock - m.true.clock
                reason = f"put out {abs(by):,} ms {'later' if by > 0 else 'earlier'} than by one node"
            case "duplicated":
                reason = "several nodes put it out"
            case _:
                reason = f"{node_name} missed the event that prevents it"
        return Cause(reason, events, held_events)

    @property
    def figure(self) -> Figure:
        """The outputs of one node and of each node by the app's clock, coloured by verdict, as a Plotly figure. Raises
        SparkStreamError where Plotly is not installed."""
        return draw_figure(divergence_picture(self))

    def _lane(self, alert: Alert | None) -> str:
        return self.shards[alert.node or 0] if alert is not None else ""

    def summary(self) -> str:
        total = Counter(m.verdict for matches in self.matches.values() for m in matches)
        return f"<Divergence of {self.app}: {', '.join(f'{total[v]:,} {v}' for v in VERDICTS)}>"


@dataclass(eq=False)
class Origins:
    """The events of a recording by number, with the node that each went to."""

    recording: Recording
    way: Way
    shards: Sequence[str]
    _nodes: dict[int, Any] = field(default_factory=dict)

    def of(self, number: int) -> Origin:
        """The event of a number."""
        stream, ts, values = self.recording.event(number)
        return Origin(stream, ts, self.shards[self._node(number)], tuple(values))

    def _node(self, number: int) -> int:
        place, stream, row = self.recording.locate(number)
        if place not in self._nodes:
            self._nodes[place] = self.way.places(self.recording, self.recording.recorded_events[place])
        return int(self._nodes[place][stream][row])


@dataclass(frozen=True)
class _ReplayedOutputs:
    """The outputs of nodes, plain and with lineage, and the merged rows of their aggregations."""

    plain: Alerts
    traced_alerts: Alerts
    merged: Mapping[str, Merged]

    def is_traceable(self, stream: str) -> bool:
        """True if tracing changed no output of a stream."""
        return are_equal(self.plain.get(stream, []), self.traced_alerts.get(stream, []))


class Truth:
    """The outputs of one node that takes all of a recording. `shards` names the nodes."""

    def __init__(
        self,
        app: str,
        source: Input,
        nodes: Nodes,
        shards: Sequence[str],
        moments: Callable[[Way], MomentSource] | None = None,
        selection: SharedSelection | None = None,
    ) -> None:
        """If the recording is the app's own input, `moments` gives its moments, and `selection` is the app's. Raises
        SparkStreamError if the recording's beginning is not kept any more."""
        self.moments, self.selection = moments, selection
        self.app, self.source, self.nodes, self.shards = app, source, nodes, shards
        self.recording = source.read()
        self._traced_nodes = nodes.with_tracing(every=self.recording.events <= FEW_EVENTS)

    def against(self, way: Way) -> Divergence:
        """The divergence of nodes that take the recording in a `way`."""
        return next(self.against_each([way]))

    def against_each(self, ways: Sequence[Way]) -> Iterator[Divergence]:
        """The divergences of nodes that take the recording in several ways."""
        leaders = sum(self.nodes.split_plans(way) is not None for way in ways)
        replays = 2 * (sum(way.nodes for way in ways) + leaders + ("_own" not in vars(self)))
        current_progress().expect(replays * self.recording.steps)
        return map(self._compare, ways)

    def _compare(self, way: Way) -> Divergence:
        plan, true_outputs, way_outputs = self.nodes.plan, self._own, self._replay_outputs(way)
        here = [s for s in plan.streams if s in true_outputs.plain or s in way_outputs.plain]
        # Tracing changes the outputs of a window that counts equal events, for example.
        untraced_streams = [s for s in here if not all(x.is_traceable(s) for x in (true_outputs, way_outputs))]
        matches = {}
        for s in here:
            one, two = (x.plain if s in untraced_streams else x.traced_alerts for x in (true_outputs, way_outputs))
            matches[s] = _match_by_query(one.get(s, []), two.get(s, []))
        writers = {s: ", ".join(q.name for q in plan.queries if q.output.target.id == s) for s in here}
        warning = (
            f"outputs of {', '.join(untraced_streams)} could not be traced to their events"
            if untraced_streams
            else None
        )
        shards = self._names(way)
        merged_checks = {a: MergedCheck.of(true_outputs.merged[a], way_outputs.merged[a]) for a in true_outputs.merged}
        return Divergence(self, way, matches, writers, shards, merged_checks, warning)

    @cached_property
    def _own(self) -> _ReplayedOutputs:
        return self._replay_outputs(ONE)

    def _names(self, way: Way) -> list[str]:
        """The shard ids of the nodes, and of the leader if there is one."""
        if way.route is None:
            return list(self.shards)
        node_names = self.shards if self.nodes.led is None else [s for s in self.shards if s != LEADER]
        names = list(node_names) if way.nodes == len(node_names) else [f"node-{i + 1}" for i in range(way.nodes)]
        return names if self.nodes.led is None else [*names, LEADER]

    def _replay_outputs(self, way: Way) -> _ReplayedOutputs:
        plain, traced_replay = (replay_nodes(self.recording, way, n) for n in (self.nodes, self._traced_nodes))
        rows_by_aggregation = {a: merged_rows(plain, d, self.nodes) for a, d in self.nodes.plan.aggregations.items()}
        return _ReplayedOutputs(
            alerts_of(plain, self.nodes.plan, way), alerts_of(traced_replay, self._traced_nodes.plan, way),
            rows_by_aggregation,
        )  # fmt: skip


@dataclass(frozen=True)
class MergedCheck:
    """The merged rows of an aggregation compared with one node's: their number, and the differing ones, each as
    (duration, start of the bucket in ms, group, one node's values, merged values); None for a missing row.
    """

    rows: int
    differing: Sequence[tuple[str, int, tuple[Any, ...], list[Any] | None, list[Any] | None]]

    @staticmethod
    def of(truth: Merged, rows_of_way: Merged) -> MergedCheck:
        """Doubles are equal up to the order in which they were added."""
        keys = list(dict.fromkeys([*truth, *rows_of_way]))
        differing = [
            (*k, truth.get(k), rows_of_way.get(k)) for k in keys if not _equal(truth.get(k), rows_of_way.get(k))
        ]
        return MergedCheck(len(truth), differing)


def _equal(one: list[Any] | None, two: list[Any] | None) -> bool:
    if one is None or two is None:
        return False
    return all(map(_close, one, two))


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (a != a and b != b)
    return bool(a == b)
