"""`sum`, `avg`, `count`, `stdDev`: signed running values per group.

State is one array per quantity, by group id.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column
from ..jit import kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import NO_MASK, Feed, Grouped, shown_column
from .folds import sizes, totals


@kernel
def long_minus(a: int, b: int) -> int:
    """a - b as Siddhi takes it away from a long sum (`SumAttributeAggregatorExecutor.AggregatorStateLong`): through a
    double, and back with Java's saturation."""
    d = float(a) - float(b)
    if d >= 9223372036854775807.0:
        return int(np.int64(9223372036854775807))
    if d <= -9223372036854775808.0:
        return int(np.int64(-9223372036854775808))
    return int(np.int64(d))


_EXACT = 1 << 52
"""Longs up to here, and their differences, are doubles."""


@kernel
def _sums(
    values: Array, null: Array, long: bool, mean: bool, n: int, kind: Array, pos: Array, group: Array, part: Array,
    slot: Array, shown: int, now: Array, total: Array, count: Array, epoch: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """Running sums of non-null values, or their means; whether there is a null among them.

    Without branches on the kind, which no processor can guess. Without slots, a value that is not shown lies where the
    next one comes, so `out` has room for one more.
    """
    m: Any = 0
    holes = False
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
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
        if epoch[g] != now[p]:
            epoch[g] = now[p]
            total[g] = 0
            count[g] = 0
        v = values[i]
        none = len(null) > 0 and null[i]
        sign = 0 if none else 1 - 2 * k
        t = total[g] + sign * v
        if long and sign < 0 and max(total[g], v, -_EXACT - 1 - min(total[g], v)) > _EXACT:
            t = long_minus(total[g], v)
        c = count[g] + sign
        total[g] = t
        count[g] = c
        # A sum shows where a value is added, even where that leaves a count of nothing.
        gone = (c == 0) & (mean | none | (k != CURRENT))
        if len(slot) == 0:
            if mean:
                out[m] = t / c
            else:
                out[m] = t
            out_null[m] = gone
            holes |= gone & (shows > 0)
            m += shows
        elif shows:
            if mean:
                out[slot[m]] = t / c
            else:
                out[slot[m]] = t
            out_null[slot[m]] = gone
            holes |= gone
            m += 1
    return holes


@kernel
def _counts(
    n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array, shown: int, now: Array, count: Array,
    epoch: Array, out: Array,
) -> None:  # fmt: skip
    """Running number of rows, nulls too; `out` as in `_sums`."""
    m: Any = 0
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        p = np.uint64(part[i]) if len(part) else np.uint64(0)
        shows = (shown >> k) & 1
        if k > EXPIRED:
            if k == RESET:
                now[p] += 1
            if shows:
                out[slot[m] if len(slot) else m] = 0
                m += 1
            continue
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        if epoch[g] != now[p]:
            epoch[g] = now[p]
            count[g] = 0
        c = count[g] + 1 - 2 * k
        count[g] = c
        if len(slot) == 0:
            out[m] = c
            m += shows
        elif shows:
            out[slot[m]] = c
            m += 1


class Sum(Grouped):
    """`sum`: LONG for int and long, DOUBLE for float and double; null when nothing is left."""

    mean = False

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.long = args[0] in (Type.INT, Type.LONG)
        self.dtype = np.int64 if self.long else np.float64
        self.total = np.zeros(0, self.dtype)
        self.count = np.zeros(0, np.int64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        self._room(feed)
        self.total, self.count = grown(self.total, feed.groups), grown(self.count, feed.groups)
        out, null = np.empty(feed.size + 1, self.dtype), np.empty(feed.size + 1, np.bool_)
        holes = _sums(
            column.values.astype(self.dtype, copy=False), NO_MASK if column.null is None else column.null, self.long,
            self.mean, *feed.arrays, self.eras, self.total, self.count, self.epoch, out, null,
        )  # fmt: skip
        return shown_column(Type.LONG if self.long else Type.DOUBLE, out, null if holes else None)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        (column,) = args
        total: Array = np.zeros(groups, self.dtype)
        count: Array = np.zeros(groups, np.int64)
        totals(column.values, NO_MASK if column.null is None else column.null, group, total, count)
        null = None if column.null is None else count == 0
        if self.mean:
            total = total / np.maximum(count, 1)
        return Column(Type.LONG if self.long else Type.DOUBLE, total, null)

    def state(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.total, self.count, self.epoch = state["total"].copy(), state["count"].copy(), state["epoch"].copy()
        self.eras = state["era"].copy()


class Avg(Sum):
    """`avg`: DOUBLE, the running sum over the running count. Siddhi adds up doubles, also for int and long."""

    mean = True

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        super().__init__((Type.DOUBLE,), sliding)


class Count(Grouped):
    """`count()`: LONG, every row counts."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.count = np.zeros(0, np.int64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        self._room(feed)
        self.count = grown(self.count, feed.groups)
        out = np.empty(feed.size + 1, np.int64)
        _counts(*feed.arrays, self.eras, self.count, self.epoch, out)
        return shown_column(Type.LONG, out)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        count = np.zeros(groups, np.int64)
        sizes(group, count)
        return Column(Type.LONG, count)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.count, self.epoch, self.eras = state["count"].copy(), state["epoch"].copy(), state["era"].copy()


@kernel
def _deviations(
    values: Array, null: Array, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array, shown: int,
    now: Array, total: Array, mean: Array, square: Array, count: Array, epoch: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """`StdDevAttributeAggregatorExecutor`: running mean and sum of squares; what is left of it when one value is left
    stays, as there. Tells whether there is a null."""
    m: Any = 0
    holes = False
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        p = np.uint64(part[i]) if len(part) else np.uint64(0)
        shows = (shown >> k) & 1
        if k > EXPIRED:
            if k == RESET:
                now[p] += 1
            if shows:
                o = slot[m] if len(slot) else m
                m += 1
                out[o] = 0.0
                out_null[o] = True
                holes = True
            continue
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        if epoch[g] != now[p]:
            epoch[g] = now[p]
            total[g] = 0.0
            mean[g] = 0.0
            square[g] = 0.0
            count[g] = 0
        if not (len(null) and null[i]):
            v = values[i]
            sign = 1 - 2 * k
            c = count[g] + sign
            count[g] = c
            before = mean[g]
            if c == 1 and sign > 0:
                total[g] = v
                mean[g] = v
                square[g] = 0.0
            elif c == 0 and sign < 0:
                total[g] = 0.0
                mean[g] = 0.0
                square[g] = 0.0
            elif c != 0:
                t = total[g] + sign * v
                x = t / c
                total[g] = t
                mean[g] = x
                square[g] += sign * ((v - before) * (v - x))
        c = count[g]
        o = m
        if len(slot) > 0:
            if not shows:
                continue
            o = slot[m]
        out_null[o] = c == 0
        holes |= (c == 0) & (shows > 0)
        out[o] = np.sqrt(square[g] / c) if c != 0 and c != 1 else 0.0
        m += shows
    return holes


class StdDev(Grouped):
    """`stdDev`: DOUBLE, of the population; 0.0 for one value, null for none."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.sums = np.zeros((3, 0), np.float64)
        self.count = np.zeros(0, np.int64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        self._room(feed)
        self.sums, self.count = grown(self.sums, feed.groups), grown(self.count, feed.groups)
        out, null = np.empty(feed.size + 1, np.float64), np.empty(feed.size + 1, np.bool_)
        holes = _deviations(
            column.values.astype(np.float64, copy=False), NO_MASK if column.null is None else column.null,
            *feed.arrays, self.eras, self.sums[0], self.sums[1], self.sums[2], self.count, self.epoch, out, null,
        )  # fmt: skip
        return shown_column(Type.DOUBLE, out, null if holes else None)

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "count": self.count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.sums, self.count, self.epoch = state["sums"].copy(), state["count"].copy(), state["epoch"].copy()
        self.eras = state["era"].copy()
