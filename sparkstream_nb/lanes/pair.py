"""Two nodes of minimum high availability: engines that process, persist, die, restore and replay as a timeline says.

The rules are those of `HAManager`, `HACoordinationSourceHandler`, `EventListMapManager` and `PersistenceManager`
(carbon-analytics). What a happening does comes before the first step whose clock is not earlier, so a run does not
depend on how its steps are cut into batches.

In one thing the queue differs from the servers' code, and is as their manuals describe it: it holds so many events, and
one that finds it full is not held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from ..engine.batch import Answer, InputBatch, Outputs
from ..engine.columns import Array
from ..engine.node import NodeEngine
from ..errors import Misuse
from ..plan.nodes import Retrieval
from ..simulation.faults import Fault, Scenario
from ..simulation.high_availability import simulate
from ..simulation.timeline import (
    Active,
    Clock,
    Down,
    Halted,
    Happening,
    Passive,
    Reached,
    Resumed,
    Syncing,
    Timeline,
)
from ..simulation.topology import CLIENTS, DATABASE
from .batches import between, events_by_step, masked
from .spans import Spans


class Loss(Enum):
    """Why an event is in no node's outputs, or at risk, as the other node has no copy of it."""

    NOBODY = "no node took it"
    PASSIVE = "it was sent to the passive node"
    FULL = "on one node alone: the queue of the passive one was full"
    STALE = "on one node alone: the passive one took its number for an old one"
    UNSENT = "on one node alone: no passive one was there"


@dataclass(frozen=True)
class Published:
    """What a node put out, and whether it was made of events that it replayed. Steps are those of the batch."""

    node: str
    replayed: bool
    outputs: Outputs


@dataclass(frozen=True)
class Takeover:
    """What a node began with as it became the active one. All are numbers of events: those that its state holds; those
    that were taken by then and are `missing` from it; those that it `replayed`, which another node has processed."""

    node: str
    at: int
    revision: int | None
    """When (ms) the revision was made; None: there was none, and the state is empty."""
    held: Spans
    missing: Spans
    replayed: Spans
    doubled: Spans
    """Those that the revision held and that were replayed nonetheless: they are in the state twice."""


@dataclass
class Report:
    """What became of events, by number: `taken` by a node; lost to all of them, or not held for the other node."""

    events: int = 0
    taken: Spans = field(default_factory=Spans)
    lost: dict[Loss, Spans] = field(default_factory=dict)
    unheld: dict[Loss, Spans] = field(default_factory=dict)
    takeovers: list[Takeover] = field(default_factory=list)
    revisions: Counter[str] = field(default_factory=Counter)
    """How often each node persisted."""


@dataclass(frozen=True)
class Revision:
    """A node's state at some time (ms): the engine's snapshot, and the events that it is made of."""

    at: int
    state: bytes
    held: Spans


@dataclass
class Queued:
    """Steps that a passive node holds: `number` of the sync by step, and the events' numbers."""

    batch: InputBatch
    number: Array
    first: Array

    def after(self, number: int) -> Queued | None:
        """What has that number or a later one; None for nothing."""
        index = int(np.searchsorted(self.number, number))
        if index == 0:
            return self
        if index == len(self.number):
            return None
        return Queued(between(self.batch, index, len(self.number)), self.number[index:], self.first[index:])


@dataclass
class Server:
    """A node: its engine while it is active, with the events that its state holds; its queue while it is passive."""

    name: str
    up: bool = True
    halted: bool = False
    engine: NodeEngine | None = None
    held: Spans = field(default_factory=Spans)
    syncing: bool = False
    sequence: int = 0
    """The last number that it gave to an event, or to a revision, that it sent to the other node."""
    trimmed: int = -1
    """The highest number of a revision that it was told of: events up to there are old."""
    queue: list[Queued] = field(default_factory=list)
    queued: int = 0


class PairLane:
    """Runs a pair through a scenario, which begins with the first step. `engine` makes an engine that is at its start.
    `faults` come on top of the scenario's, at times (ms) of their own."""

    def __init__(self, scenario: Scenario, engine: Callable[[], NodeEngine], faults: Sequence[Fault] = ()) -> None:
        self.scenario, self.new_engine, self.faults = scenario, engine, tuple(faults)
        self.pair = scenario.pair
        self.servers = {name: Server(name) for name in self.pair.nodes}
        self.revisions: list[Revision] = []
        self.report = Report()
        self.start: int | None = None
        self.now = 0
        self.turn = 0
        self.unreachable: set[frozenset[str]] = set()
        self._timeline: Timeline | None = None
        self._known = 0
        self.passed = 0

    def plan_fault(self, fault: Fault) -> None:
        """Takes one more fault. Raises `Misuse` for one that is impossible, or not later than the clock."""
        if self.start is not None and fault.at <= self.now:
            raise Misuse(f"{fault} at {fault.at} ms: the clock is at {self.now} ms already")
        faults = (*self.faults, fault)
        self.scenario.schedule(self.start or 0, fault.at, faults)
        self.faults, self._timeline = faults, None

    def timeline(self, until: int) -> Timeline:
        """What comes to pass up to `until` (ms)."""
        assert self.start is not None
        schedule = self.scenario.schedule(self.start, until, self.faults)
        return simulate(schedule, seed=self.scenario.seed, start=self.start, until=until)

    def step(self, batch: InputBatch) -> list[Published]:
        """Takes steps, and says what the nodes put out."""
        if not len(batch.clock):
            return []
        clock = np.maximum.accumulate(batch.clock)
        if self.start is None:
            self.start = self.now = int(clock[0])
        clock = np.maximum(clock, self.now)
        out: list[Published] = []
        at = 0
        for upto, time, happening in self._until(clock):
            out += self._process(batch, at, upto)
            at = upto
            out += [_moved(p, upto, only=True) for p in self._happen(time, happening)]
        out += self._process(batch, at, len(clock))
        self.now = int(clock[-1])
        return out

    def answer(self, retrieval: Retrieval) -> dict[str, Answer]:
        """The answers of the active nodes to an on-demand query, by node. What it changes is changed on all of them."""
        return {s.name: s.engine.answer(retrieval) for s in self.servers.values() if s.engine is not None}

    # --------------------------------------------------------------------------- what comes to pass

    def _until(self, clock: Array) -> Iterator[tuple[int, int, Happening | str]]:
        """What comes to pass before which step, at which time: happenings, and the names of nodes that persist."""
        last = int(clock[-1])
        if self._timeline is None or self._known < last:
            self._timeline, self._known = self.timeline(last), last
        happenings, first = self._timeline.happenings, self.passed
        while self.passed < len(happenings) and happenings[self.passed].at <= last:
            self.passed += 1
        coming = happenings[first : self.passed]
        items: list[tuple[int, int, Happening | str]] = [(h.at, 1, h) for h in coming]
        marks = np.unique(np.concatenate([clock, np.array([h.at for h in coming], np.int64)]))
        for c in self._timeline.clocks:
            items += [(due, 0, c.node) for due in self._due(c, marks)]
        for time, _, what in sorted(items, key=lambda x: x[:2]):
            yield int(np.searchsorted(clock, time)), time, what

    def _due(self, clock: Clock, marks: Array) -> list[int]:
        """When a node persists. Of several times with no step and no happening between them, the last one counts."""
        assert self._timeline is not None
        later = [c.started for c in self._timeline.clocks if c.node == clock.node and c.started > clock.started]
        marks = np.minimum(marks, min(later, default=int(marks[-1])))
        due = clock.started + (marks - clock.started) // clock.every * clock.every
        return [int(t) for t in np.unique(due) if t > max(self.now, clock.started)]

    def _happen(self, time: int, happening: Happening | str) -> list[Published]:
        match happening:
            case str(node):
                self._persist(self.servers[node], time)
            case Down(node=node):
                self.servers[node] = Server(node, up=False)
            case Halted(node=node):
                self.servers[node].halted = True
            case Resumed(node=node):
                self.servers[node].halted = False
            case Reached(a=a, b=b, whether=whether):
                (self.unreachable.discard if whether else self.unreachable.add)(frozenset({a, b}))
            case Active(node=node, started=started):
                return self._activate(self.servers[node], time, replay=not started)
            case Passive(node=node):
                server = self.servers[node]
                server.up, server.engine, server.held = True, None, Spans()
                server.queue, server.queued, server.syncing = [], 0, False
            case Syncing(node=node, whether=whether):
                server = self.servers[node]
                server.syncing = whether
                if whether:
                    self._persist(server, time)
        return []

    def _reaches(self, a: str, b: str) -> bool:
        return frozenset({a, b}) not in self.unreachable

    def _activate(self, server: Server, time: int, *, replay: bool) -> list[Published]:
        """`HAManager.changeToActive`, or the start of an active node."""
        server.up, server.engine = True, self.new_engine()
        revision = self.revisions[-1] if self.revisions else None
        server.held = Spans()
        if revision is not None:
            server.engine.restore(revision.state)
            server.held = revision.held.copy()
        out, again, before = [], Spans(), server.held.copy()
        if replay:
            for queued in server.queue:
                out.append(Published(server.name, True, server.engine.step(queued.batch)))
                for first, count in zip(queued.first.tolist(), events_by_step(queued.batch).tolist(), strict=True):
                    server.held.add(first, first + count)
                    again.add(first, first + count)
        server.queue, server.queued, server.trimmed = [], 0, -1
        missing = self.report.taken.without(server.held)
        self.report.takeovers.append(
            Takeover(
                server.name,
                time,
                None if revision is None else revision.at,
                server.held.copy(),
                missing,
                again,
                again.common(before),
            )
        )
        return out

    def _persist(self, server: Server, time: int) -> None:
        """`PersistenceManager`: a revision, and a message to the passive node that what came before it is old."""
        if server.engine is None or server.halted:
            return
        if self._reaches(server.name, DATABASE):
            self.revisions.append(Revision(time, server.engine.snapshot(), server.held.copy()))
            del self.revisions[: -self.pair.revisions]
            self.report.revisions[server.name] += 1
        server.sequence += 1
        peer = self.servers[self.pair.peer(server.name)]
        if server.syncing and peer.up and not peer.halted and self._reaches(server.name, peer.name):
            peer.trimmed = max(peer.trimmed, server.sequence)
            peer.queue = [kept for q in peer.queue if (kept := q.after(server.sequence)) is not None]
            peer.queued = sum(int(events_by_step(q.batch).sum()) for q in peer.queue)

    # --------------------------------------------------------------------------- what comes in

    def _process(self, batch: InputBatch, first: int, end: int) -> list[Published]:
        """Steps between two happenings: the balancer's choice, the engines, the other node's queue."""
        if first == end:
            return []
        part = between(batch, first, end)
        counts = events_by_step(part)
        numbers = self.report.events + np.cumsum(counts) - counts
        self.report.events += int(counts.sum())
        out = []
        chosen = self._chosen(counts)
        for place, server in enumerate(self.servers.values()):
            taken = (chosen == place) & (counts > 0)
            if server.engine is None or server.halted:
                _note(self.report.lost, Loss.PASSIVE, numbers, counts, taken)
                continue
            own = masked(part, taken)
            _add(server.held, numbers, counts, taken)
            _add(self.report.taken, numbers, counts, taken)
            out.append(_moved(Published(server.name, False, server.engine.step(own)), first))
            self._send(server, own, numbers, np.where(taken, counts, 0))
        _note(self.report.lost, Loss.NOBODY, numbers, counts, (chosen < 0) & (counts > 0))
        return out

    def _chosen(self, counts: Array) -> Array:
        """The place of the node that each step's events are sent to; -1: none takes them."""
        servers = list(self.servers.values())
        open_ = [s.up and not s.halted and self._reaches(s.name, CLIENTS) for s in servers]
        if self.pair.balancer == "round_robin":
            requests: Array = np.cumsum(counts > 0)
            turns: Array = (self.turn + requests - (counts > 0)) % 2
            self.turn = (self.turn + int(requests[-1])) % 2
            places = [i for i, o in enumerate(open_) if o]
            return turns if len(places) == 2 else np.full(len(counts), places[0] if places else -1)
        serving = [o and s.engine is not None for o, s in zip(open_, servers, strict=True)]
        if (counts > 0).any() and not serving[self.turn] and any(serving):
            self.turn = serving.index(True)
        return np.full(len(counts), self.turn if serving[self.turn] else -1)

    def _send(self, server: Server, part: InputBatch, numbers: Array, counts: Array) -> None:
        """`sendEventsToPassiveNode`, and what the passive node keeps of it."""
        any_ = counts > 0
        if not any_.any():
            return
        peer = self.servers[self.pair.peer(server.name)]
        reached = server.syncing and peer.up and not peer.halted and self._reaches(server.name, peer.name)
        if not reached or peer.engine is not None:
            _note(self.report.unheld, Loss.UNSENT, numbers, counts, any_)
            if reached:
                server.sequence += int(counts.sum())
            return
        number = server.sequence + np.cumsum(counts)  # that of the last event of each step
        server.sequence += int(counts.sum())
        fresh = any_ & (number - counts + 1 > peer.trimmed)
        _note(self.report.unheld, Loss.STALE, numbers, counts, any_ & ~fresh)
        fits = np.cumsum(np.where(fresh, counts, 0)) + peer.queued <= self.pair.queue
        _note(self.report.unheld, Loss.FULL, numbers, counts, fresh & ~fits)
        kept = fresh & fits
        if kept.any():
            peer.queue.append(Queued(masked(part, kept), number, numbers))
            peer.queued += int(counts[kept].sum())


def _moved(published: Published, by: int, *, only: bool = False) -> Published:
    """The same with steps `by` further on; `only`: all at step `by`, where nodes replay."""
    outputs = published.outputs
    streams = {
        name: replace(e, step=np.full(len(e.step), by, np.int64) if only else e.step + by)
        for name, e in outputs.streams.items()
    }
    return replace(published, outputs=replace(outputs, streams=streams))


def _add(spans: Spans, numbers: Array, counts: Array, steps: Array) -> None:
    """The events of some steps."""
    if not steps.any():
        return
    first, end = numbers[steps], (numbers + counts)[steps]
    joins = np.flatnonzero(first[1:] != end[:-1])
    begins, ends = first[np.concatenate([[0], joins + 1])], end[np.append(joins, -1)]
    for low, high in zip(begins.tolist(), ends.tolist(), strict=True):
        spans.add(low, high)


def _note(where: dict[Loss, Spans], why: Loss, numbers: Array, counts: Array, steps: Array) -> None:
    if steps.any():
        _add(where.setdefault(why, Spans()), numbers, counts, steps)
