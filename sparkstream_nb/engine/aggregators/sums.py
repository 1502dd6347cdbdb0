"""`sum`, `avg`, `count`: signed running values per group. `running_totals.py` handles the common case; the loops here
are general."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import Array
from ..columnar.column_data import Column
from ..columnar.rows import CURRENT, EXPIRED
from ..expressions.java_arithmetic import long_minus
from ..notation.kernels import kernel
from .aggregator_base import NO_MASK, AggregateInput, begins, look_ahead, put_nothing, reset, shown_column
from .folds import sizes, totals
from .moving import BOTH_EXACT, COUNT, EXACT, MEAN, REAL, WHOLE
from .running_totals import RunningAggregate


def _sums(
    what: int, shift: int, values: Array, null: Array, n: int, kind: Array, pos: Array, group: Array, instance: Array,
    slot: Array, shown: int, now: Array, epoch: Array, ahead: int, reach: int, cells: Array, count: Array, out: Array,
    out_null: Array,
) -> int:  # fmt: skip
    """Running sums of non-null values, or their means, over ops of all kinds; without slots, `out` has room for one
    more, as in `moving._together`. A group's total is in `cells` at its id, shifted by `shift`, its count in `count` at
    the same place. Returns as `moving._together`.
    """
    m: Any = 0
    far: Any = np.uint64(0)
    for j in range(n):
        look_ahead(j, ahead, reach, n, pos, group, values, count, shift)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        p = np.uint64(instance[i]) if len(instance) else np.uint64(0)
        if k > EXPIRED:
            reset(k, p, now)
            if shows:
                m = put_nothing(m, slot, out, out_null)
            continue
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        at = g << np.uint64(shift)
        anew = begins(g, p, now, epoch)
        if anew:
            cells[at] = 0
            count[at] = 0
        none = len(null) > 0 and null[i]
        v = cells.dtype.type(0) if none else cells.dtype.type(values[i])  # what lies under a null may be no number
        sign = 0 if none else 1 - 2 * k
        before = cells[at]
        t = before + sign * v
        if what == WHOLE:
            if (np.uint64(before + EXACT) | np.uint64(v + EXACT)) > BOTH_EXACT and sign < 0:
                t = long_minus(before, v)
            far |= np.uint64(t + EXACT)
        c = count[at] + sign
        cells[at] = t
        count[at] = c
        # A sum shows where a value is added, even where that leaves a count of nothing.
        gone = (c == 0) & ((what == MEAN) | none | (k != CURRENT))
        if len(slot) == 0:
            if what == MEAN:
                out[m] = t / c
            else:
                out[m] = t
            out_null[m] = gone
            m += shows
        elif shows:
            if what == MEAN:
                out[slot[m]] = t / c
            else:
                out[slot[m]] = t
            out_null[slot[m]] = gone
            m += 1
    return far


@cache
def _sum_loop(what: int, shift: int) -> Callable[..., int]:
    return kernel(_sums, what=what, shift=shift)


def _counts(
    shift: int, n: int, kind: Array, pos: Array, group: Array, instance: Array, slot: Array, shown: int, now: Array,
    epoch: Array, ahead: int, reach: int, count: Array, out: Array,
) -> None:  # fmt: skip
    """Running number of rows, nulls too; the rest as in `_sums`."""
    m: Any = 0
    for j in range(n):
        look_ahead(j, ahead, reach, n, pos, group, group, count, shift)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        p = np.uint64(instance[i]) if len(instance) else np.uint64(0)
        if k > EXPIRED:
            reset(k, p, now)
            if shows:
                out[slot[m] if len(slot) else m] = 0
                m += 1
            continue
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        at = g << np.uint64(shift)
        anew = begins(g, p, now, epoch)
        if anew:
            count[at] = 0
        c = count[at] + 1 - 2 * k
        count[at] = c
        if len(slot) == 0:
            out[m] = c
            m += shows
        elif shows:
            out[slot[m]] = c
            m += 1


@cache
def _count_loop(shift: int) -> Callable[..., None]:
    return kernel(_counts, shift=shift)


class Sum(RunningAggregate):
    """`sum`: LONG for int and long, DOUBLE for float and double; null when the group is empty."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self._hold(WHOLE if args[0] in (Type.INT, Type.LONG) else REAL)

    def alone(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        out: Array = np.empty(feed.size + 1, self.dtype)
        null = np.empty(feed.size + 1, np.bool_)
        far = _sum_loop(self.what, self.cells.shift)(
            column.values, NO_MASK if column.null is None else column.null, *self._ops(feed),
            self.cells.totals(self.at, self.dtype), self.cells.counts(self.at), out, null,
        )  # fmt: skip
        self.exact &= bool(far <= BOTH_EXACT)
        return shown_column(self.type, out, null)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        (column,) = args
        total: Array = np.zeros(groups, self.dtype)
        count: Array = np.zeros(groups, np.int64)
        totals(column.values, NO_MASK if column.null is None else column.null, group, total, count)
        null = None if column.null is None else count == 0
        if self.what == MEAN:
            total = total / np.maximum(count, 1)
        return Column(self.type, total, null)


class Avg(Sum):
    """`avg`: DOUBLE, the running sum over the running count. Siddhi adds up doubles, also for int and long."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self._hold(MEAN)


class CountAggregate(RunningAggregate):
    """`count()`: LONG, every row counts."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self._hold(COUNT)

    def alone(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        out: Array = np.empty(feed.size + 1, np.int64)
        _count_loop(self.cells.shift)(*self._ops(feed), self.cells.counts(self.at), out)
        return shown_column(Type.LONG, out)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        count: Array = np.zeros(groups, np.int64)
        sizes(group, count)
        return Column(Type.LONG, count)
