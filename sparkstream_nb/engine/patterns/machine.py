"""The lists of a pattern's states and the queues of their timers, compiled."""

from __future__ import annotations

from .machine_memory import (
    DRAINING,
    E_REFS,
    E_TIME,
    F_ENTER,
    F_LEAVE,
    H_BUCKETS,
    H_HEAP,
    H_HELD,
    H_SIZE,
    H_TURN,
    HEAP_N,
    HIGH,
    KEYS,
    L_SIZE,
    LAST_START,
    LOW,
    M_STARTS,
    N_BUCKET,
    N_FREE,
    N_LEFT,
    N_NEXT,
    N_PARTIAL,
    N_PREV,
    NEW,
    NEW_N,
    NEW_TAIL,
    NEXT_DUE,
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
    TURN,
    WITHIN,
    XE,
    XET,
    XH,
    XL,
    XN,
    XP,
    XT,
)  # fmt: skip
from .partial_matches import FAR, drop_partial, first_event
from .pointers import Words, call1, call3, called, compiled, pool, quiet, unit

# -------------------------------------------------------------------------------------------------------- lists


@compiled
def free_cell(X: Words, c: int) -> None:
    N = pool(X, XN)
    N[c + N_NEXT] = X[N_FREE]
    X[N_FREE] = c
    X[N_LEFT] += 1


@compiled
def append_new(X: Words, lp: int, p: int, e: int) -> None:
    """Adds a partial to a processor's `newAndEveryStateEventList`."""
    L, N, E = pool(X, XL), pool(X, XN), pool(X, XE)
    c = X[N_FREE]
    X[N_FREE] = N[c + N_NEXT]
    X[N_LEFT] -= 1
    E[e + E_REFS] += 1
    N[c + N_PARTIAL] = e
    more = quiet(X, XN)
    more[c + N_NEXT] = 0
    more[c + N_BUCKET] = -1
    tail = L[lp + NEW_TAIL]
    more[c + N_PREV] = tail
    if tail == 0:
        L[lp + NEW] = c
    else:
        N[tail + N_NEXT] = c
    L[lp + NEW_TAIL] = c
    L[lp + NEW_N] += 1
    if pool(X, XP)[p * P_SIZE + STEADY] != 0:
        widen(X, lp, e)


@called
def widen(X: Words, lp: int, e: int) -> None:
    """Keeps, for a new list, the times between which no entry of it expires."""
    L, times, starts = pool(X, XL), pool(X, XET), pool(X, M_STARTS)
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


@called
def reset_times(X: Words, lp: int) -> None:
    """Set the times of an empty new list."""
    L = pool(X, XL)
    L[lp + LOW] = -FAR
    L[lp + HIGH] = FAR
    L[lp + LAST_START] = -FAR
    L[lp + RISING] = 1


@called
def remove_new(X: Words, lp: int, c: int) -> None:
    """Takes a cell out of a new list."""
    L, N = pool(X, XL), pool(X, XN)
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


@called
def clear_new(X: Words, lp: int) -> None:
    L = pool(X, XL)
    while L[lp + NEW] != 0:
        remove_new(X, lp, L[lp + NEW])
    reset_times(X, lp)


@compiled
def take_pending(X: Words, lp: int, c: int) -> None:
    """Takes a cell out of a pending list."""
    L, N = pool(X, XL), pool(X, XN)
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
    if N[c + N_BUCKET] >= 0:
        call1(X[F_LEAVE], X, c)
    e = N[c + N_PARTIAL]
    free_cell(X, c)
    drop_partial(X, e)


@called
def remove_pending(X: Words, lp: int, c: int) -> None:
    """`take_pending`, not inlined, for rare callers."""
    take_pending(X, lp, c)


@called
def remove_from(X: Words, lp: int, e: int) -> None:
    """Takes a partial out of a pending list, if it is there."""
    N = pool(X, XN)
    c = pool(X, XL)[lp + PEND]
    while c != 0:
        if N[c + N_PARTIAL] == e:
            remove_pending(X, lp, c)
            return
        c = N[c + N_NEXT]


@compiled
def clear_pending(X: Words, lp: int) -> None:
    L = pool(X, XL)
    while L[lp + PEND] != 0:
        take_pending(X, lp, L[lp + PEND])


@called
def sort_new(X: Words, lp: int) -> None:
    """Sorts a new list by the partials' times, -1 last, stably (`eventTimeComparator`)."""
    L, N, E = pool(X, XL), pool(X, XN), pool(X, XE)
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


@called
def move_new(X: Words, lp: int, p: int) -> None:
    """`updateState`: the new list goes to the end of the pending list."""
    L = pool(X, XL)
    head = L[lp + NEW]
    if head == 0:
        return
    if L[lp + NEW_N] > 1:
        sort_new(X, lp)
    splice_new(X, lp, p)


@compiled
def splice_new(X: Words, lp: int, p: int) -> None:
    """Appends the new list, unchanged, to the end of the pending list."""
    L, N = pool(X, XL), pool(X, XN)
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
    P = pool(X, XP)
    if P[p * P_SIZE + STEADY] != 0:
        reset_times(X, lp)
    if P[p * P_SIZE + KEYS] >= 0:
        c = head
        while c != 0:
            call3(X[F_ENTER], X, lp, p, c)
            c = N[c + N_NEXT]


# -------------------------------------------------------------------------------------------------------- timers


@unit
def notify_at(X: Words, lp: int, p: int, time: int) -> int:
    """`Scheduler.notifyAt`: appends a time to the queue of this processor and instance."""
    L, T, P = pool(X, XL), pool(X, XT), pool(X, XP)
    c = X[T_FREE]
    X[T_FREE] = T[c + 1]
    X[T_LEFT] -= 1
    T[c] = time
    T[c + 1] = 0
    if L[lp + QUEUE] == 0:
        L[lp + QUEUE] = c
        L[lp + QUEUE_TAIL] = c
        timer = P[p * P_SIZE + TIMER]
        if L[lp + TURN] == 0:
            H, base = pool(X, XH), timer * X[HEAP_N]
            if H[base + H_HELD] > H[base + H_BUCKETS] * 3 // 4:
                H[base + H_BUCKETS] *= 2
            H[base + H_HELD] += 1
            H[base + H_TURN] += 1
            L[lp + TURN] = H[base + H_TURN]
        if X[DRAINING] != lp + 1:
            push_heap(X, timer, time, lp // (L_SIZE * X[NP]))
    else:
        T[L[lp + QUEUE_TAIL] + 1] = c
        L[lp + QUEUE_TAIL] = c
    return 0


@compiled
def leave_map(X: Words, lp: int, p: int) -> None:
    """An instance without a scheduled time leaves the map of its scheduler."""
    pool(X, XH)[pool(X, XP)[p * P_SIZE + TIMER] * X[HEAP_N] + H_HELD] -= 1
    pool(X, XL)[lp + TURN] = 0


@called
def push_heap(X: Words, timer: int, time: int, instance: int) -> None:
    """Pushes (time, instance) onto the heap of a scheduler."""
    H = pool(X, XH)
    base = timer * X[HEAP_N]
    n = H[base + H_SIZE]
    H[base + H_SIZE] = n + 1
    base += H_HEAP
    X[NEXT_DUE] = min(X[NEXT_DUE], time)
    i = n
    while i > 0:
        up = (i - 1) >> 1
        u = base + 2 * up
        if H[u] < time or (H[u] == time and H[u + 1] <= instance):
            break
        H[base + 2 * i] = H[u]
        H[base + 2 * i + 1] = H[u + 1]
        i = up
    H[base + 2 * i] = time
    H[base + 2 * i + 1] = instance


@called
def pop_heap(X: Words, timer: int) -> int:
    """Pops the first (time, instance) of the heap of a scheduler; returns the instance."""
    H = pool(X, XH)
    base = timer * X[HEAP_N]
    n = H[base + H_SIZE] - 1
    H[base + H_SIZE] = n
    base += H_HEAP
    out = H[base + 1]
    time, instance = H[base + 2 * n], H[base + 2 * n + 1]
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            break
        a = base + 2 * low
        if low + 1 < n and (H[a + 2] < H[a] or (H[a + 2] == H[a] and H[a + 3] < H[a + 1])):
            low += 1
            a += 2
        if time < H[a] or (time == H[a] and instance <= H[a + 1]):
            break
        H[base + 2 * i] = H[a]
        H[base + 2 * i + 1] = H[a + 1]
        i = low
    H[base + 2 * i] = time
    H[base + 2 * i + 1] = instance
    return out
