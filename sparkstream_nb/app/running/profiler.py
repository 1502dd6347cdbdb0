"""The profile of an app, measured by private nodes that take its input once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...charts.value_texts import text_of
from ...engine.node import NodeEngine
from ...engine.runtime.operator_timing import PartTimes, measure_parts
from ...engine.state.node_batch import InputBatch
from ...journal.segments import events_of
from ...nodes.batches import between
from ...plan import nodes as n
from ...plan.nodes import Plan
from ...replay.replay import Nodes, Recording, ReplayedNodes, Way
from ..results.answers import Stats
from ..results.app_profile import BatchTime, KeyProfile, NodeProfile, PartProfile, Profile, StateGrowth

_MOST_KEYS = 5
"""Values of an attribute that a profile names."""
_STEPS_AT_ONCE = 20_000
_FEWEST_STEPS = 500
"""Steps that a node takes at once, at most and at least; after these its state is looked at."""


@dataclass
class _MeasuredNode:
    """A node that is measured: the times of its parts, its working time (s) and its events."""

    name: str
    engine: NodeEngine
    parts: list[PartTimes]
    seconds: float = 0.0
    events: int = 0
    steps: int = 0
    half: Mapping[str, Any] | None = None
    """The figures of its state half-way through the steps."""

    def step(self, batch: InputBatch, all_steps: int) -> None:
        """Takes a batch, of `all_steps` steps in all."""
        began = perf_counter()
        self.engine.step(batch)
        self.seconds += perf_counter() - began
        self.events += events_of(batch)
        self.steps += len(batch.clock)
        if self.half is None and 2 * self.steps >= all_steps:
            self.half = self.engine.stats()


@dataclass
class Profiler:
    """Measures the nodes of an app in a way over a recording."""

    app: str
    recording: Recording
    way: Way
    nodes: Nodes
    names: Sequence[str]
    _keys: dict[tuple[str, str], Counter[Any]] = field(default_factory=dict)

    def measure(self, stats: Stats) -> Profile:
        """The profile; `stats` are the figures of the app itself. A first pass over the beginning loads what the
        nodes need, so that it is not measured. Raises as a replay does."""
        self._warm_up(ReplayedNodes(self.recording, self.way, self.nodes))
        copies = ReplayedNodes(self.recording, self.way, self.nodes)
        nodes = [
            _MeasuredNode(name, engine, measure_parts(engine.operators))
            for name, engine in zip(self.names, copies.engines, strict=True)
        ]
        self._take(copies, nodes)
        end = [m.engine.stats() for m in nodes]
        growth = _growth([m.half or {} for m in nodes], end)
        node_profiles = [
            NodeProfile(m.name, m.events, m.seconds * 1000, sum(figures["state_bytes"].values()), figures["runs"])
            for m, figures in zip(nodes, end, strict=True)
        ]
        parts = [
            PartProfile(m.name, p.element, p.part, p.seconds * 1000, p.rows_in, p.rows_out)
            for m in nodes for p in m.parts
        ]  # fmt: skip
        keys = list(self._key_profiles())
        advice = list(_Advisor(self.nodes.plan, node_profiles, parts, keys, growth).sentences())
        return Profile(
            self.app, self.recording.events, node_profiles, parts, keys, growth, _batch_time(stats), advice
        )

    @cached_property
    def _key_attributes(self) -> list[tuple[str, str]]:
        return _key_attributes(self.nodes.plan)

    def _warm_up(self, copies: ReplayedNodes) -> None:
        """Gives nodes the first steps of the recording."""
        for item in self.recording.recorded_events[:1]:
            for engine, batch in zip(copies.engines, copies.batches(item, copies.places(item)), strict=True):
                if batch is not None:
                    engine.step(next(_pieces(batch, _STEPS_AT_ONCE)))

    def _take(self, copies: ReplayedNodes, nodes: Sequence[_MeasuredNode]) -> None:
        """Gives the nodes the recording."""
        most = max(_FEWEST_STEPS, min(self.recording.steps // 10, _STEPS_AT_ONCE))
        for item in self.recording.items:
            if isinstance(item, str):
                copies.change(item)
                continue
            self._count_keys(item.batch.rows)
            batches = copies.batches(item, copies.places(item))
            for node, batch in zip(nodes, batches, strict=True):
                for piece in () if batch is None else _pieces(batch, most):
                    node.step(piece, self.recording.steps)

    def _count_keys(self, rows_by_stream: Mapping[str, Any]) -> None:
        for stream, attribute in self._key_attributes:
            if stream not in rows_by_stream:
                continue
            place = self.nodes.plan.schema(stream).find(attribute)
            column = None if place is None else rows_by_stream[stream].columns[place]
            if column is None or isinstance(column, list) or not isinstance(column, pa.Array):
                continue
            for value in pc.value_counts(column).to_pylist():
                self._keys.setdefault((stream, attribute), Counter())[value["values"]] += value["counts"]

    def _key_profiles(self) -> Iterator[KeyProfile]:
        for (stream, attribute), counts in self._keys.items():
            total = counts.total()
            for value, events in counts.most_common(_MOST_KEYS):
                yield KeyProfile(stream, attribute, text_of(value), events, events / total)


def _pieces(batch: InputBatch, most: int) -> Iterator[InputBatch]:
    """The steps of a batch, at most `most` at a time."""
    for first in range(0, max(len(batch.clock), 1), most):
        yield between(batch, first, first + most)


def _key_attributes(plan: Plan) -> list[tuple[str, str]]:
    """The attributes of input streams by which queries group, or should be routed."""
    keys = [key for query in plan.queries for key in query.safety.keys]
    for query in plan.queries:
        if isinstance(query.input, n.StreamInput):
            stream = query.input.source.id
            keys += [(stream, e.name) for e in query.select.group_by if isinstance(e, n.Ref)]
    for aggregation in plan.aggregations.values():
        stream = aggregation.input.source.id
        keys += [(stream, e.name) for e in aggregation.select.group_by if isinstance(e, n.Ref)]
    return list(dict.fromkeys(k for k in keys if k[0] in plan.input_streams))


def _growth(half: Sequence[Mapping[str, Any]], end: Sequence[Mapping[str, Any]]) -> list[StateGrowth]:
    """The state of each element half-way and at the end, over all nodes."""

    def total(stats: Sequence[Mapping[str, Any]], member: str, element: str) -> int | None:
        values = [s[member][element] for s in stats if element in s.get(member, ())]
        return sum(values) if values else None

    growth = []
    for element in dict.fromkeys(e for stats in end for e in stats["state_bytes"]):
        size = total(end, "state_bytes", element) or 0
        if size:
            rows, half_rows = (total(s, "state_rows", element) for s in (end, half))
            growth.append(StateGrowth(element, total(half, "state_bytes", element) or 0, size, half_rows, rows))
    return sorted(growth, key=lambda g: -g.bytes)


def _batch_time(stats: Stats) -> BatchTime | None:
    if not stats.recent:
        return None
    ms = sum(batch.ms for batch in stats.recent)
    return BatchTime(len(stats.recent), ms, sum(min(batch.node_ms, batch.ms) for batch in stats.recent))


@dataclass
class _Advisor:
    """Known causes of time and state."""

    plan: Plan
    nodes: Sequence[NodeProfile]
    parts: Sequence[PartProfile]
    keys: Sequence[KeyProfile]
    growth: Sequence[StateGrowth]

    def sentences(self) -> Iterator[str]:
        """A sentence for each cause that shows."""
        yield from self._slowest()
        yield from self._skew()
        yield from self._single_steps()
        yield from self._unbounded_matches()
        yield from self._tables_without_index()

    def _slowest(self) -> Iterator[str]:
        total = sum(node.ms for node in self.nodes)
        ms_by_part: dict[tuple[str, str], float] = {}
        for p in self.parts:
            ms_by_part[p.element, p.part] = ms_by_part.get((p.element, p.part), 0.0) + p.ms
        (element, part), ms = max(ms_by_part.items(), key=lambda x: x[1], default=(("", ""), 0.0))
        if total and ms > total / 2:
            yield f"The {part} of {element} takes {ms / total:.0%} of the time."

    def _skew(self) -> Iterator[str]:
        events = [node.events for node in self.nodes]
        if len(events) > 1 and max(events) > 1.5 * sum(events) / len(events):
            busiest = max(self.nodes, key=lambda node: node.events)
            hot = next((k for k in self.keys if k.share > 1.5 / len(events)), None)
            why = "" if hot is None else f": {hot.attribute} {hot.value} alone has {hot.share:.0%}"
            yield f"{busiest.node} took {busiest.events / sum(events):.0%} of the events{why}."

    def _single_steps(self) -> Iterator[str]:
        for runs in dict.fromkeys(node.runs for node in self.nodes):
            if runs.startswith("by chunk"):
                reason = runs.partition(": ")[2]
                yield f"The nodes go event by event, which is slower than by operator: {reason}."

    def _unbounded_matches(self) -> Iterator[str]:
        for query in self.plan.queries:
            growth = next((g for g in self.growth if g.element == query.name), None)
            if growth is None or not isinstance(query.input, n.StateInput) or query.input.within is not None:
                continue
            if (growth.rows or 0) > 100 and (growth.rows or 0) > 1.5 * (growth.half_rows or 0):
                yield (
                    f"{query.name} holds {growth.rows:,} partial matches, {growth.half_rows or 0:,} half-way: it has "
                    "no `within`, so they stay until they match."
                )

    def _tables_without_index(self) -> Iterator[str]:
        for query in self.plan.queries:
            if not isinstance(query.input, n.JoinInput):
                continue
            for side in (query.input.left, query.input.right):
                table = self.plan.tables.get(side.source.id)
                rows = next((g.rows or 0 for g in self.growth if g.element == side.source.id), 0)
                names = {a.name.lower() for a in table.annotations} if table is not None else {"index"}
                if not names & {"index", "primarykey", "store"} and rows > 1_000:
                    table_words = f"{side.source.id} ({rows:,} rows), which has no @index and no @primaryKey"
                    yield f"{query.name} looks for rows of {table_words}."
