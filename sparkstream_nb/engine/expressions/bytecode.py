"""Compiles expressions to bytecode for a stack machine, which compiled loops interpret.

The rules are the same as in `expressions.evaluate`: an operator computes in the type that the plan gives it, nulls go
through arithmetic, a comparison with null is false (`!=`: true), `and` and `or` skip their right side if the left
decides. As in Siddhi, an aggregator takes an event when it is evaluated; a skipped one does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...plan.nodes import Agg, Arith, Call, Compare, Const, Expr, IsNull, Logic, Not, walk
from ...types import Type
from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET
from ..notation.kernels import inlined, kernel, struct
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


@struct
class ProgramMemory:
    """The memory of a program.

    `words` and `nulls`: the columns that it loads from, a row each. `constants`: the constants of its codes. `stack`
    and `null`: its stack of `depth` values. `total`, `count`, `queue` and `ends`: the state of its aggregators, by
    their numbers; of each, `count[0]` is the number of values, and `count[1]` whether it was evaluated since its reset:
    one that was not returns null for a RESET (`SingleStateHolder.cleanGroupByStates`).

    A word is an integer, a text's code, a truth value or the bits of a double: `reals` and so on are
    the same memory as doubles.
    """

    def __init__(self, constants: Sequence[int], depth: int, columns: int, aggregates: int = 0) -> None:
        self.words, self.nulls = np.zeros((columns, 0), np.int64), np.zeros((columns, 0), np.bool_)
        self.constants = np.array([*constants, 0], np.int64)
        self.stack, self.null = np.zeros(depth, np.int64), np.zeros(depth, np.bool_)
        self.total, self.count = np.zeros(aggregates, np.int64), np.zeros((2, aggregates), np.int64)
        self.queue, self.ends = np.zeros((aggregates, 0), np.int64), np.zeros((aggregates, 2), np.int64)

    @property
    def reals(self) -> Array:
        return self.words.view(np.float64)

    @property
    def real(self) -> Array:
        return self.stack.view(np.float64)

    @property
    def total_real(self) -> Array:
        return self.total.view(np.float64)

    @property
    def queue_real(self) -> Array:
        return self.queue.view(np.float64)

    @inlined
    def put(self, s: int, value: int) -> None:
        """A word, which is not null, is the value at `s`."""
        self.stack[s] = value
        self.null[s] = False

    @inlined
    def copy(self, s: int, of: int) -> None:
        """The value at `of` is the one at `s` as well."""
        self.stack[s] = self.stack[of]
        self.null[s] = self.null[of]

    @inlined
    def compare(self, s: int, how: int, kind: int) -> None:
        """The comparison `how` of the two values from `s` on, in the type `kind`."""
        if self.null[s] or self.null[s + 1]:
            self.stack[s] = how == NE
            self.null[s] = False
        else:
            if kind == WORD:
                below, same = self.stack[s] < self.stack[s + 1], self.stack[s] == self.stack[s + 1]
                above = not (below or same)
            else:
                x, y = self.real[s], self.real[s + 1]
                below, same, above = x < y, x == y, x > y
            if how == LT:
                self.stack[s] = below
            elif how == LE:
                self.stack[s] = below or same
            elif how == GT:
                self.stack[s] = above
            elif how == GE:
                self.stack[s] = above or same
            elif how == EQ:
                self.stack[s] = same
            else:
                self.stack[s] = not same

    @inlined
    def count_event(self, s: int, a: int, kind: int) -> None:
        """Aggregator `a`, a count, takes an event; its value is put at `s`."""
        self.null[s] = kind == RESET and self.count[1, a] == 0
        self.count[1, a] = kind != RESET
        if kind == CURRENT:
            self.count[0, a] += 1
        elif kind == EXPIRED:
            self.count[0, a] -= 1
        else:
            self.count[0, a] = 0
        self.stack[s] = self.count[0, a]

    @inlined
    def take_extreme(self, s: int, a: int, most: bool, real: bool, kind: int) -> None:
        """Aggregator `a`, a minimum or (`most`) maximum, takes the value at `s`; its value takes that place."""
        head, tail = self.ends[a, 0], self.ends[a, 1]
        if kind == RESET:
            head = tail
        elif not self.null[s]:
            if kind == CURRENT:
                if real:
                    v = self.real[s]
                    while tail > head and (
                        self.queue_real[a, tail - 1] < v if most else self.queue_real[a, tail - 1] > v
                    ):
                        tail -= 1
                else:
                    w = self.stack[s]
                    while tail > head and (self.queue[a, tail - 1] < w if most else self.queue[a, tail - 1] > w):
                        tail -= 1
                self.queue[a, tail] = self.stack[s]
                tail += 1
            else:
                i = head
                if real:
                    v = self.real[s]
                    while i < tail and (self.queue_real[a, i] > v if most else self.queue_real[a, i] < v):
                        i += 1
                    is_there = i < tail and self.queue_real[a, i] == v
                else:
                    w = self.stack[s]
                    while i < tail and (self.queue[a, i] > w if most else self.queue[a, i] < w):
                        i += 1
                    is_there = i < tail and self.queue[a, i] == w
                if is_there:
                    while i > head:
                        self.queue[a, i] = self.queue[a, i - 1]
                        i -= 1
                    head += 1
        self.ends[a, 0] = head
        self.ends[a, 1] = tail
        self.null[s] = tail == head
        if tail > head:
            self.stack[s] = self.queue[a, head]

    @inlined
    def add_value(self, s: int, a: int, what: int, real: bool, kind: int) -> None:
        """Aggregator `a`, a sum or mean, takes the value at `s`; its value takes that place."""
        fresh = False
        if kind == RESET:  # a sum of integers is 0 then
            fresh = self.count[1, a] != 0 and what == SUM and not real
            self.total[a] = 0
            self.count[0, a] = 0
        elif not self.null[s]:
            if kind == CURRENT:
                self.count[0, a] += 1
                fresh = what == SUM
                if real:
                    self.total_real[a] += self.real[s]
                else:
                    self.total[a] += self.stack[s]
            else:
                self.count[0, a] -= 1
                if real:
                    self.total_real[a] -= self.real[s]
                else:
                    self.total[a] = long_minus(self.total[a], self.stack[s])
        self.null[s] = self.count[0, a] == 0 and not fresh
        self.count[1, a] = kind != RESET
        if what == AVG:
            self.real[s] = self.total_real[a] / self.count[0, a] if self.count[0, a] != 0 else 0.0
        else:
            self.stack[s] = self.total[a]

    @inlined
    def aggregate(self, s: int, a: int, what: int, real: bool, kind: int) -> None:
        """Aggregator `a` takes the value at `s`, or an event if it counts; its value takes that place."""
        if what == COUNT:
            self.count_event(s, a, kind)
        elif what in (MIN, MAX):
            self.take_extreme(s, a, what == MAX, real, kind)
        else:
            self.add_value(s, a, what, real, kind)

    @inlined
    def find_extreme(self, s: int, n: int, largest: bool, kind: int) -> None:
        """The least or `largest` of `n` doubles from `s` on, in the type `kind`."""
        x = SMALLEST if largest else LARGEST
        for i in range(s, s + n):
            if not self.null[i]:
                y = self.real[i]
                x = max(x, y) if largest else min(x, y)
        self.null[s] = False
        if kind == REAL:
            self.real[s] = x
        elif kind == FLOAT:
            self.real[s] = float(np.float32(x))
        else:
            most = 2147483647 if kind == INT else 9223372036854775807
            self.stack[s] = most if x >= float(most) else -most - 1 if x <= -float(most) - 1.0 else int(x)

    @inlined
    def calculate(self, s: int, how: int, kind: int) -> None:
        """The operation `how` of the two values from `s` on, in the type `kind`."""
        self.null[s] = self.null[s] or self.null[s + 1]
        if self.null[s]:
            pass
        elif kind >= REAL:
            x, y = self.real[s], self.real[s + 1]
            if how == ADD:
                x = x + y
            elif how == SUB:
                x = x - y
            elif how == MUL:
                x = x * y
            elif y == 0.0:
                self.null[s] = True
            elif how == DIV:
                x = x / y
            else:
                x = np.fmod(x, y)
            self.real[s] = float(np.float32(x)) if kind == FLOAT else x
        else:
            b, c = self.stack[s], self.stack[s + 1]
            if how == ADD:
                b = b + c
            elif how == SUB:
                b = b - c
            elif how == MUL:
                b = b * c
            elif c == 0:
                self.null[s] = True
            elif how == DIV:
                b = _divide_longs(b, c)
            else:
                b = b - _divide_longs(b, c) * c
            self.stack[s] = ((b + 2147483648) & 4294967295) - 2147483648 if kind == INT else b


@inlined
def interpret(
    kind: int, now: int, event: int, first: int, last: int, ts: Array, codes: Array, memory: ProgramMemory
) -> int:
    """Runs a program for `event` (a position), which is added (CURRENT), removed (EXPIRED) or resets the state (RESET).
    Returns whether the condition is true. The value, of any type, is left at the bottom of the stack.
    """
    q = 0
    s = -1
    op = codes[0]
    while op != END:
        if op == LOAD:
            s += 1
            slot = codes[q + 1]
            at = event if slot == EVENT else first if slot == FIRST else last
            memory.stack[s] = memory.words[codes[q + 2], at]
            memory.null[s] = memory.nulls[codes[q + 2], at]
            q += 3
        elif op == CONST:
            s += 1
            memory.put(s, memory.constants[codes[q + 1]])
            q += 2
        elif op == COMPARE:
            s -= 1
            memory.compare(s, codes[q + 1], codes[q + 2])
            q += 3
        elif op == AGGREGATE:
            s += codes[q + 1] == COUNT
            memory.aggregate(s, codes[q + 2], codes[q + 1], codes[q + 3] != 0, kind)
            q += 4
        elif op == ELSE:
            truth = memory.stack[s] != 0 and not memory.null[s]
            if truth == (codes[q + 1] != 0):
                memory.put(s, truth)
                q += 3 + codes[q + 2]
            else:
                s -= 1
                q += 3
        elif op == TIME:
            s += 1
            slot = codes[q + 1]
            at = last if slot == LAST else first if slot == FIRST else event
            # What has left the window bears the time at which it did.
            memory.put(s, now if kind == EXPIRED and at == event and slot != OWN else ts[at])
            q += 2
        elif op == TO_REAL:
            memory.real[s] = float(memory.stack[s])
            q += 1
        elif op == TO_FLOAT:
            memory.real[s] = float(np.float32(memory.stack[s]))
            q += 1
        elif op == NOT:
            memory.put(s, memory.null[s] or memory.stack[s] == 0)
            q += 1
        elif op == IS_NULL:
            memory.put(s, memory.null[s])
            q += 1
        elif op == CHOOSE:
            s -= 2
            memory.copy(s, s + 1 if memory.stack[s] != 0 and not memory.null[s] else s + 2)
            q += 1
        elif op == COALESCE:
            s -= 1
            if memory.null[s]:
                memory.copy(s, s + 1)
            q += 1
        elif op == EXTREME:
            s -= codes[q + 2] - 1
            memory.find_extreme(s, codes[q + 2], codes[q + 1] != 0, codes[q + 3])
            q += 4
        else:
            s -= 1
            memory.calculate(s, codes[q + 1], codes[q + 2])
            q += 3
        op = codes[q]
    verdict: int = TRUE if memory.stack[s] != 0 and not memory.null[s] else FALSE
    return verdict


class NoProgram(Exception):
    """The condition cannot be compiled to bytecode."""


class Codes:
    """Compiles expressions to codes; `constants` are the words of constants, `code` gives the code of a string.

    A subclass defines the values that are not computed here (`leaf`).
    """

    def __init__(self, code: Callable[[str], int]) -> None:
        self.constants: list[int] = []
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
        self.constants.append(word)
        return [CONST, len(self.constants) - 1]
