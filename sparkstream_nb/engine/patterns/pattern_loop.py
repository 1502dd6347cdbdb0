"""The compiled loop of a pattern: processes the rows of all its streams in order, with timers between them, and emits
matches."""

from __future__ import annotations

from ..columnar.rows import EVENT_PHASE, ORDER_KEY_BITS
from ..notation.intrinsics import AHEAD
from .machine import clear_pending, splice_new
from .machine_memory import (
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
    COPIED,
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
    F_CREATED,
    F_EXPIRE,
    F_LOOK,
    F_PROCESS,
    F_RESET,
    F_ROWS,
    F_UPDATE,
    F_WAIT,
    F_WRITE,
    FAILED,
    FAILURE,
    FIRST_OUT,
    HELD,
    HIGH,
    I_INSTANCE,
    I_MASK,
    I_MORE,
    I_NOW,
    I_ORDER_KEY,
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
    NEW_N,
    NEXT_DUE,
    NP,
    O_CAP,
    O_GROUP,
    O_INSTANCE,
    O_KIND,
    O_N,
    O_ORDER_KEY,
    O_PARTIAL,
    O_SENT_KIND,
    O_SENT_TIME,
    O_SLOTS,
    O_TIME,
    ORDINAL,
    P_SIZE,
    PARTED,
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
    STREAM_OF,
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
from .partial_matches import FAR, drop_partial, is_expired
from .pointers import Words, ask, call1, call2, call3, call5, called, compiled, entry, header, pool, unit
from .process import NONE_LEFT, start_again
from .processors import has_room, has_room_for_event, init, is_blank_start, keep_blank_start

DONE, NEED_ROOM, NEED_MUCH, NEED_ROWS, NEED_EVENTS, NEED_VERDICTS, NEED_CLOCK, NEED_REPORT = range(8)
"""Return codes of `run`: finished; or it needs memory for partials, for `NEEDED` of them, for matches, for their
events; or verdicts on the cells of a list by a filter that only Python can evaluate; or timers up to `LIMIT`
(`timed.run_timed`); or a report of the event at `AT`, which failed in a filter. After any but the first, call it again.
"""


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
        call3(X[F_CREATED], X, l0, M[i], now)
        i += 1
    return 0


@compiled
def _runs_out(X: Words, lp: int, p: int, t: int) -> bool:
    """True if partials of a state may have expired by time `t`."""
    L, N = pool(X, XL), pool(X, XN)
    if L[lp + PEND] != 0 and is_expired(X, N[L[lp + PEND] + N_PARTIAL], t):
        return True
    return L[lp + NEW] != 0 and (pool(X, XP)[p * P_SIZE + STEADY] == 0 or t < L[lp + LOW] or L[lp + HIGH] < t)


@compiled
def _is_partner_new(X: Words, l0: int, p: int) -> bool:
    """True if the other side of a logical state has something new."""
    other = pool(X, XP)[p * P_SIZE + PARTNER]
    return other >= 0 and pool(X, XL)[l0 + other * L_SIZE + NEW] != 0


@compiled
def _is_idle(X: Words, l0: int, stream: int, i: int, t: int) -> bool:
    """True if row `i` leaves everything as it is: most events of a pattern that waits for few."""
    L, P, V, mask = pool(X, XL), pool(X, XP), pool(X, XV), i * X[NP]
    if X[SEQUENCE] != 0:
        E, N = pool(X, XE), pool(X, XN)
        for p in range(X[NP]):
            lp, f = l0 + p * L_SIZE, p * P_SIZE
            if L[lp + PEND] == 0:
                if L[lp + NEW] != 0 or L[lp + RESET] != 0 or P[f + START] != 0 or P[f + PARTNER] >= 0:
                    return False
            elif (
                (P[f + STREAM_OF] == stream and pool(X, I_MASK)[mask + p] != 0)
                or L[lp + COPIED] != 0
                or V[P[f + RETURNS]] != 0
                or not is_blank_start(X, l0, p)
                or E[N[L[lp + PEND] + N_PARTIAL] + E_TIME] != -1
            ):
                return False
        return True
    M = pool(X, M_STREAM)
    first = M[2 * stream]
    for k in range(first, first + M[2 * stream + 1]):
        p = M[k]
        lp, f = l0 + p * L_SIZE, p * P_SIZE
        if L[lp + NEW] != 0 or L[lp + RESET] != 0 or _is_partner_new(X, l0, p):
            return False
        if L[lp + PEND] != 0:
            passed = pool(X, I_MASK)[mask + p]
            if V[P[f + RETURNS]] != 0 or passed == FAILURE:
                return False
            if passed == 0:
                if P[f + INERT] == 0:
                    return False
            elif P[f + KEYS] < 0 or call3(X[F_LOOK], X, lp, p, X[BASE] + i) != 0:
                return False
    if X[WITHIN] >= 0:
        for p in range(X[NP]):
            if _runs_out(X, l0 + p * L_SIZE, p, t):
                return False
    return True


@compiled
def _stabilize(X: Words, l0: int, stream: int, t: int) -> None:
    """`stabilizeStates`: before an event, expired partials go and new ones become pending."""
    P = pool(X, XP)
    if X[WITHIN] >= 0:
        for p in range(X[NP]):
            if _runs_out(X, l0 + p * L_SIZE, p, t):
                call3(X[F_EXPIRE], X, l0, p, t)
    if X[SEQUENCE] == 0:
        M = pool(X, M_STREAM)
        first = M[2 * stream]
        for i in range(first, first + M[2 * stream + 1]):
            _update(X, l0, M[i])
        return
    M = pool(X, M_RESET)
    i = 0
    while M[i] >= 0:
        p = M[i]
        f, lp = p * P_SIZE, l0 + p * L_SIZE
        if P[f + START] != 0 or P[f + PARTNER] >= 0:
            if not keep_blank_start(X, l0, p):
                call2(X[F_RESET], X, l0, p)
        else:
            clear_pending(X, lp)
        i += 1
    M = pool(X, M_UPDATE)
    i = 0
    while M[i] >= 0:
        _update(X, l0, M[i])
        i += 1


@compiled
def _update(X: Words, l0: int, p: int) -> None:
    """`updateState`, at once where one partial is new."""
    L, lp = pool(X, XL), l0 + p * L_SIZE
    if L[lp + RESET] != 0 or L[lp + NEW_N] > 1 or _is_partner_new(X, l0, p):
        call2(X[F_UPDATE], X, l0, p)
    elif L[lp + NEW] != 0:
        splice_new(X, lp, p)


@compiled
def _write_slots(X: Words, r: int, e: int) -> bool:
    """Write the events of a partial into match `r`; False if there is no room for the events of its chains."""
    if X[CHAINS] != 0:
        return call2(X[F_WRITE], X, r, e) != 0
    E, out, o = pool(X, XE), pool(X, XO), O_SLOTS * X[O_CAP] + r
    for k in range(X[NP]):
        out[o + k * X[O_CAP]] = E[e + E_SLOTS + k]
    return True


@unit
def write_chains(X: Words, r: int, e: int) -> int:
    """`_write_slots` where states are counted."""
    E, out, D, C, P, n = pool(X, XE), pool(X, XO), pool(X, XD), pool(X, XC), pool(X, XP), X[NP]
    o, cap = O_SLOTS * X[O_CAP] + r, X[O_CAP]
    more = 0
    for k in range(n):
        if P[k * P_SIZE + CHAINED] != 0 and E[e + E_SLOTS + k] != 0:
            more += C[E[e + E_SLOTS + k] + C_COUNT]
    if X[D_N] + more > X[D_CAP]:
        X[NEEDED] = more
        return 0
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
    return 1


@compiled
def _mark(X: Words, r: int, expired: int) -> None:
    """Sets the kind of match `r`: kinds are kept from the first match on that is marked as expired."""
    if (expired != 0 and X[MARKED] == 0) or X[MARKED] > r + 1:
        X[MARKED] = r + 1
    if X[MARKED] != 0:
        pool(X, XO)[O_KIND * X[O_CAP] + r] = expired


@compiled
def emit(X: Words, order_key: int, instance: int, hold: bool, several: bool) -> int:
    """Writes the partials given to the selector as matches. `hold`: `_settle` comes later, if any of them may change
    until then; `several`: they continue as one chunk.
    """
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
        out[O_ORDER_KEY * cap + r] = order_key
        if X[PARTED] != 0:
            out[O_INSTANCE * cap + r] = instance
        out[O_GROUP * cap + r] = r - X[EMITTED] if several else r
        _mark(X, r, expired)
        E[e + E_GIVEN] = 0
        if hold and (X[HELD] > 0 or E[e + E_REFS] > 1):
            out[O_PARTIAL * cap + r] = e
            X[HELD] += 1
        else:
            if X[LATE] != 0:
                out[O_PARTIAL * cap + r] = r
                out[O_SENT_TIME * cap + r] = time
                out[O_SENT_KIND * cap + r] = expired
            drop_partial(X, e)
        X[O_N] += 1
        X[EMITTED] += 1
    X[EMITTED] = 0
    X[R_N] = 0
    return DONE


@called
def _discard(X: Words) -> None:
    """Drop the partials given to a selector that the stream's receiver does not know."""
    R, E = pool(X, XR), pool(X, XE)
    for i in range(X[R_N]):
        E[R[i] + E_GIVEN] = 0
        drop_partial(X, R[i])
    X[R_N] = 0


@called
def _abandon(X: Words) -> None:
    """An event that failed in a filter makes no matches: an error leaves Siddhi's receiver before it sends any."""
    _discard(X)
    out, cap = pool(X, XO), X[O_CAP]
    held = max(X[FIRST_OUT], X[O_N] - X[HELD])
    for r in range(held, X[O_N]):
        drop_partial(X, out[O_PARTIAL * cap + r])
        X[HELD] -= 1
    X[O_N] = X[FIRST_OUT]


@called
def _settle(X: Words, several: bool) -> int:
    """Finish a chunk. Siddhi emits the live partials (`StateEvent`) after all events of the chunk have passed all
    states, so times and types are read here, not at selection. If several states read the stream, values were selected
    at once, and the values of a partial's last match count; else they too are read here, and a partial is emitted once.
    """
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
            _mark(X, kept, E[e + E_EXPIRED])
            _write_slots(X, kept, e)
        E[e + E_GIVEN] = kept + 1
        kept += 1
    for r in range(first, kept):
        e = out[O_PARTIAL * cap + r]
        time, expired = E[e + E_TIME], E[e + E_EXPIRED]
        last = E[e + E_GIVEN] - 1
        was = out[O_KIND * cap + r] if 0 < X[MARKED] <= r + 1 else 0
        if X[LATE] == 0 and (time != out[O_TIME * cap + r] or expired != was or last != r):
            X[LATE] = first + 1
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
    passed = int(pool(X, I_MASK)[i * X[NP] + p])
    c = X[CELL]
    if c == 0:
        c = L[lp + PEND]
        if c == 0 or (kind >= ABSENT and L[lp + ACTIVE] == 0):
            return DONE
        if passed == FAILURE:
            X[FAILED] = 1
            return DONE
        X[BY_INDEX] = 0
        if pool(X, XV)[P[f + RETURNS]] == 0:
            if passed == 0:
                if P[f + INERT] != 0 or is_blank_start(X, l0, p):
                    return DONE  # nothing would change, or be again as it is before the next event
            elif P[f + PROGRAM] < 0 and P[f + SLOW] == 0:
                if start_again(X, l0, p, g):
                    return DONE
            elif P[f + KEYS] >= 0:
                c = call3(X[F_LOOK], X, lp, p, g)
                if c == 0:
                    return DONE
                X[BY_INDEX] = 1
        if passed != 0 and P[f + SLOW] != 0 and X[JUDGED] == 0:
            return NEED_VERDICTS
    c = call5(X[F_PROCESS], X, l0, p, g, passed, c)
    if c != NONE_LEFT:
        X[CELL] = c
        return NEED_ROOM
    X[CELL] = 0
    X[JUDGED] = 0
    return DONE


@unit
def timers_wait(X: Words, order_key: int) -> int:
    """1 if timers may fire before a row of this order key. Skips steps without due timers."""
    step = order_key >> ORDER_KEY_BITS
    if X[STEP] > step:
        return 0
    if order_key & EVENT_PHASE != EVENT_PHASE or X[DUE_N] != 0:
        return 1
    if pool(X, I_NOW)[step - X[STEP_BASE]] >= X[NEXT_DUE]:
        return 1
    X[STEP] = step + 1
    X[TIMER_AT] = 0
    return 0


@compiled
def _ask_ahead(X: Words, i: int) -> None:
    """Prefetch the state of later rows' instances: first their lists, then the first entries of these, then the
    entries' partials.
    """
    L, N, E, instance_of = pool(X, XL), pool(X, XN), pool(X, XE), pool(X, I_INSTANCE)
    size = L_SIZE * X[NP]
    far, near = instance_of[i + AHEAD] * size, instance_of[i + AHEAD // 2] * size
    next_ = instance_of[i + AHEAD // 4] * size
    for p in range(X[NP]):
        ask(L, far + p * L_SIZE)
        ask(L, far + p * L_SIZE + 8)
        ask(N, L[near + p * L_SIZE + PEND])
        ask(N, L[near + p * L_SIZE + NEW])
        ask(E, N[L[next_ + p * L_SIZE + PEND] + N_PARTIAL])
        ask(E, N[L[next_ + p * L_SIZE + NEW] + N_PARTIAL])


@unit
def proceed(X: Words, whole: int, origin: int) -> int:
    """Processes the rows from `AT` on, and the timers up to the clock's end. `whole`: no partitions, so that instance 0
    exists from the start, which is at time `origin`."""
    more, selects, M = pool(X, I_MORE), pool(X, M_SELECTS), pool(X, M_STREAM)
    order_key_of, instance_of = pool(X, I_ORDER_KEY), pool(X, I_INSTANCE)
    stream_of, clock = pool(X, I_STREAM), pool(X, I_NOW)
    L, times = pool(X, XL), pool(X, XET)
    if whole != 0 and L[BORN] == 0:
        if not has_room(X):
            return NEED_ROOM
        call2(X[F_BIRTH], X, 0, origin)
    status, i, stage, ordinal = DONE, X[AT], X[STAGE], X[ORDINAL]
    while i < X[EVENTS]:
        order_key, stream, instance = order_key_of[i], stream_of[i], instance_of[i]
        l0 = instance * L_SIZE * X[NP]
        if stage == 0:
            if X[PARTED] != 0 and i + AHEAD < X[EVENTS]:
                _ask_ahead(X, i)
            if X[TIMERS] > 0:
                if X[CLOCKED] == 0 and call1(X[F_WAIT], X, order_key) != 0:
                    X[LIMIT] = order_key
                    status = NEED_CLOCK
                    break
                X[CLOCKED] = 0
            t = times[X[BASE] + i]
            if X[HELD] == 0 and L[l0 + BORN] != 0 and _is_idle(X, l0, stream, i, t):
                i += 1
                continue
            if not has_room_for_event(X):
                X[CLOCKED] = 1
                status = NEED_ROOM
                break
            if L[l0 + BORN] == 0:
                call2(X[F_BIRTH], X, l0, clock[(order_key >> ORDER_KEY_BITS) - X[STEP_BASE]])
            _stabilize(X, l0, stream, t)
            X[FIRST_OUT] = X[O_N]
            stage, ordinal = 1, 0
        n = M[2 * stream + 1]
        hold = n > 1 or more[i] != 0 or (i > 0 and more[i - 1] != 0)
        while ordinal < n:
            p = M[M[2 * stream] + n - 1 - ordinal]
            if L[l0 + p * L_SIZE + PEND] != 0 or X[CELL] != 0 or stage == 2:
                if stage == 1:
                    status = _process(X, l0, p, i)
                    if status != DONE:
                        break
                    if X[FAILED] != 0:
                        _abandon(X)
                        X[FAILED] = 0
                        ordinal, status = n, NEED_REPORT
                        break
                    stage = 2
                if X[R_N] > 0:
                    if selects[stream] == 0:
                        _discard(X)
                    else:
                        status = emit(X, order_key, instance, hold, n > 1)
                        if status != DONE:
                            break
                stage = 1
            ordinal += 1
        if status != DONE:
            break
        if X[HELD] > 0 and more[i] == 0:
            stage = 3
            status = _settle(X, n > 1)
            if status != DONE:
                break
        stage = 0
        i += 1
    if status == DONE and X[TIMERS] > 0 and X[CLOCKED] == 0:
        X[LIMIT] = FAR
        status = NEED_CLOCK
    X[AT], X[STAGE], X[ORDINAL] = i, stage, ordinal
    return status


@entry
def run(address: int, whole: int, origin: int) -> int:
    """`proceed` for the machine whose header is at `address`."""
    X = header(address)
    return call2(X[F_ROWS], X, whole, origin)
