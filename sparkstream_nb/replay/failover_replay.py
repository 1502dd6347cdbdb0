"""Replay of a recording by groups of nodes: their outputs, against one node that takes all and never fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import Array
from ..engine.node import NodeEngine
from ..engine.state.node_batch import InputBatch, Outputs
from ..errors import SparkStreamError
from ..journal.segments import join
from ..lang.parser import parse_on_demand
from ..nodes.batches import events_by_step
from ..nodes.pair import Report
from ..nodes.partitioning_layer import GroupLane
from ..nodes.tallies import Tally, table_of, tally_close
from ..plan import bind_retrieval
from ..plan.nodes import Plan, Retrieval
from ..plan.output_labels import is_inner, list_labels
from ..simulation.faults import Fault
from ..simulation.node_groups import NodeGroups
from ..simulation.timeline import Happening
from .replay import Nodes, Recording
from .replay_progress import current_progress

Item = InputBatch | Retrieval | Fault
Tables = dict[str, pa.Table]
"""Outputs by derived stream, as `table_of`."""


@dataclass(frozen=True)
class GroupOutcome:
    """A group's run: the fate of its events, which came at `times` (int64[n], ms by the clock), and its happenings."""

    report: Report
    happenings: Sequence[Happening]
    times: Array


@dataclass(frozen=True)
class FailoverOutcome:
    """A run of groups from clock `first` to `last` (ms): each of them; their outputs (with `node` and `replayed`),
    and their comparison with one node's, by stream.
    """

    groups: Sequence[GroupOutcome]
    outputs: Tables
    tallies: dict[str, Tally]
    first: int
    last: int


@dataclass
class OutputParts:
    """Parts of the outputs by stream."""

    parts: dict[str, list[pa.Table]] = field(default_factory=dict)

    def take(self, outputs: Outputs, **columns: object) -> None:
        for stream, events in outputs.streams.items():
            if is_inner(stream) or not len(events):
                continue
            table = table_of(events)
            for name, value in columns.items():
                table = table.append_column(name, pa.array([value] * len(table)))
            self.parts.setdefault(stream, []).append(table)

    def tables(self) -> Tables:
        return {s: pa.concat_tables(stream_tables) for s, stream_tables in self.parts.items()}


def items_of(recording: Recording, plan: Plan) -> list[Item]:
    """Recorded input in order: consecutive events as one batch, changes on demand, added faults."""
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


def span_of(recording: Recording) -> tuple[int, int]:
    """The first and the last time (ms) by the clock. Raises SparkStreamError if nothing came in."""
    clocks = [r.batch.clock for r in recording.recorded_events]
    if not clocks:
        raise SparkStreamError("No input yet: feed the app, or give a feed.")
    return int(clocks[0][0]), max(int(c.max()) for c in clocks)


def truth_of(items: Sequence[Item], nodes: Nodes, *, by_query: bool = True) -> Tables:
    """Outputs of one node, by label (`plan.output_labels`) or by stream."""
    current_progress().expect(_count_steps(items))
    engine, output_parts = nodes.engine(nodes.plan, by_query=by_query), OutputParts()
    for item in items:
        if isinstance(item, InputBatch):
            output_parts.take(engine.step(item))
        elif isinstance(item, Retrieval):
            engine.answer(item)
    return output_parts.tables()


def outcome_of(items: Sequence[Item], groups: NodeGroups, nodes: Nodes, truth: Tables) -> FailoverOutcome:
    """Run `items` through groups, and compare the outputs with the `truth` of one node."""
    current_progress().expect(2 * len(groups.pairs) * _count_steps(items))
    output_parts, runs = OutputParts(), []
    for place in range(len(groups.pairs)):
        group, group_batches = GroupLane(groups, place, nodes.plan, lambda: engine_of(nodes)), []
        for item in items:
            match item:
                case InputBatch():
                    group_batches.append(group.part(item))
                    for p in group.lane.step(group_batches[-1]):
                        output_parts.take(p.outputs, node=p.node, replayed=p.replayed)
                case Retrieval():
                    group.lane.answer(item)
                case Fault():
                    group.happen(item)
        lane = group.lane
        happenings = [] if lane.start is None else lane.timeline(lane.now).happenings
        runs.append(GroupOutcome(lane.report, happenings, _times(group_batches)))
    outputs = output_parts.tables()
    tallies = tallies_of(outputs, nodes, truth)
    clocks = [i.clock for i in items if isinstance(i, InputBatch) and len(i.clock)]
    first = int(clocks[0][0]) if clocks else 0
    return FailoverOutcome(runs, outputs, tallies, first, max((int(c.max()) for c in clocks), default=first))


def tallies_of(outputs: Tables, nodes: Nodes, truth: Tables) -> dict[str, Tally]:
    """Comparison of each derived stream, or label of it: `outputs` of all nodes, with `node` and `replayed`, against
    the `truth`."""
    bare = {s: t.drop_columns(["node", "replayed"]) for s, t in outputs.items()}
    streams = [s for s in {**dict.fromkeys(list_labels(nodes.plan)), **nodes.plan.streams} if s in truth or s in bare]
    return {s: tally_close(truth.get(s), bare.get(s)) for s in streams}


def _count_steps(items: Sequence[Item]) -> int:
    return sum(len(item.clock) for item in items if isinstance(item, InputBatch))


def _times(batches: Sequence[InputBatch]) -> Array:
    """The time of the clock at each event."""
    clock = [np.repeat(b.clock, events_by_step(b)) for b in batches]
    return np.maximum.accumulate(np.concatenate(clock)) if clock else np.empty(0, np.int64)


def engine_of(nodes: Nodes) -> NodeEngine:
    """A node at its start, that keeps its aggregations itself."""
    return nodes.engine(nodes.plan)
