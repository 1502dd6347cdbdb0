"""`and` and `or` over the rows of a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT, EXPIRED, RESET
from ..notation.kernels import kernel
from .aggregator_base import NO_MASK, AggregateInput, Grouped


@kernel
def _truths(
    values: Array, null: Array, conjunction: bool, n: int, kind: Array, pos: Array, group: Array, instance: Array, slot:
    Array, shown: int, now: Array, epoch: Array, ahead: int, reach: int, true: Array, false: Array, out: Array,
) -> None:  # fmt: skip
    """`AndAttributeAggregatorExecutor` and `OrAttributeAggregatorExecutor`, nulls skipped."""
    m = 0
    for j in range(n):
        i = pos[j] if len(pos) else j
        k = kind[j] if len(kind) else CURRENT
        p = instance[i] if len(instance) else 0
        if k == RESET:
            now[p] += 1
            if (shown >> k) & 1:
                out[slot[m] if len(slot) else m] = False
                m += 1
            continue
        g = group[i] if len(group) else 0
        if len(epoch) and epoch[g] != now[p]:
            epoch[g] = now[p]
            true[g] = 0
            false[g] = 0
        if not (len(null) and null[i]) and k <= EXPIRED:
            step = 1 if k == CURRENT else -1
            if values[i]:
                true[g] += step
            else:
                false[g] += step
        if (shown >> k) & 1:
            out[slot[m] if len(slot) else m] = true[g] > 0 and (false[g] == 0 or not conjunction)
            m += 1


class AllTrue(Grouped):
    """`and(x)`: whether all values are true, and there is at least one."""

    conjunction = True

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.counts = np.zeros((2, 0), np.int64)
        self._begin()

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        self.counts = grown(self.counts, feed.groups)
        out = np.empty(feed.size, np.bool_)
        _truths(
            column.values, NO_MASK if column.null is None else column.null, self.conjunction, *self._ops(feed),
            self.counts[0], self.counts[1], out,
        )  # fmt: skip
        return Column(Type.BOOL, out)

    def forget(self, groups: Array, instances: Array) -> None:
        fill_at(self.counts, groups, 0)

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.counts, self.epoch, self.eras = state["counts"].copy(), state["epoch"].copy(), state["era"].copy()


class AnyTrue(AllTrue):
    """`or(x)`: whether at least one value is true."""

    conjunction = False
