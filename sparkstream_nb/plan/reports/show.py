"""Prints expressions of a plan, for `explain` and messages."""

from __future__ import annotations

from collections.abc import Mapping

from ...lang import tree
from ...types import Type
from .. import nodes as n

_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "==": 4,
    "!=": 4,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "%": 7,
}


def show(e: n.Expr, names: Mapping[int, str] | None = None) -> str:
    """`e` in SiddhiQL's own notation; `names` gives the name of each slot, where attributes need it."""
    return _show(e, names or {}, 0)


def _show(e: n.Expr, names: Mapping[int, str], outer_rank: int) -> str:
    match e:
        case n.Const():
            return _constant(e)
        case n.Ref():
            name = names.get(e.slot)
            return f"{name}{_index(e.index)}.{e.name}" if name else e.name
        case n.EventRef():
            return f"{names.get(e.slot, 'event')}{_index(e.index)}"
        case n.Arith() | n.Compare() | n.Logic():
            mine = _PRECEDENCE[e.op]
            text = f"{_show(e.left, names, mine)} {e.op} {_show(e.right, names, mine + 1)}"
            return f"({text})" if mine < outer_rank else text
        case n.Not():
            return f"not({_show(e.operand, names, 0)})"
        case n.IsNull():
            return f"{_show(e.operand, names, 9)} is null"
        case n.InTable():
            return f"({_show(e.condition, {**names, n.TABLE: e.table}, 0)}) in {e.table}"
        case n.Call() | n.ScriptCall() | n.Agg():
            return f"{e.function}({', '.join(_show(a, names, 0) for a in e.args)})"
    raise TypeError(type(e))


def _constant(e: n.Const) -> str:
    if isinstance(e.value, str):
        return f"'{e.value}'"
    if isinstance(e.value, bool):
        return str(e.value).lower()
    suffix = {Type.LONG: "L", Type.FLOAT: "f"}.get(e.type, "")
    return f"{e.value}{suffix}"


def _index(index: tree.EventIndex | None) -> str:
    if index is None:
        return ""
    if index.from_last:
        return f"[last-{index.offset}]" if index.offset else "[last]"
    return f"[{index.offset}]"
