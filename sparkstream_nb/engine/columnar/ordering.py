"""`order by`, `offset` and `limit` of a select, chunk by chunk (`OrderByEventComparator`, `QuerySelector`)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...plan.nodes import Select
from ...types import Type
from ..notation.kernels import inlined, kernel
from .column_data import Array, Column, StringPool
from .rows import CURRENT, EXPIRED, Rows

_BLOCK = 16
"""Rows that are sorted by insertion."""

_FEW = 64
"""Number of a chunk's first rows that are found without sorting the chunk."""

_ALL = 2**62
_NO_KIND = np.zeros(0, np.int8)


@inlined
def _insert(keys: Array, row: int, begin: int, end: int, order: Array) -> None:
    """Puts `row` among the sorted rows `order[begin:end]`, behind its equals; `order[end]` is overwritten."""
    at = end
    moving = at > begin
    while moving:
        other = order[at - 1]
        k = 0
        while k < len(keys) - 1 and keys[k, row] == keys[k, other]:
            k += 1
        moving = keys[k, row] < keys[k, other]
        if moving:
            order[at] = other
            at -= 1
            moving = at > begin
    order[at] = row


@kernel
def _sort(keys: Array, starts: Array, most: int, order: Array, spare: Array) -> None:
    """Sorts the rows of each run by the columns of `keys`, one before the other; equal ones stay as they are. If `most`
    is less than `_FEW`, only the first `most` rows of a run are sure to be in order.
    """
    n = keys.shape[1]
    for r in range(len(starts)):
        a = starts[r]
        b = starts[r + 1] if r + 1 < len(starts) else n
        if most < _FEW and most < b - a:
            end = a
            for i in range(a, b):
                fits = end < a + most
                if not fits and most > 0:
                    last = order[end - 1]
                    k = 0
                    while k < len(keys) - 1 and keys[k, i] == keys[k, last]:
                        k += 1
                    fits = keys[k, i] < keys[k, last]
                    end -= fits
                if fits:
                    _insert(keys, i, a, end, order)
                    end += 1
            continue
        for c in range(a, b, _BLOCK):
            for i in range(c, min(c + _BLOCK, b)):
                _insert(keys, i, c, i, order)
        width = _BLOCK
        while width < b - a:
            for c in range(a, b, 2 * width):
                middle = min(c + width, b)
                end = min(c + 2 * width, b)
                for i in range(c, middle):
                    spare[i] = order[i]
                x = c
                y = middle
                at = c
                while x < middle and y < end:
                    k = 0
                    while k < len(keys) - 1 and keys[k, order[y]] == keys[k, spare[x]]:
                        k += 1
                    if keys[k, order[y]] < keys[k, spare[x]]:
                        order[at] = order[y]
                        y += 1
                    else:
                        order[at] = spare[x]
                        x += 1
                    at += 1
                while x < middle:
                    order[at] = spare[x]
                    x += 1
                    at += 1
            width *= 2


@kernel
def _stay(order: Array, starts: Array, kind: Array, offset: int, limit: int, cut: Array) -> tuple[int, int]:
    """Leaves in `order` the rows that offset and limit leave of each chunk; how many, and how many chunks are `cut`."""
    n = 0
    cuts = 0
    last = offset + limit
    for c in range(len(starts)):
        b: Any = starts[c + 1] if c + 1 < len(starts) else len(order)
        seen: Any = 0
        after_offset = 0
        begin = n
        for i in range(starts[c], b):
            k = kind[i] if len(kind) else np.int8(CURRENT)
            counts = k <= EXPIRED
            if not counts or seen >= offset:
                if k != CURRENT or seen < last:
                    order[n] = order[i]
                    n += 1
                after_offset += 1
            seen += counts
        if begin < n < begin + after_offset:
            cut[cuts] = c
            cuts += 1
    return n, cuts


def order_rows(rows: Rows, select: Select, strings: StringPool) -> tuple[Array, Array]:
    """(the rows that stay, in their order; the chunks that lost rows to `limit`, but not all). Equal chunks lie
    together.

    Rows are sorted within each run of one kind. Of a chunk, `limit` lets expired rows always stay and counts them; a
    current one stays while the count is below the limit. Resets stay and count for neither limit nor offset.
    """
    n, chunk, kind = len(rows), rows.chunk, rows.kind
    fresh = np.append(True, chunk[1:] != chunk[:-1])
    starts = np.flatnonzero(fresh)
    offset, limit = select.offset or 0, _ALL if select.limit is None else select.limit
    order = np.arange(n)
    if select.order_by:
        keys = [k for o in select.order_by for k in _keys(rows.columns[o.attr], o.descending, strings)]
        runs, most = starts, offset + limit
        if kind is not None:
            runs, most = np.flatnonzero(fresh | np.append(True, kind[1:] != kind[:-1])), _ALL
        _sort(np.array(keys, np.int64), runs, most, order, np.empty(n, np.int64))
    if select.offset is None and select.limit is None:
        return order, np.empty(0, np.int64)
    cut = np.empty(len(starts), np.int64)
    left, cuts = _stay(order, starts, _NO_KIND if kind is None else kind, offset, limit, cut)
    return order[:left], chunk[starts[cut[:cuts]]]


def _keys(column: Column, descending: bool, strings: StringPool) -> list[Array]:
    """Arrays that sort, first one first, as the column does: nulls come last either way."""
    values = column.values
    if column.type is Type.STRING:
        distinct_codes, values = _distinct(values, len(strings))
        texts = [(t or "").encode("utf-16-be", "surrogatepass") for t in strings.decode(distinct_codes)]
        values = _ranks(texts)[values]
    elif column.type is Type.OBJECT:
        values = _ranks(values.tolist())
    elif values.dtype.kind == "f":  # as Java compares: NaN is the greatest, -0.0 is less than 0.0
        bits = np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.int64)
        values = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    if descending:
        values = ~values
    return [values] if column.null is None else [column.null, np.where(column.null, 0, values)]


def _distinct(codes: Array, size: int) -> tuple[Array, Array]:
    """The different codes below `size`, and the place of each row's among them."""
    if size > 8 * len(codes):
        return np.unique(codes, return_inverse=True)
    place = np.zeros(size + 1, np.int64)  # the last place is for -1
    place[codes] = 1
    present = np.flatnonzero(place)
    place[present] = np.arange(len(present))
    out: Array = place[codes]
    return np.where(present == size, -1, present), out


def _ranks(values: Sequence[Any]) -> Array:
    """int64 that sort as the values do; equal values have one rank, None any. Objects that cannot be compared sort by
    the names of their types, then by their texts."""

    def compare(i: int, j: int) -> int:
        x, y = values[i], values[j]
        if x is None or y is None or x == y:
            return 0
        try:
            return 1 if x > y else -1
        except TypeError:
            return 1 if (type(x).__name__, str(x)) > (type(y).__name__, str(y)) else -1

    some = [i for i, v in enumerate(values) if v is not None]
    out, rank, last = np.zeros(len(values), np.int64), 0, -1
    for i in sorted(some, key=functools.cmp_to_key(compare)):
        rank += last >= 0 and compare(last, i) != 0
        out[i], last = rank, i
    return out
