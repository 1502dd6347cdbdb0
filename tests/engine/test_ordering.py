"""`order by`, `offset` and `limit` against Python's own sorting."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.columnar.ordering import order_rows
from sparkstream_nb.engine.columnar.rows import CURRENT, EXPIRED, RESET, Rows
from sparkstream_nb.plan.nodes import OrderItem, Select
from sparkstream_nb.types import Type

TYPES = (Type.STRING, Type.LONG, Type.DOUBLE)
VALUES: tuple[list[Any], ...] = (["a", "b", "", "c", None], [3, -1, 7, None], [0.5, -2.0, None, 1e9])


def _as_python(
    values: list[list[Any]], kinds: list[int], by: list[tuple[int, bool]], offset: int, limit: int
) -> list[int]:
    """The rows of one chunk that stay."""

    def compare(i: int, j: int) -> int:
        for attr, descending in by:
            x, y = values[attr][i], values[attr][j]
            if (x is None) != (y is None):
                return 1 if x is None else -1
            if x != y:
                return (1 if x > y else -1) * (-1 if descending else 1)
        return 0

    order: list[int] = []
    begin = 0
    for end in range(1, len(kinds) + 1):
        if end == len(kinds) or kinds[end] != kinds[begin]:
            order += sorted(range(begin, end), key=functools.cmp_to_key(compare))
            begin = end
    out, count = [], 0
    for i in order:
        counts = kinds[i] <= EXPIRED
        if not counts or (count >= offset and (kinds[i] != CURRENT or count < offset + limit)):
            out.append(i)
        count += counts
    return out


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("longest", [3, 40, 400])
def test_as_python_sorts(longest: int, mixed: bool) -> None:
    r = np.random.default_rng(longest + mixed)
    strings = StringPool()
    for _ in range(40):
        sizes = r.integers(1, longest, 6)
        n = int(sizes.sum())
        values = [[v[k] for k in r.integers(0, len(v), n)] for v in VALUES]
        kind = r.choice([CURRENT, EXPIRED, RESET], n, p=[0.5, 0.4, 0.1]).astype(np.int8) if mixed else None
        kinds = np.zeros(n, np.int8) if kind is None else kind
        by = [(int(a), bool(r.integers(2))) for a in r.permutation(3)[: r.integers(1, 4)]]
        offset, limit = (int(x) if r.integers(2) else None for x in r.integers(0, 6, 2))
        select = Select((), order_by=tuple(OrderItem(a, d) for a, d in by), limit=limit, offset=offset)
        columns = [Column.of(t, v, strings) for t, v in zip(TYPES, values, strict=True)]
        none = np.zeros(n, np.int64)
        order, cut = order_rows(Rows(columns, none, none, np.repeat(np.arange(6) * 3, sizes), kind), select, strings)
        expected: list[int] = []
        shorter = []
        for c, begin in enumerate(np.cumsum(sizes) - sizes):
            own = slice(begin, begin + sizes[c])
            chunk = [v[own] for v in values], kinds[own].tolist(), by
            stay = _as_python(*chunk, offset or 0, 10**9 if limit is None else limit)
            whole = _as_python(*chunk, offset or 0, 10**9)
            expected += [int(begin) + i for i in stay]
            if limit is not None and 0 < len(stay) < len(whole):
                shorter.append(3 * c)
        assert (order.tolist(), cut.tolist()) == (expected, shorter)
