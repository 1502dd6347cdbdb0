"""A log whose events hang together in chains, one or more per partition instance: what most windows hold.

A chain is a queue: `head[part]`, `tail[part]`, and `next[position]`. Compiled loops move events along; `alive` tells
which positions are still in a chain, so that the log can be compacted when most are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array
from ..jit import inlined, kernel
from ..rows import Rows
from .log import EventLog


@inlined
def push(pos: int, part: int, nxt: Array, head: Array, tail: Array) -> None:
    """Appends a position to a chain."""
    nxt[pos] = -1
    if head[part] < 0:
        head[part] = pos
    else:
        nxt[tail[part]] = pos
    tail[part] = pos


@inlined
def pop(part: int, nxt: Array, head: Array, tail: Array) -> int:
    """Takes the first position of a chain that is not empty."""
    pos: int = head[part]
    head[part] = nxt[pos]
    if head[part] < 0:
        tail[part] = -1
    return pos


@kernel
def _lay_out(head: Array, nxt: Array, parts: int, out: Array, lengths: Array) -> int:
    n = 0
    for p in range(parts):
        at = head[p]
        start = n
        while at >= 0:
            out[n] = at
            n += 1
            at = nxt[at]
        lengths[p] = n - start
    return n


class ChainedLog(EventLog):
    """An event log with `chains` chains per instance. An event is in at most one of them at a time."""

    def __init__(self, types: Sequence[Type], chains: int = 1) -> None:
        super().__init__(types)
        self.chains = chains
        self.parts = 0
        self._look_at = 1024
        self.next = np.full(0, -1, np.int64)
        self.alive = np.zeros(0, np.bool_)
        self.head = [np.full(0, -1, np.int64) for _ in range(chains)]
        self.tail = [np.full(0, -1, np.int64) for _ in range(chains)]

    def add(self, rows: Rows, parts: int) -> int:
        """Appends rows (in no chain yet) and makes room for `parts` instances; returns the first position."""
        at = self.append(rows)
        self.next = grown(self.next, len(self.ts), -1)
        self.alive = grown(self.alive, len(self.ts), False)
        if parts > self.parts:
            self.head = [grown(h, parts, -1) for h in self.head]
            self.tail = [grown(t, parts, -1) for t in self.tail]
            self.parts = parts
        return at

    def forget(self, parts: Array) -> None:
        """Empties the chains of these instances, which get no events any more."""
        known = parts[parts < self.parts]
        self.alive[: self.end][np.isin(self.part[: self.end], known)] = False
        for ends in (*self.head, *self.tail):
            ends[known] = -1

    def tidy(self, *positions: Array) -> None:
        """Compacts when most of the log is dead. `positions` are arrays of positions (-1: none) to move along, in
        place.
        """
        if self.end < self._look_at:
            return
        live = int(np.count_nonzero(self.alive[: self.end]))
        if self.end < 2 * live + 1024:
            self._look_at = self.end + self.end // 4 + 1024
            return
        self._look_at = 2 * live + 1024
        keep = np.flatnonzero(self.alive[: self.end])
        moved = np.full(len(self.ts) + 1, -1, np.int64)  # the last place is for -1
        moved[keep] = np.arange(len(keep))
        chain = moved[self.next[keep]]
        self.compact(keep)
        self.next, self.alive = chain, np.ones(len(keep), np.bool_)
        for arrays in (self.head, self.tail):
            for i, a in enumerate(arrays):
                arrays[i] = moved[a]
        for a in positions:
            a[:] = moved[a]

    def chain_state(self, chain: int = 0) -> dict[str, Any]:
        """One chain of every instance, laid end to end, as plain data."""
        out, lengths = np.empty(self.end, np.int64), np.zeros(self.parts, np.int64)
        n = _lay_out(self.head[chain], self.next, self.parts, out, lengths)
        return {**self.state(out[:n]), "lengths": lengths}

    def load_chains(self, states: Sequence[dict[str, Any]]) -> None:
        """The inverse of `chain_state` for all chains, in order."""
        self.__init__(self.types, self.chains)  # type: ignore[misc]
        for c, state in enumerate(states):
            lengths = state["lengths"]
            n = len(state["ts"])
            zeros = np.zeros(n, np.int64)
            at = self.add(Rows(state["columns"], state["ts"], zeros, zeros, None, state["part"]), len(lengths))
            self.alive[at : at + n] = True
            for p, k in enumerate(lengths.tolist()):
                if k:
                    self.next[at : at + k] = np.append(np.arange(at + 1, at + k), -1)
                    self.head[c][p], self.tail[c][p] = at, at + k - 1
                    at += k
