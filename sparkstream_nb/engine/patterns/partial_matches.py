"""Compiled primitives of the pattern machine: partials, and the chains of events of counted states.

A partial match (Siddhi's `StateEvent`) can be in several lists at once and is freed with its last reference. A chain
(the events of a counted state) may be shared by partials that were copied, exactly as Siddhi's copies share
their linked `StreamEvent`s, so that an event added through one is seen through the other.
"""

from __future__ import annotations

from .machine_memory import (
    C_COUNT,
    C_EVENT,
    C_FREE,
    C_LEFT,
    C_NEXT,
    C_PREV,
    C_REFS,
    C_TAIL,
    CHAINED,
    CHAINS,
    E_EXPIRED,
    E_FREE,
    E_GIVEN,
    E_LEFT,
    E_REFS,
    E_SIZE,
    E_SLOTS,
    E_TIME,
    F_CHAIN,
    F_DROP,
    M_STARTS,
    NP,
    P_SIZE,
    START_N,
    WITHIN,
    XC,
    XE,
    XET,
    XP,
)  # fmt: skip
from .pointers import Words, call1, call3, called, compiled, pool, quiet, unit

FAR = 1 << 61
"""Beyond every timestamp."""

SINGLE, FROM_FIRST, FROM_LAST, CURRENT = 0, 1, 2, 3
"""Ways of a load to find its event: the state's only one, by number in its chain, counted from the chain's end, or the
event that is being processed.
"""

AS_WORD, AS_DOUBLE, AS_FLOAT = 0, 1, 2
"""Hashing of a key, such that values that compare equal hash equal."""


# ------------------------------------------------------------------------------------------------ partials and chains


@compiled
def new_partial(X: Words) -> int:
    """A partial without events or references (`StateEventFactory.newInstance`)."""
    E = pool(X, XE)
    e = X[E_FREE]
    X[E_FREE] = E[e + E_TIME]
    X[E_LEFT] -= 1
    E[e + E_TIME] = -1
    more = quiet(X, XE)
    more[e + E_REFS] = 0
    more[e + E_EXPIRED] = 0
    more[e + E_GIVEN] = 0
    for k in range(E_SLOTS, 2 * E_SLOTS):  # a record is a multiple of these
        more[e + k] = 0
    for k in range(2 * E_SLOTS, X[E_SIZE]):
        more[e + k] = 0
    return e


@unit
def drop_chain(X: Words, c: int) -> int:
    """Drops one reference to a chain."""
    C = pool(X, XC)
    C[c + C_REFS] -= 1
    if C[c + C_REFS] > 0:
        return 0
    while c != 0:
        after = C[c + C_NEXT]
        C[c + C_NEXT] = X[C_FREE]
        X[C_FREE] = c
        X[C_LEFT] += 1
        c = after
    return 0


@compiled
def drop_partial(X: Words, e: int) -> None:
    """Drops one reference to a partial."""
    E = pool(X, XE)
    E[e + E_REFS] -= 1
    if E[e + E_REFS] > 0:
        return
    if X[CHAINS] > 0:
        P = pool(X, XP)
        for p in range(X[NP]):
            if P[p * P_SIZE + CHAINED] != 0 and E[e + E_SLOTS + p] != 0:
                call1(X[F_DROP], X, E[e + E_SLOTS + p])
    E[e + E_TIME] = X[E_FREE]
    X[E_FREE] = e
    X[E_LEFT] += 1


@compiled
def clear_slot(X: Words, e: int, p: int) -> None:
    """`StateEvent.setEvent(p, null)`."""
    E = pool(X, XE)
    s = e + E_SLOTS + p
    if E[s] != 0:
        if pool(X, XP)[p * P_SIZE + CHAINED] != 0:
            call1(X[F_DROP], X, E[s])
        E[s] = 0


@called
def copy_partial(X: Words, e: int) -> int:
    """`StateEventCloner.copyStateEvent`: the copy shares the chains."""
    E = pool(X, XE)
    f = new_partial(X)
    more = quiet(X, XE)
    more[f + E_TIME] = E[e + E_TIME]
    for k in range(E_SLOTS, X[E_SIZE]):
        more[f + k] = E[e + k]
    if X[CHAINS] > 0:
        P, C = pool(X, XP), pool(X, XC)
        for p in range(X[NP]):
            if P[p * P_SIZE + CHAINED] != 0 and E[f + E_SLOTS + p] != 0:
                C[E[f + E_SLOTS + p] + C_REFS] += 1
    return f


@compiled
def add_event(X: Words, e: int, p: int, g: int) -> None:
    """`StateEvent.addEvent` for a counted state."""
    E, C = pool(X, XE), pool(X, XC)
    c = X[C_FREE]
    X[C_FREE] = C[c + C_NEXT]
    X[C_LEFT] -= 1
    C[c + C_EVENT] = g
    C[c + C_NEXT] = 0
    C[c + C_PREV] = 0
    head = E[e + E_SLOTS + p]
    if head == 0:
        C[c + C_REFS] = 1
        C[c + C_TAIL] = c
        C[c + C_COUNT] = 1
        E[e + E_SLOTS + p] = c
    else:
        last = C[head + C_TAIL]
        C[last + C_NEXT] = c
        C[c + C_PREV] = last
        C[head + C_TAIL] = c
        C[head + C_COUNT] += 1


@unit
def remove_last_event(X: Words, e: int, p: int) -> int:
    """`StateEvent.removeLastEvent`."""
    E, C = pool(X, XE), pool(X, XC)
    head = E[e + E_SLOTS + p]
    if head == 0:
        return 0
    last = C[head + C_TAIL]
    if last == head:
        E[e + E_SLOTS + p] = 0
        call1(X[F_DROP], X, head)
        return 0
    C[head + C_TAIL] = C[last + C_PREV]
    C[C[last + C_PREV] + C_NEXT] = 0
    C[head + C_COUNT] -= 1
    C[last + C_NEXT] = X[C_FREE]
    X[C_FREE] = last
    X[C_LEFT] += 1
    return 0


@compiled
def first_event(X: Words, e: int, p: int) -> int:
    """The log number of the (first) event of a state; 0 for none."""
    v = pool(X, XE)[e + E_SLOTS + p]
    if v != 0 and pool(X, XP)[p * P_SIZE + CHAINED] != 0:
        return pool(X, XC)[v + C_EVENT]
    return v


@compiled
def is_expired(X: Words, e: int, t: int) -> bool:
    """True if an event of a start state is further than `within` from time `t`, in either direction."""
    within = X[WITHIN]
    if within < 0:
        return False
    starts, times = pool(X, M_STARTS), pool(X, XET)
    for i in range(X[START_N]):
        g = first_event(X, e, starts[i])
        if g != 0 and abs(times[g] - t) > within:
            return True
    return False


# ------------------------------------------------------------------------------------------------------- loads


@unit
def in_chain(X: Words, v: int, mode: int, k: int) -> int:
    """The event with number `k` of a chain."""
    C = pool(X, XC)
    if mode == FROM_FIRST:
        while k > 0 and v != 0:
            v = C[v + C_NEXT]
            k -= 1
    else:
        if k >= C[v + C_COUNT]:
            return 0
        v = C[v + C_TAIL]
        while k > 0:
            v = C[v + C_PREV]
            k -= 1
    return 0 if v == 0 else C[v + C_EVENT]


@compiled
def find_event(X: Words, e: int, g: int, mode: int, p: int, k: int) -> int:
    """The log number of the event that a load instruction refers to; 0 for none."""
    if mode == CURRENT:
        return g
    v = pool(X, XE)[e + E_SLOTS + p]
    if mode == SINGLE or v == 0:
        return v
    if mode == FROM_LAST and k == 0:
        C = pool(X, XC)
        return C[C[v + C_TAIL] + C_EVENT]
    return call3(X[F_CHAIN], X, v, mode, k)
