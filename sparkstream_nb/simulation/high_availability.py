"""Minimum high availability, simulated: who is active from when to when, given the faults.

The rules follow `HAManager` and `HAEventListener` (carbon-analytics) over the coordination of `coordination.py`.
`simulate` is a function of its arguments alone, and its result up to some time does not depend on how far it runs.
"""

from __future__ import annotations

import random

from . import timeline
from .coordination import NEVER, Change, Coordinators
from .faults import Cut, Fault, Kill, Lasting, Pause, Restart, Schedule, Slow
from .topology import DATABASE


def simulate(schedule: Schedule, *, seed: int = 0, start: int, until: int) -> timeline.SimulatedTimeline:
    """Simulate a pair from `start` to `until` (ms, inclusive). It begins with both nodes up, the first one
    active; `seed` decides when in its interval each loop of a node runs.
    """
    run = _PairSimulation(schedule, seed, start)
    run.upto(until)
    return run.timeline


class _PairSimulation:
    """A simulation: the listener of its coordination, which decides roles."""

    def __init__(self, schedule: Schedule, seed: int, start: int) -> None:
        pair = schedule.pair
        self.pair, self.timeline = pair, timeline.SimulatedTimeline()
        self.coordinators = Coordinators(pair.nodes, pair.coordination, random.Random(f"{seed}:{pair.group}"))
        self.coordinators.listener = self
        self.pauses = timeline.NodePauses(self._say)
        self.cuts: list[Cut] = []
        self.slows: list[Slow] = []
        self.faults: list[tuple[int, int, Fault, bool]] = sorted(
            [
                *((f.at, i, f, True) for i, f in enumerate(schedule.faults)),
                *((f.until, i, f, False) for i, f in enumerate(schedule.faults) if isinstance(f, Lasting)),
            ],
            key=lambda x: x[:2],
        )
        self.active: set[str] = {pair.nodes[0]}
        self.syncing: set[str] = {pair.nodes[0]}
        self.coordinators.begin_settled(start)
        for node in pair.nodes:
            self.timeline.clocks.append(timeline.PersistTimes(node, start, pair.persist))
        self._say(timeline.Active(start, pair.nodes[0], started=True))
        self._say(timeline.Passive(start, pair.nodes[1], started=True))
        self._say(timeline.Syncing(start, pair.nodes[0], whether=True))

    def _say(self, happening: timeline.Happening) -> None:
        self.timeline.happenings.append(happening)

    def upto(self, until: int) -> None:
        """Runs to `until` (ms), inclusive."""
        now = 0
        while True:
            fault_at = self.faults[0][0] if self.faults else NEVER
            now = self.coordinators.next_at(set(self.pauses.until))
            if not self.pauses.until and min(fault_at, until) > now and self.coordinators.quiet(now):
                self.coordinators.skip(min(fault_at, until))
                now = self.coordinators.next_at(set())
            now = min(now, fault_at)
            if now > until:
                return
            if now == fault_at:
                _, _, fault, begins = self.faults.pop(0)
                self._fault(fault, now, begins=begins)
            else:
                self.coordinators.run(now, set(self.pauses.until))

    def _fault(self, fault: Fault, now: int, *, begins: bool) -> None:
        if begins:
            self._say(timeline.Faulted(now, str(fault)))
        match fault:
            case Kill(node=node):
                self.pauses.until.pop(node, None)
                self.active.discard(node)
                self.syncing.discard(node)
                self.coordinators.stop(node)
                self._say(timeline.Down(now, node))
            case Restart(node=node):
                self.timeline.clocks.append(timeline.PersistTimes(node, now, self.pair.persist))
                self.coordinators.start(node, now)
            case Pause(node=node) if begins:
                self.pauses.halt(node, now, fault.until)
            case Pause(node=node) if self.pauses.resume(node, now):
                self.coordinators.resume(node, now)
            case Cut():
                self._cut(fault, now, begins=begins)
            case Slow():
                self._slow(fault, now, begins=begins)

    def _cut(self, cut: Cut, now: int, *, begins: bool) -> None:
        ends = {cut.a, cut.b}
        before = any({c.a, c.b} == ends for c in self.cuts)
        if begins:
            self.cuts.append(cut)
        else:
            self.cuts.remove(cut)
        after = any({c.a, c.b} == ends for c in self.cuts)
        if before != after:
            self._say(timeline.LinkChanged(now, cut.a, cut.b, not after))
        self.coordinators.cut = {(ends - {DATABASE}).pop() for c in self.cuts if DATABASE in (ends := {c.a, c.b})}

    def _slow(self, slow: Slow, now: int, *, begins: bool) -> None:
        ends = {slow.a, slow.b}
        before = self._delay(ends)
        if begins:
            self.slows.append(slow)
        else:
            self.slows.remove(slow)
        after = self._delay(ends)
        if before != after:
            self._say(timeline.Delayed(now, slow.a, slow.b, after))
        if DATABASE in ends:
            self.coordinators.delays[(ends - {DATABASE}).pop()] = after

    def _delay(self, ends: set[str]) -> int:
        return max((s.by for s in self.slows if {s.a, s.b} == ends), default=0)

    def _leader(self) -> str | None:
        return self.coordinators.database.coordinator

    # What follows is called by the coordination.

    def handle_join(self, node: str, now: int) -> None:
        """`HAManager.start`."""
        if self._leader() != node:
            self._say(timeline.Passive(now, node, started=True))
            return
        self.active.add(node)
        self._say(timeline.Active(now, node, started=True))
        row = self.coordinators.database.heartbeats.get(self.pair.peer(node))
        if row is not None and now - row.at < self.pair.coordination.oldest:
            self._sync(node, now)

    def handle_change(self, node: str, change: Change, subject: str, now: int) -> None:
        """`HAEventListener`."""
        leads = self._leader() == node
        match change:
            case Change.COORDINATOR if leads and node not in self.active:
                self.active.add(node)
                self._say(timeline.Active(now, node))
            case Change.COORDINATOR if not leads and node in self.active:
                self._passive(node, now)
            case Change.ADDED if leads and subject != node:
                self._sync(node, now)
            case Change.REMOVED if leads and subject != node and node in self.syncing:
                self.syncing.remove(node)
                self._say(timeline.Syncing(now, node, whether=False))

    def unresponsive(self, node: str, now: int) -> None:
        """`HAEventListener.becameUnresponsive`."""
        if node in self.active:
            self._passive(node, now)

    def handle_election(self, node: str, now: int, age: int | None) -> None:
        """For the log."""
        self._say(timeline.Elected(now, node, age))

    def handle_deposition(self, node: str, now: int) -> None:
        """For the log."""
        self._say(timeline.Deposed(now, node))

    def _sync(self, node: str, now: int) -> None:
        """The active node begins to send its events to the passive one; it persists first."""
        self.syncing.add(node)
        self._say(timeline.Syncing(now, node, whether=True))

    def _passive(self, node: str, now: int) -> None:
        """`HAManager.changeToPassive`."""
        self.active.remove(node)
        self.syncing.discard(node)
        self._say(timeline.Passive(now, node))
