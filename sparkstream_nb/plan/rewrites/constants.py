"""Constant folding, only if the result is exactly the engine's.

Left alone: floats (they round to 32 bits), division by zero (null, which has no literal), calls, and anything that
could turn a null into false or back.
"""

from __future__ import annotations

import math
import operator

from ...types import Type
from ..nodes import Arith, Compare, Const, Expr, Logic, Not, Plan
from .replace_parts import rebuild

_BITS = {Type.INT: 32, Type.LONG: 64}
_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def fold_constants(plan: Plan) -> Plan:
    """`plan` with operators over constants computed."""
    return rebuild(plan, lambda part: fold(part) if isinstance(part, Expr) else part)


def fold(e: Expr) -> Expr:
    """`e` computed if its operands are constants, else `e` itself. Operands are folded already."""
    match e:
        case Arith(left=Const() as left, right=Const() as right):
            value = _arithmetic(e, left.value, right.value)
            return e if value is None else Const(e.type, value, span=e.span)
        case Compare(left=Const() as left, right=Const() as right) if Type.FLOAT not in (left.type, right.type):
            pair = left.value, right.value
            if Type.DOUBLE in (left.type, right.type):  # a long is rounded to a double first
                pair = float(pair[0]), float(pair[1])
            return Const(Type.BOOL, _COMPARE[e.op](*pair), span=e.span)
        case Logic(left=Const() as left, right=Const() as right):
            both = (left.value and right.value) if e.op == "and" else (left.value or right.value)
            return Const(Type.BOOL, both, span=e.span)
        case Not(operand=Const() as operand):
            return Const(Type.BOOL, not operand.value, span=e.span)
    return e


def _arithmetic(e: Arith, left: object, right: object) -> int | float | None:
    if isinstance(left, str) or isinstance(right, str) or e.type is Type.FLOAT:
        return None
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if e.type is Type.DOUBLE:
        return _double(e.op, float(left), float(right))
    assert isinstance(left, int)
    assert isinstance(right, int)
    return _fold_integers(e.op, left, right, _BITS[e.type])


def _double(op: str, a: float, b: float) -> float | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b if b else None
    return math.fmod(a, b) if b and math.isfinite(a) else None


def _fold_integers(op: str, a: int, b: int, bits: int) -> int | None:
    """Java's int and long arithmetic: wraps around, and division truncates towards zero."""
    match op:
        case "+":
            value = a + b
        case "-":
            value = a - b
        case "*":
            value = a * b
        case _:
            if b == 0:
                return None
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            value = quotient if op == "/" else a - b * quotient
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half
