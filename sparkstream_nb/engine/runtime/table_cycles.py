"""Cycles through tables: finds queries that read a table which they write, such as
`from S[not (T.k == k in T)] select k insert into T`, and can still run on whole batches.

Such a query reads its own writes for earlier events. Two passes suffice if the table is only inserted into and each
query looks up the values of some attributes, the key, that it then inserts: a key is inserted once and stays. A first
pass without the inserts of the batch finds every key's first insert; a second pass runs with those inserts.

Queries that update the row that they look up by a key, such as a counter that a join reads and an update writes, are
iterated to a fixpoint: every pass is correct for one more event of each key, and a pass that repeats the result of the
one before is correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...plan import nodes
from ...plan.nodes import TABLE, Expr, InTable, Ref
from ...plan.query_parts import expressions, sources
from ...types import Type
from ..columnar.error_routing import may_fail
from ..tables.table_log import inserted_places, key_equalities

Values = Sequence[Expr | None]
"""By attribute, the expression of a query's input that an event supplies; None: something else."""


def two_pass_tables(plan: nodes.Plan) -> frozenset[str]:
    """The tables for which two passes suffice, for any cycles through them and no other table."""
    return frozenset(t for t, d in plan.tables.items() if not d.is_stored and _settles(plan, t))


def repeatable(query: nodes.Query) -> bool:
    """True if a query is stateless and can process the same events twice: filters, table lookups and a plain select."""
    source, select = query.input, query.select
    if isinstance(source, nodes.JoinInput):
        sides = [x for x in (source.left, source.right) if x.source.kind != "table"]
    else:
        sides = [source] if isinstance(source, nodes.StreamInput) else []
    if len(sides) != 1 or sides[0].source.kind != "stream" or query.rate is not None:
        return False
    if not all(isinstance(s, nodes.FilterStep) for s in sides[0].steps) or query.output.event_type != "current":
        return False
    if select.aggregates or select.group_by or select.having or select.order_by or select.limit or select.offset:
        return False
    exprs = [e for x in expressions(query) for e in nodes.walk(x)]
    return not any(isinstance(e, nodes.Agg) or (not isinstance(e, InTable) and _alone_fails(e)) for e in exprs)


def _alone_fails(e: Expr) -> bool:
    """True if a call may fail or answer otherwise the next time, for any arguments."""
    return isinstance(e, nodes.Call | nodes.ScriptCall) and (may_fail(e) or getattr(e, "function", "") == "UUID")


def _settles(plan: nodes.Plan, table: str) -> bool:
    writers = [q for q in plan.queries if q.output.target.kind == "table" and q.output.target.id == table]
    if not all(isinstance(q.output, nodes.Insert) for q in writers):
        return False
    alone = [q for q in plan.elements if isinstance(q, nodes.Query)]  # not inside a partition
    keys = set[tuple[int, ...]]()
    for q in plan.queries:
        lookups = [e for x in expressions(q) for e in nodes.walk(x) if isinstance(e, InTable)]
        conditions = [e.condition for e in lookups if e.table == table]
        looks = isinstance(q.input, nodes.JoinInput) and table in (q.input.left.source.id, q.input.right.source.id)
        if not (conditions or looks) or not _leads(plan, q, table, set()):
            continue
        if looks or q not in alone:
            return False
        keys |= {_asked_and_inserted(plan, q, condition, table) for condition in conditions}
    return len(keys) < 2 and () not in keys


def _leads(plan: nodes.Plan, query: nodes.Query, table: str, seen: set[str]) -> bool:
    """True if the output of a query may reach a table."""
    target = query.output.target
    if target.kind == "table" or target.id in seen:
        return target.kind == "table" and target.id == table
    seen.add(target.id)
    readers = [q for q in plan.queries if any(s.id == target.id for s in sources(q))]
    return any(_leads(plan, q, table, seen) for q in readers)


def _asked_and_inserted(plan: nodes.Plan, query: nodes.Query, condition: Expr, table: str) -> tuple[int, ...]:
    """The attributes of the table that the condition asks to equal the values that then come into the table; none if
    it asks for anything else."""
    equal = key_equalities(condition, TABLE)
    definition = plan.tables[table]
    if not equal or (definition.primary_key and set(equal) != set(definition.primary_key)):
        return ()
    if any(e.type in (Type.OBJECT, Type.FLOAT, Type.DOUBLE) or not isinstance(e, Ref) for e in equal.values()):
        return ()
    assert isinstance(query.input, nodes.StreamInput)
    schema = query.input.schema
    refs = [Ref(t, 0, a, n) for a, (n, t) in enumerate(zip(schema.names, schema.types, strict=True))]
    for values in _inserted_values(plan, query, refs, table, ()):
        if values is None or any(values[a] != e for a, e in equal.items()):
            return ()
    return tuple(sorted(equal))


def _inserted_values(
    plan: nodes.Plan, query: nodes.Query, event_values: Values, table: str, seen: tuple[str, ...]
) -> Iterator[Values | None]:
    """By attribute of the table, the value that an event with `event_values` inserts through the query, for each path
    there; None for a path on which it cannot be determined.
    """
    if not repeatable(query):
        yield None
        return
    items = [
        event_values[i.expr.attr] if isinstance(i.expr, Ref) and i.expr.slot == 0 else None for i in query.select.items
    ]
    target = query.output.target
    if target.kind == "table":
        if target.id == table:
            yield [items[p] for p in inserted_places(plan.tables[table].source.schema.names, query.select.schema.names)]
        return
    if target.id in seen:
        yield None
        return
    for q in plan.queries:
        if any(s.id == target.id for s in sources(q)) and _leads(plan, q, table, set()):
            yield from _inserted_values(plan, q, items, table, (*seen, target.id))
