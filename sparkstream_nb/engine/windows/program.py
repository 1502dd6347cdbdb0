"""Conditions over a window's contents as small programs for a compiled loop.

A part of the condition that names one event alone (and no aggregate) is a *derived column*: it is evaluated over the
rows when they come and kept beside the events. What combines several events or aggregates is a run of codes over a
stack (`holds`). The rules are those of `expressions.evaluate`: an operator computes in the type that the plan gives
it, nulls go through arithmetic, a comparison with null is false (`!=`: true), `and` and `or` skip their right side
where the left decides. As in Siddhi an aggregator takes an event when it is asked: one that is skipped does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Agg, Arith, Call, Compare, Const, EventRef, Expr, IsNull, Logic, Not, Ref, walk
from ...types import Type
from ..aggregators.sums import long_minus
from ..arrays import grown
from ..columns import Array, Column
from ..expressions import Env, compile_expr
from ..expressions.arithmetic import common_type
from ..faults import may_fail
from ..jit import inlined, kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import WindowSetup
from .log import EventLog

END, LOAD, TIME, CONST, TO_REAL, TO_FLOAT, NOT, IS_NULL, ELSE, ARITH, COMPARE, AGGREGATE = range(12)
"""Codes: LOAD slot column; TIME slot; CONST number; TO_REAL and TO_FLOAT turn the top of the stack into a double and a
float; ELSE decided n: a left side that is `decided` skips the n codes of the right one; ARITH and COMPARE
operator type; AGGREGATE function number real."""

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
_AGGREGATES = {"count": COUNT, "sum": SUM, "avg": AVG, "min": MIN, "max": MAX}
_REAL = (Type.FLOAT, Type.DOUBLE)
_UNSTEADY = frozenset({"eventTimestamp", "currentTimeMillis", "UUID"})
"""Functions whose answer depends on when they are asked."""

TRUE, FALSE, FAILED = 1, 0, 2
"""What a condition says. Only one that is evaluated in Python (`expression.Condition`) may fail."""


@kernel
def _divided(a: int, b: int) -> int:
    """Quotient toward zero; b is not 0."""
    if b == -1:
        return -a
    q = a // b
    if q < 0 and q * b != a:
        q += 1
    return q


@inlined
def holds(
    kind: int, now: int, event: int, first: int, last: int, ts: Array, codes: Array, words: Array, reals: Array,
    nulls: Array, known: Array, known_real: Array, stack: Array, real: Array, null: Array, total: Array,
    total_real: Array, count: Array, queue: Array, queue_real: Array, ends: Array,
) -> int:  # fmt: skip
    """Whether the condition is true for `event` (a position), which comes (CURRENT), goes (EXPIRED) or begins anew
    (RESET). `real`, `reals` and so on are the bits of `stack`, `words` and so on as doubles.

    `count[0]` is how many values each aggregator holds, `count[1]` whether it was asked since it began anew: one that
    was not answers null to a RESET (`SingleStateHolder.cleanGroupByStates`).
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
                    b = _divided(b, c)
                else:
                    b = b - _divided(b, c) * c
                stack[s] = ((b + 2147483648) & 4294967295) - 2147483648 if codes[q + 2] == INT else b
            q += 3
        op = codes[q]
    verdict: int = TRUE if stack[s] != 0 and not null[s] else FALSE
    return verdict


class NoProgram(Exception):
    """The condition needs Python."""


class Program:
    """A condition as codes, the derived columns of the events in a log, and the state of its aggregators.

    Raises NoProgram where no codes can do what the condition asks.
    """

    def __init__(self, condition: Expr, setup: WindowSetup, log: EventLog) -> None:
        self.setup, self.log = setup, log
        self._derived: list[Expr] = []
        self._slots: list[int] = []
        self._known: list[int] = []
        self._aggregates = 0
        self.codes = np.array([*self._push(condition), END], np.int64)
        self._evaluators = [compile_expr(e, setup.context) for e in self._derived]
        self._known_words = np.array([*self._known, 0], np.int64)
        self.words = np.zeros((len(self._derived), 0), np.int64)
        self.nulls = np.zeros((len(self._derived), 0), np.bool_)
        self.filled = 0
        self.stack = np.zeros(len(self.codes), np.int64)
        self.stack_null = np.zeros(len(self.codes), np.bool_)
        self.total, self.count = np.zeros(self._aggregates, np.int64), np.zeros((2, self._aggregates), np.int64)
        self.queue = np.zeros((self._aggregates, 0), np.int64)
        self.ends = np.zeros((self._aggregates, 2), np.int64)

    # ------------------------------------------------------------------------------------------------------- codes

    def _push(self, e: Expr) -> list[int]:
        """Codes that push the value of `e`."""
        if isinstance(e, Const):
            return self._constant(e, e.type)
        if isinstance(e, Call) and e.function == "eventTimestamp":
            (event,) = e.args or (EventRef(Type.OBJECT, OWN),)
            assert isinstance(event, EventRef)
            return [TIME, event.slot]
        slot = _only_slot(e)
        if slot is not None:
            return [LOAD, slot, self._derive(e)]
        if isinstance(e, Agg):
            return self._aggregate(e)
        if isinstance(e, Arith) and e.type in _TYPES and e.left.type.numeric and e.right.type.numeric:
            left, right = self._push_as(e.left, e.type), self._push_as(e.right, e.type)
            return [*left, *right, ARITH, _ARITH[e.op], _TYPES[e.type]]
        if isinstance(e, Compare) and Type.OBJECT not in (e.left.type, e.right.type):
            if e.left.type.numeric and e.right.type.numeric:
                kind = common_type(e.op, e.left.type, e.right.type)
                left, right = self._push_as(e.left, kind), self._push_as(e.right, kind)
                return [*left, *right, COMPARE, _COMPARE[e.op], REAL if kind in _REAL else WORD]
            return [*self._push(e.left), *self._push(e.right), COMPARE, _COMPARE[e.op], WORD]
        if isinstance(e, Logic):
            right = self._push(e.right)
            if not isinstance(e.right, Compare | Logic | Not | IsNull):  # may be null, which counts as false
                right += [NOT, NOT]
            return [*self._push(e.left), ELSE, int(e.op == "or"), len(right), *right]
        if isinstance(e, Not):
            return [*self._push(e.operand), NOT]
        if isinstance(e, IsNull):
            return [*self._push(e.operand), IS_NULL]
        raise NoProgram

    def _push_as(self, e: Expr, type: Type) -> list[int]:
        """Codes that push a number as one of `type`."""
        if isinstance(e, Const):
            return self._constant(e, type)
        codes = self._push(e)
        if type not in _REAL or e.type in _REAL:
            return codes
        return [*codes, TO_REAL if type is Type.DOUBLE else TO_FLOAT]

    def _constant(self, e: Const, type: Type) -> list[int]:
        if e.type is Type.OBJECT or e.value is None:
            raise NoProgram
        if type is Type.STRING:
            word = self.setup.strings.code(str(e.value))
        elif type in _REAL:
            value = np.float32(e.value) if Type.FLOAT in (type, e.type) else e.value
            word = int(np.float64(value).view(np.int64))
        else:
            word = int(e.value)
        self._known.append(word)
        return [CONST, len(self._known) - 1]

    def _derive(self, e: Expr) -> int:
        if e.type is Type.OBJECT:
            raise NoProgram
        self._derived.append(e)
        return len(self._derived) - 1

    def _aggregate(self, e: Agg) -> list[int]:
        what = _AGGREGATES.get(e.function)
        if what is None or (e.args and not e.args[0].type.numeric) or any(_unsteady(a) for a in e.args):
            raise NoProgram
        number = self._aggregates
        self._aggregates += 1
        if what == COUNT:
            return [AGGREGATE, what, number, 0]
        (arg,) = e.args
        type = Type.DOUBLE if what == AVG else arg.type
        return [*self._push_as(arg, type), AGGREGATE, what, number, int(type in _REAL)]

    # -------------------------------------------------------------------------------------------------- at run time

    def room(self, events: int) -> None:
        """Evaluates the derived columns of the log's newest events, and makes room for `events` further queue
        places."""
        log = self.log
        end = log.end
        if self._derived and self.filled < end:
            self.words, self.nulls = grown(self.words, log.capacity), grown(self.nulls, log.capacity, False)
            index = np.arange(self.filled, end)
            env = Env(
                len(index), self.setup.strings, log.ts[index], log.ts[index],
                lambda ref: Column(Type.BOOL, np.ones(len(index), np.bool_)) if isinstance(ref, EventRef)
                else log.column(ref.attr, index),
            )  # fmt: skip
            for i, evaluate in enumerate(self._evaluators):
                column = evaluate(env)
                real = column.type in _REAL
                target = self.words.view(np.float64) if real else self.words
                target[i, self.filled : end] = column.values
                self.nulls[i, self.filled : end] = False if column.null is None else column.null
        self.filled = end
        if self._aggregates:
            for a in range(self._aggregates):
                head, tail = self.ends[a]
                self.queue[a, : tail - head] = self.queue[a, head:tail].copy()
                self.ends[a] = 0, tail - head
            self.queue = grown(self.queue, int(self.ends[:, 1].max()) + events)

    def compact(self, keep: Array) -> None:
        """The log keeps only positions `keep`."""
        if self._derived:
            self.words, self.nulls = self.words[:, keep], self.nulls[:, keep]
        self.filled = len(keep)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What `holds` takes from `codes` on."""
        real = np.float64
        known = self._known_words
        return (
            self.codes, self.words, self.words.view(real), self.nulls, known, known.view(real), self.stack,
            self.stack.view(real), self.stack_null, self.total, self.total.view(real), self.count, self.queue,
            self.queue.view(real), self.ends,
        )  # fmt: skip

    def state(self) -> Any:
        queues = [self.queue[a, head:tail] for a, (head, tail) in enumerate(self.ends.tolist())]
        return {"total": self.total, "count": self.count, "queues": queues}

    def load(self, state: Any) -> None:
        self.total, self.count = state["total"].copy(), state["count"].copy()
        for a, values in enumerate(state["queues"]):
            self.queue = grown(self.queue, len(values))
            self.queue[a, : len(values)] = values
            self.ends[a] = 0, len(values)


def _unsteady(e: Expr) -> bool:
    return may_fail(e) or any(isinstance(x, Call) and x.function in _UNSTEADY for x in walk(e))


def _only_slot(e: Expr) -> int | None:
    """The slot of the only event that `e` names, where it can be evaluated when that event comes; else None."""
    slots = {x.slot for x in walk(e) if isinstance(x, Ref | EventRef)}
    if len(slots) != 1 or _unsteady(e) or any(isinstance(x, Agg) for x in walk(e)):
        return None
    return slots.pop()


__all__ = ["FAILED", "FALSE", "TRUE", "NoProgram", "Program", "holds"]
