"""Saves and restores the machine's state as plain arrays (compiled)."""

from __future__ import annotations

from typing import Any

from .machine import append_new, splice_new
from .machine_memory import (
    ACTIVE,
    BORN,
    C_COUNT,
    C_EVENT,
    C_FREE,
    C_LEFT,
    C_NEXT,
    C_PREV,
    C_REFS,
    C_SIZE,
    C_TAIL,
    CHAINED,
    CHANGED,
    COPIED,
    E_EXPIRED,
    E_FREE,
    E_LEFT,
    E_REFS,
    E_SIZE,
    E_SLOTS,
    E_TIME,
    F_NOTIFY,
    INITIALIZED,
    L_SIZE,
    N_NEXT,
    N_PARTIAL,
    NEW,
    NP,
    P_SIZE,
    PEND,
    QUEUE,
    RESET,
    SCHEDULED,
    STARTED,
    SUCCESS,
    TURN,
    XC,
    XE,
    XL,
    XN,
    XP,
    XT,
)  # fmt: skip
from .pointers import call3, entry, header, pool


@entry
def measure(address: int, instances: int, out: Any) -> None:
    """Counts list entries, partials at most, chain cells at most and scheduled times."""
    X = header(address)
    L, N, T, E, C, P = pool(X, XL), pool(X, XN), pool(X, XT), pool(X, XE), pool(X, XC), pool(X, XP)
    for i in range(instances * X[NP]):
        for head in (PEND, NEW):
            c = L[i * L_SIZE + head]
            while c != 0:
                out[0] += 1
                e = N[c + N_PARTIAL]
                for p in range(X[NP]):
                    if P[p * P_SIZE + CHAINED] != 0 and E[e + E_SLOTS + p] != 0:
                        out[2] += C[E[e + E_SLOTS + p] + C_COUNT]
                c = N[c + N_NEXT]
        c = L[i * L_SIZE + QUEUE]
        while c != 0:
            out[3] += 1
            c = T[c + 1]
    out[1] = out[0]


@entry
def dump_machine(
    address: int, instances: int, lists: Any, cells: Any, partials: Any, chains: Any, events: Any, times: Any, seen:
    Any, seen_chains: Any,
) -> Any:  # fmt: skip
    """Writes all lists. `lists[i]`: lengths of the pending and new list and of the queue, then flags; `cells`: the
    partial of every entry; `partials`: time, expired, unused, slots (chain number + 1 where counted); `chains`: where
    each chain ends in `events`. Returns the numbers of partials and chains."""
    X = header(address)
    L, N, T, E, C, P = pool(X, XL), pool(X, XN), pool(X, XT), pool(X, XE), pool(X, XC), pool(X, XP)
    at = n = k = d = q = 0
    for i in range(instances * X[NP]):
        lp = i * L_SIZE
        for j in range(2):
            c = L[lp + (PEND if j == 0 else NEW)]
            while c != 0:
                lists[i, j] += 1
                e = N[c + N_PARTIAL]
                slot = e // X[E_SIZE]
                if seen[slot] == 0:
                    partials[n, E_TIME] = E[e + E_TIME]
                    partials[n, E_EXPIRED] = E[e + E_EXPIRED]
                    for p in range(X[NP]):
                        v = E[e + E_SLOTS + p]
                        if P[p * P_SIZE + CHAINED] != 0 and v != 0:
                            if seen_chains[v // C_SIZE] == 0:
                                w = v
                                while w != 0:
                                    events[d] = C[w + C_EVENT]
                                    d += 1
                                    w = C[w + C_NEXT]
                                chains[k] = d
                                k += 1
                                seen_chains[v // C_SIZE] = k
                            v = seen_chains[v // C_SIZE]
                        partials[n, E_SLOTS + p] = v
                    n += 1
                    seen[slot] = n
                cells[at] = seen[slot] - 1
                at += 1
                c = N[c + N_NEXT]
        c = L[lp + QUEUE]
        while c != 0:
            lists[i, 2] += 1
            times[q] = T[c]
            q += 1
            c = T[c + 1]
        lists[i, 3] = L[lp + CHANGED]
        lists[i, 4] = L[lp + SUCCESS]
        lists[i, 5] = L[lp + RESET]
        lists[i, 6] = L[lp + INITIALIZED]
        lists[i, 7] = L[lp + BORN]
        lists[i, 8] = L[lp + STARTED]
        lists[i, 9] = L[lp + ACTIVE]
        lists[i, 10] = L[lp + SCHEDULED]
        lists[i, 11] = L[lp + COPIED]
        lists[i, 12] = L[lp + TURN]
    return n, k


@entry
def restore_machine(
    address: int, instances: int, lists: Any, cells: Any, partials: Any, chains: Any, events: Any, times: Any
) -> None:
    """The inverse of `dump_machine`, into an empty machine that has room."""
    X = header(address)
    L, E, C, P = pool(X, XL), pool(X, XE), pool(X, XC), pool(X, XP)
    first_partial = X[E_FREE]
    first_chain = X[C_FREE]
    d = 0
    for k in range(len(chains)):
        head = X[C_FREE]
        last = 0
        while d < chains[k]:
            c = X[C_FREE]
            X[C_FREE] = C[c + C_NEXT]
            X[C_LEFT] -= 1
            C[c + C_EVENT] = events[d]
            C[c + C_NEXT] = 0
            C[c + C_PREV] = last
            if last != 0:
                C[last + C_NEXT] = c
            last = c
            C[head + C_COUNT] = C[head + C_COUNT] + 1 if c != head else 1
            d += 1
        C[head + C_TAIL] = last
        C[head + C_REFS] = 0
    for i in range(len(partials)):
        e = X[E_FREE]
        X[E_FREE] = E[e + E_TIME]
        X[E_LEFT] -= 1
        E[e + E_TIME] = partials[i, E_TIME]
        E[e + E_EXPIRED] = partials[i, E_EXPIRED]
        E[e + E_REFS] = 0
        for p in range(X[NP]):
            v = partials[i, E_SLOTS + p]
            if P[p * P_SIZE + CHAINED] != 0 and v != 0:
                # Free records of a fresh machine follow one another, so a chain starts where those before it end.
                v = first_chain + (chains[v - 2] if v > 1 else 0) * C_SIZE
                C[v + C_REFS] += 1
            E[e + E_SLOTS + p] = v
        for p in range(E_SLOTS + X[NP], X[E_SIZE]):
            E[e + p] = 0
    at = q = 0
    for i in range(instances * X[NP]):
        lp, p = i * L_SIZE, i % X[NP]
        for j in range(2):
            for _ in range(lists[i, j]):
                append_new(X, lp, p, first_partial + cells[at] * X[E_SIZE])
                at += 1
            if j == 0 and L[lp + NEW] != 0:
                splice_new(X, lp, p)
        for _ in range(lists[i, 2]):
            call3(X[F_NOTIFY], X, lp, p, times[q])
            q += 1
        L[lp + CHANGED] = lists[i, 3]
        L[lp + SUCCESS] = lists[i, 4]
        L[lp + RESET] = lists[i, 5]
        L[lp + INITIALIZED] = lists[i, 6]
        L[lp + BORN] = lists[i, 7]
        L[lp + STARTED] = lists[i, 8]
        L[lp + ACTIVE] = lists[i, 9]
        L[lp + SCHEDULED] = lists[i, 10]
        L[lp + COPIED] = lists[i, 11]
        L[lp + TURN] = lists[i, 12]
