"""A partial app of a fully distributed deployment: real engines that begin, persist, end and restart elsewhere.

The rules follow `StreamProcessorService` and `PersistenceManager` (carbon-analytics 2.x) and of the Kafka source that
the job manager gives each partial app (siddhi-io-kafka 4.1). A source that is assigned its partitions, such as one by
key, begins at the restored revision's position: later events are processed once more. One that subscribes to a topic
begins at its group's committed offset: events since the revision are missing from the state. Both find events published
while no node ran. Events that a client sends to a source of the app are lost in that time.

With NATS as messaging layer (siddhi-io-nats 1 with NATS Streaming) each source without a queue group begins at the
revision's position, and at the first event of all without a revision: `from_first`. Of apps that never persist only
events that wait are in memory, and they begin with these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch, Outputs, RetrievalAnswer
from ..plan.nodes import Retrieval
from ..simulation.placements import Dropped, Placed
from ..simulation.timeline import Down, Halted, Happening, LinkChanged, Resumed
from ..simulation.topology import CLIENTS, DATABASE
from .app_figures import KEPT, BegunCounts, PartialAppFigures
from .batches import between, events_by_step, mask_events, pick_steps
from .pair import Published
from .spans import Spans

KEYED, SUBSCRIBED, DIRECT = 1, 2, 3
"""Ways in which an event arrives: by an assigned partition, by a subscription, from a client."""


class Engine(Protocol):
    """Protocol of an engine for a partial app: a `NodeEngine`, or one that only passes events on."""

    def step(self, batch: InputBatch) -> Outputs: ...

    def answer(self, retrieval: Retrieval) -> RetrievalAnswer: ...

    def stats(self) -> dict[str, Any]: ...

    def snapshot(self) -> bytes: ...

    def restore(self, blob: bytes) -> None: ...


@dataclass(frozen=True)
class Begun:
    """A partial app begins on a node: from the revision of time `revision` (ms; None: from nothing), whose state holds
    the `state_events`. Of the events processed by then, it processed some `again`, and lacks the `missing`; it found
    others `waiting`. All are numbers of events of the partial app.
    """

    node: str
    at: int
    revision: int | None
    state_events: Spans
    again: Spans
    missing: Spans
    waiting: Spans


@dataclass
class InstanceReport:
    """Fate of a partial app's events, by number: `taken_events`, by a node; `lost_events`, as no node was there for a
    client; taken by `several` nodes at once.
    """

    events: int = 0
    taken_events: Spans = field(default_factory=Spans)
    lost_events: Spans = field(default_factory=Spans)
    several: Spans = field(default_factory=Spans)
    beginnings: list[Begun] = field(default_factory=list)


@dataclass(eq=False)
class _TopicSteps:
    """Steps that came in by topics, the event `numbers` of each, and how they came (`kinds`). `in_revision`: events by
    partition are in the revision; `keyed_done`: they were processed; `subscribed_done`: events by subscription were.
    """

    batch: InputBatch
    numbers: Array
    counts: Array
    kinds: Array
    in_revision: bool = False
    keyed_done: bool = False
    subscribed_done: bool = False

    def is_done(self) -> bool:
        """True if it is no longer needed."""
        return (self.in_revision or not (self.kinds == KEYED).any()) and (
            self.subscribed_done or not (self.kinds == SUBSCRIBED).any()
        )


@dataclass(eq=False)
class _InstanceRun:
    """The partial app on a node, and the events that its state holds; `backlog`: steps that came while it halted."""

    node: str
    engine: Engine
    state_events: Spans
    is_halted: bool
    backlog: list[_TopicSteps] = field(default_factory=list)


@dataclass(frozen=True)
class _InstanceRevision:
    at: int
    state: bytes
    state_events: Spans


@dataclass(frozen=True)
class Due:
    """A node persists its partial apps at `at` (ms), for the last of `times` times with nothing between them."""

    at: int
    node: str
    times: int = 1


Event = tuple[int, Happening | Due]
"""Happening, with the step of the app that it precedes."""


class InstanceLane:
    """Runs the partial app `name`. `engine` makes an engine at its start; `kinds`: how each stream comes. `persists`:
    whether there are revisions; `from_first`: without one it begins at the first event."""

    def __init__(
        self,
        name: str,
        engine: Callable[[], Engine],
        kinds: Mapping[str, int],
        *,
        persists: bool,
        from_first: bool = False,
    ) -> None:
        self.name, self.new_engine, self.kinds, self.persists = name, engine, kinds, persists
        self.from_first = from_first
        self.runs: dict[str, _InstanceRun] = {}
        self.log: list[_TopicSteps] = []
        self.revision: _InstanceRevision | None = None
        self.unreachable: set[frozenset[str]] = set()
        self.halted_nodes: set[str] = set()
        self.report = InstanceReport()
        self.revisions = 0
        self.beginnings: list[BegunCounts] = []
        self.events_by_node: dict[str, int] = {}
        """Number of events that each node has processed, again or not."""

    def figures(self) -> PartialAppFigures:
        """Figures of the partial app."""
        revision = None if self.revision is None else self.revision.at
        r = self.report
        return PartialAppFigures(
            len(r.taken_events),
            len(r.several),
            len(r.lost_events),
            self._count_waiting(),
            revision,
            self.revisions,
            self.beginnings,
        )

    def _count_waiting(self) -> dict[str, int]:
        """Number of events of its topics that are not consumed, by stream."""
        out: dict[str, int] = {}
        for entry in {id(e): e for e in (*self.log, *(e for r in self.runs.values() for e in r.backlog))}.values():
            for stream, rows in entry.batch.rows.items():
                is_consumed = entry.keyed_done if self.kinds[stream] == KEYED else entry.subscribed_done
                if not is_consumed:
                    out[stream] = out.get(stream, 0) + len(rows.ts)
        return out

    def step(self, batch: InputBatch, place: Array, events: Sequence[Event]) -> list[Published]:
        """Process steps, whose steps in the app are `place`, with the happenings before them; returns the nodes'
        outputs, by the app's steps.
        """
        counts = events_by_step(batch)
        kinds = np.zeros(len(batch.clock), np.int64)
        for stream, rows in batch.rows.items():
            kinds[rows.step] = self.kinds[stream]
        call = _InstanceStep(batch, place, counts, self.report.events + np.cumsum(counts) - counts, kinds)
        self.report.events += int(counts.sum())
        at = 0
        for before, what in self._select_needed(events):
            upto = int(np.searchsorted(place, before))
            self._process(call, at, upto)
            at = upto
            self._happen(call, before, what)
        self._process(call, at, len(batch.clock))
        return call.out

    def _select_needed(self, events: Sequence[Event]) -> list[Event]:
        """Happenings that concern this partial app. Of times to persist: the last before it begins, and the last."""
        running = {r.node for r in self.runs.values()}
        halted_nodes, cut = set(self.halted_nodes), {min(e - {DATABASE}) for e in self.unreachable if DATABASE in e}
        out: list[Event] = []
        last: int | None = None
        last_dues: set[int] = set()
        for before, what in events:
            match what:
                case Due(node=node):
                    if node not in running or node in halted_nodes or node in cut:
                        continue
                    last = len(out)
                    self.revisions += what.times
                case Placed(node=node, app=self.name):
                    running.add(node)
                    last_dues |= set() if last is None else {last}
                case Dropped(node=node, app=self.name):
                    running.discard(node)
                case Down(node=node):
                    running.discard(node)
                    halted_nodes.discard(node)
                case Halted(node=node):
                    halted_nodes.add(node)
                case Resumed(node=node):
                    halted_nodes.discard(node)
                case LinkChanged(a=a, b=b, whether=whether):
                    if DATABASE in (a, b):
                        (cut.discard if whether else cut.add)(a if b == DATABASE else b)
                case _:
                    continue
            out.append((before, what))
        last_dues |= set() if last is None else {last}
        return [e for i, e in enumerate(out) if not isinstance(e[1], Due) or i in last_dues]

    def _happen(self, call: _InstanceStep, before: int, what: Happening | Due) -> None:
        match what:
            case Due(at=at, node=node):
                self._persist(self.runs[node], at)
            case Placed(node=node, app=self.name):
                self._begin(call, before, what)
            case Dropped(node=node, app=self.name):
                self.runs.pop(node, None)
            case Down(node=node):
                self.runs.pop(node, None)
                self.halted_nodes.discard(node)
            case Halted(node=node):
                self.halted_nodes.add(node)
                if node in self.runs:
                    self.runs[node].is_halted = True
            case Resumed(node=node):
                self.halted_nodes.discard(node)
                if node in self.runs:
                    self._catch_up(call, before, self.runs[node])
            case LinkChanged(a=a, b=b, whether=whether):
                (self.unreachable.discard if whether else self.unreachable.add)(frozenset({a, b}))

    def _persist(self, run: _InstanceRun, at: int) -> None:
        self.revision = _InstanceRevision(at, run.engine.snapshot(), run.state_events.copy())
        for entry in self.log:
            entry.in_revision = entry.in_revision or entry not in run.backlog
        self._trim()

    def _trim(self) -> None:
        self.log = [e for e in self.log if not e.is_done()]

    def _begin(self, call: _InstanceStep, before: int, placement: Placed) -> None:
        run = _InstanceRun(placement.node, self.new_engine(), Spans(), is_halted=placement.node in self.halted_nodes)
        revision = self.revision
        if frozenset({placement.node, DATABASE}) in self.unreachable:
            revision = None  # it goes on without, as the servers do
        if revision is not None:
            run.engine.restore(revision.state)
            run.state_events = revision.state_events.copy()
        self.runs[placement.node] = run
        had, revision_events = self.report.taken_events.copy(), run.state_events.copy()
        for entry in self.log:
            by_revision = revision is not None or self.from_first
            by_key = (not entry.in_revision) if by_revision else (not entry.keyed_done)
            self._replay(call, before, run, entry, by_key=by_key)
        new = run.state_events.without(revision_events)
        self.report.beginnings.append(
            Begun(
                placement.node, placement.at, None if revision is None else revision.at, run.state_events.copy(),
                new.common(had), had.without(run.state_events), new.without(had),
            )
        )  # fmt: skip
        b = self.report.beginnings[-1]
        self.beginnings = [*self.beginnings, BegunCounts(b.node, b.at, len(b.again), len(b.waiting), len(b.missing))][
            -KEPT:
        ]
        self._trim()

    def _catch_up(self, call: _InstanceStep, before: int, run: _InstanceRun) -> None:
        """A node that was halted takes the events that its consumers find now."""
        run.is_halted = False
        backlog, run.backlog = run.backlog, []
        had, earlier_events = self.report.taken_events.copy(), run.state_events.copy()
        for entry in backlog:
            self._replay(call, before, run, entry, by_key=True)
        self.report.several.add_all(run.state_events.without(earlier_events).common(had))
        self._trim()

    def _replay(self, call: _InstanceStep, before: int, run: _InstanceRun, entry: _TopicSteps, *, by_key: bool) -> None:
        """Replay logged steps: keyed ones if `by_key`, subscribed ones unless another run has consumed them."""
        if run.is_halted:
            run.backlog.append(entry)
            return
        mask = (entry.kinds == KEYED) & by_key | (entry.kinds == SUBSCRIBED) & (not entry.subscribed_done)
        mask &= entry.counts > 0
        entry.keyed_done = entry.keyed_done or by_key
        entry.subscribed_done = True
        entry.in_revision = entry.in_revision or (by_key and not self.persists)
        if mask.any():
            events = Spans.of(entry.numbers, entry.counts, mask)
            again = bool(events.common(self.report.taken_events))
            # Without the ticks between them: which of these are logged depends on where batches end.
            outputs = self._take(run, pick_steps(entry.batch, mask), None, events)
            call.out.append(Published(run.node, again, _at(outputs, before)))

    def _process(self, call: _InstanceStep, first: int, end: int) -> None:
        """Steps between two happenings."""
        if first == end:
            return
        piece = between(call.batch, first, end)
        numbers, counts, kinds = call.numbers[first:end], call.counts[first:end], call.kinds[first:end]
        awake = [r for r in self.runs.values() if not r.is_halted]
        direct = kinds == DIRECT
        listening = [r for r in awake if frozenset({r.node, CLIENTS}) not in self.unreachable]
        if direct.any() and not listening:
            self.report.lost_events.add_all(Spans.of(numbers, counts, direct))
        runs_awake = bool(awake)
        topic_batch = mask_events(piece, ~direct)
        entry = _TopicSteps(
            topic_batch, numbers, counts, kinds, runs_awake and not self.persists, runs_awake, runs_awake
        )
        if not entry.is_done():
            self.log.append(entry)
        for run in self.runs.values():
            if run.is_halted:
                run.backlog.append(entry)
                continue
            mask = kinds == KEYED
            if run is awake[0]:
                mask = mask | (kinds == SUBSCRIBED)
            if listening and run is listening[0]:
                mask = mask | direct
            events = Spans.of(numbers, counts, mask)
            self.report.several.add_all(events.common(self.report.taken_events))
            outputs = self._take(run, piece, mask, events)
            call.out.append(Published(run.node, False, _at(outputs, call.place[first:end])))

    def _take(self, run: _InstanceRun, batch: InputBatch, mask: Array | None, events: Spans) -> Outputs:
        """Run a batch, with the `events` of the steps that the `mask` has (None: all)."""
        self.report.taken_events.add_all(events)
        run.state_events.add_all(events)
        self.events_by_node[run.node] = self.events_by_node.get(run.node, 0) + len(events)
        return run.engine.step(batch if mask is None else mask_events(batch, mask))

    # ---------------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        """Its whole state, as plain data. The report's details of each start are not kept."""
        log = list(self.log) + [e for r in self.runs.values() for e in r.backlog if e not in self.log]
        revision = self.revision
        return {
            "log": [
                [e.batch.to_bytes(), e.numbers, e.counts, e.kinds, e.in_revision, e.keyed_done, e.subscribed_done]
                for e in log
            ],
            "kept": len(self.log),
            "runs": [
                [r.node, r.engine.snapshot(), list(r.state_events), r.is_halted, [log.index(e) for e in r.backlog]]
                for r in self.runs.values()
            ],
            "revision": None if revision is None else [revision.at, revision.state, list(revision.state_events)],
            "unreachable": sorted(sorted(ends) for ends in self.unreachable),
            "halted": sorted(self.halted_nodes),
            "events": self.report.events,
            "taken": list(self.report.taken_events),
            "several": list(self.report.several),
            "lost": list(self.report.lost_events),
            "revisions": self.revisions,
            "begun": [asdict(b) for b in self.beginnings],
            "processed": dict(self.events_by_node),
        }

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        log = [
            _TopicSteps(
                InputBatch.from_bytes(bytes(blob)), numbers, counts, kinds, in_revision, keyed_done, subscribed_done
            )
            for blob, numbers, counts, kinds, in_revision, keyed_done, subscribed_done in state["log"]
        ]
        self.log = log[: state["kept"]]
        self.runs = {}
        for node, blob, spans, is_halted, entry_numbers in state["runs"]:
            engine = self.new_engine()
            engine.restore(bytes(blob))
            self.runs[node] = _InstanceRun(node, engine, Spans(*spans), is_halted, [log[i] for i in entry_numbers])
        revision = state["revision"]
        self.revision = (
            None if revision is None else _InstanceRevision(revision[0], bytes(revision[1]), Spans(*revision[2]))
        )
        self.unreachable = {frozenset(ends) for ends in state["unreachable"]}
        self.halted_nodes = set(state["halted"])
        taken_events, lost_events, several = (Spans(*state[which]) for which in ("taken", "lost", "several"))
        self.report = InstanceReport(state["events"], taken_events, lost_events, several)
        self.revisions, self.events_by_node = state["revisions"], dict(state["processed"])
        self.beginnings = [BegunCounts(**b) for b in state["begun"]]


@dataclass
class _InstanceStep:
    """A call of `step`: its batch, the app's step of each of its own, how many events each has, the number of the first
    of them, and how they come."""

    batch: InputBatch
    place: Array
    counts: Array
    numbers: Array
    kinds: Array
    out: list[Published] = field(default_factory=list)


def _at(outputs: Outputs, place: Array | int) -> Outputs:
    """Outputs with the app's steps: `place` for each own step, or all at one."""
    streams = {
        name: replace(e, step=np.full(len(e.step), place, np.int64) if isinstance(place, int) else place[e.step])
        for name, e in outputs.streams.items()
    }
    return replace(outputs, streams=streams)
