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
from .batches import between, events_by_step, masked, picked
from .figures import GroupCounts, TakeoverCounts
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
    """Steps that a passive node holds: of those of `source` from number `at` on, the ones that were `kept` (bool);
    `number` of the sync and `first` event by step, and how many events each step has."""

    source: InputBatch
    at: int
    kept: Array
    number: Array
    first: Array
    counts: Array

    @property
    def batch(self) -> InputBatch:
        """The steps that are held."""
        return picked(between(self.source, self.at, self.at + len(self.kept)), self.kept)

    @property
    def events(self) -> int:
        """How many events it holds."""
        return int(self.counts[self.kept].sum())

    def after(self, number: int) -> Queued | None:
        """What has that number or a later one; None for nothing."""
        index = int(np.searchsorted(self.number, number))
        if index == 0:
            return self
        if index == len(self.number):
            return None
        rest = (a[index:] for a in (self.kept, self.number, self.first, self.counts))
        return Queued(self.source, self.at + index, *rest)


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
    todo: list[Array] = field(default_factory=list)
    """What its engine has still to take: for consecutive runs of steps up to now, which have events for it."""


@dataclass(frozen=True)
class _Coming:
    """A revision that is to be made of a node's state before step number `at`, at `time` (ms)."""

    server: Server
    at: int
    time: int
    held: Spans


@dataclass
class _Call:
    """A call of `step`: its batch, the `clock` (ms) at each step, and how many events each step has, with the number of
    the first of them."""

    batch: InputBatch
    clock: Array
    counts: Array
    numbers: Array
    out: list[Published] = field(default_factory=list)


class PairLane:
    """Runs a pair through a scenario, which begins with the first step. `engine` makes an engine that is at its start.
    `faults` come on top of the scenario's, at times (ms) of their own.

    An engine works when its state or what it puts out is needed: as its node dies or stands still, as a revision of its
    state is restored, at the end of a call. Of the revisions up to then, the last one alone is made.
    """

    def __init__(self, scenario: Scenario, engine: Callable[[], NodeEngine], faults: Sequence[Fault] = ()) -> None:
        self.scenario, self.new_engine, self.faults = scenario, engine, tuple(faults)
        self.pair = scenario.pair
        self.servers = {name: Server(name) for name in self.pair.nodes}
        self.revision: Revision | None = None
        self._coming: _Coming | None = None
        self.report = Report()
        self.counts = GroupCounts()
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
        counts = events_by_step(batch)
        call = _Call(batch, clock, counts, self.report.events + np.cumsum(counts) - counts)
        self.report.events += int(counts.sum())
        at = 0
        for upto, time, happening in self._until(clock):
            self._process(call, at, upto)
            at = upto
            self._happen(call, upto, time, happening)
        self._process(call, at, len(clock))
        for server in self.servers.values():
            self._work(call, server, len(clock))
        self.now = int(clock[-1])
        return call.out

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

    def _happen(self, call: _Call, at: int, time: int, happening: Happening | str) -> None:
        """Lets something come to pass before step number `at`."""
        if isinstance(happening, Active | Passive | Down | Halted | Resumed | Reached):
            self.counts.close_loss()
        if isinstance(happening, Down | Halted | Passive) and self.servers[happening.node].engine is not None:
            self.counts.begin_gap()
        match happening:
            case str(node):
                self._persist(self.servers[node], at, time)
            case Down(node=node):
                self._work(call, self.servers[node], at)
                self.servers[node] = Server(node, up=False)
            case Halted(node=node):
                self._work(call, self.servers[node], at)
                self.servers[node].halted = True
            case Resumed(node=node):
                self.servers[node].halted = False
            case Reached(a=a, b=b, whether=whether):
                (self.unreachable.discard if whether else self.unreachable.add)(frozenset({a, b}))
            case Active(node=node, started=started):
                for server in self.servers.values():
                    self._work(call, server, at)
                again = self._activate(self.servers[node], time, replay=not started)
                call.out += [_moved(p, at, only=True) for p in again]
            case Passive(node=node):
                server = self.servers[node]
                self._work(call, server, at)
                server.up, server.engine, server.held = True, None, Spans()
                server.queue, server.queued, server.syncing = [], 0, False
            case Syncing(node=node, whether=whether):
                server = self.servers[node]
                server.syncing = whether
                if whether:
                    self._persist(server, at, time)

    def _work(self, call: _Call, server: Server, at: int) -> None:
        """Lets a node's engine take what it has still to take before step number `at`, and makes its revision."""
        if server.engine is None:
            return
        coming = self._coming
        if coming is not None and coming.server is server:
            self._take(call, server, coming.at, at)
            self.revision = Revision(coming.time, server.engine.snapshot(), coming.held)
            self._coming = None
        self._take(call, server, at, at)

    def _take(self, call: _Call, server: Server, end: int, at: int) -> None:
        """Lets a node's engine take what it has to take, which is up to step number `at`, as far as `end`."""
        if not server.todo or server.engine is None:
            return
        taken = np.concatenate(server.todo)
        begin = at - len(taken)
        own, server.todo = taken[: end - begin], [taken[end - begin :]] if end < at else []
        if len(own):
            outputs = server.engine.step(masked(between(call.batch, begin, end), own))
            call.out.append(_moved(Published(server.name, False, outputs), begin))

    def _reaches(self, a: str, b: str) -> bool:
        return frozenset({a, b}) not in self.unreachable

    def _activate(self, server: Server, time: int, *, replay: bool) -> list[Published]:
        """`HAManager.changeToActive`, or the start of an active node."""
        server.up, server.engine = True, self.new_engine()
        revision = self.revision
        server.held = Spans()
        if revision is not None:
            server.engine.restore(revision.state)
            server.held = revision.held.copy()
        out, again, before = [], Spans(), server.held.copy()
        if replay:
            for queued in server.queue:
                out.append(Published(server.name, True, server.engine.step(queued.batch)))
                for spans in (server.held, again):
                    _add(spans, queued.first, queued.counts, queued.kept)
        server.queue, server.queued, server.trimmed = [], 0, -1
        missing, doubled = self.report.taken.without(server.held), again.common(before)
        made = None if revision is None else revision.at
        self.report.takeovers.append(Takeover(server.name, time, made, server.held.copy(), missing, again, doubled))
        self.counts.takes_over(
            TakeoverCounts(server.name, time, made, self.counts.lost_in_gap, len(again), len(missing), len(doubled))
        )
        return out

    def _persist(self, server: Server, at: int, time: int) -> None:
        """`PersistenceManager`: a revision, and a message to the passive node that what came before it is old."""
        if server.engine is None or server.halted:
            return
        if self._reaches(server.name, DATABASE):
            self._coming = _Coming(server, at, time, server.held.copy())
            self.report.revisions[server.name] += 1
            self.counts.revisions += 1
        server.sequence += 1
        peer = self.servers[self.pair.peer(server.name)]
        if server.syncing and peer.up and not peer.halted and self._reaches(server.name, peer.name):
            peer.trimmed = max(peer.trimmed, server.sequence)
            peer.queue = [kept for q in peer.queue if (kept := q.after(server.sequence)) is not None]
            peer.queued = sum(q.events for q in peer.queue)

    # --------------------------------------------------------------------------- what comes in

    def _process(self, call: _Call, first: int, end: int) -> None:
        """Steps between two happenings: the balancer's choice, what engines have to take, the other node's queue."""
        if first == end:
            return
        counts, numbers = call.counts[first:end], call.numbers[first:end]
        chosen = self._chosen(counts)
        for place, server in enumerate(self.servers.values()):
            taken = (chosen == place) & (counts > 0)
            if server.engine is None or server.halted:
                self._lose(Loss.PASSIVE, call, first, np.where(taken, counts, 0))
                continue
            self.counts.taken += int(counts[taken].sum())
            _add(server.held, numbers, counts, taken)
            _add(self.report.taken, numbers, counts, taken)
            server.todo.append(taken)
            self._send(server, call, first, np.where(taken, counts, 0))
        self._lose(Loss.NOBODY, call, first, np.where(chosen < 0, counts, 0))

    def _lose(self, why: Loss, call: _Call, at: int, counts: Array) -> None:
        """No node takes the events of some steps; `counts` are of the steps from `at` on."""
        steps = np.flatnonzero(counts)
        if len(steps):
            _note(self.report.lost, why, call.numbers[at : at + len(counts)], counts, counts > 0)
            first, last = call.clock[at + steps[0]], call.clock[at + steps[-1]]
            self.counts.lose(why.value, int(counts.sum()), (int(first), int(last)))

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

    def _send(self, server: Server, call: _Call, at: int, counts: Array) -> None:
        """`sendEventsToPassiveNode`, and what the passive node keeps of it; `counts` are of the steps from `at` on."""
        numbers = call.numbers[at : at + len(counts)]
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
            peer.queue.append(Queued(call.batch, at, kept, number, numbers, counts))
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
