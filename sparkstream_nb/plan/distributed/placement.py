"""Splits a plan into a stateless part, which can process pieces of the input in parallel, and the rest.

The stateless part runs on many pieces of the input at once; a node runs the rest over all of them in order.
Both are plans for the same engine, so an expression means the same in both. Running everything in the node is always
correct.
"""

from __future__ import annotations

from dataclasses import replace

from .. import nodes as n
from ..connectors.outside import published_streams
from ..cycles import cycles
from ..dataflow import Dataflow
from ..query_parts import connector_type, expressions, sources

_DRAWN = frozenset({"UUID", "math:rand"})
"""Functions whose answer is not the event's alone."""


def stateless(plan: n.Plan) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the queries, and ids of the aggregations, that need no state.

    These are stateless queries whose outputs only such queries read (or none) and that alone write their streams, and
    incremental aggregations that no query reads and whose input no query in the node writes.
    """
    stateless_queries = _queries(plan)
    read = {s.id for q in plan.queries for s in sources(q) if s.kind == "aggregation"}
    written_streams = {q.output.target.id for q in plan.queries} | _heard(plan)
    aggregations = plan.aggregations.values()
    apart = (a for a in aggregations if a.input.source.id not in written_streams and _plain_aggregation(plan, a))
    return stateless_queries, frozenset(a.id for a in apart if a.id not in read)


def split(plan: n.Plan) -> tuple[n.Plan | None, n.Plan]:
    """(the part of `plan` that needs no state, or None; the rest)."""
    queries, apart = stateless(plan)
    if not queries and not apart:
        return None, plan
    first = replace(
        plan,
        streams={s: replace(d, annotations=()) for s, d in plan.streams.items()},
        tables={},
        windows={},
        triggers={},
        functions={},
        aggregations={i: a for i, a in plan.aggregations.items() if i in apart},
        elements=tuple(e for e in plan.elements if isinstance(e, n.Query) and e.name in queries),
    )
    rest = replace(
        plan,
        aggregations={i: a for i, a in plan.aggregations.items() if i not in apart},
        elements=tuple(e for e in plan.elements if not isinstance(e, n.Query) or e.name not in queries),
    )
    return first, rest


def idle_plan(plan: n.Plan) -> n.Plan:
    """The plan of a node that does nothing of `plan`, but knows its streams."""
    streams = {s: replace(d, annotations=()) for s, d in plan.streams.items()}
    bare = replace(plan, tables={}, windows={}, triggers={}, functions={}, aggregations={}, elements=())
    return replace(bare, streams=streams)


def idle(plan: n.Plan) -> bool:
    """True if a node that runs `plan` does not use its events."""
    # Events sent to a published stream are outputs of the node.
    events = connected_streams(plan) | published_streams(plan)
    return not (plan.elements or plan.aggregations or plan.triggers or plan.windows or events)


def _queries(plan: n.Plan) -> frozenset[str]:
    """The greatest set of plain queries that only read inputs or one another, and that only one another read."""
    looping = {name for way in cycles(plan) for name in way}
    elements = (e for e in plan.elements if isinstance(e, n.Query) and e.name not in looping)
    candidates = {q.name: q for q in elements if _plain_query(plan, q)}
    read_by_aggregations = {a.input.source.id for a in plan.aggregations.values()}
    shared_streams = read_by_aggregations | connected_streams(plan)
    shared_streams |= {k.stream for e in plan.elements if isinstance(e, n.Partition) for k in e.keys}
    flow = Dataflow(plan)
    others = {name: _others(q, flow) for name, q in candidates.items()}
    depending: dict[str, list[str]] = {}
    for name, names in others.items():
        for other in names:
            depending.setdefault(other, []).append(name)
    todo = [
        name
        for name, q in candidates.items()
        if q.output.target.id in shared_streams or not others[name] <= candidates.keys()
    ]
    while todo:
        name = todo.pop()
        if candidates.pop(name, None) is not None:
            todo += depending.get(name, ())
    return frozenset(candidates)


def _others(q: n.Query, flow: Dataflow) -> set[str]:
    """The queries that read or write the target of a query, or write its input."""
    target = q.output.target.id
    other_queries = (*flow.readers(target), *flow.writers(target), *flow.writers(sources(q)[0].id))
    return {o.name for o in other_queries}


def _plain_query(plan: n.Plan, q: n.Query) -> bool:
    i, select = q.input, q.select
    if not isinstance(i, n.StreamInput) or i.source.kind != "stream" or not _plain_input(plan, i):
        return False
    if select.group_by or select.order_by or select.limit is not None or select.offset is not None:
        return False
    if q.rate is not None or not all(_plain(e) for e in expressions(q)):
        return False
    return isinstance(q.output, n.Insert) and q.output.target.kind == "stream" and q.output.event_type != "expired"


def _plain_input(plan: n.Plan, i: n.StreamInput) -> bool:
    stream = plan.streams.get(i.source.id)
    if stream is None or stream.kind == "fault" or stream.on_error is not None or i.source.id in plan.triggers:
        return False
    return i.source.id not in _heard(plan) and all(isinstance(s, n.FilterStep) for s in i.steps)


def _plain_aggregation(plan: n.Plan, a: n.AggregationDef) -> bool:
    filters = [s.condition for s in a.input.steps if isinstance(s, n.FilterStep)]
    stored_arguments = [c.arg for c in a.base if c.arg is not None]
    by = [] if a.by is None else [a.by]
    return _plain_input(plan, a.input) and all(
        _plain(e) for e in (*filters, *stored_arguments, *a.select.group_by, *by)
    )


def _plain(e: n.Expr) -> bool:
    """True if `e` looks at one event (and the clock) only, and means the same each time."""
    plain_nodes = (n.Const, n.Ref, n.Arith, n.Compare, n.Logic, n.Not, n.IsNull)
    return all(isinstance(x, plain_nodes) or (isinstance(x, n.Call) and x.function not in _DRAWN) for x in n.walk(e))


def _heard(plan: n.Plan) -> set[str]:
    """Streams that take events from a topic inside the node."""
    return connected_streams(plan, ("source",), ("inMemory",))


def connected_streams(
    plan: n.Plan, names: tuple[str, ...] = ("source", "sink"), types: tuple[str, ...] = ("inMemory", "log")
) -> set[str]:
    """Streams with a connector of such names and types: by default a source or sink that works inside the node."""
    return {
        s
        for s, d in plan.streams.items()
        for a in d.annotations
        if a.name.lower() in names and connector_type(a, plan.properties) in types
    }
