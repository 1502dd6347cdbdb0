"""`min`, `max`, `minForever`, `maxForever`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import DTYPES, Array, Column
from ..jit import kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import NO_MASK, Feed, Grouped
from .folds import bests


@kernel
def _extremes(
    values: Array, null: Array, sign: int, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array,
    shown: int, now: Array, epoch: Array, ahead: int, head: Array, tail: Array, node_value: Array, node_next: Array,
    node_prev: Array, free: int, spare: int, out: Array, out_null: Array,
) -> tuple[int, int, bool]:  # fmt: skip
    """A monotonic queue per group (linked lists in a pool): its front is the minimum of sign * value.

    Values that a newer, smaller one makes irrelevant leave from the back; an expired value leaves from where it
    stands, which is the front for windows that expire in order (`MinAttributeAggregatorExecutor`, its deque).
    """
    m = 0
    holes = False
    for j in range(n):
        i = pos[j] if len(pos) else j
        k = kind[j] if len(kind) else CURRENT
        p = part[i] if len(part) else 0
        if k == RESET:
            now[p] += 1
            if (shown >> k) & 1:
                o = slot[m] if len(slot) else m
                m += 1
                out[o] = 0
                out_null[o] = True
                holes = True
            continue
        g = group[i] if len(group) else 0
        if len(epoch) and epoch[g] != now[p]:
            epoch[g] = now[p]
            at = head[g]
            while at >= 0:  # back to the pool
                nxt = node_next[at]
                node_next[at] = free
                free = at
                spare += 1
                at = nxt
            head[g] = -1
            tail[g] = -1
        if not (len(null) and null[i]):
            v = values[i]
            if k == CURRENT:
                back = tail[g]
                while back >= 0 and (node_value[back] > v if sign > 0 else node_value[back] < v):
                    before = node_prev[back]
                    node_next[back] = free
                    free = back
                    spare += 1
                    back = before
                fresh = free
                free = node_next[fresh]
                spare -= 1
                node_value[fresh] = v
                node_next[fresh] = -1
                node_prev[fresh] = back
                if back >= 0:
                    node_next[back] = fresh
                else:
                    head[g] = fresh
                tail[g] = fresh
            elif k == EXPIRED:
                at = head[g]
                while at >= 0 and (node_value[at] < v if sign > 0 else node_value[at] > v):
                    at = node_next[at]
                if at >= 0 and node_value[at] == v:
                    before, after = node_prev[at], node_next[at]
                    if before >= 0:
                        node_next[before] = after
                    else:
                        head[g] = after
                    if after >= 0:
                        node_prev[after] = before
                    else:
                        tail[g] = before
                    node_next[at] = free
                    free = at
                    spare += 1
        if (shown >> k) & 1:
            o = slot[m] if len(slot) else m
            m += 1
            out_null[o] = head[g] < 0
            holes |= head[g] < 0
            out[o] = node_value[head[g]] if head[g] >= 0 else 0
    return free, spare, holes


@kernel
def _running_extremes(
    values: Array, null: Array, sign: int, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array,
    shown: int, now: Array, epoch: Array, ahead: int, best: Array, has: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """The extreme since the last RESET, where events do not expire one by one: the extreme itself, expired, leaves
    nothing behind (`MinAttributeAggregatorExecutor` without its deque)."""
    m = 0
    holes = False
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k = np.int64(kind[j]) if len(kind) else 0
        p = np.uint64(part[i]) if len(part) else np.uint64(0)
        shows = (shown >> k) & 1
        if k > EXPIRED:
            if k == RESET:
                now[p] += 1
            if shows:
                o = slot[m] if len(slot) else m
                m += 1
                out[o] = 0
                out_null[o] = True
                holes = True
            continue
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        if len(epoch) and epoch[g] != now[p]:
            epoch[g] = now[p]
            has[g] = False
        b = best[g]
        h = has[g]
        if not (len(null) and null[i]):
            v = values[i]
            if k == EXPIRED:
                h = h and b != v
            else:
                better = b > v if sign > 0 else b < v
                b = v if better or not h else b
                h = True
            best[g] = b
            has[g] = h
        if shows:
            o = slot[m] if len(slot) else m
            m += 1
            out[o] = b if h else 0
            out_null[o] = not h
            holes |= not h
    return holes


class Min(Grouped):
    """`min` and `max`: the type of the argument; null when nothing is left.

    Where rows expire one by one the candidates are kept in a queue per group, else only the best so far.
    """

    sign = 1

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (arg,) = args
        self.type = arg
        self.sliding = sliding
        self.dtype = np.dtype(np.int64 if arg in (Type.INT, Type.LONG) else np.float64)
        self._clear()

    def _clear(self) -> None:
        self._begin()
        self.best, self.has = np.zeros(0, self.dtype), np.zeros(0, np.bool_)
        self.head, self.tail = np.full(0, -1, np.int64), np.full(0, -1, np.int64)
        self.value = np.zeros(0, self.dtype)
        self.next, self.prev, self.free, self.spare = np.zeros(0, np.int64), np.zeros(0, np.int64), -1, 0

    def _free(self, n: int) -> None:
        """At least `n` free nodes, for the case that every row is a new candidate."""
        if self.spare >= n:
            return
        have = len(self.value)
        self.value = grown(self.value, have + n)
        size = len(self.value)
        self.prev, chain = grown(self.prev, size, -1), grown(self.next, size)
        chain[have : size - 1] = np.arange(have + 1, size)
        chain[size - 1] = self.free
        self.next, self.free, self.spare = chain, have, self.spare + size - have

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        values = column.values.astype(self.dtype, copy=False)
        null_in = NO_MASK if column.null is None else column.null
        out, null = np.empty(feed.size, self.dtype), np.empty(feed.size, np.bool_)
        if self.sliding:
            self._free(feed.n)
            self.head, self.tail = grown(self.head, feed.groups, -1), grown(self.tail, feed.groups, -1)
            self.free, self.spare, holes = _extremes(
                values, null_in, self.sign, *self._ops(feed), self.head, self.tail,
                self.value, self.next, self.prev, self.free, self.spare, out, null,
            )  # fmt: skip
        else:
            self.best, self.has = grown(self.best, feed.groups), grown(self.has, feed.groups, False)
            holes = _running_extremes(
                values, null_in, self.sign, *self._ops(feed), self.best, self.has, out, null
            )
        return Column(self.type, out.astype(DTYPES[self.type], copy=False), null if holes and null.any() else None)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        (column,) = args
        best, has = np.zeros(groups, column.values.dtype), np.zeros(groups, np.bool_)
        bests(column.values, NO_MASK if column.null is None else column.null, self.sign, group, best, has)
        return Column(self.type, best, None if column.null is None else ~has)

    def state(self) -> dict[str, Any]:
        """The queues laid end to end: a node's place in memory is no part of what it means."""
        common = {"epoch": self.epoch, "era": self.eras}
        if not self.sliding:
            return {"best": self.best, "has": self.has, **common}
        values: list[float] = []
        lengths = []
        for head in self.head.tolist():
            at, n = head, 0
            while at >= 0:
                values.append(self.value[at])
                at, n = int(self.next[at]), n + 1
            lengths.append(n)
        return {"values": np.array(values, self.dtype), "lengths": np.array(lengths, np.int64), **common}

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        if self.sliding:
            lengths = state["lengths"]
            groups = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
            type = Type.LONG if self.dtype == np.int64 else Type.DOUBLE
            self.run((Column(type, state["values"]),), None, groups, len(lengths))
        else:
            self.best, self.has = state["best"].copy(), state["has"].copy()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()


class Max(Min):
    sign = -1


@kernel
def _forever(
    values: Array, null: Array, sign: int, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array,
    shown: int, now: Array, epoch: Array, ahead: int, best: Array, has: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """The extreme of all that came or went since the last RESET."""
    m = 0
    holes = False
    for j in range(n):
        i = pos[j] if len(pos) else j
        k = kind[j] if len(kind) else CURRENT
        p = part[i] if len(part) else 0
        if k == RESET:
            now[p] += 1
            if (shown >> k) & 1:
                o = slot[m] if len(slot) else m
                m += 1
                out[o] = 0
                out_null[o] = True
                holes = True
            continue
        g = group[i] if len(group) else 0
        if len(epoch) and epoch[g] != now[p]:
            epoch[g] = now[p]
            has[g] = False
        if not (len(null) and null[i]) and k <= EXPIRED:
            v = values[i]
            if not has[g] or (best[g] > v if sign > 0 else best[g] < v):
                best[g] = v
                has[g] = True
        if (shown >> k) & 1:
            o = slot[m] if len(slot) else m
            m += 1
            out[o] = best[g] if has[g] else 0
            out_null[o] = not has[g]
            holes |= not has[g]
    return holes


class MinForever(Grouped):
    """`minForever` and `maxForever`: the type of the argument; expired rows count as well. A RESET drops the
    states of all groups, so in batch windows forever ends with the batch."""

    sign = 1

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (self.type,) = args
        self.dtype = np.dtype(np.int64 if self.type in (Type.INT, Type.LONG) else np.float64)
        self.best, self.has = np.zeros(0, self.dtype), np.zeros(0, np.bool_)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        self.best, self.has = grown(self.best, feed.groups), grown(self.has, feed.groups, False)
        out, null = np.empty(feed.size, self.dtype), np.empty(feed.size, np.bool_)
        holes = _forever(
            column.values.astype(self.dtype, copy=False), NO_MASK if column.null is None else column.null, self.sign,
            *self._ops(feed), self.best, self.has, out, null,
        )  # fmt: skip
        return Column(self.type, out.astype(DTYPES[self.type], copy=False), null if holes and null.any() else None)

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "has": self.has, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.best, self.has = state["best"].copy(), state["has"].copy()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()


class MaxForever(MinForever):
    sign = -1
