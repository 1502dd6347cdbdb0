"""`min`, `max`, `minForever`, `maxForever`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import DTYPES, Array, Column
from ..columnar.rows import CURRENT, EXPIRED, RESET, FixedLagOps
from ..notation.intrinsics import eight_equal, eight_greater, eight_less, either, ones_above, prefetch
from ..notation.kernels import inlined, kernel
from .aggregator_base import (
    NO_MASK,
    AggregateInput,
    Grouped,
    Loops,
    as_numbers,
    begins,
    look_ahead,
    put_nothing,
    reset,
    shown_column,
)  # fmt: skip
from .folds import bests

_NEAR, _ROOM = 8, 16
"""Number of candidates compared at once; least room of a queue in use."""


@inlined
def _moved_up(q: Any, used: Any, queue: Array, pool: Array) -> Any:
    """Makes room in a queue that has none, at the front of its piece of the pool or in a new one of twice the size;
    returns the part of the pool in use afterwards, or -1 if the pool has no such piece.
    """
    begun = queue[q]
    size = queue[q + np.uint64(3)]
    held = queue[q + np.uint64(1)] - begun
    to = queue[q + np.uint64(2)] - size
    if 2 * held > size or size < _ROOM:
        size = max(2 * size, 4)
        to = used
        used += size
    if used + _NEAR > len(pool):
        used = -1
    else:
        queue[q + np.uint64(2)] = to + size
        queue[q + np.uint64(3)] = size
        for x in range(held):
            pool[to + x] = pool[begun + x]
        queue[q] = to
        queue[q + np.uint64(1)] = to + held
    return used


@inlined
def _without(sign: int, v: Any, pool: Array, first: Any, end: Any) -> Any:
    """Takes the first candidate that equals `v` out of those from `first` to `end`, if there is one; where they end
    then."""
    at = first
    while at < end and (pool[at] < v if sign > 0 else pool[at] > v):
        at += np.uint64(1)
    if at < end and pool[at] == v:
        end -= np.uint64(1)
        for x in range(at, end):
            pool[x] = pool[x + np.uint64(1)]
    return end


def _extremes(
    plain: bool, sign: int, begin: int, m: int, used: int, values: Array, null: Array, n: int, kind: Array, pos: Array,
    group: Array, instance: Array, slot: Array, shown: int, now: Array, epoch: Array, ahead: int, reach: int, queue:
    Array, pool: Array, out: Array, out_null: Array,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """A monotonic queue per group, whose front is the minimum of sign * value; from the op `begin` on, after `m` values
    were output. `plain`: see `Loops`.

    Values that a newer, smaller one makes irrelevant leave from the back; an expired value leaves from its position,
    which is the front for windows that expire in order (`MinAttributeAggregatorExecutor`, its deque). Which of this
    happens is no branch where the queue is short, as no processor could guess it. Without slots, `out` has room for one
    more: a value that is not shown lies where the next one comes.

    A queue lies in one piece of the `pool`, of which `used` is taken, and which has `_NEAR` places before the first and
    behind the last; `queue` has four words a group: its first candidate, its end, the end of its piece and the size of
    that. One without room moves to the front of its piece, or to a new piece of twice the size. Stops where the pool
    has none; returns (ops done, values that were output, used part of the pool, whether there is a null).
    """
    holes = False
    two, near, zero = np.uint64(2), np.uint64(_NEAR), np.uint64(0)
    for j in range(begin, n):
        look_ahead(j, ahead, reach, n, pos, group, values, queue, 2)
        if ahead > 0:
            soon = np.uint64(min(j + (ahead >> 1), n - 1))
            soon = np.uint64(group[np.uint64(pos[soon]) if len(pos) else soon]) << two
            ends = queue[soon + np.uint64(1)]
            prefetch(pool, ends)
            prefetch(pool, ends - _NEAR)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        p = np.uint64(0)
        if not plain:
            p = np.uint64(instance[i]) if len(instance) else np.uint64(0)
            if k > EXPIRED:
                reset(k, p, now)
                if shows:
                    m = put_nothing(m, slot, out, out_null)
                    holes = True
                continue
        g = np.uint64(group[i]) if len(group) else zero
        q = g << two
        if queue[q + np.uint64(1)] == queue[q + two]:
            taken = _moved_up(q, used, queue, pool)
            if taken < 0:
                return j, m, used, holes
            used = taken
        first = np.uint64(queue[q])
        end = np.uint64(queue[q + np.uint64(1)])
        if not plain:
            anew = begins(g, p, now, epoch)
            if anew:
                end = first
        if plain or not (len(null) and null[i]):
            v = values[i]
            have = end - first
            comes = np.uint64(k == CURRENT)
            if sign > 0:
                worse = eight_greater(pool, end - near, v)
            else:
                worse = eight_less(pool, end - near, v)
            goes = min(ones_above(worse), have) * comes
            same = eight_equal(pool, first, v) & ((np.uint64(1) << min(have, near)) - np.uint64(1))
            front = same & ~comes & np.uint64(1)
            # Whether that is not all there is to do, in one number, for one branch.
            over = max(have, near) - near | same
            if (goes >> np.uint64(3)) | over * (np.uint64(1) - (comes | front)) != zero:
                if comes != zero:
                    while goes < have and (pool[end - goes - np.uint64(1)] > v if sign > 0 else
                                           pool[end - goes - np.uint64(1)] < v):  # fmt: skip
                        goes += np.uint64(1)
                else:
                    end = _without(sign, v, pool, first, end)
            end -= goes
            pool[end] = v  # where no value comes it lies behind the last
            end += comes
            first += front
        none = first == end
        best = either(none, values.dtype.type(0), pool[first])
        if ahead > 0:  # many queues, mostly of few: one that is empty begins again, so that it never needs more room
            begun = np.uint64(queue[q + two] - queue[q + np.uint64(3)])
            first = either(none, begun, first)
            end = either(none, begun, end)
        queue[q] = np.int64(first)
        queue[q + np.uint64(1)] = np.int64(end)
        if plain or len(slot) == 0:
            out[m] = best
            out_null[m] = none
            holes |= none & (shows != 0)
            m += shows
        elif shows:
            out[slot[m]] = best
            out_null[slot[m]] = none
            holes |= none
            m += 1
    return n, m, used, holes


_LOOPS = {sign: Loops(_extremes, sign=sign) for sign in (1, -1)}


def _pushed_extremes(
    sign: int, grouped: bool, begin: int, used: int, values: Array, at: int, n: int, free: int, lag: int, group: Array,
    ahead: int, queue: Array, pool: Array, out: Array,
) -> tuple[int, int]:  # fmt: skip
    """`_extremes` over the ops of `rows.FixedLagOps`, from its event `begin` on: values after CURRENT rows, none of
    them null. Adds and removes are separate loops, as their order is known. Returns (events done, used part of the
    pool).
    """
    one, two, near, zero = np.uint64(1), np.uint64(2), np.uint64(_NEAR), np.uint64(0)
    for j in range(begin, n):
        i = np.uint64(at + j)
        q = np.uint64(group[i]) << two if grouped else zero
        if ahead > 0:
            soon = at + min(j + ahead, n - 1)
            for later in (soon, max(soon - lag, 0)):
                prefetch(queue, np.uint64(group[np.uint64(later)]) << two)
            soon = at + min(j + (ahead >> 1), n - 1)
            for later in (soon, max(soon - lag, 0)):
                ends = queue[(np.uint64(group[np.uint64(later)]) << two) + one]
                prefetch(pool, ends)
                prefetch(pool, ends - _NEAR)
        if queue[q + one] == queue[q + two]:
            taken = _moved_up(q, used, queue, pool)
            if taken < 0:
                return j, used
            used = taken
        if j >= free:
            old = i - np.uint64(lag)
            v = values[old]
            left = np.uint64(group[old]) << two if grouped else zero
            first = np.uint64(queue[left])
            have = np.uint64(queue[left + one]) - first
            same = eight_equal(pool, first, v) & ((one << min(have, near)) - one)
            front = same & one
            queue[left] = np.int64(first + front)
            if ahead > 0:  # one that is empty begins again, as in `_extremes`
                begun = queue[left + two] - queue[left + np.uint64(3)]
                queue[left] = either(have == front, begun, np.int64(first + front))
                queue[left + one] = either(have == front, begun, np.int64(first + have))
            if (max(have, near) - near | same) * (one - front) != zero:
                end = _without(sign, v, pool, first, first + have)
                queue[left + one] = np.int64(end)
        v = values[i]
        first = np.uint64(queue[q])
        end = np.uint64(queue[q + one])
        have = end - first
        if sign > 0:
            worse = eight_greater(pool, end - near, v)
        else:
            worse = eight_less(pool, end - near, v)
        goes = min(ones_above(worse), have)
        if goes == near:
            while goes < have and (pool[end - goes - one] > v if sign > 0 else pool[end - goes - one] < v):
                goes += one
        end -= goes
        pool[end] = v
        queue[q + one] = np.int64(end + one)
        out[np.uint64(j)] = pool[first]
    return n, used


@cache
def _pushed_loop(sign: int, grouped: bool, asks: bool) -> Callable[..., tuple[int, int]]:
    """`_pushed_extremes`; if it does not ask for anything ahead, `ahead` is not given."""
    return kernel(_pushed_extremes, sign=sign, grouped=grouped, **({} if asks else {"ahead": 0}))


@kernel
def _running_extremes(
    values: Array, null: Array, sign: int, n: int, kind: Array, pos: Array, group: Array, instance: Array, slot: Array,
    shown: int, now: Array, epoch: Array, ahead: int, reach: int, best: Array, has: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """The extreme since the last RESET, where events do not expire one by one: the extreme itself, expired, leaves
    nothing behind (`MinAttributeAggregatorExecutor` without its deque)."""
    m = 0
    holes = False
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k = np.int64(kind[j]) if len(kind) else 0
        p = np.uint64(instance[i]) if len(instance) else np.uint64(0)
        shows = (shown >> k) & 1
        if k > EXPIRED:
            reset(k, p, now)
            if shows:
                m = put_nothing(m, slot, out, out_null)
                holes = True
            continue
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        anew = begins(g, p, now, epoch)
        if anew:
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
    """`min` and `max`: the type of the argument; null when the group is empty.

    If rows expire one by one, each group has a monotonic queue of candidates, else only the best value so far.
    """

    sign = 1
    words = 4 + _ROOM
    pushes = True

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (arg,) = args
        self.type = arg
        self.sliding = sliding
        self.dtype = np.dtype(np.int64 if arg in (Type.INT, Type.LONG) else np.float64)
        self._clear()

    def _clear(self) -> None:
        self._begin()
        self.best, self.has = np.zeros(0, self.dtype), np.zeros(0, np.bool_)
        self.queue, self.pool, self.used = np.zeros(0, np.int64), np.zeros(2 * _NEAR, self.dtype), _NEAR

    def _room(self) -> None:
        """More room in the pool: queues lie side by side again, each in a piece that is twice as long."""
        first, end = self.queue[::4], self.queue[1::4]
        length = end - first
        size = np.minimum(self.queue[3::4], np.maximum(4 * length, _ROOM))
        limit = _NEAR + np.cumsum(size)
        self.used = int(limit[-1])
        pool = np.empty(3 * self.used + 4 * len(size) + 64, self.dtype)
        start = limit - size
        within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        pool[np.repeat(start, length) + within] = self.pool[np.repeat(first, length) + within]
        self.queue, self.pool = np.stack([start, start + length, limit, size], axis=1).ravel(), pool

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        values = as_numbers(column.values, self.dtype)
        null_in = NO_MASK if column.null is None else column.null
        out, null = np.empty(feed.size + 1, self.dtype), np.empty(feed.size + 1, np.bool_)
        if self.sliding:
            self.queue = grown(self.queue, 4 * feed.groups)
            if feed.fixed_lag is not None:
                if feed.slot is None and column.null is None and not len(self.epoch):
                    return self._run_pushed(values, feed.fixed_lag, feed)
                feed.lay_out()
            done, made, holes = 0, 0, False
            while done < feed.n:
                done, made, self.used, more = self._through(
                    _LOOPS[self.sign], feed, column.null, (done, made, self.used, values, null_in),
                    (self.queue, self.pool, out, null),
                )  # fmt: skip
                holes |= more
                if done < feed.n:
                    self._room()
        else:
            self.best, self.has = grown(self.best, feed.groups), grown(self.has, feed.groups, False)
            holes = _running_extremes(
                values, null_in, self.sign, *self._ops(feed), self.best, self.has, out, null
            )
        shown = shown_column(self.type, out, null if holes else None)
        return Column(self.type, shown.values.astype(DTYPES[self.type], copy=False), shown.null)

    def _run_pushed(self, values: Array, ops: FixedLagOps, feed: AggregateInput) -> Column:
        out, ahead, done = np.empty(ops.n, self.dtype), feed.ahead(self.words), 0
        loop = _pushed_loop(self.sign, len(feed.group) > 0, ahead > 0)
        while done < ops.n:
            done, self.used = loop(
                done, self.used, values, ops.first, ops.n, ops.free, ops.lag, feed.group, *((ahead,) if ahead else ()),
                self.queue, self.pool, out,
            )  # fmt: skip
            if done < ops.n:
                self._room()
        return Column(self.type, out.astype(DTYPES[self.type], copy=False))

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        (column,) = args
        best, has = np.zeros(groups, column.values.dtype), np.zeros(groups, np.bool_)
        bests(column.values, NO_MASK if column.null is None else column.null, self.sign, group, best, has)
        return Column(self.type, best, None if column.null is None else ~has)

    def forget(self, groups: Array, instances: Array) -> None:
        fill_at(self.has, groups, False)
        queues = self.queue.reshape(-1, 4)
        known = groups[groups < len(queues)]
        queues[known, 1] = queues[known, 0]

    def state(self) -> dict[str, Any]:
        """The concatenated queues, independent of their layout in memory."""
        common = {"epoch": self.epoch, "era": self.eras}
        if not self.sliding:
            return {"best": self.best, "has": self.has, **common}
        first, length = self.queue[::4], self.queue[1::4] - self.queue[::4]
        within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        return {"values": self.pool[np.repeat(first, length) + within], "lengths": length, **common}

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
    values: Array, null: Array, sign: int, n: int, kind: Array, pos: Array, group: Array, instance: Array, slot: Array,
    shown: int, now: Array, epoch: Array, ahead: int, reach: int, best: Array, has: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """The extreme of all that came or went since the last RESET."""
    m = 0
    holes = False
    for j in range(n):
        i = pos[j] if len(pos) else j
        k = kind[j] if len(kind) else CURRENT
        p = instance[i] if len(instance) else 0
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

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        self.best, self.has = grown(self.best, feed.groups), grown(self.has, feed.groups, False)
        out, null = np.empty(feed.size, self.dtype), np.empty(feed.size, np.bool_)
        holes = _forever(
            as_numbers(column.values, self.dtype), NO_MASK if column.null is None else column.null, self.sign,
            *self._ops(feed), self.best, self.has, out, null,
        )  # fmt: skip
        return Column(self.type, out.astype(DTYPES[self.type], copy=False), null if holes and null.any() else None)

    def forget(self, groups: Array, instances: Array) -> None:
        fill_at(self.has, groups, False)

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "has": self.has, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.best, self.has = state["best"].copy(), state["has"].copy()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()


class MaxForever(MinForever):
    sign = -1
