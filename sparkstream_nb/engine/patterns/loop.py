"""The compiled loop of a pattern: rows of all its streams in their order, timers between them, matches out."""

from __future__ import annotations

from typing import Any

from ..rows import ROOT_BITS
from .machine import clear_new, clear_pending, drop_partial, enter_index, index_key, pop_heap, push_heap
from .memory import (
    ABSENT,
    ABSENT_LOGICAL,
    ACTIVE,
    AT,
    B_HEAD,
    BASE,
    BORN,
    BY_INDEX,
    C_COUNT,
    C_EVENT,
    C_NEXT,
    CELL,
    CHAINED,
    CHAINS,
    COUNT,
    D_CAP,
    D_N,
    DRAINING,
    DUE_AT,
    DUE_N,
    E_EXPIRED,
    E_GIVEN,
    E_SIZE,
    E_SLOTS,
    E_TIME,
    EMITTED,
    EVENTS,
    HEAP_N,
    HELD,
    I_MASK,
    I_MORE,
    I_MOVED,
    I_NOW,
    I_PART,
    I_ROOT,
    I_STREAM,
    INDEXED,
    JUDGED,
    KEYS,
    KIND,
    L_SIZE,
    LOGICAL,
    M_INIT,
    M_RESET,
    M_SELECTS,
    M_STARTUP,
    M_STREAM,
    M_TIMERS,
    M_UPDATE,
    N_DOWN,
    N_NEXT,
    N_OWNER,
    N_VALUE,
    NEEDED,
    NEW,
    NOW,
    NP,
    O_CAP,
    O_EVENT,
    O_KIND,
    O_N,
    O_PART,
    O_PARTIAL,
    O_ROOT,
    O_SENT_KIND,
    O_SENT_TIME,
    O_SIZE,
    O_SLOTS,
    O_STATE,
    O_TIME,
    ORDINAL,
    P_SIZE,
    PARTNER,
    PEND,
    PHASE,
    QUEUE,
    R_N,
    RESET,
    RETURNS,
    SEQUENCE,
    SLOW,
    STAGE,
    START,
    STEP,
    STEP_BASE,
    STEP_END,
    STREAM,
    T_FREE,
    T_LEFT,
    TIMER_AT,
    TIMERS,
    WITHIN,
    XB,
    XC,
    XD,
    XDUE,
    XE,
    XET,
    XH,
    XL,
    XN,
    XO,
    XP,
    XR,
    XRANK,
    XT,
    XV,
    Words,
    compiled,
    octets,
    words,
)  # fmt: skip
from .states import (
    NONE_LEFT,
    expire_events,
    has_room,
    has_room_for_event,
    init,
    is_blank_start,
    process_absent_logical,
    process_count,
    process_indexed,
    process_logical,
    process_stream,
    reset_state,
    update_state,
)  # fmt: skip
from .timed import has_room_for_timer, partition_created, process_timer, process_timer_logical

DONE, NEED_ROOM, NEED_MUCH, NEED_ROWS, NEED_EVENTS, NEED_VERDICTS = range(6)
"""How `run` comes back: finished; or memory for partials, for `NEEDED` of them, for matches, for their events; or
verdicts on the cells of a list by a filter that only Python can evaluate. After any but the first call it again."""


@compiled
def _birth(X: Words, l0: int, now: int) -> None:
    """A new partition instance: its start states wait for their first events (`initPartition`)."""
    L = words(X[XL])
    if L[l0 + BORN] != 0:
        return
    L[l0 + BORN] = 1
    M = words(X[M_INIT])
    i = 0
    while M[i] >= 0:
        init(X, l0, M[i])
        i += 1
    M = words(X[M_STARTUP])
    i = 0
    while M[i] >= 0:
        partition_created(X, l0, M[i], now)
        i += 1


@compiled
def _stabilize(X: Words, l0: int, stream: int, t: int) -> None:
    """`stabilizeStates`: before an event, what has run out goes and what was new waits."""
    if X[WITHIN] >= 0:
        L = words(X[XL])
        for p in range(X[NP]):
            lp = l0 + p * L_SIZE
            if L[lp + PEND] != 0 or L[lp + NEW] != 0:
                expire_events(X, l0, p, t)
    if X[SEQUENCE] == 0:
        M = words(X[M_STREAM])
        first = M[2 * stream]
        L, P = words(X[XL]), words(X[XP])
        for i in range(first, first + M[2 * stream + 1]):
            lp = l0 + M[i] * L_SIZE
            if L[lp + NEW] != 0 or L[lp + RESET] != 0 or P[M[i] * P_SIZE + PARTNER] >= 0:
                update_state(X, l0, M[i])
        return
    L, P = words(X[XL]), words(X[XP])
    M = words(X[M_RESET])
    i = 0
    while M[i] >= 0:
        p = M[i]
        lp = l0 + p * L_SIZE
        # Most states have nothing to reset or update; calls are worth avoiding here.
        if L[lp + PEND] != 0 or P[p * P_SIZE + START] != 0 or P[p * P_SIZE + PARTNER] >= 0:
            reset_state(X, l0, p)
        i += 1
    M = words(X[M_UPDATE])
    i = 0
    while M[i] >= 0:
        p = M[i]
        lp = l0 + p * L_SIZE
        if L[lp + NEW] != 0 or L[lp + RESET] != 0 or P[p * P_SIZE + PARTNER] >= 0:
            update_state(X, l0, p)
        i += 1


@compiled
def _write_slots(X: Words, o: int, e: int) -> bool:
    """Writes the events of a partial into the match at `o`; False where there is no room for those of its chains."""
    E, out, D, C, P, n = words(X[XE]), words(X[XO]), words(X[XD]), words(X[XC]), words(X[XP]), X[NP]
    if X[CHAINS] == 0:
        for k in range(n):
            out[o + O_SLOTS + k] = E[e + E_SLOTS + k]
        return True
    more = 0
    for k in range(n):
        if P[k * P_SIZE + CHAINED] != 0 and E[e + E_SLOTS + k] != 0:
            more += C[E[e + E_SLOTS + k] + C_COUNT]
    if X[D_N] + more > X[D_CAP]:
        X[NEEDED] = more
        return False
    for k in range(n):
        v = E[e + E_SLOTS + k]
        if P[k * P_SIZE + CHAINED] != 0:
            out[o + O_SLOTS + k] = X[D_N]
            out[o + O_SLOTS + n + k] = 0 if v == 0 else C[v + C_COUNT]
            while v != 0:
                D[X[D_N]] = C[v + C_EVENT]
                X[D_N] += 1
                v = C[v + C_NEXT]
        else:
            out[o + O_SLOTS + k] = v
    return True


@compiled
def _emit(X: Words, root: int, part: int, p: int, g: int, hold: bool) -> int:
    """Writes what was given to the selector as matches. `hold`: `_settle` comes later."""
    R, E, out = words(X[XR]), words(X[XE]), words(X[XO])
    while X[EMITTED] < X[R_N]:
        if X[O_N] >= X[O_CAP]:
            return NEED_ROWS
        e = R[X[EMITTED]]
        o = X[O_N] * X[O_SIZE]
        if not _write_slots(X, o, e):
            return NEED_EVENTS
        out[o + O_TIME] = E[e + E_TIME]
        out[o + O_ROOT] = root
        out[o + O_PART] = part
        out[o + O_STATE] = p
        out[o + O_EVENT] = g
        out[o + O_KIND] = E[e + E_EXPIRED]
        E[e + E_GIVEN] = 0
        if hold:
            out[o + O_PARTIAL] = e
            X[HELD] += 1
        else:
            out[o + O_PARTIAL] = X[O_N]
            out[o + O_SENT_TIME] = E[e + E_TIME]
            out[o + O_SENT_KIND] = E[e + E_EXPIRED]
            drop_partial(X, e)
        X[O_N] += 1
        X[EMITTED] += 1
    X[EMITTED] = 0
    X[R_N] = 0
    return DONE


@compiled
def _discard(X: Words) -> None:
    """Drops what was given to a selector that the stream's receiver does not know."""
    R, E = words(X[XR]), words(X[XE])
    for i in range(X[R_N]):
        E[R[i] + E_GIVEN] = 0
        drop_partial(X, R[i])
    X[R_N] = 0


@compiled
def _settle(X: Words, several: bool) -> int:
    """Ends a chunk. Siddhi sends on what it made when all of its events are through all states, and what it sends are
    the partials themselves, which may have changed since they were selected: their times and kinds are those of the
    end. Where several states read the stream, values were selected at once, and those of a partial's last match count;
    else they too are of the end, and a partial is sent once."""
    E, out, size = words(X[XE]), words(X[XO]), X[O_SIZE]
    if not several and X[CHAINS] > 0:  # room first, so that this can be done again
        more = X[HELD] * X[EVENTS]
        if X[D_N] + more > X[D_CAP]:
            X[NEEDED] = more
            return NEED_EVENTS
    first = X[O_N] - X[HELD]
    kept = first
    for r in range(first, X[O_N]):
        o = r * size
        e = out[o + O_PARTIAL]
        if not several:
            if E[e + E_GIVEN] != 0:
                drop_partial(X, e)
                continue
            out[o + O_TIME] = E[e + E_TIME]
            out[o + O_KIND] = E[e + E_EXPIRED]
            _write_slots(X, o, e)
            if kept != r:
                for k in range(size):
                    out[kept * size + k] = out[o + k]
        E[e + E_GIVEN] = kept + 1
        kept += 1
    for r in range(first, kept):
        o = r * size
        e = out[o + O_PARTIAL]
        out[o + O_SENT_TIME] = E[e + E_TIME]
        out[o + O_SENT_KIND] = E[e + E_EXPIRED]
        last = E[e + E_GIVEN] - 1
        out[o + O_PARTIAL] = last
        if last == r:
            E[e + E_GIVEN] = 0
        drop_partial(X, e)
    X[O_N] = kept
    X[HELD] = 0
    return DONE


@compiled
def _collect_due(X: Words, k: int, now: int) -> None:
    """Takes the instances that run at `now` into `DUE`, by their first times. Of several with the same first time only
    the first by the rank of Siddhi's map runs; the others stay for the next movement of the clock (`onTimeChange`)."""
    H, due, rank = words(X[XH]), words(X[XDUE]), words(X[XRANK])
    base = k * X[HEAP_N]
    n = 0
    while H[base] > 0 and H[base + 2] <= now:
        due[2 * n] = H[base + 2]
        due[2 * n + 1] = pop_heap(X, k)
        n += 1
    runs, i = 0, 0
    while i < n:
        best, j, time = i, i + 1, due[2 * i]
        while j < n and due[2 * j] == time:
            if rank[due[2 * j + 1]] < rank[due[2 * best + 1]]:
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


@compiled
def _drain(X: Words, p: int, part: int, now: int, root: int) -> int:
    """`Scheduler.sendTimerEvents`: all times of an instance that are due, each with what it causes."""
    L, T, P = words(X[XL]), words(X[XT]), words(X[XP])
    l0 = part * L_SIZE * X[NP]
    lp = l0 + p * L_SIZE
    X[NOW] = now
    X[DRAINING] = lp + 1
    while True:
        if X[R_N] > 0:
            status = _emit(X, root, part, p, -1, False)
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
        push_heap(X, X[TIMER_AT], T[L[lp + QUEUE]], part)
    return DONE


@compiled
def _advance_clock(X: Words, limit: int) -> int:
    """Fires the timers whose order key is before `limit`."""
    P, M, H = words(X[XP]), words(X[M_TIMERS]), words(X[XH])
    times, moved = words(X[I_NOW]), octets(X[I_MOVED])
    while X[STEP] < X[STEP_END]:
        step = X[STEP]
        key = step << ROOT_BITS
        if key > limit:
            return DONE
        if moved[step - X[STEP_BASE]] != 0:
            now = times[step - X[STEP_BASE]]
            while X[TIMER_AT] < X[TIMERS]:
                k = X[TIMER_AT]
                p = M[k]
                root = key + P[p * P_SIZE + PHASE]
                if root > limit:
                    return DONE
                if X[DUE_N] == 0:
                    base = k * X[HEAP_N]
                    if H[base] > 0 and H[base + 2] <= now:
                        _collect_due(X, k, now)
                while X[DUE_AT] < X[DUE_N]:
                    status = _drain(X, p, words(X[XDUE])[2 * X[DUE_AT] + 1], now, root)
                    if status != DONE:
                        return status
                    X[DUE_AT] += 1
                X[DUE_N] = 0
                X[DUE_AT] = 0
                X[TIMER_AT] += 1
        X[TIMER_AT] = 0
        X[STEP] += 1
    return DONE


@compiled
def _process(X: Words, l0: int, p: int, i: int) -> int:
    """One processor and one event, from the beginning or from the cell where memory ran out."""
    P, L = words(X[XP]), words(X[XL])
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    kind, g = P[f + KIND], X[BASE] + i
    plain = octets(X[I_MASK])[i * X[NP] + p] != 0
    c = X[CELL]
    if c == 0:
        c = L[lp + PEND]
        if c == 0:
            return DONE
        quiet = words(X[XV])[P[f + RETURNS]] == 0
        if not plain and quiet and kind == STREAM and (X[SEQUENCE] == 0 or is_blank_start(X, l0, p)):
            return DONE  # nothing would change, or be again as it is before the next event
        if plain and P[f + SLOW] != 0 and X[JUDGED] == 0:
            return NEED_VERDICTS
        X[BY_INDEX] = 1 if plain and quiet and P[f + KEYS] >= 0 else 0
        if X[BY_INDEX] != 0:
            c = 0
    if X[BY_INDEX] != 0:
        c = process_indexed(X, l0, p, g, c)
    elif kind == STREAM:
        c = process_stream(X, l0, p, g, plain, c)
    elif kind == COUNT:
        c = process_count(X, l0, p, g, plain, c)
    elif kind == LOGICAL:
        c = process_logical(X, l0, p, g, plain, c)
    elif kind == ABSENT_LOGICAL:
        c = process_absent_logical(X, l0, p, g, plain, c)
    elif L[lp + ACTIVE] != 0:
        c = process_stream(X, l0, p, g, plain, c)
    else:
        c = NONE_LEFT
    if c != NONE_LEFT:
        X[CELL] = c
        return NEED_ROOM
    X[CELL] = 0
    X[JUDGED] = 0
    return DONE


@compiled
def run(address: int, whole: bool, origin: int) -> int:
    """Processes the rows from `AT` on, and the timers up to the clock's end. `whole`: no partitions, so that instance 0
    exists from the start, which is at time `origin`."""
    X = words(address)
    more, selects = octets(X[I_MORE]), words(X[M_SELECTS])
    root_of, part_of, stream_of, clock = words(X[I_ROOT]), words(X[I_PART]), words(X[I_STREAM]), words(X[I_NOW])
    if whole and words(X[XL])[BORN] == 0:
        if not has_room(X):
            return NEED_ROOM
        _birth(X, 0, origin)
    while X[AT] < X[EVENTS]:
        i = X[AT]
        root = root_of[i]
        if X[TIMERS] > 0 and X[STAGE] == 0:
            status = _advance_clock(X, root)
            if status != DONE:
                return status
        part = part_of[i]
        l0 = part * L_SIZE * X[NP]
        stream = stream_of[i]
        if X[STAGE] == 0:
            if not has_room_for_event(X):
                return NEED_ROOM
            X[NOW] = clock[(root >> ROOT_BITS) - X[STEP_BASE]]
            if words(X[XL])[l0 + BORN] == 0:
                _birth(X, l0, X[NOW])
            _stabilize(X, l0, stream, words(X[XET])[X[BASE] + i])
            X[STAGE] = 1
            X[ORDINAL] = 0
        M = words(X[M_STREAM])
        n = M[2 * stream + 1]
        hold = n > 1 or more[i] != 0 or (i > 0 and more[i - 1] != 0)
        while X[ORDINAL] < n:
            p = M[M[2 * stream] + n - 1 - X[ORDINAL]]
            if words(X[XL])[l0 + p * L_SIZE + PEND] != 0 or X[CELL] != 0 or X[STAGE] == 2:
                if X[STAGE] == 1:
                    status = _process(X, l0, p, i)
                    if status != DONE:
                        return status
                    X[STAGE] = 2
                if X[R_N] > 0 and selects[stream] == 0:
                    _discard(X)
                if X[R_N] > 0:
                    status = _emit(X, root, part, p, X[BASE] + i, hold)
                    if status != DONE:
                        return status
                X[STAGE] = 1
            X[ORDINAL] += 1
        if X[HELD] > 0 and more[i] == 0:
            X[STAGE] = 3
            status = _settle(X, n > 1)
            if status != DONE:
                return status
        X[STAGE] = 0
        X[AT] += 1
    if X[TIMERS] > 0:
        return _advance_clock(X, 1 << 62)
    return DONE


@compiled
def candidates(address: int, p: int, out: Any) -> int:
    """The cells that processor `p` will look at for the current event; their verdicts are cleared. With an index these
    are the cells of one bucket. `out` has room for a whole list."""
    X = words(address)
    P, L, N = words(X[XP]), words(X[XL]), words(X[XN])
    i = X[AT]
    lp = words(X[I_PART])[i] * L_SIZE * X[NP] + p * L_SIZE
    indexed = P[p * P_SIZE + KEYS] >= 0 and words(X[XV])[P[p * P_SIZE + RETURNS]] == 0
    if indexed:
        b = index_key(X, lp, p, 0, X[BASE] + i, False)
        if b < 0:
            return 0
        c = words(X[XB])[b + B_HEAD]
    else:
        c = L[lp + PEND]
    n = 0
    while c != 0:
        if not indexed or N[c + N_OWNER] == lp:
            N[c + N_VALUE] = 0
            out[n] = c
            n += 1
        c = N[c + N_DOWN] if indexed else N[c + N_NEXT]
    return n


@compiled
def reindex(address: int, parts: int) -> None:
    """Enters all pending cells into the bucket array, which is new and empty, in list order."""
    X = words(address)
    L, N, P = words(X[XL]), words(X[XN]), words(X[XP])
    X[INDEXED] = 0
    for part in range(parts):
        for p in range(X[NP]):
            if P[p * P_SIZE + KEYS] >= 0:
                lp = (part * X[NP] + p) * L_SIZE
                c = L[lp + PEND]
                while c != 0:
                    enter_index(X, lp, p, c)
                    c = N[c + N_NEXT]


@compiled
def forget_parts(address: int, parts: Any) -> None:
    """Gives back the memory of partition instances. Their records in `L` are not cleared otherwise, and entries of
    theirs in the schedulers' heaps find nothing to run."""
    X = words(address)
    L, T = words(X[XL]), words(X[XT])
    for part in parts:
        for p in range(X[NP]):
            lp = (part * X[NP] + p) * L_SIZE
            clear_pending(X, lp)
            clear_new(X, lp)
            while L[lp + QUEUE] != 0:
                c = L[lp + QUEUE]
                L[lp + QUEUE] = T[c + 1]
                T[c + 1] = X[T_FREE]
                X[T_FREE] = c
                X[T_LEFT] += 1


@compiled
def mark_events(address: int, capacity: int, used: Any) -> None:
    """Sets `used` at every log number that a living partial refers to. `capacity`: words of `E`."""
    X = words(address)
    E, C, P = words(X[XE]), words(X[XC]), words(X[XP])
    e = X[E_SIZE]
    while e < capacity:
        if E[e + 1] > 0:
            for p in range(X[NP]):
                v = E[e + E_SLOTS + p]
                if P[p * P_SIZE + CHAINED] != 0:
                    while v != 0:
                        used[C[v + C_EVENT]] = 1
                        v = C[v + C_NEXT]
                else:
                    used[v] = 1
        e += X[E_SIZE]


@compiled
def renumber_events(address: int, capacity: int, new: Any) -> None:
    """Replaces log numbers by `new[number]` in all living partials. Chains are shared, so they are visited cell by cell
    through a negative sign."""
    X = words(address)
    E, C, P = words(X[XE]), words(X[XC]), words(X[XP])
    e = X[E_SIZE]
    while e < capacity:
        if E[e + 1] > 0:
            for p in range(X[NP]):
                v = E[e + E_SLOTS + p]
                if P[p * P_SIZE + CHAINED] == 0:
                    E[e + E_SLOTS + p] = new[v]
                elif v != 0 and C[v + C_EVENT] >= 0:
                    while v != 0:
                        C[v + C_EVENT] = -1 - new[C[v + C_EVENT]]
                        v = C[v + C_NEXT]
        e += X[E_SIZE]
    e = X[E_SIZE]
    while e < capacity:
        if E[e + 1] > 0:
            for p in range(X[NP]):
                v = E[e + E_SLOTS + p]
                if P[p * P_SIZE + CHAINED] != 0 and v != 0 and C[v + C_EVENT] < 0:
                    while v != 0:
                        C[v + C_EVENT] = -1 - C[v + C_EVENT]
                        v = C[v + C_NEXT]
        e += X[E_SIZE]
