"""One node of a pair, with the interface of a node engine.

Two nodes of a group cannot talk to each other inside a micro-batch, where each has its own task. So each computes the
whole pair, which is a function of what came in, and puts out what it has published itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.batch import Answer, Emitted, InputBatch, Outputs
from ..engine.columns import Strings
from ..engine.node import NodeEngine
from ..engine.snapshot import Buffer, packed, unpack
from ..plan.nodes import Plan, Retrieval
from ..simulation.faults import Fault, Schedule, fault_of, members_of
from ..simulation.topology import Pair
from .batches import concatenated
from .pair import PairLane, Published, Queued, Revision, Server
from .spans import Spans


@dataclass(frozen=True)
class PairSpec:
    """A pair as the workers need it, and the seed of its coordination."""

    pair: Pair
    seed: int = 0


class PairMember:
    """Node `name` of a pair. `engine` makes an engine of `plan` at its start."""

    def __init__(self, spec: PairSpec, name: str, plan: Plan, engine: Callable[[], NodeEngine]) -> None:
        self.spec, self.name, self.plan, self._new = spec, name, plan, engine
        self.lane = PairLane(Schedule(spec.pair), engine, seed=spec.seed)
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
        """Takes a fault to come into the schedule."""
        self.lane.plan_fault(fault)

    def step(self, batch: InputBatch) -> Outputs:
        """Lets the pair take steps; what this node has published."""
        self.steps += len(batch.clock)
        return joined([p for p in self.lane.step(batch) if p.node == self.name])

    def skip(self, steps: int, first: int, last: int) -> None:
        """Advances by `steps` steps, from clock `first` to `last` (ms), of an app that has no queries."""
        self.steps += steps
        self.lane.step(InputBatch(np.array([first, last], np.int64)))

    def answer(self, retrieval: Retrieval) -> Answer:
        """This node's answer to an on-demand query: no rows where it is not active. What it changes is changed on every
        active node."""
        found = {s.name: s.engine.answer(retrieval) for s in self.lane.servers.values() if s.engine is not None}
        none = Answer([(a.name, str(a.type)) for a in retrieval.columns], [])
        return found.get(self.name, none)

    def stats(self) -> dict[str, Any]:
        """Those of its engine; of a node that is not active, its clock and role."""
        engine = self._engine
        if engine is not None:
            return engine.stats()
        role = "passive" if self.lane.servers[self.name].up else "down"
        return {"clock": self.now, "steps": self.steps - 1, "runs": role, "state_bytes": {}}

    def snapshot(self) -> bytes:
        """All state as bytes."""
        return b"".join(self.snapshot_parts())

    def snapshot_parts(self) -> list[Buffer]:
        """The parts of `snapshot`."""
        lane = self.lane
        state = {
            "steps": self.steps,
            "faults": [members_of(f) for f in lane.schedule.faults],
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
        schedule = Schedule(self.spec.pair, tuple(fault_of(f) for f in state["faults"]))
        lane = PairLane(schedule, self._new, seed=self.spec.seed)
        self.steps = state["steps"]
        lane.start, lane.now, lane.turn, lane.passed = state["start"], state["now"], state["turn"], state["passed"]
        lane.unreachable = {frozenset(ends) for ends in state["unreachable"]}
        for server, found in zip(lane.servers.values(), state["servers"], strict=True):
            _restore(server, found, self._new)
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
