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
from .base import NO_MASK, Feed, Grouped, Loops, shown_column
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
    j: int, ahead: int, reach: int, n: int, pos: Array, group: Array, values: Array, cells: Array, width: int
) -> None:
    """Asks for the event of the op `reach` from here, and for the group of the one `ahead`."""
    if ahead > 0:
        if reach > 0 and len(pos) > 0:
            later = pos[min(j + reach, n - 1)]
            prefetch(group, later)
            prefetch(values, later)
        soon = np.int64(min(j + ahead, n - 1))
        prefetch(cells, width * group[pos[soon] if len(pos) else soon])


_EXACT = 1 << 52
"""Longs up to here, and their differences, are doubles."""
_BOTH_EXACT = np.uint64(2 * _EXACT - 1)


def _sums(
    plain: bool, long: bool, mean: bool, values: Array, null: Array, n: int, kind: Array, pos: Array, group: Array,
    part: Array, slot: Array, shown: int, now: Array, epoch: Array, ahead: int, reach: int, total: Array, count: Array,
    out: Array, out_null: Array,
) -> None:  # fmt: skip
    """Running sums of non-null values, or their means. `plain`: see `Loops`.

    Without branches on the kind, which no processor can guess. Without slots, a value that is not shown lies where the
    next one comes, so `out` has room for one more. `total` and `count` are one memory: a group's total at twice its id,
    its count behind it.
    """
    m: Any = 0
    one = np.uint64(1)
    for j in range(n):
        _look_ahead(j, ahead, reach, n, pos, group, values, total, 2)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        g = np.uint64(0)
        if not plain:
            p = np.uint64(part[i]) if len(part) else np.uint64(0)
            if k > EXPIRED:
                if k == RESET:
                    now[p] += 1
                if shows:
                    o = slot[m] if len(slot) else m
                    m += 1
                    out[o] = 0
                    out_null[o] = True
                continue
            g = np.uint64(group[i]) if len(group) else np.uint64(0)
            if len(epoch) and epoch[g] != now[p]:
                epoch[g] = now[p]
                total[g << one] = 0
                count[(g << one) + one] = 0
        elif len(group):
            g = np.uint64(group[i])
        at = g << one
        none = not plain and len(null) > 0 and null[i]
        v = values.dtype.type(0) if none else values[i]  # what lies under a null may be no number
        sign = 0 if none else 1 - 2 * k
        before = total[at]
        t = before + sign * v
        if long and (np.uint64(before + _EXACT) | np.uint64(v + _EXACT)) > _BOTH_EXACT and sign < 0:
            t = long_minus(before, v)
        c = count[at + one] + sign
        total[at] = t
        count[at + one] = c
        # A sum shows where a value is added, even where that leaves a count of nothing.
        gone = (c == 0) & (mean | none | (k != CURRENT))
        if plain or len(slot) == 0:
            if mean:
                out[m] = t / c
            else:
                out[m] = t
            out_null[m] = gone
            m += shows
        elif shows:
            if mean:
                out[slot[m]] = t / c
            else:
                out[slot[m]] = t
            out_null[slot[m]] = gone
            m += 1


_LONG_SUMS = Loops(_sums, long=True, mean=False)
_SUMS = Loops(_sums, long=False, mean=False)
_MEANS = Loops(_sums, long=False, mean=True)


def _counts(
    plain: bool, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array, shown: int, now: Array,
    epoch: Array, ahead: int, reach: int, count: Array, out: Array,
) -> None:  # fmt: skip
    """Running number of rows, nulls too; `out` as in `_sums`."""
    m: Any = 0
    for j in range(n):
        _look_ahead(j, ahead, reach, n, pos, group, group, count, 1)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        g = np.uint64(0)
        if not plain:
            p = np.uint64(part[i]) if len(part) else np.uint64(0)
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
        elif len(group):
            g = np.uint64(group[i])
        c = count[g] + 1 - 2 * k
        count[g] = c
        if plain or len(slot) == 0:
            out[m] = c
            m += shows
        elif shows:
            out[slot[m]] = c
            m += 1


_COUNTS = Loops(_counts)


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
        out = np.empty(feed.size + 1, self.dtype)
        null = np.empty(feed.size + 1, np.bool_)
        self._through(
            _LONG_SUMS if self.long else _MEANS if self.mean else _SUMS, feed, column.null,
            (column.values.astype(self.dtype, copy=False), NO_MASK if column.null is None else column.null),
            (self.cells.view(self.dtype), self.cells, out, null),
        )  # fmt: skip
        return shown_column(Type.LONG if self.long else Type.DOUBLE, out, null)

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
        self._through(_COUNTS, feed, None, (), (self.count, out))
        return shown_column(Type.LONG, out)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        count = np.zeros(groups, np.int64)
        sizes(group, count)
        return Column(Type.LONG, count)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.count, self.epoch, self.eras = state["count"].copy(), state["epoch"].copy(), state["era"].copy()


def _deviations(
    plain: bool, values: Array, null: Array, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array,
    shown: int, now: Array, epoch: Array, ahead: int, reach: int, cells: Array, count: Array, out: Array,
    out_null: Array,
) -> None:  # fmt: skip
    """`StdDevAttributeAggregatorExecutor`: running mean and sum of squares; what is left of it when one value is left
    stays, as there. `out` as in `_sums`. `cells` and `count` are one memory: four words a group, of total, mean, sum of
    squares and count."""
    m: Any = 0
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for j in range(n):
        _look_ahead(j, ahead, reach, n, pos, group, values, cells, 4)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        g = np.uint64(0)
        if not plain:
            p = np.uint64(part[i]) if len(part) else np.uint64(0)
            if k > EXPIRED:
                if k == RESET:
                    now[p] += 1
                if shows:
                    o = slot[m] if len(slot) else m
                    m += 1
                    out[o] = 0.0
                    out_null[o] = True
                continue
            g = np.uint64(group[i]) if len(group) else np.uint64(0)
            if len(epoch) and epoch[g] != now[p]:
                epoch[g] = now[p]
                for w in range(3):
                    cells[(g << two) + np.uint64(w)] = 0.0
                count[(g << two) + three] = 0
        elif len(group):
            g = np.uint64(group[i])
        a = g << two
        c: Any = count[a + three]
        squares: Any = cells[a + two]
        if plain or not (len(null) and null[i]):
            v = values[i]
            sign: Any = 1 - 2 * k
            c += sign
            count[a + three] = c
            before = cells[a + one]
            t: Any = cells[a] + sign * v
            x: Any = t / c
            squares = squares + sign * ((v - before) * (v - x))
            if c == 1 and sign > 0:
                t = x = v
                squares = 0.0
            elif c == 0:
                if sign < 0:
                    t = x = squares = 0.0
                else:
                    t, x, squares = cells[a], before, cells[a + two]
            cells[a] = t
            cells[a + one] = x
            cells[a + two] = squares
        o = m
        if not plain and len(slot) > 0:
            if not shows:
                continue
            o = slot[m]
        out_null[o] = c == 0
        out[o] = squares / c if c != 0 and c != 1 else 0.0
        m += shows


_DEVIATIONS = Loops(_deviations)


class StdDev(Grouped):
    """`stdDev`: DOUBLE, of the population; 0.0 for one value, null for none."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.cells = np.zeros(0, np.float64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        self.cells = grown(self.cells, 4 * feed.groups)
        out, null = np.empty(feed.size + 1, np.float64), np.empty(feed.size + 1, np.bool_)
        self._through(
            _DEVIATIONS, feed, column.null,
            (column.values.astype(np.float64, copy=False), NO_MASK if column.null is None else column.null),
            (self.cells, self.cells.view(np.int64), out, null),
        )  # fmt: skip
        with np.errstate(invalid="ignore"):  # rounding may leave squares below nothing: then the root is NaN, as there
            np.sqrt(out, out=out)
        return shown_column(Type.DOUBLE, out, null)

    def state(self) -> dict[str, Any]:
        cells = self.cells[: len(self.cells) & ~3].reshape(-1, 4)
        count = cells.view(np.int64)[:, 3]
        return {"sums": cells[:, :3].T, "count": count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.cells = np.vstack([state["sums"], state["count"].view(np.float64)]).T.ravel()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()
