"""The view of pairs of minimum HA: their nodes' reports, and the simulation of their faults.

The nodes report counts. The roles over time follow from the faults alone, so the simulation is run again, up to the
clock of the reports; the journal is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...journal.result_rows import NodeReport
from ...nodes.group_figures import GroupCounts, MemberFigures, TakeoverCounts
from ...simulation.faults import Cut, Fault, Pause, Scenario, Slow
from ...simulation.high_availability import simulate
from ...simulation.node_groups import NodeGroups
from ...simulation.timeline import (
    Active,
    Deposed,
    Down,
    Elected,
    Faulted,
    Halted,
    Happening,
    Passive,
    Resumed,
    Role,
    RoleSpan,
    Syncing,
    roles,
)
from ...simulation.topology import CLIENTS, DATABASE
from .cluster_view import Action, ClusterNode, ClusterState, GroupState, Link, LinkState, LogKind, LogLine, Queue
from .objections import describe_state, describe_wait, why_no_faults


class PairAdapter:
    """Reports on the app `app` on `groups` of two nodes."""

    def __init__(self, app: str, groups: NodeGroups) -> None:
        self.app, self.groups = app, groups

    def state(self, reports: Mapping[str, NodeReport]) -> ClusterState:
        """See `ClusterAdapter.state`."""
        figures = {n: MemberFigures.of(r.engine["group"]) for n, r in reports.items() if "group" in r.engine}
        pairs = [_PairState(self.app, scenario, figures) for scenario in self.groups.scenarios]
        started_pairs = [p for p in pairs if p.start is not None]
        return ClusterState(
            nodes=[n for p in pairs for n in p.nodes()],
            links=[link for p in pairs for link in p.links()],
            groups=[p.group() for p in pairs],
            start=min((p.start for p in started_pairs if p.start is not None), default=None),
            clock=max((p.now for p in started_pairs), default=None),
            spans=[s for p in pairs for s in p.spans],
            log=sorted((h for p in pairs for h in p.log()), key=lambda h: h.at),
            lost_between=sorted(span for p in pairs for span in p.counts.lost_between),
            ahead=sorted((f for p in pairs for f in p.faults_ahead), key=lambda f: f.at),
        )


class _PairState:
    """A pair after its last report."""

    def __init__(self, app: str, scenario: Scenario, figures: Mapping[str, MemberFigures]) -> None:
        self.app, self.scenario, self.pair = app, scenario, scenario.pair
        self.figures = {n: figures[n] for n in self.pair.nodes if n in figures}
        last = max(self.figures.values(), key=lambda f: f.clock, default=None)
        self.start = None if last is None else last.start
        self.counts = GroupCounts() if last is None else last.counts
        self.revision = None if last is None else last.revision
        self.now = 0 if last is None else last.clock
        more_faults = () if last is None else tuple(last.added)
        self.happenings: Sequence[Happening] = ()
        self.faults: Sequence[Fault] = ()
        if self.start is not None:
            schedule = scenario.schedule(self.start, self.now, more_faults)
            self.faults = schedule.faults
            self.happenings = simulate(schedule, seed=scenario.seed, start=self.start, until=self.now).happenings
        self.spans: Sequence[RoleSpan] = roles(self.happenings, self.now + 1)
        self.faults_ahead = [f for f in self.faults if f.at > self.now]

    def role(self, node: str) -> Role:
        """A node's role now; before anything came in, the first one is the active one."""
        roles = [s.role for s in self.spans if s.node == node and s.end > self.now]
        return roles[-1] if roles else Role.ACTIVE if node == self.pair.nodes[0] else Role.PASSIVE

    def nodes(self) -> Iterator[ClusterNode]:
        for name in self.pair.nodes:
            role, figures = self.role(name), self.figures.get(name)
            runs = (self.app,) if role is Role.ACTIVE else ()
            queue = None
            if role is Role.PASSIVE or (figures is not None and figures.queued):
                queue = Queue(0 if figures is None else figures.queued, self.pair.queue)
            until = max((f.until for f in self._lasting_faults(Pause) if name in f.nodes), default=None)
            yield ClusterNode(name, self.pair.group, role, runs, queue, tuple(self._actions(name)), until)

    def _lasting_faults(self, kind: type[Pause | Cut | Slow]) -> Iterator[Pause | Cut | Slow]:
        """The faults of a kind that have begun and not ended."""
        return (f for f in self.faults if isinstance(f, kind) and f.at <= self.now < f.until)

    def _actions(self, node: str) -> Iterator[Action]:
        never = why_no_faults(self.start, is_random=bool(self.scenario.rate))
        # Faults added just now come before those added next.
        soon = [f for f in self.faults_ahead if f.at == self.now + 1 and node in f.nodes]
        waits = {(type(f), *sorted(f.nodes)): describe_wait(f) for f in soon}
        is_down, is_up = describe_state(node, soon, is_down=self.role(node) is Role.DOWN)
        pause_reason = f"{node} stands still" if any(node in f.nodes for f in self._lasting_faults(Pause)) else ""
        yield Action("kill", node, None, never or is_down)
        yield Action("restart", node, None, never or is_up)
        yield Action("pause", node, None, never or is_down or pause_reason or waits.get((Pause, node), ""))
        for end in (DATABASE, CLIENTS, self.pair.peer(node)):
            cut = any({*f.nodes} == {node, end} for f in self._lasting_faults(Cut))
            objection = f"{node} is cut off from {end}" if cut else waits.get((Cut, *sorted((node, end))), "")
            yield Action("cut", node, end, never or objection)

    def links(self) -> Iterator[Link]:
        first, second = self.pair.nodes
        source = next((n for n in self.pair.nodes if self.role(n) is Role.ACTIVE and self._sends(n)), None)
        between = self._link(first, second)
        if between.state is LinkState.UP:
            note = "no events are sent to a second node" if source is None else f"{source} sends its events"
            words = [note, between.note] if between.note else [note]
            between = Link(first, second, source=source, note=", ".join(words))
        yield between
        for node in self.pair.nodes:
            yield self._link(node, DATABASE)
            yield self._link(node, CLIENTS)

    def _link(self, a: str, b: str) -> Link:
        until = max((f.until for f in self._lasting_faults(Cut) if {*f.nodes} == {a, b}), default=None)
        if until is not None:
            return Link(a, b, LinkState.CUT, until)
        down = any(self.role(n) is Role.DOWN for n in (a, b) if n in self.pair.nodes)
        slow = [f for f in self._lasting_faults(Slow) if {*f.nodes} == {a, b} and isinstance(f, Slow)]
        note = f"slower by {max(f.by for f in slow) / 1000:g} s" if slow else ""
        return Link(a, b, LinkState.DOWN if down else LinkState.UP, note=note)

    def _sends(self, node: str) -> bool:
        """True if a node sends its events to the other one."""
        if self.start is None:
            return node == self.pair.nodes[0]
        sends = False
        for h in self.happenings:
            if isinstance(h, Syncing) and h.node == node:
                sends = h.whether
            elif isinstance(h, Down | Passive) and h.node == node:
                sends = False
        return sends

    def group(self) -> GroupState:
        return GroupState(self.pair.group, self.counts.taken, self.counts.lost, self.revision, self.counts.revisions)

    def log(self) -> Iterator[LogLine]:
        takeovers = {(t.node, t.at): t for t in self.counts.takeovers}
        for h in self.happenings:
            if h.at == self.start and isinstance(h, Active | Passive | Syncing):
                continue
            node = h.node if isinstance(h, Active | Passive | Elected | Deposed | Down | Halted | Resumed) else None
            text, kind = str(h), LogKind.OTHER
            match h:
                case Faulted():
                    kind = LogKind.FAULT
                case Elected() | Deposed():
                    kind = LogKind.ELECTION
                case Active():
                    kind, counts = LogKind.TAKEOVER, takeovers.get((h.node, h.at))
                    text = text if counts is None else f"{text}: {_describe_takeover(counts)}"
            yield LogLine(h.at, text, kind, node, self.pair.group)


def _describe_takeover(t: TakeoverCounts) -> str:
    """The cost of a takeover, in words."""
    words = [f"{_events(t.lost)} lost before it", f"{t.replayed:,} replayed"]
    words += [f"{t.missing:,} missing from its state"] if t.missing else []
    words += [f"{t.doubled:,} in it twice"] if t.doubled else []
    return ", ".join(words)


def _events(n: int) -> str:
    return "1 event" if n == 1 else f"{n:,} events"
