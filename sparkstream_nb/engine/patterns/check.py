"""Bytecode for filters that compare several events, over the words of the event log.

A program is a sequence of int64 codes. Conditions joined by `and` follow one another, each ended by an assertion, so
that the first false one ends the program; of conditions joined by `or` the first true one jumps over the others. The
rules follow Siddhi's executors: an operator computes in the type that the plan gives it, division by zero is null,
comparing with null is false (`!=`: true), null is false for `and`, `or` and an assertion, `not` of null is true. A
value whose evaluation failed (`FAILURE` in the log) makes every expression that uses it fail, and in the end the event
(`FAILED`).
"""

from __future__ import annotations

import numpy as np

from .machine_memory import FAILED, FAILURE, N_VALUE, P_SIZE, SLOW, WORDS, XK, XM, XN, XP, XQ, XS, XW, XZ  # fmt: skip
from .partial_matches import find_event
from .pointers import Reals, Words, called, compiled, pool, reals, unit

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
def comparisons(X: Words, e: int, g: int, q: int) -> int:
    """Runs the comparisons at the beginning of the program at `q`. Returns where it continues, or -1 if one is
    false."""
    Q, Z, w, r = pool(X, XQ), pool(X, XZ), pool(X, XW), reals(X, XW)
    while Q[q] == ASSERT_COMPARE:
        a = find_event(X, e, g, Q[q + 3], Q[q + 4], Q[q + 5]) + Q[q + 6] * X[WORDS]
        b = find_event(X, e, g, Q[q + 8], Q[q + 9], Q[q + 10]) + Q[q + 11] * X[WORDS]
        null = Z[a] | Z[b]
        if null >= FAILURE:
            X[FAILED] = 1
            return -1
        if null != 0:
            holds = Q[q + 1] == NE
        else:
            holds = _compare(Q[q + 1], Q[q + 2], w[a], r[a], Q[q + 7], w[b], r[b], Q[q + 12])
        if not holds:
            return -1
        q += 13
    return q


@called
def _arith(op: int, kind: int, V: Words, F: Reals, Z: Words, s: int, a_real: int, b_real: int) -> None:
    """Combines the two values on top of the stack; the result goes to `s`."""
    if Z[s] != 0 or Z[s + 1] != 0:
        Z[s] = max(Z[s], Z[s + 1])
        return
    if kind in (T_FLOAT, T_DOUBLE):
        x = F[s] if a_real != 0 else np.float64(V[s])
        y = F[s + 1] if b_real != 0 else np.float64(V[s + 1])
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
            Z[s] = 1
            x = 0.0
        elif op == DIV:
            x = x / y
        else:
            x = np.fmod(x, y)
        F[s] = np.float64(np.float32(x)) if kind == T_FLOAT else x
        return
    a, b = V[s], V[s + 1]
    if op == ADD:
        a = a + b
    elif op == SUB:
        a = a - b
    elif op == MUL:
        a = a * b
    elif b == 0:
        Z[s] = 1
        a = 0
    elif b == -1:  # the one quotient that does not fit
        a = -a if op == DIV else 0
    else:  # truncated, where Python's floors
        q = abs(a) // abs(b) if a != -(1 << 63) and b != -(1 << 63) else a // b
        q = q if (a < 0) == (b < 0) else -q
        if a == -(1 << 63) or b == -(1 << 63):
            q = a // b
            if q < 0 and q * b != a:
                q += 1
        a = q if op == DIV else a - q * b
    V[s] = ((a + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) if kind == T_INT else a


@called
def _math(function: int, V: Words, F: Reals, s: int, a_real: int, b_real: int) -> None:
    """Applies a function to the value at `s` of the stack (and the next), which gives a double there."""
    x = F[s] if a_real != 0 else np.float64(V[s])
    if function == ABS:
        x = abs(x)
    elif function == CEIL:
        x = np.ceil(x)
    elif function == FLOOR:
        x = np.floor(x)
    elif function == SQRT:
        x = np.sqrt(x)
    else:
        y = F[s + 1] if b_real != 0 else np.float64(V[s + 1])
        x = np.maximum(x, y) if function == BIGGER else np.minimum(x, y)
    F[s] = x


@unit
def interpret_filter(X: Words, p: int, e: int, g: int, cell: int, q: int) -> int:
    """1 if event `g` passes the filter of processor `p` together with the earlier events of partial `e`, else 0. The
    program of the filter is at `q` (-1: none)."""
    P = pool(X, XP)
    verdict = pool(X, XN)[cell + N_VALUE] if P[p * P_SIZE + SLOW] != 0 else 1
    if verdict == 0:
        return 0
    if q < 0:
        X[FAILED] = verdict == FAILURE
        return 0 if verdict == FAILURE else 1
    Q, W, Z = pool(X, XQ), X[WORDS], pool(X, XZ)
    w, r = pool(X, XW), reals(X, XW)
    V, F, N = pool(X, XS), reals(X, XS), pool(X, XM)
    s = 0
    while True:
        op = Q[q]
        if op in (ASSERT_COMPARE, LEAP_COMPARE):
            a = find_event(X, e, g, Q[q + 3], Q[q + 4], Q[q + 5]) + Q[q + 6] * W
            b = find_event(X, e, g, Q[q + 8], Q[q + 9], Q[q + 10]) + Q[q + 11] * W
            if Z[a] != 0 or Z[b] != 0:
                if Z[a] == FAILURE or Z[b] == FAILURE:
                    X[FAILED] = 1
                    return 0
                holds = Q[q + 1] == NE
            else:
                holds = _compare(Q[q + 1], Q[q + 2], w[a], r[a], Q[q + 7], w[b], r[b], Q[q + 12])
            if op == LEAP_COMPARE:
                q += 14 + (Q[q + 13] if holds else 0)
            elif holds:
                q += 13
            else:
                return 0
        elif op == END:
            X[FAILED] = verdict == FAILURE
            return 0 if verdict == FAILURE else 1
        elif op == PUSH:
            a = find_event(X, e, g, Q[q + 1], Q[q + 2], Q[q + 3]) + Q[q + 4] * W
            V[s] = w[a]
            N[s] = Z[a]
            s += 1
            q += 5
        elif op == CONST:
            V[s] = pool(X, XK)[Q[q + 1]]
            N[s] = 0
            s += 1
            q += 2
        elif op == ARITH:
            s -= 1
            _arith(Q[q + 1], Q[q + 2], V, F, N, s - 1, Q[q + 3], Q[q + 4])
            q += 5
        elif op == COMPARE:
            s -= 1
            null = max(N[s - 1], N[s])
            if null != 0:
                V[s - 1] = 1 if Q[q + 1] == NE else 0
            else:
                V[s - 1] = _compare(Q[q + 1], Q[q + 2], V[s - 1], F[s - 1], Q[q + 3], V[s], F[s], Q[q + 4])
            N[s - 1] = null & FAILURE
            q += 5
        elif op == ASSERT:
            s -= 1
            if N[s] != 0 or V[s] == 0:
                X[FAILED] = N[s] == FAILURE
                return 0
            q += 1
        elif op == NOT:
            V[s - 1] = 1 if N[s - 1] != 0 or V[s - 1] == 0 else 0
            N[s - 1] &= FAILURE
            q += 1
        elif op == CHOOSE:
            s -= 2
            taken = s if N[s - 1] == 0 and V[s - 1] != 0 else s + 1
            V[s - 1] = V[taken]
            N[s - 1] = max(N[s - 1] & FAILURE, N[taken])
            q += 1
        elif op == COALESCE:
            s -= 1
            if N[s - 1] == 1:
                V[s - 1] = V[s]
                N[s - 1] = N[s]
            q += 1
        elif op == MATH:
            if Q[q + 1] >= BIGGER:
                s -= 1
                N[s - 1] = max(N[s - 1], N[s])
            _math(Q[q + 1], V, F, s - 1, Q[q + 2], Q[q + 3])
            q += 4
        elif op == IS_NULL:
            V[s - 1] = N[s - 1]
            N[s - 1] &= FAILURE
            q += 1
        else:  # if the first one decides, the second is not evaluated
            s -= 1
            a = 1 if N[s - 1] == 0 and V[s - 1] != 0 else 0
            if N[s - 1] != FAILURE and a == (op == AND):
                a = 1 if N[s] == 0 and V[s] != 0 else 0
                N[s - 1] = N[s]
            V[s - 1] = a
            N[s - 1] &= FAILURE
            q += 1
