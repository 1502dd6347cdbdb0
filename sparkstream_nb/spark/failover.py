"""What a pair makes of a recording: what it put out, against one node that takes everything and never fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..engine.batch import InputBatch, Outputs
from ..engine.columns import Array
from ..engine.node import NodeEngine
from ..lanes.batches import events_by_step
from ..lanes.pair import PairLane, Report
from ..lanes.tallies import Tally, table_of, tally
from ..lang.parser import parse_on_demand
from ..plan import bind_retrieval
from ..plan.nodes import Plan, Retrieval
from ..simulation.faults import Fault, Scenario
from ..simulation.timeline import Happening
from .replay import Nodes, Recording
from .segments import join

Item = InputBatch | Retrieval | Fault
Tables = dict[str, pa.Table]
"""Outputs by derived stream, as `table_of`."""


@dataclass(frozen=True)
class PairOutcome:
    """A pair's run from clock `first` to `last` (ms): what became of events, which came at `times` (int64[n], ms by the
    clock); what came to pass, what it put out (with `node` and `replayed`), and how that compares with one node's, by
    stream."""

    report: Report
    happenings: Sequence[Happening]
    outputs: Tables
    tallies: dict[str, Tally]
    times: Array
    first: int
    last: int


@dataclass
class _Collected:
    """Parts of the outputs by stream."""

    parts: dict[str, list[pa.Table]] = field(default_factory=dict)

    def take(self, outputs: Outputs, **columns: object) -> None:
        for stream, emitted in outputs.streams.items():
            if "#" in stream or not len(emitted):
                continue
            table = table_of(emitted)
            for name, value in columns.items():
                table = table.append_column(name, pa.array([value] * len(table)))
            self.parts.setdefault(stream, []).append(table)

    def tables(self) -> Tables:
        return {s: pa.concat_tables(own) for s, own in self.parts.items()}


def items_of(recording: Recording, plan: Plan) -> list[Item]:
    """What came in, in order: events that nothing comes between as one batch, changes on demand, added faults."""
    out: list[Item] = []
    events: list[InputBatch] = []
    faults = list(recording.faults)

    def settle() -> None:
        if events:
            out.append(join(events))
            events.clear()

    for i, item in enumerate(recording.items):
        while faults and faults[0][0] <= i:
            settle()
            out.append(faults.pop(0)[1])
        if isinstance(item, str):
            retrieval = bind_retrieval(parse_on_demand(item), plan, item)
            if retrieval.output is not None:
                settle()
                out.append(retrieval)
        else:
            events.append(item.batch)
    settle()
    return out + [fault for _, fault in faults]


def truth_of(items: Sequence[Item], nodes: Nodes) -> Tables:
    """What one node puts out."""
    engine, found = engine_of(nodes), _Collected()
    for item in items:
        if isinstance(item, InputBatch):
            found.take(engine.step(item))
        elif isinstance(item, Retrieval):
            engine.answer(item)
    return found.tables()


def pair_outcome(items: Sequence[Item], scenario: Scenario, nodes: Nodes, truth: Tables) -> PairOutcome:
    """What a pair makes of `items`, against the `truth` of one node."""
    lane, found = PairLane(scenario, lambda: engine_of(nodes)), _Collected()
    for item in items:
        match item:
            case InputBatch():
                for p in lane.step(item):
                    found.take(p.outputs, node=p.node, replayed=p.replayed)
            case Retrieval():
                lane.answer(item)
            case Fault():
                lane.plan_fault(item)
    outputs = found.tables()
    bare = {s: t.drop_columns(["node", "replayed"]) for s, t in outputs.items()}
    streams = [s for s in nodes.plan.streams if s in truth or s in bare]
    happenings = [] if lane.start is None else lane.timeline(lane.now).happenings
    return PairOutcome(
        lane.report,
        happenings,
        outputs,
        {s: tally(truth.get(s), bare.get(s)) for s in streams},
        _times(items),
        lane.start or 0,
        lane.now,
    )


def _times(items: Sequence[Item]) -> Array:
    """When the clock came to each event."""
    batches = [i for i in items if isinstance(i, InputBatch)]
    clock = [np.repeat(b.clock, events_by_step(b)) for b in batches]
    return np.maximum.accumulate(np.concatenate(clock)) if clock else np.empty(0, np.int64)


def engine_of(nodes: Nodes) -> NodeEngine:
    """A node at its start, that keeps its aggregations itself."""
    return NodeEngine(nodes.plan, allow_scripts=nodes.scripts, start=nodes.start)
