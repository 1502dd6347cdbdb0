"""All resource nodes of a fully distributed app in one, with the interface of a node engine.

The partial apps exchange events within a micro-batch, so one task computes them all, and gives the outputs by node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.columnar.blocks import Buffer
from ..engine.columnar.column_data import StringPool
from ..engine.node import NodeEngine
from ..engine.state.node_batch import Emitted, InputBatch, Outputs, RetrievalAnswer, take_rows
from ..engine.state.snapshot import pack_buffers, unpack
from ..plan.nodes import Plan, Retrieval
from ..simulation.faults import Fault
from .distributed import Distributed, DistributedLane
from .lane_clock import LaneNode
from .member import join_published


@dataclass(slots=True)
class NodesOutputs(Outputs):
    """Outputs of several nodes, by their numbers; it holds nothing itself."""

    by_node: dict[int, Outputs] = field(default_factory=dict)


def _in_order(outputs: Outputs) -> Outputs:
    """A node's outputs in the order of steps: it may run several instances that write one stream."""
    for stream, events in outputs.streams.items():
        if (np.diff(events.step) < 0).any():
            order = np.argsort(events.step, kind="stable")
            columns = [take_rows(c, order) for c in events.columns]
            outputs.streams[stream] = Emitted(events.names, events.step[order], events.ts[order], columns)
    return outputs


class DistributedMember(LaneNode):
    """All nodes of `app`. `engine` makes an engine of a plan at its start, whose outputs carry chunks."""

    def __init__(self, plan: Plan, app: Distributed, engine: Callable[[Plan], NodeEngine]) -> None:
        self.plan, self.app = plan, app
        self._lane = DistributedLane(plan, app, engine)
        self.steps = 1

    @property
    def lane(self) -> DistributedLane:
        """The lane of all its partial apps."""
        return self._lane

    def happen(self, fault: Fault) -> None:
        """Takes a fault to come. Raises `Misuse` as `DistributedLane.happen`."""
        self.lane.happen(fault)

    def step(self, batch: InputBatch) -> NodesOutputs:
        """Process steps; returns each node's published events."""
        self.steps += len(batch.clock)
        published_events = self.lane.step(batch)
        numbers = {name: i for i, name in enumerate(self.app.nodes)}
        nodes = sorted({p.node for p in published_events}, key=numbers.__getitem__)
        by_node = {n: join_published([p for p in published_events if p.node == n]) for n in nodes}
        return NodesOutputs(by_node={numbers[n]: _in_order(outputs) for n, outputs in by_node.items()})

    def answers(self, retrieval: Retrieval) -> dict[int, RetrievalAnswer]:
        """The answers to an on-demand query by the nodes that run its sources, by their numbers."""
        numbers = {name: i for i, name in enumerate(self.app.nodes)}
        answers = self.lane.answer(retrieval)
        return {
            numbers[n]: RetrievalAnswer(a[0].columns, [row for x in a for row in x.rows]) for n, a in answers.items()
        }

    def stats(self) -> dict[str, Any]:
        """Partial apps on each node, and the sizes of state, by part: of all nodes, and of each."""
        state_bytes: Counter[str] = Counter()
        sizes_by_node = {n: {"state_bytes": Counter[str](), "state_rows": Counter[str]()} for n in self.app.nodes}
        runs: dict[str, list[str]] = {}
        for i in self.lane.instances:
            for run in i.lane.runs.values():
                runs.setdefault(run.node, []).append(i.lane.name)
                engine_stats = run.engine.stats()
                state_bytes.update(engine_stats["state_bytes"])
                for what, sizes in sizes_by_node[run.node].items():
                    sizes.update(engine_stats.get(what, {}))
        events_by_node: dict[str, int] = {}
        for i in self.lane.instances:
            for node, events in i.lane.events_by_node.items():
                events_by_node[node] = events_by_node.get(node, 0) + events
        by_node = {
            n: {
                "runs": ", ".join(runs.get(n, [])),
                "events": events_by_node.get(n, 0),
                **{what: dict(sizes) for what, sizes in sizes_by_node[n].items()},
            }
            for n in self.app.nodes
        }
        figures = self.lane.figures().as_dict()
        steps = self.steps - 1
        return {
            "clock": self.now,
            "steps": steps,
            "by_node": by_node,
            "state_bytes": dict(state_bytes),
            "distributed": figures,
        }

    def saved_parts(self) -> list[Buffer]:
        return pack_buffers({"steps": self.steps, "lane": self.lane.state()}, StringPool())

    def restore(self, blob: bytes) -> None:
        """Restores a snapshot of the same app."""
        state = unpack(blob, StringPool())
        self.steps = state["steps"]
        self.lane.load(state["lane"])
