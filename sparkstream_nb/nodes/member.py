"""One node of a group, with the interface of a node engine.

Two nodes of a group cannot talk to each other inside a micro-batch, where each has its own task. So each computes the
whole pair, which is a function of the input, and emits the events that it has published itself. If there are several
groups, each takes its share from the partitioning layer before them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.columnar.blocks import Buffer
from ..engine.columnar.column_data import StringPool
from ..engine.node import NodeEngine
from ..engine.state.node_batch import Emitted, InputBatch, Outputs, RetrievalAnswer
from ..engine.state.snapshot import pack_buffers, unpack
from ..errors import SiddhiRuntimeError
from ..plan.nodes import Plan, Retrieval
from ..simulation.faults import Fault
from ..simulation.node_groups import NodeGroups
from ..simulation.timeline import Role
from .batches import between, concat_columns, pick_steps
from .group_figures import GroupCounts, MemberFigures
from .lane_clock import LaneNode
from .pair import PairLane, PairRevision, PairServer, Published, Queued, RevisionWrite
from .partitioning_layer import GroupLane
from .spans import Spans
from .transit import SentEvents, Trim


class PairMember(LaneNode):
    """Node `name` of one of `groups`. `engine` makes an engine of `plan` at its start."""

    def __init__(self, groups: NodeGroups, name: str, plan: Plan, engine: Callable[[], NodeEngine]) -> None:
        self.name, self.plan = name, plan
        self.group = GroupLane(groups, groups.place(name), plan, engine)
        self.steps = 1

    @property
    def lane(self) -> PairLane:
        """The lane of its group."""
        return self.group.lane

    @property
    def _engine(self) -> NodeEngine | None:
        return self.lane.servers[self.name].engine

    def happen(self, fault: Fault) -> None:
        """Takes a fault to come, of any group. Raises `Misuse` as `PairLane.plan_fault`."""
        self.group.happen(fault)

    def step(self, batch: InputBatch) -> Outputs:
        """Let the pair process steps; returns this node's published events."""
        self.steps += len(batch.clock)
        return join_published([p for p in self.group.step(batch) if p.node == self.name])

    def answer(self, retrieval: Retrieval) -> RetrievalAnswer:
        """This node's answer to an on-demand query; a change is made on every active node. Raises
        SiddhiRuntimeError if this one is not active.
        """
        answers = self.lane.answer(retrieval)
        if self.name not in answers:
            raise SiddhiRuntimeError(f"{self.name} is {self._role}")
        return answers[self.name]

    @property
    def _role(self) -> str:
        server = self.lane.servers[self.name]
        if server.engine is not None:
            return "active, but paused" if server.is_halted else "active"
        return "passive" if server.up else "down"

    def figures(self) -> MemberFigures:
        """Figures of the node and its group."""
        lane, server = self.lane, self.lane.servers[self.name]
        role = Role.ACTIVE if server.engine is not None else Role.PASSIVE
        role = Role.DOWN if not server.up else Role.HALTED if server.is_halted else role
        revision = None if lane.revision is None else lane.revision.at
        return MemberFigures(
            role, server.queue_events, lane.start, lane.now, revision, lane.counts, self.group.own_faults
        )  # fmt: skip

    def stats(self) -> dict[str, Any]:
        """Statistics of its engine, if it is active, with its role, and `figures` as plain data."""
        engine_stats = {} if self._engine is None else self._engine.stats()
        return {
            "clock": self.now,
            "steps": self.steps - 1,
            "runs": self._role,
            "state_bytes": engine_stats.get("state_bytes", {}),
            "state_rows": engine_stats.get("state_rows", {}),
            "group": self.figures().as_dict(),
        }

    def saved_parts(self) -> list[Buffer]:
        lane = self.lane
        state = {
            "steps": self.steps,
            "start": lane.start,
            "now": lane.now,
            "turn": lane.turn,
            "passed": lane.happenings_done,
            "unreachable": sorted(sorted(ends) for ends in lane.unreachable),
            "delays": [[*sorted(ends), by] for ends, by in lane.delays.items()],
            "servers": [_server(s) for s in lane.servers.values()],
            "revision": None if lane.revision is None else _revision(lane.revision),
            "events": lane.report.events,
            "elsewhere": list(_elsewhere(lane)),
            "counts": lane.counts.as_dict(),
            "share": self.group.share.state(),
        }
        return pack_buffers(state, StringPool())

    def restore(self, blob: bytes) -> None:
        """Restore a snapshot of the same pair. The report on events restarts, except for the events that were taken;
        the counts continue. A snapshot of an earlier version has no counts: they start at zero.
        """
        state = unpack(blob, StringPool())
        new = self.lane.new_engine
        self.group.share.load(state["share"])
        lane = PairLane(self.lane.scenario, new, self.group.own_faults)
        self.steps = state["steps"]
        lane.start, lane.now, lane.turn, lane.happenings_done = (
            state["start"],
            state["now"],
            state["turn"],
            state["passed"],
        )
        lane.unreachable = {frozenset(ends) for ends in state["unreachable"]}
        lane.delays = {frozenset({a, b}): by for a, b, by in state["delays"]}
        for server, server_state in zip(lane.servers.values(), state["servers"], strict=True):
            _restore(server, server_state, new)
        if state["revision"] is not None:
            lane.revision = _revision_of(state["revision"])
        lane.report.events = state["events"]
        for spans in (*(s.state_events for s in lane.servers.values()), state.get("elsewhere", ())):
            for span in spans:
                lane.report.taken_events.add(*span)
        if "counts" in state:
            lane.counts = GroupCounts.of(state["counts"])
        self.group.lane = lane


def join_published(parts: list[Published]) -> Outputs:
    """A node's published events as the output of one call."""
    out = Outputs()
    for p in parts:
        o = p.outputs
        for stream, events in o.streams.items():
            earlier = out.streams.get(stream)
            out.streams[stream] = events if earlier is None else _chain_outputs(earlier, events)
        for query, (current, expired_events) in o.queries.items():
            had = out.queries.get(query)
            if had is not None:
                current, expired_events = _chain_outputs(had[0], current), _chain_outputs(had[1], expired_events)
            out.queries[query] = (current, expired_events)
        out.element_rows.add(o.element_rows)
        out.errors += o.errors
        out.logs += o.logs
    return out


def _chain_outputs(a: Emitted, b: Emitted) -> Emitted:
    if not len(a) or not len(b):
        return b if len(b) else a
    columns = [concat_columns([x, y]) for x, y in zip(a.columns, b.columns, strict=True)]
    return Emitted(a.names, np.concatenate([a.step, b.step]), np.concatenate([a.ts, b.ts]), columns)


def _elsewhere(lane: PairLane) -> Spans:
    """Events that were taken and are in no active node's state: with these states, they are all that were taken."""
    rest = lane.report.taken_events
    for server in lane.servers.values():
        # Mostly one node took all of them, in many spans where each second event went to the other node.
        rest = Spans() if rest == server.state_events else rest.without(server.state_events)
    return rest


def _server(server: PairServer) -> dict[str, Any]:
    return {
        "up": server.up,
        "halted": server.is_halted,
        "engine": None if server.engine is None else server.engine.snapshot(),
        "held": list(server.state_events),
        "syncing": server.syncing,
        "sequence": server.sequence,
        "trimmed": server.trim_number,
        "queued": server.queue_events,
        "queue": [_list_queued(q) for q in server.queue],
        "writing": None if server.writing is None else [_revision(server.writing.revision), server.writing.lands],
        "overdue": server.overdue,
        "transit": [_message(m) for m in server.transit.messages],
        "last": server.transit.last,
    }


def _revision(revision: PairRevision) -> list[Any]:
    return [revision.at, list(revision.state_events), revision.state]


def _revision_of(members: list[Any]) -> PairRevision:
    at, spans, state = members
    return PairRevision(at, Spans(*spans), bytes(state))


def _message(message: SentEvents | Trim) -> list[Any]:
    if isinstance(message, Trim):
        return [message.number, message.due]
    steps_with_events = message.counts > 0
    batch = pick_steps(between(message.source, message.at, message.at + len(steps_with_events)), steps_with_events)
    return [
        batch.to_bytes(),
        *(a[steps_with_events] for a in (message.number, message.first, message.counts, message.due)),
    ]


def _message_of(members: list[Any]) -> SentEvents | Trim:
    if len(members) == 2:
        return Trim(*members)
    return SentEvents(InputBatch.from_bytes(bytes(members[0])), 0, *members[1:])


def _list_queued(q: Queued) -> list[Any]:
    return [q.batch.to_bytes(), q.number[q.mask], q.first[q.mask], q.counts[q.mask]]


def _restore(server: PairServer, state: dict[str, Any], engine: Callable[[], NodeEngine]) -> None:
    server.up, server.is_halted, server.syncing = state["up"], state["halted"], state["syncing"]
    server.sequence, server.trim_number, server.queue_events = state["sequence"], state["trimmed"], state["queued"]
    server.state_events = Spans(*state["held"])
    server.queue = [
        Queued(InputBatch.from_bytes(bytes(blob)), 0, np.ones(len(number), bool), number, first, counts)
        for blob, number, first, counts in state["queue"]
    ]
    if state["writing"] is not None:
        revision, lands = state["writing"]
        server.writing = RevisionWrite(_revision_of(revision), lands)
    server.overdue = state["overdue"]
    server.transit.messages = [_message_of(m) for m in state["transit"]]
    server.transit.last = state["last"]
    if state["engine"] is not None:
        server.engine = engine()
        server.engine.restore(bytes(state["engine"]))
