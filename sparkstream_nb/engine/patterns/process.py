"""What the states of a pattern do with an event, compiled: `processAndReturn` of Siddhi's `*PreStateProcessor`s."""

from __future__ import annotations

import math

from .index import bound_value, index_key
from .machine import remove_from, remove_pending
from .memory import (
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
    FAILED,
    FALSE,
    IS_OR,
    KIND,
    L_SIZE,
    LAST_STATE,
    LOGICAL,
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
    RETURNS,
    SEQUENCE,
    SLOW,
    STREAM,
    STRICT,
    SUCCESS,
    WAIT,
    XB,
    XE,
    XET,
    XL,
    XN,
    XP,
    XV,
)  # fmt: skip
from .partials import add_event, drop_partial, new_partial, remove_last_event
from .pointers import Words, as_real, as_word, call4, call5, compiled, pool, unit
from .states import FREE_TRIES, add_state, advance, give, has_room, start_reset

NONE_LEFT = -1
"""What `process` answers when it is done; otherwise the cell to go on with after memory was added."""


@compiled
def _returned(X: Words, p: int) -> bool:
    """Whether the processor's last state has put out a match (`isEventReturned`), which this clears."""
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
def _try(X: Words, l0: int, p: int, g: int, c: int, plain: bool) -> bool:
    """One pending partial and one event; True where it left the list."""
    P, L, N, E = pool(X, XP), pool(X, XL), pool(X, XN), pool(X, XE)
    f, lp, e = p * P_SIZE, l0 + p * L_SIZE, N[c + N_PARTIAL]
    s, kind, other = e + E_SLOTS + p, P[f + KIND], P[f + PARTNER]
    if kind == COUNT:
        if (p + 1 < X[NP] and E[s + 1] != 0) or (p + 2 < X[NP] and E[s + 2] != 0):
            remove_pending(X, lp, c)  # the next state has its event, so that this one takes no more
            return True
    elif other >= 0 and P[f + IS_OR] != 0 and E[e + E_SLOTS + other] != NO_EVENT:
        remove_pending(X, lp, c)
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
        if (P[f + PROGRAM] < 0 and P[f + SLOW] == 0) or call4(X[F_PASSES], X, p, e, g, c) != 0:
            _reach(X, l0, p, e, g)
        elif kind == COUNT:
            remove_last_event(X, e, p)
        if X[FAILED] != 0:  # the partial stays as it was
            if kind != COUNT:
                E[s] = before
            return False
    if kind == ABSENT_LOGICAL:
        return call5(X[F_AFTER], X, l0, p, c, e, before) != 0
    if _returned(X, p) and kind != ABSENT:
        give(X, e)
    if L[lp + CHANGED] != 0:
        remove_pending(X, lp, c)
        return True
    if kind == COUNT:
        if X[SEQUENCE] == 0 or L[lp + SUCCESS] != 0:
            return False
        remove_pending(X, lp, c)
        return True
    E[s] = NO_EVENT
    if X[SEQUENCE] == 0:
        return False
    if kind != ABSENT:
        remove_pending(X, lp, c)
    if kind != LOGICAL:
        start_reset(X, l0, p)
    return kind != ABSENT


@unit
def after_absent_logical(X: Words, l0: int, p: int, c: int, e: int, before: int) -> int:
    """The end of `AbsentLogicalPreStateProcessor.processAndReturn`, which never returns an event itself; 1 where the
    partial left the list."""
    P, L, E = pool(X, XP), pool(X, XL), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    keeps = P[f + WAIT] != -1 or (X[SEQUENCE] != 0 and P[f + IS_OR] == 0 and P[f + EVERY] >= 0)
    if keeps or L[lp + CHANGED] == 0:
        E[e + E_SLOTS + p] = before
    E[e + E_REFS] += 1
    gone = 1
    if _returned(X, p):
        remove_pending(X, lp, c)
        if X[SEQUENCE] != 0:
            remove_from(X, l0 + P[f + PARTNER] * L_SIZE, e)
    elif L[lp + CHANGED] == 0 and X[SEQUENCE] != 0:
        remove_pending(X, lp, c)
    else:
        gone = 0
    drop_partial(X, e)
    return gone


@unit
def process(X: Words, l0: int, p: int, g: int, plain: int, c: int) -> int:
    """`processAndReturn` over the whole pending list, from cell `c` on; with `BY_INDEX` (`c` 0 at the beginning) over
    those partials that the event can match, as the others would not change."""
    P, N, B = pool(X, XP), pool(X, XN), pool(X, XB)
    lp, indexed = l0 + p * L_SIZE, X[BY_INDEX] != 0
    bounded, renew = indexed and P[p * P_SIZE + BOUND] >= 0, False
    strict = P[p * P_SIZE + STRICT] != 0
    b = 0
    v, low = 0.0, math.inf
    if indexed:
        b = index_key(X, lp, p, g, NONE, FALSE)
        if b < 0:
            return NONE_LEFT
        if bounded:
            v = bound_value(X, p, g, NONE, FALSE)
            if not v >= as_real(B[b + B_BOUND]):
                return NONE_LEFT
        if c == 0:
            c = B[b + B_HEAD]
            renew = bounded
    tries = 0
    while c != 0:
        gone = False
        after = N[c + N_DOWN] if indexed else N[c + N_NEXT]
        take = not indexed or N[c + N_OWNER] == lp
        if take and bounded:
            u = as_real(N[c + N_VALUE])
            take = v > u or (v == u and not strict)
        if take:
            tries += 1
            if tries > FREE_TRIES and not has_room(X):
                return c
            gone = _try(X, l0, p, g, c, plain != 0)
            if X[FAILED] != 0:
                return NONE_LEFT
        if renew and not gone:
            low = min(low, as_real(N[c + N_VALUE]))
        c = after
    if renew and B[b + B_HEAD] != 0:
        B[b + B_BOUND] = as_word(low)
    return NONE_LEFT


@compiled
def start_again(X: Words, l0: int, p: int, g: int) -> bool:
    """An event that begins a match of a first state under `every`, done at once: the partial without events that waits
    there would go on with the event, and a copy of it without events would wait instead. False where it is not so."""
    P, L, E = pool(X, XP), pool(X, XL), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    if P[f + AGAIN] == 0 or L[lp + PEND_N] != 1 or L[lp + NEW] != 0:
        return False
    t = pool(X, XET)[g]
    E[pool(X, XN)[L[lp + PEND] + N_PARTIAL] + E_TIME] = t
    L[lp + COPIED] = 1
    e = new_partial(X)
    E[e + E_TIME] = t
    E[e + E_REFS] = 1
    E[e + E_SLOTS + p] = g
    if P[f + LAST_STATE] != 0:
        give(X, e)
    if P[f + NEXT] >= 0:
        add_state(X, l0, P[f + NEXT], e)
        if _returned(X, p):
            give(X, e)
    drop_partial(X, e)
    return True
