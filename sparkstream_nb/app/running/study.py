"""What-if studies: an app's outputs on other numbers of nodes, under other routings."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ...charts.picture import Picture
from ...errors import Misuse
from ...journal.inbox import Inbox
from ...journal.routing import Route
from ...nodes.tallies import Tally
from ...plan.nodes import Plan
from ...plan.output_labels import list_labels, query_of, stream_of
from ...replay.replay import Nodes, Way
from ...replay.study_tasks import Input, RoutingOutcome, StudyInput, run_study
from ...sources.disorder import Disorder
from ...sources.feed_check import check_source
from ...sources.feed_cursor import FeedCursor, Spacing
from ...sources.recordings import RecordingFile
from ...types import Schema, Type
from ..pictures.study_picture import study_picture
from ..results.plotly_results import Pictured
from . import feeding
from .source_reading import Reading
from .source_shapes import shape_of

IN_ORDER = "in order"
_COUNTS = ("same", "lost", "spurious", "duplicated")
_MOST_KEYS = 6
_NEARLY_ALL = 0.9


@dataclass(frozen=True, repr=False, eq=False)
class Study(Pictured):
    """The outputs of an app on several numbers of nodes under several routings, counted against one node's.

    An output that comes at another time counts as one lost and one spurious.
    """

    app: str
    outcomes: Sequence[RoutingOutcome]
    queries: Mapping[str, str]
    """Derived streams, or labels of them (`plan.output_labels`), and the queries that write them."""
    disordered: Mapping[str, Sequence[RoutingOutcome]] = field(default_factory=dict)
    """By disorder, the outcomes of its events, counted against one node that takes them in order."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each combination: nodes, routing, same, lost, spurious, duplicated, and skew: how many events the
        busiest node took, to the mean of all. With disorders, their column is the first; `in order` is none."""
        rows = [[o.way.nodes, o.way.route, *_counts(o), _skew(o)] for o in self.outcomes]
        names = ["nodes", "routing", *_COUNTS, "skew"]
        if not self.disordered:
            return pd.DataFrame(rows, columns=names)
        rows = [[IN_ORDER, *row] for row in rows]
        for name, outcomes in self.disordered.items():
            rows += [[name, o.way.nodes, o.way.route, *_counts(o), _skew(o)] for o in outcomes]
        return pd.DataFrame(rows, columns=["disorder", *names])

    @cached_property
    def by_query(self) -> pd.DataFrame:
        """A row for each combination and query: nodes, routing, query, stream, same, lost, spurious, duplicated."""
        rows = [
            [o.way.nodes, o.way.route, self.queries[s], stream_of(s), *(getattr(t, c) for c in _COUNTS)]
            for o in self.outcomes
            for s, t in o.tallies.items()
        ]
        return pd.DataFrame(rows, columns=["nodes", "routing", "query", "stream", *_COUNTS])

    @cached_property
    def routings(self) -> list[_Rated]:
        """The routings, the one that repairs most first: most queries, then most outputs, then with the least skew."""
        several = [o for o in self.outcomes if o.way.nodes > 1]
        routes = dict.fromkeys(str(o.way.route) for o in several)
        ratings = [_Rated.of(r, [o for o in several if o.way.route == r], self.queries) for r in routes]
        return sorted(ratings, key=lambda r: (len(r.wrong), sum(map(_wrong, r.outcomes)), r.skew))

    @property
    def best(self) -> str | None:
        """The routing that repairs most; None if only one node was tried."""
        return self.routings[0].route if self.routings else None

    @cached_property
    def recommendation(self) -> str:
        """The routing that repairs most, the rest that it does not repair, and its cost in skew."""
        if not any(sum(o.events) for o in self.outcomes):
            return "No events yet: feed the app, or give a feed."
        if not any(any(_counts(o)) for o in self.outcomes):
            return "No query has an output, on one node or on several: there is nothing to compare."
        if not self.routings:
            return "One node alone gives its own outputs: study several."
        best = self.routings[0]
        if not best.wrong:
            return f"{best.route} gives the outputs of one node on every number of nodes; {best.cost}."
        right = f" It repairs {', '.join(best.right)}." if best.right else ""
        most = max(best.outcomes, key=_wrong)
        same, lost_outputs, spurious, duplicates = _counts(most)
        differ = (
            f"with {best.route} {lost_outputs:,} lost, {spurious:,} spurious and {duplicates:,} duplicated on "
            f"{most.way.nodes} nodes, {same:,} the same."
        )
        evener = next((r for r in self.routings[1:] if r.right == best.right and r.skew < 0.9 * best.skew), None)
        also = f" {evener.route} repairs the same queries, and {evener.cost}." if evener and best.right else ""
        others = "".join(
            f" {route} repairs {', '.join(queries)}." for route, queries in self._others_of(best.wrong).items()
        )
        never = [q for q in best.wrong if self.repairs[q] is None]
        nothing = (
            f"No routing tried repairs {', '.join(never)}" if never
            else "No routing tried repairs all: split the app into one for each routing"
        )  # fmt: skip
        return f"{best.route} repairs most; {best.cost}.{right}{also}{others} {nothing}: {differ}"

    @cached_property
    def repairs(self) -> dict[str, str | None]:
        """By query (by stream where none writes it), the routing that gives its outputs of one node on every number of
        nodes; of several, the one that repairs most of the others. None: no routing that was tried."""
        names = dict.fromkeys(_name_of(s, q) for s, q in self.queries.items())
        return {n: next((r.route for r in self.routings if n in r.right), None) for n in names}

    def _others_of(self, queries: Sequence[str]) -> dict[str, list[str]]:
        """By routing, the `queries` that it repairs."""
        out: dict[str, list[str]] = {}
        for query in queries:
            if (route := self.repairs[query]) is not None:
                out.setdefault(route, []).append(query)
        return out

    def picture(self) -> Picture:
        """Heat maps of the outputs that differ by number of nodes and routing."""
        return study_picture(self)

    def summary(self) -> str:
        return f"<Study of {self.app}: {len(self.outcomes):,} combinations. {self.recommendation}>"


@dataclass(frozen=True)
class _Rated:
    """A routing with its outcomes on several nodes, the queries that it repairs on all numbers of nodes, and others."""

    route: str
    outcomes: Sequence[RoutingOutcome]
    right: Sequence[str]
    wrong: Sequence[str]

    @staticmethod
    def of(route: str, outcomes: Sequence[RoutingOutcome], queries: Mapping[str, str]) -> _Rated:
        wrong = {
            _name_of(s, queries[s])
            for o in outcomes
            for s, t in o.tallies.items()
            if t.lost or t.spurious or t.duplicated
        }
        names = {_name_of(s, q) for s, q in queries.items()}
        return _Rated(route, outcomes, sorted(names - wrong), sorted(wrong))

    @property
    def skew(self) -> float:
        return max(map(_skew, self.outcomes))

    @property
    def share(self) -> float:
        """The largest part of all events that one of several nodes takes."""
        return max((max(o.events) / sum(o.events) for o in self.outcomes if sum(o.events)), default=0.0)

    @property
    def cost(self) -> str:
        if self.share > _NEARLY_ALL:
            return f"one node takes {self.share:.0%} of all events, and so does nearly all the work"
        skew_text = f"the busiest node takes up to {self.skew:.2f} times the mean"
        return skew_text if self.skew > 1.005 else "all nodes take the same"


def _name_of(label: str, query: str) -> str:
    """The query, or the stream where none writes it, as that of a trigger."""
    return query or stream_of(label)


def _counts(o: RoutingOutcome) -> list[int]:
    return [sum(getattr(t, c) for t in o.tallies.values()) for c in _COUNTS]


def _wrong(o: RoutingOutcome) -> int:
    return sum(t.lost + t.spurious + t.duplicated for t in o.tallies.values())


def _skew(o: RoutingOutcome) -> float:
    total = sum(o.events)
    return max(o.events) * o.way.nodes / total if total else 1.0


def candidates(plan: Plan) -> list[str]:
    """The routings that a study tries by default: round robin, at random, each input stream to one
    node, and by each attribute that could be a key: first those named by the analysis, then texts.
    """
    inputs = [plan.streams[s] for s in plan.input_streams]
    key_names = [a for q in plan.queries for _, a in q.safety.keys]
    names = {a.name for d in inputs for a in d.source.schema}
    texts = [a.name for d in inputs for a in d.source.schema if a.type is Type.STRING]
    keys = [k for k in dict.fromkeys([*key_names, *texts]) if k in names][:_MOST_KEYS]
    sticky = ["sticky"] if len(inputs) > 1 else []
    return ["round_robin", "random:1", *sticky, *(f"hash:{k}" for k in keys)]


@dataclass(eq=False)
class Material:
    """The input of a study: a recording on disk, and a name for it. A folder of its own goes with it."""

    source: Input
    key: str
    temporary_folder: Path | None = field(default=None)

    def __post_init__(self) -> None:
        if self.temporary_folder is not None:
            weakref.finalize(self, shutil.rmtree, self.temporary_folder, ignore_errors=True)


def material(
    target: feeding.FeedTarget,
    sources: Mapping[str, Any],
    reading: Reading,
    schemas: Mapping[str, Schema],
    disorder: Disorder | None = None,
) -> Material:
    """A recording of feeds by stream, merged by event time; those without one come one after the other. A disorder
    needs event times.

    Raises SparkStreamError for a source that is no feed.
    """
    readings = reading.by_stream({stream: schemas[stream] for stream in sources})
    folder = Path(tempfile.mkdtemp(prefix="study-", dir=target.inbox.folder.parent))
    inbox = Inbox(folder)
    replay_material = Material(Input(str(folder), schemas, 1, -1), str(folder), folder)
    shapes = {stream: shape_of(readings[stream], stream, schemas[stream]) for stream in sources}
    for stream, source in sources.items():
        shapes[stream] = check_source(source, shapes[stream])
    feed_sources = [feeding.FeedSource(source, shapes[stream]) for stream, source in sources.items()]
    sources_with_time = [s for s in feed_sources if s.shape.time is not None]
    if disorder is not None and len(sources_with_time) < len(feed_sources):
        raise Misuse("disorder goes by event time: name its column with time=")
    for together in (sources_with_time, *([s] for s in feed_sources if s.shape.time is None)):
        cursor = FeedCursor(folder)
        request = feeding.FeedRequest(together, "round_robin", disorder=disorder)
        loaded_feeds = [feeding.load(replace(target, inbox=inbox), request, one) for one in together]
        feeding.fill(cursor, loaded_feeds, disorder)
        entries = cursor.take(inbox, "round_robin", Spacing(inbox.position.clock or 0))
        if entries:
            inbox.append(entries)
        cursor.discard()
    inbox.close()
    replay_material.source = replace(replay_material.source, last=inbox.position.seq - 1)
    return replay_material


def recorded_material(
    target: feeding.FeedTarget, recording: RecordingFile, schemas: Mapping[str, Schema]
) -> Material:
    """The input that a recording has. Raises SparkStreamError if it is one of other streams."""
    folder = Path(tempfile.mkdtemp(prefix="study-", dir=target.inbox.folder.parent))
    inbox = Inbox(folder)
    replay_material = Material(Input(str(folder), schemas, 1, -1), str(folder), folder)
    recording.fill_inbox(inbox, schemas)
    inbox.close()
    replay_material.source = replace(replay_material.source, last=inbox.position.seq - 1)
    return replay_material


def ways_of(
    plan: Plan, replay_material: Material, counts: int | Iterable[int], routings: Sequence[str] | None
) -> list[Way]:
    """Every combination of a number of nodes and a routing; by default the routings that suit the plan. Raises `Misuse`
    for none, and for one that is impossible."""
    numbers = [counts] if isinstance(counts, int) else list(counts)
    if not numbers or min(numbers) < 1:
        raise Misuse("nodes= is a number of nodes, or several, from 1 up")
    routes = candidates(plan) if routings is None else list(routings)
    if not routes:
        raise Misuse("routings= names no routing")
    for r in routes:
        Route.parse(r, min(numbers), replay_material.source.schemas)
    return [Way(n, r) for n in numbers for r in dict.fromkeys(routes)]


def study(
    target: feeding.FeedTarget,
    nodes: Nodes,
    replay_material: Material,
    ways: Sequence[Way],
    disordered: Mapping[str, Material] | None = None,
) -> Study:
    """Replays a recording in several `ways`, and `disordered` ones of it by name."""
    ideal = StudyInput(replay_material.source, replay_material.key)
    with target.tag_tasks():
        outcomes = run_study(target.session, ideal, nodes, ways)
        others = {
            name: run_study(target.session, StudyInput(x.source, x.key, ideal), nodes, ways)
            for name, x in (disordered or {}).items()
        }
    streams = {s for outcomes_of_set in (outcomes, *others.values()) for o in outcomes_of_set for s in o.tallies}
    stream_order = [
        *(s for s in list_labels(nodes.plan) if s in streams),
        *(s for s in nodes.plan.streams if s in streams),
    ]
    writers = {s: query_of(s, nodes.plan) for s in dict.fromkeys(stream_order)}
    whole_outcomes = {
        name: [_fill_tallies(o, writers) for o in outcomes_of_set] for name, outcomes_of_set in others.items()
    }
    return Study(target.name, [_fill_tallies(o, writers) for o in outcomes], writers, whole_outcomes)


def _fill_tallies(o: RoutingOutcome, streams: Mapping[str, str]) -> RoutingOutcome:
    """With a tally for every stream that has outputs anywhere."""
    return replace(o, tallies={s: o.tallies.get(s, Tally()) for s in streams})
