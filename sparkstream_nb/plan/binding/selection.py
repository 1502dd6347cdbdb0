"""The select clause: items, group by, having, order by, limit, offset (Siddhi's `SelectorParser`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import SiddhiBindError, Span, did_you_mean
from ...lang import tree
from ...types import Schema, Type
from ..nodes import OUTPUT, Agg, Const, Expr, OrderItem, OutputItem, Ref, Select, walk
from .expressions import bind_condition, bind_expression
from .scope import Bare, Scope, VisibleEvent


@dataclass(frozen=True)
class Selecting:
    """The context of a select: `scope` for items and group by; `output` is the id of the query's target.

    `several`: the query has several inputs, whose attributes `having` may name too.
    """

    scope: Scope
    output: str
    several: bool


def bind_selection(selection: tree.Selection, selecting: Selecting, span: Span) -> Select:
    """The select of a query or retrieval. `span` is the place for errors of `select *` without a place of their own."""
    items = _items(selection, selecting.scope, span)
    group_by = _group_by(selection, selecting.scope)
    schema = Schema.of(*((i.name, i.expr.type) for i in items))
    having = None
    if selection.having is not None:
        having = bind_condition(selection.having, _having_scope(selecting, schema), "'having'")
        if isinstance(having, Ref | Const):  # SelectorParser casts to ConditionExpressionExecutor
            raise SiddhiBindError(
                "'having' cannot be an attribute or a constant alone",
                selection.having.span,
                hint="Write a comparison, such as x == true.",
                kind="SiddhiAppCreationException",
            )
    unselected_keys: list[Expr] = []
    order_by = tuple(_order(o, schema, selecting, unselected_keys) for o in selection.order_by)
    limit, offset = _count("limit", selection.limit), _count("offset", selection.offset)
    return Select(items, group_by, having, order_by, limit, offset, tuple(unselected_keys))


def _items(selection: tree.Selection, scope: Scope, span: Span) -> tuple[OutputItem, ...]:
    if not selection.attributes:
        star = selection.span if selection.star else span
        return tuple(OutputItem(ref.name, ref) for ref in scope.all_attributes(star))
    seeing = replace(scope, aggregators=True, lists=True, place="the select")
    items: dict[str, OutputItem] = {}
    for a in selection.attributes:
        if a.name is not None:
            name = a.name
        elif isinstance(a.expression, tree.Variable):
            name = a.expression.name
        else:
            raise SiddhiBindError("an expression in a select needs a name", a.span, hint="Add 'as name'.")
        if name in items:
            raise SiddhiBindError(
                f"the select has two attributes '{name}'",
                a.span,
                hint="Rename one of them with 'as'.",
                kind="DuplicateAttributeException",
            )
        expr = bind_expression(a.expression, seeing)
        _no_nested_aggregates(expr)
        items[name] = OutputItem(name, expr)
    return tuple(items.values())


def _no_nested_aggregates(e: Expr) -> None:
    for agg in walk(e):
        if isinstance(agg, Agg):
            for inner in agg.args:
                for deep in walk(inner):
                    if isinstance(deep, Agg):
                        raise SiddhiBindError(
                            f"aggregator '{deep.function}' cannot be nested in aggregator '{agg.function}'", deep.span
                        )


def _group_by(selection: tree.Selection, scope: Scope) -> tuple[Expr, ...]:
    seeing = replace(scope, lists=True, place="group by")
    return tuple(seeing.variable(v) for v in selection.group_by)


def _having_scope(selecting: Selecting, schema: Schema) -> Scope:
    output = VisibleEvent(OUTPUT, selecting.output, schema, what="output")
    inputs = selecting.scope.entries if selecting.several else ()
    bare: Bare = "all" if selecting.several else "first"
    return replace(
        selecting.scope, entries=(output, *inputs), bare=bare, aggregators=True, place="having", own_slot=None
    )


def _order(o: tree.OrderBy, schema: Schema, selecting: Selecting, unselected_keys: list[Expr]) -> OrderItem:
    """An attribute of the output or, with several inputs, of one of them, which is added to `unselected_keys`."""
    v = o.attribute
    is_output = v.source is None or (not selecting.several and v.source.id == selecting.output)
    at = schema.find(v.name) if is_output else None
    if at is None and not selecting.several:
        hint = did_you_mean(v.name, schema.names) or f"Selected here: {', '.join(schema.names)}."
        raise SiddhiBindError(
            f"the query's output has no attribute '{v.name if is_output else f'{v.source}.{v.name}'}'",
            v.span,
            hint=f"'order by' can use selected attributes only. {hint}",
            kind="AttributeNotExistException"
            if is_output or v.name not in schema.names
            else "SiddhiAppCreationException",
        )
    if at is None:
        unselected_keys.append(replace(selecting.scope, bare="all", place="order by", own_slot=None).variable(v))
        at = len(schema) + len(unselected_keys) - 1
    return OrderItem(at, o.descending)


def _count(what: str, e: tree.Expression | None) -> int | None:
    if e is None:
        return None
    if not isinstance(e, tree.Constant) or e.type not in (Type.INT, Type.LONG):
        raise SiddhiBindError(
            f"'{what}' takes an int or long constant", e.span, kind="UnsupportedAttributeTypeException"
        )
    assert isinstance(e.value, int)
    if e.value < 0:
        raise SiddhiBindError(f"'{what}' cannot be negative, found {e.value}", e.span)
    return e.value
