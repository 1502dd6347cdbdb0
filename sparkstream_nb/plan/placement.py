"""Placement: what of a plan may run in Spark's Catalyst, and what of the input the node engine needs at all.

A plan does not change by it; it is data beside the plan, and running everything in the node engine is always right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..types import Type
from . import nodes as n
from .cycles import cycles
from .query_parts import expressions, inputs, sources

# Functions without state or failure, with the same meaning in Catalyst.
_CALLS = frozenset({"coalesce", "ifThenElse"})


@dataclass(frozen=True)
class Placement:
    """`queries`: stateless queries that may run in Catalyst, since only such (or nobody) read what they send.

    `aggregations`: incremental aggregations that no query reads and whose input nothing in the node changes.
    `rows`: per input stream the condition (slot 0) that a row must meet for the node to need its values, None for all;
    a row that does not meet it still moves the clock. `columns`: per input stream the attributes that the node needs.
    """

    queries: tuple[str, ...]
    aggregations: tuple[str, ...]
    rows: Mapping[str, n.Expr | None]
    columns: Mapping[str, tuple[str, ...]]


def place(plan: n.Plan) -> Placement:
    """The placement of `plan`."""
    outside = _catalyst_queries(plan)
    node = [q for q in plan.queries if q.name not in outside]
    read = {s.id for q in node for s in sources(q) if s.kind == "aggregation"}
    written = {q.output.target.id for q in plan.queries}
    aggregations = tuple(
        a.id
        for a in plan.aggregations.values()
        if a.id not in read and a.input.source.id not in written and _plain_aggregation(a)
    )
    rows: dict[str, n.Expr | None] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for id_, stream in plan.streams.items():
        if stream.kind != "defined":
            continue
        readers = [q for q in node if any(s.id == id_ for s in sources(q))]
        kept = [a for a in plan.aggregations.values() if a.input.source.id == id_ and a.id not in aggregations]
        rows[id_] = _rows(plan, id_, readers, kept)
        columns[id_] = _columns(plan, stream, readers, kept)
    return Placement(tuple(q.name for q in plan.queries if q.name in outside), aggregations, rows, columns)


# ---------------------------------------------------------------------------------------------- queries in Catalyst


def _catalyst_queries(plan: n.Plan) -> set[str]:
    """The greatest set of plain queries that only read inputs or one another, and that only one another read."""
    looping = {name for way in cycles(plan) for name in way}
    chosen = {e.name: e for e in plan.elements if isinstance(e, n.Query) and e.name not in looping and _plain_query(e)}
    read_by_aggregations = {a.input.source.id for a in plan.aggregations.values()}
    while True:
        dropped = []
        for q in chosen.values():
            target = q.output.target.id
            readers = [r for r in plan.queries if any(s.id == target for s in sources(r))]
            writers = [w for w in plan.queries if w.output.target.id in (target, sources(q)[0].id)]
            unread = target not in read_by_aggregations and not _keyed(plan, target)
            if not unread or any(o.name not in chosen for o in (*readers, *writers)):
                dropped.append(q.name)
        if not dropped:
            return set(chosen)
        for name in dropped:
            del chosen[name]


def _keyed(plan: n.Plan, stream: str) -> bool:
    return any(k.stream == stream for e in plan.elements if isinstance(e, n.Partition) for k in e.keys)


def _plain_query(q: n.Query) -> bool:
    i, select = q.input, q.select
    if not isinstance(i, n.StreamInput) or i.source.kind != "stream" or not _plain_steps(i):
        return False
    if i.source.id.startswith("!") or select.group_by or select.order_by or q.rate is not None:
        return False
    if select.limit is not None or select.offset is not None or not all(plain(item.expr) for item in select.items):
        return False
    if select.having is not None and not plain(select.having):
        return False
    return isinstance(q.output, n.Insert) and q.output.target.kind == "stream" and q.output.event_type != "expired"


def _plain_steps(i: n.StreamInput) -> bool:
    return all(isinstance(s, n.FilterStep) and plain(s.condition) for s in i.steps)


def _plain_aggregation(a: n.AggregationDef) -> bool:
    stored = [c.arg for c in a.base if c.arg is not None]
    return _plain_steps(a.input) and all(plain(e) for e in (*stored, *a.select.group_by))


def plain(e: n.Expr) -> bool:
    """Whether `e` looks at one event only, cannot fail, and means in Catalyst what it means in the node."""
    known = (n.Const, n.Ref, n.Arith, n.Compare, n.Logic, n.Not, n.IsNull)
    return all(isinstance(x, known) or (isinstance(x, n.Call) and x.function in _CALLS) for x in n.walk(e))


# --------------------------------------------------------------------------------------------------- rows and columns


def _rows(plan: n.Plan, id_: str, readers: list[n.Query], kept: list[n.AggregationDef]) -> n.Expr | None:
    """Any reader's leading filters; None as soon as one reader wants every row."""
    inner = {q.name for e in plan.elements if isinstance(e, n.Partition) for q in e.queries}
    wanted: list[n.Expr] = []
    for q in readers:
        if q.name in inner or not isinstance(q.input, n.StreamInput):
            return None
        condition = _leading(q.input)
        if condition is None:
            return None
        wanted.append(condition)
    for a in kept:
        condition = _leading(a.input)
        if condition is None:
            return None
        wanted.append(condition)
    if not wanted:
        return n.Const(Type.BOOL, False)
    out = wanted[0]
    for w in wanted[1:]:
        if w != out:
            out = n.Logic(Type.BOOL, "or", out, w)
    return out


def _leading(i: n.StreamInput) -> n.Expr | None:
    out: n.Expr | None = None
    for step in i.steps:
        if not isinstance(step, n.FilterStep) or not plain(step.condition):
            break
        out = step.condition if out is None else n.Logic(step.condition.type, "and", out, step.condition)
    return out


def _columns(
    plan: n.Plan, stream: n.StreamDef, readers: list[n.Query], kept: list[n.AggregationDef]
) -> tuple[str, ...]:
    """Attributes that readers name, in the stream's order; all where something takes the event as a whole."""
    names = stream.source.schema.names
    if stream.on_error in ("STREAM", "STORE") and (readers or kept):
        return names
    used: set[str] = set()
    for q in readers:
        slots = {k for k, s in enumerate(sources(q)) if s.id == stream.source.id}
        for k in slots:
            if any(isinstance(step, n.FunctionStep) and step.function == "log" for step in inputs(q.input)[k].steps):
                return names
        for top in expressions(q):
            used |= _named(top, slots)
    for a in kept:
        for top in _aggregation_expressions(a):
            used |= _named(top, {0})
    for e in plan.elements:
        if isinstance(e, n.Partition):
            for key in e.keys:
                if key.stream == stream.source.id:
                    tops = (key.expr,) if isinstance(key, n.ValueKey) else tuple(c for c, _ in key.ranges)
                    for top in tops:
                        used |= _named(top, {0})
    return tuple(name for name in names if name in used)


def _named(top: n.Expr, slots: set[int]) -> set[str]:
    return {e.name for e in n.walk(top) if isinstance(e, n.Ref) and e.slot in slots}


def _aggregation_expressions(a: n.AggregationDef) -> Iterator[n.Expr]:
    for step in a.input.steps:
        if isinstance(step, n.FilterStep):
            yield step.condition
        else:
            yield from step.args
    yield from (i.expr for i in a.select.items)
    yield from a.select.group_by
    if a.by is not None:
        yield a.by
