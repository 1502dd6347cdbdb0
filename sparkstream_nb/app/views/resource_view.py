"""The view of a fully distributed app's nodes: its reports, and the simulation of the faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ...journal.result_rows import NodeReport
from ...nodes.app_figures import DistributedFigures
from ...nodes.distributed import Distributed
from ...simulation.faults import Cut, Fault, Pause
from ...simulation.placements import Dropped, GivenUp, HeldBack, Joined, Leads, Placed, StartedUp
from ...simulation.resource_manager import simulate_resources
from ...simulation.resources import MANAGERS
from ...simulation.timeline import Deposed, Down, Elected, Faulted, Halted, Happening, Resumed, Role, RoleSpan
from ...simulation.topology import CLIENTS, DATABASE
from .cluster_view import Action, ClusterNode, ClusterState, GroupState, Link, LinkState, LogKind, LogLine, TopicView
from .objections import describe_state, describe_wait, why_no_faults

_MANAGERS, _WORKERS = "managers", "resource nodes"


class ResourceAdapter:
    """Reports on the nodes of `distributed`."""

    def __init__(self, distributed: Distributed) -> None:
        self.distributed = distributed

    def state(self, reports: Mapping[str, NodeReport]) -> ClusterState:
        """See `ClusterAdapter.state`."""
        figures = next((r.engine["distributed"] for r in reports.values() if "distributed" in r.engine), None)
        return _Resources(self.distributed, None if figures is None else DistributedFigures.of(figures)).state()


class _Resources:
    """The nodes after the last report."""

    def __init__(self, distributed: Distributed, figures: DistributedFigures | None) -> None:
        self.distributed, self.figures = distributed, figures
        self.scenario, self.cluster = distributed.scenario, distributed.scenario.cluster
        self.start = None if figures is None else figures.start
        self.now = 0 if figures is None else figures.clock
        more_faults = () if figures is None else tuple(figures.added)
        begin, until = (0, 0) if self.start is None else (self.start, self.now)
        self.faults: Sequence[Fault] = self.scenario.schedule(begin, until, more_faults)
        self.happenings: Sequence[Happening] = simulate_resources(
            self.scenario, start=begin, until=until, more=more_faults
        ).happenings

    def state(self) -> ClusterState:
        return ClusterState(
            nodes=[*self._nodes()],
            links=[*self._links()],
            groups=[*self._groups()],
            start=self.start,
            clock=None if self.start is None else self.now,
            spans=[] if self.start is None else self._spans,
            log=[] if self.start is None else [*self._log()],
            ahead=[f for f in self.faults if self.start is not None and f.at > self.now],
            topics=[*self._topics()],
        )

    # -------------------------------------------------------------------------------------------------------- roles

    @cached_property
    def _runs(self) -> dict[str, list[str]]:
        """The partial apps that each node runs now."""
        out: dict[str, list[str]] = {n: [] for n in self.cluster.nodes}
        for h in self.happenings:
            match h:
                case Placed(node=node, app=app) if app not in out[node]:
                    out[node].append(app)
                case Dropped(node=node, app=app) if app in out[node]:
                    out[node].remove(app)
                case Down(node=node) if node in out:
                    out[node].clear()
        return out

    @cached_property
    def _spans(self) -> list[RoleSpan]:
        """The role of each node over time. A resource node is active while it runs something, else idle; a manager is
        active while it believes that it leads, else passive.
        """
        has: dict[str, int] = dict.fromkeys((*self.cluster.managers, *self.cluster.nodes), 0)
        down: set[str] = set()
        halted_nodes: set[str] = set()
        since: dict[str, tuple[Role, int]] = {}
        out: list[RoleSpan] = []

        def settle(node: str, at: int) -> None:
            role = Role.DOWN if node in down else Role.HALTED if node in halted_nodes else Role.ACTIVE
            role = self._at_rest(node) if role is Role.ACTIVE and has[node] < 1 else role
            previous_span = since.get(node)
            if previous_span is not None and previous_span[0] is not role and at > previous_span[1]:
                out.append(RoleSpan(node, previous_span[0], previous_span[1], at))
            if previous_span is None or previous_span[0] is not role:
                since[node] = role, at

        begin = 0 if self.start is None else self.start
        has_started = False
        for h in (*self.happenings, Happening(self.now + 1)):
            if h.at > begin and not has_started:
                has_started = True
                for node in has:
                    settle(node, begin)
            match h:
                case Placed(node=node):
                    has[node] += 1
                case Dropped(node=node):
                    has[node] -= 1
                case Leads(node=node):
                    has |= {m: int(m == node) for m in self.cluster.managers}
                case Down(node=node):
                    down.add(node)
                    halted_nodes.discard(node)
                    has[node] = 0
                case StartedUp(node=node):
                    down.discard(node)
                case Halted(node=node):
                    halted_nodes.add(node)
                case Resumed(node=node):
                    halted_nodes.discard(node)
            if has_started:
                for node in has:
                    settle(node, h.at)
        end = self.now + 1
        return out + [RoleSpan(node, role, at, end) for node, (role, at) in since.items() if end > at]

    def _role(self, node: str) -> Role:
        roles = [s.role for s in self._spans if s.node == node and s.end > self.now]
        return roles[-1] if roles else self._at_rest(node)

    def _at_rest(self, node: str) -> Role:
        return Role.PASSIVE if node in self.cluster.managers else Role.IDLE

    def _nodes(self) -> Iterator[ClusterNode]:
        for name in (*self.cluster.managers, *self.cluster.nodes):
            group = _MANAGERS if name in self.cluster.managers else _WORKERS
            until = max((f.until for f in self._lasting_faults(Pause) if name in f.nodes), default=None)
            runs = tuple(self._runs.get(name, ()))
            yield ClusterNode(name, group, self._role(name), runs, None, tuple(self._actions(name)), until)

    def _lasting_faults(self, kind: type[Pause | Cut]) -> Iterator[Pause | Cut]:
        """The pauses, or cuts, that have begun and not ended."""
        return (f for f in self.faults if isinstance(f, kind) and f.at <= self.now < f.until)

    def _actions(self, node: str) -> Iterator[Action]:
        never = why_no_faults(self.start, is_random=bool(self.scenario.random))
        # Faults added just now come before those added next.
        soon = [f for f in self.faults if f.at == self.now + 1 and node in f.nodes]
        is_down, is_up = describe_state(node, soon, is_down=self._role(node) is Role.DOWN)
        waits = {type(f): describe_wait(f) for f in soon}
        pause_reason = f"{node} stands still" if any(node in f.nodes for f in self._lasting_faults(Pause)) else ""
        yield Action("kill", node, None, never or is_down)
        yield Action("restart", node, None, never or is_up)
        yield Action("pause", node, None, never or is_down or pause_reason or waits.get(Pause, ""))
        for end in self._ends_of_links(node):
            objection = f"{node} is cut off from {end}" if self._is_cut(node, end) else waits.get(Cut, "")
            yield Action("cut", node, end, never or objection)

    def _ends_of_links(self, node: str) -> list[str]:
        """The other ends of a node's links, which can be cut."""
        ends = [DATABASE] if node in self.cluster.managers else [MANAGERS, DATABASE]
        return [*ends, CLIENTS] if node in self.cluster.receivers else ends

    def _is_cut(self, node: str, end: str) -> bool:
        end_nodes = {*self.cluster.managers} if end == MANAGERS else {end}
        return any(node in f.nodes and end_nodes & {*f.nodes} for f in self._lasting_faults(Cut))

    # ---------------------------------------------------------------------------------------- links, groups, topics

    def _links(self) -> Iterator[Link]:
        for node in self.cluster.nodes:
            for manager in self.cluster.managers:
                yield self._link(node, manager)
            yield self._link(node, DATABASE)
            if node in self.cluster.receivers:
                yield self._link(node, CLIENTS)
        for manager in self.cluster.managers:
            yield self._link(manager, DATABASE)

    def _link(self, a: str, b: str) -> Link:
        until = max((f.until for f in self._lasting_faults(Cut) if {*f.nodes} == {a, b}), default=None)
        if until is not None:
            return Link(a, b, LinkState.CUT, until)
        names = (*self.cluster.managers, *self.cluster.nodes)
        down = any(self._role(n) is Role.DOWN for n in (a, b) if n in names)
        return Link(a, b, LinkState.DOWN if down else LinkState.UP)

    def _groups(self) -> Iterator[GroupState]:
        if self.figures is None:
            return
        for name, a in self.figures.apps.items():
            lost_by_reason = {"no receiver took it": a.lost} if a.lost else {}
            yield GroupState(name, a.taken, lost_by_reason, a.revision, a.revisions)

    def _topics(self) -> Iterator[TopicView]:
        for t in self.distributed.split.topics:
            readers = [g for g in self.distributed.split.groups if g.name in t.readers]
            figures = {} if self.figures is None else self.figures.apps
            instance_figures = [figures[i] for g in readers for i in g.instances if i in figures]
            waiting = sum(a.waiting.get(t.stream, 0) for a in instance_figures)
            yield TopicView(t.name, t.writers or ("outside",), t.readers, waiting)

    def _log(self) -> Iterator[LogLine]:
        start_counts = {} if self.figures is None else {
            (app, b.node, b.at): b for app, a in self.figures.apps.items() for b in a.begun
        }  # fmt: skip
        for h in self.happenings:
            if h.at == self.start and isinstance(h, Placed | StartedUp | Leads):
                continue
            node = getattr(h, "node", None)
            text, kind = str(h), LogKind.OTHER
            match h:
                case Faulted():
                    kind = LogKind.FAULT
                case Elected() | Deposed() | Leads():
                    kind = LogKind.ELECTION
                case Placed(node=on, app=app):
                    kind, counts = LogKind.TAKEOVER, start_counts.get((app, on, h.at))
                    if counts is not None:
                        text += f": {counts.waiting:,} events waited, {counts.again:,} processed again, "
                        text += f"{counts.missing:,} missing from its state"
                case HeldBack():
                    node = h.manager
                case GivenUp() | Joined() | Dropped():
                    pass
            yield LogLine(h.at, text, kind, node)
