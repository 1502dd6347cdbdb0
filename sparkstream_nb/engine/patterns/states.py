"""The processors of a pattern, compiled: what Siddhi's `*PreStateProcessor` and `*PostStateProcessor` do.

Functions carry the names of Siddhi's methods where there is one. `l0` is where the lists of the current partition
instance start, `l` a processor's own; `g` the log number of the event, `e` a partial.
"""

from __future__ import annotations

import math
from typing import Any

from ..jit import kernel

from .check import passes
from .machine import (
    add_event, append_new, bound_value, clear_new, clear_pending, clear_slot, copy_partial, drop_partial, index_key,
    is_expired, move_new, new_partial, notify_at, remove_last_event, remove_new, remove_pending, reset_times,
    first_event,
)  # fmt: skip
from .memory import (
    ABSENT, ABSENT_LOGICAL, ACTIVE, B_BOUND, B_HEAD, BOUND, CALLBACK, CHANGED, COUNT, C_COUNT, C_LEFT, E_EXPIRED,
    E_LEFT, E_REFS, E_SLOTS, E_TIME, EMPTY_EVENT, EVERY, HIGH, INIT_AGAIN, INITIALIZED, IS_OR, KEYS, KIND,
    L_SIZE, LAST_STATE, LEAST, LOGICAL, LOW, M_STARTS, MOST, N_BUCKET, N_DOWN, N_LEFT, N_NEXT, N_OWNER, N_PARTIAL,
    N_VALUE, NEW, NEW_N, NEXT, NO_EVENT, NOW, NP, P_SIZE, PARTNER, PEND, PEND_N, R_CAP, R_N, RESET, RETURNS, RISING,
    SCHEDULED, SEQUENCE, START, START_N, STEADY, STREAM, SUCCESS, T_LEFT, WAIT, WITHIN, WITHIN_EVERY, XB, XC, XE, XET, XL, XN,
    XP, XR, XV, as_real, as_word, words,
)  # fmt: skip
from .machine import FAR

NONE_LEFT = -1
"""What `process_*` answers when it is done; otherwise the cell to go on with after memory was added."""


@kernel
def has_room(X: Any) -> bool:
    """Whether one further partial can be processed: what it can cause at most is bounded by the number of states."""
    n = 4 * X[NP] + 8
    return X[N_LEFT] > n and X[E_LEFT] > n and X[C_LEFT] > 4 and X[T_LEFT] > n and X[R_N] + n < X[R_CAP]


@kernel
def give(X: Any, e: int) -> None:
    """Puts a partial into what goes to the selector (`returnEventChunk.add`)."""
    words(X[XR])[X[R_N]] = e
    X[R_N] += 1
    words(X[XE])[e + E_REFS] += 1


# ------------------------------------------------------------------------------------------------- adding states


@kernel
def _add_logical(X: Any, l0: int, p: int, e: int) -> None:
    L, P = words(X[XL]), words(X[XP])
    l, other = l0 + p * L_SIZE, P[p * P_SIZE + PARTNER]
    lo = l0 + other * L_SIZE
    if P[p * P_SIZE + START] != 0 or X[SEQUENCE] != 0:
        if L[l + NEW_N] == 0:
            append_new(X, l, p, e)
        if L[lo + NEW_N] == 0:
            append_new(X, lo, other, e)
    else:
        append_new(X, l, p, e)
        append_new(X, lo, other, e)


@kernel
def _add_one(X: Any, l0: int, p: int, e: int) -> None:
    """`addState` of one processor, without what a count of zero passes on."""
    L, P, E = words(X[XL]), words(X[XP]), words(X[XE])
    l, kind, f = l0 + p * L_SIZE, P[p * P_SIZE + KIND], p * P_SIZE
    if kind == STREAM or kind == COUNT:
        if X[SEQUENCE] == 0 or L[l + NEW_N] == 0:
            append_new(X, l, p, e)
    elif kind == LOGICAL:
        _add_logical(X, l0, p, e)
    elif L[l + ACTIVE] != 0:
        if kind == ABSENT:
            E[e + E_REFS] += 1
            if X[SEQUENCE] != 0:
                clear_new(X, l)
            append_new(X, l, p, e)
            E[e + E_REFS] -= 1
            if P[f + START] == 0:
                L[l + SCHEDULED] = E[e + E_TIME] + P[f + WAIT]
                notify_at(X, l, p, L[l + SCHEDULED])
        else:
            _add_logical(X, l0, p, e)
            if P[f + START] == 0 and P[f + WAIT] != -1:
                notify_at(X, l, p, E[e + E_TIME] + P[f + WAIT])
                other = P[f + PARTNER]
                if P[other * P_SIZE + KIND] == ABSENT_LOGICAL:
                    notify_at(X, l0 + other * L_SIZE, other, E[e + E_TIME] + P[other * P_SIZE + WAIT])


@kernel
def add_every(X: Any, l0: int, p: int, e: int) -> None:
    """`addEveryState`: a copy of `e` without the events from this state on waits here anew."""
    P, E, L = words(X[XP]), words(X[XE]), words(X[XL])
    kind, other, l = P[p * P_SIZE + KIND], P[p * P_SIZE + PARTNER], l0 + p * L_SIZE
    f = copy_partial(X, e)
    if kind == ABSENT_LOGICAL:
        g = E[f + E_SLOTS + p]
        if g != NO_EVENT:
            E[f + E_TIME] = words(X[XET])[g]
        clear_slot(X, f, p)
    else:
        for k in range(p, X[NP]):
            clear_slot(X, f, k)
    append_new(X, l, p, f)
    if kind == LOGICAL or kind == ABSENT_LOGICAL:
        clear_slot(X, f, other)
        append_new(X, l0 + other * L_SIZE, other, f)
    elif kind == ABSENT:
        L[l + SCHEDULED] = E[e + E_TIME] + P[p * P_SIZE + WAIT]
        notify_at(X, l, p, L[l + SCHEDULED])


@kernel
def _skippable(X: Any, p: int, e: int) -> bool:
    """Whether a partial passes a counted state at once, since that needs no event."""
    P = words(X[XP])
    f = p * P_SIZE
    return P[f + KIND] == COUNT and P[f + LEAST] == 0 and words(X[XE])[e + E_SLOTS + p] == 0


@kernel
def _reached(X: Any, l0: int, p: int) -> None:
    """The first half of `CountPostStateProcessor.processMinCountReached`: of a last state, a match."""
    if words(X[XP])[p * P_SIZE + LAST_STATE] != 0:
        words(X[XL])[l0 + p * L_SIZE + CHANGED] = 1
        words(X[XV])[p] = 1


@kernel
def add_state(X: Any, l0: int, p: int, e: int) -> None:
    """`addState`, and on to the next state where this one needs no event."""
    P = words(X[XP])
    first, depth = p, 0
    while True:
        # An absent state that is not active takes nothing; the partial is kept alive by the caller.
        _add_one(X, l0, p, e)
        if not _skippable(X, p, e):
            break
        _reached(X, l0, p)
        depth += 1
        if P[p * P_SIZE + NEXT] < 0:
            break
        p = P[p * P_SIZE + NEXT]
    while depth > 0:
        depth -= 1
        p = first
        for _ in range(depth):
            p = P[p * P_SIZE + NEXT]
        if P[p * P_SIZE + EVERY] >= 0:
            add_every(X, l0, P[p * P_SIZE + EVERY], e)


@kernel
def init(X: Any, l0: int, p: int) -> None:
    """`StreamPreStateProcessor.init`: a start state gets a partial without events."""
    L, P, E = words(X[XL]), words(X[XP]), words(X[XE])
    l, f = l0 + p * L_SIZE, p * P_SIZE
    if P[f + START] != 0 and (L[l + INITIALIZED] == 0 or P[f + INIT_AGAIN] != 0):
        e = new_partial(X)
        E[e + E_REFS] = 1
        add_state(X, l0, p, e)
        drop_partial(X, e)
        L[l + INITIALIZED] = 1


@kernel
def start_reset(X: Any, l0: int, p: int) -> None:
    """`callbackPreStateProcessor.startStateReset` of the processor `p`, if it has one."""
    c = words(X[XP])[p * P_SIZE + CALLBACK]
    if c >= 0:
        words(X[XL])[l0 + c * L_SIZE + RESET] = 1


# -------------------------------------------------------------------------------------------- stabilising states


@kernel
def update_state(X: Any, l0: int, p: int) -> None:
    """`updateState`."""
    L, P = words(X[XL]), words(X[XP])
    l, kind = l0 + p * L_SIZE, P[p * P_SIZE + KIND]
    if kind == COUNT and L[l + RESET] != 0:
        L[l + RESET] = 0
        init(X, l0, p)
    if L[l + NEW] != 0:
        move_new(X, l, p)
    if kind == LOGICAL or kind == ABSENT_LOGICAL:
        other = P[p * P_SIZE + PARTNER]
        move_new(X, l0 + other * L_SIZE, other)


@kernel
def reset_state(X: Any, l0: int, p: int) -> None:
    """`resetState`: what a sequence does before every event."""
    L, P = words(X[XL]), words(X[XP])
    f, l = p * P_SIZE, l0 + p * L_SIZE
    kind = P[f + KIND]
    if kind == LOGICAL or kind == ABSENT_LOGICAL:
        lo = l0 + P[f + PARTNER] * L_SIZE
        if P[f + IS_OR] == 0 and L[l + PEND_N] != L[lo + PEND_N]:
            return
        clear_pending(X, l)
        clear_pending(X, lo)
    elif L[l + PEND] != 0:
        clear_pending(X, l)
    if P[f + START] != 0 and (kind == ABSENT or L[l + NEW] == 0):
        after = P[f + NEXT]
        if X[SEQUENCE] != 0 and P[f + EVERY] < 0 and after >= 0 and L[l0 + after * L_SIZE + PEND] != 0:
            return
        init(X, l0, p)


@kernel
def _expire_new(X: Any, l: int, p: int, t: int) -> int:
    """Drops expired partials of a new list; answers the last of them that was not known as expired, held, or 0."""
    L, N, E, P = words(X[XL]), words(X[XN]), words(X[XE]), words(X[XP])
    steady = P[p * P_SIZE + STEADY] != 0
    if steady and L[l + LOW] <= t and t <= L[l + HIGH]:
        return 0
    from_head = steady and L[l + RISING] != 0 and t >= L[l + LOW]
    last = 0
    low, high = -FAR, FAR
    c = L[l + NEW]
    while c != 0:
        after = N[c + N_NEXT]
        e = N[c + N_PARTIAL]
        if is_expired(X, e, t):
            if E[e + E_EXPIRED] == 0:
                E[e + E_EXPIRED] = 1
                if last != 0:
                    drop_partial(X, last)
                last = e
                E[e + E_REFS] += 1
            remove_new(X, l, c)
        elif steady:
            starts, times = words(X[M_STARTS]), words(X[XET])
            if from_head:  # in order of their first events: no later one can have expired
                L[l + HIGH] = times[first_event(X, e, starts[0])] + X[WITHIN]
                return last
            for i in range(X[START_N]):
                g = first_event(X, e, starts[i])
                if g != 0:
                    low = max(low, times[g] - X[WITHIN])
                    high = min(high, times[g] + X[WITHIN])
        c = after
    if L[l + NEW] == 0:
        reset_times(X, l)
    else:
        L[l + LOW] = low
        L[l + HIGH] = high
    return last


@kernel
def expire_events(X: Any, l0: int, p: int, t: int) -> None:
    """`expireEvents`: from the head of the pending list, and anywhere in the new list."""
    L, N, E, P = words(X[XL]), words(X[XN]), words(X[XE]), words(X[XP])
    l = l0 + p * L_SIZE
    last = 0
    c = L[l + PEND]
    while c != 0:
        e = N[c + N_PARTIAL]
        if not is_expired(X, e, t):
            break
        after = N[c + N_NEXT]
        if E[e + E_EXPIRED] == 0:
            E[e + E_EXPIRED] = 1
            if last != 0:
                drop_partial(X, last)
            last = e
            E[e + E_REFS] += 1
        remove_pending(X, l, c)
        c = after
    if L[l + NEW] != 0:
        later = _expire_new(X, l, p, t)
        if later != 0:
            if last != 0:
                drop_partial(X, last)
            last = later
    if last != 0:
        again = P[p * P_SIZE + WITHIN_EVERY]
        if again >= 0:
            add_every(X, l0, again, last)
            update_state(X, l0, again)
        drop_partial(X, last)


# ------------------------------------------------------------------------------------------------ post processors


@kernel
def _advance(X: Any, l0: int, p: int, e: int, g: int) -> None:
    """`StreamPostStateProcessor.process`: the state is reached, so on to the next."""
    P, L = words(X[XP]), words(X[XL])
    f = p * P_SIZE
    L[l0 + p * L_SIZE + CHANGED] = 1
    words(X[XE])[e + E_TIME] = words(X[XET])[g]
    if P[f + LAST_STATE] != 0:
        words(X[XV])[p] = 1
    if P[f + NEXT] >= 0:
        add_state(X, l0, P[f + NEXT], e)
    if P[f + EVERY] >= 0:
        add_every(X, l0, P[f + EVERY], e)
    start_reset(X, l0, p)


@kernel
def _count(X: Any, l0: int, p: int, e: int, g: int) -> None:
    """`CountPostStateProcessor.process`."""
    P, L, E = words(X[XP]), words(X[XL]), words(X[XE])
    f, l = p * P_SIZE, l0 + p * L_SIZE
    n = words(X[XC])[E[e + E_SLOTS + p] + C_COUNT]
    L[l + SUCCESS] = 1
    E[e + E_TIME] = words(X[XET])[g]
    if X[SEQUENCE] != 0 and P[f + LAST_STATE] == 0:
        # Below its least number Siddhi forgets the partial, so that `x<2>` never matches; here it waits on.
        if n >= P[f + LEAST] and P[f + NEXT] >= 0:
            add_state(X, l0, P[f + NEXT], e)
        if n != P[f + MOST]:
            add_state(X, l0, p, e)
    elif n == P[f + LEAST]:
        _reached(X, l0, p)
        if P[f + NEXT] >= 0:
            add_state(X, l0, P[f + NEXT], e)
        if P[f + EVERY] >= 0:
            add_every(X, l0, P[f + EVERY], e)
    elif X[SEQUENCE] != 0 and n < P[f + LEAST]:
        add_state(X, l0, p, e)
    if n == P[f + MOST] and n >= P[f + LEAST]:
        L[l + CHANGED] = 1


@kernel
def _partner_can_proceed(X: Any, l0: int, p: int, e: int) -> bool:
    """`AbsentLogicalPreStateProcessor.partnerCanProceed` of the absent side `p`."""
    P, L = words(X[XP]), words(X[XL])
    f, l = p * P_SIZE, l0 + p * L_SIZE
    came = words(X[XE])[e + E_SLOTS + p] != NO_EVENT
    if X[SEQUENCE] != 0 and P[f + EVERY] < 0 and L[l + SCHEDULED] > 0:
        return False
    if P[f + WAIT] != -1:
        return came
    if P[f + EVERY] < 0:
        return not came
    if L[l + SCHEDULED] > 0:
        L[l + SCHEDULED] = 0
        init(X, l0, p)
        return False
    return True


@kernel
def _logical(X: Any, l0: int, p: int, e: int, g: int) -> None:
    """`LogicalPostStateProcessor.process`."""
    P = words(X[XP])
    f = p * P_SIZE
    other = P[f + PARTNER]
    if P[f + IS_OR] != 0:
        _advance(X, l0, p, e, g)
        if P[other * P_SIZE + LAST_STATE] != 0 and P[f + RETURNS] == other:
            words(X[XV])[other] = 1
        return
    if P[other * P_SIZE + KIND] == ABSENT_LOGICAL:
        ready = _partner_can_proceed(X, l0, other, e)
    else:
        ready = words(X[XE])[e + E_SLOTS + other] != NO_EVENT
    if ready:
        _advance(X, l0, p, e, g)
    else:
        words(X[XL])[l0 + p * L_SIZE + CHANGED] = 1


@kernel
def _came(X: Any, l0: int, p: int, e: int, g: int) -> None:
    """`AbsentStreamPostStateProcessor` and `AbsentLogicalPostStateProcessor`: what should not come has come."""
    P, L = words(X[XP]), words(X[XL])
    f, l = p * P_SIZE, l0 + p * L_SIZE
    t = words(X[XET])[g]
    L[l + CHANGED] = 1
    words(X[XV])[p] = 1
    if P[f + KIND] == ABSENT_LOGICAL:
        L[l + SCHEDULED] = t
        return
    words(X[XE])[e + E_TIME] = t
    if P[f + START] != 0 and P[f + EVERY] == p:
        add_every(X, l0, p, e)
    L[l + SCHEDULED] = t + P[f + WAIT]
    notify_at(X, l, p, L[l + SCHEDULED])


# ----------------------------------------------------------------------------------------------- processAndReturn


@kernel
def _returned(X: Any, p: int) -> bool:
    """Whether the processor's last state has put out a match (`isEventReturned`), which this clears."""
    V = words(X[XV])
    last = words(X[XP])[p * P_SIZE + RETURNS]
    if V[last] == 0:
        return False
    V[last] = 0
    return True


@kernel
def _try_stream(X: Any, l0: int, p: int, g: int, c: int, plain: bool) -> bool:
    """One pending partial of a `StreamPreStateProcessor`; True where it left the list."""
    P, L, N, E = words(X[XP]), words(X[XL]), words(X[XN]), words(X[XE])
    f, l, e = p * P_SIZE, l0 + p * L_SIZE, N[c + N_PARTIAL]
    absent = P[f + KIND] == ABSENT
    L[l + CHANGED] = 0
    if plain and passes(X, p, e, g, c):
        E[e + E_SLOTS + p] = g
        if absent:
            _came(X, l0, p, e, g)
        else:
            _advance(X, l0, p, e, g)
    if _returned(X, p) and not absent:
        give(X, e)
    if L[l + CHANGED] != 0:
        remove_pending(X, l, c)
        return True
    E[e + E_SLOTS + p] = NO_EVENT
    if X[SEQUENCE] != 0:
        if not absent:
            remove_pending(X, l, c)
        start_reset(X, l0, p)
        return not absent
    return False


@kernel
def process_stream(X: Any, l0: int, p: int, g: int, plain: bool, c: int) -> int:
    """`processAndReturn` over the whole pending list, from cell `c` on."""
    N = words(X[XN])
    while c != 0:
        if not has_room(X):
            return c
        after = N[c + N_NEXT]
        _try_stream(X, l0, p, g, c, plain)
        c = after
    return NONE_LEFT


@kernel
def process_indexed(X: Any, l0: int, p: int, g: int, c: int) -> int:
    """`processAndReturn` over those pending partials that the event can match: the others would not change."""
    P, N, B = words(X[XP]), words(X[XN]), words(X[XB])
    l, bounded = l0 + p * L_SIZE, P[p * P_SIZE + BOUND] >= 0
    b = index_key(X, l, p, 0, g, False)
    if b < 0:
        return NONE_LEFT
    v, low = 0.0, math.inf
    if bounded:
        v = bound_value(X, p, 0, g, False)
        if not v >= as_real(B[b + B_BOUND]):
            return NONE_LEFT
    whole = c == 0
    if whole:
        c = B[b + B_HEAD]
    while c != 0:
        if not has_room(X):
            return c
        after = N[c + N_DOWN]
        gone = False
        if N[c + N_OWNER] == l and (not bounded or v >= as_real(N[c + N_VALUE])):
            gone = _try_stream(X, l0, p, g, c, True)
        if bounded and not gone:
            low = min(low, as_real(N[c + N_VALUE]))
        c = after
    if bounded and whole and B[b + B_HEAD] != 0:
        B[b + B_BOUND] = as_word(low)
    return NONE_LEFT


@kernel
def process_count(X: Any, l0: int, p: int, g: int, plain: bool, c: int) -> int:
    """`CountPreStateProcessor.processAndReturn`."""
    L, N, E = words(X[XL]), words(X[XN]), words(X[XE])
    l = l0 + p * L_SIZE
    while c != 0:
        if not has_room(X):
            return c
        after, e = N[c + N_NEXT], N[c + N_PARTIAL]
        s = e + E_SLOTS + p
        if (p + 1 < X[NP] and E[s + 1] != 0) or (p + 2 < X[NP] and E[s + 2] != 0):
            remove_pending(X, l, c)  # the next state has its event, so that this one takes no more
            c = after
            continue
        L[l + CHANGED] = 0
        L[l + SUCCESS] = 0
        if plain:
            add_event(X, e, p, g)
            if passes(X, p, e, g, c):
                _count(X, l0, p, e, g)
            else:
                remove_last_event(X, e, p)
        if _returned(X, p):
            give(X, e)
        if L[l + CHANGED] != 0 or (L[l + SUCCESS] == 0 and X[SEQUENCE] != 0):
            remove_pending(X, l, c)
        c = after
    return NONE_LEFT


@kernel
def process_logical(X: Any, l0: int, p: int, g: int, plain: bool, c: int) -> int:
    """`LogicalPreStateProcessor.processAndReturn`."""
    P, L, N, E = words(X[XP]), words(X[XL]), words(X[XN]), words(X[XE])
    f, l = p * P_SIZE, l0 + p * L_SIZE
    other = P[f + PARTNER]
    while c != 0:
        if not has_room(X):
            return c
        after, e = N[c + N_NEXT], N[c + N_PARTIAL]
        if P[f + IS_OR] != 0 and E[e + E_SLOTS + other] != NO_EVENT:
            remove_pending(X, l, c)
            c = after
            continue
        L[l + CHANGED] = 0
        E[e + E_SLOTS + p] = g
        if plain and passes(X, p, e, g, c):
            _logical(X, l0, p, e, g)
        if _returned(X, p):
            give(X, e)
        if L[l + CHANGED] != 0:
            remove_pending(X, l, c)
        else:
            E[e + E_SLOTS + p] = NO_EVENT
            if X[SEQUENCE] != 0:
                remove_pending(X, l, c)
        c = after
    return NONE_LEFT


@kernel
def process_absent_logical(X: Any, l0: int, p: int, g: int, plain: bool, c: int) -> int:
    """`AbsentLogicalPreStateProcessor.processAndReturn`; it never returns an event itself."""
    P, L, N, E = words(X[XP]), words(X[XL]), words(X[XN]), words(X[XE])
    f, l = p * P_SIZE, l0 + p * L_SIZE
    other = P[f + PARTNER]
    if L[l + ACTIVE] == 0:
        return NONE_LEFT
    keeps = P[f + WAIT] != -1 or (X[SEQUENCE] != 0 and P[f + IS_OR] == 0 and P[f + EVERY] >= 0)
    while c != 0:
        if not has_room(X):
            return c
        after, e = N[c + N_NEXT], N[c + N_PARTIAL]
        if P[f + IS_OR] != 0 and E[e + E_SLOTS + other] != NO_EVENT:
            remove_pending(X, l, c)
            c = after
            continue
        before = E[e + E_SLOTS + p]
        L[l + CHANGED] = 0
        E[e + E_SLOTS + p] = g
        if plain and passes(X, p, e, g, c):
            _came(X, l0, p, e, g)
        if keeps or L[l + CHANGED] == 0:
            E[e + E_SLOTS + p] = before
        E[e + E_REFS] += 1
        if _returned(X, p):
            remove_pending(X, l, c)
            if X[SEQUENCE] != 0:
                remove_from(X, l0 + other * L_SIZE, e)
        elif L[l + CHANGED] == 0 and X[SEQUENCE] != 0:
            remove_pending(X, l, c)
        drop_partial(X, e)
        c = after
    return NONE_LEFT


@kernel
def remove_from(X: Any, l: int, e: int) -> None:
    """Takes a partial out of a pending list, if it is there."""
    N = words(X[XN])
    c = words(X[XL])[l + PEND]
    while c != 0:
        if N[c + N_PARTIAL] == e:
            remove_pending(X, l, c)
            return
        c = N[c + N_NEXT]
