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
from ..notation.kernels import inlined, kernel, struct
from ..state.saving import Form
from .aggregator_base import AggregateInput, Grouped, Ops, Outputs

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


@struct
class StdDev(Grouped):
    """`stdDev`: DOUBLE, of the population; 0.0 for one value, null for none."""

    words = 1 << SHIFT
    constants = ("leaves",)
    has_all_versions = True
    type, dtype = Type.DOUBLE, np.float64

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.cells = np.zeros(0, np.float64)
        self.leaves = sliding
        self._begin()
        self.values_end = np.ones(1, np.int64)
        self.values, self.after = np.zeros(1), np.zeros(1, np.int64)
        """The cells of values that may leave, linked by `after`, of which `values_end[0]` were given away, number 0
        among them."""

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        self._grow(feed.groups)
        if self.leaves and int(self.values_end[0]) + feed.n > len(self.values):
            self._keep(*self._kept(), feed.n)
        squares = super().over(args, feed)
        np.sqrt(squares.values, out=squares.values)
        return squares

    @property
    def words_of(self) -> Array:
        """The cells as longs."""
        return self.cells.view(np.int64)

    @property
    def ends(self) -> Array:
        """The cells as ints."""
        return self.cells.view(np.int32)

    @inlined
    def look_ahead(self, j: int, values: Array, ops: Ops) -> None:
        ops.look_ahead(j, values, self.cells, SHIFT)

    @inlined
    def clear(self, g: Any) -> None:
        a = np.int64(g) << SHIFT
        for w in range(8):
            self.words_of[a + w] = 0

    @inlined
    def take(self, g: Any, value: Any, kind: Any) -> None:
        a = np.int64(g) << SHIFT
        sign: Any = 1 - 2 * kind
        if self.leaves and kind == CURRENT:
            self._append(value, a)
        elif self.leaves:
            self._remove(value, a)
        if value - value != 0:  # infinite or NaN
            self.words_of[a + ODD] += sign
        else:
            count = self.words_of[a + COUNT] + sign
            self.words_of[a + COUNT] = count
            if count == 0:
                for w in range(5):
                    self.cells[a + w] = 0.0
            elif count == 1 and kind == CURRENT:
                self.cells[a + BASE] = value
            else:
                self._move(value, count - sign, sign, a)
                doubtful = not self.cells[a + SQUARES] >= TRUSTED * self.cells[a + ERROR]
                if kind == EXPIRED and doubtful and self.ends[2 * a + LAST] > 0:
                    self._sum_again(a)

    @inlined
    def show(self, g: Any, o: Any, outputs: Outputs) -> None:
        """The mean square of how far the values are from their mean."""
        a = np.int64(g) << SHIFT
        c: Any = self.words_of[a + COUNT] + self.words_of[a + ODD]
        outputs.null[o] = c == 0
        outputs.holes[0] |= c == 0
        square = max(self.cells[a + SQUARES], 0.0) / c if c != 0 and c != 1 else 0.0
        outputs.values[o] = np.nan if self.words_of[a + ODD] > 0 and c > 1 else square

    @inlined
    def _move(self, v: Any, had: Any, sign: Any, a: Any) -> None:
        """Adds a value to the group whose words begin at `a` and that `had` this number of values, or subtracts it
        (`sign`): Welford's algorithm, with a compensated total. Values are far from the base by the same when they come
        and when they go.
        """
        d = v - self.cells[a + BASE]
        total, rest = self.cells[a + TOTAL], self.cells[a + REST]
        before = (total + rest) / had
        new_total = total + sign * d
        back = new_total - total
        rest += (total - (new_total - back)) + (sign * d - back)
        mean = (new_total + rest) / (had + sign)
        far = (d - before) * (d - mean)
        squares = self.cells[a + SQUARES] + sign * far
        self.cells[a + TOTAL] = new_total
        self.cells[a + REST] = rest
        self.cells[a + SQUARES] = squares
        self.cells[a + ERROR] += (abs(squares) + 16 * (d * d + mean * mean)) * ROUNDING

    @inlined
    def _sum_again(self, a: Any) -> None:
        """Take the mean of a group's values as the new base, and sum them again."""
        first: Any = self.ends[2 * a + FIRST]
        n: Any = 0
        mean: Any = 0.0
        low: Any = np.inf
        high: Any = -np.inf
        c: Any = first
        while c != 0:
            v: Any = self.values[c]
            if np.isfinite(v):
                n += 1
                low = min(low, v)
                high = max(high, v)
                mean += v / n - mean / n
            c = self.after[c]
        mean = min(max(mean, low), high)  # it is each of them where all are equal
        squares: Any = 0.0
        total: Any = 0.0
        rest: Any = 0.0
        c = first
        while c != 0:
            if np.isfinite(self.values[c]):
                d: Any = self.values[c] - mean
                squares += d * d
                new_total: Any = total + d
                back: Any = new_total - total
                rest += (total - (new_total - back)) + (d - back)
                total = new_total
            c = self.after[c]
        self.cells[a + BASE] = mean
        self.cells[a + TOTAL] = total
        self.cells[a + REST] = rest
        self.cells[a + SQUARES] = max(squares - (total + rest) * ((total + rest) / n), 0.0)
        self.cells[a + ERROR] = 4 * squares * ROUNDING

    @inlined
    def _append(self, v: Any, a: Any) -> None:
        """Append a value to the values of the group."""
        last = self.ends[2 * a + LAST]
        if last != UNKNOWN:
            c = self.values_end[0]
            self.values_end[0] = c + 1
            self.values[c] = v
            self.after[c] = 0
            if last == 0:
                self.ends[2 * a + FIRST] = c
            else:
                self.after[last] = c
            self.ends[2 * a + LAST] = c

    @inlined
    def _remove(self, v: Any, a: Any) -> None:
        """Remove a value from the values of the group."""
        c: Any = self.ends[2 * a + FIRST]
        if c > 0:
            before: Any = 0
            tries: Any = 0
            while c != 0 and self.values[c] != v and (v == v or self.values[c] == self.values[c]):
                before = c
                c = self.after[c]
                tries += 1
                if tries == FAR_AWAY:
                    break
            if tries == FAR_AWAY:
                self.ends[2 * a + FIRST] = UNKNOWN
                self.ends[2 * a + LAST] = UNKNOWN
            elif c != 0:
                if before == 0:
                    self.ends[2 * a + FIRST] = self.after[c]
                else:
                    self.after[before] = self.after[c]
                if self.after[c] == 0:
                    self.ends[2 * a + LAST] = before

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
        values, size = np.empty(int(self.values_end[0])), np.minimum(first, 0)
        n = _gather_by_group(first, self.values, self.after, values, size)
        return values[:n], size

    def _keep(self, values: Array, size: Array, room: int = 0) -> None:
        """Holds just these values, as `_kept` gives them, with room for `room` more."""
        n = len(values)
        self.values_end[0] = n + 1
        self.values = np.zeros(2 * n + 1 + room)
        self.values[1 : n + 1] = values
        self.after = np.arange(1, len(self.values) + 1)
        lengths = np.maximum(size, 0)
        last = np.cumsum(lengths)
        self.after[last[size > 0]] = 0
        ends = self.cells.view(np.int32).reshape(-1, 2 << SHIFT)
        ends[: len(size), FIRST] = np.where(size > 0, last - lengths + 1, size)
        ends[: len(size), LAST] = np.where(size > 0, last, size)

    def forget(self, groups: Array, instances: Array) -> None:
        cells = self.cells.reshape(-1, 1 << SHIFT)
        cells[groups[groups < len(cells)]] = 0

    def _state(self, form: Form) -> dict[str, Any]:
        cells = self.cells.reshape(-1, 1 << SHIFT)
        values, size = self._kept()
        return {
            "sums": cells[:, :COUNT].T, "counts": cells.view(np.int64)[:, COUNT:ENDS].T, "values": values,
            "size": size, **super()._state(form),
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        size = state["size"]
        cells = np.zeros((len(size), 1 << SHIFT))
        cells[:, :COUNT] = state["sums"].T
        cells.view(np.int64)[:, COUNT:ENDS] = state["counts"].T
        self.cells = cells.ravel()
        self._keep(state["values"], size)
        super().load(state)
