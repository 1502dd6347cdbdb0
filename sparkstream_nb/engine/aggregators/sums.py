"""`sum`, `avg`, `count`, `stdDev`: signed running values per group.

What a group's values are made of lies side by side, as a group that was not seen for a while is no more in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column
from ..jit import inlined, kernel, prefetch
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


@inlined
def _look_ahead(
    j: int, ahead: int, n: int, pos: Array, group: Array, values: Array, cells: Array, width: int
) -> None:
    """Asks for the event of the op 2 * `ahead` from here, and for the group of the one `ahead`."""
    if ahead > 0:
        if len(pos) > 0:
            later = pos[min(j + 2 * ahead, n - 1)]
            prefetch(group, later)
            prefetch(values, later)
        soon = np.int64(min(j + ahead, n - 1))
        prefetch(cells, width * group[pos[soon] if len(pos) else soon])


_EXACT = 1 << 52
"""Longs up to here, and their differences, are doubles."""


@kernel
def _sums(
    values: Array, null: Array, long: bool, mean: bool, n: int, kind: Array, pos: Array, group: Array, part: Array,
    slot: Array, shown: int, now: Array, epoch: Array, ahead: int, total: Array, count: Array, out: Array,
    out_null: Array,
) -> bool:  # fmt: skip
    """Running sums of non-null values, or their means; whether there is a null among them.

    Without branches on the kind, which no processor can guess. Without slots, a value that is not shown lies where the
    next one comes, so `out` has room for one more. `total` and `count` are one memory: a group's total at twice its id,
    its count behind it.
    """
    m: Any = 0
    one = np.uint64(1)
    holes = False
    for j in range(n):
        _look_ahead(j, ahead, n, pos, group, values, total, 2)
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
        at = g << one
        if len(epoch) and epoch[g] != now[p]:
            epoch[g] = now[p]
            total[at] = 0
            count[at + one] = 0
        none = len(null) > 0 and null[i]
        v = values.dtype.type(0) if none else values[i]  # what lies under a null may be no number
        sign = 0 if none else 1 - 2 * k
        t = total[at] + sign * v
        if long and max(total[at], v, -_EXACT - 1 - min(total[at], v)) > _EXACT and sign < 0:
            t = long_minus(total[at], v)
        c = count[at + one] + sign
        total[at] = t
        count[at + one] = c
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
    n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array, shown: int, now: Array, epoch: Array,
    ahead: int, count: Array, out: Array,
) -> None:  # fmt: skip
    """Running number of rows, nulls too; `out` as in `_sums`."""
    m: Any = 0
    for j in range(n):
        _look_ahead(j, ahead, n, pos, group, group, count, 1)
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
        if len(epoch) and epoch[g] != now[p]:
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
        self.cells = np.zeros(0, np.int64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        self.cells = grown(self.cells, 2 * feed.groups)
        out, null = np.empty(feed.size + 1, self.dtype), np.empty(feed.size + 1, np.bool_)
        holes = _sums(
            column.values.astype(self.dtype, copy=False), NO_MASK if column.null is None else column.null, self.long,
            self.mean, *self._ops(feed), self.cells.view(self.dtype), self.cells, out, null,
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
        cells = self.cells[: len(self.cells) & ~1]
        total, count = cells.view(self.dtype)[::2], cells[1::2]
        return {"total": total, "count": count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.cells = np.stack([state["total"].view(np.int64), state["count"]], axis=1).ravel()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()


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
        self.count = grown(self.count, feed.groups)
        out = np.empty(feed.size + 1, np.int64)
        _counts(*self._ops(feed), self.count, out)
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
    now: Array, epoch: Array, ahead: int, cells: Array, count: Array, out: Array, out_null: Array,
) -> bool:  # fmt: skip
    """`StdDevAttributeAggregatorExecutor`: running mean and sum of squares; what is left of it when one value is left
    stays, as there. Tells whether there is a null. `cells` and `count` are one memory: four words a group, of total,
    mean, sum of squares and count."""
    m: Any = 0
    holes = False
    for j in range(n):
        _look_ahead(j, ahead, n, pos, group, values, cells, 4)
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
        g = np.int64(group[i]) if len(group) else 0
        a = 4 * g
        if len(epoch) and epoch[g] != now[p]:
            epoch[g] = now[p]
            cells[a] = 0.0
            cells[a + 1] = 0.0
            cells[a + 2] = 0.0
            count[a + 3] = 0
        if not (len(null) and null[i]):
            v = values[i]
            sign = 1 - 2 * k
            c = count[a + 3] + sign
            count[a + 3] = c
            before = cells[a + 1]
            if c == 1 and sign > 0:
                cells[a] = v
                cells[a + 1] = v
                cells[a + 2] = 0.0
            elif c == 0 and sign < 0:
                cells[a] = 0.0
                cells[a + 1] = 0.0
                cells[a + 2] = 0.0
            elif c != 0:
                t = cells[a] + sign * v
                x = t / c
                cells[a] = t
                cells[a + 1] = x
                cells[a + 2] += sign * ((v - before) * (v - x))
        c = count[a + 3]
        o = m
        if len(slot) > 0:
            if not shows:
                continue
            o = slot[m]
        out_null[o] = c == 0
        holes |= (c == 0) & (shows > 0)
        out[o] = np.sqrt(cells[a + 2] / c) if c != 0 and c != 1 else 0.0
        m += shows
    return holes


class StdDev(Grouped):
    """`stdDev`: DOUBLE, of the population; 0.0 for one value, null for none."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.cells = np.zeros(0, np.float64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        self.cells = grown(self.cells, 4 * feed.groups)
        out, null = np.empty(feed.size + 1, np.float64), np.empty(feed.size + 1, np.bool_)
        holes = _deviations(
            column.values.astype(np.float64, copy=False), NO_MASK if column.null is None else column.null,
            *self._ops(feed), self.cells, self.cells.view(np.int64), out, null,
        )  # fmt: skip
        return shown_column(Type.DOUBLE, out, null if holes else None)

    def state(self) -> dict[str, Any]:
        cells = self.cells[: len(self.cells) & ~3].reshape(-1, 4)
        count = cells.view(np.int64)[:, 3]
        return {"sums": cells[:, :3].T, "count": count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.cells = np.vstack([state["sums"], state["count"].view(np.float64)]).T.ravel()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()
