"""The plan of a leader: a node of its own that takes all events, for the queries whose outputs depend on the node.

A plan is divided in two. The leader has the named queries, with all that share a stream, a table or a named window with
them, so that each of these is filled in one place. Their inputs are computed by the leader once more, and only the
nodes emit them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from .. import nodes as n
from ..query_parts import connector_type, sources, tables_of
from ..shard_safety.safety import aggregation_safety, dependent_queries, without
from .placement import connected_streams

LEADER = "leader"
"""The leader's shard id."""


@dataclass(frozen=True)
class Duty:
    """Outputs of a leader: the streams and aggregations that it emits; and its `silent` queries and aggregations, which
    it only computes for these and whose errors the nodes report.
    """

    streams: frozenset[str]
    aggregations: frozenset[str]
    silent: frozenset[str]


@dataclass(frozen=True)
class LeaderSplit:
    """The plan of the nodes, the plan of the leader, and the leader's tables and named windows (`state`)."""

    nodes: n.Plan
    leader: n.Plan
    state: frozenset[str]
    duty: Duty


class Parts:
    """The plans of the nodes and of the leader, if there is one."""

    def __init__(self, plan: n.Plan, leader_query_names: Collection[str] | None) -> None:
        """`leader_query_names`: the names of its queries; None without a leader."""
        self._plan, self._leader_query_names = plan, leader_query_names
        self._leader_split = None if leader_query_names is None else split_plan(plan, leader_query_names)

    @property
    def duty(self) -> Duty | None:
        """The outputs of the leader."""
        return None if self._leader_split is None else self._leader_split.duty

    @property
    def state(self) -> frozenset[str]:
        """The tables and named windows that only the leader has."""
        return frozenset() if self._leader_split is None else self._leader_split.state

    def part_of(self, plan: n.Plan, *, leads: bool) -> n.Plan:
        """The part of a node's plan that the node runs."""
        if self._leader_query_names is None:
            return plan
        parts = (
            self._leader_split
            if self._leader_split is not None and plan is self._plan
            else split_plan(plan, self._leader_query_names)
        )
        return parts.leader if leads else parts.nodes


def led_by(plan: n.Plan, routing: str) -> tuple[str, ...] | None:
    """The names of the queries that a leader has under a routing, in the order of the text; None if all is right
    without one. A leader may be there for aggregations and triggers alone."""
    dependent_names = dependent_queries(plan, routing)
    apart = [a for a in plan.aggregations.values() if aggregation_safety(plan, a).level == "node-dependent"]
    needs_leader = dependent_names or apart or plan.triggers or _topics(plan)
    return _close_over_shared(plan, dependent_names) if needs_leader else None


def split_plan(plan: n.Plan, leader_query_names: Collection[str]) -> LeaderSplit:
    """`plan` divided between the nodes and a leader that has the queries `leader_query_names` (of `led_by`)."""
    led_queries = [q for q in plan.queries if q.name in leader_query_names]
    written_streams = {q.output.target.id for q in led_queries}
    alone = {
        a.id
        for a in plan.aggregations.values()
        if a.input.source.id in written_streams | set(plan.triggers) | _topics(plan)
        or aggregation_safety(plan, a).level == "node-dependent"
    }  # fmt: skip
    needed_queries = _find_needed(plan, led_queries, alone)
    silent = {q.name for q in plan.queries if q.name in needed_queries}
    runs = {*leader_query_names, *silent}
    led_aggregations = {a: d for a, d in plan.aggregations.items() if a in alone or a in needed_queries}
    leader = replace(
        without(plan, {q.name for q in plan.queries} - runs),
        streams={s: d if s in written_streams else _without(plan, d, "log") for s, d in plan.streams.items()},
        aggregations=led_aggregations,
    )
    nodes = replace(
        without(plan, leader_query_names),
        streams={s: _without(plan, d, "inMemory") for s, d in plan.streams.items()},
        aggregations={a: d for a, d in plan.aggregations.items() if a not in alone},
        triggers={},
    )
    streams = (
        plan.streams
        if _topics(plan)
        else {*(written_streams - set(plan.tables)), *plan.triggers, *_faults(led_queries, plan)}
    )
    duty = Duty(
        frozenset(streams),
        frozenset(alone),
        frozenset(silent | set(led_aggregations) - alone),
    )
    return LeaderSplit(nodes, _without_logs(leader, silent), frozenset(_find_shared(led_queries, plan)), duty)


def _close_over_shared(plan: n.Plan, names: Iterable[str]) -> tuple[str, ...]:
    """The queries `names`, with all that share with them parts that must be in one place."""
    if _topics(plan):
        return tuple(q.name for q in plan.queries)
    names_on_leader = set(names)
    while True:
        led_queries = [q for q in plan.queries if q.name in names_on_leader]
        written_streams = {q.output.target.id for q in led_queries} | set(plan.triggers)
        shared = _find_shared(led_queries, plan)
        faulty = _faults(led_queries, plan)
        observed_streams = {f[1:] for f in faulty}
        more = {
            q.name
            for q in plan.queries
            if q.output.target.id in written_streams
            or any(s.id in written_streams | faulty | observed_streams for s in sources(q))
            or not shared.isdisjoint(_find_shared([q], plan))
        } - names_on_leader
        if not more:
            return tuple(q.name for q in led_queries)
        names_on_leader |= more


def _topics(plan: n.Plan) -> set[str]:
    """Streams with a topic, which is one node's: all of the app is led then."""
    return connected_streams(plan, types=("inMemory",))


def _find_shared(queries: Iterable[n.Query], plan: n.Plan) -> set[str]:
    """The tables and named windows that queries touch."""
    windows = {i for q in queries for i in (q.output.target.id, *(s.id for s in sources(q))) if i in plan.windows}
    return windows | {t for q in queries for t in tables_of(q)}


def _faults(queries: Iterable[n.Query], plan: n.Plan) -> set[str]:
    """The fault streams that errors of queries go to."""
    read = {s.id for q in queries for s in sources(q)}
    return {f"!{s}" for s in read if s in plan.streams and plan.streams[s].on_error == "STREAM"}


def _find_needed(plan: n.Plan, led_queries: Collection[n.Query], alone: Collection[str]) -> set[str]:
    """The names of the other queries, and the aggregations, that must run for the leader's own to be right."""
    out: set[str] = set()
    read = {plan.aggregations[a].input.source.id for a in alone}
    query_names = {q.name for q in led_queries}
    todo = list(led_queries)
    while True:
        for q in todo:
            read |= {s.id for s in sources(q)} | set(tables_of(q, with_target=False))
            read |= {s.id[1:] for s in sources(q) if s.id.startswith("!")}
        for a in plan.aggregations.values():
            if a.id in read and a.id not in alone:
                out.add(a.id)
                read.add(a.input.source.id)
        todo = [q for q in plan.queries if q.name not in query_names and _serves(q, read, plan)]
        if not todo:
            return out
        query_names |= {q.name for q in todo}
        out |= {q.name for q in todo}


def _serves(q: n.Query, read: Collection[str], plan: n.Plan) -> bool:
    target = q.output.target.id
    if target in plan.tables and plan.tables[target].is_stored:
        return False  # in a database, where the nodes write it
    return target in read or any(f"!{s.id}" in read for s in sources(q))


def _without(plan: n.Plan, stream: n.StreamDef, type_: str) -> n.StreamDef:
    """The stream without its connectors of a type, which the others have."""
    annotations = tuple(
        a
        for a in stream.annotations
        if a.name.lower() not in ("source", "sink") or connector_type(a, plan.properties) != type_
    )
    return replace(stream, annotations=annotations)


def _without_logs(plan: n.Plan, silent: Collection[str]) -> n.Plan:
    """The plan whose `silent` queries have no `#log`."""
    elements: list[n.Query | n.Partition] = []
    for e in plan.elements:
        if isinstance(e, n.Partition):
            elements.append(replace(e, queries=tuple(_mute_query(q) if q.name in silent else q for q in e.queries)))
        else:
            elements.append(_mute_query(e) if e.name in silent else e)
    return replace(plan, elements=tuple(elements))


def _mute_query(q: n.Query) -> n.Query:
    def plain(i: n.StreamInput) -> n.StreamInput:
        return replace(i, steps=tuple(_logless(i.steps)))

    match q.input:
        case n.StreamInput():
            return replace(q, input=plain(q.input))
        case n.JoinInput():
            return replace(q, input=replace(q.input, left=plain(q.input.left), right=plain(q.input.right)))
    return q


def _logless(steps: Iterable[n.Step]) -> Iterator[n.Step]:
    for step in steps:
        if not (isinstance(step, n.FunctionStep) and step.function == "log"):
            yield step
