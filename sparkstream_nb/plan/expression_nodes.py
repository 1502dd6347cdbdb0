"""Typed expressions of a plan.

Slots. Expressions name their inputs by slot number, local to the query:

- a query over one stream, window or trigger: slot 0;
- a join: slot 0 is the left side, slot 1 the right;
- a pattern or sequence: one slot per state, in the order of the text;
- `OUTPUT`: the query's own output row (`having`, `order by`);
- `TABLE`: the row of the table (or store) that a condition, `set` or `in` looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal

from ..errors import NOWHERE, Span
from ..lang import tree
from ..types import Type

OUTPUT = -1
TABLE = -2


@dataclass(frozen=True)
class Expr:
    """A typed expression. `span` is the place in the app's text, for errors at any later stage."""

    type: Type
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Const(Expr):
    """A literal; time constants are LONG milliseconds."""

    value: int | float | bool | str


@dataclass(frozen=True)
class Ref(Expr):
    """Attribute number `attr` of the event in `slot`.

    For a counted pattern state `index` picks one of its events; without index such a reference is the list of
    all of them (type OBJECT) in `select`, and the state's current event inside the state's own filter.
    """

    slot: int
    attr: int
    name: str
    index: tree.EventIndex | None = None


@dataclass(frozen=True)
class EventRef(Expr):
    """A whole event, only as operand of `IsNull` (type OBJECT)."""

    slot: int
    index: tree.EventIndex | None = None


@dataclass(frozen=True)
class Arith(Expr):
    """`type` is the promoted type in which both sides are computed."""

    op: Literal["+", "-", "*", "/", "%"]
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Compare(Expr):
    op: Literal["==", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Logic(Expr):
    op: Literal["and", "or"]
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Not(Expr):
    operand: Expr


@dataclass(frozen=True)
class IsNull(Expr):
    operand: Expr


@dataclass(frozen=True)
class InTable(Expr):
    """`condition in T`: whether any row of the table satisfies `condition` (which sees TABLE and the query's slots)."""

    condition: Expr
    table: str


@dataclass(frozen=True)
class Call(Expr):
    """A scalar function: `function` is its key in `plan.functions`, such as `str:concat` or `ifThenElse`."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class ScriptCall(Expr):
    """A function defined in the app by `define function`."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Agg(Expr):
    """An aggregator, such as `sum`; `function` is its key in `plan.functions.AGGREGATORS`. No args for `count()`."""

    function: str
    args: tuple[Expr, ...]


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions of `e`, in order."""
    out: list[Expr] = []
    for f in fields(e):
        v = getattr(e, f.name)
        if isinstance(v, Expr):
            out.append(v)
        elif isinstance(v, tuple):
            out.extend(x for x in v if isinstance(x, Expr))
    return tuple(out)


def walk(e: Expr) -> Iterator[Expr]:
    """`e` and all below it, parents first."""
    yield e
    for c in children(e):
        yield from walk(c)
