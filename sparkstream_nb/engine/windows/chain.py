"""A log whose events are linked in chains, one or more per partition instance: the state of most windows.

A chain is a queue: `head[part]`, `tail[part]`, and `next[position]`. With one instance and chains that take events as
they come, the next position is the one after, and `next` is empty. Compiled loops move events along; `alive` tells
which positions are still in a chain, so that the log can be compacted when most are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.eventlog import EventLog, rows_of
from ..columnar.rows import Rows
from ..notation.kernels import compiled, inlined, kernel, struct


@kernel
def _lay_out(head: Array, tail: Array, nxt: Array, instances: int, out: Array, lengths: Array) -> int:
    n = 0
    for p in range(instances):
        at = head[p]
        start = n
        while at >= 0:
            out[n] = at
            n += 1
            if len(nxt) > 0:
                at = nxt[at]
            else:
                at = at + 1 if at < tail[p] else -1
        lengths[p] = n - start
    return n


@kernel
def _close_ranks(end: int, alive: Array, nxt: Array, keep: Array, new_positions: Array) -> None:
    """Compact the log. `keep[:n]` receives the live positions below `end` and has one spare slot; `new_positions[p]` is
    the new position of `p`, or -1 if dead, and its last element, for -1, is -1; `nxt` and `alive` are updated.
    """
    n = np.uint64(0)
    for i in range(np.uint64(end)):
        on = alive[i]
        keep[n] = i
        new_positions[i] = np.int64(n) if on else -1
        n += np.uint64(on)
    new_positions[np.uint64(len(new_positions) - 1)] = -1
    for k in range(n):
        after: Any = nxt[np.uint64(keep[k])]
        nxt[k] = new_positions[np.uint64(after)] if after >= 0 else -1
        alive[k] = True
    for k in range(n, np.uint64(end)):
        alive[k] = False


CURRENT_CHAIN, EXPIRED_CHAIN = 0, 1
"""The two chains of a window of batches: the events of the present batch, and of the last one."""

_MOST = 2**31 - 1
"""Positions that `next` can name."""


@struct
class ChainedLog(EventLog):
    """An event log with `chains` chains per instance. An event is in at most one of them at a time.

    `in_line` promises that there is one instance, and that no chain leaves out an event between two that it holds.
    """

    def __init__(self, types: Sequence[Type], chains: int = 1, in_line: bool = False, has_times: bool = True) -> None:
        super().__init__(types, is_partitioned=not in_line, has_times=has_times)
        self.chains, self.in_line = chains, in_line
        self.instances = 0
        self._look_at = 1024
        self._batch_size = 0
        """Expected size of a batch, from recent batches."""
        self.next = np.zeros(0, np.int32)
        self.alive = np.zeros(0, np.bool_)
        self.head = [np.full(0, -1, np.int64) for _ in range(chains)]
        self.tail = [np.full(0, -1, np.int64) for _ in range(chains)]

    head: list[Array]
    tail: list[Array]

    @inlined
    def push(self, chain: int, pos: int, instance: int) -> None:
        """Appends a position to a chain of an instance."""
        if len(self.next) > 0:
            self.next[pos] = -1
        if self.head[chain][instance] < 0:
            self.head[chain][instance] = pos
        elif len(self.next) > 0:
            self.next[self.tail[chain][instance]] = pos
        self.tail[chain][instance] = pos

    @inlined
    def pop(self, chain: int, instance: int) -> int:
        """Takes the first position of a chain that is not empty."""
        pos: int = self.head[chain][instance]
        if pos == self.tail[chain][instance]:
            self.head[chain][instance] = -1
            self.tail[chain][instance] = -1
        else:
            self.head[chain][instance] = self.next[pos] if len(self.next) > 0 else pos + 1
        return pos

    @compiled
    def _link_again(self, lengths: Array) -> None:
        """Links the live events in their order, and counts them by instance."""
        for pos in range(self.end):
            if self.alive[pos]:
                p = self.instance[pos]
                self.push(0, pos, p)
                lengths[p] += 1

    def link(self, chain: int, positions: Array, lengths: Array) -> None:
        """Links positions to a chain of each instance, that is empty and has that length."""
        ends = np.cumsum(lengths)
        some = np.flatnonzero(lengths)
        self.next[positions] = np.append(positions[1:], -1)[: len(positions)]
        self.next[positions[ends[some] - 1]] = -1
        self.head[chain][some] = positions[ends[some] - lengths[some]]
        self.tail[chain][some] = positions[ends[some] - 1]

    def add(self, rows: Rows, instances: int) -> int:
        """Appends rows (in no chain yet) and makes room for `instances` instances; returns the first position. Raises
        OverflowError beyond 2³¹ events."""
        if self.in_line and self.chains == 1 and self.end + len(rows) > self.capacity:
            self._let_go(self._first(()), len(rows))
        at, self._batch_size = self.append(rows), max(len(rows), self._batch_size - self._batch_size // 8)
        if not self.in_line:
            if self.end > _MOST:
                raise OverflowError("a window cannot hold more than 2^31 events on one node")
            self.next = grown(self.next, self.capacity)
        self.alive = grown(self.alive, self.capacity, False)
        if instances > self.instances:
            self.head = [grown(h, instances, -1) for h in self.head]
            self.tail = [grown(t, instances, -1) for t in self.tail]
            self.instances = instances
        return at

    def forget(self, instances: Array) -> None:
        """Empty the chains of these instances, and drop all their other state."""
        self.alive[: self.end][np.isin(self.instance[: self.end], instances)] = False
        for ends in (*self.head, *self.tail):
            fill_at(ends, instances, -1)

    def tidy(self, *positions: Array) -> None:
        """Compacts when a third of the log is dead. `positions` are arrays of positions (-1: none) to move along, in
        place.
        """
        if self.in_line:
            self._drop(positions)
            return
        if self.end < self._look_at:
            return
        live = int(np.count_nonzero(self.alive[: self.end]))
        if 2 * self.end < 3 * live + 2048:
            self._look_at = self.end + self.end // 8 + 1024
            return
        self._look_at = live + live // 2 + 1024
        keep, new_positions = np.empty(live + 1, np.int64), np.empty(self.end + 1, np.int64)
        _close_ranks(self.end, self.alive, self.next, keep, new_positions)
        self.compact(keep[:live], self._size(live))
        if len(self.alive) > 2 * self.capacity:
            self.next, self.alive = self.next[: self.capacity].copy(), self.alive[: self.capacity].copy()
        for arrays in (self.head, self.tail):
            for i, a in enumerate(arrays):
                arrays[i] = new_positions[a]
        for a in positions:
            a[:] = new_positions[a]

    def _size(self, live: int) -> int:
        """Room for the live events, for half as many (in line, which takes no search: as many) dead events before they
        are dropped, and for a batch, at most as large as the live part.
        """
        return live + (live if self.in_line else live // 2) + min(live, self._batch_size) + 1024

    def _first(self, positions: Sequence[Array]) -> int:
        """The first position that a chain or one of `positions` holds."""
        ends = [a for a in (*self.head, *positions) if len(a) and a.max() >= 0]
        return min((int(a[a >= 0].min()) for a in ends), default=self.end)

    def _drop(self, positions: Sequence[Array]) -> None:
        """Trim the dead prefix once it is a third of the log. In single-chain logs `add` trims more cheaply, as the log
        has no other references then, so trim here only if the buffer is far too large.
        """
        low = self._first(positions)
        if low < 1024 or 3 * low < self.end:
            return
        if self.chains > 1 or 3 * self.capacity > 4 * self._size(self.end - low):
            self._let_go(low, 0, positions)

    def _let_go(self, low: int, n: int, positions: Sequence[Array] = ()) -> None:
        """Drop the events before `low`; afterwards there is room for `n` more."""
        live = self.end - low
        self.move(low, max(self._size(live), live + n), live + max(live * 9 // 10, n))
        alive = self.alive
        if len(alive) < self.capacity:
            self.alive = np.zeros(self.capacity, np.bool_)
        self.alive[:live] = alive[low : low + live]
        self.alive[live:] = False
        for a in (*self.head, *self.tail, *positions):
            a[a >= 0] -= low

    @property
    def held(self) -> int:
        """Number of events in a chain."""
        return self.end - self._first(()) if self.in_line else int(np.count_nonzero(self.alive[: self.end]))

    def positions_of(self, chain: int) -> tuple[Array, Array]:
        """(the positions of a chain of every instance, end to end, and how many each instance has)."""
        out, lengths = np.empty(self.end, np.int64), np.zeros(self.instances, np.int64)
        n = _lay_out(self.head[chain], self.tail[chain], self.next, self.instances, out, lengths)
        return out[:n], lengths

    def chain_state(self, chain: int = 0) -> dict[str, Any]:
        """One chain of every instance, laid end to end, as plain data."""
        positions, lengths = self.positions_of(chain)
        return {**self.state(positions), "lengths": lengths}

    def ordered_saved(self) -> dict[str, Any]:
        """The only chain of each instance, saved by change, where an event is alive while it is in the chain, and comes
        after those that are before it in the log."""
        if self.in_line:
            return self.chain_saved()
        low = self._first(())
        alive = np.packbits(self.alive[low : self.end])
        return {**self.save_state(low, self.end), "alive": alive, "parts": self.instances}

    def load_ordered(self, state: dict[str, Any]) -> Array:
        """The inverse of `ordered_saved` and `chain_state`; how many events the chain of each instance has."""
        if "alive" not in state:
            self.load_chains([state])
            return np.array(state["lengths"], np.int64)
        self.__init__(self.types, self.chains, self.in_line, self.has_times)  # type: ignore[misc]
        self.base, lengths = state["first"], np.zeros(state["parts"], np.int64)
        self._again(state, state["parts"])
        self.alive[: self.end] = np.unpackbits(state["alive"], count=self.end)
        self._link_again(lengths)
        return lengths

    def chain_saved(self, chain: int = 0) -> dict[str, Any]:
        """`chain_state`, saved by change if the chain's events are adjacent."""
        if not self.in_line or self.instances == 0:
            return self.chain_state(chain)
        a, b = int(self.head[chain][0]), int(self.tail[chain][0]) + 1
        if a < 0:
            a = b = self._first(())
        return {**self.save_state(a, b), "lengths": np.array([b - a])}

    def load_chains(self, states: Sequence[dict[str, Any]], loose: dict[str, Any] | None = None) -> None:
        """The inverse of `chain_state` for all chains; the events of `loose` come first, in no chain.

        In line the first chain comes last, as the next events continue where it ends.
        """
        self.__init__(self.types, self.chains, self.in_line, self.has_times)  # type: ignore[misc]
        if loose is not None:
            self._again(loose, 0)
        chains = range(len(states))
        for c in reversed(chains) if self.in_line else chains:
            lengths = states[c]["lengths"]
            if self.end == 0:
                self.base = states[c].get("first", 0)
            at = self._again(states[c], len(lengths))
            for p, k in enumerate(lengths.tolist()):
                if k:
                    if not self.in_line:
                        self.next[at : at + k] = np.append(np.arange(at + 1, at + k), -1)
                    self.head[c][p], self.tail[c][p] = at, at + k - 1
                    at += k

    def _again(self, state: dict[str, Any], instances: int) -> int:
        """The events of a state join the log; returns the first position."""
        rows = rows_of(state)
        at = self.add(rows, instances)
        self.alive[at : at + len(rows)] = True
        return at
