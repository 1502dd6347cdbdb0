"""A fully distributed deployment, simulated: which partial app runs on which node when, given the faults.

The rules follow WSO2's Stream Processor 4 (carbon-analytics 2.x): `ResourceManagerApiServiceImpl`,
`ResourceNodeMonitor`, `DeploymentManagerImpl` and `CoordinatorChangeListener` of a manager, `HeartbeatSender` of a
resource node, over the coordination of `coordination.py`. Also where they surprise: a manager that has ever led
continues to look after its own copy of the pool; an app that cannot be placed is forgotten where it runs, and not ended
there.

Requests take no time, and a node ends the apps of an emptied folder at once. `simulate` is a function of its arguments
alone, and its result up to some time does not depend on how far it runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field

from .coordination import LATE, NEVER, Change, Coordinators
from .faults import Cut, Fault, Kill, Pause, Restart
from .placements import Dropped, GivenUp, HeldBack, Joined, Leads, Placed, StartedUp
from .resources import PartialApp, ResourceScenario
from .timeline import (
    Deposed,
    Down,
    Elected,
    Faulted,
    Happening,
    LinkChanged,
    NodePauses,
    PersistTimes,
    SimulatedTimeline,
)
from .topology import DATABASE

_REDIRECTS = 3
"""Maximum number of managers that a heartbeat follows when they redirect it."""


def simulate_resources(
    scenario: ResourceScenario, *, start: int, until: int, more: tuple[Fault, ...] = ()
) -> SimulatedTimeline:
    """Simulate from `start` to `until` (ms, inclusive). It begins with all nodes up, the first manager
    leading, and the apps placed. `more` faults have the times of their own.
    """
    run = ResourceSimulation(scenario, scenario.schedule(start, until, more), start)
    run.upto(until)
    return run.timeline


@dataclass
class _Pooled:
    """A node as a manager knows it."""

    receiver: bool
    last: int
    failures: int = 0


@dataclass
class _Pool:
    """The resource pool: the nodes in the order in which they joined, and where each partial app is (None: nowhere, to
    the manager's knowledge). `waiting`: the app waits for nodes. `buckets` of the hash map that holds nodes.
    """

    nodes: dict[str, _Pooled] = field(default_factory=dict)
    apps: dict[str, str | None] = field(default_factory=dict)
    waiting: bool = False
    buckets: int = 16

    def kind(self, *, receiver: bool) -> list[str]:
        """The names of the nodes of a kind, as Java's `ConcurrentHashMap` lists them."""
        names = [n for n, p in self.nodes.items() if p.receiver == receiver]
        buckets = self.buckets
        while len(names) >= buckets - buckets // 4:
            buckets *= 2
        return sorted(names, key=lambda n: _spread(n) & (buckets - 1))

    def load_copy(self) -> _Pool:
        """The pool as another manager reads it from the database."""
        copy = deepcopy(self)
        size = len(copy.nodes) + len(copy.nodes) // 2 + 1
        copy.buckets = 1 << (size - 1).bit_length()
        return copy


def _spread(text: str) -> int:
    """The hash of a text as `ConcurrentHashMap` spreads it."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return (value ^ (value >> 16)) & 0x7FFFFFFF


@dataclass
class _SimulatedManager:
    """A manager's process. `leader`: whom it takes for the leader; `looks`: when its monitors run next (ms)."""

    name: str
    up: bool = True
    leads: bool = False
    leader: str | None = None
    pool: _Pool | None = None
    looks: list[int] = field(default_factory=list)
    passes: dict[bool, list[str]] = field(default_factory=dict)
    """Nodes left in the present round, by their kind."""


@dataclass
class _Worker:
    """A resource node's process: the receiver of its heartbeats, the time (ms) since when it has heard nothing, and its
    partial apps.
    """

    name: str
    receiver: bool
    up: bool = True
    new: bool = False
    leader: str | None = None
    last_contact: int = 0
    is_cleaned: bool = False
    next_beat: int = NEVER
    runs: dict[str, None] = field(default_factory=dict)


class ResourceSimulation:
    """A simulation that is extended on demand: its `timeline` grows. It is the listener of the managers'
    coordination, which makes one of them lead the pool.
    """

    def __init__(self, scenario: ResourceScenario, schedule: tuple[Fault, ...], start: int) -> None:
        self.cluster, self.parts = scenario.cluster, {p.name: p for p in scenario.apps}
        c = self.cluster
        self.timeline = SimulatedTimeline()
        self.now = start
        rng = random.Random(f"{scenario.seed}:managers")
        self.coordinators = Coordinators(c.managers, c.coordination, rng)
        self.coordinators.listener = self
        self.managers = {m: _SimulatedManager(m, leader=c.managers[0]) for m in c.managers}
        self.workers = {w.name: _Worker(w.name, w.receiver) for w in c.workers}
        self.pauses = NodePauses(self._say)
        self.cuts: list[Cut] = []
        self.stored_pool: _Pool | None = None
        """The pool in the database."""
        self.faults: list[tuple[int, int, Fault, bool]] = sorted(
            [
                *((f.at, i, f, True) for i, f in enumerate(schedule)),
                *((f.until, i, f, False) for i, f in enumerate(schedule) if isinstance(f, Pause | Cut)),
            ],
            key=lambda x: x[:2],
        )
        self._begin(start, rng)

    def _begin(self, start: int, rng: random.Random) -> None:
        self.coordinators.begin_settled(start)
        first = self.managers[self.cluster.managers[0]]
        first.leads, first.pool = True, _Pool(apps=dict.fromkeys(self.parts))
        first.looks = [start + 1 + rng.randrange(self.cluster.heartbeat)]
        for worker in self.workers.values():
            worker.next_beat = start + 1 + rng.randrange(self.cluster.heartbeat)
            worker.leader, worker.last_contact = first.name, worker.next_beat - self.cluster.heartbeat
            first.pool.nodes[worker.name] = _Pooled(worker.receiver, worker.last_contact)
            if self.cluster.persist is not None:
                self.timeline.clocks.append(PersistTimes(worker.name, start, self.cluster.persist))
            self._say(StartedUp(start, worker.name))
        self._say(Leads(start, first.name))
        self._deploy(first, start)
        self._store(first)

    def _say(self, happening: Happening) -> None:
        self.timeline.happenings.append(happening)

    # ------------------------------------------------------------------------------------------------------- the loop

    def upto(self, until: int) -> None:
        """Runs to `until` (ms), inclusive."""
        while True:
            fault_at = self.faults[0][0] if self.faults else NEVER
            horizon = min(fault_at, until)
            if self._next() < horizon and self._quiet():
                self._skip(horizon)
            now = min(max(self._next(), self.now), fault_at)
            if now > until:
                return
            self.now = now
            if now == fault_at:
                _, _, fault, begins = self.faults.pop(0)
                self._fault(fault, now, begins=begins)
            else:
                self._loops(now)

    def _loops(self, now: int) -> None:
        """Run all due loops: coordination, then heartbeats, then the managers' monitors, each in the nodes' order."""
        if self.coordinators.next_at(set(self.pauses.until)) <= now:
            self.coordinators.run(now, set(self.pauses.until))
        for worker in self.workers.values():
            if worker.next_beat <= now and worker.name not in self.pauses.until:
                self._beat(worker, now)
        for manager in self.managers.values():
            if manager.name in self.pauses.until:
                continue
            for i in range(len(manager.looks)):
                while manager.looks[i] <= now:  # rounds missed while it was halted are made up for at once
                    manager.looks[i] += self.cluster.heartbeat
                    self._look(manager, now)

    def _next(self) -> int:
        """Time (ms) of the next loop, of nodes that are not halted."""
        return min(
            [
                self.coordinators.next_at(set(self.pauses.until)),
                *(w.next_beat for w in self.workers.values() if w.name not in self.pauses.until),
                *(at for m in self.managers.values() if m.name not in self.pauses.until for at in m.looks),
            ]
        )

    def _quiet(self) -> bool:
        """True if nothing will change until something happens from outside."""
        leaders = [m for m in self.managers.values() if m.leads]
        looking = [m for m in self.managers.values() if m.looks and m.pool is not None and m.pool.nodes]
        manager_cut = any({c.a, c.b} & {*self.managers} for c in self.cuts)
        if (
            self.pauses.until
            or manager_cut
            or len(leaders) != 1
            or looking not in ([], leaders)
            or leaders[0].pool is None
        ):
            return False
        steady = leaders[0].up and self._knows_all(leaders[0].name, leaders[0].pool)
        return steady and self.coordinators.quiet(self.coordinators.next_at(set()))

    def _knows_all(self, leader: str, pool: _Pool) -> bool:
        """True if the leader has all nodes that are up in its `pool`, and each has sent its last heartbeat in time: the
        next one is the next event of its own."""
        up = [w for w in self.workers.values() if w.up]
        return (
            {*pool.nodes} == {w.name for w in up}
            and all(w.leader == leader and not w.new for w in up)
            and all(p.failures == 0 for p in pool.nodes.values())
            and all(pool.nodes[w.name].last == w.last_contact for w in up)
            and all(w.next_beat - w.last_contact < 2 * self.cluster.heartbeat for w in up)
        )

    def _skip(self, upto: int) -> None:
        """Passes over loops before `upto` (ms) in which, all being quiet, nothing changes."""
        leader = next(m for m in self.managers.values() if m.leads)
        assert leader.pool is not None
        self.coordinators.skip(upto)
        beat = self.cluster.heartbeat + LATE
        for worker in self.workers.values():
            beats = max(0, -(-(upto - worker.next_beat) // beat)) if worker.up else 0
            if beats:
                worker.next_beat += beats * beat
                worker.last_contact = leader.pool.nodes[worker.name].last = worker.next_beat - beat
        beat = self.cluster.heartbeat
        for manager in self.managers.values():
            manager.looks = [at + max(0, -(-(upto - at) // beat)) * beat for at in manager.looks]

    # ---------------------------------------------------------------------------------------------------- happenings

    def _fault(self, fault: Fault, now: int, *, begins: bool) -> None:
        if begins:
            self._say(Faulted(now, str(fault)))
        match fault:
            case Kill(node=node):
                self.pauses.until.pop(node, None)
                self._kill(node, now)
            case Restart(node=node):
                self._say(StartedUp(now, node))
                self._restart(node, now)
            case Pause(node=node) if begins:
                self.pauses.halt(node, now, fault.until)
            case Pause(node=node) if self.pauses.resume(node, now):
                if node in self.managers:
                    self.coordinators.resume(node, now)
                else:
                    self.workers[node].next_beat = max(self.workers[node].next_beat, now)
            case Cut():
                self._cut(fault, now, begins=begins)

    def _kill(self, node: str, now: int) -> None:
        self._say(Down(now, node))
        if node in self.managers:
            self.managers[node] = _SimulatedManager(node, up=False)
            self.coordinators.stop(node)
        else:
            self.workers[node] = _Worker(node, self.workers[node].receiver, up=False)

    def _restart(self, node: str, now: int) -> None:
        if node in self.managers:
            self.managers[node] = _SimulatedManager(node)
            self.coordinators.start(node, now)
            return
        worker = self.workers[node] = _Worker(node, self.workers[node].receiver, new=True)
        if self.cluster.persist is not None:
            self.timeline.clocks.append(PersistTimes(node, now, self.cluster.persist))
        self._beat(worker, now)

    def _cut(self, cut: Cut, now: int, *, begins: bool) -> None:
        ends = {cut.a, cut.b}
        before = any({c.a, c.b} == ends for c in self.cuts)
        (self.cuts.append if begins else self.cuts.remove)(cut)
        after = any({c.a, c.b} == ends for c in self.cuts)
        if before != after:
            self._say(LinkChanged(now, cut.a, cut.b, not after))
        from_database = ((ends - {DATABASE}).pop() for c in self.cuts if DATABASE in (ends := {c.a, c.b}))
        self.coordinators.cut = {n for n in from_database if n in self.managers}

    def _reaches(self, manager: str, worker: str) -> bool:
        """True if a request of one process gets through to the other, and is answered."""
        ends = {manager, worker}
        both_up = self.managers[manager].up and self.workers[worker].up
        return both_up and not ends & {*self.pauses.until} and not any({c.a, c.b} == ends for c in self.cuts)

    # --------------------------------------------------------------------------------- a resource node's heartbeats

    def _beat(self, worker: _Worker, now: int) -> None:
        """`HeartbeatSender.run`: to the leader that it knows, else to each manager in turn."""
        leader = [] if worker.leader is None else [worker.leader]
        reached_any = any(self._send(worker, m, now) for m in (*leader, *self.cluster.managers))
        worker.next_beat = now + (self.cluster.heartbeat + LATE if reached_any else self.cluster.retry)

    def _send(self, worker: _Worker, to: str, now: int, redirects: int = 0) -> bool:
        """`HeartbeatSender.sendHeartbeat`, and the manager's answer."""
        silent = worker.leader is not None and now - worker.last_contact > self.cluster.heartbeat * self.cluster.retries
        if silent and not worker.is_cleaned:
            self._clean(worker, now, "its node reaches no manager")
            worker.new = worker.is_cleaned = True
        if not self._reaches(to, worker.name):
            return False
        manager = self.managers[to]
        if manager.leader is None or redirects > _REDIRECTS:
            return False
        if not manager.leads:
            return self._send(worker, manager.leader, now, redirects + 1)
        is_new = self._take_heartbeat(manager, worker, now)
        worker.last_contact, worker.leader = now, to
        if is_new and not worker.new:
            self._clean(worker, now, "its node joins anew")
        worker.new = worker.is_cleaned = False
        return True

    def _take_heartbeat(self, manager: _SimulatedManager, worker: _Worker, now: int) -> bool:
        """`ResourceManagerApiServiceImpl.updateHeartbeat`: whether the node was not there before."""
        pool = manager.pool
        assert pool is not None
        pooled = pool.nodes.get(worker.name)
        if pooled is None:
            pool.nodes[worker.name] = _Pooled(worker.receiver, now)
            self._say(Joined(now, worker.name, manager.name))
            self._handle_added_node(manager, now)
            self._store(manager)
            return True
        pooled.last = now
        if worker.new:  # it went down and is back before the manager has missed it
            apps = [a for a, node in pool.apps.items() if node == worker.name]
            for app in apps:
                self._place(worker, app, now)
            if not apps:
                self._handle_added_node(manager, now)
            self._store(manager)
        return False

    def _clean(self, worker: _Worker, now: int, why: str) -> None:
        for app in worker.runs:
            self._say(Dropped(now, worker.name, app, why))
        worker.runs.clear()

    # ------------------------------------------------------------------------------------------ a manager's decisions

    def _look(self, manager: _SimulatedManager, now: int) -> None:
        """`ResourceNodeMonitor`."""
        pool, c = manager.pool, self.cluster
        assert pool is not None
        for name in (*pool.kind(receiver=False), *pool.kind(receiver=True)):
            node = pool.nodes.get(name)
            if node is None:
                continue
            if now - node.last < 2 * c.heartbeat:
                node.failures = 0
                continue
            node.failures += 1
            if node.failures > c.retries:
                del pool.nodes[name]
                self._say(GivenUp(now, name, manager.name, now - node.last))
                self._handle_removed_node(manager, name, now)
                self._store(manager)

    def _deploy(self, manager: _SimulatedManager, now: int) -> None:
        """`DeploymentManagerImpl.deploy`: all parts find a node, or none runs and the app waits."""
        pool = manager.pool
        assert pool is not None
        for part in self.parts.values():
            node = self._find_place(manager, part, now)
            if node is None:
                self._undeploy(manager, [p for p, at in pool.apps.items() if at is not None], now, "the app waits")
                pool.waiting = True
                return
            pool.apps[part.name] = node
        pool.waiting = False

    def _handle_added_node(self, manager: _SimulatedManager, now: int) -> None:
        """`resourceAdded`: an app that waits is tried again. Nothing that runs is moved."""
        if manager.pool is not None and manager.pool.waiting:
            self._deploy(manager, now)

    def _handle_removed_node(self, manager: _SimulatedManager, removed_node: str, now: int) -> None:
        """`resourceRemoved`. If a part finds no node, the whole app waits: its parts elsewhere are forgotten before
        they could be ended, and keep running.
        """
        pool = manager.pool
        assert pool is not None
        apps = [a for a, node in pool.apps.items() if node == removed_node]
        self._undeploy(manager, apps, now, f"{manager.name} moves it")
        for app in apps:
            node = self._find_place(manager, self.parts[app], now)
            if node is not None:
                pool.apps[app] = node
            elif not pool.waiting:
                pool.apps = dict.fromkeys(pool.apps)
                pool.waiting = True

    def _undeploy(self, manager: _SimulatedManager, apps: Iterable[str], now: int, why: str) -> None:
        """`rollback`: of nodes that can be reached."""
        assert manager.pool is not None
        for app in apps:
            node = manager.pool.apps[app]
            if node is not None and self._reaches(manager.name, node):
                worker = self.workers[node]
                if app in worker.runs:
                    del worker.runs[app]
                    self._say(Dropped(now, node, app, why))
                manager.pool.apps[app] = None

    def _find_place(self, manager: _SimulatedManager, part: PartialApp, now: int) -> str | None:
        """The node that takes a part: `RoundRobinAllocationAlgorithm`, and further nodes where one does not answer."""
        pool = manager.pool
        assert pool is not None
        nodes = pool.kind(receiver=part.receiver)
        least_nodes = part.parallel if part.receiver else self.cluster.minimum
        if not nodes or len(nodes) < least_nodes:
            kind = "receivers" if part.receiver else "resource nodes"
            why = f"{len(nodes)} of {max(1, least_nodes)} {kind} that are needed are there"
            self._say(HeldBack(now, manager.name, part.name, why))
            return None
        for _ in range(len(nodes) + 1):
            left = [n for n in manager.passes.get(part.receiver, []) if n in nodes] or list(nodes)
            node, manager.passes[part.receiver] = left[0], left[1:]
            if self._reaches(manager.name, node):
                self._place(self.workers[node], part.name, now)
                return node
        self._say(HeldBack(now, manager.name, part.name, "no node answers"))
        return None

    def _place(self, worker: _Worker, app: str, now: int) -> None:
        """Place a partial app on a node; one that it has already is restarted."""
        if app in worker.runs:
            self._say(Dropped(now, worker.name, app, "it is deployed again"))
        worker.runs[app] = None
        self._say(Placed(now, worker.name, app))

    def _store(self, manager: _SimulatedManager) -> None:
        """The pool is written into the database, where the manager reaches it."""
        if manager.name not in self.coordinators.cut and manager.pool is not None:
            self.stored_pool = deepcopy(manager.pool)

    # What follows is called by the coordination.

    def handle_join(self, node: str, now: int) -> None:
        """A manager has started: it learns who leads; one that still does leads the stored nodes and apps."""
        manager = self.managers[node]
        manager.leader = self.coordinators.database.coordinator
        if manager.leader == node:
            self._lead(manager, now)

    def handle_change(self, node: str, change: Change, subject: str, now: int) -> None:
        """`CoordinatorChangeListener.coordinatorChanged`."""
        if change is not Change.COORDINATOR:
            return
        manager = self.managers[node]
        manager.leader = subject
        manager.leads = self.coordinators.database.coordinator == node
        if manager.leads:
            self._lead(manager, now)

    def _lead(self, manager: _SimulatedManager, now: int) -> None:
        manager.leads = True
        manager.pool = (
            self.stored_pool.load_copy() if self.stored_pool is not None else _Pool(apps=dict.fromkeys(self.parts))
        )
        manager.looks.append(now + self.cluster.heartbeat)
        self._say(Leads(now, manager.name))
        self._store(manager)

    def unresponsive(self, node: str, now: int) -> None:
        """`CoordinatorChangeListener.becameUnresponsive`."""
        manager = self.managers[node]
        if manager.leads:
            manager.leads, manager.leader = False, None

    def handle_election(self, node: str, now: int, age: int | None) -> None:
        """For the log."""
        self._say(Elected(now, node, age))

    def handle_deposition(self, node: str, now: int) -> None:
        """For the log."""
        self._say(Deposed(now, node))
