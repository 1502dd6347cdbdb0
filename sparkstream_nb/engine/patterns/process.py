"""Processes an event in the states of a pattern (compiled): `processAndReturn` of Siddhi's `*PreStateProcessor`s."""

from __future__ import annotations

import numpy as np

from .check import END, comparisons
from .index import bound_value
from .machine import remove_from, take_pending
from .machine_memory import (
    ABSENT,
    ABSENT_LOGICAL,
    AGAIN,
    B_BOUND,
    B_HEAD,
    BOUND,
    BY_INDEX,
    CHANGED,
    COPIED,
    COUNT,
    E_REFS,
    E_SLOTS,
    E_TIME,
    EVERY,
    F_AFTER,
    F_CAME,
    F_COUNT,
    F_LOGICAL,
    F_PASSES,
    F_SHORTEN,
    FAILED,
    IS_OR,
    KEY_COUNT,
    KIND,
    L_SIZE,
    LAST_STATE,
    LEAST_VALUE,
    LOGICAL,
    N_BUCKET,
    N_DOWN,
    N_NEXT,
    N_OWNER,
    N_PARTIAL,
    N_VALUE,
    NEW,
    NEXT,
    NO_EVENT,
    NONE,
    NP,
    P_SIZE,
    PARTNER,
    PEND,
    PEND_N,
    PROGRAM,
    REST,
    RETURNS,
    SEQUENCE,
    SLOW,
    STREAM,
    STRICT,
    SUCCESS,
    WAIT,
    WITHIN,
    WITHIN_EVERY,
    XB,
    XE,
    XET,
    XL,
    XN,
    XP,
    XQ,
    XV,
)  # fmt: skip
from .partial_matches import add_event, drop_partial, is_expired, new_partial
from .pointers import Words, as_real, as_word, call2, call4, call5, compiled, pool, quiet, unit
from .processors import FREE_TRIES, add_state, advance, give, has_room, start_reset

NONE_LEFT = -1
"""Result of `process` when it is done; otherwise the cell to continue with after memory was added."""


@compiled
def _take_returned(X: Words, p: int) -> bool:
    """True if the processor's last state has emitted a match (`isEventReturned`), which this clears."""
    V = pool(X, XV)
    last = pool(X, XP)[p * P_SIZE + RETURNS]
    if V[last] == 0:
        return False
    V[last] = 0
    return True


@compiled
def _reach(X: Words, l0: int, p: int, e: int, g: int) -> None:
    """`process` of the post state processor of a state's kind: event `g` has passed its filter."""
    kind = pool(X, XP)[p * P_SIZE + KIND]
    if kind == STREAM:
        advance(X, l0, p, e, g)
    elif kind == COUNT:
        call4(X[F_COUNT], X, l0, p, e, g)
    elif kind == LOGICAL:
        call4(X[F_LOGICAL], X, l0, p, e, g)
    else:
        call4(X[F_CAME], X, l0, p, e, g)


@compiled
def _too_late(X: Words, p: int, e: int, g: int) -> bool:
    """True if an event that passes the filter of a state is further than `within` from the first one of the partial.

    Siddhi lets such a partial continue if another one is before it in the state's list: it drops expired ones from
    the head of the list only, and the list is in the order in which they reached this state (docs/differences.md).
    """
    P, f = pool(X, XP), p * P_SIZE
    if X[WITHIN] < 0 or P[f + WITHIN_EVERY] >= 0 or P[f + KIND] == ABSENT or P[f + KIND] == ABSENT_LOGICAL:
        return False
    return is_expired(X, e, pool(X, XET)[g])


@compiled
def _goes(X: Words, l0: int, p: int, g: int, c: int, plain: bool) -> bool:
    """One pending partial and one event; whether it is to leave the list."""
    P, L, E = pool(X, XP), pool(X, XL), pool(X, XE)
    f, lp, e = p * P_SIZE, l0 + p * L_SIZE, pool(X, XN)[c + N_PARTIAL]
    s, kind, other = e + E_SLOTS + p, P[f + KIND], P[f + PARTNER]
    if kind == COUNT:
        if (p + 1 < X[NP] and E[s + 1] != 0) or (p + 2 < X[NP] and E[s + 2] != 0):
            return True  # the next state has its event, so that this one takes no more
    elif other >= 0 and P[f + IS_OR] != 0 and E[e + E_SLOTS + other] != NO_EVENT:
        return True
    L[lp + CHANGED] = 0
    L[lp + SUCCESS] = 0
    before = NO_EVENT
    if kind != COUNT:
        before = E[s]
        E[s] = g
    elif plain:
        add_event(X, e, p, g)
    if plain:
        # With an index, what that has decided is not asked again.
        q = P[f + (REST if X[BY_INDEX] != 0 else PROGRAM)]
        if P[f + SLOW] != 0:
            holds = call5(X[F_PASSES], X, p, e, g, c, q) != 0
        elif q < 0:
            holds = True
        else:
            q = comparisons(X, e, g, q)
            holds = q >= 0 and (pool(X, XQ)[q] == END or call5(X[F_PASSES], X, p, e, g, c, q) != 0)
        if holds and _too_late(X, p, e, g):
            if kind == COUNT:
                call2(X[F_SHORTEN], X, e, p)
            else:
                E[s] = before
            return True
        if holds:
            _reach(X, l0, p, e, g)
        elif kind == COUNT:
            call2(X[F_SHORTEN], X, e, p)
        if X[FAILED] != 0:  # the partial stays as it was
            if kind != COUNT:
                E[s] = before
            return False
    if kind == ABSENT_LOGICAL:
        return call5(X[F_AFTER], X, l0, p, c, e, before) != 0
    if _take_returned(X, p) and kind != ABSENT:
        give(X, e)
    if L[lp + CHANGED] != 0:
        return True
    if kind == COUNT:
        return X[SEQUENCE] != 0 and L[lp + SUCCESS] == 0
    E[s] = NO_EVENT
    if X[SEQUENCE] != 0 and kind != LOGICAL:
        start_reset(X, l0, p)
    return X[SEQUENCE] != 0 and kind != ABSENT


@unit
def after_absent_logical(X: Words, l0: int, p: int, c: int, e: int, before: int) -> int:
    """The end of `AbsentLogicalPreStateProcessor.processAndReturn`, which never returns an event itself; 1 where the
    partial is to leave the list."""
    P, L, E = pool(X, XP), pool(X, XL), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    keeps = P[f + WAIT] != -1 or (X[SEQUENCE] != 0 and P[f + IS_OR] == 0 and P[f + EVERY] >= 0)
    if keeps or L[lp + CHANGED] == 0:
        E[e + E_SLOTS + p] = before
    if _take_returned(X, p):
        if X[SEQUENCE] != 0:
            remove_from(X, l0 + P[f + PARTNER] * L_SIZE, e)
        return 1
    return 1 if L[lp + CHANGED] == 0 and X[SEQUENCE] != 0 else 0


@unit
def process(X: Words, l0: int, p: int, g: int, plain: int, c: int) -> int:
    """`processAndReturn` over the pending list, from cell `c` on; with `BY_INDEX` over those partials that the event
    can match (`index.look`), as the others would not change."""
    P, N, f = pool(X, XP), pool(X, XN), p * P_SIZE
    lp, indexed, b = l0 + p * L_SIZE, X[BY_INDEX] != 0, -1
    bounded, keyed = indexed and P[f + BOUND] >= 0, indexed and P[f + KEY_COUNT] > 0
    strict, renew = P[f + STRICT] != 0, False
    v, low = 0.0, np.inf
    if bounded:
        v = bound_value(X, p, g, NONE)
        b = N[c + N_BUCKET]
        renew = (pool(X, XB)[b + B_HEAD] if keyed else pool(X, XL)[lp + PEND]) == c
    tries = 0
    while c != 0:
        gone = False
        after = N[c + N_DOWN] if keyed else N[c + N_NEXT]
        take = not keyed or N[c + N_OWNER] == lp
        if take and bounded:
            u = as_real(N[c + N_VALUE])
            take = v > u or (v == u and not strict)
        if take:
            tries += 1
            if tries > FREE_TRIES and not has_room(X):
                return c
            gone = _goes(X, l0, p, g, c, plain != 0)
            if X[FAILED] != 0:
                return NONE_LEFT
            if gone:
                take_pending(X, lp, c)
        if renew and not gone:
            u = as_real(N[c + N_VALUE])
            low = u if u < low else low
        c = after
    if renew:
        if keyed:
            if pool(X, XB)[b + B_HEAD] != 0:
                pool(X, XB)[b + B_BOUND] = as_word(low)
        else:
            pool(X, XL)[lp + LEAST_VALUE] = as_word(low)
    return NONE_LEFT


@compiled
def start_again(X: Words, l0: int, p: int, g: int) -> bool:
    """Shortcut for an event that starts a match of a first state under `every`: normally the waiting partial without
    events would take the event, and an empty copy of it would wait instead. False if the shortcut does not apply."""
    P, L, E = pool(X, XP), pool(X, XL), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    if P[f + AGAIN] == 0 or L[lp + PEND_N] != 1 or L[lp + NEW] != 0:
        return False
    t = pool(X, XET)[g]
    E[pool(X, XN)[L[lp + PEND] + N_PARTIAL] + E_TIME] = t
    L[lp + COPIED] = 1
    e, more = new_partial(X), quiet(X, XE)
    more[e + E_TIME] = t
    more[e + E_SLOTS + p] = g
    more[e + E_REFS] = 1
    if P[f + LAST_STATE] != 0:
        give(X, e)
    if P[f + NEXT] >= 0:
        add_state(X, l0, P[f + NEXT], e)
        if _take_returned(X, p):
            give(X, e)
    drop_partial(X, e)
    return True
