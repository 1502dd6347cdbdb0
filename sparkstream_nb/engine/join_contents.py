"""What the sides of a join hold, and the loop that lets rows enter, leave and look into the other side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..types import Type
from .arrays import grown
from .columns import Array
from .jit import kernel
from .rows import CURRENT, ENTER, EXPIRED, LEAVE, Rows
from .windows.log import EventLog

_BLOCK = 1 << 15
"""Pairs that one pass of the loop may make before the rest of the condition is evaluated over them, in the caches."""

_GONE, _LOST = -1, -2
"""Places of events that the contents do not hold. A lost one was looked at and will not expire."""


@kernel
def _lookup(
    at: int, last: int, side: Array, kind: Array, key: Array, slot: Array, part: Array, triggers: Array, loses: Array,
    fill: Array, place0: Array, place1: Array, head: Array, tail: Array, nxt: Array, prv: Array, alive: Array, key_of:
    Array, born: Array, finds: Array, probed: Array, resume: Array, op_out: Array, pos_out: Array,
) -> tuple[int, int]:  # fmt: skip
    """Runs the ops from `at` on until the pair buffer is full; returns (next op, pairs made).

    Rows up to kind `last` make pairs. No `part` at all: there is one instance. `slot` is a row's event in the places of
    its side, -1 where it changes no contents, -2 - slot for a row of a window that `loses` events. An entering row
    takes the next position of its side's log (`fill`).
    `resume[0]` is the content at which an interrupted lookup goes on, -1 for none. `probed` gets the positions of
    leaving rows whose contents were looked into since they came (`finds` counts lookups by side and instance). Of the
    chains `nxt` and `prv` the last places are nobody's, and are written to where there is no neighbour.
    """
    pairs = 0
    for i in range(at, len(side)):
        s = side[i]
        o = 1 - s
        w = part[i] if len(part) else 0
        if resume[0] < 0:
            place = place0 if s == 0 else place1
            e = slot[i]
            if e >= 0 and (kind[i] == CURRENT or kind[i] == ENTER):
                p = fill[s]
                fill[s] += 1
                place[e] = p
                k = key[i]
                key_of[s, p] = k
                alive[s, p] = True
                born[s, p] = finds[s, w]
                if k >= 0:
                    before = tail[s, k]
                    nxt[s, p] = -1
                    prv[s, p] = before
                    nxt[s, before] = p
                    head[s, k] = head[s, k] if before >= 0 else p
                    tail[s, k] = p
            elif e >= 0 and (kind[i] == EXPIRED or kind[i] == LEAVE) and place[e] >= 0:
                p = place[e]
                place[e] = _GONE
                alive[s, p] = False
                if finds[s, w] > born[s, p]:
                    probed[i] = p
                    if loses[s]:
                        place[e] = _LOST
                k = key_of[s, p]
                if k >= 0:
                    before = prv[s, p]
                    after = nxt[s, p]
                    nxt[s, before] = after
                    prv[s, after] = before
                    head[s, k] = head[s, k] if before >= 0 else after
                    tail[s, k] = tail[s, k] if after >= 0 else before
            elif e <= -2 and kind[i] == EXPIRED and place[-2 - e] == _LOST:
                place[-2 - e] = _GONE
                kind[i] = LEAVE
            if not triggers[s] or kind[i] > EXPIRED:
                continue
            finds[o, w] += 1
            if key[i] < 0 or kind[i] > last:
                continue
            c = head[o, key[i]]
        else:
            c = resume[0]
            resume[0] = -1
        while c >= 0:
            if pairs == len(op_out):
                resume[0] = c
                return i, pairs
            op_out[pairs] = i
            pos_out[pairs] = c
            pairs += 1
            c = nxt[o, c]
    return len(side), pairs


@kernel
def _move(
    keep: Array, nxt: Array, prv: Array, alive: Array, key: Array, born: Array, head: Array, tail: Array, place: Array,
    moved: Array,
) -> int:  # fmt: skip
    """The events at `keep`, which are all that are alive, move to 0, 1, 2 ...; `moved` is room for where each comes.
    Returns how many places there are before the first that holds something."""
    for i in range(len(keep)):
        p = keep[i]
        moved[p] = i
        alive[p] = False
        alive[i] = True
        key[i] = key[p]
        born[i] = born[p]
    for i in range(len(keep)):
        p = keep[i]
        chained = key[i] >= 0
        after = nxt[p]
        before = prv[p]
        nxt[i] = moved[after] if chained and after >= 0 else -1
        prv[i] = moved[before] if chained and before >= 0 else -1
    for k in range(len(head)):
        if head[k] >= 0:
            head[k] = moved[head[k]]
            tail[k] = moved[tail[k]]
    cut = len(place)
    for e in range(len(place)):
        if place[e] != _GONE:
            cut = min(cut, e)
            if place[e] >= 0:
                place[e] = moved[place[e]]
    return cut


class Contents:
    """What one or two sides hold: values by side, and the chains of equal join keys as arrays with a row per side.

    `rank` is an order among the contents of a side beyond that of their entry.
    """

    def __init__(self, types: Sequence[tuple[Type, ...]]) -> None:
        k = len(types)
        self.logs = [EventLog(t) for t in types]
        self.rank = [np.zeros(0, np.int64) for _ in types]
        self.head = np.full((k, 0), -1, np.int64)
        self.tail = np.full((k, 0), -1, np.int64)
        self.next = np.full((k, 0), -1, np.int64)
        self.prev = np.full((k, 0), -1, np.int64)
        self.alive = np.zeros((k, 0), np.bool_)
        self.key = np.full((k, 0), -1, np.int64)
        self.born = np.zeros((k, 0), np.int64)
        self.finds = np.zeros((2, 0), np.int64)
        self.place = [np.full(0, _GONE, np.int64) for _ in types]  # serial - first → position
        self.first = [0] * k
        self._fill = np.zeros(k, np.int64)

    def add(self, side: int, rows: Rows, rank: Array | None) -> None:
        """Appends the rows that will enter, in their order; `rank` int64 of each, None where entry is all there is."""
        log = self.logs[side]
        at = log.append(rows)
        if rank is not None:
            self.rank[side] = grown(self.rank[side], len(log.ts))
            self.rank[side][at : log.end] = rank

    def run(
        self, side: Array, kind: Array, key: Array, slot: Array, part: Array, triggers: Array, loses: Array,
        probed: Array, keys: int, parts: int, last: int = EXPIRED,
    ) -> Iterator[tuple[Array, Array]]:  # fmt: skip
        """Lets rows of all sides enter, leave and look, in order; yields (op, position found) block by block.

        The arguments are `_lookup`'s; `keys` and `parts` say how many join keys and partition instances there are. The
        rows that enter were added before. `kind` of a row that is of no account any more becomes LEAVE.
        """
        n = max(max(len(log.ts), log.end) for log in self.logs)
        self.head, self.tail = grown(self.head, keys, -1), grown(self.tail, keys, -1)
        self.next, self.prev = grown(self.next, n + 1, -1), grown(self.prev, n + 1, -1)  # the last is -1's
        self.alive, self.key = grown(self.alive, n, False), grown(self.key, n, -1)
        self.born, self.finds = grown(self.born, n), grown(self.finds, max(parts, 1))
        resume, at = np.array([-1], np.int64), 0
        size = _BLOCK if triggers.any() else 0
        while at < len(side):
            op, found = np.empty(size, np.int64), np.empty(size, np.int64)
            at, pairs = _lookup(
                at, last, side, kind, key, slot, part, triggers, loses, self._fill, self.place[0], self.place[-1],
                self.head, self.tail, self.next, self.prev, self.alive, self.key, self.born, self.finds, probed, resume,
                op, found,
            )  # fmt: skip
            yield op[:pairs], found[:pairs]

    def slots(self, side: int, serial: Array) -> Array:
        """Serial numbers as slots, with room for them. Numbers below 0 are those of rows that change no contents."""
        if len(serial) == 0:
            return serial
        first = self.first[side]
        slot: Array = serial - first
        if serial.min() < 0:
            slot = np.where(serial >= 0, slot, np.minimum(serial + first, -1))
        self.place[side] = grown(self.place[side], int(slot.max()) + 1, _GONE)
        return slot

    def held(self, side: int) -> Array:
        """The positions that a side holds, in order."""
        keep = np.flatnonzero(self.alive[side, : self.logs[side].end])
        rank = self.rank[side]
        return keep[np.argsort(rank[keep], kind="stable")] if len(rank) else keep

    def compact(self, side: int) -> None:
        """Drops the dead rows of a side once they are the most."""
        log = self.logs[side]
        if log.end < 2048:
            return
        keep = np.flatnonzero(self.alive[side, : log.end])
        if 2 * len(keep) > log.end:
            return
        log.compact(keep)
        n = self._fill[side] = len(keep)
        cut = _move(
            keep, self.next[side], self.prev[side], self.alive[side], self.key[side], self.born[side], self.head[side],
            self.tail[side], self.place[side], np.empty(self.next.shape[1], np.int64),
        )  # fmt: skip
        if len(self.rank[side]):
            self.rank[side][:n] = self.rank[side][keep]
        self.place[side] = self.place[side][cut:]
        self.first[side] += cut

    def state(self, side: int) -> dict[str, Any]:
        """The contents of a side as plain data."""
        log, place = self.logs[side], self.place[side]
        # Rows enter the chains in the order of their positions, so positions are all that order needs.
        keep = np.flatnonzero(self.alive[side, : log.end])
        serial = np.full(log.end, -1, np.int64)
        held = np.flatnonzero(place >= 0)
        serial[place[held]] = held + self.first[side]
        return {
            **log.state(keep),
            "key": self.key[side, keep],
            "serial": serial[keep],
            "born": self.born[side, keep],
            "rank": self.rank[side][keep] if len(self.rank[side]) else None,
            "lost": np.flatnonzero(place == _LOST) + self.first[side],
        }

    def load(self, side: int, state: dict[str, Any], keys: int, parts: int) -> None:
        """The inverse of `state`, for contents that are empty."""
        serial, lost = state["serial"], state["lost"]
        n = len(serial)
        zeros = np.zeros(n, np.int64)
        self.first[side] = min(int(s.min()) for s in (serial, lost) if len(s)) if n + len(lost) else 0
        self.add(side, Rows(state["columns"], state["ts"], zeros, zeros, None, state["part"]), state["rank"])
        self.slots(side, lost)
        slot, off = self.slots(side, serial), np.zeros(2, np.bool_)
        sides, kinds, probed = np.full(n, side, np.int8), np.zeros(n, np.int8), np.empty(0, np.int64)
        part = state["part"].astype(np.int64)
        for _ in self.run(sides, kinds, state["key"], slot, part, off, off, probed, keys, parts):
            pass
        self.born[side, :n] = state["born"]
        self.place[side][lost - self.first[side]] = _LOST

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return sum(log.bytes for log in self.logs)
