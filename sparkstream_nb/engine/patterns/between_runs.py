"""Compiled maintenance functions that Python calls between runs of the loop."""

from __future__ import annotations

from typing import Any

from .machine import clear_new, clear_pending, leave_map
from .machine_memory import (
    AT,
    BASE,
    BY_INDEX,
    C_EVENT,
    C_NEXT,
    CHAINED,
    E_SIZE,
    E_SLOTS,
    F_BIRTH,
    F_ENTER,
    F_LOOK,
    F_PASSES,
    FAILED,
    I_INSTANCE,
    INDEXED,
    KEY_COUNT,
    KEYS,
    L_SIZE,
    N_DOWN,
    N_NEXT,
    N_OWNER,
    N_PARTIAL,
    N_VALUE,
    NP,
    P_SIZE,
    PEND,
    PROGRAM,
    QUEUE,
    REST,
    SLOW_LAST,
    T_FREE,
    T_LEFT,
    TURN,
    XC,
    XE,
    XL,
    XN,
    XP,
    XT,
)  # fmt: skip
from .pointers import call2, call3, call5, entry, header, pool


@entry
def candidates(address: int, p: int, out: Any) -> int:
    """The cells that processor `p` will look at for the current event; their verdicts are cleared. With an index only
    the cells of one bucket are taken, and if Python's conditions come last only cells that pass the others. `out` has
    room for a whole list.
    """
    X = header(address)
    P, L, N = pool(X, XP), pool(X, XL), pool(X, XN)
    i = X[AT]
    g, lp = X[BASE] + i, pool(X, I_INSTANCE)[i] * L_SIZE * X[NP] + p * L_SIZE
    if X[BY_INDEX] != 0:
        c = call3(X[F_LOOK], X, lp, p, g)
    else:
        c = L[lp + PEND]
    q = P[p * P_SIZE + (REST if X[BY_INDEX] != 0 else PROGRAM)]
    n = 0
    while c != 0:
        if X[BY_INDEX] == 0 or N[c + N_OWNER] == lp:
            N[c + N_VALUE] = 1
            X[FAILED] = 0
            judged = P[p * P_SIZE + SLOW_LAST] == 0 or call5(X[F_PASSES], X, p, N[c + N_PARTIAL], g, c, q) != 0
            if judged or X[FAILED] != 0:
                out[n] = c
                n += 1
            X[FAILED] = 0
            N[c + N_VALUE] = 0
        c = N[c + N_DOWN] if X[BY_INDEX] != 0 else N[c + N_NEXT]
    return n


@entry
def reindex(address: int, instances: int) -> None:
    """Inserts all pending cells into the new, empty bucket array, in list order."""
    X = header(address)
    L, N, P = pool(X, XL), pool(X, XN), pool(X, XP)
    X[INDEXED] = 0
    for instance in range(instances):
        for p in range(X[NP]):
            if P[p * P_SIZE + KEYS] >= 0 and P[p * P_SIZE + KEY_COUNT] > 0:
                lp = (instance * X[NP] + p) * L_SIZE
                c = L[lp + PEND]
                while c != 0:
                    call3(X[F_ENTER], X, lp, p, c)
                    c = N[c + N_NEXT]


@entry
def begin_instances(address: int, instances: Any, times: Any) -> None:
    """Begins partition instances, each at its time; there is room for their first states."""
    X = header(address)
    for i in range(len(instances)):
        call2(X[F_BIRTH], X, instances[i] * L_SIZE * X[NP], times[i])


@entry
def forget_instances(address: int, instances: Any) -> None:
    """Frees the memory of partition instances. Their records in `L` are not cleared otherwise, and entries of
    theirs in the schedulers' heaps find nothing to run."""
    X = header(address)
    L, T = pool(X, XL), pool(X, XT)
    for instance in instances:
        for p in range(X[NP]):
            lp = (instance * X[NP] + p) * L_SIZE
            clear_pending(X, lp)
            clear_new(X, lp)
            if L[lp + TURN] != 0:
                leave_map(X, lp, p)
            while L[lp + QUEUE] != 0:
                c = L[lp + QUEUE]
                L[lp + QUEUE] = T[c + 1]
                T[c + 1] = X[T_FREE]
                X[T_FREE] = c
                X[T_LEFT] += 1


@entry
def mark_events(address: int, capacity: int, used: Any) -> None:
    """Sets `used` at every log number that a living partial refers to. `capacity`: words of `E`."""
    X = header(address)
    E, C, P = pool(X, XE), pool(X, XC), pool(X, XP)
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


@entry
def renumber_events(address: int, capacity: int, new: Any) -> None:
    """Replaces log numbers by `new[number]` in all living partials. Chains are shared, so they are visited cell by cell
    through a negative sign."""
    X = header(address)
    E, C, P = pool(X, XE), pool(X, XC), pool(X, XP)
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
