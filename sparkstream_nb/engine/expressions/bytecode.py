"""Compiles expressions to bytecode for a stack machine, which compiled loops interpret.

The rules are the same as in `expressions.evaluate`: an operator computes in the type that the plan gives it, nulls go
through arithmetic, a comparison with null is false (`!=`: true), `and` and `or` skip their right side if the left
decides. As in Siddhi, an aggregator takes an event when it is evaluated; a skipped one does not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...plan.nodes import Agg, Arith, Call, Compare, Const, Expr, IsNull, Logic, Not, walk
from ...types import Type
from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET
from ..notation.kernels import inlined, kernel
from .functions.core import LARGEST, SMALLEST
from .java_arithmetic import common_type, long_minus

(
    END, LOAD, TIME, CONST, TO_REAL, TO_FLOAT, NOT, IS_NULL, ELSE, ARITH, COMPARE, AGGREGATE, CHOOSE, COALESCE, EXTREME,
) = range(15)  # fmt: skip
"""Codes: LOAD slot column; TIME slot; CONST number; TO_REAL and TO_FLOAT turn the top of the stack into a double and a
float; ELSE decided n: a left side that is `decided` skips the n codes of the right one; ARITH and COMPARE
operator type; AGGREGATE function number real; CHOOSE the second of three values where the first is true, else the
third; COALESCE two; EXTREME largest n type: of n doubles."""

EVENT, FIRST, LAST, OWN = 0, 1, 2, 3
"""Slots of a condition: the event that comes or goes, the oldest and the newest; and the first of them again, for
`eventTimestamp()`, which is the time at which it came."""

ADD, SUB, MUL, DIV, MOD = range(5)
EQ, NE, LT, LE, GT, GE = range(6)
WORD, INT, REAL, FLOAT = range(4)
"""The type that an operator works in."""

COUNT, SUM, AVG, MIN, MAX = range(5)

_ARITH = {"+": ADD, "-": SUB, "*": MUL, "/": DIV, "%": MOD}
_COMPARE = {"==": EQ, "!=": NE, "<": LT, "<=": LE, ">": GT, ">=": GE}
_TYPES = {Type.INT: INT, Type.LONG: WORD, Type.FLOAT: FLOAT, Type.DOUBLE: REAL}
REALS = (Type.FLOAT, Type.DOUBLE)
TRUE, FALSE, FAILED = 1, 0, 2
"""Results of a condition. Only a condition that is evaluated in Python (`expression.Condition`) may fail."""


@kernel
def _divide_longs(a: int, b: int) -> int:
    """Quotient toward zero; b is not 0."""
    if b == -1:
        return -a
    q = a // b
    if q < 0 and q * b != a:
        q += 1
    return q


@inlined
def interpret(
    kind: int, now: int, event: int, first: int, last: int, ts: Array, codes: Array, words: Array, reals: Array,
    nulls: Array, known: Array, known_real: Array, stack: Array, real: Array, null: Array, total: Array,
    total_real: Array, count: Array, queue: Array, queue_real: Array, ends: Array,
) -> int:  # fmt: skip
    """Runs a program for `event` (a position), which is added (CURRENT), removed (EXPIRED) or resets the state (RESET).
    Returns whether the condition is true. `real`, `reals` and so on are the bits of `stack`, `words` and so on as
    doubles. The value, of any type, is left at the bottom: in `stack[0]`, and in `null[0]` whether it is null.

    `count[0]` is the number of values of each aggregator, `count[1]` whether it was evaluated since its reset: one that
    was not returns null for a RESET (`SingleStateHolder.cleanGroupByStates`).
    """
    q = 0
    s = -1
    op = codes[0]
    while op != END:
        if op == LOAD:
            s += 1
            slot = codes[q + 1]
            at = event if slot == EVENT else first if slot == FIRST else last
            stack[s] = words[codes[q + 2], at]
            null[s] = nulls[codes[q + 2], at]
            q += 3
        elif op == CONST:
            s += 1
            stack[s] = known[codes[q + 1]]
            null[s] = False
            q += 2
        elif op == COMPARE:
            s -= 1
            how = codes[q + 1]
            if null[s] or null[s + 1]:
                stack[s] = how == NE
                null[s] = False
            else:
                if codes[q + 2] == WORD:
                    below, same = stack[s] < stack[s + 1], stack[s] == stack[s + 1]
                    above = not (below or same)
                else:
                    below, same, above = real[s] < real[s + 1], real[s] == real[s + 1], real[s] > real[s + 1]
                if how == LT:
                    stack[s] = below
                elif how == LE:
                    stack[s] = below or same
                elif how == GT:
                    stack[s] = above
                elif how == GE:
                    stack[s] = above or same
                elif how == EQ:
                    stack[s] = same
                else:
                    stack[s] = not same
            q += 3
        elif op == AGGREGATE:
            what = codes[q + 1]
            a = codes[q + 2]
            if what == COUNT:
                s += 1
                null[s] = kind == RESET and count[1, a] == 0
                count[1, a] = kind != RESET
                if kind == CURRENT:
                    count[0, a] += 1
                elif kind == EXPIRED:
                    count[0, a] -= 1
                else:
                    count[0, a] = 0
                stack[s] = count[0, a]
            elif what in (MIN, MAX):
                head, tail = ends[a, 0], ends[a, 1]
                is_real = codes[q + 3] != 0
                if kind == RESET:
                    head = tail
                elif not null[s]:
                    flip = what == MAX
                    if kind == CURRENT:
                        if is_real:
                            v = real[s]
                            while tail > head and (
                                queue_real[a, tail - 1] < v if flip else queue_real[a, tail - 1] > v
                            ):
                                tail -= 1
                        else:
                            w = stack[s]
                            while tail > head and (queue[a, tail - 1] < w if flip else queue[a, tail - 1] > w):
                                tail -= 1
                        queue[a, tail] = stack[s]
                        tail += 1
                    else:
                        i = head
                        if is_real:
                            v = real[s]
                            while i < tail and (queue_real[a, i] > v if flip else queue_real[a, i] < v):
                                i += 1
                            found = i < tail and queue_real[a, i] == v
                        else:
                            w = stack[s]
                            while i < tail and (queue[a, i] > w if flip else queue[a, i] < w):
                                i += 1
                            found = i < tail and queue[a, i] == w
                        if found:
                            while i > head:
                                queue[a, i] = queue[a, i - 1]
                                i -= 1
                            head += 1
                ends[a, 0] = head
                ends[a, 1] = tail
                null[s] = tail == head
                if tail > head:
                    stack[s] = queue[a, head]
            else:
                fresh = False
                if kind == RESET:  # a sum of integers is 0 then
                    fresh = count[1, a] != 0 and what == SUM and codes[q + 3] == 0
                    total[a] = 0
                    count[0, a] = 0
                elif not null[s]:
                    if kind == CURRENT:
                        count[0, a] += 1
                        fresh = what == SUM
                        if codes[q + 3] != 0:
                            total_real[a] += real[s]
                        else:
                            total[a] += stack[s]
                    else:
                        count[0, a] -= 1
                        if codes[q + 3] != 0:
                            total_real[a] -= real[s]
                        else:
                            total[a] = long_minus(total[a], stack[s])
                null[s] = count[0, a] == 0 and not fresh
                count[1, a] = kind != RESET
                if what == AVG:
                    real[s] = total_real[a] / count[0, a] if count[0, a] != 0 else 0.0
                else:
                    stack[s] = total[a]
            q += 4
        elif op == ELSE:
            truth = stack[s] != 0 and not null[s]
            if truth == (codes[q + 1] != 0):
                stack[s] = truth
                null[s] = False
                q += 3 + codes[q + 2]
            else:
                s -= 1
                q += 3
        elif op == TIME:
            s += 1
            slot = codes[q + 1]
            at = last if slot == LAST else first if slot == FIRST else event
            # What has left the window bears the time at which it did.
            stack[s] = now if kind == EXPIRED and at == event and slot != OWN else ts[at]
            null[s] = False
            q += 2
        elif op == TO_REAL:
            real[s] = float(stack[s])
            q += 1
        elif op == TO_FLOAT:
            real[s] = float(np.float32(stack[s]))
            q += 1
        elif op == NOT:
            stack[s] = null[s] or stack[s] == 0
            null[s] = False
            q += 1
        elif op == IS_NULL:
            stack[s] = null[s]
            null[s] = False
            q += 1
        elif op == CHOOSE:
            s -= 2
            at = s + 1 if stack[s] != 0 and not null[s] else s + 2
            stack[s] = stack[at]
            null[s] = null[at]
            q += 1
        elif op == COALESCE:
            s -= 1
            if null[s]:
                stack[s] = stack[s + 1]
                null[s] = null[s + 1]
            q += 1
        elif op == EXTREME:
            largest = codes[q + 1] != 0
            s -= codes[q + 2] - 1
            x = SMALLEST if largest else LARGEST
            for i in range(s, s + codes[q + 2]):
                if not null[i]:
                    y = real[i]
                    x = max(x, y) if largest else min(x, y)
            null[s] = False
            if codes[q + 3] == REAL:
                real[s] = x
            elif codes[q + 3] == FLOAT:
                real[s] = float(np.float32(x))
            else:
                most = 2147483647 if codes[q + 3] == INT else 9223372036854775807
                stack[s] = most if x >= float(most) else -most - 1 if x <= -float(most) - 1.0 else int(x)
            q += 4
        else:
            s -= 1
            how = codes[q + 1]
            null[s] = null[s] or null[s + 1]
            if null[s]:
                pass
            elif codes[q + 2] >= REAL:
                x, y = real[s], real[s + 1]
                if how == ADD:
                    x = x + y
                elif how == SUB:
                    x = x - y
                elif how == MUL:
                    x = x * y
                elif y == 0.0:
                    null[s] = True
                elif how == DIV:
                    x = x / y
                else:
                    x = np.fmod(x, y)
                real[s] = float(np.float32(x)) if codes[q + 2] == FLOAT else x
            else:
                b, c = stack[s], stack[s + 1]
                if how == ADD:
                    b = b + c
                elif how == SUB:
                    b = b - c
                elif how == MUL:
                    b = b * c
                elif c == 0:
                    null[s] = True
                elif how == DIV:
                    b = _divide_longs(b, c)
                else:
                    b = b - _divide_longs(b, c) * c
                stack[s] = ((b + 2147483648) & 4294967295) - 2147483648 if codes[q + 2] == INT else b
            q += 3
        op = codes[q]
    verdict: int = TRUE if stack[s] != 0 and not null[s] else FALSE
    return verdict


class NoProgram(Exception):
    """The condition cannot be compiled to bytecode."""


class Codes:
    """Compiles expressions to codes; `known` are the words of their constants, `code` gives the code of a string.

    A subclass defines the values that are not computed here (`leaf`).
    """

    def __init__(self, code: Callable[[str], int]) -> None:
        self.known: list[int] = []
        self._code = code

    def leaf(self, e: Expr) -> list[int] | None:
        """Codes that push an existing value; None if `e` has to be computed."""
        raise NotImplementedError

    def aggregate(self, e: Agg) -> list[int]:
        """Codes that evaluate an aggregator."""
        raise NoProgram

    def push(self, e: Expr) -> list[int]:
        """Codes that push the value of `e`. Raises NoProgram if `e` cannot be compiled."""
        if isinstance(e, Const):
            return self._constant(e, e.type)
        leaf = self.leaf(e)
        if leaf is not None:
            return leaf
        if isinstance(e, Agg):
            return self.aggregate(e)
        if isinstance(e, Arith) and e.type in _TYPES and e.left.type.numeric and e.right.type.numeric:
            left, right = self.push_as(e.left, e.type), self.push_as(e.right, e.type)
            return [*left, *right, ARITH, _ARITH[e.op], _TYPES[e.type]]
        if isinstance(e, Compare) and Type.OBJECT not in (e.left.type, e.right.type):
            if e.left.type.numeric and e.right.type.numeric:
                kind = common_type(e.op, e.left.type, e.right.type)
                left, right = self.push_as(e.left, kind), self.push_as(e.right, kind)
                return [*left, *right, COMPARE, _COMPARE[e.op], REAL if kind in REALS else WORD]
            return [*self.push(e.left), *self.push(e.right), COMPARE, _COMPARE[e.op], WORD]
        if isinstance(e, Logic):
            right = self.push(e.right)
            if not isinstance(e.right, Compare | Logic | Not | IsNull):  # may be null, which counts as false
                right += [NOT, NOT]
            return [*self.push(e.left), ELSE, int(e.op == "or"), len(right), *right]
        if isinstance(e, Not):
            return [*self.push(e.operand), NOT]
        if isinstance(e, IsNull):
            return [*self.push(e.operand), IS_NULL]
        if isinstance(e, Call):
            return self._call(e)
        raise NoProgram

    def push_as(self, e: Expr, type: Type) -> list[int]:
        """Codes that push a number as one of `type`, which is as wide."""
        if isinstance(e, Const):
            return self._constant(e, type)
        codes = self.push(e)
        if type not in REALS or e.type in REALS:
            return codes
        return [*codes, TO_REAL if type is Type.DOUBLE else TO_FLOAT]

    def _call(self, e: Call) -> list[int]:
        """The functions that choose among their arguments."""
        if e.type is Type.OBJECT or any(isinstance(x, Agg) for x in walk(e)):
            raise NoProgram  # an aggregator must not be asked where its branch is not taken
        sure = [NOT, NOT] if e.type is Type.BOOL else []  # no function answers with a bool that is null
        if e.function == "ifThenElse":
            return [*(word for a in e.args for word in self.push(a)), CHOOSE, *sure]
        if e.function in ("coalesce", "default"):
            first, *others = (self.push(a) for a in e.args)
            return [*first, *(word for codes in others for word in (*codes, COALESCE)), *sure]
        if e.function in ("maximum", "minimum") and len(e.args) > 1:
            args = [word for a in e.args for word in self.push_as(a, Type.DOUBLE)]
            return [*args, EXTREME, int(e.function == "maximum"), len(e.args), _TYPES[e.type]]
        raise NoProgram

    def _constant(self, e: Const, type: Type) -> list[int]:
        if e.type is Type.OBJECT or e.value is None:
            raise NoProgram
        if type is Type.STRING:
            word = self._code(str(e.value))
        elif type in REALS:
            value = np.float32(e.value) if Type.FLOAT in (type, e.type) else e.value
            word = int(np.float64(value).view(np.int64))
        else:
            word = int(e.value)
        self.known.append(word)
        return [CONST, len(self.known) - 1]
