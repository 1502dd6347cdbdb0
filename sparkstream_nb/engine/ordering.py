"""`order by`, `offset` and `limit` of a select, chunk by chunk (`OrderByEventComparator`, `QuerySelector`)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..plan.nodes import Select
from ..types import Type
from .columns import Array, Column, Strings
from .rows import CURRENT, EXPIRED, Rows


def ordered(rows: Rows, select: Select, strings: Strings) -> tuple[Array, Array]:
    """(the rows that stay, in their order; the chunks that lost rows to `limit`, but not all). Equal chunks lie
    together.

    Rows are sorted within each run of one kind. Of a chunk, `limit` lets expired rows always stay and counts them; a
    current one stays while the count is below the limit. Resets stay and count for neither limit nor offset.
    """
    n = len(rows)
    fresh = np.append(True, rows.chunk[1:] != rows.chunk[:-1])
    order, kind = np.arange(n), rows.kinds()
    if select.order_by:
        run = np.cumsum(fresh | np.append(True, kind[1:] != kind[:-1]))
        keys: list[Array] = []
        for o in select.order_by:
            keys += _keys(rows.columns[o.attr], o.descending, strings)
        order = np.lexsort([*reversed(keys), run])
    starts = np.flatnonzero(fresh)
    chunk = np.cumsum(fresh) - 1
    keep = np.ones(n, np.bool_)
    if select.offset is not None:
        keep = (kind > EXPIRED) | (_before(kind <= EXPIRED, starts, chunk) >= select.offset)
    cut = np.empty(0, np.int64)
    if select.limit is not None:
        first = keep & ((kind != CURRENT) | (_before(keep & (kind <= EXPIRED), starts, chunk) < select.limit))
        whole, left = (np.bincount(chunk[m], minlength=len(starts)) for m in (keep, first))
        keep, cut = first, rows.chunk[starts[(left > 0) & (left < whole)]]
    return order[keep], cut


def _before(counts: Array, starts: Array, chunk: Array) -> Array:
    """How many rows that count lie before each row in its chunk."""
    before: Array = np.cumsum(counts) - counts
    inside: Array = before - before[starts][chunk]
    return inside


def _keys(column: Column, descending: bool, strings: Strings) -> list[Array]:
    """Arrays that sort, first one first, as the column does: nulls come last either way."""
    values = column.values
    if column.type is Type.STRING:
        used, inverse = np.unique(values, return_inverse=True)
        texts = [(t or "").encode("utf-16-be", "surrogatepass") for t in strings.decode(used)]
        values = _ranks(texts)[inverse]
    elif column.type is Type.OBJECT:
        values = _ranks(values.tolist())
    elif values.dtype.kind == "f":  # as Java compares: NaN is the greatest, -0.0 is less than 0.0
        bits = np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.int64)
        values = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    if descending:
        values = ~values
    return [values] if column.null is None else [column.null, np.where(column.null, 0, values)]


def _ranks(values: Sequence[Any]) -> Array:
    """int64 that sort as the values do; equal values have one rank, None any."""

    def compare(i: int, j: int) -> int:
        x, y = values[i], values[j]
        return 0 if x is None or y is None or x == y else 1 if x > y else -1

    some = [i for i, v in enumerate(values) if v is not None]
    out, rank, last = np.zeros(len(values), np.int64), 0, -1
    for i in sorted(some, key=functools.cmp_to_key(compare)):
        rank += last >= 0 and compare(last, i) != 0
        out[i], last = rank, i
    return out
