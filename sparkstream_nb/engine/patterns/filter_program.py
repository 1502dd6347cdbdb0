"""Splits a state's filters into parts for columns, an index, bytecode and Python callbacks.

A filter is a conjunction. A conjunct over the current event alone is evaluated as a column over the rows of its stream.
In any other conjunct, the largest parts over a single event become *derived columns*: they are evaluated over the rows
of that event's stream on arrival, and stored with it in the event log; the rest, which combines several events, is
bytecode (`check`). A function over several events cannot be compiled and stays an expression.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...plan import nodes as n
from ...types import Type
from ..columnar.column_data import Array, StringPool
from ..columnar.error_routing import may_fail
from ..expressions.java_arithmetic import common_type
from . import check as c
from .machine_layout import PatternLayout
from .machine_memory import LOGICAL, STREAM
from .partial_matches import AS_DOUBLE, AS_FLOAT, AS_WORD, CURRENT, FROM_FIRST, FROM_LAST, SINGLE

ARITHMETIC = {"+": c.ADD, "-": c.SUB, "*": c.MUL, "/": c.DIV, "%": c.MOD}
COMPARISON = {"==": c.EQ, "!=": c.NE, "<": c.LT, "<=": c.LE, ">": c.GT, ">=": c.GE}
MATH = {"math:abs": c.ABS, "math:ceil": c.CEIL, "math:floor": c.FLOOR, "math:sqrt": c.SQRT,
        "math:max": c.BIGGER, "math:min": c.SMALLER}  # fmt: skip
NUMERIC = {Type.INT: c.T_INT, Type.LONG: c.T_LONG, Type.FLOAT: c.T_FLOAT, Type.DOUBLE: c.T_DOUBLE}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class ValueOrigin:
    """The source of a part's values: (mode, processor, number), as `partial_matches.find_event` reads them."""

    mode: int
    processor: int
    number: int = 0


HERE = ValueOrigin(CURRENT, 0)
"""The current event, and values computed for it."""

PARTIAL = ValueOrigin(-1, 0)
"""The partial itself: its timestamp."""


class _NoPatternProgram(Exception):
    """The expression needs Python."""


@dataclass(slots=True)
class Derived:
    """A column of the event log: `expr` over the rows of stream `stream` (`processor` ≥ 0: with the attributes that
    its stream functions append)."""

    stream: int
    processor: int
    expr: n.Expr

    @property
    def real(self) -> int:
        return int(self.expr.type in (Type.FLOAT, Type.DOUBLE))


@dataclass(slots=True)
class Filters:
    """All filters of a pattern. `current[p]` and `slow[p]`: conjuncts; `codes`: programs, keys and bounds, found
    through `table`, the machine's table of processors; `constants`: words that programs load; `general`:
    whether a program does more than comparisons."""

    layout: PatternLayout
    table: Array
    strings: StringPool
    derived_columns: list[Derived] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    general: bool = False
    current: list[list[n.Expr]] = field(default_factory=list)
    slow: list[list[n.Expr]] = field(default_factory=list)

    def add(self, p: int, conditions: Sequence[n.Expr]) -> None:
        """Takes the filters of processor `p`. Processors are added in order."""
        current: list[n.Expr] = []
        slow: list[n.Expr] = []
        between: list[tuple[n.Expr, list[int]]] = []
        slow_last = not self.layout.processors[p].is_counted
        for e in (x for condition in conditions for x in conjuncts(condition)):
            if self.origins(e, p) <= {HERE} and not (between and may_fail(e)):
                current.append(e)
                continue
            mark = len(self.derived_columns)
            try:
                between.append((e, self._condition(e, p)))
                slow_last = slow_last and not slow
            except _NoPatternProgram:
                del self.derived_columns[mark:]
                slow.append(e)
        self.current.append(current)
        self.slow.append(slow)
        row = self.table[p]
        row["program"] = row["rest"] = self._code([code for _, code in between])
        row["slow"] = bool(slow)
        row["slow_last"] = slow_last
        row["inert"] = self._inert(p)
        if row["inert"] and not row["start"]:
            self._index(p, between, bool(slow))

    def _code(self, parts: Sequence[list[int]]) -> int:
        """Position of the program of these conditions; -1 for none."""
        if not parts:
            return -1
        at = len(self.codes)
        self.general = self.general or any(part[0] != c.ASSERT_COMPARE for part in parts)
        self.codes += [*(word for part in parts for word in part), c.END]
        return at

    def _inert(self, p: int) -> bool:
        """True if an event leaves those partials of a state as they are with which it does not pass the filter. An `or`
        and a counted state drop partials that continued elsewhere, which is visible if they would be taken up again on
        expiry.
        """
        x = self.layout.processors[p]
        if self.layout.sequence or x.is_or:
            return False
        return not x.is_counted or self.layout.input.within is None or x.within_every < 0

    @property
    def all_expressions(self) -> list[n.Expr]:
        """All expressions that are evaluated as columns."""
        return [e for x in (*self.current, *self.slow) for e in x] + [d.expr for d in self.derived_columns]

    # --------------------------------------------------------------------------------------------------- sources

    def origin(self, ref: n.Ref | n.EventRef, p: int) -> ValueOrigin:
        """The event that a reference in the filter of processor `p` refers to (Siddhi's
        `ExpressionParser.parseVariable`: in a state's own filter `[last]` is the event before the one at hand)."""
        q = self.layout.slots[ref.slot]
        is_own, index = q == p, ref.index
        nothing = ValueOrigin(SINGLE, len(self.layout.processors))
        if not self.layout.processors[q].is_counted:
            if index is not None and (index.offset > 0 or (is_own and index.from_last)):
                return nothing
            return HERE if is_own else ValueOrigin(SINGLE, q)
        if index is None:
            return HERE if is_own else ValueOrigin(FROM_LAST, q, 0)
        if index.from_last:
            return ValueOrigin(FROM_LAST, q, index.offset + is_own)
        return ValueOrigin(FROM_FIRST, q, index.offset)

    def origins(self, e: n.Expr, p: int) -> set[ValueOrigin]:
        """The sources of all parts of an expression; constants have none."""
        if isinstance(e, n.Ref | n.EventRef):
            return {self.origin(e, p)}
        out: set[ValueOrigin] = set()
        for x in n.children(e):
            out |= self.origins(x, p)
        if isinstance(e, n.Call) and e.function == "eventTimestamp" and not e.args:
            return {PARTIAL}
        if isinstance(e, n.InTable):
            out.add(HERE)  # a table's rows depend on the moment of the lookup
        elif isinstance(e, n.Call | n.ScriptCall) and not out:
            out.add(HERE)
        return out

    # -------------------------------------------------------------------------------------------------- programs

    def _derive(self, e: n.Expr, p: int, origin: ValueOrigin) -> int:
        """The log column of a part that has one origin."""
        q = p if origin == HERE else origin.processor
        if q == len(self.layout.processors):
            q = self.layout.slots[next(x.slot for x in _refs(e))]
        owner = q if _appends(self.layout, q) else -1
        plain = _without_slots(e)
        stream = self.layout.stream_of(q)
        for i, d in enumerate(self.derived_columns):
            if (d.stream, d.processor, d.expr) == (stream, owner, plain):
                return i
        self.derived_columns.append(Derived(stream, owner, plain))
        return len(self.derived_columns) - 1

    def _load(self, e: n.Expr, p: int) -> list[int] | None:
        """mode, processor, number, column, real: how to load a part with one origin; None if it has several or none."""
        origins = self.origins(e, p)
        if PARTIAL in origins or e.type is Type.OBJECT:
            raise _NoPatternProgram
        if len(origins) != 1:
            return None
        (origin,) = origins
        column = self._derive(e, p, origin)
        return [origin.mode, origin.processor, origin.number, column, self.derived_columns[column].real]

    def _condition(self, e: n.Expr, p: int) -> list[int]:
        """Code that ends unless `e` is true."""
        if isinstance(e, n.Compare):
            left, right = self._load(e.left, p), self._load(e.right, p)
            if left is not None and right is not None:
                return [c.ASSERT_COMPARE, COMPARISON[e.op], _kind(e), *left, *right]
        if isinstance(e, n.Logic) and e.op == "or":
            code = self._leaps(e, p)
            if code is not None:
                return code
        return [*self._push(e, p), c.ASSERT]

    def _leaps(self, e: n.Logic, p: int) -> list[int] | None:
        """Code for an `or` whose left operands are plain comparisons; None if they are not."""
        if not isinstance(e.left, n.Compare):
            return None
        left, right = self._load(e.left.left, p), self._load(e.left.right, p)
        if left is None or right is None:
            return None
        rest = self._condition(e.right, p)
        return [c.LEAP_COMPARE, COMPARISON[e.left.op], _kind(e.left), *left, *right, len(rest), *rest]

    def _push(self, e: n.Expr, p: int) -> list[int]:
        """Code that pushes the value of `e`."""
        if isinstance(e, n.Const):
            self.constants.append(self._word(e))
            return [c.CONST, len(self.constants) - 1]
        load = self._load(e, p)
        if load is not None:
            return [c.PUSH, *load[:4]]
        if isinstance(e, n.Arith | n.Compare):
            for side in (e.left, e.right):
                if side.type is Type.OBJECT:
                    raise _NoPatternProgram
            code = [*self._push(e.left, p), *self._push(e.right, p)]
            reals = [int(x.type in (Type.FLOAT, Type.DOUBLE)) for x in (e.left, e.right)]
            if isinstance(e, n.Compare):
                return [*code, c.COMPARE, COMPARISON[e.op], _kind(e), *reals]
            if e.type not in NUMERIC or not (e.left.type.numeric and e.right.type.numeric):
                raise _NoPatternProgram
            return [*code, c.ARITH, ARITHMETIC[e.op], NUMERIC[e.type], *reals]
        if isinstance(e, n.Logic):
            return [*self._push(e.left, p), *self._push(e.right, p), c.AND if e.op == "and" else c.OR]
        if isinstance(e, n.Not):
            return [*self._push(e.operand, p), c.NOT]
        if isinstance(e, n.IsNull):
            return [*self._push(e.operand, p), c.IS_NULL]
        if isinstance(e, n.Call):
            return self._call(e, p)
        raise _NoPatternProgram

    def _call(self, e: n.Call, p: int) -> list[int]:
        """Code for the functions that are often used to compare events."""
        if any(a.type is Type.OBJECT for a in e.args):
            raise _NoPatternProgram
        args = [word for a in e.args for word in self._push(a, p)]
        if e.function in MATH and e.type is Type.DOUBLE:
            reals = [int(a.type in (Type.FLOAT, Type.DOUBLE)) for a in e.args]
            return [*args, c.MATH, MATH[e.function], reals[0], reals[-1]]
        sure = [c.NOT, c.NOT] if e.type is Type.BOOL else []  # no function answers with a bool that is null
        if e.function == "ifThenElse":
            return [*args, c.CHOOSE, *sure]
        if e.function in ("coalesce", "default") and len(e.args) == 2:
            return [*args, c.COALESCE, *sure]
        raise _NoPatternProgram

    def _word(self, e: n.Const) -> int:
        if e.type is Type.STRING:
            return self.strings.code(str(e.value))
        if e.type in (Type.FLOAT, Type.DOUBLE):
            value = np.float32(e.value) if e.type is Type.FLOAT else e.value
            return int(np.float64(value).view(np.int64))
        return int(e.value)

    # ----------------------------------------------------------------------------------------------------- index

    def _index(self, p: int, conditions: Sequence[tuple[n.Expr, list[int]]], slow: bool) -> None:
        """Keys from `here == earlier`, and one bound from `here > earlier`, for the pending partials of `p`."""
        keys: list[int] = []
        bound: list[int] | None = None
        count = sign = 0
        rest = []
        for e, code in conditions:
            rest.append(code)
            if not isinstance(e, n.Compare):
                continue
            sides = self._sides(e, p)
            if sides is None:
                continue
            here, there, is_turned = sides
            if e.op == "==":
                keys += [_hash_expr(e), here[3], here[4], there[1], there[3], there[4]]
                count += 1
            elif e.op in TURNED and bound is None and not slow:
                op = TURNED[e.op] if is_turned else e.op
                sign = 1 if op in (">", ">=") else -1
                bound = [here[3], here[4], there[1], there[3], there[4]]
                if _kind(e) in (c.T_INT, c.T_DOUBLE):  # as doubles, which the index compares, they do not change
                    rest.pop()
                    self.table[p]["strict"] = op in (">", "<")
        if not count and bound is None:
            return
        row = self.table[p]
        row["rest"] = self._code(rest)
        row["keys"], row["key_count"] = len(self.codes), count
        self.codes += keys
        if bound is not None:
            row["bound"], row["bound_sign"] = len(self.codes), sign
            self.codes += bound

    def _sides(self, e: n.Compare, p: int) -> tuple[list[int], list[int], bool] | None:
        """Loads of the side for the current event and of the side of an earlier event, which no longer changes; and
        whether the earlier one is on the left.
        """
        if may_fail(e):
            return None  # an event fails with each partial for which a side cannot be computed
        for is_turned in (False, True):
            here, there = (e.right, e.left) if is_turned else (e.left, e.right)
            if self.origins(here, p) != {HERE}:
                continue
            origins = self.origins(there, p)
            if len(origins) != 1:
                return None
            (origin,) = origins
            n = len(self.layout.processors)
            if origin.mode != SINGLE or origin.processor == n:
                return None
            if self.layout.processors[origin.processor].kind not in (STREAM, LOGICAL):
                return None
            a, b = self._load(here, p), self._load(there, p)
            assert a is not None
            assert b is not None
            return a, b, is_turned
        return None


def conjuncts(e: n.Expr) -> list[n.Expr]:
    """The operands of a tree of `and`s."""
    if isinstance(e, n.Logic) and e.op == "and":
        return conjuncts(e.left) + conjuncts(e.right)
    return [e]


def _kind(e: n.Compare) -> int:
    if e.left.type.numeric and e.right.type.numeric:
        return NUMERIC[common_type(e.op, e.left.type, e.right.type)]
    if Type.OBJECT in (e.left.type, e.right.type):
        raise _NoPatternProgram
    return c.T_CODE


def _hash_expr(e: n.Compare) -> int:
    types = {e.left.type, e.right.type}
    if Type.FLOAT in types:
        return AS_FLOAT
    return AS_DOUBLE if Type.DOUBLE in types else AS_WORD


def _refs(e: n.Expr) -> list[n.Ref | n.EventRef]:
    out: list[n.Ref | n.EventRef] = [e] if isinstance(e, n.Ref | n.EventRef) else []
    for x in n.children(e):
        out += _refs(x)
    return out


def _appends(layout: PatternLayout, p: int) -> bool:
    """True if stream functions of processor `p` append attributes to its events."""
    state = layout.processors[p].state.input
    return len(state.schema) > len(state.source.schema)


def _without_slots(e: n.Expr) -> n.Expr:
    """The expression with all references to slot 0, without index: over the rows of one stream."""
    if isinstance(e, n.Ref):
        return n.Ref(e.type, 0, e.attr, "")
    if isinstance(e, n.EventRef):
        return n.EventRef(e.type, 0)
    changes: dict[str, Any] = {}
    for f in dataclasses.fields(e):
        v = getattr(e, f.name)
        if isinstance(v, n.Expr):
            changes[f.name] = _without_slots(v)
        elif isinstance(v, tuple) and any(isinstance(x, n.Expr) for x in v):
            changes[f.name] = tuple(_without_slots(x) if isinstance(x, n.Expr) else x for x in v)
    return dataclasses.replace(e, **changes) if changes else e
