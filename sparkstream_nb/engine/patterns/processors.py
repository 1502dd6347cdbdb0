"""The processors of a pattern (compiled), equivalent to Siddhi's `*PreStateProcessor` and `*PostStateProcessor`.

Functions carry the names of Siddhi's methods, if there is one. `l0` is where the lists of the current partition
instance start, `lp` a processor's own; `g` the log number of the event, `e` a partial.
"""

from __future__ import annotations

from .machine import (
    append_new,
    clear_new,
    clear_pending,
    move_new,
    remove_from,
    remove_new,
    remove_pending,
    reset_times,
)
from .machine_memory import (
    ABSENT,
    ABSENT_LOGICAL,
    ACTIVE,
    C_COUNT,
    C_LEFT,
    CALLBACK,
    CHANGED,
    COPIED,
    COUNT,
    E_EXPIRED,
    E_GIVEN,
    E_LEFT,
    E_REFS,
    E_SLOTS,
    E_TIME,
    EVERY,
    F_ADD,
    F_EVERY,
    F_NOTIFY,
    F_UPDATE,
    HIGH,
    INIT_AGAIN,
    INITIALIZED,
    IS_OR,
    KIND,
    L_SIZE,
    LAST_STATE,
    LEAST,
    LOGICAL,
    LOW,
    M_STARTS,
    MOST,
    N_LEFT,
    N_NEXT,
    N_PARTIAL,
    NEW,
    NEW_N,
    NEXT,
    NO_EVENT,
    NP,
    P_SIZE,
    PARTNER,
    PEND,
    PEND_N,
    R_CAP,
    R_N,
    RENEWS,
    RESET,
    RETURNS,
    RISING,
    SCHEDULED,
    SEQUENCE,
    START,
    START_N,
    STARTED,
    STEADY,
    STREAM,
    SUCCESS,
    T_LEFT,
    WAIT,
    WITHIN,
    WITHIN_EVERY,
    XC,
    XE,
    XET,
    XL,
    XN,
    XP,
    XR,
    XV,
)  # fmt: skip
from .partial_matches import FAR, clear_slot, copy_partial, drop_partial, first_event, is_expired, new_partial
from .pointers import Words, call2, call3, called, compiled, pool, unit

FREE_TRIES = 4
"""Maximum number of partials that a state may take for one event before it asks for room."""


@compiled
def has_room(X: Words) -> bool:
    """True if the pools have room to process one further partial, whose effects are bounded by the number of states."""
    n = 4 * X[NP] + 8
    return X[N_LEFT] > n and X[E_LEFT] > n and X[C_LEFT] > 4 and X[T_LEFT] > n and X[R_N] + n < X[R_CAP]


@compiled
def has_room_for_event(X: Words) -> bool:
    """True if an event can be processed with `FREE_TRIES` partials at each state without asking again."""
    n = (4 * X[NP] + 8) * (FREE_TRIES * X[NP] + 1)
    return X[N_LEFT] > n and X[E_LEFT] > n and X[C_LEFT] > n and X[T_LEFT] > n and X[R_N] + n < X[R_CAP]


@compiled
def give(X: Words, e: int) -> None:
    """Adds a partial to the output for the selector (`returnEventChunk.add`), at most once."""
    E = pool(X, XE)
    if E[e + E_GIVEN] == 0:
        E[e + E_GIVEN] = 1
        pool(X, XR)[X[R_N]] = e
        X[R_N] += 1
        E[e + E_REFS] += 1


# ------------------------------------------------------------------------------------------------- adding states


@called
def _add_logical(X: Words, l0: int, p: int, e: int) -> None:
    L, P = pool(X, XL), pool(X, XP)
    lp, other = l0 + p * L_SIZE, P[p * P_SIZE + PARTNER]
    lo = l0 + other * L_SIZE
    if P[p * P_SIZE + START] != 0 or X[SEQUENCE] != 0:
        if L[lp + NEW_N] == 0:
            append_new(X, lp, p, e)
        if L[lo + NEW_N] == 0:
            append_new(X, lo, other, e)
    else:
        append_new(X, lp, p, e)
        append_new(X, lo, other, e)


@called
def _add_one(X: Words, l0: int, p: int, e: int) -> None:
    """`addState` of one processor, without the partials that a count of zero passes on."""
    L, P, E = pool(X, XL), pool(X, XP), pool(X, XE)
    lp, kind, f = l0 + p * L_SIZE, P[p * P_SIZE + KIND], p * P_SIZE
    if kind in (STREAM, COUNT):
        if X[SEQUENCE] == 0 or L[lp + NEW_N] == 0:
            append_new(X, lp, p, e)
    elif kind == LOGICAL:
        _add_logical(X, l0, p, e)
    elif L[lp + ACTIVE] != 0:
        if kind == ABSENT:
            E[e + E_REFS] += 1
            if X[SEQUENCE] != 0:
                clear_new(X, lp)
            append_new(X, lp, p, e)
            E[e + E_REFS] -= 1
            if P[f + START] == 0:
                L[lp + SCHEDULED] = E[e + E_TIME] + P[f + WAIT]
                call3(X[F_NOTIFY], X, lp, p, L[lp + SCHEDULED])
        else:
            _add_logical(X, l0, p, e)
            if P[f + START] == 0 and P[f + WAIT] != -1:
                call3(X[F_NOTIFY], X, lp, p, E[e + E_TIME] + P[f + WAIT])
                other = P[f + PARTNER]
                if P[other * P_SIZE + KIND] == ABSENT_LOGICAL:
                    call3(X[F_NOTIFY], X, l0 + other * L_SIZE, other, E[e + E_TIME] + P[other * P_SIZE + WAIT])


@unit
def add_every(X: Words, l0: int, p: int, e: int) -> int:
    """`addEveryState`: a copy of `e` without the events from this state on waits here again."""
    P, E, L = pool(X, XP), pool(X, XE), pool(X, XL)
    kind, other, lp = P[p * P_SIZE + KIND], P[p * P_SIZE + PARTNER], l0 + p * L_SIZE
    f = copy_partial(X, e)
    if kind == ABSENT_LOGICAL:
        g = E[f + E_SLOTS + p]
        if g != NO_EVENT:
            E[f + E_TIME] = pool(X, XET)[g]
        clear_slot(X, f, p)
    else:
        for k in range(p, X[NP]):
            clear_slot(X, f, k)
    append_new(X, lp, p, f)
    if kind in (LOGICAL, ABSENT_LOGICAL):
        clear_slot(X, f, other)
        append_new(X, l0 + other * L_SIZE, other, f)
    elif kind == ABSENT:
        L[lp + SCHEDULED] = E[e + E_TIME] + P[p * P_SIZE + WAIT]
        call3(X[F_NOTIFY], X, lp, p, L[lp + SCHEDULED])
    return 0


@compiled
def _skippable(X: Words, p: int, e: int) -> bool:
    """True if a partial passes a counted state at once, since that needs no event."""
    P = pool(X, XP)
    f = p * P_SIZE
    return P[f + KIND] == COUNT and P[f + LEAST] == 0 and pool(X, XE)[e + E_SLOTS + p] == 0


@compiled
def _reach_min_count(X: Words, l0: int, p: int) -> None:
    """The first half of `CountPostStateProcessor.processMinCountReached`: of a last state, a match."""
    if pool(X, XP)[p * P_SIZE + LAST_STATE] != 0:
        pool(X, XL)[l0 + p * L_SIZE + CHANGED] = 1
        pool(X, XV)[p] = 1


@unit
def add_any(X: Words, l0: int, p: int, e: int) -> int:
    """`add_state` of any kind of state."""
    P = pool(X, XP)
    first, depth = p, 0
    while True:
        # An absent state that is not active takes nothing; the partial is kept alive by the caller.
        _add_one(X, l0, p, e)
        if not _skippable(X, p, e):
            break
        _reach_min_count(X, l0, p)
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
            call3(X[F_EVERY], X, l0, P[p * P_SIZE + EVERY], e)
    return 0


@compiled
def add_state(X: Words, l0: int, p: int, e: int) -> None:
    """`addState`, and also to the next state if this one needs no event."""
    P, f = pool(X, XP), p * P_SIZE
    if P[f + KIND] > COUNT or _skippable(X, p, e):
        call3(X[F_ADD], X, l0, p, e)
    elif X[SEQUENCE] == 0 or pool(X, XL)[l0 + p * L_SIZE + NEW_N] == 0:
        append_new(X, l0 + p * L_SIZE, p, e)


@called
def init(X: Words, l0: int, p: int) -> None:
    """`StreamPreStateProcessor.init`: a start state gets a partial without events."""
    L, P, E = pool(X, XL), pool(X, XP), pool(X, XE)
    lp, f = l0 + p * L_SIZE, p * P_SIZE
    if P[f + START] != 0 and (L[lp + INITIALIZED] == 0 or P[f + INIT_AGAIN] != 0):
        e = new_partial(X)
        E[e + E_REFS] = 1
        add_state(X, l0, p, e)
        drop_partial(X, e)
        L[lp + INITIALIZED] = 1


@compiled
def start_reset(X: Words, l0: int, p: int) -> None:
    """`callbackPreStateProcessor.startStateReset` of the processor `p`, if it has one."""
    c = pool(X, XP)[p * P_SIZE + CALLBACK]
    if c >= 0:
        pool(X, XL)[l0 + c * L_SIZE + RESET] = 1


# -------------------------------------------------------------------------------------------- stabilising states


@unit
def update_state(X: Words, l0: int, p: int) -> int:
    """`updateState`."""
    L, P = pool(X, XL), pool(X, XP)
    lp, kind = l0 + p * L_SIZE, P[p * P_SIZE + KIND]
    if kind == COUNT and L[lp + RESET] != 0:
        L[lp + RESET] = 0
        init(X, l0, p)
    if L[lp + NEW] != 0:
        move_new(X, lp, p)
    if kind in (LOGICAL, ABSENT_LOGICAL):
        other = P[p * P_SIZE + PARTNER]
        move_new(X, l0 + other * L_SIZE, other)
    return 0


@compiled
def is_blank_start(X: Words, l0: int, p: int) -> bool:
    """True if a start state of a sequence holds only the partial without events that it would get again before the next
    event, so that it can keep it."""
    L, P, E = pool(X, XL), pool(X, XP), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    if P[f + KIND] != STREAM or P[f + START] == 0 or P[f + EVERY] < 0 or P[f + CALLBACK] >= 0:
        return False
    if L[lp + PEND_N] != 1 or L[lp + NEW] != 0:
        return False
    e = pool(X, XN)[L[lp + PEND] + N_PARTIAL]
    return E[e + E_REFS] == 1


@compiled
def keep_blank_start(X: Words, l0: int, p: int) -> bool:
    """`reset_state` of a start state that needs no other partial: true if it is one. Its partial is as new, except for
    the copy that the last event left, which Siddhi still has among the new ones.
    """
    L, blank = pool(X, XL), is_blank_start(X, l0, p)
    if blank and L[l0 + p * L_SIZE + COPIED] == 0:
        pool(X, XE)[pool(X, XN)[L[l0 + p * L_SIZE + PEND] + N_PARTIAL] + E_TIME] = -1
    L[l0 + p * L_SIZE + COPIED] = 0
    return blank


@unit
def reset_state(X: Words, l0: int, p: int) -> int:
    """`resetState`, which a sequence runs before every event."""
    L, P = pool(X, XL), pool(X, XP)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    kind = P[f + KIND]
    if kind in (LOGICAL, ABSENT_LOGICAL):
        lo = l0 + P[f + PARTNER] * L_SIZE
        if P[f + IS_OR] == 0 and L[lp + PEND_N] != L[lo + PEND_N]:
            return 0
        clear_pending(X, lp)
        clear_pending(X, lo)
    elif L[lp + PEND] != 0:
        if keep_blank_start(X, l0, p):
            return 0
        clear_pending(X, lp)
    if P[f + START] != 0 and (kind == ABSENT or L[lp + NEW] == 0):
        after = P[f + NEXT]
        if X[SEQUENCE] != 0 and P[f + EVERY] < 0 and after >= 0 and L[l0 + after * L_SIZE + PEND] != 0:
            return 0
        init(X, l0, p)
    return 0


@called
def _expire_new(X: Words, lp: int, p: int, t: int) -> int:
    """Drops expired partials of a new list; answers the last of them that was not known as expired, held, or 0."""
    L, N, E, P = pool(X, XL), pool(X, XN), pool(X, XE), pool(X, XP)
    steady = P[p * P_SIZE + STEADY] != 0
    if steady and L[lp + LOW] <= t and t <= L[lp + HIGH]:
        return 0
    from_head = steady and L[lp + RISING] != 0 and t >= L[lp + LOW]
    last = 0
    low, high = -FAR, FAR
    c = L[lp + NEW]
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
            remove_new(X, lp, c)
        elif steady:
            starts, times = pool(X, M_STARTS), pool(X, XET)
            if from_head:  # in order of their first events: no later one can have expired
                L[lp + HIGH] = times[first_event(X, e, starts[0])] + X[WITHIN]
                return last
            for i in range(X[START_N]):
                g = first_event(X, e, starts[i])
                if g != 0:
                    low = max(low, times[g] - X[WITHIN])
                    high = min(high, times[g] + X[WITHIN])
        c = after
    if L[lp + NEW] == 0:
        reset_times(X, lp)
    else:
        L[lp + LOW] = low
        L[lp + HIGH] = high
    return last


@unit
def expire_events(X: Words, l0: int, p: int, t: int) -> int:
    """`expireEvents`: from the head of the pending list, and anywhere in the new list."""
    L, N, E, P = pool(X, XL), pool(X, XN), pool(X, XE), pool(X, XP)
    lp = l0 + p * L_SIZE
    last = 0
    c = L[lp + PEND]
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
        remove_pending(X, lp, c)
        c = after
    if L[lp + NEW] != 0:
        later = _expire_new(X, lp, p, t)
        if later != 0:
            if last != 0:
                drop_partial(X, last)
            last = later
    if last != 0:
        again = P[p * P_SIZE + WITHIN_EVERY]
        if again >= 0:
            call3(X[F_EVERY], X, l0, again, last)
            call2(X[F_UPDATE], X, l0, again)
        drop_partial(X, last)
    return 0


# ------------------------------------------------------------------------------------------------ post processors


@compiled
def advance(X: Words, l0: int, p: int, e: int, g: int) -> None:
    """`StreamPostStateProcessor.process`: the state is reached, so on to the next."""
    P, L = pool(X, XP), pool(X, XL)
    f = p * P_SIZE
    L[l0 + p * L_SIZE + CHANGED] = 1
    pool(X, XE)[e + E_TIME] = pool(X, XET)[g]
    if P[f + LAST_STATE] != 0:
        pool(X, XV)[p] = 1
    if P[f + NEXT] >= 0:
        add_state(X, l0, P[f + NEXT], e)
    if P[f + EVERY] >= 0:
        call3(X[F_EVERY], X, l0, P[f + EVERY], e)
    start_reset(X, l0, p)


@unit
def count(X: Words, l0: int, p: int, e: int, g: int) -> int:
    """`CountPostStateProcessor.process`."""
    P, L, E = pool(X, XP), pool(X, XL), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    n, least, sequence = pool(X, XC)[E[e + E_SLOTS + p] + C_COUNT], P[f + LEAST], X[SEQUENCE] != 0
    L[lp + SUCCESS] = 1
    E[e + E_TIME] = pool(X, XET)[g]
    # Below its least number Siddhi forgets the partial of a sequence, so that `x<2>` never matches; here it waits on.
    stays = sequence and (P[f + LAST_STATE] == 0 or least == 0)
    reached = n == least and not stays
    if reached:
        _reach_min_count(X, l0, p)
    if P[f + NEXT] >= 0 and (reached or (stays and n >= least)):
        add_state(X, l0, P[f + NEXT], e)
    if reached and P[f + EVERY] >= 0:
        call3(X[F_EVERY], X, l0, P[f + EVERY], e)
    if (stays and n != P[f + MOST]) or (sequence and not stays and n < least):
        add_state(X, l0, p, e)
    if n == P[f + MOST] and n >= least:
        L[lp + CHANGED] = 1
    return 0


@called
def _partner_can_proceed(X: Words, l0: int, p: int, e: int) -> bool:
    """`AbsentLogicalPreStateProcessor.partnerCanProceed` of the absent side `p`."""
    P, L = pool(X, XP), pool(X, XL)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    came = pool(X, XE)[e + E_SLOTS + p] != NO_EVENT
    if X[SEQUENCE] != 0 and P[f + EVERY] < 0 and L[lp + SCHEDULED] > 0:
        return False
    if P[f + WAIT] != -1:
        return came
    if P[f + EVERY] < 0:
        return not came
    if L[lp + SCHEDULED] > 0:
        L[lp + SCHEDULED] = 0
        init(X, l0, p)
        return False
    return True


@unit
def logical(X: Words, l0: int, p: int, e: int, g: int) -> int:
    """`LogicalPostStateProcessor.process`. A state that is the whole pattern passes a match on through its right side:
    Siddhi notifies that side only for `or`, so that `A and B` is lost if A comes last (siddhi-io/siddhi#1793).
    """
    P = pool(X, XP)
    f = p * P_SIZE
    other, is_or = P[f + PARTNER], P[f + IS_OR] != 0
    if is_or:
        ready = True
    elif P[other * P_SIZE + KIND] == ABSENT_LOGICAL:
        ready = _partner_can_proceed(X, l0, other, e)
    else:
        ready = pool(X, XE)[e + E_SLOTS + other] != NO_EVENT
    if ready:
        advance(X, l0, p, e, g)
    else:
        pool(X, XL)[l0 + p * L_SIZE + CHANGED] = 1
    if ready and P[other * P_SIZE + LAST_STATE] != 0 and P[f + RETURNS] == other:
        pool(X, XV)[other] = 1
    return 0


@unit
def came(X: Words, l0: int, p: int, e: int, g: int) -> int:
    """`AbsentStreamPostStateProcessor` and `AbsentLogicalPostStateProcessor`: the event that must not occur has
    occurred."""
    P, L = pool(X, XP), pool(X, XL)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    t = pool(X, XET)[g]
    L[lp + CHANGED] = 1
    pool(X, XV)[p] = 1
    if P[f + KIND] == ABSENT_LOGICAL:
        L[lp + SCHEDULED] = t
        if P[f + RENEWS] >= 0:
            L[lp + SCHEDULED] = 0
            call3(X[F_EVERY], X, l0, P[f + RENEWS], e)
            remove_from(X, l0 + P[f + PARTNER] * L_SIZE, e)
        return 0
    pool(X, XE)[e + E_TIME] = t
    if P[f + START] != 0 and P[f + EVERY] == p:
        call3(X[F_EVERY], X, l0, p, e)
    elif P[f + RENEWS] >= 0:  # Siddhi forgets the group, which never matches again
        call3(X[F_EVERY], X, l0, P[f + RENEWS], e)
    L[lp + SCHEDULED] = t + P[f + WAIT]
    call3(X[F_NOTIFY], X, lp, p, L[lp + SCHEDULED])
    return 0


@unit
def partition_created(X: Words, l0: int, p: int, now: int) -> int:
    """`partitionCreated`: an absent start state begins to wait."""
    L, P = pool(X, XL), pool(X, XP)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    if L[lp + STARTED] != 0 or P[f + KIND] < ABSENT:
        return 0
    L[lp + STARTED] = 1
    if P[f + START] != 0 and P[f + WAIT] != -1 and L[lp + ACTIVE] != 0:
        if P[f + KIND] == ABSENT:
            L[lp + SCHEDULED] = now + P[f + WAIT]
        call3(X[F_NOTIFY], X, lp, p, now + P[f + WAIT])
    return 0
