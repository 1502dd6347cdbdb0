"""Replay of an app's input: by one node or several, under any routing, without Spark's state.

A node is a function of its input, so a replay gives the app's output. Events are numbered through all streams in
the order in which they came; with lineage (`plan.reports.lineage`), outputs name the events that they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.aggregation import from_table, merge_stored, view
from ..engine.columnar.column_data import ARROW, Array, StringPool
from ..engine.expressions import Context
from ..engine.node import NodeEngine
from ..engine.state.node_batch import Emitted, InputBatch, OutputOptions, Outputs, StreamRows
from ..engine.state.services import Services
from ..errors import SparkStreamError
from ..journal.entries import Ask, EventsEntry, FaultEntry, MergedEntry, RowsEntry
from ..journal.journal import entries_of, lines
from ..journal.leading import only
from ..journal.routing import Route, assign, nodes_of
from ..journal.segments import load
from ..lang.parser import parse_on_demand
from ..limits import Limits
from ..nodes.partitioning import part
from ..plan import bind_retrieval
from ..plan.distributed.leader import Duty, LeaderSplit, led_by, split_plan
from ..plan.leadership import as_follower
from ..plan.nodes import AggregationDef, Plan
from ..plan.output_labels import label_shared
from ..plan.reports.lineage import LINEAGE, change_with_lineage, with_lineage
from ..plan.rewrites.chance import freeze_chance
from ..recovery.batch_care import BatchCare
from ..simulation.faults import Fault, fault_of
from ..types import Schema, Type
from .replay_progress import current_progress

NOT_KEPT = (
    "The beginning of the input is no longer kept: deploy the app with fresh=True and a larger retention, such "
    "as retention='recording=10GB', and feed it again."
)


MOST_KEPT_STEPS = 10_000_000
"""Steps of a recording whose batches stay in memory; others are read again when they are needed."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Events that came in together: how they were routed, the number of the first of them by stream, and how many there
    are. `read` returns their batch. `numbers` and `places`, by stream: their numbers, where these do not follow each
    other, and the node (from 0) of each, where the routing does not say it."""

    entry: EventsEntry
    first: Mapping[str, int]
    counts: Mapping[str, int]
    read: Callable[[], InputBatch]
    numbers: Mapping[str, Array] | None = None
    places: Mapping[str, Array] | None = None

    @staticmethod
    def of_batch(entry: EventsEntry, batch: InputBatch, number: int) -> Recorded:
        """A batch in memory; its events are numbered from `number` on."""
        return Recorded.with_numbers(entry, {s: len(r.ts) for s, r in batch.rows.items()}, number, lambda: batch)

    @staticmethod
    def with_numbers(
        entry: EventsEntry, counts: Mapping[str, int], number: int, read: Callable[[], InputBatch]
    ) -> Recorded:
        """Events that are numbered from `number` on, stream by stream."""
        first = dict(zip(counts, accumulate(counts.values(), initial=number), strict=False))
        return Recorded(entry, first, counts, read)

    @property
    def batch(self) -> InputBatch:
        """The events. Raises SparkStreamError if their file is gone by now, and DamagedFile."""
        return self.read()

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(self.counts.values())

    def numbers_of(self, stream: str) -> Array:
        """The number of each event of a stream."""
        if self.numbers is not None:
            return self.numbers[stream]
        return np.arange(self.first[stream], self.first[stream] + self.counts[stream])

    def row_of(self, stream: str, number: int) -> int | None:
        """The row of an event of a stream; None if it is not here."""
        if self.numbers is None:
            row = number - self.first[stream]
            return row if 0 <= row < self.counts[stream] else None
        rows = np.flatnonzero(self.numbers[stream] == number).tolist()
        return rows[0] if rows else None


@dataclass(frozen=True, eq=False)
class Recording:
    """Input of an app that began with `began` nodes, in order: events, and on-demand queries as texts. `faults`
    are the added ones, each with the number of items before it.
    """

    items: Sequence[Recorded | str]
    schemas: Mapping[str, Schema]
    began: int
    faults: Sequence[tuple[int, Fault]] = ()

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(x.events for x in self.recorded_events)

    @property
    def steps(self) -> int:
        """Number of steps of a node that takes all."""
        return sum(x.entry.steps for x in self.recorded_events)

    @property
    def start(self) -> int:
        """Time of the first event (ms)."""
        return int(self.recorded_events[0].batch.clock[0])

    @cached_property
    def recorded_events(self) -> list[Recorded]:
        """The events alone."""
        return [x for x in self.items if isinstance(x, Recorded)]

    def locate(self, number: int) -> tuple[int, str, int]:
        """The place of an event: the number of its item among `recorded_events`, its stream, and its row there. Raises
        KeyError."""
        for place, item in enumerate(self.recorded_events):
            for stream in item.first:
                if (row := item.row_of(stream, number)) is not None:
                    return place, stream, row
        raise KeyError(number)

    @cached_property
    def starts(self) -> list[int]:
        """The number of steps before each of the `recorded_events`, and of all."""
        return [0, *accumulate(x.entry.steps for x in self.recorded_events)]

    def position_of_time(self, time: int) -> int:
        """The number of steps up to a time (ms) of the clock."""
        for start, item in zip(self.starts, self.recorded_events, strict=False):
            clock = np.maximum.accumulate(item.batch.clock)
            if len(clock) and int(clock[-1]) > time:
                return start + int(np.searchsorted(clock, time, side="right"))
        return self.steps

    def position_of_event(self, number: int) -> int:
        """The number of steps up to the one that brought an event, with it. Raises KeyError."""
        place, stream, row = self.locate(number)
        return self.starts[place] + int(self.recorded_events[place].batch.rows[stream].step[row]) + 1

    def event(self, number: int) -> tuple[str, int, list[Any]]:
        """(stream, timestamp in ms, values) of an event. Raises KeyError."""
        place, stream, i = self.locate(number)
        rows = self.recorded_events[place].batch.rows[stream]
        values = [c[i] if isinstance(c, list) else c[i].as_py() for c in rows.columns]
        return stream, int(rows.ts[i]), values


class _BatchMemory:
    """Batches of a recording's files: the first ones stay in memory, up to `MOST_KEPT_STEPS`, and the last one."""

    def __init__(self, folder: Path, schemas: Mapping[str, Schema]) -> None:
        self._folder, self._schemas = folder, schemas
        self._batches: dict[int, InputBatch] = {}
        self._room = MOST_KEPT_STEPS
        self._last: tuple[int, InputBatch] | None = None

    def read(self, entry: EventsEntry) -> InputBatch:
        """The batch of an entry. Raises SparkStreamError if its file is gone."""
        if entry.seq in self._batches:
            return self._batches[entry.seq]
        if self._last is not None and self._last[0] == entry.seq:
            return self._last[1]
        try:
            batch = load(self._folder, entry, self._schemas)
        except FileNotFoundError:
            raise SparkStreamError(NOT_KEPT) from None
        if entry.steps <= self._room:
            self._room -= entry.steps
            self._batches[entry.seq] = batch
        else:
            self._last = entry.seq, batch
        return batch


def read_recording(folder: Path, schemas: Mapping[str, Schema], began: int, *, last: int | None = None) -> Recording:
    """Read the inbox in `folder`, up to entry `last`. Raises SparkStreamError if some of it is gone."""
    if BatchCare.of(folder).skipped_steps:
        raise SparkStreamError(
            "Some events ended the processes that took them and were set aside; a replay would end them again. "
            "Deploy the app with fresh=True and feed it without those events; they are in app.errors."
        )
    items: list[Recorded | str] = []
    faults: list[tuple[int, Fault]] = []
    memory = _BatchMemory(folder, schemas)
    number = 0
    try:
        for at, line in lines(folder, 0):
            for entry in entries_of(folder, at, line):
                if last is not None and entry.seq > last:
                    break
                if isinstance(entry, EventsEntry):
                    item = _recorded_item(folder, entry, memory, number)
                    number += item.events
                    items.append(item)
                elif isinstance(entry, Ask):
                    items.append(entry.text)
                elif isinstance(entry, FaultEntry):
                    faults.append((len(items), fault_of(entry.fault)))
    except FileNotFoundError:
        raise SparkStreamError(NOT_KEPT) from None
    return Recording(items, schemas, began, faults)


def _recorded_item(folder: Path, entry: EventsEntry, memory: _BatchMemory, number: int) -> Recorded:
    """The events of an entry, numbered from `number` on; a feed's are not read yet. Raises FileNotFoundError."""
    if isinstance(entry, RowsEntry | MergedEntry):
        for file in entry.files:
            (folder / file).stat()
        return Recorded.with_numbers(entry, entry.events_by_stream, number, partial(memory.read, entry))
    return Recorded.of_batch(entry, memory.read(entry), number)


def planned_faults(folder: Path, schemas: Mapping[str, Schema]) -> tuple[int | None, list[Fault]]:
    """Starting time (ms) of the clock of the app with the inbox `folder`, None if it has not started; and the faults
    added to its scenario's. Raises FileNotFoundError if the beginning is no longer kept.
    """
    first: int | None = None
    faults = []
    for at, line in lines(folder, 0):
        for entry in entries_of(folder, at, line):
            if isinstance(entry, EventsEntry) and first is None:
                first = int(load(folder, entry, schemas).clock[0])
            elif isinstance(entry, FaultEntry):
                faults.append(fault_of(entry.fault))
    return first, faults


@dataclass(frozen=True)
class Way:
    """Routing of a replay: as recorded (`route` None), or over `nodes` by a route. As recorded, a leader is one of the
    nodes; else it is an additional one.
    """

    nodes: int
    route: str | None = None

    def places(self, recording: Recording, item: Recorded) -> dict[str, Array]:
        """The node (from 0) of every row of a batch, by stream."""
        entry, schemas = item.entry, recording.schemas
        if item.places is not None:
            return dict(item.places)
        if self.route is not None:
            route = Route.parse(self.route, self.nodes, schemas)
            return assign(item.batch, route, schemas, self.nodes, entry.request)
        return nodes_of(item.batch, entry, schemas, recording.began)


ONE = Way(1, "round_robin")
"""All events to one node."""


@dataclass
class NodeReplay:
    """A node's outputs: for each derived stream, or label of it (`plan.output_labels`), its parts, each with the clock
    (ms) at its steps; and its additions to each aggregation (`engine.state.node_batch.Outputs.partials`).
    """

    node: int
    streams: dict[str, list[tuple[Emitted, Array]]] = field(default_factory=dict)
    partials: dict[str, list[pa.Table]] = field(default_factory=dict)

    def add(self, outputs: Outputs, clock: Array) -> None:
        """Adds the outputs of a batch whose steps have a `clock`."""
        for stream, events in outputs.streams.items():
            self.streams.setdefault(stream, []).append((events, clock))
        for aggregation, table in outputs.partials.items():
            self.partials.setdefault(aggregation, []).append(table)

    def extend(self, later: NodeReplay) -> None:
        """Adds later outputs of the node."""
        for stream, parts in later.streams.items():
            self.streams.setdefault(stream, []).extend(parts)
        for aggregation, tables in later.partials.items():
            self.partials.setdefault(aggregation, []).extend(tables)

    def rows(self, stream: str) -> Iterator[tuple[int, int, list[Any]]]:
        """(clock when it was emitted, timestamp, values) of a stream's events; both times in ms."""
        for events, clock in self.streams.get(stream, []):
            for at, (ts, values) in zip(clock[events.step].tolist(), events.rows(), strict=True):
                yield at, ts, values


@dataclass(frozen=True)
class Nodes:
    """The nodes of a replay: the plan of all of them, the start of their clocks, whether scripts may run, the limits of
    one event; and the queries that a leader has (None: there is no leader). If `plan` has lineage, `plain_plan` is the
    app's own. `lazy` and `describes`: as in `OutputOptions`. `inputs` has, by stream whose attributes differ from
    the events', the place of each among these; one without a place is null.
    """

    plan: Plan
    start: int | None = None
    scripts: bool = False
    led: tuple[str, ...] | None = None
    plain_plan: Plan | None = None
    limits: Limits = field(default_factory=Limits)
    lazy: bool = False
    describes: bool = False
    inputs: Mapping[str, Sequence[int | None]] = field(default_factory=dict)

    def engine(self, plan: Plan, shard: str = "", *, by_query: bool = True) -> NodeEngine:
        """A node at its start that runs `plan`. `by_query`: its outputs are by label (`plan.output_labels`)."""
        labels = label_shared(self.plan) if by_query else {}
        outputs = OutputOptions(labels=labels, lazy=self.lazy, describes=self.describes)
        engine = NodeEngine(
            plan, shard=shard, allow_scripts=self.scripts, start=self.start, limits=self.limits, outputs=outputs
        )
        return current_progress().follow(engine)

    def with_tracing(self, *, every: bool = False, lazy: bool = False) -> Nodes:
        """The same nodes, whose outputs carry their lineage; `every`: as in `with_lineage`; `lazy`: as in
        `OutputOptions`."""
        return replace(self, plan=with_lineage(self.plan, every=every), plain_plan=self.plan, lazy=lazy)

    def with_frozen_chance(self) -> Nodes:
        """The same nodes, in which `UUID()`, `math:rand` and the wall clock have fixed values (`freeze_chance`)."""
        return replace(self, plan=freeze_chance(self.plan))

    def split_plans(self, way: Way) -> LeaderSplit | None:
        """The plans of nodes and leader; None without a leader."""
        if self.led is None or way == ONE:
            return None
        led = self.led if way.route is None else led_by(self.plan, way.route)
        return None if led is None else split_plan(self.plan, led)


def replay_nodes(recording: Recording, way: Way, nodes: Nodes) -> list[NodeReplay]:
    """Every node's outputs. Raises the engine's errors for an app that it cannot run."""
    out: list[NodeReplay] = []
    for step_outputs in replay_steps(recording, way, nodes):
        for i, outputs in enumerate(step_outputs):
            if i == len(out):
                out.append(NodeReplay(outputs.node))
            out[i].extend(outputs)
    return out or [NodeReplay(node) for node in range(way.nodes)]


def replay_steps(recording: Recording, way: Way, nodes: Nodes) -> Iterator[list[NodeReplay]]:
    """Every node's outputs of each of the `recorded_events`, in order. Raises as `replay_nodes`."""
    return ReplayedNodes(recording, way, nodes).steps()


class ReplayedNodes:
    """The nodes of a replay, at its beginning. Raises the engine's errors for an app that it cannot run."""

    def __init__(self, recording: Recording, way: Way, nodes: Nodes) -> None:
        parts = nodes.split_plans(way)
        leader = None if parts is None else recording.began if way.route is None else way.nodes
        self._recording, self._way, self._nodes = recording, way, nodes
        self.engines: list[NodeEngine] = []
        self._shares: list[_Share] = []
        for node in range(max(way.nodes, -1 if leader is None else leader + 1)):
            duty = parts.duty if parts is not None and node == leader else None
            plan = nodes.plan if parts is None else parts.nodes if duty is None else parts.leader
            if node != (leader or 0):
                plan = as_follower(plan)
            self.engines.append(nodes.engine(plan, f"node-{node + 1}"))
            self._shares.append(_Share(way, duty))

    def steps(self) -> Iterator[list[NodeReplay]]:
        """Takes the recording: each node's outputs of each of the `recorded_events`, in order."""
        for item in self._recording.items:
            if isinstance(item, str):
                self.change(item)
            else:
                yield self.take(item, self.batches(item, self.places(item)))

    def change(self, text: str) -> None:
        """Carries out an on-demand query on each node."""
        for engine in self.engines:
            _change(engine, text, self._nodes)

    def places(self, item: Recorded) -> Mapping[str, Array] | None:
        """The node (from 0) of every event of an item, by stream; None: all go to the one node."""
        return None if self._way == ONE else self._way.places(self._recording, item)

    def batches(self, item: Recorded, places: Mapping[str, Array] | None) -> list[InputBatch | None]:
        """The events of an item for each node, by their `places`; None for a node that does not get it."""
        batch = _input_of(item, self._nodes)
        return [
            share.part(batch, places, node) if share.takes(item.entry, node) else None
            for node, share in enumerate(self._shares)
        ]

    def take(self, item: Recorded, batches: Sequence[InputBatch | None]) -> list[NodeReplay]:
        """Each node's outputs for its `batches` of an item."""
        step_outputs = []
        for node, (engine, share, batch) in enumerate(zip(self.engines, self._shares, batches, strict=True)):
            out = NodeReplay(node)
            if batch is not None:
                out.add(share.own_outputs(engine.step(batch)), batch.clock)
            step_outputs.append(out)
        return step_outputs


@dataclass(frozen=True)
class _Share:
    """The part of a recording that a node takes: by the `way`, or with a leader's `duty` all of it."""

    way: Way
    duty: Duty | None

    def takes(self, entry: EventsEntry, node: int) -> bool:
        """True if the node gets an entry."""
        return self.duty is not None or self.way.route is not None or not entry.over or node in entry.over

    def part(self, batch: InputBatch, places: Mapping[str, Array] | None, node: int) -> InputBatch:
        """The part of a node, of a batch whose events go to `places` (None: all to this one)."""
        return batch if self.duty is not None or places is None else part(batch, places, node)

    def own_outputs(self, outputs: Outputs) -> Outputs:
        """The outputs of which the node is in charge."""
        return outputs if self.duty is None else only(outputs, self.duty)


Merged = dict[tuple[str, int, tuple[Any, ...]], list[Any]]
"""Rows of an aggregation: by duration, start of the bucket (ms) and group, the selected values."""


def merged_rows(replays: Sequence[NodeReplay], definition: AggregationDef, nodes: Nodes) -> Merged:
    """Rows of an aggregation when all nodes' shares are merged."""
    out: Merged = {}
    tables = [t for r in replays for t in r.partials.get(definition.id, [])]
    if not tables:
        return out
    context = Context(timezone=nodes.plan.properties.get("timezone", "UTC"))
    all_shares = pa.concat_tables(tables)
    for duration in definition.durations:
        services = Services(StringPool(), context)
        rows = all_shares.filter(pc.equal(all_shares.column("duration"), duration))
        aggregate = merge_stored(from_table(definition, rows, services), services)
        keys = [c.to_list(services.strings) for c in aggregate.keys]
        values = [c.to_list(services.strings) for c in view(aggregate, services)[1:]]
        for i, bucket in enumerate(aggregate.bucket.tolist()):
            out[duration, bucket, tuple(k[i] for k in keys)] = [v[i] for v in values]
    return out


def _change(engine: NodeEngine, text: str, nodes: Nodes) -> None:
    """Carries out an on-demand query that changes a table; one that reads has nothing to do here."""
    retrieval = bind_retrieval(parse_on_demand(text), nodes.plain_plan or nodes.plan, text)
    if retrieval.output is not None:
        engine.answer(retrieval if nodes.plain_plan is None else change_with_lineage(retrieval, engine.plan))


def _input_of(item: Recorded, nodes: Nodes) -> InputBatch:
    """The batch of a plan's streams, with its attributes, and with the events' numbers where the plan has lineage."""
    rows = {}
    for stream, r in item.batch.rows.items():
        if stream not in nodes.plan.streams:
            continue
        schema = nodes.plan.streams[stream].source.schema
        if (places := nodes.inputs.get(stream)) is not None:
            columns = [
                _nulls(a.type, len(r.ts)) if p is None else r.columns[p] for a, p in zip(schema, places, strict=False)
            ]
            r = StreamRows(r.step, r.ts, columns)
        place = schema.find(LINEAGE)
        if place is not None:
            numbers = item.numbers_of(stream)
            long = schema[place].type is Type.LONG
            r = StreamRows(r.step, r.ts, [*r.columns, pa.array(numbers) if long else numbers.tolist()])
        rows[stream] = r
    return replace(item.batch, rows=rows)


def _nulls(type: Type, size: int) -> Any:
    return [None] * size if type is Type.OBJECT else pa.nulls(size, ARROW[type])
