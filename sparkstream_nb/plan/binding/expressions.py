"""Expressions: names, types, promotions (Siddhi's `ExpressionParser`)."""

from __future__ import annotations

from typing import Literal

from ...errors import SiddhiBindError, Span
from ...lang import tree
from ...types import Type, promote
from ..functions import AGGREGATORS, SCALARS, resolve, unknown
from ..nodes import Agg, Arith, Call, Compare, Const, Expr, InTable, IsNull, Logic, Not, ScriptCall
from .scope import Scope

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)
_ORDER = {"<": "less than", "<=": "less than", ">": "greater than", ">=": "greater than"}


def bind_expression(e: tree.Expression, scope: Scope) -> Expr:
    """`e` with names resolved and types found. Raises SiddhiBindError at the part that is wrong."""
    match e:
        case tree.Constant():
            return _constant(e)
        case tree.TimeConstant():
            return Const(Type.LONG, e.millis, span=e.span)
        case tree.Variable():
            return scope.variable(e)
        case tree.StreamReference():
            return scope.event(e.source, e.index, e.span)
        case tree.FunctionCall():
            return _call(e, scope)
        case tree.Arithmetic():
            return _arithmetic(e, scope)
        case tree.Comparison():
            return _comparison(e, scope)
        case tree.And():
            return _logic("and", e.left, e.right, e.span, scope)
        case tree.Or():
            return _logic("or", e.left, e.right, e.span, scope)
        case tree.Not():
            return Not(Type.BOOL, bind_condition(e.operand, scope, "'not'"), span=e.span)
        case tree.IsNull():
            return IsNull(Type.BOOL, _null_operand(e.operand, scope), span=e.span)
        case tree.In():
            return _in(e, scope)
    raise TypeError(type(e))


def bind_condition(e: tree.Expression, scope: Scope, what: str) -> Expr:
    """`e`, which must be BOOL; `what` names its context in the message."""
    bound = bind_expression(e, scope)
    if bound.type is not Type.BOOL:
        raise SiddhiBindError(f"{what} needs a bool, found {bound.type}", e.span)
    return bound


def _constant(e: tree.Constant) -> Const:
    bounds = {Type.INT: _INT, Type.LONG: _LONG}.get(e.type)
    if bounds is not None and e.value not in bounds:
        hint = "Write it as a long, with L at the end." if e.type is Type.INT and e.value in _LONG else None
        raise SiddhiBindError(
            f"{e.value} is too big for type {e.type}", e.span, hint=hint, kind="NumberFormatException"
        )
    return Const(e.type, e.value, span=e.span)


def _null_operand(e: tree.Expression, scope: Scope) -> Expr:
    if isinstance(e, tree.Variable) and e.source is None:
        return scope.event(tree.SourceName(e.name, span=e.span), e.index, e.span)
    return bind_expression(e, scope)


def _arithmetic(e: tree.Arithmetic, scope: Scope) -> Expr:
    left, right = bind_expression(e.left, scope), bind_expression(e.right, scope)
    left, right = _of_object(left, right), _of_object(right, left)
    type_ = promote(left.type, right.type)
    if type_ is None:
        culprit = e.span if left.type.numeric == right.type.numeric else (e.right if left.type.numeric else e.left).span
        hint = "Join texts with str:concat(a, b)." if e.op == "+" and Type.STRING in (left.type, right.type) else None
        raise SiddhiBindError(f"'{e.op}' needs numbers, found {left.type} and {right.type}", culprit, hint=hint)
    return Arith(type_, e.op, left, right, span=e.span)


def _of_object(e: Expr, other: Expr) -> Expr:
    """Siddhi computes with an object that turns out to be a number of the other side's type; others fail as a cast."""
    if e.type is not Type.OBJECT or not other.type.numeric:
        return e
    return Call(other.type, "sameType", (e,), span=e.span)


def _comparison(e: tree.Comparison, scope: Scope) -> Expr:
    left, right = bind_expression(e.left, scope), bind_expression(e.right, scope)
    both_numbers = left.type.numeric and right.type.numeric
    if e.op in ("==", "!="):
        same = left.type is right.type and left.type in (Type.STRING, Type.BOOL)
        if not (both_numbers or same):
            hint = None
            if Type.OBJECT in (left.type, right.type):
                hint = "An object can be cast first: cast(x, 'string')."
            elif Type.STRING in (left.type, right.type):
                hint = "Put a string in quotes, and a number not; convert(x, 'type') changes the type."
            raise SiddhiBindError(f"cannot compare {left.type} with {right.type}", e.span, hint=hint)
    elif not both_numbers:
        raise SiddhiBindError(
            f"'{e.op}' compares numbers only, found {left.type} and {right.type}",
            e.span,
            hint="Compare strings with str:strcmp(a, b)." if left.type is right.type is Type.STRING else None,
        )
    return Compare(Type.BOOL, e.op, left, right, span=e.span)


def _logic(op: Literal["and", "or"], left: tree.Expression, right: tree.Expression, span: Span, scope: Scope) -> Expr:
    bound = bind_condition(left, scope, f"'{op}'"), bind_condition(right, scope, f"'{op}'")
    return Logic(Type.BOOL, op, *bound, span=span)


def _in(e: tree.In, scope: Scope) -> Expr:
    table = scope.symbols.tables.get(e.table)
    if table is None:
        from_other = scope.symbols.find(e.table)
        what = f"'{e.table}' is a {from_other.kind}, not a table" if from_other else f"no table '{e.table}' is defined"
        raise SiddhiBindError(what, e.span)
    if not scope.tables:
        raise SiddhiBindError(
            "a table cannot be looked up in a pattern's filter",
            e.span,
            hint="Look it up in a query before the pattern, and let the pattern read that query's output.",
        )
    condition = bind_condition(e.operand, scope.with_table(e.table, table.source.schema), "'in'")
    return InTable(Type.BOOL, condition, e.table, span=e.span)


def _call(e: tree.FunctionCall, scope: Scope) -> Expr:
    key = str(e)
    script = scope.symbols.functions.get(key)
    if script is not None:
        return ScriptCall(script.returns, key, bind_arguments(e, scope), span=e.span)
    if key in SCALARS:
        args = bind_arguments(e, scope)
        result = resolve(SCALARS[key], args, e.span, "function")
        scope.symbols.note_use(SCALARS.use_of(key))
        assert result is not None
        return Call(result, key, args, span=e.span)
    if key in AGGREGATORS:
        if not scope.aggregators:
            raise SiddhiBindError(
                f"aggregator '{key}' cannot stand in {scope.place}",
                e.span,
                hint="Aggregate in the select, and filter on it with having.",
            )
        args = bind_arguments(e, scope)
        if e.star and key == "count" and len(args) != 1:  # of one attribute it is count(attribute), as in Siddhi
            raise SiddhiBindError("count(*) passes every attribute, and count takes one", e.span, hint="Write count().")
        result = resolve(AGGREGATORS[key], args, e.span, "aggregator")
        scope.symbols.note_use(AGGREGATORS.use_of(key))
        assert result is not None
        return Agg(result, key, args, span=e.span)
    raise unknown("function", key, e.span, scope.symbols.functions)


def bind_arguments(e: tree.FunctionCall, scope: Scope) -> tuple[Expr, ...]:
    """The arguments of a call; `f(*)` passes every attribute in sight."""
    if e.star:
        return tuple(scope.all_attributes(e.span))
    return tuple(bind_expression(a, scope) for a in e.args)
