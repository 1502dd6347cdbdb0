"""`sum`, `avg`, `count`, `stdDev`: signed running values per group.

State is one array per quantity, by group id; a RESET is an epoch: a group whose epoch is older than the last reset
starts
from nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column
from ..jit import kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import NO_KIND, NO_MASK, Base, Eras


@kernel
def _sums(
    values: Array, null: Array, kind: Array, group: Array, total: Array, count: Array, epoch: Array, era: Array,
    out: Array, out_count: Array,
) -> None:  # fmt: skip
    """Running sum and count of non-null values."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            out_count[i] = 0
            continue
        g = group[i]
        e = era[i] if len(era) > 1 else era[0]
        if epoch[g] != e:
            epoch[g] = e
            total[g] = 0
            count[g] = 0
        if not (len(null) and null[i]):
            if k == CURRENT:
                total[g] += values[i]
                count[g] += 1
            elif k == EXPIRED:
                total[g] -= values[i]
                count[g] -= 1
        out[i] = total[g]
        out_count[i] = count[g]


@kernel
def long_minus(a: int, b: int) -> int:
    """a - b as Siddhi takes it away from a long sum: through a double, and back with Java's saturation."""
    d = float(a) - float(b)
    if d >= 9223372036854775807.0:
        return int(np.int64(9223372036854775807))
    if d <= -9223372036854775808.0:
        return int(np.int64(-9223372036854775808))
    return int(np.int64(d))


@kernel
def _long_sums(
    values: Array, null: Array, kind: Array, group: Array, total: Array, count: Array, epoch: Array, era: Array,
    out: Array, out_count: Array,
) -> None:  # fmt: skip
    """As `_sums` for longs (`SumAttributeAggregatorExecutor.AggregatorStateLong`, whose `processRemove` takes a
    double)."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            out_count[i] = 0
            continue
        g = group[i]
        e = era[i] if len(era) > 1 else era[0]
        if epoch[g] != e:
            epoch[g] = e
            total[g] = 0
            count[g] = 0
        if not (len(null) and null[i]):
            if k == CURRENT:
                total[g] += values[i]
                count[g] += 1
            elif k == EXPIRED:
                total[g] = long_minus(total[g], values[i])
                count[g] -= 1
        out[i] = total[g]
        out_count[i] = count[g]


@kernel
def _counts(kind: Array, group: Array, count: Array, epoch: Array, era: Array, out: Array) -> None:
    """Running number of rows, nulls too."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            out[i] = 0
            continue
        g = group[i]
        e = era[i] if len(era) > 1 else era[0]
        if epoch[g] != e:
            epoch[g] = e
            count[g] = 0
        if k == CURRENT:
            count[g] += 1
        elif k == EXPIRED:
            count[g] -= 1
        out[i] = count[g]


class Sum(Base):
    """`sum`: LONG for int and long, DOUBLE for float and double; null when nothing is left."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.long = args[0] in (Type.INT, Type.LONG)
        self.dtype = np.int64 if self.long else np.float64
        self.total = np.zeros(0, self.dtype)
        self.count = np.zeros(0, np.int64)
        self.epoch = np.zeros(0, np.int64)
        self.eras = Eras()

    def _run(
        self, column: Column, kind: Array | None, group: Array, groups: int, part: Array | None
    ) -> tuple[Array, Array]:
        self.total = grown(self.total, groups)
        self.count = grown(self.count, groups)
        self.epoch = grown(self.epoch, groups, -1)
        n = len(group)
        out, left = np.empty(n, self.dtype), np.empty(n, np.int64)
        (_long_sums if self.long else _sums)(
            column.values.astype(self.dtype, copy=False), NO_MASK if column.null is None else column.null,
            NO_KIND if kind is None else kind, group, self.total, self.count, self.epoch, self.eras.rows(kind, part),
            out, left,
        )  # fmt: skip
        return out, left

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        (column,) = args
        out, left = self._run(column, kind, group, groups, part)
        type = Type.LONG if self.long else Type.DOUBLE
        if kind is None and column.null is None:
            return Column(type, out)
        null = left == 0
        if kind is not None:  # a value that is added shows its sum, even where that leaves a count of nothing
            null &= (kind != CURRENT) | column.nulls()
        return Column(type, out, null if null.any() else None)

    def state(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count, "epoch": self.epoch, "era": self.eras.now}

    def load(self, state: dict[str, Any]) -> None:
        self.total, self.count, self.epoch = state["total"].copy(), state["count"].copy(), state["epoch"].copy()
        self.eras.now = state["era"].copy()


class Avg(Sum):
    """`avg`: DOUBLE, the running sum over the running count. Siddhi adds up doubles, also for int and long."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        super().__init__((Type.DOUBLE,), sliding)

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        (column,) = args
        out, left = self._run(column, kind, group, groups, part)
        if kind is None and column.null is None:
            out /= left
            return Column(Type.DOUBLE, out)
        null = left == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            out /= left
        if not null.any():
            return Column(Type.DOUBLE, out)
        out[null] = 0.0
        return Column(Type.DOUBLE, out, null)


class Count(Base):
    """`count()`: LONG, every row counts."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.count = np.zeros(0, np.int64)
        self.epoch = np.zeros(0, np.int64)
        self.eras = Eras()

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        self.count = grown(self.count, groups)
        self.epoch = grown(self.epoch, groups, -1)
        out = np.empty(len(group), np.int64)
        kinds = NO_KIND if kind is None else kind
        _counts(kinds, group, self.count, self.epoch, self.eras.rows(kind, part), out)
        return Column(Type.LONG, out)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "epoch": self.epoch, "era": self.eras.now}

    def load(self, state: dict[str, Any]) -> None:
        self.count, self.epoch, self.eras.now = state["count"].copy(), state["epoch"].copy(), state["era"].copy()


@kernel
def _deviations(
    values: Array, null: Array, kind: Array, group: Array, total: Array, mean: Array, square: Array, count: Array,
    epoch: Array, era: Array, out: Array, out_null: Array,
) -> None:  # fmt: skip
    """`StdDevAttributeAggregatorExecutor`: running mean and sum of squares; what is left of it when one value is left
    stays, as there."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            out_null[i] = True
            continue
        g = group[i]
        e = era[i] if len(era) > 1 else era[0]
        if epoch[g] != e:
            epoch[g] = e
            total[g] = 0.0
            mean[g] = 0.0
            square[g] = 0.0
            count[g] = 0
        if not (len(null) and null[i]) and k <= EXPIRED:
            v = values[i]
            before = mean[g]
            if k == CURRENT:
                count[g] += 1
                if count[g] == 1:
                    total[g] = v
                    mean[g] = v
                    square[g] = 0.0
                elif count[g] != 0:
                    total[g] += v
                    mean[g] = total[g] / count[g]
                    square[g] += (v - before) * (v - mean[g])
            else:
                count[g] -= 1
                if count[g] == 0:
                    total[g] = 0.0
                    mean[g] = 0.0
                    square[g] = 0.0
                else:
                    total[g] -= v
                    mean[g] = total[g] / count[g]
                    square[g] -= (v - before) * (v - mean[g])
        out_null[i] = count[g] == 0
        if count[g] == 0 or count[g] == 1:
            out[i] = 0.0
        else:
            out[i] = np.sqrt(square[g] / count[g])


class StdDev(Base):
    """`stdDev`: DOUBLE, of the population; 0.0 for one value, null for none."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.sums = np.zeros((3, 0), np.float64)
        self.count = np.zeros(0, np.int64)
        self.epoch = np.zeros(0, np.int64)
        self.eras = Eras()

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        (column,) = args
        self.sums, self.count = grown(self.sums, groups), grown(self.count, groups)
        self.epoch = grown(self.epoch, groups, -1)
        n = len(group)
        out, null = np.zeros(n, np.float64), np.empty(n, np.bool_)
        _deviations(
            column.values.astype(np.float64, copy=False), NO_MASK if column.null is None else column.null,
            NO_KIND if kind is None else kind, group, self.sums[0], self.sums[1], self.sums[2], self.count, self.epoch,
            self.eras.rows(kind, part), out, null,
        )  # fmt: skip
        return Column(Type.DOUBLE, out, null if null.any() else None)

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "count": self.count, "epoch": self.epoch, "era": self.eras.now}

    def load(self, state: dict[str, Any]) -> None:
        self.sums, self.count, self.epoch = state["sums"].copy(), state["count"].copy(), state["epoch"].copy()
        self.eras.now = state["era"].copy()
