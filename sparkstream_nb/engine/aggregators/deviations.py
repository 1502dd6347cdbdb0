"""`stdDev`: a running mean and sum of squares per group, and the values themselves if they leave one by one.

Siddhi subtracts a leaving value from its sums, and rounding errors remain: NaN or 8e-9 instead of 0
(siddhi-io/siddhi#1647). Here a bound of that error is kept beside the sums. Where it comes near them, as when the value
was far larger than those that stay, they are summed again from the kept values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import aligned_zeros, wider
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT, EXPIRED
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

BASE, TOTAL, REST, SQUARES, ERROR, COUNT, ODD, ENDS = range(8)
"""The words of a group: five doubles, then three longs. `TOTAL` and `REST` add up how far the values are from `BASE`, a
number near to them; `SQUARES` how far they are from their mean, squared, and `ERROR` bounds the rounding error of that.
`ODD` counts the values that are infinite or NaN, which take no part in the rest. `ENDS` are two ints: the cells of the
first and the last value that may leave, 0 if there are none, and `UNKNOWN` where they are not kept.
"""

SHIFT = 3
"""A group has two to the power of this many words: a cache line."""
FIRST, LAST = 2 * ENDS, 2 * ENDS + 1
"""The places of the ends among the ints of a group."""

UNKNOWN = -1

FAR_AWAY = 4096
"""Number of values searched for one that leaves. If it is not among them, the group's values are no longer kept until
the group is empty: the leaving value is nearly always the first, and otherwise, as in joins, the search takes too long.
"""

ROUNDING = 2.0**-52

TRUSTED = 2.0**30
"""Squares are shown if they are at least this many times their error: nine digits are then right."""


@inlined
def _move_group(v: Any, had: Any, sign: Any, cells: Array, a: Any) -> None:
    """Adds a value to the group whose words begin at `a` and that `had` this number of values, or subtracts it
    (`sign`): Welford's algorithm, with a compensated total. Values are far from the base by the same when they come and
    when they go.
    """
    d = v - cells[a + BASE]
    total, rest = cells[a + TOTAL], cells[a + REST]
    before = (total + rest) / had
    moved = total + sign * d
    back = moved - total
    rest += (total - (moved - back)) + (sign * d - back)
    mean = (moved + rest) / (had + sign)
    far = (d - before) * (d - mean)
    squares = cells[a + SQUARES] + sign * far
    cells[a + TOTAL] = moved
    cells[a + REST] = rest
    cells[a + SQUARES] = squares
    cells[a + ERROR] += (abs(squares) + 16 * (d * d + mean * mean)) * ROUNDING


@inlined
def _anew(values: Array, after: Array, cells: Array, ends: Array, a: Any) -> None:
    """Take the mean of a group's values as the new base, and sum them again."""
    first: Any = ends[2 * a + FIRST]
    n: Any = 0
    mean: Any = 0.0
    low: Any = np.inf
    high: Any = -np.inf
    c: Any = first
    while c != 0:
        v: Any = values[c]
        if np.isfinite(v):
            n += 1
            low = min(low, v)
            high = max(high, v)
            mean += v / n - mean / n
        c = after[c]
    mean = min(max(mean, low), high)  # it is each of them where all are equal
    squares: Any = 0.0
    total: Any = 0.0
    rest: Any = 0.0
    c = first
    while c != 0:
        if np.isfinite(values[c]):
            d: Any = values[c] - mean
            squares += d * d
            moved: Any = total + d
            back: Any = moved - total
            rest += (total - (moved - back)) + (d - back)
            total = moved
        c = after[c]
    cells[a + BASE] = mean
    cells[a + TOTAL] = total
    cells[a + REST] = rest
    cells[a + SQUARES] = max(squares - (total + rest) * ((total + rest) / n), 0.0)
    cells[a + ERROR] = 4 * squares * ROUNDING


@inlined
def _kept(v: Any, c: Any, values: Array, after: Array, ends: Array, a: Any) -> None:
    """Append a value, in cell `c`, to the values of the group."""
    last = ends[2 * a + LAST]
    if last != UNKNOWN:
        values[c] = v
        after[c] = 0
        if last == 0:
            ends[2 * a + FIRST] = c
        else:
            after[last] = c
        ends[2 * a + LAST] = c


@inlined
def _let_go(v: Any, values: Array, after: Array, ends: Array, a: Any) -> None:
    """Remove a value from the values of the group."""
    c: Any = ends[2 * a + FIRST]
    if c > 0:
        before: Any = 0
        tries: Any = 0
        while c != 0 and values[c] != v and (v == v or values[c] == values[c]):
            before = c
            c = after[c]
            tries += 1
            if tries == FAR_AWAY:
                break
        if tries == FAR_AWAY:
            ends[2 * a + FIRST] = UNKNOWN
            ends[2 * a + LAST] = UNKNOWN
        elif c != 0:
            if before == 0:
                ends[2 * a + FIRST] = after[c]
            else:
                after[before] = after[c]
            if after[c] == 0:
                ends[2 * a + LAST] = before


def _deviations(
    plain: bool, leaves: bool, given: Array, null: Array, n: int, kind: Array, pos: Array, group: Array, instance:
    Array, slot: Array, shown: int, now: Array, epoch: Array, ahead: int, reach: int, cells: Array, words: Array, ends:
    Array, used: int, values: Array, after: Array, out: Array, out_null: Array,
) -> int:  # fmt: skip
    """The mean square of how far the values of the op's group are from their mean; `out` as in `_sums`. `cells`,
    `words` and `ends` are one memory. `leaves`: values leave one by one, and are kept in cells of `values`, linked by
    `after`; `used` of them are in use, cell 0 included. Returns the number in use afterwards.
    """
    m: Any = 0
    for j in range(n):
        look_ahead(j, ahead, reach, n, pos, group, given, cells, SHIFT)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        a = np.int64(0)
        if not plain:
            p = np.uint64(instance[i]) if len(instance) else np.uint64(0)
            if k > EXPIRED:
                reset(k, p, now)
                if shows:
                    m = put_nothing(m, slot, out, out_null)
                continue
            g = np.uint64(group[i]) if len(group) else np.uint64(0)
            a = np.int64(g) << SHIFT
            anew = begins(g, p, now, epoch)
            if anew:
                for w in range(8):
                    words[a + w] = 0
        elif len(group):
            a = np.int64(group[i]) << SHIFT
        if plain or not (len(null) and null[i]):
            v = given[i]
            sign: Any = 1 - 2 * k
            if leaves and k == CURRENT:
                _kept(v, used, values, after, ends, a)
                used += 1
            elif leaves:
                _let_go(v, values, after, ends, a)
            if v - v != 0:  # infinite or NaN
                words[a + ODD] += sign
            else:
                count = words[a + COUNT] + sign
                words[a + COUNT] = count
                if count == 0:
                    for w in range(5):
                        cells[a + w] = 0.0
                elif count == 1 and k == CURRENT:
                    cells[a + BASE] = v
                else:
                    _move_group(v, count - sign, sign, cells, a)
                    if k == EXPIRED and not cells[a + SQUARES] >= TRUSTED * cells[a + ERROR] and ends[2 * a + LAST] > 0:
                        _anew(values, after, cells, ends, a)
        c: Any = words[a + COUNT] + words[a + ODD]
        o = m
        if not plain and len(slot) > 0:
            if not shows:
                continue
            o = slot[m]
        out_null[o] = c == 0
        square = max(cells[a + SQUARES], 0.0) / c if c != 0 and c != 1 else 0.0
        out[o] = np.nan if words[a + ODD] > 0 and c > 1 else square
        m += shows
    return used


_GROWING, _LEAVING = Loops(_deviations, leaves=False), Loops(_deviations, leaves=True)


@kernel
def _gather_by_group(first: Array, values: Array, after: Array, out: Array, size: Array) -> int:
    """Writes the values of each group to `out`, in their order, and how many they are to `size`; returns how many there
    are in all."""
    n = 0
    for g in range(len(first)):
        c: Any = first[g]
        while c > 0:
            out[n] = values[c]
            n += 1
            size[g] += 1
            c = after[c]
    return n


class StdDev(Grouped):
    """`stdDev`: DOUBLE, of the population; 0.0 for one value, null for none."""

    words = 1 << SHIFT

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.cells = np.zeros(0, np.float64)
        self.leaves = sliding
        self._begin()
        self.used = 1
        self.values, self.after = np.zeros(1), np.zeros(1, np.int64)
        """The cells of values that may leave, of which `used` were given away, number 0 among them."""

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        self._grow(feed.groups)
        if self.leaves and self.used + feed.n > len(self.values):
            self._keep(*self._kept(), feed.n)
        out, null = np.empty(feed.size + 1, np.float64), np.empty(feed.size + 1, np.bool_)
        self.used = self._through(
            _LEAVING if self.leaves else _GROWING, feed, column.null,
            (as_numbers(column.values, np.float64), NO_MASK if column.null is None else column.null),
            (self.cells, self.cells.view(np.int64), self.cells.view(np.int32), self.used, self.values, self.after, out,
             null),
        )  # fmt: skip
        with np.errstate(invalid="ignore"):  # one place more than there are values
            np.sqrt(out, out=out)
        return shown_column(Type.DOUBLE, out, null)

    def _grow(self, groups: int) -> None:
        """Make room for this number of groups."""
        have = len(self.cells) >> SHIFT
        if have < groups:
            cells = aligned_zeros(max(groups, wider(have), 16) << SHIFT, np.float64)
            cells[: len(self.cells)] = self.cells
            self.cells = cells

    def _kept(self) -> tuple[Array, Array]:
        """The values that may leave, group after group, and how many of each group these are: `UNKNOWN` as there."""
        first = self.cells.view(np.int32)[FIRST :: 2 << SHIFT].astype(np.int64)
        values, size = np.empty(self.used), np.minimum(first, 0)
        n = _gather_by_group(first, self.values, self.after, values, size)
        return values[:n], size

    def _keep(self, values: Array, size: Array, room: int = 0) -> None:
        """Holds just these values, as `_kept` gives them, with room for `room` more."""
        n = len(values)
        self.used = n + 1
        self.values = np.zeros(2 * n + 1 + room)
        self.values[1 : n + 1] = values
        self.after = np.arange(1, len(self.values) + 1)
        held = np.maximum(size, 0)
        last = np.cumsum(held)
        self.after[last[size > 0]] = 0
        ends = self.cells.view(np.int32).reshape(-1, 2 << SHIFT)
        ends[: len(size), FIRST] = np.where(size > 0, last - held + 1, size)
        ends[: len(size), LAST] = np.where(size > 0, last, size)

    def forget(self, groups: Array, instances: Array) -> None:
        cells = self.cells.reshape(-1, 1 << SHIFT)
        cells[groups[groups < len(cells)]] = 0

    def state(self) -> dict[str, Any]:
        cells = self.cells.reshape(-1, 1 << SHIFT)
        values, size = self._kept()
        return {
            "sums": cells[:, :COUNT].T, "counts": cells.view(np.int64)[:, COUNT:ENDS].T, "values": values,
            "size": size, "epoch": self.epoch, "era": self.eras,
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        size = state["size"]
        cells = np.zeros((len(size), 1 << SHIFT))
        cells[:, :COUNT] = state["sums"].T
        cells.view(np.int64)[:, COUNT:ENDS] = state["counts"].T
        self.cells = cells.ravel()
        self._keep(state["values"], size)
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()
