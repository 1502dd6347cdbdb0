"""Folds: final aggregates of groups of events, for aggregators that start empty and output only the last value.

Event i belongs to group `group[i]`; groups are numbered 0, 1, 2 ... by first occurrence.
"""

from __future__ import annotations

import numpy as np

from ..columnar.arrays import Array
from ..notation.kernels import kernel


@kernel
def totals(values: Array, null: Array, group: Array, total: Array, count: Array) -> None:
    """Adds the values that are not null to `total`, in their order, and their number to `count`."""
    if len(null) > 0:
        for i in range(len(group)):
            if not null[i]:
                g = np.uint64(group[i])
                total[g] += values[i]
                count[g] += 1
    else:
        for i in range(len(group)):
            g = np.uint64(group[i])
            total[g] += values[i]
            count[g] += 1


@kernel
def sizes(group: Array, count: Array) -> None:
    """Adds the number of events to `count`."""
    for i in range(len(group)):
        count[np.uint64(group[i])] += 1


@kernel
def bests(values: Array, null: Array, sign: int, group: Array, best: Array, has: Array) -> None:
    """The minimum of sign * value that is not null, and whether there is one (`has`, false at first). A NaN that comes
    first stays."""
    if len(null) > 0:
        for i in range(len(group)):
            if not null[i]:
                g = np.uint64(group[i])
                v = values[i]
                if not has[g] or (best[g] > v if sign > 0 else best[g] < v):
                    best[g] = v
                has[g] = True
        return
    has[:] = True
    group_count = 0
    for i in range(len(group)):
        g = np.uint64(group[i])
        b = best[g]
        v = values[i]
        first = group[i] == group_count
        group_count += first
        better = b > v if sign > 0 else b < v
        best[g] = v if first | better else b
