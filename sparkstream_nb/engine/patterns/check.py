"""Bytecode for filters that compare several events, over the words of the event log.

A program is a sequence of int64 codes. Conditions joined by `and` follow one another, each ended by an assertion, so
that the first false one ends the program; of conditions joined by `or` the first true one jumps over the others. The
rules follow Siddhi's executors: an operator computes in the type that the plan gives it, division by zero is null,
comparing with null is false (`!=`: true), null is false for `and`, `or` and an assertion, `not` of null is true. A
value whose evaluation failed (`FAILURE` in the log) makes every expression that uses it fail, and in the end the event
(`Machine.has_failed`).
"""

from __future__ import annotations

import numpy as np

from .machine_memory import (
    CALL_WORDS,
    COMPARISON_WORDS,
    FAILURE,
    LEAP_WORDS,
    LOAD_WORDS,
    OPERATION_WORDS,
    Machine,
)
from .partial_matches import find_event
from .pointers import called, compiled, unit
from .records import Octets, Reals, Words

(
    END, ASSERT, PUSH, CONST, ARITH, COMPARE, AND, OR, NOT, IS_NULL, ASSERT_COMPARE, LEAP_COMPARE, CHOOSE, COALESCE,
    MATH,
) = range(15)  # fmt: skip
ABS, CEIL, FLOOR, SQRT, BIGGER, SMALLER = range(6)
"""Functions of `MATH`, over doubles; the last two take two values."""
EQ, NE, LT, LE, GT, GE = 2, 13, 1, 3, 4, 6
"""Sets of outcomes: 1 below, 2 the same, 4 above, 8 not comparable (NaN)."""
ADD, SUB, MUL, DIV, MOD = range(5)
T_INT, T_LONG, T_FLOAT, T_DOUBLE, T_CODE = range(5)
"""The type that an operator works in; `T_CODE` for strings and bools, which only compare equal or not."""


@compiled
def _compare(op: int, kind: int, a: int, x: float, a_real: int, b: int, y: float, b_real: int) -> bool:
    if kind in (T_FLOAT, T_DOUBLE):
        x = x if a_real != 0 else np.float64(a)
        y = y if b_real != 0 else np.float64(b)
        if kind == T_FLOAT:
            x = np.float64(np.float32(x))
            y = np.float64(np.float32(y))
        outcome = (x < y) | (x == y) << 1 | (x > y) << 2
        return op & (8 if outcome == 0 else outcome) != 0
    return op & ((a < b) | (a == b) << 1 | (a > b) << 2) != 0


@compiled
def _left_place(m: Machine, e: int, g: int, q: int) -> int:
    """The place in the log of the left value of the comparison at `q`."""
    test = m.comparisons[q]
    event = find_event(m, e, g, test.left_mode, test.left_state, test.left_number)
    return event + test.left_column * m.log_capacity


@compiled
def _right_place(m: Machine, e: int, g: int, q: int) -> int:
    """The place in the log of the right value of the comparison at `q`."""
    test = m.comparisons[q]
    event = find_event(m, e, g, test.right_mode, test.right_state, test.right_number)
    return event + test.right_column * m.log_capacity


@compiled
def _outcome(m: Machine, e: int, g: int, q: int) -> int:
    """1 if the comparison at `q` holds, 0 if not, `FAILURE` if one of its values could not be computed."""
    test, nulls, words, reals = m.comparisons[q], m.nulls, m.words, m.reals
    a = _left_place(m, e, g, q)
    b = _right_place(m, e, g, q)
    null = nulls[a] | nulls[b]
    if null >= FAILURE:
        return FAILURE
    if null != 0:
        holds = test.op == NE
    else:
        a_real, b_real = test.left_real, test.right_real
        holds = _compare(test.op, test.kind, words[a], reals[a], a_real, words[b], reals[b], b_real)
    return 1 if holds else 0


@compiled
def comparisons(m: Machine, e: int, g: int, q: int) -> int:
    """Runs the comparisons at the beginning of the program at `q`. Returns where it continues, or -1 if one is
    false."""
    codes = m.codes
    while codes[q] == ASSERT_COMPARE:
        outcome = _outcome(m, e, g, q)
        if outcome != 1:
            if outcome == FAILURE:
                m.has_failed = True
            return -1
        q += COMPARISON_WORDS
    return q


@called
def _arith(op: int, kind: int, values: Words, reals: Reals, nulls: Octets, s: int, a_real: int, b_real: int) -> None:
    """Combines the two values on top of the stack; the result goes to `s`."""
    if nulls[s] != 0 or nulls[s + 1] != 0:
        nulls[s] = max(nulls[s], nulls[s + 1])
        return
    if kind in (T_FLOAT, T_DOUBLE):
        x = reals[s] if a_real != 0 else np.float64(values[s])
        y = reals[s + 1] if b_real != 0 else np.float64(values[s + 1])
        if kind == T_FLOAT:
            x = np.float64(np.float32(x))
            y = np.float64(np.float32(y))
        if op == ADD:
            x = x + y
        elif op == SUB:
            x = x - y
        elif op == MUL:
            x = x * y
        elif y == 0.0:
            nulls[s] = 1
            x = 0.0
        elif op == DIV:
            x = x / y
        else:
            x = np.fmod(x, y)
        reals[s] = np.float64(np.float32(x)) if kind == T_FLOAT else x
        return
    a, b = values[s], values[s + 1]
    if op == ADD:
        a = a + b
    elif op == SUB:
        a = a - b
    elif op == MUL:
        a = a * b
    elif b == 0:
        nulls[s] = 1
        a = 0
    elif b == -1:  # the one quotient that does not fit
        a = -a if op == DIV else 0
    else:  # truncated, where Python's floors
        q = a // b
        if q < 0 and q * b != a:
            q += 1
        a = q if op == DIV else a - q * b
    values[s] = ((a + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) if kind == T_INT else a


@called
def _math(function: int, values: Words, reals: Reals, s: int, a_real: int, b_real: int) -> None:
    """Applies a function to the value at `s` of the stack (and the next), which gives a double there."""
    x = reals[s] if a_real != 0 else np.float64(values[s])
    if function == ABS:
        x = abs(x)
    elif function == CEIL:
        x = np.ceil(x)
    elif function == FLOOR:
        x = np.floor(x)
    elif function == SQRT:
        x = np.sqrt(x)
    else:
        y = reals[s + 1] if b_real != 0 else np.float64(values[s + 1])
        x = np.maximum(x, y) if function == BIGGER else np.minimum(x, y)
    reals[s] = x


@compiled
def _operate(m: Machine, op: int, q: int, s: int) -> int:
    """Carries out the operation `op`, which is at `q`, on the last of the `s` values of the stack. Returns how many
    values there are then."""
    stack, reals, nulls = m.stack, m.stack_reals, m.stack_nulls
    if op == ARITH:
        s -= 1
        operation = m.operations[q]
        a_real, b_real = operation.left_real, operation.right_real
        _arith(operation.op, operation.kind, stack, reals, nulls, s - 1, a_real, b_real)
    elif op == COMPARE:
        s -= 1
        operation = m.operations[q]
        null = max(nulls[s - 1], nulls[s])
        if null != 0:
            stack[s - 1] = 1 if operation.op == NE else 0
        else:
            a, a_real, x = stack[s - 1], operation.left_real, reals[s - 1]
            b, b_real, y = stack[s], operation.right_real, reals[s]
            stack[s - 1] = _compare(operation.op, operation.kind, a, x, a_real, b, y, b_real)
        nulls[s - 1] = null & FAILURE
    elif op == NOT:
        stack[s - 1] = 1 if nulls[s - 1] != 0 or stack[s - 1] == 0 else 0
        nulls[s - 1] &= FAILURE
    elif op == CHOOSE:
        s -= 2
        branch = s if nulls[s - 1] == 0 and stack[s - 1] != 0 else s + 1
        stack[s - 1] = stack[branch]
        nulls[s - 1] = max(nulls[s - 1] & FAILURE, nulls[branch])
    elif op == COALESCE:
        s -= 1
        if nulls[s - 1] == 1:
            stack[s - 1] = stack[s]
            nulls[s - 1] = nulls[s]
    elif op == MATH:
        call = m.calls[q]
        if call.function >= BIGGER:
            s -= 1
            nulls[s - 1] = max(nulls[s - 1], nulls[s])
        _math(call.function, stack, reals, s - 1, call.left_real, call.right_real)
    elif op == IS_NULL:
        stack[s - 1] = nulls[s - 1]
        nulls[s - 1] &= FAILURE
    else:  # AND, OR: if the first one decides, the second is not evaluated
        s -= 1
        a = 1 if nulls[s - 1] == 0 and stack[s - 1] != 0 else 0
        if nulls[s - 1] != FAILURE and a == (op == AND):
            a = 1 if nulls[s] == 0 and stack[s] != 0 else 0
            nulls[s - 1] = nulls[s]
        stack[s - 1] = a
        nulls[s - 1] &= FAILURE
    return s


@unit
def interpret_filter(m: Machine, p: int, e: int, g: int, cell: int, q: int) -> int:
    """1 if event `g` passes the filter of processor `p` together with the earlier events of partial `e`, else 0. The
    program of the filter is at `q` (-1: none)."""
    states = m.states
    verdict = m.cells[cell].verdict if states[p].slow else 1
    if verdict == 0:
        return 0
    if q < 0:
        m.has_failed = verdict == FAILURE
        return 0 if verdict == FAILURE else 1
    codes, nulls, words = m.codes, m.nulls, m.words
    stack, stack_nulls = m.stack, m.stack_nulls
    s = 0
    while True:
        op = codes[q]
        if op in (ASSERT_COMPARE, LEAP_COMPARE):
            outcome = _outcome(m, e, g, q)
            if outcome == FAILURE:
                m.has_failed = True
                return 0
            if op == LEAP_COMPARE:
                q += LEAP_WORDS + (m.comparisons[q].leap if outcome == 1 else 0)
            elif outcome == 1:
                q += COMPARISON_WORDS
            else:
                return 0
        elif op == END:
            m.has_failed = verdict == FAILURE
            return 0 if verdict == FAILURE else 1
        elif op == PUSH:
            load = m.loads[q]
            a = find_event(m, e, g, load.mode, load.state, load.number) + load.column * m.log_capacity
            stack[s] = words[a]
            stack_nulls[s] = nulls[a]
            s += 1
            q += LOAD_WORDS
        elif op == CONST:
            stack[s] = m.constants[codes[q + 1]]
            stack_nulls[s] = 0
            s += 1
            q += 2
        elif op == ASSERT:
            s -= 1
            if stack_nulls[s] != 0 or stack[s] == 0:
                m.has_failed = stack_nulls[s] == FAILURE
                return 0
            q += 1
        else:
            s = _operate(m, op, q, s)
            q += OPERATION_WORDS if op in (ARITH, COMPARE) else CALL_WORDS if op == MATH else 1
