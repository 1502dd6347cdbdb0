"""Compiled primitives of the pattern machine: partials, chains, lists, the index over pending partials, timers.

A partial (Siddhi's `StateEvent`) may stand in several lists at once and is freed when the last reference goes. A chain
(the events of a counted state) may be shared by partials that were copied, exactly as Siddhi's copies share
their linked `StreamEvent`s, so that an event added through one is seen through the other.
"""

from __future__ import annotations

import numpy as np

from .memory import (
    B_BOUND,
    B_HEAD,
    B_SIZE,
    B_TAIL,
    BOUND,
    BOUND_SIGN,
    BUCKETS,
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
    DRAINING,
    E_EXPIRED,
    E_FREE,
    E_GIVEN,
    E_LEFT,
    E_REFS,
    E_SIZE,
    E_SLOTS,
    E_TIME,
    HEAP_N,
    HIGH,
    INDEXED,
    KEY_COUNT,
    KEYS,
    L_SIZE,
    LAST_START,
    LOW,
    M_STARTS,
    N_BUCKET,
    N_DOWN,
    N_FREE,
    N_LEFT,
    N_NEXT,
    N_OWNER,
    N_PARTIAL,
    N_PREV,
    N_UP,
    N_VALUE,
    NEW,
    NEW_N,
    NEW_TAIL,
    NP,
    P_SIZE,
    PEND,
    PEND_N,
    PEND_TAIL,
    QUEUE,
    QUEUE_TAIL,
    RISING,
    START_N,
    STEADY,
    T_FREE,
    T_LEFT,
    TIMER,
    WITHIN,
    WORDS,
    XB,
    XC,
    XE,
    XET,
    XH,
    XL,
    XN,
    XP,
    XQ,
    XT,
    XW,
    XZ,
    Words,
    as_real,
    as_word,
    compiled,
    octets,
    reals,
    words,
)  # fmt: skip

FAR = 1 << 61
"""Beyond every timestamp."""

SINGLE, FROM_FIRST, FROM_LAST, CURRENT = 0, 1, 2, 3
"""How a load finds its event: the state's only one, by number in its chain, counted from the chain's end, or the event
that is being processed."""

AS_WORD, AS_DOUBLE, AS_FLOAT = 0, 1, 2
"""How a key is hashed, so that values that compare equal hash equal."""


# ------------------------------------------------------------------------------------------------ partials and chains


@compiled
def new_partial(X: Words) -> int:
    """A partial without events, held by nobody yet (`StateEventFactory.newInstance`)."""
    E = words(X[XE])
    e = X[E_FREE]
    X[E_FREE] = E[e + E_TIME]
    X[E_LEFT] -= 1
    E[e + E_TIME] = -1
    E[e + E_REFS] = 0
    E[e + E_EXPIRED] = 0
    E[e + E_GIVEN] = 0
    for k in range(e + E_SLOTS, e + X[E_SIZE]):
        E[k] = 0
    return e


@compiled
def drop_chain(X: Words, c: int) -> None:
    """Gives up one reference to a chain."""
    C = words(X[XC])
    C[c + C_REFS] -= 1
    if C[c + C_REFS] > 0:
        return
    while c != 0:
        after = C[c + C_NEXT]
        C[c + C_NEXT] = X[C_FREE]
        X[C_FREE] = c
        X[C_LEFT] += 1
        c = after


@compiled
def drop_partial(X: Words, e: int) -> None:
    """Gives up one reference to a partial."""
    E = words(X[XE])
    E[e + E_REFS] -= 1
    if E[e + E_REFS] > 0:
        return
    if X[CHAINS] > 0:
        P = words(X[XP])
        for p in range(X[NP]):
            if P[p * P_SIZE + CHAINED] != 0 and E[e + E_SLOTS + p] != 0:
                drop_chain(X, E[e + E_SLOTS + p])
    E[e + E_TIME] = X[E_FREE]
    X[E_FREE] = e
    X[E_LEFT] += 1


@compiled
def clear_slot(X: Words, e: int, p: int) -> None:
    """`StateEvent.setEvent(p, null)`."""
    E = words(X[XE])
    s = e + E_SLOTS + p
    if E[s] != 0:
        if words(X[XP])[p * P_SIZE + CHAINED] != 0:
            drop_chain(X, E[s])
        E[s] = 0


@compiled
def copy_partial(X: Words, e: int) -> int:
    """`StateEventCloner.copyStateEvent`: the copy shares the chains."""
    E = words(X[XE])
    f = new_partial(X)
    E[f + E_TIME] = E[e + E_TIME]
    for k in range(E_SLOTS, X[E_SIZE]):
        E[f + k] = E[e + k]
    if X[CHAINS] > 0:
        P, C = words(X[XP]), words(X[XC])
        for p in range(X[NP]):
            if P[p * P_SIZE + CHAINED] != 0 and E[f + E_SLOTS + p] != 0:
                C[E[f + E_SLOTS + p] + C_REFS] += 1
    return f


@compiled
def add_event(X: Words, e: int, p: int, g: int) -> None:
    """`StateEvent.addEvent` for a counted state."""
    E, C = words(X[XE]), words(X[XC])
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


@compiled
def remove_last_event(X: Words, e: int, p: int) -> None:
    """`StateEvent.removeLastEvent`."""
    E, C = words(X[XE]), words(X[XC])
    head = E[e + E_SLOTS + p]
    if head == 0:
        return
    last = C[head + C_TAIL]
    if last == head:
        E[e + E_SLOTS + p] = 0
        drop_chain(X, head)
        return
    C[head + C_TAIL] = C[last + C_PREV]
    C[C[last + C_PREV] + C_NEXT] = 0
    C[head + C_COUNT] -= 1
    C[last + C_NEXT] = X[C_FREE]
    X[C_FREE] = last
    X[C_LEFT] += 1


@compiled
def first_event(X: Words, e: int, p: int) -> int:
    """The log number of the (first) event of a state; 0 for none."""
    v = words(X[XE])[e + E_SLOTS + p]
    if v != 0 and words(X[XP])[p * P_SIZE + CHAINED] != 0:
        return words(X[XC])[v + C_EVENT]
    return v


@compiled
def is_expired(X: Words, e: int, t: int) -> bool:
    """Whether an event of a start state is further than `within` from time `t`, in either direction."""
    within = X[WITHIN]
    if within < 0:
        return False
    starts, times = words(X[M_STARTS]), words(X[XET])
    for i in range(X[START_N]):
        g = first_event(X, e, starts[i])
        if g != 0 and abs(times[g] - t) > within:
            return True
    return False


# ------------------------------------------------------------------------------------------------------- loads


@compiled
def find_event(X: Words, e: int, g: int, mode: int, p: int, k: int) -> int:
    """The log number of the event that a load names; 0 where there is none."""
    if mode == CURRENT:
        return g
    v = words(X[XE])[e + E_SLOTS + p]
    if mode == SINGLE or v == 0:
        return v
    C = words(X[XC])
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
def mix(h: int, v: int) -> int:
    """A hash of a hash and a further word."""
    u = (np.uint64(h) ^ np.uint64(v)) * np.uint64(0x9E3779B97F4A7C15)
    u ^= u >> np.uint64(29)
    return np.int64(u & np.uint64(0x7FFFFFFFFFFFFFFF))  # type: ignore[return-value]


@compiled
def key_word(X: Words, at: int, real: int, how: int) -> int:
    """The word at `at` of the log, such that equal values of any numeric types give equal words."""
    if how == AS_WORD:
        return words(X[XW])[at]
    if how == AS_DOUBLE:
        f = reals(X[XW])[at] if real != 0 else np.float64(words(X[XW])[at])
    elif real != 0:
        f = np.float64(np.float32(reals(X[XW])[at]))
    else:
        f = np.float64(np.float32(words(X[XW])[at]))
    return as_word(f + 0.0)  # -0.0 becomes 0.0


@compiled
def index_key(X: Words, lp: int, p: int, e: int, g: int, partial: bool) -> int:
    """The bucket for a partial, or for an event `g` (`partial` False); -1 where a key is null: nothing can match."""
    P, Q, W = words(X[XP]), words(X[XQ]), X[WORDS]
    Z = octets(X[XZ])
    q = P[p * P_SIZE + KEYS]
    h = mix(lp, 0)
    for _ in range(P[p * P_SIZE + KEY_COUNT]):
        if partial:
            at = find_event(X, e, 0, Q[q + 3], Q[q + 4], Q[q + 5]) * W + Q[q + 6]
            real = Q[q + 7]
        else:
            at = g * W + Q[q + 1]
            real = Q[q + 2]
        if Z[at] != 0:
            return -1
        h = mix(h, key_word(X, at, real, Q[q]))
        q += 8
    return (h & (X[BUCKETS] - 1)) * B_SIZE


@compiled
def bound_value(X: Words, p: int, e: int, g: int, partial: bool) -> float:
    """What an event has to exceed for this partial, or what event `g` has to show; NaN where it is null."""
    P, Q = words(X[XP]), words(X[XQ])
    q = P[p * P_SIZE + BOUND]
    if partial:
        at = find_event(X, e, 0, Q[q + 2], Q[q + 3], Q[q + 4]) * X[WORDS] + Q[q + 5]
        real = Q[q + 6]
    else:
        at = g * X[WORDS] + Q[q]
        real = Q[q + 1]
    if octets(X[XZ])[at] != 0:
        return np.nan
    v = reals(X[XW])[at] if real != 0 else np.float64(words(X[XW])[at])
    return v * P[p * P_SIZE + BOUND_SIGN]


# -------------------------------------------------------------------------------------------------------- lists


@compiled
def free_cell(X: Words, c: int) -> None:
    N = words(X[XN])
    N[c + N_NEXT] = X[N_FREE]
    X[N_FREE] = c
    X[N_LEFT] += 1


@compiled
def append_new(X: Words, lp: int, p: int, e: int) -> None:
    """Adds a partial to a processor's `newAndEveryStateEventList`."""
    L, N, E = words(X[XL]), words(X[XN]), words(X[XE])
    c = X[N_FREE]
    X[N_FREE] = N[c + N_NEXT]
    X[N_LEFT] -= 1
    E[e + E_REFS] += 1
    N[c + N_PARTIAL] = e
    N[c + N_NEXT] = 0
    N[c + N_BUCKET] = -1
    tail = L[lp + NEW_TAIL]
    N[c + N_PREV] = tail
    if tail == 0:
        L[lp + NEW] = c
    else:
        N[tail + N_NEXT] = c
    L[lp + NEW_TAIL] = c
    L[lp + NEW_N] += 1
    if words(X[XP])[p * P_SIZE + STEADY] != 0:
        widen(X, lp, e)


@compiled
def widen(X: Words, lp: int, e: int) -> None:
    """Keeps, for a new list, the times between which no entry of it expires."""
    L, times, starts = words(X[XL]), words(X[XET]), words(X[M_STARTS])
    for i in range(X[START_N]):
        g = first_event(X, e, starts[i])
        if g != 0:
            t = times[g]
            if t - X[WITHIN] > L[lp + LOW]:
                L[lp + LOW] = t - X[WITHIN]
            if t + X[WITHIN] < L[lp + HIGH]:
                L[lp + HIGH] = t + X[WITHIN]
            if t < L[lp + LAST_START] or X[START_N] > 1:
                L[lp + RISING] = 0
            L[lp + LAST_START] = t
        else:
            L[lp + RISING] = 0


@compiled
def reset_times(X: Words, lp: int) -> None:
    """Of an empty new list."""
    L = words(X[XL])
    L[lp + LOW] = -FAR
    L[lp + HIGH] = FAR
    L[lp + LAST_START] = -FAR
    L[lp + RISING] = 1


@compiled
def remove_new(X: Words, lp: int, c: int) -> None:
    """Takes a cell out of a new list."""
    L, N = words(X[XL]), words(X[XN])
    before, after = N[c + N_PREV], N[c + N_NEXT]
    if before == 0:
        L[lp + NEW] = after
    else:
        N[before + N_NEXT] = after
    if after == 0:
        L[lp + NEW_TAIL] = before
    else:
        N[after + N_PREV] = before
    L[lp + NEW_N] -= 1
    e = N[c + N_PARTIAL]
    free_cell(X, c)
    drop_partial(X, e)


@compiled
def clear_new(X: Words, lp: int) -> None:
    L = words(X[XL])
    while L[lp + NEW] != 0:
        remove_new(X, lp, L[lp + NEW])
    reset_times(X, lp)


@compiled
def leave_index(X: Words, c: int) -> None:
    """Takes a pending cell out of its bucket."""
    N = words(X[XN])
    b = N[c + N_BUCKET]
    if b < 0:
        return
    B = words(X[XB])
    up, down = N[c + N_UP], N[c + N_DOWN]
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


@compiled
def enter_index(X: Words, lp: int, p: int, c: int) -> None:
    """Puts a pending cell at the end of its bucket, so that a bucket keeps the order of the list."""
    N, P = words(X[XN]), words(X[XP])
    e = N[c + N_PARTIAL]
    N[c + N_BUCKET] = -1
    b = index_key(X, lp, p, e, 0, True)
    if b < 0:
        return
    B = words(X[XB])
    if P[p * P_SIZE + BOUND] >= 0:
        v = bound_value(X, p, e, 0, True)
        if v != v:  # nothing exceeds null or NaN
            return
        N[c + N_VALUE] = as_word(v)
        if v < as_real(B[b + B_BOUND]):
            B[b + B_BOUND] = as_word(v)
    N[c + N_BUCKET] = b
    N[c + N_OWNER] = lp
    N[c + N_DOWN] = 0
    tail = B[b + B_TAIL]
    N[c + N_UP] = tail
    if tail == 0:
        B[b + B_HEAD] = c
    else:
        N[tail + N_DOWN] = c
    B[b + B_TAIL] = c
    X[INDEXED] += 1


@compiled
def remove_pending(X: Words, lp: int, c: int) -> None:
    """Takes a cell out of a pending list."""
    L, N = words(X[XL]), words(X[XN])
    before, after = N[c + N_PREV], N[c + N_NEXT]
    if before == 0:
        L[lp + PEND] = after
    else:
        N[before + N_NEXT] = after
    if after == 0:
        L[lp + PEND_TAIL] = before
    else:
        N[after + N_PREV] = before
    L[lp + PEND_N] -= 1
    leave_index(X, c)
    e = N[c + N_PARTIAL]
    free_cell(X, c)
    drop_partial(X, e)


@compiled
def clear_pending(X: Words, lp: int) -> None:
    L = words(X[XL])
    while L[lp + PEND] != 0:
        remove_pending(X, lp, L[lp + PEND])


@compiled
def sort_new(X: Words, lp: int) -> None:
    """Sorts a new list by the partials' times, -1 last, stably (`eventTimeComparator`)."""
    L, N, E = words(X[XL]), words(X[XN]), words(X[XE])
    c = N[L[lp + NEW] + N_NEXT]
    while c != 0:
        after = N[c + N_NEXT]
        t = E[N[c + N_PARTIAL] + E_TIME]
        t = FAR if t == -1 else t
        back = N[c + N_PREV]
        steps = 0
        while back != 0:
            u = E[N[back + N_PARTIAL] + E_TIME]
            u = FAR if u == -1 else u
            if u <= t:
                break
            back = N[back + N_PREV]
            steps += 1
        if steps > 0:
            before = N[c + N_PREV]
            N[before + N_NEXT] = after
            if after == 0:
                L[lp + NEW_TAIL] = before
            else:
                N[after + N_PREV] = before
            if back == 0:
                front = L[lp + NEW]
                L[lp + NEW] = c
            else:
                front = N[back + N_NEXT]
                N[back + N_NEXT] = c
            N[c + N_PREV] = back
            N[c + N_NEXT] = front
            N[front + N_PREV] = c
        c = after


@compiled
def move_new(X: Words, lp: int, p: int) -> None:
    """`updateState`: the new list goes to the end of the pending list."""
    L = words(X[XL])
    head = L[lp + NEW]
    if head == 0:
        return
    if L[lp + NEW_N] > 1:
        sort_new(X, lp)
    splice_new(X, lp, p)


@compiled
def splice_new(X: Words, lp: int, p: int) -> None:
    """Hangs the new list, as it is, on the end of the pending list."""
    L, N = words(X[XL]), words(X[XN])
    head = L[lp + NEW]
    tail = L[lp + PEND_TAIL]
    if tail == 0:
        L[lp + PEND] = head
    else:
        N[tail + N_NEXT] = head
        N[head + N_PREV] = tail
    L[lp + PEND_TAIL] = L[lp + NEW_TAIL]
    L[lp + PEND_N] += L[lp + NEW_N]
    L[lp + NEW] = 0
    L[lp + NEW_TAIL] = 0
    L[lp + NEW_N] = 0
    reset_times(X, lp)
    if words(X[XP])[p * P_SIZE + KEYS] >= 0:
        c = head
        while c != 0:
            enter_index(X, lp, p, c)
            c = N[c + N_NEXT]


# -------------------------------------------------------------------------------------------------------- timers


@compiled
def notify_at(X: Words, lp: int, p: int, time: int) -> None:
    """`Scheduler.notifyAt`: appends a time to the queue of this processor and instance."""
    L, T, P = words(X[XL]), words(X[XT]), words(X[XP])
    c = X[T_FREE]
    X[T_FREE] = T[c + 1]
    X[T_LEFT] -= 1
    T[c] = time
    T[c + 1] = 0
    if L[lp + QUEUE] == 0:
        L[lp + QUEUE] = c
        L[lp + QUEUE_TAIL] = c
        if X[DRAINING] != lp + 1:
            push_heap(X, P[p * P_SIZE + TIMER], time, lp // (L_SIZE * X[NP]))
    else:
        T[L[lp + QUEUE_TAIL] + 1] = c
        L[lp + QUEUE_TAIL] = c


@compiled
def push_heap(X: Words, timer: int, time: int, part: int) -> None:
    """Enters (time, part) into the heap of a scheduler; each heap record starts with its size."""
    H = words(X[XH])
    base = timer * X[HEAP_N]
    n = H[base]
    H[base] = n + 1
    i = n
    while i > 0:
        up = (i - 1) >> 1
        u = base + 2 + 2 * up
        if H[u] < time or (H[u] == time and H[u + 1] <= part):
            break
        H[base + 2 + 2 * i] = H[u]
        H[base + 3 + 2 * i] = H[u + 1]
        i = up
    H[base + 2 + 2 * i] = time
    H[base + 3 + 2 * i] = part


@compiled
def pop_heap(X: Words, timer: int) -> int:
    """Takes the first (time, part) out of the heap of a scheduler; the part."""
    H = words(X[XH])
    base = timer * X[HEAP_N]
    out = H[base + 3]
    n = H[base] - 1
    H[base] = n
    time, part = H[base + 2 + 2 * n], H[base + 3 + 2 * n]
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            break
        a = base + 2 + 2 * low
        if low + 1 < n and (H[a + 2] < H[a] or (H[a + 2] == H[a] and H[a + 3] < H[a + 1])):
            low += 1
            a += 2
        if time < H[a] or (time == H[a] and part <= H[a + 1]):
            break
        H[base + 2 + 2 * i] = H[a]
        H[base + 3 + 2 * i] = H[a + 1]
        i = low
    H[base + 2 + 2 * i] = time
    H[base + 3 + 2 * i] = part
    return out
