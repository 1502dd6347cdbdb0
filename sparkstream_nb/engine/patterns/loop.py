"""The compiled loop of a pattern: rows of all its streams in their order, timers between them, matches out."""

from __future__ import annotations

from ..rows import EVENT_PHASE, ROOT_BITS
from .memory import (
    ABSENT,
    ACTIVE,
    AT,
    BASE,
    BORN,
    BY_INDEX,
    C_COUNT,
    C_EVENT,
    C_NEXT,
    CELL,
    CHAINED,
    CHAINS,
    CLOCKED,
    D_CAP,
    D_N,
    DUE_N,
    E_EXPIRED,
    E_GIVEN,
    E_REFS,
    E_SLOTS,
    E_TIME,
    EMITTED,
    EVENTS,
    F_BIRTH,
    F_EXPIRE,
    F_PROCESS,
    F_RESET,
    F_ROWS,
    F_UPDATE,
    FAILED,
    FAILURE,
    FIRST_OUT,
    HELD,
    HIGH,
    I_MASK,
    I_MORE,
    I_NOW,
    I_PART,
    I_ROOT,
    I_STREAM,
    INERT,
    JUDGED,
    KEYS,
    KIND,
    L_SIZE,
    LATE,
    LIMIT,
    LOW,
    M_INIT,
    M_RESET,
    M_SELECTS,
    M_STARTUP,
    M_STREAM,
    M_UPDATE,
    MARKED,
    N_PARTIAL,
    NEEDED,
    NEW,
    NEXT_DUE,
    NOW,
    NP,
    O_CAP,
    O_GROUP,
    O_KIND,
    O_N,
    O_PART,
    O_PARTIAL,
    O_ROOT,
    O_SENT_KIND,
    O_SENT_TIME,
    O_SLOTS,
    O_TIME,
    ORDINAL,
    P_SIZE,
    PARTNER,
    PEND,
    PROGRAM,
    R_N,
    RESET,
    RETURNS,
    SEQUENCE,
    SLOW,
    STAGE,
    START,
    STEADY,
    STEP,
    STEP_BASE,
    TIMER_AT,
    TIMERS,
    WITHIN,
    XC,
    XD,
    XE,
    XET,
    XL,
    XN,
    XO,
    XP,
    XR,
    XV,
)  # fmt: skip
from .partials import FAR, drop_partial, is_expired
from .pointers import Words, call2, call3, call5, compiled, entry, header, pool, unit
from .process import NONE_LEFT, start_again
from .states import has_room, has_room_for_event, init, is_blank_start, keep_blank_start, partition_created

DONE, NEED_ROOM, NEED_MUCH, NEED_ROWS, NEED_EVENTS, NEED_VERDICTS, NEED_CLOCK, NEED_REPORT = range(8)
"""How `run` comes back: finished; or memory for partials, for `NEEDED` of them, for matches, for their events; or
verdicts on the cells of a list by a filter that only Python can evaluate; or timers up to `LIMIT` (`timed.run_timed`);
or a report of the event at `AT`, which failed in a filter. After any but the first call it again."""


@unit
def birth(X: Words, l0: int, now: int) -> int:
    """A new partition instance: its start states wait for their first events (`initPartition`)."""
    L = pool(X, XL)
    if L[l0 + BORN] != 0:
        return 0
    L[l0 + BORN] = 1
    M = pool(X, M_INIT)
    i = 0
    while M[i] >= 0:
        init(X, l0, M[i])
        i += 1
    M = pool(X, M_STARTUP)
    i = 0
    while M[i] >= 0:
        partition_created(X, l0, M[i], now)
        i += 1
    return 0


@compiled
def _stabilize(X: Words, l0: int, stream: int, t: int) -> None:
    """`stabilizeStates`: before an event, what has run out goes and what was new waits."""
    if X[WITHIN] >= 0:
        L, N, P = pool(X, XL), pool(X, XN), pool(X, XP)
        for p in range(X[NP]):
            lp = l0 + p * L_SIZE
            gone = L[lp + PEND] != 0 and is_expired(X, N[L[lp + PEND] + N_PARTIAL], t)
            if L[lp + NEW] != 0 and (P[p * P_SIZE + STEADY] == 0 or t < L[lp + LOW] or L[lp + HIGH] < t):
                gone = True
            if gone:
                call3(X[F_EXPIRE], X, l0, p, t)
    if X[SEQUENCE] == 0:
        M = pool(X, M_STREAM)
        first = M[2 * stream]
        L, P = pool(X, XL), pool(X, XP)
        for i in range(first, first + M[2 * stream + 1]):
            lp = l0 + M[i] * L_SIZE
            if L[lp + NEW] != 0 or L[lp + RESET] != 0 or P[M[i] * P_SIZE + PARTNER] >= 0:
                call2(X[F_UPDATE], X, l0, M[i])
        return
    L, P = pool(X, XL), pool(X, XP)
    M = pool(X, M_RESET)
    i = 0
    while M[i] >= 0:
        p = M[i]
        lp = l0 + p * L_SIZE
        # Most states have nothing to reset or update; calls are worth avoiding here.
        something = L[lp + PEND] != 0 or P[p * P_SIZE + START] != 0 or P[p * P_SIZE + PARTNER] >= 0
        if something and not keep_blank_start(X, l0, p):
            call2(X[F_RESET], X, l0, p)
        i += 1
    M = pool(X, M_UPDATE)
    i = 0
    while M[i] >= 0:
        p = M[i]
        lp = l0 + p * L_SIZE
        if L[lp + NEW] != 0 or L[lp + RESET] != 0 or P[p * P_SIZE + PARTNER] >= 0:
            call2(X[F_UPDATE], X, l0, p)
        i += 1


@compiled
def _write_slots(X: Words, r: int, e: int) -> bool:
    """Writes the events of a partial into match `r`; False where there is no room for those of its chains."""
    E, out, D, C, P, n = pool(X, XE), pool(X, XO), pool(X, XD), pool(X, XC), pool(X, XP), X[NP]
    o, cap = O_SLOTS * X[O_CAP] + r, X[O_CAP]
    if X[CHAINS] == 0:
        for k in range(n):
            out[o + k * cap] = E[e + E_SLOTS + k]
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
            out[o + k * cap] = X[D_N]
            out[o + (n + k) * cap] = 0 if v == 0 else C[v + C_COUNT]
            while v != 0:
                D[X[D_N]] = C[v + C_EVENT]
                X[D_N] += 1
                v = C[v + C_NEXT]
        else:
            out[o + k * cap] = v
    return True


@compiled
def emit(X: Words, root: int, part: int, hold: bool, several: bool) -> int:
    """Writes what was given to the selector as matches. `hold`: `_settle` comes later, if any of them may change until
    then; `several`: they go on as one chunk."""
    R, E, out, cap = pool(X, XR), pool(X, XE), pool(X, XO), X[O_CAP]
    while X[EMITTED] < X[R_N]:
        r = X[O_N]
        if r >= cap:
            return NEED_ROWS
        e = R[X[EMITTED]]
        if not _write_slots(X, r, e):
            return NEED_EVENTS
        time, expired = E[e + E_TIME], E[e + E_EXPIRED]
        out[O_TIME * cap + r] = time
        out[O_ROOT * cap + r] = root
        out[O_PART * cap + r] = part
        out[O_GROUP * cap + r] = r - X[EMITTED] if several else r
        out[O_KIND * cap + r] = expired
        X[MARKED] |= expired
        E[e + E_GIVEN] = 0
        if hold and (X[HELD] > 0 or E[e + E_REFS] > 1):
            out[O_PARTIAL * cap + r] = e
            X[HELD] += 1
        else:
            out[O_PARTIAL * cap + r] = r
            out[O_SENT_TIME * cap + r] = time
            out[O_SENT_KIND * cap + r] = expired
            drop_partial(X, e)
        X[O_N] += 1
        X[EMITTED] += 1
    X[EMITTED] = 0
    X[R_N] = 0
    return DONE


@compiled
def _discard(X: Words) -> None:
    """Drops what was given to a selector that the stream's receiver does not know."""
    R, E = pool(X, XR), pool(X, XE)
    for i in range(X[R_N]):
        E[R[i] + E_GIVEN] = 0
        drop_partial(X, R[i])
    X[R_N] = 0


@compiled
def _abandon(X: Words) -> None:
    """An event that failed in a filter makes no matches: an error leaves Siddhi's receiver before it sends any."""
    _discard(X)
    out, cap = pool(X, XO), X[O_CAP]
    held = max(X[FIRST_OUT], X[O_N] - X[HELD])
    for r in range(held, X[O_N]):
        drop_partial(X, out[O_PARTIAL * cap + r])
        X[HELD] -= 1
    X[O_N] = X[FIRST_OUT]


@compiled
def _settle(X: Words, several: bool) -> int:
    """Ends a chunk. Siddhi sends on what it made when all of its events are through all states, and what it sends are
    the partials themselves, which may have changed since they were selected: their times and kinds are those of the
    end. Where several states read the stream, values were selected at once, and those of a partial's last match count;
    else they too are of the end, and a partial is sent once."""
    E, out, cap = pool(X, XE), pool(X, XO), X[O_CAP]
    if not several and X[CHAINS] > 0:  # room first, so that this can be done again
        more = X[HELD] * X[EVENTS]
        if X[D_N] + more > X[D_CAP]:
            X[NEEDED] = more
            return NEED_EVENTS
    first = X[O_N] - X[HELD]
    kept = first
    for r in range(first, X[O_N]):
        e = out[O_PARTIAL * cap + r]
        if not several:
            if E[e + E_GIVEN] != 0:
                drop_partial(X, e)
                continue
            if kept != r:
                for k in range(O_SLOTS):
                    out[k * cap + kept] = out[k * cap + r]
            out[O_GROUP * cap + kept] = kept
            out[O_TIME * cap + kept] = E[e + E_TIME]
            out[O_KIND * cap + kept] = E[e + E_EXPIRED]
            X[MARKED] |= E[e + E_EXPIRED]
            _write_slots(X, kept, e)
        E[e + E_GIVEN] = kept + 1
        kept += 1
    for r in range(first, kept):
        e = out[O_PARTIAL * cap + r]
        time, expired = E[e + E_TIME], E[e + E_EXPIRED]
        last = E[e + E_GIVEN] - 1
        if time != out[O_TIME * cap + r] or expired != out[O_KIND * cap + r] or last != r:
            X[LATE] = 1
        out[O_SENT_TIME * cap + r] = time
        out[O_SENT_KIND * cap + r] = expired
        out[O_PARTIAL * cap + r] = last
        if last == r:
            E[e + E_GIVEN] = 0
        drop_partial(X, e)
    X[O_N] = kept
    X[HELD] = 0
    return DONE


@compiled
def _process(X: Words, l0: int, p: int, i: int) -> int:
    """One processor and one event, from the beginning or from the cell where memory ran out."""
    P, L = pool(X, XP), pool(X, XL)
    f, lp = p * P_SIZE, l0 + p * L_SIZE
    kind, g = P[f + KIND], X[BASE] + i
    plain = pool(X, I_MASK)[i * X[NP] + p] != 0
    c = X[CELL]
    if c == 0:
        c = L[lp + PEND]
        if c == 0 or (kind >= ABSENT and L[lp + ACTIVE] == 0):
            return DONE
        if pool(X, I_MASK)[i * X[NP] + p] == FAILURE:
            X[FAILED] = 1
            return DONE
        if pool(X, XV)[P[f + RETURNS]] == 0:
            if not plain:
                if P[f + INERT] != 0 or is_blank_start(X, l0, p):
                    return DONE  # nothing would change, or be again as it is before the next event
                X[BY_INDEX] = 0
            elif P[f + PROGRAM] < 0 and P[f + SLOW] == 0:
                if start_again(X, l0, p, g):
                    return DONE
                X[BY_INDEX] = 0
            else:
                X[BY_INDEX] = P[f + KEYS] >= 0
        else:
            X[BY_INDEX] = 0
        if plain and P[f + SLOW] != 0 and X[JUDGED] == 0:
            return NEED_VERDICTS
        if X[BY_INDEX] != 0:
            c = 0
    c = call5(X[F_PROCESS], X, l0, p, g, plain, c)
    if c != NONE_LEFT:
        X[CELL] = c
        return NEED_ROOM
    X[CELL] = 0
    X[JUDGED] = 0
    return DONE


@compiled
def _timers_wait(X: Words, root: int) -> bool:
    """Whether timers may fire before a row of this root. Steps at which none is due are left behind here."""
    step = root >> ROOT_BITS
    if X[STEP] > step:
        return False
    if root & EVENT_PHASE != EVENT_PHASE or X[DUE_N] != 0:
        return True
    if pool(X, I_NOW)[step - X[STEP_BASE]] >= X[NEXT_DUE]:
        return True
    X[STEP] = step + 1
    X[TIMER_AT] = 0
    return False


@unit
def proceed(X: Words, whole: int, origin: int) -> int:
    """Processes the rows from `AT` on, and the timers up to the clock's end. `whole`: no partitions, so that instance 0
    exists from the start, which is at time `origin`."""
    more, selects = pool(X, I_MORE), pool(X, M_SELECTS)
    root_of, part_of, stream_of, clock = pool(X, I_ROOT), pool(X, I_PART), pool(X, I_STREAM), pool(X, I_NOW)
    if whole != 0 and pool(X, XL)[BORN] == 0:
        if not has_room(X):
            return NEED_ROOM
        call2(X[F_BIRTH], X, 0, origin)
    while X[AT] < X[EVENTS]:
        i = X[AT]
        root = root_of[i]
        part = part_of[i]
        l0 = part * L_SIZE * X[NP]
        stream = stream_of[i]
        if X[STAGE] == 0:
            if X[TIMERS] > 0 and X[CLOCKED] == 0:
                if _timers_wait(X, root):
                    X[LIMIT] = root
                    return NEED_CLOCK
            if not has_room_for_event(X):
                return NEED_ROOM
            X[CLOCKED] = 0
            X[NOW] = clock[(root >> ROOT_BITS) - X[STEP_BASE]]
            if pool(X, XL)[l0 + BORN] == 0:
                call2(X[F_BIRTH], X, l0, X[NOW])
            _stabilize(X, l0, stream, pool(X, XET)[X[BASE] + i])
            X[STAGE] = 1
            X[ORDINAL] = 0
            X[FIRST_OUT] = X[O_N]
        M = pool(X, M_STREAM)
        n = M[2 * stream + 1]
        hold = n > 1 or more[i] != 0 or (i > 0 and more[i - 1] != 0)
        while X[ORDINAL] < n:
            p = M[M[2 * stream] + n - 1 - X[ORDINAL]]
            if pool(X, XL)[l0 + p * L_SIZE + PEND] != 0 or X[CELL] != 0 or X[STAGE] == 2:
                if X[STAGE] == 1:
                    status = _process(X, l0, p, i)
                    if status != DONE:
                        return status
                    if X[FAILED] != 0:
                        _abandon(X)
                        X[FAILED] = 0
                        X[ORDINAL] = n
                        return NEED_REPORT
                    X[STAGE] = 2
                if X[R_N] > 0:
                    if selects[stream] == 0:
                        _discard(X)
                    else:
                        status = emit(X, root, part, hold, n > 1)
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
    if X[TIMERS] > 0 and X[CLOCKED] == 0:
        X[LIMIT] = FAR
        return NEED_CLOCK
    return DONE


@entry
def run(address: int, whole: int, origin: int) -> int:
    """`proceed` for the machine whose header is at `address`."""
    X = header(address)
    return call2(X[F_ROWS], X, whole, origin)
