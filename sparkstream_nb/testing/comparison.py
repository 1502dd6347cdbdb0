"""Comparisons of the rows that an app gave with expected rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Sign = Literal[" ", "-", "+"]
_MOST_CELLS = 4_000_000
"""Pairs of rows that are compared for the longest common part; beyond, rows are compared one by one."""


@dataclass(frozen=True)
class DiffRow:
    """A row of a difference: expected and there (` `), expected and missing (`-`), or unexpected (`+`).

    `expected` and `actual` are the row's numbers in the two lists, from 0, or None.
    """

    sign: Sign
    expected: int | None
    actual: int | None


def compare_rows(
    expected_count: int, actual_count: int, equal: Callable[[int, int], bool], *, any_order: bool
) -> tuple[DiffRow, ...]:
    """The rows of both lists, by their numbers: missing ones before unexpected ones at each place.

    `equal(i, j)`: whether expected row `i` equals actual row `j`.
    """
    if any_order:
        return _match_sets(expected_count, actual_count, equal)
    head = 0
    while head < min(expected_count, actual_count) and equal(head, head):
        head += 1
    tail = 0
    while tail < min(expected_count, actual_count) - head and equal(expected_count - 1 - tail, actual_count - 1 - tail):
        tail += 1
    out = [DiffRow(" ", i, i) for i in range(head)]
    middle = (expected_count - head - tail, actual_count - head - tail)
    if middle[0] * middle[1] <= _MOST_CELLS:
        pairs = _common_part(*middle, lambda i, j: equal(head + i, head + j))
    else:
        pairs = []
    i = j = 0
    for a, b in [*pairs, middle]:
        out += [DiffRow("-", head + k, None) for k in range(i, a)]
        out += [DiffRow("+", None, head + k) for k in range(j, b)]
        if (a, b) != middle:
            out.append(DiffRow(" ", head + a, head + b))
        i, j = a + 1, b + 1
    out += [DiffRow(" ", expected_count - tail + k, actual_count - tail + k) for k in range(tail)]
    return tuple(out)


def _match_sets(expected_count: int, actual_count: int, equal: Callable[[int, int], bool]) -> tuple[DiffRow, ...]:
    """Each expected row with the first equal one that is left."""
    left = list(range(actual_count))
    out: list[DiffRow] = []
    for i in range(expected_count):
        match = next((j for j in left if equal(i, j)), None)
        if match is None:
            out.append(DiffRow("-", i, None))
        else:
            left.remove(match)
            out.append(DiffRow(" ", i, match))
    return (*out, *(DiffRow("+", None, j) for j in left))


def _common_part(n: int, m: int, equal: Callable[[int, int], bool]) -> list[tuple[int, int]]:
    """The longest common subsequence of two lists, as pairs of numbers."""
    same = [[equal(i, j) for j in range(m)] for i in range(n)]
    length = [[0] * (m + 1) for _ in range(n + 1)]
    for i in reversed(range(n)):
        for j in reversed(range(m)):
            both = length[i + 1][j + 1] + 1 if same[i][j] else 0
            length[i][j] = max(both, length[i + 1][j], length[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < n and j < m:
        if same[i][j] and length[i][j] == length[i + 1][j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif length[i + 1][j] >= length[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def has_differences(rows: Sequence[DiffRow]) -> bool:
    """True if any row is missing or unexpected."""
    return any(row.sign != " " for row in rows)


def count_signs(rows: Sequence[DiffRow]) -> str:
    """`1 row missing, 2 unexpected`."""
    missing, more = (sum(r.sign == sign for r in rows) for sign in "-+")
    phrases: list[str] = []
    if missing:
        phrases.append(f"{missing} {'row' if missing == 1 else 'rows'} missing")
    if more:
        phrases.append(f"{more} {'unexpected' if missing else 'unexpected row' if more == 1 else 'unexpected rows'}")
    return ", ".join(phrases)
