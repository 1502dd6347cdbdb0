"""`and` and `or` over the rows of a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.rows import CURRENT
from ..notation.kernels import inlined, struct
from ..state.declared import per_group
from .aggregator_base import Grouped, Ops, Outputs


@struct
class AllTrue(Grouped):
    """`and(x)`: whether all values are true, and there is at least one (`AndAttributeAggregatorExecutor`); nulls are
    skipped. `counts`: how many are true and how many are false."""

    conjunction = True
    constants = ("conjunction",)
    type, dtype = Type.BOOL, np.bool_
    counts = per_group(rows=2)

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


class AnyTrue(AllTrue):
    """`or(x)`: whether at least one value is true (`OrAttributeAggregatorExecutor`)."""

    conjunction = False
