"""The hash index over pending partials (compiled): buckets by key, each with the bound that an event must exceed to
match."""

from __future__ import annotations

import numpy as np

from .machine_memory import (
    B_BOUND,
    B_HEAD,
    B_SIZE,
    B_TAIL,
    BOUND,
    BOUND_SIGN,
    BUCKETS,
    E_SLOTS,
    F_KEY,
    INDEXED,
    KEY_COUNT,
    KEYS,
    LEAST_VALUE,
    N_BUCKET,
    N_DOWN,
    N_OWNER,
    N_PARTIAL,
    N_UP,
    N_VALUE,
    NONE,
    P_SIZE,
    PEND,
    WORDS,
    XB,
    XE,
    XL,
    XN,
    XP,
    XQ,
    XW,
    XZ,
)  # fmt: skip
from .partial_matches import AS_DOUBLE, AS_WORD
from .pointers import Words, as_real, as_word, call4, compiled, pool, quiet, reals, unit


@compiled
def mix(h: int, v: int) -> int:
    """Combines a hash with a further word, with two multiplications, as the lower half of a double may be all zeros."""
    h = (h ^ v) * -0x61C8864680B583EB
    h = (h ^ (h >> 32)) * -0x3D4D51C2D82B14B1
    return (h ^ (h >> 29)) & 0x7FFFFFFFFFFFFFFF


@compiled
def key_word(X: Words, at: int, real: int, how: int) -> int:
    """The word at `at` of the log, such that equal values of any numeric types give equal words."""
    if how == AS_WORD:
        return pool(X, XW)[at]
    if how == AS_DOUBLE:
        f = reals(X, XW)[at] if real != 0 else np.float64(pool(X, XW)[at])
    elif real != 0:
        f = np.float64(np.float32(reals(X, XW)[at]))
    else:
        f = np.float64(np.float32(pool(X, XW)[at]))
    return as_word(f + 0.0)  # -0.0 becomes 0.0


@unit
def index_key(X: Words, lp: int, p: int, g: int, e: int) -> int:
    """The bucket for partial `e`, or for event `g` (`e` 0); -1 where a key is null: nothing can match."""
    P, Q, E, Z = pool(X, XP), pool(X, XQ), pool(X, XE), pool(X, XZ)
    q = P[p * P_SIZE + KEYS]
    h = mix(lp, NONE)
    for _ in range(P[p * P_SIZE + KEY_COUNT]):
        v, column, real = g, Q[q + 1], Q[q + 2]
        if e != 0:
            v, column, real = E[e + E_SLOTS + Q[q + 3]], Q[q + 4], Q[q + 5]
        at = v + column * X[WORDS]
        if Z[at] != 0:
            return -1
        h = mix(h, key_word(X, at, real, Q[q]))
        q += 6
    return (h & (X[BUCKETS] - 1)) * B_SIZE


@compiled
def bound_value(X: Words, p: int, g: int, e: int) -> float:
    """The bound of partial `e`, or the value that event `g` compares with bounds (`e` 0); NaN for null."""
    P, Q = pool(X, XP), pool(X, XQ)
    q = P[p * P_SIZE + BOUND]
    v, column, real = g, Q[q], Q[q + 1]
    if e != 0:
        v, column, real = pool(X, XE)[e + E_SLOTS + Q[q + 2]], Q[q + 3], Q[q + 4]
    at = v + column * X[WORDS]
    if pool(X, XZ)[at] != 0:
        return np.nan
    value = reals(X, XW)[at] if real != 0 else np.float64(pool(X, XW)[at])
    return value * P[p * P_SIZE + BOUND_SIGN]


@unit
def look(X: Words, lp: int, p: int, g: int) -> int:
    """The first pending cell that event `g` may match at processor `p`, 0 for none. With a bound and no key, the list
    itself is the only bucket. An empty bucket has an infinite bound."""
    P = pool(X, XP)
    if P[p * P_SIZE + KEY_COUNT] == 0:
        c, least = pool(X, XL)[lp + PEND], pool(X, XL)[lp + LEAST_VALUE]
    else:
        b = call4(X[F_KEY], X, lp, p, g, 0)
        if b < 0:
            return 0
        c, least = pool(X, XB)[b + B_HEAD], pool(X, XB)[b + B_BOUND]
    if P[p * P_SIZE + BOUND] >= 0:
        return c if bound_value(X, p, g, NONE) >= as_real(least) else 0
    return c


@unit
def leave_index(X: Words, c: int) -> int:
    """Takes a pending cell out of its bucket."""
    N, B = pool(X, XN), pool(X, XB)
    b, up, down = N[c + N_BUCKET], N[c + N_UP], N[c + N_DOWN]
    if up == 0:
        B[b + B_HEAD] = down
        if down == 0:
            B[b + B_BOUND] = as_word(np.inf)
    else:
        N[up + N_DOWN] = down
    if down == 0:
        B[b + B_TAIL] = up
    else:
        N[down + N_UP] = up
    X[INDEXED] -= 1
    return 0


@unit
def enter_index(X: Words, lp: int, p: int, c: int) -> int:
    """Puts a pending cell at the end of its bucket, so that a bucket keeps the order of the list; 1 if it did."""
    N, P = pool(X, XN), pool(X, XP)
    e = N[c + N_PARTIAL]
    N[c + N_BUCKET] = -1
    if P[p * P_SIZE + KEY_COUNT] == 0:
        L, v = pool(X, XL), bound_value(X, p, NONE, e)
        N[c + N_VALUE] = as_word(v)
        if L[lp + PEND] == c:
            L[lp + LEAST_VALUE] = as_word(np.inf)
        if v < as_real(L[lp + LEAST_VALUE]):
            L[lp + LEAST_VALUE] = as_word(v)
        return 0
    b = call4(X[F_KEY], X, lp, p, 0, e)
    if b < 0:
        return 0
    B = pool(X, XB)
    if P[p * P_SIZE + BOUND] >= 0:
        v = bound_value(X, p, NONE, e)
        if v != v:  # nothing exceeds null or NaN
            return 0
        N[c + N_VALUE] = as_word(v)
        if v < as_real(B[b + B_BOUND]):
            B[b + B_BOUND] = as_word(v)
    N[c + N_BUCKET] = b
    more = quiet(X, XN)
    more[c + N_OWNER] = lp
    more[c + N_DOWN] = 0
    tail = B[b + B_TAIL]
    more[c + N_UP] = tail
    if tail == 0:
        B[b + B_HEAD] = c
    else:
        N[tail + N_DOWN] = c
    B[b + B_TAIL] = c
    X[INDEXED] += 1
    return 1
