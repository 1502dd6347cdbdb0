"""`min`, `max`, `minForever`, `maxForever`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import DTYPES, Array, Column
from ..columnar.rows import CURRENT, EXPIRED, FixedLagOps
from ..notation.intrinsics import eight_equal, eight_greater, eight_less, either, ones_above, prefetch
from ..notation.kernels import inlined, kernel, struct
from ..state.declared import per_group
from ..state.saving import Form
from .aggregator_base import NO_MASK, AggregateInput, Aggregator, Grouped, Ops, Outputs, as_numbers
from .folds import bests

_NEAR, _ROOM = 8, 16
"""Number of candidates compared at once; least room of a queue in use."""


@struct
class _Extreme(Grouped):
    """An extreme: the type of the argument; null when the group is empty."""

    sign = 1
    constants = ("sign",)

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (self.type,) = args
        self.dtype = np.dtype(np.int64 if self.type in (Type.INT, Type.LONG) else np.float64)
        self._begin()

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        (column,) = args
        best, has = np.zeros(groups, column.values.dtype), np.zeros(groups, np.bool_)
        bests(column.values, NO_MASK if column.null is None else column.null, self.sign, group, best, has)
        return Column(self.type, best, None if column.null is None else ~has)


@struct
class _Best(_Extreme):
    """The best value so far of each group that has one."""

    best = per_group(dtype="dtype")
    has = per_group(False, dtype=np.bool_)

    @inlined
    def clear(self, g: Any) -> None:
        self.has[g] = False

    @inlined
    def show(self, g: Any, o: Any, outputs: Outputs) -> None:
        has = self.has[g]
        outputs.values[o] = self.best[g] if has else 0
        outputs.null[o] = not has
        outputs.holes[0] |= not has


@struct
class Min(_Best):
    """`min` and `max` where events do not expire one by one: the extreme since the last RESET. The extreme itself,
    expired, leaves nothing behind (`MinAttributeAggregatorExecutor` without its deque)."""

    @inlined
    def take(self, g: Any, value: Any, kind: Any) -> None:
        if kind == EXPIRED:
            self.has[g] = self.has[g] and self.best[g] != value
        else:
            b = self.best[g]
            better = b > value if self.sign > 0 else b < value
            self.best[g] = value if better or not self.has[g] else b
            self.has[g] = True


class Max(Min):
    sign = -1


@struct
class MinForever(_Best):
    """`minForever` and `maxForever`: expired rows count as well. A RESET drops the states of all groups, so in batch
    windows forever ends with the batch."""

    @inlined
    def take(self, g: Any, value: Any, kind: Any) -> None:
        if not self.has[g] or (self.best[g] > value if self.sign > 0 else self.best[g] < value):
            self.best[g] = value
            self.has[g] = True


class MaxForever(MinForever):
    sign = -1


@struct
class SlidingMin(_Extreme):
    """`min` and `max` where events expire one by one: a monotonic queue of candidates for each group."""

    words = 4 + _ROOM
    pushes = has_all_versions = True

    def _begin(self) -> None:
        super()._begin()
        self.queue, self.pool = np.zeros(0, np.int64), np.zeros(2 * _NEAR, self.dtype)
        self.pool_end, self.output_count = np.array([_NEAR]), np.zeros(1, np.int64)

    def _room(self) -> None:
        """More room in the pool: queues lie side by side again, each in a piece that is twice as long."""
        first, end = self.queue[::4], self.queue[1::4]
        length = end - first
        size = np.minimum(self.queue[3::4], np.maximum(4 * length, _ROOM))
        limit = _NEAR + np.cumsum(size)
        self.pool_end[0] = limit[-1]
        pool = np.empty(3 * int(limit[-1]) + 4 * len(size) + 64, self.dtype)
        start = limit - size
        within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        pool[np.repeat(start, length) + within] = self.pool[np.repeat(first, length) + within]
        self.queue, self.pool = np.stack([start, start + length, limit, size], axis=1).ravel(), pool

    @inlined
    def _ask_for_candidates(self, ops: Ops, j: int) -> None:
        """Prefetches the last candidates of the group half of `ops.group_distance` ops ahead of `j`."""
        if ops.group_distance > 0:
            soon = np.uint64(min(j + (ops.group_distance >> 1), ops.n - 1))
            soon = np.uint64(ops.group[np.uint64(ops.pos[soon]) if len(ops.pos) else soon]) << np.uint64(2)
            ends = self.queue[soon + np.uint64(1)]
            prefetch(self.pool, ends)
            prefetch(self.pool, ends - _NEAR)

    @inlined
    def _move_up(self, q: Any) -> bool:
        """Makes room in a queue that has none, at the front of its piece of the pool or in a new one of twice the size;
        False if the pool has no such piece.
        """
        first = self.queue[q]
        size = self.queue[q + np.uint64(3)]
        length = self.queue[q + np.uint64(1)] - first
        to = self.queue[q + np.uint64(2)] - size
        pool_end = self.pool_end[0]
        if 2 * length > size or size < _ROOM:
            size = max(2 * size, 4)
            to = pool_end
            pool_end += size
        fits = pool_end + _NEAR <= len(self.pool)
        if fits:
            self.pool_end[0] = pool_end
            self.queue[q + np.uint64(2)] = to + size
            self.queue[q + np.uint64(3)] = size
            for x in range(length):
                self.pool[to + x] = self.pool[first + x]
            self.queue[q] = to
            self.queue[q + np.uint64(1)] = to + length
        return fits

    @inlined
    def _without(self, v: Any, first: Any, end: Any) -> Any:
        """Takes the first candidate that equals `v` out of those from `first` to `end`, if there is one; where they end
        then."""
        at = first
        while at < end and (self.pool[at] < v if self.sign > 0 else self.pool[at] > v):
            at += np.uint64(1)
        if at < end and self.pool[at] == v:
            end -= np.uint64(1)
            for x in range(at, end):
                self.pool[x] = self.pool[x + np.uint64(1)]
        return end

    @inlined
    def _count_worse(self, v: Any, end: Any, have: Any, least: Any) -> Any:
        """The number of the `have` candidates before `end` that are worse than `v`, as the last `least` ones are."""
        goes = least
        one = np.uint64(1)
        while goes < have and (self.pool[end - goes - one] > v if self.sign > 0 else self.pool[end - goes - one] < v):
            goes += one
        return goes

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        values = as_numbers(column.values, self.dtype)
        outputs = Outputs(feed.size, self.dtype)
        self.queue = grown(self.queue, 4 * feed.groups)
        if feed.fixed_lag is not None:
            if feed.slot is None and column.null is None and not len(self.epoch):
                return self._run_pushed(values, feed.fixed_lag, feed)
            feed.lay_out()
        ops, null = self.ops(feed), NO_MASK if column.null is None else column.null
        loop, next_op = self._version(_slide, ops, feed, column.null), 0
        self.output_count[0] = 0
        while next_op < feed.n:
            next_op = loop(self, next_op, values, null, ops, outputs)
            if next_op < feed.n:
                self._room()
        return outputs.column(self.type)

    def _run_pushed(self, values: Array, ops: FixedLagOps, feed: AggregateInput) -> Column:
        out, group_distance, next_op = np.empty(ops.n, self.dtype), feed.group_distance(self.words), 0
        loop = _pushed_loop(self.sign, len(feed.group) > 0, group_distance > 0)
        while next_op < ops.n:
            next_op = loop(self, next_op, values, ops, feed.group, *((group_distance,) if group_distance else ()), out)
            if next_op < ops.n:
                self._room()
        return Column(self.type, out.astype(DTYPES[self.type], copy=False))

    def forget(self, groups: Array, instances: Array) -> None:
        queues = self.queue.reshape(-1, 4)
        stored_groups = groups[groups < len(queues)]
        queues[stored_groups, 1] = queues[stored_groups, 0]

    def _state(self, form: Form) -> dict[str, Any]:
        """The concatenated queues, independent of their layout in memory."""
        first, length = self.queue[::4], self.queue[1::4] - self.queue[::4]
        within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        return {"values": self.pool[np.repeat(first, length) + within], "lengths": length, **super()._state(form)}

    def load(self, state: dict[str, Any]) -> None:
        self._begin()
        lengths = state["lengths"]
        groups = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        type = Type.LONG if self.dtype == np.int64 else Type.DOUBLE
        self.run((Column(type, state["values"]),), None, groups, len(lengths))
        super().load(state)


class SlidingMax(SlidingMin):
    sign = -1


def make_min(args: tuple[Type, ...], sliding: bool) -> Aggregator:
    """`min` over values of a type."""
    return (SlidingMin if sliding else Min)(args, sliding)


def make_max(args: tuple[Type, ...], sliding: bool) -> Aggregator:
    """`max` over values of a type."""
    return (SlidingMax if sliding else Max)(args, sliding)


def _slide(
    aggregator: SlidingMin, begin: int, values: Array, null: Array, ops: Ops, outputs: Outputs, plain: bool
) -> int:
    """A monotonic queue per group, whose front is the minimum of sign * value; from the op `begin` on, after
    `output_count[0]` values were output. `plain`: see `GENERAL`.

    Values that a newer, smaller one makes irrelevant leave from the back; an expired value leaves from its position,
    which is the front for windows that expire in order (`MinAttributeAggregatorExecutor`, its deque). Which of this
    happens is no branch where the queue is short, as no processor could guess it.

    A queue lies in one piece of the `pool`, of which `pool_end` is taken, and which has `_NEAR` places before the first
    and behind the last; `queue` has four words a group: its first candidate, its end, the end of its piece and the size
    of that. One without room moves to the front of its piece, or to a new piece of twice the size. Stops where the pool
    has none; returns how many ops are done.
    """
    holes = False
    outputs.count = aggregator.output_count[0]
    two, near, zero = np.uint64(2), np.uint64(_NEAR), np.uint64(0)
    for j in range(begin, ops.n):
        ops.look_ahead(j, values, aggregator.queue, 2)
        aggregator._ask_for_candidates(ops, j)
        i = np.uint64(ops.pos[j]) if len(ops.pos) else np.uint64(j)
        k: Any = np.int64(ops.kind[j]) if len(ops.kind) else 0
        shows = (ops.shown_kinds >> k) & 1
        p = np.uint64(0)
        if not plain:
            p = np.uint64(ops.instance[i]) if len(ops.instance) else np.uint64(0)
            if k > EXPIRED:
                ops.reset(k, p)
                if shows:
                    outputs.put_null(ops)
                continue
        g = np.uint64(ops.group[i]) if len(ops.group) else zero
        q = g << two
        if aggregator.queue[q + np.uint64(1)] == aggregator.queue[q + two]:
            fits = aggregator._move_up(q)
            if not fits:
                outputs.holes[0] |= holes
                aggregator.output_count[0] = outputs.count
                return j
        first = np.uint64(aggregator.queue[q])
        end = np.uint64(aggregator.queue[q + np.uint64(1)])
        if not plain:
            is_first = ops.begins(g, p)
            if is_first:
                end = first
        if plain or not (len(null) and null[i]):
            v = values[i]
            have = end - first
            comes = np.uint64(k == CURRENT)
            if aggregator.sign > 0:
                worse = eight_greater(aggregator.pool, end - near, v)
            else:
                worse = eight_less(aggregator.pool, end - near, v)
            goes = min(ones_above(worse), have) * comes
            same = eight_equal(aggregator.pool, first, v) & ((np.uint64(1) << min(have, near)) - np.uint64(1))
            front = same & ~comes & np.uint64(1)
            # Whether that is not all there is to do, in one number, for one branch.
            over = max(have, near) - near | same
            if (goes >> np.uint64(3)) | over * (np.uint64(1) - (comes | front)) != zero:
                if comes != zero:
                    goes = aggregator._count_worse(v, end, have, goes)
                else:
                    end = aggregator._without(v, first, end)
            end -= goes
            aggregator.pool[end] = v  # where no value comes it lies behind the last
            end += comes
            first += front
        none = first == end
        best = either(none, values.dtype.type(0), aggregator.pool[first])
        if ops.group_distance > 0:  # many queues, mostly of few: one that is empty begins again, and needs no more room
            piece_start = np.uint64(aggregator.queue[q + two] - aggregator.queue[q + np.uint64(3)])
            first = either(none, piece_start, first)
            end = either(none, piece_start, end)
        aggregator.queue[q] = np.int64(first)
        aggregator.queue[q + np.uint64(1)] = np.int64(end)
        outputs.put(ops, plain, best, none, shows)
        holes |= none & (shows != 0)
    outputs.holes[0] |= holes
    return ops.n


def _push(
    aggregator: SlidingMin, begin: int, values: Array, lag: FixedLagOps, group: Array, group_distance: int, out: Array,
    has_groups: bool,
) -> int:  # fmt: skip
    """`_slide` over the ops of `rows.FixedLagOps`, from its event `begin` on: values after CURRENT rows, none of them
    null. Adds and removes are separate loops, as their order is known. Returns how many events are done.
    """
    one, two, near, zero = np.uint64(1), np.uint64(2), np.uint64(_NEAR), np.uint64(0)
    for j in range(begin, lag.n):
        i = np.uint64(lag.first + j)
        q = np.uint64(group[i]) << two if has_groups else zero
        if group_distance > 0:
            soon = lag.first + min(j + group_distance, lag.n - 1)
            for later in (soon, max(soon - lag.lag, 0)):
                prefetch(aggregator.queue, np.uint64(group[np.uint64(later)]) << two)
            soon = lag.first + min(j + (group_distance >> 1), lag.n - 1)
            for later in (soon, max(soon - lag.lag, 0)):
                ends = aggregator.queue[(np.uint64(group[np.uint64(later)]) << two) + one]
                prefetch(aggregator.pool, ends)
                prefetch(aggregator.pool, ends - _NEAR)
        if aggregator.queue[q + one] == aggregator.queue[q + two]:
            fits = aggregator._move_up(q)
            if not fits:
                return j
        if j >= lag.free:
            leaver = i - np.uint64(lag.lag)
            v = values[leaver]
            left = np.uint64(group[leaver]) << two if has_groups else zero
            first = np.uint64(aggregator.queue[left])
            have = np.uint64(aggregator.queue[left + one]) - first
            same = eight_equal(aggregator.pool, first, v) & ((one << min(have, near)) - one)
            front = same & one
            aggregator.queue[left] = np.int64(first + front)
            if group_distance > 0:  # one that is empty begins again, as in `_extremes`
                piece_start = aggregator.queue[left + two] - aggregator.queue[left + np.uint64(3)]
                aggregator.queue[left] = either(have == front, piece_start, np.int64(first + front))
                aggregator.queue[left + one] = either(have == front, piece_start, np.int64(first + have))
            if (max(have, near) - near | same) * (one - front) != zero:
                end = aggregator._without(v, first, first + have)
                aggregator.queue[left + one] = np.int64(end)
        v = values[i]
        first = np.uint64(aggregator.queue[q])
        end = np.uint64(aggregator.queue[q + one])
        have = end - first
        if aggregator.sign > 0:
            worse = eight_greater(aggregator.pool, end - near, v)
        else:
            worse = eight_less(aggregator.pool, end - near, v)
        goes = min(ones_above(worse), have)
        if goes == near:
            goes = aggregator._count_worse(v, end, have, goes)
        end -= goes
        aggregator.pool[end] = v
        aggregator.queue[q + one] = np.int64(end + one)
        out[np.uint64(j)] = aggregator.pool[first]
    return lag.n


@cache
def _pushed_loop(sign: int, has_groups: bool, asks: bool) -> Callable[..., int]:
    """`_push`; if it does not ask for anything ahead, `group_distance` is not given."""
    return kernel(_push, has_groups=has_groups, **{"aggregator.sign": sign}, **({} if asks else {"group_distance": 0}))
