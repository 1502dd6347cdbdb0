"""One node of a pair, with the interface of a node engine.

Two nodes of a group cannot talk to each other inside a micro-batch, where each has its own task. So each computes the
whole pair, which is a function of what came in, and puts out what it has published itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.batch import Answer, Emitted, InputBatch, Outputs
from ..engine.columns import Strings
from ..engine.node import NodeEngine
from ..engine.snapshot import Buffer, packed, unpack
from ..errors import SiddhiRuntimeError
from ..plan.nodes import Plan, Retrieval
from ..simulation.faults import Fault, Scenario, fault_of, members_of
from .batches import concatenated
from .pair import PairLane, Published, Queued, Revision, Server
from .spans import Spans


class PairMember:
    """Node `name` of a pair. `engine` makes an engine of `plan` at its start."""

    def __init__(self, scenario: Scenario, name: str, plan: Plan, engine: Callable[[], NodeEngine]) -> None:
        self.name, self.plan = name, plan
        self.lane = PairLane(scenario, engine)
        self.steps = 1

    @property
    def now(self) -> int:
        """The clock (ms)."""
        return self.lane.now

    @property
    def first_clock(self) -> int | None:
        """The clock (ms) at the first step; None: there was none yet."""
        return self.lane.start

    @property
    def _engine(self) -> NodeEngine | None:
        return self.lane.servers[self.name].engine

    def happen(self, fault: Fault) -> None:
        """Takes a fault to come. Raises `Misuse` as `PairLane.plan_fault`."""
        self.lane.plan_fault(fault)

    def step(self, batch: InputBatch) -> Outputs:
        """Lets the pair take steps; what this node has published."""
        self.steps += len(batch.clock)
        return joined([p for p in self.lane.step(batch) if p.node == self.name])

    def answer(self, retrieval: Retrieval) -> Answer:
        """This node's answer to an on-demand query; what that changes is changed on every active node. Raises
        SiddhiRuntimeError where this one is not active."""
        found = self.lane.answer(retrieval)
        if self.name not in found:
            raise SiddhiRuntimeError(f"{self.name} is {self._role}")
        return found[self.name]

    @property
    def _role(self) -> str:
        server = self.lane.servers[self.name]
        if server.engine is not None:
            return "active, and stands still" if server.halted else "active"
        return "passive" if server.up else "down"

    def stats(self) -> dict[str, Any]:
        """Those of its engine, where it is active, with its role."""
        held = {} if self._engine is None else self._engine.stats()["state_bytes"]
        return {"clock": self.now, "steps": self.steps - 1, "runs": self._role, "state_bytes": held}

    def snapshot(self) -> bytes:
        """All state as bytes."""
        return b"".join(self.snapshot_parts())

    def snapshot_parts(self) -> list[Buffer]:
        """The parts of `snapshot`."""
        lane = self.lane
        state = {
            "steps": self.steps,
            "faults": [members_of(f) for f in lane.faults],
            "start": lane.start,
            "now": lane.now,
            "turn": lane.turn,
            "passed": lane.passed,
            "unreachable": sorted(sorted(ends) for ends in lane.unreachable),
            "servers": [_server(s) for s in lane.servers.values()],
            "revisions": [[r.at, r.state, list(r.held)] for r in lane.revisions],
            "events": lane.report.events,
        }
        return packed(state, Strings())

    def restore(self, blob: bytes) -> None:
        """Restores a snapshot of the same pair. The report of what became of events begins anew."""
        state = unpack(blob, Strings())
        new = self.lane.new_engine
        lane = PairLane(self.lane.scenario, new, [fault_of(f) for f in state["faults"]])
        self.steps = state["steps"]
        lane.start, lane.now, lane.turn, lane.passed = state["start"], state["now"], state["turn"], state["passed"]
        lane.unreachable = {frozenset(ends) for ends in state["unreachable"]}
        for server, found in zip(lane.servers.values(), state["servers"], strict=True):
            _restore(server, found, new)
        lane.revisions = [Revision(at, bytes(blob), Spans(*held)) for at, blob, held in state["revisions"]]
        lane.report.events = state["events"]
        self.lane = lane


def joined(published: list[Published]) -> Outputs:
    """What a node published, as the output of one call."""
    out = Outputs()
    for p in published:
        o = p.outputs
        for stream, emitted in o.streams.items():
            former = out.streams.get(stream)
            out.streams[stream] = emitted if former is None else _chained(former, emitted)
        for query, (current, expired) in o.queries.items():
            had = out.queries.get(query)
            out.queries[query] = (
                (current, expired) if had is None else (_chained(had[0], current), _chained(had[1], expired))
            )
        out.errors += o.errors
        out.logs += o.logs
    return out


def _chained(a: Emitted, b: Emitted) -> Emitted:
    if not len(a) or not len(b):
        return b if len(b) else a
    columns = [concatenated([x, y]) for x, y in zip(a.columns, b.columns, strict=True)]
    return Emitted(a.names, np.concatenate([a.step, b.step]), np.concatenate([a.ts, b.ts]), columns)


def _server(server: Server) -> dict[str, Any]:
    return {
        "up": server.up,
        "halted": server.halted,
        "engine": None if server.engine is None else server.engine.snapshot(),
        "held": list(server.held),
        "syncing": server.syncing,
        "sequence": server.sequence,
        "trimmed": server.trimmed,
        "queued": server.queued,
        "queue": [[q.batch.to_bytes(), q.number, q.first] for q in server.queue],
    }


def _restore(server: Server, found: dict[str, Any], engine: Callable[[], NodeEngine]) -> None:
    server.up, server.halted, server.syncing = found["up"], found["halted"], found["syncing"]
    server.sequence, server.trimmed, server.queued = found["sequence"], found["trimmed"], found["queued"]
    server.held = Spans(*found["held"])
    server.queue = [Queued(InputBatch.from_bytes(bytes(b)), number, first) for b, number, first in found["queue"]]
    if found["engine"] is not None:
        server.engine = engine()
        server.engine.restore(bytes(found["engine"]))
