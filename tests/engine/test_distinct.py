"""`distinctCount` against sets of Python's, through growth, expiry, RESET and snapshots."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sparkstream_nb.engine.aggregators.distinct import DistinctCount
from sparkstream_nb.engine.columnar.column_data import Column
from sparkstream_nb.engine.columnar.rows import CURRENT, EXPIRED, RESET
from sparkstream_nb.types import Type


@pytest.mark.parametrize(
    ("window", "values", "resets"), [(5, 3, 0.0), (300, 50, 0.001), (4000, 10**6, 0.0), (60, 7, 0.1)]
)
def test_as_counters_count(window: int, values: int, resets: float) -> None:
    r = np.random.default_rng(window)
    n, groups = 6000, 9
    group, value = r.integers(0, groups, n), r.integers(-values, values, n)
    ops: list[tuple[int, int]] = []
    held: list[int] = []
    for i in range(n):
        if r.random() < resets:
            ops.append((RESET, i))
            held.clear()
        if len(held) == window:
            ops.append((EXPIRED, held.pop(0)))
        ops.append((CURRENT, i))
        held.append(i)
    counts = [Counter[int]() for _ in range(groups)]
    expected = []
    for kind, i in ops:
        own, v = counts[group[i]], int(value[i])
        if kind == RESET:
            counts = [Counter[int]() for _ in range(groups)]
            expected.append(0)
            continue
        own[v] += 1 if kind == CURRENT else -1
        if own[v] == 0:
            del own[v]
        expected.append(len(own))
    kinds, at = np.array([k for k, _ in ops], np.int8), np.array([i for _, i in ops])
    got: list[int] = []
    aggregator = DistinctCount((Type.LONG,), True)
    for a in range(0, len(ops), 1700):
        own_ops = at[a : a + 1700]
        column = Column(Type.LONG, value[own_ops])
        out = aggregator.run((column,), kinds[a : a + 1700], group[own_ops].astype(np.int32), groups)
        got += out.values.tolist()
        again = DistinctCount((Type.LONG,), True)
        again.load(aggregator.state())
        for name, part in aggregator.state().items():
            assert np.array_equal(part, again.state()[name])
        aggregator = again
    assert got == expected
