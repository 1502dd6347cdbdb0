"""`and` and `or` over the rows of a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT
from ..notation.kernels import inlined, struct
from .aggregator_base import AggregateInput, Grouped, Ops, Outputs


@struct
class AllTrue(Grouped):
    """`and(x)`: whether all values are true, and there is at least one (`AndAttributeAggregatorExecutor`); nulls are
    skipped. `counts`: how many are true and how many are false."""

    conjunction = True
    constants = ("conjunction",)

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.counts = np.zeros((2, 0), np.int64)
        self._begin()

    @inlined
    def clear(self, g: Any) -> None:
        self.counts[0, g] = 0
        self.counts[1, g] = 0

    @inlined
    def take(self, g: Any, value: Any, kind: Any) -> None:
        self.counts[1 - np.int64(value), g] += 1 if kind == CURRENT else -1

    @inlined
    def show(self, g: Any, o: Any, outputs: Outputs) -> None:
        outputs.values[o] = self.counts[0, g] > 0 and (self.counts[1, g] == 0 or not self.conjunction)
        outputs.null[o] = False

    @inlined
    def show_reset(self, ops: Ops, outputs: Outputs) -> None:
        outputs.put_null(ops)
        outputs.null[ops.slot[outputs.count - 1] if len(ops.slot) else outputs.count - 1] = False

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        self.counts = grown(self.counts, feed.groups)
        outputs = Outputs(feed.size, np.bool_)
        self._run_loop(args[0], args[0].values, feed, outputs)
        return outputs.column(Type.BOOL)

    def forget(self, groups: Array, instances: Array) -> None:
        fill_at(self.counts, groups, 0)

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self.counts, self.epoch, self.eras = state["counts"].copy(), state["epoch"].copy(), state["era"].copy()


class AnyTrue(AllTrue):
    """`or(x)`: whether at least one value is true (`OrAttributeAggregatorExecutor`)."""

    conjunction = False
