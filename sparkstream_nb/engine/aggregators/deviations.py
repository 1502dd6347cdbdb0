"""`stdDev`: a signed running mean and sum of squares per group."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column
from ..rows import EXPIRED
from .base import (
    NO_MASK,
    Feed,
    Grouped,
    Loops,
    as_numbers,
    begins,
    look_ahead,
    put_nothing,
    reset,
    shown_column,
)  # fmt: skip


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
        look_ahead(j, ahead, reach, n, pos, group, values, cells, 2)
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        shows = (shown >> k) & 1
        g = np.uint64(0)
        if not plain:
            p = np.uint64(part[i]) if len(part) else np.uint64(0)
            if k > EXPIRED:
                reset(k, p, now)
                if shows:
                    m = put_nothing(m, slot, out, out_null)
                continue
            g = np.uint64(group[i]) if len(group) else np.uint64(0)
            anew = begins(g, p, now, epoch)
            if anew:
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
            (as_numbers(column.values, np.float64), NO_MASK if column.null is None else column.null),
            (self.cells, self.cells.view(np.int64), out, null),
        )  # fmt: skip
        with np.errstate(invalid="ignore"):  # rounding may leave squares below nothing: then the root is NaN, as there
            np.sqrt(out, out=out)
        return shown_column(Type.DOUBLE, out, null)

    def forget(self, groups: Array, parts: Array) -> None:
        cells = self.cells.reshape(-1, 4)
        cells[groups[groups < len(cells)]] = 0

    def state(self) -> dict[str, Any]:
        cells = self.cells.reshape(-1, 4)
        count = cells.view(np.int64)[:, 3]
        return {"sums": cells[:, :3].T, "count": count, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.cells = np.vstack([state["sums"], state["count"].view(np.float64)]).T.ravel()
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()
