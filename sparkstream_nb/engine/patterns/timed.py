"""Timers of the absent states of a pattern (compiled)."""

from __future__ import annotations

from ..columnar.rows import ORDER_KEY_BITS
from .machine import leave_map, pop_heap, push_heap, remove_pending
from .machine_memory import (
    ABSENT,
    ABSENT_LOGICAL,
    ACTIVE,
    C_LEFT,
    CLOCKED,
    DRAINING,
    DUE_AT,
    DUE_N,
    E_GIVEN,
    E_LEFT,
    E_REFS,
    E_SLOTS,
    E_TIME,
    EMPTY_EVENT,
    EVERY,
    F_EVERY,
    F_NOTIFY,
    F_RESET,
    F_ROWS,
    F_UPDATE,
    FALSE,
    H_BUCKETS,
    H_HEAP,
    H_SIZE,
    HEAP_N,
    I_MOVED,
    I_NOW,
    INITIALIZED,
    IS_OR,
    KIND,
    L_SIZE,
    LAST_STATE,
    LIMIT,
    M_TIMERS,
    N_LEFT,
    N_NEXT,
    N_PARTIAL,
    NEEDED,
    NEW_N,
    NEXT,
    NEXT_DUE,
    NO_EVENT,
    NOW,
    NP,
    P_SIZE,
    PARTED,
    PARTNER,
    PEND,
    PEND_N,
    PHASE,
    QUEUE,
    R_CAP,
    R_N,
    SCHEDULED,
    SEQUENCE,
    START,
    STEP,
    STEP_BASE,
    STEP_END,
    T_FREE,
    T_LEFT,
    TIMER_AT,
    TIMERS,
    TURN,
    WAIT,
    WITHIN_EVERY,
    XDUE,
    XE,
    XET,
    XH,
    XHASH,
    XL,
    XN,
    XP,
    XR,
    XT,
)  # fmt: skip
from .partial_matches import FAR, drop_partial, is_expired, new_partial
from .pattern_loop import DONE, NEED_CLOCK, NEED_MUCH, emit
from .pointers import Words, call2, call3, called, entry, header, pool
from .processors import add_state, give, start_reset


@called
def has_room_for_timer(X: Words, l0: int, p: int) -> bool:
    """True if a timer of processor `p` can run; `NEEDED` is the number of records that it may take."""
    L, P = pool(X, XL), pool(X, XP)
    lp = l0 + p * L_SIZE
    n = L[lp + PEND_N] + L[lp + NEW_N] + 4
    if P[p * P_SIZE + KIND] == ABSENT_LOGICAL:
        lo = l0 + P[p * P_SIZE + PARTNER] * L_SIZE
        n += L[lo + PEND_N] + L[lo + NEW_N]
    n *= 4 * X[NP] + 8
    X[NEEDED] = n
    return X[N_LEFT] > n and X[E_LEFT] > n and X[C_LEFT] > 4 and X[T_LEFT] > n and X[R_N] + n < X[R_CAP]


@called
def _send(X: Words, l0: int, p: int, e: int) -> None:
    """`sendEvent`: nothing came in time, so the partial continues."""
    P, L = pool(X, XP), pool(X, XL)
    f = p * P_SIZE
    if P[f + LAST_STATE] != 0:
        give(X, e)
    if P[f + NEXT] >= 0:
        add_state(X, l0, P[f + NEXT], e)
    if P[f + EVERY] >= 0:
        call3(X[F_EVERY], X, l0, P[f + EVERY], e)
    elif P[f + START] != 0:
        L[l0 + p * L_SIZE + ACTIVE] = 0
        if P[f + KIND] == ABSENT_LOGICAL and P[f + IS_OR] != 0:
            other = P[f + PARTNER]
            if P[other * P_SIZE + KIND] == ABSENT_LOGICAL:
                L[l0 + other * L_SIZE + ACTIVE] = 0
    start_reset(X, l0, p)


@called
def _send_all(X: Words, l0: int, p: int, first: int) -> None:
    """Sends the partials that were collected behind the matches in `R`, from place `first` on."""
    R = pool(X, XR)
    n = X[R_N] - first
    # Matches are put into R themselves, so the collected ones move out of their way first.
    cap = X[R_CAP]
    for i in range(n):
        R[cap - n + i] = R[first + i]
    X[R_N] = first
    for i in range(n):
        e = R[cap - n + i]
        pool(X, XE)[e + E_GIVEN] = 0
        _send(X, l0, p, e)
        drop_partial(X, e)


@called
def process_timer(X: Words, l0: int, p: int, time: int) -> None:
    """`AbsentStreamPreStateProcessor.process`; `time` is when the timer was due."""
    P, L, N, E = pool(X, XP), pool(X, XL), pool(X, XN), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    if X[PARTED] != 0 and L[lp + INITIALIZED] == 0 and L[lp + NEW_N] == 0 and L[lp + PEND] == 0:
        # A partition forgets a state that holds nothing (`PartitionStateHolder.returnState`): a timer finds a new one.
        L[lp + SCHEDULED] = 0
    if L[lp + ACTIVE] == 0:
        return
    wait, every = P[f + WAIT], P[f + EVERY]
    begin = P[f + START] != 0 and L[lp + NEW_N] == 0 and L[lp + PEND] == 0
    if begin and X[SEQUENCE] != 0 and every < 0 and L[lp + SCHEDULED] > 0:
        begin = False
    if begin:
        e = new_partial(X)
        E[e + E_REFS] = 1
        add_state(X, l0, p, e)
        drop_partial(X, e)
    elif X[SEQUENCE] != 0 and L[lp + NEW_N] != 0:
        call2(X[F_RESET], X, l0, p)
    call2(X[F_UPDATE], X, l0, p)
    first = X[R_N]
    c = L[lp + PEND]
    while c != 0:
        after, e = N[c + N_NEXT], N[c + N_PARTIAL]
        t = E[e + E_TIME]
        if is_expired(X, e, time):
            if P[f + WITHIN_EVERY] >= 0 and every >= 0 and every != p:
                call3(X[F_EVERY], X, l0, every, e)
            remove_pending(X, lp, c)
        elif (t == -1 and time >= L[lp + SCHEDULED]) or (t != -1 and time >= t + wait):
            E[e + E_TIME] = time
            give(X, e)
            remove_pending(X, lp, c)
        c = after
    if P[f + WITHIN_EVERY] >= 0:
        call2(X[F_UPDATE], X, l0, P[f + WITHIN_EVERY])
    nothing = X[R_N] == first
    _send_all(X, l0, p, first)
    if X[NOW] > wait + time:
        L[lp + SCHEDULED] = X[NOW] + wait
    if nothing and L[lp + SCHEDULED] < time:
        L[lp + SCHEDULED] = time + wait
        call3(X[F_NOTIFY], X, lp, p, time + wait)


@called
def process_timer_logical(X: Words, l0: int, p: int, time: int) -> None:
    """`AbsentLogicalPreStateProcessor.process`; `SCHEDULED` holds its `lastArrivalTime`."""
    P, L, N, E = pool(X, XP), pool(X, XL), pool(X, XN), pool(X, XE)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    if L[lp + ACTIVE] == 0:
        return
    wait, other = P[f + WAIT], P[f + PARTNER]
    nothing = True
    if time >= L[lp + SCHEDULED] + wait:
        if P[f + START] != 0 and X[SEQUENCE] != 0 and L[lp + NEW_N] == 0 and L[lp + PEND] == 0:
            e = new_partial(X)
            E[e + E_REFS] = 1
            add_state(X, l0, p, e)
            drop_partial(X, e)
        elif X[SEQUENCE] != 0 and L[lp + NEW_N] != 0:
            call2(X[F_RESET], X, l0, p)
        call2(X[F_UPDATE], X, l0, p)
        first, expired = X[R_N], 0
        c = L[lp + PEND]
        while c != 0:
            after, e = N[c + N_NEXT], N[c + N_PARTIAL]
            g = E[e + E_SLOTS + p]
            since = E[e + E_TIME] if g == NO_EVENT else pool(X, XET)[g]
            if is_expired(X, e, time):
                if expired != 0:
                    drop_partial(X, expired)
                expired = e
                E[e + E_REFS] += 1
                remove_pending(X, lp, c)
            elif time >= since + wait:
                came = E[e + E_SLOTS + other] != NO_EVENT
                if P[f + IS_OR] != 0:
                    if not came:
                        E[e + E_SLOTS + p] = EMPTY_EVENT if g == NO_EVENT else g
                        give(X, e)
                elif came:
                    give(X, e)
                else:
                    E[e + E_SLOTS + p] = EMPTY_EVENT if g == NO_EVENT else g
                remove_pending(X, lp, c)
            c = after
        if expired != 0:
            if P[f + WITHIN_EVERY] >= 0:
                call3(X[F_EVERY], X, l0, P[f + WITHIN_EVERY], expired)
                call2(X[F_UPDATE], X, l0, P[f + WITHIN_EVERY])
            drop_partial(X, expired)
        nothing = X[R_N] == first
        R = pool(X, XR)
        for i in range(first, X[R_N]):
            E[R[i] + E_TIME] = time
        _send_all(X, l0, p, first)
        L[lp + SCHEDULED] = 0
    if P[f + EVERY] >= 0 or (nothing and P[f + START] != 0):
        since = X[NOW] if L[lp + SCHEDULED] == 0 else L[lp + SCHEDULED]
        call3(X[F_NOTIFY], X, lp, p, since + wait)


@called
def _collect_due(X: Words, k: int, now: int) -> None:
    """Takes the instances that run at `now` into `DUE`, by their first times. Of several with the same first time only
    the first in the scheduler's map runs; the others stay for the next movement of the clock (`columnar.timers`)."""
    H, L, due, hashes = pool(X, XH), pool(X, XL), pool(X, XDUE), pool(X, XHASH)
    base, p = k * X[HEAP_N], pool(X, M_TIMERS)[k]
    mask = H[base + H_BUCKETS] - 1
    n = 0
    while H[base + H_SIZE] > 0 and H[base + H_HEAP] <= now:
        due[2 * n] = H[base + H_HEAP]
        instance = pop_heap(X, k)
        due[2 * n + 1] = instance
        n += L[(instance * X[NP] + p) * L_SIZE + QUEUE] != 0
    runs, i = 0, 0
    while i < n:
        best, j, time = i, i + 1, due[2 * i]
        while j < n and due[2 * j] == time:
            a, b = due[2 * j + 1], due[2 * best + 1]
            nearer = (hashes[a] & mask) - (hashes[b] & mask)
            turn = L[(a * X[NP] + p) * L_SIZE + TURN] - L[(b * X[NP] + p) * L_SIZE + TURN]
            if nearer < 0 or (nearer == 0 and turn > 0):
                best = j
            j += 1
        chosen = due[2 * best + 1]
        for m in range(i, j):
            if m != best:
                push_heap(X, k, time, due[2 * m + 1])
        due[2 * runs + 1] = chosen
        runs += 1
        i = j
    X[DUE_N] = runs
    X[DUE_AT] = 0


@called
def _drain(X: Words, p: int, instance: int, now: int, order_key: int) -> int:
    """`Scheduler.sendTimerEvents`: all due times of an instance, each with its effects."""
    L, T, P = pool(X, XL), pool(X, XT), pool(X, XP)
    l0 = instance * L_SIZE * X[NP]
    lp = l0 + p * L_SIZE
    X[NOW] = now
    X[DRAINING] = lp + 1
    while True:
        if X[R_N] > 0:
            status = emit(X, order_key, instance, FALSE, FALSE)
            if status != DONE:
                return status
        c = L[lp + QUEUE]
        if c == 0 or T[c] > now:
            break
        if not has_room_for_timer(X, l0, p):
            return NEED_MUCH
        time = T[c]
        L[lp + QUEUE] = T[c + 1]
        T[c + 1] = X[T_FREE]
        X[T_FREE] = c
        X[T_LEFT] += 1
        if P[p * P_SIZE + KIND] == ABSENT:
            process_timer(X, l0, p, time)
        else:
            process_timer_logical(X, l0, p, time)
    X[DRAINING] = 0
    if L[lp + QUEUE] != 0:
        push_heap(X, X[TIMER_AT], T[L[lp + QUEUE]], instance)
    else:
        leave_map(X, lp, p)
    return DONE


@called
def _advance_clock(X: Words, limit: int) -> int:
    """Fires the timers whose order key is before `limit`."""
    P, M, H = pool(X, XP), pool(X, M_TIMERS), pool(X, XH)
    times, moved = pool(X, I_NOW), pool(X, I_MOVED)
    while X[STEP] < X[STEP_END]:
        step = X[STEP]
        key = step << ORDER_KEY_BITS
        if key > limit:
            return DONE
        if moved[step - X[STEP_BASE]] != 0:
            now = times[step - X[STEP_BASE]]
            while X[TIMER_AT] < X[TIMERS]:
                k = X[TIMER_AT]
                p = M[k]
                order_key = key + P[p * P_SIZE + PHASE]
                if order_key > limit:
                    return DONE
                if X[DUE_N] == 0:
                    base = k * X[HEAP_N]
                    if H[base + H_SIZE] > 0 and H[base + H_HEAP] <= now:
                        _collect_due(X, k, now)
                while X[DUE_AT] < X[DUE_N]:
                    status = _drain(X, p, pool(X, XDUE)[2 * X[DUE_AT] + 1], now, order_key)
                    if status != DONE:
                        return status
                    X[DUE_AT] += 1
                X[DUE_N] = 0
                X[DUE_AT] = 0
                X[TIMER_AT] += 1
        X[TIMER_AT] = 0
        X[STEP] += 1
    return DONE


@entry
def run_timed(address: int, whole: int, origin: int) -> int:
    """`run` for a pattern with absent states, whose timers fire between the rows."""
    X = header(address)
    while True:
        status = call2(X[F_ROWS], X, whole, origin)
        if status != NEED_CLOCK:
            return status
        status = _advance_clock(X, X[LIMIT])
        if status != DONE:
            return status
        H = pool(X, XH)
        due = FAR
        for k in range(X[TIMERS]):
            if H[k * X[HEAP_N] + H_SIZE] > 0:
                due = min(due, H[k * X[HEAP_N] + H_HEAP])
        X[NEXT_DUE] = due
        X[CLOCKED] = 1
