"""`and` and `or` over the rows of a group."""

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
def _truths(
    values: Array, null: Array, kind: Array, group: Array, conjunction: bool, true: Array, false: Array, epoch: Array,
    era: Array, out: Array,
) -> None:  # fmt: skip
    """`AndAttributeAggregatorExecutor` and `OrAttributeAggregatorExecutor`, nulls skipped."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            out[i] = False
            continue
        g = group[i]
        e = era[i] if len(era) > 1 else era[0]
        if epoch[g] != e:
            epoch[g] = e
            true[g] = 0
            false[g] = 0
        if not (len(null) and null[i]) and k <= EXPIRED:
            step = 1 if k == CURRENT else -1
            if values[i]:
                true[g] += step
            else:
                false[g] += step
        out[i] = true[g] > 0 and (false[g] == 0 or not conjunction)


class And(Base):
    """`and(x)`: whether all values are true, and there is one."""

    conjunction = True

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.counts = np.zeros((2, 0), np.int64)
        self.epoch = np.zeros(0, np.int64)
        self.eras = Eras()

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        (column,) = args
        self.counts, self.epoch = grown(self.counts, groups), grown(self.epoch, groups, -1)
        out = np.empty(len(group), np.bool_)
        _truths(
            column.values, NO_MASK if column.null is None else column.null, NO_KIND if kind is None else kind, group,
            self.conjunction, self.counts[0], self.counts[1], self.epoch, self.eras.rows(kind, part), out,
        )  # fmt: skip
        return Column(Type.BOOL, out)

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "epoch": self.epoch, "era": self.eras.now}

    def load(self, state: dict[str, Any]) -> None:
        self.counts, self.epoch, self.eras.now = state["counts"].copy(), state["epoch"].copy(), state["era"].copy()


class Or(And):
    """`or(x)`: whether a value is true."""

    conjunction = False
