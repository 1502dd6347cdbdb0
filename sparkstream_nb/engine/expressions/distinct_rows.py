"""Finds distinct rows of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.column_data import Array, Column, StringPool
from ..notation.kernels import kernel
from .java_arithmetic import is_constant_column

SMALL = 16
"""Batches up to this size are not searched for equal rows."""


def distinct(
    columns: Sequence[Column], strings: StringPool, n: int, *, if_cheap: bool = False
) -> tuple[Array, Array | None]:  # fmt: skip
    """One row of each distinct combination, and for each row the number of its combination. None: all rows are distinct
    or, with `if_cheap`, finding the combinations needs more than a direct lookup table."""
    varying = [c for c in columns if not is_constant_column(c)]
    if n <= 1 or (n <= SMALL and varying) or any(c.type is Type.OBJECT for c in varying):
        return np.arange(n), None
    if if_cheap and any(c.many or _sparse(c) for c in varying):
        return np.arange(n), None
    if not varying:
        return np.zeros(1, np.int64), np.zeros(n, np.int64)
    if len(varying) == 1 and varying[0].type is Type.STRING:
        return number_codes(varying[0].values, 1, np.full(len(strings) + 1, -1, np.int32))
    keys, size = _codes(varying[0], strings)
    for column in varying[1:]:
        more, width = _codes(column, strings)
        if size * width > _dense(n):
            keys, size = _compact(keys, size)
            more, width = _compact(more, width)
        keys = keys * width + more
        size *= width
    if size > _dense(n):
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return first, inverse
    first, inverse = number_codes(keys, 0, np.full(size, -1, np.int32))
    return (first, inverse) if len(first) < n else (np.arange(n), None)


def _sparse(column: Column) -> bool:
    """True if numbers are too far apart for a table of all between them."""
    if column.type not in (Type.INT, Type.LONG):
        return column.type in (Type.FLOAT, Type.DOUBLE)
    return int(column.values.max()) - int(column.values.min()) >= _dense(len(column))


@kernel
def _number(codes: Array, shift: int, number: Array, first_number: int, first: Array, out: Array) -> int:
    """The numbers of codes + shift, new ones in the order in which they come, from `first_number` on; `first`
    receives the row of each new one, of which there are as many as this returns."""
    new = 0
    for i in range(len(codes)):
        c = np.uint64(codes[i] + shift)
        k: Any = np.int64(number[c])
        if k < 0:
            k = first_number + new
            number[c] = k
            first[new] = i
            new += 1
        out[i] = k
    return new


def number_codes(codes: Array, shift: int, number: Array, first_number: int = 0) -> tuple[Array, Array]:
    """(the first row of each code that has no number, each row's number). `number` holds the numbers of codes + shift,
    -1 for codes without one; `first_number` is the first that is given. Missing numbers are added.
    """
    first, out = np.empty(min(len(number), len(codes)), np.int64), np.empty(len(codes), np.int64)
    return first[: _number(codes, shift, number, first_number, first, out)], out


def _dense(n: int) -> int:
    """Up to which number of codes a table of all of them is the cheapest way to look at `n` rows."""
    return 4 * n + 1024


def _compact(keys: Array, size: int) -> tuple[Array, int]:
    """Codes renumbered so that each occurs: at most as many as there are rows."""
    if size > _dense(len(keys)):
        present, inverse = np.unique(keys, return_inverse=True)
        return inverse, len(present)
    at = np.zeros(size, np.int64)
    at[keys] = 1
    total = np.cumsum(at)
    return total[keys] - 1, int(total[-1])


def _codes(column: Column, strings: StringPool) -> tuple[Array, int]:
    """int64 codes 0 ≤ c < size that distinguish the values of a column, null among them."""
    values = column.values
    if column.type is Type.STRING:
        return values.astype(np.int64) + 1, len(strings) + 1
    if column.type is Type.BOOL:
        codes = values.astype(np.int64)
        return (codes, 2) if column.null is None else (codes + 2 * column.null, 3)
    if values.dtype.kind == "f":
        values = np.ascontiguousarray(values).view(np.int64 if values.dtype.itemsize == 8 else np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low < _dense(len(values)):
        codes, size = values.astype(np.int64) - low, high - low + 1
    else:
        _, codes = np.unique(values, return_inverse=True)
        size = len(values)
    if column.null is not None:
        codes = np.where(column.null, size, codes)
        size += 1
    return codes, size
