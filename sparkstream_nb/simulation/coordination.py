"""Election through a database, step by step as WSO2's servers do it.

The rules follow `RDBMSCoordinationStrategy` (carbon-coordination): every node runs two loops. One writes its
heartbeat; a member's checks the coordinator's as well, and takes its place if it is too old, the coordinator's finds
nodes that are new or silent. The other reads their records as events. Nothing here reads a clock.

A run of a loop is one exchange with the database. On a slow link it takes effect later, with the time of its begin: a
heartbeat that is written late is older for the others by that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from .topology import Coordination

NEVER = 1 << 62
LATE = 1
"""Delay (ms) of a loop: a thread does not wake early. It decides who notices first that a coordinator which
missed the database once has renewed nothing for 5 × 5000 ms: mostly that node itself.
"""


class Change(Enum):
    """Changes that the nodes of a group read in the database."""

    ADDED = "added"
    REMOVED = "removed"
    COORDINATOR = "coordinator"


@dataclass
class _HeartbeatRow:
    """A node in the table of heartbeats."""

    at: int
    new: bool


@dataclass
class GroupTables:
    """The tables of a group: heartbeats, the coordinator with its own, and unread changes by node."""

    heartbeats: dict[str, _HeartbeatRow] = field(default_factory=dict)
    coordinator: str | None = None
    coordinator_at: int = 0
    changes: dict[str, list[tuple[Change, str]]] = field(default_factory=dict)

    def tell(self, change: Change, subject: str, nodes: Sequence[str]) -> None:
        """Writes a change down for each of the nodes."""
        for node in nodes:
            self.changes.setdefault(node, []).append((change, subject))


class CoordinationListener(Protocol):
    """A server's reactions to its coordination."""

    def handle_join(self, node: str, now: int) -> None:
        """The node has started, and there is a coordinator."""

    def handle_change(self, node: str, change: Change, subject: str, now: int) -> None:
        """The node has read a change."""

    def unresponsive(self, node: str, now: int) -> None:
        """The node could not read changes for longer than a heartbeat counts."""

    def handle_election(self, node: str, now: int, age: int | None) -> None:
        """The node has become the coordinator; the former one's heartbeat was so old."""

    def handle_deposition(self, node: str, now: int) -> None:
        """The node has found that it is not the coordinator any more."""


@dataclass
class Member:
    """A node's part in the coordination. `next_beat` and `next_poll`: when its loops run, or end the run that is under
    way (ms). `beat_began`: when that run of the first loop began; None: none is under way. `polls`: whether one of the
    second loop is."""

    name: str
    next_beat: int = NEVER
    next_poll: int = NEVER
    running: bool = False
    coordinates: bool = False
    joining: bool = False
    silent_since: int | None = None
    beat_began: int | None = None
    polls: bool = False


class Coordinators:
    """The coordination of one group. The caller asks when something is `next_at`, and lets it `run` then."""

    def __init__(self, names: Sequence[str], figures: Coordination, rng: random.Random) -> None:
        self.figures, self.rng = figures, rng
        self.members = {name: Member(name) for name in names}
        self.database = GroupTables()
        self.cut: set[str] = set()
        """Nodes that do not reach the database."""
        self.delays: dict[str, int] = {}
        """Delay (ms) after which a node's exchange with the database takes effect."""
        self.listener: CoordinationListener

    def begin_settled(self, now: int) -> None:
        """Begins with all nodes up and known to one another, the first of them the coordinator."""
        for member in self.members.values():
            member.running = True
            member.next_beat = now + self.rng.randrange(self.figures.heartbeat)
            member.next_poll = now + self.rng.randrange(self.figures.poll)
            self.database.heartbeats[member.name] = _HeartbeatRow(member.next_beat - self.figures.heartbeat, new=False)
        first = next(iter(self.members.values()))
        first.coordinates = True
        self.database.coordinator = first.name
        self.database.coordinator_at = first.next_beat - self.figures.heartbeat

    def start(self, name: str, now: int) -> None:
        """A node starts (`joinGroup`); it tries again every five seconds where it does not reach the database."""
        member = self.members[name]
        member.running, member.joining, member.silent_since = True, True, None
        member.next_poll = now + self.figures.poll
        if self._delay(member):
            member.beat_began, member.next_beat = now, now + self._delay(member)
        else:
            self._join(member, now, now)

    def stop(self, name: str) -> None:
        """A node ends."""
        member = self.members[name]
        member.running = member.coordinates = member.joining = False
        member.next_beat = member.next_poll = NEVER
        member.beat_began, member.polls = None, False

    def resume(self, name: str, now: int) -> None:
        """A halted node resumes: loops that fell due meanwhile run at once, in an order that the seed decides."""
        member = self.members[name]
        first = self.rng.randrange(2)
        member.next_beat = max(member.next_beat, now + first)
        member.next_poll = max(member.next_poll, now + 1 - first)

    def next_at(self, halted_nodes: set[str]) -> int:
        """Time (ms) of the next loop, of nodes that are not halted."""
        awake = (m for m in self.members.values() if m.name not in halted_nodes)
        return min((min(m.next_beat, m.next_poll) for m in awake), default=NEVER)

    def run(self, now: int, halted_nodes: set[str]) -> None:
        """Runs the loops that are due: heartbeats first, in the order of the nodes."""
        awake = [m for m in self.members.values() if m.name not in halted_nodes]
        for member in awake:
            if member.next_beat <= now:
                self._run_beat(member, now)
        for member in awake:
            if member.next_poll <= now:
                self._run_poll(member, now)

    def quiet(self, now: int) -> bool:
        """True if nothing will change without an outside event: only heartbeats are left."""
        members = self.members.values()
        return (
            [m.name for m in members if m.coordinates] == [self.database.coordinator]
            and self._is_known(now)
            and not any(m.joining or m.silent_since is not None for m in members)
            and not any(self.delays.values())
            and not any(m.polls or m.beat_began is not None for m in members)
            and self.figures.retries > 1
        )

    def _is_known(self, now: int) -> bool:
        """True if the database has a heartbeat in time of each running member, and none has to learn of a change."""
        db, running = self.database, {n for n, m in self.members.items() if m.running}
        return (
            not any(db.changes.get(name) for name in running)
            and set(db.heartbeats) == running
            and all(not r.new and now - r.at <= self.figures.oldest for r in db.heartbeats.values())
            and not self.cut.intersection(running)
        )

    def skip(self, upto: int) -> None:
        """Passes over heartbeats and polls before `upto` (ms) in which, the group being quiet, nothing changes."""
        for m in self.members.values():
            if not m.running:
                continue
            beat, poll = self.figures.heartbeat + LATE, self.figures.poll + LATE
            m.next_beat += max(0, (upto - m.next_beat) // beat) * beat
            m.next_poll += max(0, (upto - m.next_poll) // poll) * poll
            self.database.heartbeats[m.name].at = m.next_beat - beat
            if m.coordinates:
                self.database.coordinator_at = m.next_beat - beat

    def _delay(self, member: Member) -> int:
        """Duration (ms) of a run that begins now; 0 also for one that fails at once."""
        return 0 if member.name in self.cut else self.delays.get(member.name, 0)

    def _run_beat(self, member: Member, now: int) -> None:
        """The first loop is due: it begins a run, which ends at once where nothing is slow, or ends one."""
        if member.beat_began is None and self._delay(member):
            member.beat_began, member.next_beat = now, now + self._delay(member)
            return
        began = now if member.beat_began is None else member.beat_began
        # `HeartBeatExecutionTask` counts its interval from the begin, and goes on at once where that has passed.
        member.beat_began, member.next_beat = None, max(began + self.figures.heartbeat + LATE, now)
        if member.joining:
            self._join(member, began, now)
        else:
            self._beat(member, began, now)

    def _run_poll(self, member: Member, now: int) -> None:
        """The second loop is due, as in `_run_beat`; its interval begins as a run ends."""
        if not member.polls and self._delay(member):
            member.polls, member.next_poll = True, now + self._delay(member)
            return
        member.polls, member.next_poll = False, now + self.figures.poll + LATE
        self._poll(member, now)

    def _join(self, member: Member, began: int, now: int) -> None:
        if member.name in self.cut:
            member.next_beat = now + 5_000
            return
        db = self.database
        db.changes.pop(member.name, None)
        row = db.heartbeats.get(member.name)
        if row is not None and began - row.at < self.figures.oldest and db.coordinator == member.name:
            member.coordinates = True  # it comes back before it is missed
            db.coordinator_at = began
        member.joining = False
        member.next_beat = max(began + self.figures.heartbeat + LATE, now)
        self._beat(member, began, now)
        self.listener.handle_join(member.name, now)

    def _beat(self, member: Member, began: int, now: int) -> None:
        """`runCoordinationElectionTask`: any exception makes the node a member. All ages are taken from its begin."""
        if member.name in self.cut:
            member.coordinates = False
            return
        db = self.database
        if member.coordinates and db.coordinator != member.name:
            self.listener.handle_deposition(member.name, now)
            member.coordinates = False
            self._elect(member, began, now, None)
        elif member.coordinates:
            db.coordinator_at = began
            self._heartbeat(member, began)
            self._find_changes(began)
        else:
            self._heartbeat(member, began)
            age = None if db.coordinator is None else began - db.coordinator_at
            if age is None or age > self.figures.oldest:
                db.coordinator = None
                self._elect(member, began, now, age)

    def _heartbeat(self, member: Member, began: int) -> None:
        row = self.database.heartbeats.get(member.name)
        if row is None:
            self.database.heartbeats[member.name] = _HeartbeatRow(began, new=True)
        else:
            row.at = began

    def _elect(self, member: Member, began: int, now: int, age: int | None) -> None:
        """`tryToElectSelfAsCoordinator`: the row of the coordinator can be written once."""
        db = self.database
        if db.coordinator is not None:
            return
        db.coordinator, db.coordinator_at = member.name, began
        nodes = list(db.heartbeats)
        self._find_changes(began)
        member.coordinates = True
        db.tell(Change.COORDINATOR, member.name, nodes)
        self.listener.handle_election(member.name, now, age)

    def _find_changes(self, began: int) -> None:
        """`findAddedRemovedMembers`: silent nodes are forgotten, new ones announced."""
        db = self.database
        removed_nodes = [n for n, row in db.heartbeats.items() if began - row.at >= self.figures.oldest]
        added_nodes = [n for n, row in db.heartbeats.items() if row.new and n not in removed_nodes]
        for node in removed_nodes:
            del db.heartbeats[node]
        alive = list(db.heartbeats)
        for node in added_nodes:
            db.heartbeats[node].new = False
            db.tell(Change.ADDED, node, alive)
        for node in removed_nodes:
            db.tell(Change.REMOVED, node, alive)

    def _poll(self, member: Member, now: int) -> None:
        """`RDBMSMemberEventListenerTask`."""
        if member.name in self.cut:
            member.silent_since = now if member.silent_since is None else member.silent_since
            if now - member.silent_since > self.figures.oldest:
                self.listener.unresponsive(member.name, now)
            return
        member.silent_since = None
        for change, subject in self.database.changes.pop(member.name, []):
            self.listener.handle_change(member.name, change, subject, now)
