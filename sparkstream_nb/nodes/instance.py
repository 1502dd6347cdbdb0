"""A partial app of a fully distributed deployment: real engines that begin, persist, end and restart elsewhere.

The rules follow `StreamProcessorService` and `PersistenceManager` (carbon-analytics 2.x) and of the Kafka source that
the job manager gives each partial app (siddhi-io-kafka 4.1). A source that is assigned its partitions, such as one by
key, begins at the restored revision's position: later events are processed once more. One that subscribes to a topic
begins at its group's committed offset: events since the revision are missing from the state. Both find events published
while no node ran. Events that a client sends to a source of the app are lost in that time.
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
    the events `held`. Of the events processed by then, it processed some `again`, and lacks the `missing`; it found
    others `waiting`. All are numbers of events of the partial app.
    """

    node: str
    at: int
    revision: int | None
    held: Spans
    again: Spans
    missing: Spans
    waiting: Spans


@dataclass
class InstanceReport:
    """Fate of a partial app's events, by number: `taken` by a node; `lost`, as no node was there for a client;
    taken by `several` nodes at once.
    """

    events: int = 0
    taken: Spans = field(default_factory=Spans)
    lost: Spans = field(default_factory=Spans)
    several: Spans = field(default_factory=Spans)
    begun: list[Begun] = field(default_factory=list)


@dataclass(eq=False)
class _TopicSteps:
    """Steps that came in by topics, the event `numbers` of each, and how they came (`kinds`). `saved`: events by
    partition are in the revision; `keyed`: they were processed; `subscribed`: events by subscription were processed.
    """

    batch: InputBatch
    numbers: Array
    counts: Array
    kinds: Array
    saved: bool = False
    keyed: bool = False
    subscribed: bool = False

    def done(self) -> bool:
        """True if it is no longer needed."""
        return (self.saved or not (self.kinds == KEYED).any()) and (
            self.subscribed or not (self.kinds == SUBSCRIBED).any()
        )


@dataclass(eq=False)
class _InstanceRun:
    """The partial app on a node, and the events that its state holds; `behind`: steps that came while it was halted."""

    node: str
    engine: Engine
    held: Spans
    halted: bool = False
    behind: list[_TopicSteps] = field(default_factory=list)


@dataclass(frozen=True)
class _InstanceRevision:
    at: int
    state: bytes
    held: Spans


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
    whether there are revisions."""

    def __init__(self, name: str, engine: Callable[[], Engine], kinds: Mapping[str, int], *, persists: bool) -> None:
        self.name, self.new_engine, self.kinds, self.persists = name, engine, kinds, persists
        self.runs: dict[str, _InstanceRun] = {}
        self.log: list[_TopicSteps] = []
        self.revision: _InstanceRevision | None = None
        self.unreachable: set[frozenset[str]] = set()
        self.halted: set[str] = set()
        self.report = InstanceReport()
        self.revisions = 0
        self.begun: list[BegunCounts] = []
        self.processed: dict[str, int] = {}
        """Number of events that each node has processed, again or not."""

    def figures(self) -> PartialAppFigures:
        """Figures of the partial app."""
        revision = None if self.revision is None else self.revision.at
        r = self.report
        return PartialAppFigures(
            len(r.taken), len(r.several), len(r.lost), self._count_waiting(), revision, self.revisions, self.begun
        )

    def _count_waiting(self) -> dict[str, int]:
        """Number of events of its topics that are not consumed, by stream."""
        out: dict[str, int] = {}
        for entry in {id(e): e for e in (*self.log, *(e for r in self.runs.values() for e in r.behind))}.values():
            for stream, rows in entry.batch.rows.items():
                consumed = entry.keyed if self.kinds[stream] == KEYED else entry.subscribed
                if not consumed:
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
        halted, cut = set(self.halted), {min(e - {DATABASE}) for e in self.unreachable if DATABASE in e}
        out: list[Event] = []
        last: int | None = None
        needed: set[int] = set()
        for before, what in events:
            match what:
                case Due(node=node):
                    if node not in running or node in halted or node in cut:
                        continue
                    last = len(out)
                    self.revisions += what.times
                case Placed(node=node, app=self.name):
                    running.add(node)
                    needed |= set() if last is None else {last}
                case Dropped(node=node, app=self.name):
                    running.discard(node)
                case Down(node=node):
                    running.discard(node)
                    halted.discard(node)
                case Halted(node=node):
                    halted.add(node)
                case Resumed(node=node):
                    halted.discard(node)
                case LinkChanged(a=a, b=b, whether=whether):
                    if DATABASE in (a, b):
                        (cut.discard if whether else cut.add)(a if b == DATABASE else b)
                case _:
                    continue
            out.append((before, what))
        needed |= set() if last is None else {last}
        return [e for i, e in enumerate(out) if not isinstance(e[1], Due) or i in needed]

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
                self.halted.discard(node)
            case Halted(node=node):
                self.halted.add(node)
                if node in self.runs:
                    self.runs[node].halted = True
            case Resumed(node=node):
                self.halted.discard(node)
                if node in self.runs:
                    self._catch_up(call, before, self.runs[node])
            case LinkChanged(a=a, b=b, whether=whether):
                (self.unreachable.discard if whether else self.unreachable.add)(frozenset({a, b}))

    def _persist(self, run: _InstanceRun, at: int) -> None:
        self.revision = _InstanceRevision(at, run.engine.snapshot(), run.held.copy())
        for entry in self.log:
            entry.saved = entry.saved or entry not in run.behind
        self._trim()

    def _trim(self) -> None:
        self.log = [e for e in self.log if not e.done()]

    def _begin(self, call: _InstanceStep, before: int, placed: Placed) -> None:
        run = _InstanceRun(placed.node, self.new_engine(), Spans(), halted=placed.node in self.halted)
        revision = self.revision
        if frozenset({placed.node, DATABASE}) in self.unreachable:
            revision = None  # it goes on without, as the servers do
        if revision is not None:
            run.engine.restore(revision.state)
            run.held = revision.held.copy()
        self.runs[placed.node] = run
        had, known = self.report.taken.copy(), run.held.copy()
        for entry in self.log:
            by_key = (not entry.saved) if revision is not None else (not entry.keyed)
            self._replay(call, before, run, entry, keyed=by_key)
        new = run.held.without(known)
        self.report.begun.append(
            Begun(
                placed.node, placed.at, None if revision is None else revision.at, run.held.copy(),
                new.common(had), had.without(run.held), new.without(had),
            )
        )  # fmt: skip
        b = self.report.begun[-1]
        self.begun = [*self.begun, BegunCounts(b.node, b.at, len(b.again), len(b.waiting), len(b.missing))][-KEPT:]
        self._trim()

    def _catch_up(self, call: _InstanceStep, before: int, run: _InstanceRun) -> None:
        """A node that was halted takes the events that its consumers find now."""
        run.halted = False
        behind, run.behind = run.behind, []
        had, known = self.report.taken.copy(), run.held.copy()
        for entry in behind:
            self._replay(call, before, run, entry, keyed=True)
        self.report.several.add_all(run.held.without(known).common(had))
        self._trim()

    def _replay(self, call: _InstanceStep, before: int, run: _InstanceRun, entry: _TopicSteps, *, keyed: bool) -> None:
        """Replay logged steps: keyed ones if `keyed`, subscribed ones unless another run has consumed them."""
        if run.halted:
            run.behind.append(entry)
            return
        wanted = (entry.kinds == KEYED) & keyed | (entry.kinds == SUBSCRIBED) & (not entry.subscribed)
        wanted &= entry.counts > 0
        entry.keyed = entry.keyed or keyed
        entry.subscribed = True
        entry.saved = entry.saved or (keyed and not self.persists)
        if wanted.any():
            own = Spans.of(entry.numbers, entry.counts, wanted)
            again = bool(own.common(self.report.taken))
            # Without the ticks between them: which of these are logged depends on where batches end.
            outputs = self._take(run, pick_steps(entry.batch, wanted), None, own)
            call.out.append(Published(run.node, again, _at(outputs, before)))

    def _process(self, call: _InstanceStep, first: int, end: int) -> None:
        """Steps between two happenings."""
        if first == end:
            return
        piece = between(call.batch, first, end)
        numbers, counts, kinds = call.numbers[first:end], call.counts[first:end], call.kinds[first:end]
        awake = [r for r in self.runs.values() if not r.halted]
        direct = kinds == DIRECT
        listening = [r for r in awake if frozenset({r.node, CLIENTS}) not in self.unreachable]
        if direct.any() and not listening:
            self.report.lost.add_all(Spans.of(numbers, counts, direct))
        taken = bool(awake)
        logged = mask_events(piece, ~direct)
        entry = _TopicSteps(logged, numbers, counts, kinds, taken and not self.persists, taken, taken)
        if not entry.done():
            self.log.append(entry)
        for run in self.runs.values():
            if run.halted:
                run.behind.append(entry)
                continue
            wanted = kinds == KEYED
            if run is awake[0]:
                wanted = wanted | (kinds == SUBSCRIBED)
            if listening and run is listening[0]:
                wanted = wanted | direct
            own = Spans.of(numbers, counts, wanted)
            self.report.several.add_all(own.common(self.report.taken))
            outputs = self._take(run, piece, wanted, own)
            call.out.append(Published(run.node, False, _at(outputs, call.place[first:end])))

    def _take(self, run: _InstanceRun, batch: InputBatch, wanted: Array | None, own: Spans) -> Outputs:
        """Run a batch, with the events `own`, which are the events of the steps that are `wanted` (None: all)."""
        self.report.taken.add_all(own)
        run.held.add_all(own)
        self.processed[run.node] = self.processed.get(run.node, 0) + len(own)
        return run.engine.step(batch if wanted is None else mask_events(batch, wanted))

    # ---------------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        """Its whole state, as plain data. The report's details of each start are not kept."""
        log = list(self.log) + [e for r in self.runs.values() for e in r.behind if e not in self.log]
        revision = self.revision
        return {
            "log": [[e.batch.to_bytes(), e.numbers, e.counts, e.kinds, e.saved, e.keyed, e.subscribed] for e in log],
            "kept": len(self.log),
            "runs": [
                [r.node, r.engine.snapshot(), list(r.held), r.halted, [log.index(e) for e in r.behind]]
                for r in self.runs.values()
            ],
            "revision": None if revision is None else [revision.at, revision.state, list(revision.held)],
            "unreachable": sorted(sorted(ends) for ends in self.unreachable),
            "halted": sorted(self.halted),
            "events": self.report.events,
            "taken": list(self.report.taken),
            "several": list(self.report.several),
            "lost": list(self.report.lost),
            "revisions": self.revisions,
            "begun": [asdict(b) for b in self.begun],
            "processed": dict(self.processed),
        }

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        log = [
            _TopicSteps(InputBatch.from_bytes(bytes(blob)), numbers, counts, kinds, saved, keyed, subscribed)
            for blob, numbers, counts, kinds, saved, keyed, subscribed in state["log"]
        ]
        self.log = log[: state["kept"]]
        self.runs = {}
        for node, blob, held, halted, behind in state["runs"]:
            engine = self.new_engine()
            engine.restore(bytes(blob))
            self.runs[node] = _InstanceRun(node, engine, Spans(*held), halted, [log[i] for i in behind])
        found = state["revision"]
        self.revision = None if found is None else _InstanceRevision(found[0], bytes(found[1]), Spans(*found[2]))
        self.unreachable = {frozenset(ends) for ends in state["unreachable"]}
        self.halted = set(state["halted"])
        taken, lost, several = (Spans(*state[which]) for which in ("taken", "lost", "several"))
        self.report = InstanceReport(state["events"], taken, lost, several)
        self.revisions, self.processed = state["revisions"], dict(state["processed"])
        self.begun = [BegunCounts(**b) for b in state["begun"]]


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
