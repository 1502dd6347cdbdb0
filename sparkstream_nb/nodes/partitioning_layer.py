"""The partitioning layer of a scaled-out app, which divides events among groups.

The rules follow Siddhi's `PartitionedDistributionStrategy`, `RoundRobinDistributionStrategy` and
`BroadcastDistributionStrategy`. A destination is a group's load balancer, which is there while a node of it serves. The
layer knows at once that one is gone: the event by which a real sink notices, and its wait until it tries again, are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.node import NodeEngine
from ..engine.state.node_batch import InputBatch
from ..plan.nodes import Plan
from ..simulation.faults import Fault, fault_of, members_of
from ..simulation.high_availability import simulate
from ..simulation.node_groups import BROADCAST, PARTITIONED, Distribution, NodeGroups
from ..simulation.timeline import LinkChanged, Role, SimulatedTimeline, roles
from ..simulation.topology import CLIENTS, Pair
from ..types import Schema
from .pair import PairLane, Published
from .partitioning import by_hash, part


class GroupShare:
    """Events that the layer before `groups` sends to group number `place`."""

    def __init__(self, groups: NodeGroups, place: int, schemas: Mapping[str, Schema]) -> None:
        self.groups, self.place, self.schemas = groups, place, schemas
        self.turns: dict[str, int] = {}
        self.faults: tuple[Fault, ...] = ()
        """Faults that were added, to any group."""

    def of(self, batch: InputBatch, start: int) -> InputBatch:
        """The group's part of a batch: all steps, with its events. The first step of all was at `start` (ms)."""
        if not batch.rows:
            return batch
        serving: Array | None = None
        places = {}
        for stream, rows in batch.rows.items():
            how = self.groups.distributions.get(stream, Distribution())
            if how.strategy == BROADCAST:
                places[stream] = np.full(len(rows.ts), self.place)
            elif how.strategy == PARTITIONED:
                schema = self.schemas[stream]
                at = schema.find(how.key or "")
                assert at is not None, f"stream {stream} has no attribute {how.key}"
                places[stream] = by_hash(rows.columns[at], schema[at].type, len(self.groups.pairs))
            else:
                serving = self._there(batch.clock, start) if serving is None else serving
                places[stream] = self._in_turn(stream, rows.step, serving)
        return part(batch, places, self.place)

    def _in_turn(self, stream: str, steps: Array, serving: Array) -> Array:
        """The group of each event: each request (a step) goes to the next group that is there; `serving` is bool by
        group and step. If none is there, it goes to the next of all groups, which loses it.
        """
        count = len(self.groups.pairs)
        requests, request = np.unique(steps, return_inverse=True)
        serving = serving[:, requests]
        changes = np.flatnonzero((serving[:, 1:] != serving[:, :-1]).any(axis=0)) + 1
        groups: Array = np.zeros(len(requests), np.int64)
        turn = self.turns.get(stream, 0)
        for first, end in zip([0, *changes.tolist()], [*changes.tolist(), len(requests)], strict=True):
            serving_groups = np.flatnonzero(serving[:, first])
            if len(serving_groups):
                groups[first:end] = serving_groups[(turn + np.arange(end - first)) % len(serving_groups)]
                turn += end - first
            else:
                groups[first:end] = turn % count
        self.turns[stream] = turn
        return groups[request]

    def _there(self, clock: Array, start: int) -> Array:
        """bool[groups, steps]: whether a node of a group serves."""
        clock = np.maximum(np.maximum.accumulate(clock), start)
        last = int(clock[-1])
        out = []
        for place, scenario in enumerate(self.groups.scenarios):
            schedule = scenario.schedule(start, last, self.groups.of(place, self.faults))
            timeline = simulate(schedule, seed=scenario.seed, start=start, until=last)
            out.append(_find_serving(scenario.pair, timeline, clock))
        return np.array(out)

    def state(self) -> dict[str, Any]:
        """All that it has to remember, as plain data."""
        return {"turns": dict(self.turns), "faults": [members_of(f) for f in self.faults]}

    def load(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self.turns = dict(state["turns"])
        self.faults = tuple(fault_of(f) for f in state["faults"])


class GroupLane:
    """Runs group number `place` of `groups` on the layer's share of the input. A single group takes everything.
    `engine` makes an engine of `plan` at its start.
    """

    def __init__(self, groups: NodeGroups, place: int, plan: Plan, engine: Callable[[], NodeEngine]) -> None:
        self.groups, self.place = groups, place
        self.lane = PairLane(groups.scenarios[place], engine)
        self.share = GroupShare(groups, place, {s: d.source.schema for s, d in plan.streams.items()})

    def happen(self, fault: Fault) -> None:
        """Takes a fault to come, of any group. Raises `Misuse` as `PairLane.plan_fault`."""
        for group_fault in self.groups.of(self.place, (fault,)):
            self.lane.plan_fault(group_fault)
        self.share.faults = (*self.share.faults, fault)

    @property
    def own_faults(self) -> tuple[Fault, ...]:
        """Faults that were added to this group."""
        return self.groups.of(self.place, self.share.faults)

    def part(self, batch: InputBatch) -> InputBatch:
        """The group's part of a batch: all steps, with its events. To be called once for each batch, in order."""
        if len(self.groups.pairs) == 1 or not len(batch.clock):
            return batch
        return self.share.of(batch, int(batch.clock[0]) if self.lane.start is None else self.lane.start)

    def step(self, batch: InputBatch) -> list[Published]:
        """Process steps of the app; returns the outputs of the group's nodes."""
        return self.lane.step(self.part(batch))


def _find_serving(pair: Pair, timeline: SimulatedTimeline, clock: Array) -> Array:
    """bool[n]: whether a load balancer finds a node of the pair that takes events, at each time of `clock` (ms)."""
    serves = (Role.ACTIVE,) if pair.balancer == "failover" else (Role.ACTIVE, Role.PASSIVE)
    serving = np.zeros(len(clock), bool)
    spans = roles(timeline.happenings, int(clock[-1]) + 1)
    for node in pair.nodes:
        in_role = np.zeros(len(clock), bool)
        for s in spans:
            if s.node == node and s.role in serves:
                in_role[np.searchsorted(clock, s.first) : np.searchsorted(clock, s.end)] = True
        reachable = np.ones(len(clock), bool)
        for h in timeline.happenings:
            if isinstance(h, LinkChanged) and {h.a, h.b} == {node, CLIENTS}:
                reachable[np.searchsorted(clock, h.at) :] = h.whether
        serving |= in_role & reachable
    return serving
