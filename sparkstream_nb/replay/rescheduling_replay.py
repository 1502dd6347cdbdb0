"""Replay of a recording by the nodes of a fully distributed app, against one node that takes all and never fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..engine.node import NodeEngine
from ..engine.state.node_batch import InputBatch, OutputOptions
from ..nodes.distributed import Distributed, DistributedLane
from ..nodes.instance import InstanceReport
from ..nodes.tallies import Tally
from ..plan.nodes import Retrieval
from ..simulation.faults import Fault
from ..simulation.timeline import Happening
from .failover_replay import Item, OutputParts, Tables, tallies_of
from .replay import Nodes
from .replay_progress import current_progress


@dataclass(frozen=True)
class DistributedOutcome:
    """A run from clock `first` to `last` (ms): the fate of each partial app's events, the happenings, the nodes'
    outputs (with `node` and `replayed`), and their comparison with one node's, by stream.
    """

    reports: Mapping[str, InstanceReport]
    happenings: Sequence[Happening]
    outputs: Tables
    tallies: dict[str, Tally]
    first: int
    last: int


def distributed_outcome(items: Sequence[Item], app: Distributed, nodes: Nodes, truth: Tables) -> DistributedOutcome:
    """Run `items` through the nodes, and compare the outputs with the `truth` of one node."""
    progress = current_progress()
    progress.expect(len(app.scenario.apps) * sum(len(i.clock) for i in items if isinstance(i, InputBatch)))
    lane = DistributedLane(
        nodes.plan,
        app,
        lambda plan: progress.follow(
            NodeEngine(
                plan,
                allow_scripts=nodes.scripts,
                start=nodes.start,
                limits=nodes.limits,
                outputs=OutputOptions(chunks=True),
            )
        ),
    )
    output_parts = OutputParts()
    for item in items:
        match item:
            case InputBatch():
                for p in lane.step(item):
                    output_parts.take(p.outputs, node=p.node, replayed=p.replayed)
            case Retrieval():
                lane.answer(item)
            case Fault():
                lane.happen(item)
    happenings = [] if lane.start is None else lane.timeline(lane.now).happenings
    outputs = output_parts.tables()
    tallies = tallies_of(outputs, nodes, truth)
    reports = {i.lane.name: i.lane.report for i in lane.instances}
    return DistributedOutcome(reports, happenings, outputs, tallies, lane.start or 0, lane.now)
