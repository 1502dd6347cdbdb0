"""A fully distributed app: all of its partial apps, the topics between them, and its simulated happenings.

Everything is a function of the input and of the scenario. Each batch goes through the partial apps in the order in
which topics connect them, so a topic needs no store of its own: events published in a step of the app arrive in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.node import NodeEngine
from ..engine.state.node_batch import Chunks, Emitted, InputBatch, Outputs, RetrievalAnswer, StreamRows
from ..errors import Misuse, SiddhiRuntimeError
from ..messaging import Messaging
from ..plan.distributed.distribute import ExecutionGroup, Split, Strategy, Subscription, shares
from ..plan.distributed.partial_apps import partial_plan
from ..plan.nodes import Plan, Retrieval
from ..plan.query_parts import sources, tables_of_retrieval
from ..simulation.faults import Fault, fault_of, members_of
from ..simulation.resource_manager import ResourceSimulation, simulate_resources
from ..simulation.resources import PartialApp, ResourceScenario
from ..simulation.timeline import PersistTimes, SimulatedTimeline
from ..types import Schema
from .app_figures import DistributedFigures
from .instance import DIRECT, KEYED, SUBSCRIBED, Due, Engine, Event, InstanceLane
from .lane_clock import LaneClock
from .pair import Published
from .partitioning import by_hash
from .topics import TopicLog, with_arrivals


@dataclass(frozen=True)
class Distributed:
    """The partial apps of an app, and the faults of the nodes that run them. Raises `Misuse` if groups feed each
    other in a circle.
    """

    split: Split
    scenario: ResourceScenario

    def __post_init__(self) -> None:
        _order_groups(self.split.groups)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The resource nodes' names."""
        return self.scenario.cluster.nodes

    @property
    def random(self) -> bool:
        """True if faults come at random."""
        return self.scenario.random

    @property
    def has_planned_faults(self) -> bool:
        """True if faults are planned from the start on."""
        return bool(self.scenario.faults)

    def check(self, start: int, until: int, more: tuple[Fault, ...]) -> None:
        """Raise `Misuse` for faults that are impossible in addition to the planned ones; times as in `schedule`."""
        self.scenario.schedule(start, until, more)


def apps_of(split: Split) -> tuple[PartialApp, ...]:
    """The partial apps of a split, in the order in which its manager deploys them."""
    return tuple(PartialApp(i, g.receiver, g.parallel) for g in split.groups for i in g.instances)


def _order_groups(groups: Sequence[ExecutionGroup]) -> list[ExecutionGroup]:
    """The groups, each after those whose streams it reads. Raises `Misuse` for a circle."""
    out: list[ExecutionGroup] = []
    left = list(groups)
    while left:
        free = [g for g in left if not any(r.stream in w.writes for r in g.reads for w in left)]
        if not free:
            names = ", ".join(g.name for g in left)
            raise Misuse(f"the groups {names} feed each other in a circle: put their queries into one execGroup")
        out += free
        left = [g for g in left if g not in free]
    return out


def _message_key(stream: str, writer: str = "", node: str = "") -> str:
    """The key of the messages of a stream that a partial app on a node has written, or clients."""
    return "\n".join((stream, writer, node))


class _PassedOn:
    """An engine that only passes a stream's events on, from a source of the app to a topic."""

    def __init__(self, names: Mapping[str, tuple[str, ...]]) -> None:
        self._names = names

    def step(self, batch: InputBatch) -> Outputs:
        streams = {}
        for s, r in batch.rows.items():
            chunks = Chunks(r.step, np.zeros(len(r.step), bool))
            streams[s] = Emitted(self._names[s], r.step, r.ts, r.columns, chunks)
        return Outputs(streams)

    def answer(self, retrieval: Retrieval) -> RetrievalAnswer:
        raise AssertionError("it holds nothing that could be asked for")

    def stats(self) -> dict[str, Any]:
        return {"state_bytes": {}}

    def snapshot(self) -> bytes:
        return b""

    def restore(self, blob: bytes) -> None:
        """There is nothing to restore."""


@dataclass
class _PartialApp:
    """A partial app: its group, its number there (from 0), its plan, and its lane."""

    group: ExecutionGroup
    number: int
    plan: Plan
    lane: InstanceLane
    direct: frozenset[str]
    """Streams that clients send to it."""


class DistributedLane(LaneClock):
    """Runs an app that is distributed. `engine` makes an engine of a plan at its start, whose outputs carry chunks.
    `faults` come on top of the scenario's, at times (ms) of their own.
    """

    def __init__(
        self, plan: Plan, app: Distributed, engine: Callable[[Plan], NodeEngine], faults: Sequence[Fault] = ()
    ) -> None:
        super().__init__(faults)
        self.plan, self.app = plan, app
        self._engine = engine
        self.schemas: dict[str, Schema] = {s: d.source.schema for s, d in plan.streams.items()}
        self.instances = [self._instance(g, i) for g in _order_groups(app.split.groups) for i in range(g.parallel)]
        self.turns: dict[str, int] = {}
        """By stream, how many requests of clients several apps have shared."""
        self.messages: dict[str, int] = {}
        """By stream and writer, how many messages of a topic instances have taken in turn."""
        self._run: ResourceSimulation | None = None
        """The simulation so far: continuing it costs less than starting again."""

    def _instance(self, group: ExecutionGroup, number: int) -> _PartialApp:
        split, persists = self.app.split, self.app.scenario.cluster.persist is not None
        plan = partial_plan(self.plan, split, group)
        kinds = {r.stream: self._kind(r) for r in group.reads}
        # A stream that the group makes for itself also takes events that are sent to it.
        inner = {s.id for q in plan.queries for s in sources(q) if s.kind == "stream" and "#" not in s.id}
        inner |= {a.input.source.id for a in plan.aggregations.values()}
        inner_sources = {s for s in inner - {*kinds, *plan.triggers} if not s.startswith("!")}
        direct = frozenset(group.sources) | inner_sources
        kinds |= dict.fromkeys(direct, DIRECT)
        names = {s: self.schemas[s].names for s in direct}

        def engine() -> Engine:
            return _PassedOn(names) if group.passes_on else self._engine(plan)

        lane = InstanceLane(group.instances[number], engine, kinds, persists=persists, from_first=self._is_nats)
        return _PartialApp(group, number, plan, lane, direct)

    @property
    def _is_nats(self) -> bool:
        return self.app.split.messaging is Messaging.NATS

    def _kind(self, subscription: Subscription) -> int:
        """The way in which events of a topic arrive: a queue group of NATS has one position, as a consumer group."""
        if self._is_nats:
            return SUBSCRIBED if subscription.strategy is Strategy.ROUND_ROBIN else KEYED
        return KEYED if subscription.strategy is Strategy.FIELD_GROUPING else SUBSCRIBED

    def happen(self, fault: Fault) -> None:
        """Add a fault. Raises `Misuse` for one that is impossible, or not later than the clock."""
        faults = self._with_fault(fault)
        self.app.scenario.schedule(self.start or 0, fault.at, faults)
        self.faults, self._timeline, self._run = faults, None, None

    def timeline(self, until: int) -> SimulatedTimeline:
        assert self.start is not None
        scenario = self.app.scenario
        if scenario.random:  # its faults depend on how far they are drawn
            return simulate_resources(scenario, start=self.start, until=until, more=self.faults)
        if self._run is None:
            schedule = scenario.schedule(self.start, until, self.faults)
            self._run = ResourceSimulation(scenario, schedule, self.start)
        self._run.upto(until)
        return self._run.timeline

    def step(self, batch: InputBatch) -> list[Published]:
        """Process steps; returns the nodes' outputs of queries, not events that are only passed on."""
        if not len(batch.clock):
            return []
        clock = self._clock_of(batch)
        events = list(self._events(clock))
        topics: dict[str, dict[tuple[str, str], list[Emitted]]] = {}
        out: list[Published] = []
        for i in self.instances:
            arrivals = [a for r in i.group.reads if (a := self._arrivals(i, r.stream, topics.get(r.stream, {})))]
            outside_batch = InputBatch(batch.clock, self._from_outside(i, batch))
            steps, place = with_arrivals(outside_batch, self.now, [a for logs in arrivals for a in logs])
            outputs = i.lane.step(steps, place, events)
            for p in outputs:
                for stream in i.group.writes:
                    if stream in p.outputs.streams:
                        by_writer = topics.setdefault(stream, {})
                        by_writer.setdefault((i.lane.name, p.node), []).append(p.outputs.streams[stream])
            if not i.group.passes_on:
                out += [self._once(i, p) for p in outputs]
        self._turn(batch)
        self._count_messages(batch, topics)
        self.now = max(self.now, int(clock[-1]))
        return out

    def _once(self, i: _PartialApp, output: Published) -> Published:
        """Without the events of a trigger that another instance has as well: each fires its own."""
        again = {t for t in i.plan.triggers if next(x for x in self.instances if t in x.plan.triggers) is not i}
        if not again.intersection(output.outputs.streams):
            return output
        streams = {s: e for s, e in output.outputs.streams.items() if s not in again}
        return replace(output, outputs=replace(output.outputs, streams=streams))

    def _turn(self, batch: InputBatch) -> None:
        for stream, rows in batch.rows.items():
            if sum(stream in i.direct for i in self.instances) > 1:
                self.turns[stream] = self.turns.get(stream, 0) + len(np.unique(rows.step))

    def _from_outside(self, i: _PartialApp, batch: InputBatch) -> dict[str, StreamRows]:
        """The instance's part of the events from clients and from the messaging layer."""
        out = {}
        for r in i.group.reads:
            rows = batch.rows.get(r.stream)
            if rows is not None and not self._passed_on(r.stream):
                requests = np.unique(rows.step, return_inverse=True)[1]
                first = self.messages.get(_message_key(r.stream), 0)
                index = self._share(i, r.stream, rows.columns, first + requests)
                out[r.stream] = rows if index is None else rows.take(index)
        for stream in i.direct:
            rows = batch.rows.get(stream)
            if rows is None:
                continue
            groups = [x for x in self.instances if stream in x.direct]
            if len(groups) == 1:
                out[stream] = rows
            else:  # clients, or their load balancer, send to each in turn
                _, request = np.unique(rows.step, return_inverse=True)
                mine = (self.turns.get(stream, 0) + request) % len(groups) == groups.index(i)
                out[stream] = rows.take(np.flatnonzero(mine))
        return {s: r for s, r in out.items() if len(r.ts)}

    def _passed_on(self, stream: str) -> bool:
        return any(stream in x.direct and x.group.passes_on for x in self.instances)

    def _arrivals(
        self, i: _PartialApp, stream: str, writers: Mapping[tuple[str, str], Sequence[Emitted]]
    ) -> list[TopicLog]:
        """The instance's share of a topic, by its writers in their order."""
        out = []
        order = {x.lane.name: n for n, x in enumerate(self.instances)}
        for name, node in sorted(writers, key=lambda w: (order[w[0]], w[1])):
            log = TopicLog.of(stream, writers[name, node])
            first = self.messages.get(_message_key(stream, name, node), 0)
            index = self._share(i, stream, log.columns, first + np.cumsum(log.begins()) - 1)
            out.append(log if index is None else log.select(index))
        return out

    def _count_messages(self, batch: InputBatch, topics: Mapping[str, Mapping[tuple[str, str], list[Emitted]]]) -> None:
        """Count the messages of topics that the instances of a queue group take in turn."""
        if not self._is_nats:
            return
        for stream in {r.stream for i in self.instances for r in i.group.reads if r.strategy is Strategy.ROUND_ROBIN}:
            counts = {
                _message_key(stream, *writer): int(TopicLog.of(stream, parts).begins().sum())
                for writer, parts in topics.get(stream, {}).items()
            }
            if stream in batch.rows:
                counts[_message_key(stream)] = len(np.unique(batch.rows[stream].step))
            for key, count in counts.items():
                self.messages[key] = self.messages.get(key, 0) + count

    def _share(self, i: _PartialApp, stream: str, columns: Sequence[Any], messages: Array) -> Array | None:
        """The positions of the instance's events of a topic; None: all. `messages`: the number of each event's message
        (int64[n]). A topic without a key has one partition, which Kafka gives to one instance of a group that takes
        turns; the members of a queue group of NATS take one message each.
        """
        read = next(r for r in i.group.reads if r.stream == stream)
        if read.strategy is Strategy.ROUND_ROBIN:
            if self._is_nats:
                return np.flatnonzero(messages % i.group.parallel == i.number)
            return None if i.number == 0 else np.empty(0, np.int64)
        if read.strategy is Strategy.ALL or read.key is None:
            return None
        topic = next(t for t in self.app.split.topics if t.stream == stream and t.key == read.key)
        at = self.schemas[stream].find(read.key)
        assert at is not None, f"stream {stream} has no attribute {read.key}"
        partition = by_hash(columns[at], self.schemas[stream][at].type, topic.partitions)
        return np.flatnonzero(np.isin(partition, shares(topic.partitions, i.group.parallel)[i.number]))

    # ----------------------------------------------------------------------------------------------------- happenings

    def _events(self, clock: Array) -> Iterator[Event]:
        """Happenings, each with the step of the app that it precedes."""
        last = int(max(self.now, clock[-1]))
        timeline, coming = self._timeline_until(last)
        items: list[tuple[int, int, Any]] = [(h.at, 1, h) for h in coming]
        marks = np.array(sorted({*(h.at for h in coming), last}), np.int64)
        for c in timeline.clocks:
            items += [(due.at, 0, due) for due in self._due(c, marks)]
        for at, _, what in sorted(items, key=lambda x: x[:2]):
            yield int(np.searchsorted(clock, at)), what

    def _due(self, clock: PersistTimes, marks: Array) -> Iterator[Due]:
        """When a node persists: of several times with nothing between them, the last one counts."""
        assert self._timeline is not None
        later = [c.start for c in self._timeline.clocks if c.node == clock.node and c.start > clock.start]
        marks = np.minimum(marks, min(later, default=int(marks[-1])))
        due = clock.start + (marks - clock.start) // clock.every * clock.every
        before = max(self.now, clock.start)
        for at in np.unique(due).tolist():
            if at > before:
                yield Due(at, clock.node, clock.due(before, at))
                before = at

    # ----------------------------------------------------------------------------------------------- answers, and state

    def answer(self, retrieval: Retrieval) -> dict[str, list[RetrievalAnswer]]:
        """The answers of the partial apps that hold all sources of an on-demand query, by node: if several nodes run
        one, the answer of the first that is not halted. A change is made on all of them. Raises SiddhiRuntimeError if
        no partial app holds them all.
        """
        needed_names = {retrieval.source.id} if retrieval.source is not None else set()
        needed_names |= {*tables_of_retrieval(retrieval)}
        if retrieval.output is not None:
            needed_names.add(retrieval.output.target.id)
        holders = [i for i in self.instances if needed_names <= {*i.plan.tables, *i.plan.windows, *i.plan.aggregations}]
        if not holders:
            raise SiddhiRuntimeError(f"no partial app has all of {', '.join(sorted(needed_names))}")
        out: dict[str, list[RetrievalAnswer]] = {}
        for i in holders:
            runs = sorted(i.lane.runs.values(), key=lambda r: r.is_halted)
            answers = [(r.node, r.engine.answer(retrieval)) for r in (runs[:1] if retrieval.output is None else runs)]
            for node, answer in answers[:1]:
                out.setdefault(node, []).append(answer)
        return out

    def figures(self) -> DistributedFigures:
        """Figures of the app."""
        apps = {i.lane.name: i.lane.figures() for i in self.instances}
        return DistributedFigures(self.start, self.now, self.faults, apps)

    def state(self) -> dict[str, Any]:
        """All that it has to remember, as plain data."""
        return {
            "start": self.start,
            "now": self.now,
            "passed": self.happenings_done,
            "turns": dict(self.turns),
            "messages": dict(self.messages),
            "faults": [members_of(f) for f in self.faults],
            "instances": [i.lane.state() for i in self.instances],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self.start, self.now, self.happenings_done = state["start"], state["now"], state["passed"]
        self.turns = dict(state["turns"])
        self.messages = dict(state.get("messages", {}))  # states of 0.2.0 have none
        self.faults = tuple(fault_of(f) for f in state["faults"])
        self._timeline = self._run = None
        for i, instance_state in zip(self.instances, state["instances"], strict=True):
            i.lane.load(instance_state)
