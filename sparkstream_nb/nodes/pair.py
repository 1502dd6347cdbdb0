"""Two nodes of minimum high availability: engines that process, persist, die, restore and replay as a timeline says.

The rules follow `HAManager`, `HACoordinationSourceHandler`, `EventListMapManager` and `PersistenceManager`
(carbon-analytics). A happening takes effect before the first step whose clock is not earlier, so a run does not depend
on how its steps are cut into batches.

A slow link delays its messages (`simulation.faults.Slow`). A revision counts once it is in the database. As the servers
do, a node numbers the message about it only then: the other node regards events that came while it was written as old,
though the next revision is the first to have them. A node writes one revision at a time; one further revision makes up
for all that fell due meanwhile.

In one thing the queue differs from the servers' code, and is as their manuals describe it: it holds a fixed number of
events, and an event that finds it full is not held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.node import NodeEngine
from ..engine.state.node_batch import InputBatch, Outputs, RetrievalAnswer
from ..plan.nodes import Retrieval
from ..simulation.faults import Fault, Scenario
from ..simulation.high_availability import simulate
from ..simulation.timeline import (
    Active,
    Delayed,
    Down,
    Halted,
    Happening,
    LinkChanged,
    Passive,
    PersistTimes,
    Resumed,
    SimulatedTimeline,
    Syncing,
)
from ..simulation.topology import CLIENTS, DATABASE
from .batches import between, events_by_step, mask_events, pick_steps
from .group_figures import GroupCounts, TakeoverCounts
from .lane_clock import LaneClock
from .spans import Spans
from .transit import LONG_AGO, SentEvents, Transit, Trim


class Loss(Enum):
    """Why an event is in no node's outputs, or at risk, as the other node has no copy of it."""

    NOBODY = "no node took it"
    PASSIVE = "it was sent to the passive node"
    FULL = "on one node alone: the queue of the passive one was full"
    STALE = "on one node alone: the passive one took its number for an old one"
    UNSENT = "on one node alone: no passive one was there"
    UNDERWAY = "on one node alone: it was under way to the other one, which was cut off, died or took over"


@dataclass(frozen=True)
class Published:
    """Output of a node, and whether it came from replayed events. Steps are numbered within the batch."""

    node: str
    replayed: bool
    outputs: Outputs


@dataclass(frozen=True)
class Takeover:
    """State with which a node became the active one. All are numbers of events: the `state_events` that its state
    holds; taken by then and `missing` from it; `replayed`, which another node has processed.
    """

    node: str
    at: int
    revision: int | None
    """When (ms) the revision was made; None: there was none, and the state is empty."""
    state_events: Spans
    missing: Spans
    replayed: Spans
    twice: Spans
    """Events that the revision held and that were replayed nonetheless: they are in the state twice."""


@dataclass
class Report:
    """Fate of events, by number: `taken_events`, by a node; lost to all of them, or not queued for the other node."""

    events: int = 0
    taken_events: Spans = field(default_factory=Spans)
    lost_events: dict[Loss, Spans] = field(default_factory=dict)
    unqueued_events: dict[Loss, Spans] = field(default_factory=dict)
    takeovers: list[Takeover] = field(default_factory=list)
    revisions: Counter[str] = field(default_factory=Counter)
    """Number of revisions that each node persisted."""


@dataclass
class PairRevision:
    """A node's state at some time (ms): the engine's snapshot, and the events that went into it. `state` is None until
    the engine has worked up to then, which it has at the end of a call.
    """

    at: int
    state_events: Spans
    state: bytes | None = None


@dataclass(frozen=True)
class RevisionWrite:
    """A revision on its way to the database, and when (ms) it is there."""

    revision: PairRevision
    lands: int


@dataclass
class Queued:
    """Steps that a passive node holds: of the steps of `source` from number `at` on, those in the `mask` (bool);
    `number` of the sync and `first` event by step, and the number of events of each step.
    """

    source: InputBatch
    at: int
    mask: Array
    number: Array
    first: Array
    counts: Array

    @property
    def batch(self) -> InputBatch:
        """The steps that are held."""
        return pick_steps(between(self.source, self.at, self.at + len(self.mask)), self.mask)

    @property
    def events(self) -> int:
        """Number of events that it holds."""
        return int(self.counts[self.mask].sum())

    def after(self, number: int) -> Queued | None:
        """The steps with that number or a later one; None if there are none."""
        index = int(np.searchsorted(self.number, number))
        if index == 0:
            return self
        if index == len(self.number):
            return None
        rest = (a[index:] for a in (self.mask, self.number, self.first, self.counts))
        return Queued(self.source, self.at + index, *rest)


@dataclass
class PairServer:
    """A node: its engine while it is active, with the events that its state holds; its queue while it is passive."""

    name: str
    up: bool = True
    is_halted: bool = False
    engine: NodeEngine | None = None
    state_events: Spans = field(default_factory=Spans)
    syncing: bool = False
    sequence: int = 0
    """The last number that it gave to an event, or to a revision, that it sent to the other node."""
    trim_number: int = -1
    """The highest revision number that it has received: events up to there are old."""
    queue: list[Queued] = field(default_factory=list)
    queue_events: int = 0
    todo: list[Array] = field(default_factory=list)
    """Pending input of its engine: for consecutive runs of steps up to now, which have events for it."""
    snapshots: list[tuple[int, PairRevision]] = field(default_factory=list)
    """Revisions to make of its state before a step, by its number."""
    writing: RevisionWrite | None = None
    overdue: bool = False
    """True if it has to persist as soon as it has written."""
    transit: Transit = field(default_factory=Transit)
    """Messages under way to it from the other node."""

    def resume(self, time: int) -> None:
        """Continues at `time` (ms) after a halt; what it was writing is not in the database before."""
        self.is_halted = False
        if self.writing is not None:
            self.writing = replace(self.writing, lands=max(self.writing.lands, time))

    def become_passive(self) -> None:
        """Leaves its engine, and waits with an empty queue."""
        self.up, self.engine, self.state_events = True, None, Spans()
        self.queue, self.queue_events, self.syncing = [], 0, False


@dataclass(frozen=True)
class _Landed:
    """The revision that a node writes is in the database."""

    node: str


_Event = Happening | _Landed | str
"""Happening in a lane; a text is the name of a node that persists."""


@dataclass
class _PairStep:
    """A call of `step`: its batch, the `clock` (ms) at each step, and how many events each step has, with the number of
    the first of them."""

    batch: InputBatch
    clock: Array
    counts: Array
    numbers: Array
    out: list[Published] = field(default_factory=list)


class PairLane(LaneClock):
    """Runs a pair through a scenario, which begins with the first step. `engine` makes an engine that is at its start.
    `faults` come on top of the scenario's, at times (ms) of their own.

    An engine works when its state or its output is needed: as its node dies or is halted, as a revision of its state is
    restored, at the end of a call. Only the revisions up to then that still count are made.
    """

    def __init__(self, scenario: Scenario, engine: Callable[[], NodeEngine], faults: Sequence[Fault] = ()) -> None:
        super().__init__(faults)
        self.scenario, self.new_engine = scenario, engine
        self.pair = scenario.pair
        self.servers = {name: PairServer(name) for name in self.pair.nodes}
        self.revision: PairRevision | None = None
        self.report = Report()
        self.counts = GroupCounts()
        self.turn = 0
        self.unreachable: set[frozenset[str]] = set()
        self.delays: dict[frozenset[str], int] = {}
        """Links that are slow, and by how many ms."""

    def plan_fault(self, fault: Fault) -> None:
        """Add a fault. Raises `Misuse` for one that is impossible, or not later than the clock."""
        faults = self._with_fault(fault)
        self.scenario.schedule(self.start or 0, fault.at, faults)
        self.faults, self._timeline = faults, None

    def timeline(self, until: int) -> SimulatedTimeline:
        assert self.start is not None
        schedule = self.scenario.schedule(self.start, until, self.faults)
        return simulate(schedule, seed=self.scenario.seed, start=self.start, until=until)

    def step(self, batch: InputBatch) -> list[Published]:
        """Process steps; returns the nodes' outputs."""
        if not len(batch.clock):
            return []
        clock = np.maximum(self._clock_of(batch), self.now)
        counts = events_by_step(batch)
        call = _PairStep(batch, clock, counts, self.report.events + np.cumsum(counts) - counts)
        self.report.events += int(counts.sum())
        at = 0
        for upto, time, happening in self._until(clock):
            self._process(call, at, upto)
            at = upto
            self._happen(call, upto, time, happening)
        self._process(call, at, len(clock))
        self.now = int(clock[-1])
        for server in self.servers.values():
            self._work(call, server, len(clock))
            self._deliver(server, self.now)
        return call.out

    def answer(self, retrieval: Retrieval) -> dict[str, RetrievalAnswer]:
        """The answers of the active nodes to an on-demand query, by node. A change is made on all of them."""
        return {s.name: s.engine.answer(retrieval) for s in self.servers.values() if s.engine is not None}

    # ----------------------------------------------------------------------------------- happenings

    def _until(self, clock: Array) -> Iterator[tuple[int, int, _Event]]:
        """Happenings in order, each with the step that it precedes and its time. Continues after each has taken effect.
        """
        last = int(clock[-1])
        timeline, coming = self._timeline_until(last)
        items: list[tuple[int, int, _Event]] = [(h.at, 1, h) for h in coming]
        marks = np.unique(np.concatenate([clock, np.array([h.at for h in coming], np.int64)]))
        for c in timeline.clocks:
            items += [(due, 0, c.node) for due in self._due(c, marks)]
        for time, _, what in sorted(items, key=lambda x: x[:2]):
            for landing, node in self._landings(time):
                yield int(np.searchsorted(clock, landing)), landing, node
            yield int(np.searchsorted(clock, time)), time, what
        for landing, node in self._landings(last):
            yield int(np.searchsorted(clock, landing)), landing, node

    def _landings(self, upto: int) -> Iterator[tuple[int, _Landed]]:
        """Revisions that are in the database by `upto` (ms), those too whose writing begins as others are there."""
        while True:
            servers = [s for s in self.servers.values() if not s.is_halted]
            writing = [(s.writing.lands, _Landed(s.name)) for s in servers if s.writing]
            first = min(writing, key=lambda x: x[0], default=None)
            if first is None or first[0] > upto:
                return
            yield first

    def _due(self, clock: PersistTimes, marks: Array) -> list[int]:
        """When a node persists. Of several times with no step and no happening between them, the last one counts, or
        each one while the database is slow for it."""
        assert self._timeline is not None
        later = [c.start for c in self._timeline.clocks if c.node == clock.node and c.start > clock.start]
        last = min(later, default=int(marks[-1]))
        for begin, end in self._timeline.slow_spans(clock.node, DATABASE, int(marks[-1])):
            begin = max(begin, self.now, clock.start)
            first = begin + (clock.start - begin) % clock.every
            marks = np.concatenate([marks, np.arange(first, end + 1, clock.every)])
        marks = np.minimum(marks, last)
        due = clock.start + (marks - clock.start) // clock.every * clock.every
        return [int(t) for t in np.unique(due) if t > max(self.now, clock.start)]

    def _happen(self, call: _PairStep, at: int, time: int, happening: _Event) -> None:
        """Applies an event of the timeline before step number `at`."""
        self._note_losses(happening)
        for server in self.servers.values():
            self._deliver(server, time)
        match happening:
            case str(node):
                self._persist(self.servers[node], at, time)
            case _Landed(node=node):
                self._land(self.servers[node], at, time)
            case Down(node=node):
                self._work(call, self.servers[node], at)
                self._drop_sent(self.servers[node])
                self.servers[node] = PairServer(node, up=False)
            case Halted(node=node):
                self._work(call, self.servers[node], at)
                self.servers[node].is_halted = True
            case Resumed(node=node):
                self.servers[node].resume(time)
            case Delayed(a=a, b=b, by=by):
                self.delays[frozenset({a, b})] = by
            case LinkChanged():
                self._change_link(happening, time)
            case Active(node=node, started=started):
                for server in self.servers.values():
                    self._work(call, server, at)
                self._drop_sent(self.servers[node])
                again = self._activate(self.servers[node], time, replay=not started)
                call.out += [_shift_steps(p, at, only=True) for p in again]
            case Passive(node=node):
                server = self.servers[node]
                self._work(call, server, at)
                server.become_passive()
            case Syncing(node=node, whether=whether):
                server = self.servers[node]
                server.syncing = whether
                if whether:
                    self._persist(server, at, time)

    def _note_losses(self, happening: _Event) -> None:
        """Counts which events are lost from now on, and no longer."""
        if isinstance(happening, Active | Passive | Down | Halted | Resumed | LinkChanged):
            self.counts.close_loss()
        if isinstance(happening, Down | Halted | Passive) and self.servers[happening.node].engine is not None:
            self.counts.begin_gap()

    def _change_link(self, change: LinkChanged, time: int) -> None:
        """Connects two ends, or cuts them off: of two nodes, what is under way after `time` is lost."""
        if change.whether:
            self.unreachable.discard(frozenset({change.a, change.b}))
            return
        if {change.a, change.b} == set(self.servers):
            for server in self.servers.values():
                self._drop_sent(server, after=time)
        self.unreachable.add(frozenset({change.a, change.b}))

    def _work(self, call: _PairStep, server: PairServer, at: int) -> None:
        """Feed a node's engine its pending steps before step number `at`, and make its revisions."""
        if server.engine is None:
            return
        for place, revision in server.snapshots:
            if revision is self.revision or (server.writing and revision is server.writing.revision):
                self._take(call, server, place, at)
                revision.state = server.engine.snapshot()
        server.snapshots = []
        self._take(call, server, at, at)

    def _take(self, call: _PairStep, server: PairServer, end: int, at: int) -> None:
        """Feed the engine its pending steps before `end`; `at` is where the pending run ends."""
        if not server.todo or server.engine is None:
            return
        pending = np.concatenate(server.todo)
        begin = at - len(pending)
        mask, server.todo = pending[: end - begin], [pending[end - begin :]] if end < at else []
        if len(mask):
            outputs = server.engine.step(mask_events(between(call.batch, begin, end), mask))
            call.out.append(_shift_steps(Published(server.name, False, outputs), begin))

    def _reaches(self, a: str, b: str) -> bool:
        return frozenset({a, b}) not in self.unreachable

    def _delay(self, a: str, b: str) -> int:
        """Delay (ms) of messages from one to the other."""
        return self.delays.get(frozenset({a, b}), 0)

    def _activate(self, server: PairServer, time: int, *, replay: bool) -> list[Published]:
        """`HAManager.changeToActive`, or the start of an active node."""
        server.up, server.engine = True, self.new_engine()
        revision = self.revision
        server.state_events = Spans()
        if revision is not None:
            assert revision.state is not None
            server.engine.restore(revision.state)
            server.state_events = revision.state_events.copy()
        out, again, before = [], Spans(), server.state_events.copy()
        if replay:
            for steps in server.queue:
                out.append(Published(server.name, True, server.engine.step(steps.batch)))
                for spans in (server.state_events, again):
                    _add(spans, steps.first, steps.counts, steps.mask)
        server.queue, server.queue_events, server.trim_number = [], 0, -1
        missing, twice = self.report.taken_events.without(server.state_events), again.common(before)
        revision_time = None if revision is None else revision.at
        state_events = server.state_events.copy()
        self.report.takeovers.append(Takeover(server.name, time, revision_time, state_events, missing, again, twice))
        self.counts.takes_over(
            TakeoverCounts(
                server.name, time, revision_time, self.counts.lost_in_gap, len(again), len(missing), len(twice)
            )
        )
        return out

    def _persist(self, server: PairServer, at: int, time: int) -> None:
        """`PersistenceManager`: a revision. A node that writes one begins the next as that is written."""
        if server.engine is None or server.is_halted:
            return
        if server.writing is not None:
            server.overdue = True
            return
        revision = PairRevision(time, server.state_events.copy())
        server.snapshots.append((at, revision))
        reaches_database = self._reaches(server.name, DATABASE)
        server.writing = RevisionWrite(revision, time + (self._delay(server.name, DATABASE) if reaches_database else 0))
        if server.writing.lands == time:
            self._land(server, at, time)

    def _land(self, server: PairServer, at: int, time: int) -> None:
        """Finish a node's write to the database, which may have failed: the passive node learns which events are now
        old.
        """
        assert server.writing is not None
        revision, server.writing = server.writing.revision, None
        if self._reaches(server.name, DATABASE):
            self.report.revisions[server.name] += 1
            self.counts.revisions += 1
            if self.revision is None or revision.at >= self.revision.at:
                self.revision = revision
        overdue, server.overdue = server.overdue, False
        if server.engine is None:
            return
        server.sequence += 1
        peer = self.servers[self.pair.peer(server.name)]
        if server.syncing and peer.up and not peer.is_halted and self._reaches(server.name, peer.name):
            due = max(time + self._delay(server.name, peer.name), peer.transit.last)
            peer.transit.add(Trim(server.sequence, due))
            self._deliver(peer, time)
        if overdue:
            self._persist(server, at, time)

    # ----------------------------------------------------------------------------------- input

    def _process(self, call: _PairStep, first: int, end: int) -> None:
        """Steps between two happenings: the balancer's choice, the engines' pending input, the other node's queue."""
        if first == end:
            return
        counts, numbers = call.counts[first:end], call.numbers[first:end]
        places = self._chosen(counts)
        for place, server in enumerate(self.servers.values()):
            mask = (places == place) & (counts > 0)
            if server.engine is None or server.is_halted:
                self._lose(Loss.PASSIVE, call, first, np.where(mask, counts, 0))
                continue
            self.counts.taken += int(counts[mask].sum())
            _add(server.state_events, numbers, counts, mask)
            _add(self.report.taken_events, numbers, counts, mask)
            server.todo.append(mask)
            self._send(server, call, first, np.where(mask, counts, 0))
        self._lose(Loss.NOBODY, call, first, np.where(places < 0, counts, 0))

    def _lose(self, why: Loss, call: _PairStep, at: int, counts: Array) -> None:
        """No node takes the events of some steps; `counts` are of the steps from `at` on."""
        steps = np.flatnonzero(counts)
        if len(steps):
            _note(self.report.lost_events, why, call.numbers[at : at + len(counts)], counts, counts > 0)
            first, last = call.clock[at + steps[0]], call.clock[at + steps[-1]]
            self.counts.lose(why.value, int(counts.sum()), (int(first), int(last)))

    def _chosen(self, counts: Array) -> Array:
        """The place of the node that each step's events are sent to; -1: none takes them."""
        servers = list(self.servers.values())
        takes_events = [s.up and not s.is_halted and self._reaches(s.name, CLIENTS) for s in servers]
        if self.pair.balancer == "round_robin":
            requests: Array = np.cumsum(counts > 0)
            turns: Array = (self.turn + requests - (counts > 0)) % 2
            self.turn = (self.turn + int(requests[-1])) % 2
            places = [i for i, o in enumerate(takes_events) if o]
            return turns if len(places) == 2 else np.full(len(counts), places[0] if places else -1)
        serving = [o and s.engine is not None for o, s in zip(takes_events, servers, strict=True)]
        if (counts > 0).any() and not serving[self.turn] and any(serving):
            self.turn = serving.index(True)
        return np.full(len(counts), self.turn if serving[self.turn] else -1)

    def _send(self, server: PairServer, call: _PairStep, at: int, counts: Array) -> None:
        """`sendEventsToPassiveNode`, and the part that the passive node keeps; `counts` are of the steps from `at` on.
        """
        numbers = call.numbers[at : at + len(counts)]
        any_ = counts > 0
        if not any_.any():
            return
        peer = self.servers[self.pair.peer(server.name)]
        reaches_peer = server.syncing and peer.up and not peer.is_halted and self._reaches(server.name, peer.name)
        if not reaches_peer or peer.engine is not None:
            _note(self.report.unqueued_events, Loss.UNSENT, numbers, counts, any_)
            if reaches_peer:
                server.sequence += int(counts.sum())
            return
        number = server.sequence + np.cumsum(counts)  # number of the last event of each step
        server.sequence += int(counts.sum())
        clock = call.clock[at : at + len(counts)]
        due = np.maximum(clock + self._delay(server.name, peer.name), peer.transit.last)
        peer.transit.add(SentEvents(call.batch, at, number, numbers, counts, due))
        self._deliver(peer, int(clock[-1]))

    def _deliver(self, server: PairServer, upto: int) -> None:
        """Deliver messages that have arrived for a node up to `upto` (ms), once it is not halted."""
        if server.is_halted:
            return
        for message in server.transit.take(upto):
            if isinstance(message, SentEvents):
                self._hold(server, message)
                continue
            server.trim_number = max(server.trim_number, message.number)
            server.queue = [rest for q in server.queue if (rest := q.after(message.number)) is not None]
            server.queue_events = sum(q.events for q in server.queue)

    def _hold(self, server: PairServer, events: SentEvents) -> None:
        """`EventListMapManager`: keep events that have arrived at a passive node."""
        numbers, counts = events.first, events.counts
        any_ = counts > 0
        fresh = any_ & (events.number - counts + 1 > server.trim_number)
        _note(self.report.unqueued_events, Loss.STALE, numbers, counts, any_ & ~fresh)
        fits = np.cumsum(np.where(fresh, counts, 0)) + server.queue_events <= self.pair.queue
        _note(self.report.unqueued_events, Loss.FULL, numbers, counts, fresh & ~fits)
        mask = fresh & fits
        if mask.any():
            server.queue.append(Queued(events.source, events.at, mask, events.number, numbers, counts))
            server.queue_events += int(counts[mask].sum())

    def _drop_sent(self, server: PairServer, after: int = LONG_AGO) -> None:
        """Drop messages that would arrive for a node later than `after` (ms)."""
        for events in server.transit.lose(after):
            _note(self.report.unqueued_events, Loss.UNDERWAY, events.first, events.counts, events.counts > 0)


def _shift_steps(output: Published, by: int, *, only: bool = False) -> Published:
    """The same with steps `by` further on; `only`: all at step `by`, where nodes replay."""
    outputs = output.outputs
    streams = {
        name: replace(e, step=np.full(len(e.step), by, np.int64) if only else e.step + by)
        for name, e in outputs.streams.items()
    }
    return replace(output, outputs=replace(outputs, streams=streams))


def _add(spans: Spans, numbers: Array, counts: Array, steps: Array) -> None:
    """The events of some steps."""
    spans.add_all(Spans.of(numbers, counts, steps))


def _note(where: dict[Loss, Spans], why: Loss, numbers: Array, counts: Array, steps: Array) -> None:
    if steps.any():
        _add(where.setdefault(why, Spans()), numbers, counts, steps)
