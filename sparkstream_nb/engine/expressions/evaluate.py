"""Compiles plan expressions to functions over columns.

`compile_expr` walks the tree once; the result runs numpy operations only. The semantics follow Siddhi's
`ExpressionParser` and its executors: an operator computes in the type that the plan gives it, arithmetic propagates
nulls, a comparison with null is false (`!=`: true), `and` and `or` take null for false and skip their right side if the
left decides, `not` of null is true, and a function of type bool answers false for null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...plan import nodes as n
from ...types import Type
from ..columnar.column_data import DTYPES, Column, Mask
from .env import Context, Env, Evaluator
from .function_checks import within
from .functions import FUNCTIONS
from .java_arithmetic import COMPARISON, as_type, common_type, compute, either, is_constant_column
from .java_values import RowFailure
from .rowwise import apply


def compile_expr(expr: n.Expr, context: Context | None = None) -> Evaluator:
    """An evaluator of `expr`: called with an `Env`, it returns a column of `expr.type` with `env.n` rows.

    Rows whose evaluation fails are marked with `env.fail` and are null in the result. Raises NotImplementedError for a
    function without an implementation, which is a bug.
    """
    inner = _build(expr, context or Context())

    def evaluate(env: Env) -> Column:
        with np.errstate(all="ignore"):
            column = inner(env)
        if is_constant_column(column) and len(column) != 1:  # callers may hand the array on to compiled code
            return Column(column.type, column.values.copy(), column.null)
        return column

    return evaluate


def compile_condition(expr: n.Expr, context: Context | None = None) -> Callable[[Env], Mask]:
    """`compile_expr` for a condition: rows that are true and did not fail; null is false."""
    evaluate = compile_expr(expr, context)

    def condition(env: Env) -> Mask:
        mask = evaluate(env).values
        return mask if env.failed_rows is None else mask & ~env.failed_rows

    return condition


def _build(expr: n.Expr, context: Context) -> Evaluator:
    return _BUILDERS[type(expr)](expr, context)


def _build_as(expr: n.Expr, target: Type, context: Context) -> Evaluator:
    """`expr` as numbers of type `target`, converted at compile time if it is a constant.

    An object counts as the number it holds, as Siddhi's executors cast to `java.lang.Number` when they run.
    """
    if isinstance(expr, n.Const):
        # One rounding, from the literal's own type, as in Java.
        scalar = DTYPES[expr.type].type(expr.value).astype(DTYPES[target])
        return lambda env: Column(target, np.broadcast_to(scalar, env.n))
    inner = _build(expr, context)
    if expr.type is target:
        return inner
    if not expr.type.numeric:
        return lambda env: apply(_number, [inner(env)], target, env)

    def convert(env: Env) -> Column:
        column = inner(env)
        return Column(target, as_type(column.values, target), column.null)

    return convert


def _number(value: Any) -> Any:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise RowFailure(f"{value!r} is not a number")


def _const(e: n.Const, context: Context) -> Evaluator:
    if e.type is Type.STRING:
        text = str(e.value)
        return lambda env: Column(Type.STRING, np.broadcast_to(np.int32(env.strings.code(text)), env.n))
    scalar = DTYPES[e.type].type(e.value)
    return lambda env: Column(e.type, np.broadcast_to(scalar, env.n))


def _ref(e: n.Ref, context: Context) -> Evaluator:
    return lambda env: env.resolve(e)


def _arith(e: n.Arith, context: Context) -> Evaluator:
    left, right = _build_as(e.left, e.type, context), _build_as(e.right, e.type, context)
    op, kind = e.op, e.type

    def run(env: Env) -> Column:
        a, b = left(env), right(env)
        return Column(kind, *compute(op, a.values, b.values, either(a.null, b.null)))

    return run


def _compare(e: n.Compare, context: Context) -> Evaluator:
    kernel, unequal = COMPARISON[e.op], e.op == "!="
    if e.left.type.numeric and e.right.type.numeric:
        kind = common_type(e.op, e.left.type, e.right.type)
        left, right = _build_as(e.left, kind, context), _build_as(e.right, kind, context)
    else:
        left, right = _build(e.left, context), _build(e.right, context)

    def run(env: Env) -> Column:
        a, b = left(env), right(env)
        mask = kernel(a.values, b.values)
        null = either(a.null, b.null)
        if null is not None:
            mask = mask | null if unequal else mask & ~null
        return Column(Type.BOOL, mask)

    return run


def may_fail(expr: n.Expr) -> bool:
    """True if `expr` must not be evaluated for rows that do not need it: it might fail, or is expensive."""
    return any(isinstance(x, n.Call | n.ScriptCall | n.InTable) for x in n.walk(expr)) or any(
        isinstance(x, n.Arith) and not (x.left.type.numeric and x.right.type.numeric) for x in n.walk(expr)
    )


def _logic(e: n.Logic, context: Context) -> Evaluator:
    left, right = _build(e.left, context), _build(e.right, context)
    conjunction, right_may_fail = e.op == "and", may_fail(e.right)

    def run(env: Env) -> Column:
        a = left(env).values
        if conjunction:
            if not a.any():
                return Column(Type.BOOL, a)
        elif a.all():
            return Column(Type.BOOL, a)
        outer_active = env.narrow(a if conjunction else ~a) if right_may_fail else None
        try:
            b = right(env).values
        finally:
            if right_may_fail:
                env.active = outer_active
        return Column(Type.BOOL, a & b if conjunction else a | b)

    return run


def _not(e: n.Not, context: Context) -> Evaluator:
    inner = _build(e.operand, context)
    return lambda env: Column(Type.BOOL, ~inner(env).values)


def _is_null(e: n.IsNull, context: Context) -> Evaluator:
    inner = _build(e.operand, context)
    return lambda env: Column(Type.BOOL, inner(env).nulls())


def _event(e: n.EventRef, context: Context) -> Evaluator:
    return lambda env: env.resolve(e)


def _in_table(e: n.InTable, context: Context) -> Evaluator:
    def run(env: Env) -> Column:
        if env.tables is None:
            raise LookupError(f"no tables here, and the expression asks for '{e.table}'")
        return Column(Type.BOOL, env.tables(e.table, e.condition, env))

    return run


def _agg(e: n.Agg, context: Context) -> Evaluator:
    return lambda env: env.aggs[e]


def _never_null(type: Type, inner: Evaluator) -> Evaluator:
    """Siddhi wraps a function of type bool in `BoolConditionExpressionExecutor`: null is false."""
    if type is not Type.BOOL:
        return inner
    return lambda env: Column(Type.BOOL, inner(env).values)


def _call(e: n.Call, context: Context) -> Evaluator:
    builder = FUNCTIONS.get(e.function)
    if builder is None:
        raise NotImplementedError(
            f"function '{e.function}' has a signature and no implementation in engine/expressions/functions/"
        )
    return _never_null(e.type, builder(e, [_build(a, context) for a in e.args], context))


def _script(e: n.ScriptCall, context: Context) -> Evaluator:
    args = [_build(a, context) for a in e.args]
    script = context.scripts.get(e.function)
    if script is None:
        raise NotImplementedError(f"function '{e.function}' is defined in the app and has no interpreter")

    def row(*values: Any) -> Any:
        try:
            return script(list(values))
        except Exception as error:  # a user's script may raise anything
            raise RowFailure(f"{e.function}: {error}") from error

    bounded_row = within(context.limits, row)
    return _never_null(e.type, lambda env: apply(bounded_row, [a(env) for a in args], e.type, env))


_BUILDERS: Mapping[type[n.Expr], Callable[[Any, Context], Evaluator]] = {
    n.Const: _const,
    n.Ref: _ref,
    n.Arith: _arith,
    n.Compare: _compare,
    n.Logic: _logic,
    n.Not: _not,
    n.IsNull: _is_null,
    n.EventRef: _event,
    n.InTable: _in_table,
    n.Call: _call,
    n.ScriptCall: _script,
    n.Agg: _agg,
}
