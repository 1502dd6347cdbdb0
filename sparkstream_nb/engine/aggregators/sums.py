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
from .aggregator_base import NO_MASK, AggregateInput, Ops, Outputs
from .folds import sizes, totals
from .moving import BOTH_EXACT, COUNT, EXACT, MEAN, REAL, WHOLE
from .running_totals import RunningAggregate


def _sums(
    values: Array, null: Array, ops: Ops, cells: Array, count: Array, outputs: Outputs, what: int, shift: int
) -> int:
    """Running sums of non-null values, or their means, over ops of all kinds. A group's total is in `cells` at its id,
    shifted by `shift`, its count in `count` at the same place. Returns as `moving._together`.
    """
    far: Any = np.uint64(0)
    for j in range(ops.n):
        ops.look_ahead(j, values, count, shift)
        i = np.uint64(ops.pos[j]) if len(ops.pos) else np.uint64(j)
        k: Any = np.int64(ops.kind[j]) if len(ops.kind) else 0
        shows = (ops.shown_kinds >> k) & 1
        p = np.uint64(ops.instance[i]) if len(ops.instance) else np.uint64(0)
        if k > EXPIRED:
            ops.reset(k, p)
            if shows:
                outputs.put_null(ops)
            continue
        g = np.uint64(ops.group[i]) if len(ops.group) else np.uint64(0)
        at = g << np.uint64(shift)
        is_first = ops.begins(g, p)
        if is_first:
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
        is_null = (c == 0) & ((what == MEAN) | none | (k != CURRENT))
        if what == MEAN:
            outputs.put(ops, False, t / c, is_null, shows)
        else:
            outputs.put(ops, False, t, is_null, shows)
    return far


@cache
def _sum_loop(what: int, shift: int) -> Callable[..., int]:
    return kernel(_sums, what=what, shift=shift)


def _counts(ops: Ops, count: Array, outputs: Outputs, shift: int) -> None:
    """Running number of rows, nulls too; the rest as in `_sums`."""
    for j in range(ops.n):
        ops.look_ahead(j, ops.group, count, shift)
        i = np.uint64(ops.pos[j]) if len(ops.pos) else np.uint64(j)
        k: Any = np.int64(ops.kind[j]) if len(ops.kind) else 0
        shows = (ops.shown_kinds >> k) & 1
        p = np.uint64(ops.instance[i]) if len(ops.instance) else np.uint64(0)
        if k > EXPIRED:
            ops.reset(k, p)
            if shows:
                outputs.values[ops.slot[outputs.count] if len(ops.slot) else outputs.count] = 0
                outputs.count += 1
            continue
        g = np.uint64(ops.group[i]) if len(ops.group) else np.uint64(0)
        at = g << np.uint64(shift)
        is_first = ops.begins(g, p)
        if is_first:
            count[at] = 0
        c = count[at] + 1 - 2 * k
        count[at] = c
        if len(ops.slot) == 0:
            outputs.values[outputs.count] = c
            outputs.count += shows
        elif shows:
            outputs.values[ops.slot[outputs.count]] = c
            outputs.count += 1


@cache
def _count_loop(shift: int) -> Callable[..., None]:
    return kernel(_counts, shift=shift)


class Sum(RunningAggregate):
    """`sum`: LONG for int and long, DOUBLE for float and double; null when the group is empty."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self._hold(WHOLE if args[0] in (Type.INT, Type.LONG) else REAL)

    def alone(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        outputs, ops = Outputs(feed.size, self.dtype), self.ops(feed)
        null = NO_MASK if column.null is None else column.null
        far = _sum_loop(self.what, self.cells.shift)(
            column.values, null, ops, self.cells.totals(self.at, self.dtype), self.cells.counts(self.at), outputs
        )
        self.exact &= bool(far <= BOTH_EXACT)
        outputs.holes[0] = True
        return outputs.column(self.type)

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
        outputs = Outputs(feed.size, np.int64)
        _count_loop(self.cells.shift)(self.ops(feed), self.cells.counts(self.at), outputs)
        return outputs.column(Type.LONG)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        count: Array = np.zeros(groups, np.int64)
        sizes(group, count)
        return Column(Type.LONG, count)
