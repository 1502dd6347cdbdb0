"""Partials: rows of one duration, at most one per bucket and group, and how such rows are merged.

One merge is used everywhere: events into the smallest bucket, a smaller duration into the next, a batch into the kept
buckets. It is associative, so the split of events into batches does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...plan.nodes import BaseColumn
from ...types import Type
from ..columnar.column_data import DTYPES, Array, Column, concat
from ..notation.kernels import inlined, kernel


@dataclass(slots=True)
class PartialRows:
    """`bucket` int64[n] (start, ms), `group` int32[n] (ids of `key_ids.Keys`), one column of n rows per base column.

    `last` int64[n] is the time of the event whose plain attributes are kept; None if the aggregation keeps none.
    """

    bucket: Array
    group: Array
    columns: list[Column]
    last: Array | None = None

    def __len__(self) -> int:
        return len(self.bucket)

    def take(self, index: Array) -> PartialRows:
        return PartialRows(
            self.bucket[index],
            self.group[index],
            [c.take(index) for c in self.columns],
            None if self.last is None else self.last[index],
        )


def part_bytes(part: PartialRows) -> int:
    """Bytes of the arrays of `part`."""
    size = int(part.bucket.nbytes + part.group.nbytes + (0 if part.last is None else part.last.nbytes))
    return size + sum(int(c.values.nbytes + (0 if c.null is None else c.null.nbytes)) for c in part.columns)


def empty_part(base: Sequence[BaseColumn], lasts: bool) -> PartialRows:
    """No rows."""
    none = np.empty(0, np.int64)
    return PartialRows(none, none.astype(np.int32), [Column.empty(b.type) for b in base], none if lasts else None)


def join_parts(parts: Sequence[PartialRows]) -> PartialRows:
    """The concatenated rows of `parts` (at least one), not merged."""
    if len(parts) == 1:
        return parts[0]
    return PartialRows(
        np.concatenate([p.bucket for p in parts]),
        np.concatenate([p.group for p in parts]),
        [concat(cs) for cs in zip(*(p.columns for p in parts), strict=True)],
        np.concatenate([p.last for p in parts if p.last is not None]) if parts[0].last is not None else None,
    )


@inlined
def _slot(b: Any, g: Any, bucket: Array, group: Array, first: Array, table: Array) -> Any:
    """Index of the table entry that has the id of a pair, or of a free entry."""
    mask = np.uint64(len(table) - 1)
    h = np.uint64(b) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(g) * np.uint64(0xC2B2AE3D27D4EB4F)
    j = (h ^ (h >> np.uint64(29))) & mask
    while table[j] >= 0:
        f = first[table[j]]
        if bucket[f] == b and group[f] == g:
            break
        j = (j + np.uint64(1)) & mask
    return j


@kernel
def _assign(bucket: Array, group: Array, out: Array) -> Array:
    """Ids of (bucket, group) pairs in the order of their first rows, into `out`; returns those first rows.

    `near` holds the ids of the groups that were seen since the bucket last changed (`since` marks them). As long as
    buckets do not decrease, as is usual, these suffice. After that, pairs are looked up in an open-addressing table of
    ids, and compared through the first row of an id. It starts small to stay in the cache.
    """
    n = len(bucket)
    groups = 0
    for i in range(n):
        groups = max(groups, group[i] + 1)
    if groups > 4 * n + 1024:  # dear to clear, for few rows
        groups = 0
    near = np.empty(groups, np.int32)
    since = np.full(groups, -1, np.int32)
    first = np.empty(n, np.int64)
    count: Any = 0
    run_start = 0
    begin = 0
    if groups:
        while begin < n and bucket[begin] >= bucket[max(begin - 1, 0)]:
            i = begin
            run_start = i if bucket[i] != bucket[max(i - 1, 0)] else run_start
            g = np.uint64(group[i])
            new = since[g] != run_start
            k = count if new else near[g]
            first[count] = i
            count += new
            near[g] = k
            since[g] = run_start
            out[i] = k
            begin += 1
    if begin == n:
        return first[:count].copy()
    table = np.full(1024, -1, np.int32)
    table_size = 0  # ids that the table holds
    for i in range(begin, n):
        b = bucket[i]
        g = np.uint64(group[i])
        if i > 0 and bucket[i - 1] != b:
            run_start = i
        if g < groups and since[g] == run_start:
            out[i] = near[g]
            continue
        if 4 * count >= len(table):
            size = len(table)
            while 4 * count >= size:
                size *= 4
            table = np.full(size, -1, np.int32)
            table_size = 0
        while table_size < count:
            f = first[table_size]
            at = _slot(bucket[f], group[f], bucket, group, first, table)
            table[at] = table_size
            table_size += 1
        j = _slot(b, g, bucket, group, first, table)
        if table[j] < 0:
            first[count] = i
            table[j] = count
            count += 1
            table_size += 1
        k = np.int64(table[j])
        out[i] = k
        if g < groups:
            near[g] = k
            since[g] = run_start
    return first[:count].copy()


@kernel
def _sum(values: Array, null: Array, ids: Array, total: Array, has: Array) -> None:
    if len(null):
        for i in range(len(ids)):
            if not null[i]:
                total[ids[i]] += values[i]
                has[ids[i]] = True
    else:
        for i in range(len(ids)):
            total[ids[i]] += values[i]


@kernel
def _extreme(values: Array, null: Array, ids: Array, best: Array, has: Array, greatest: bool) -> None:
    for i in range(len(ids)):
        if len(null) and null[i]:
            continue
        k = ids[i]
        v = values[i]
        if not has[k] or (v > best[k] if greatest else v < best[k]):
            best[k] = v
            has[k] = True


@kernel
def _count(null: Array, ids: Array, out: Array) -> None:
    for i in range(len(ids)):
        if not (len(null) and null[i]):
            out[ids[i]] += 1


@kernel
def _latest(time: Array, ids: Array, row: Array) -> None:
    """The row of each id with the highest time; of equal ones the last."""
    for i in range(len(ids)):
        k = ids[i]
        if row[k] < 0 or time[i] >= time[row[k]]:
            row[k] = i


_NO_NULLS = np.zeros(0, np.bool_)


def group_rows(bucket: Array, group: Array) -> tuple[Array, Array]:
    """Ids int32[n] of the pairs (bucket, group) and the first row of each id."""
    out = np.empty(len(bucket), np.int32)
    return out, _assign(bucket, group, out)


def sum_values(column: Column, type: Type, ids: Array, n: int) -> Column:
    """Sums per id as `type`: LONG for int and long (wrapping), DOUBLE for float and double; null for none."""
    total = np.zeros(n, DTYPES[type])
    has = np.zeros(n, np.bool_)
    null = _NO_NULLS if column.null is None else column.null
    _sum(column.values, null, ids, total, has)
    return Column(type, total) if column.null is None or has.all() else Column(type, total, ~has)


def extreme(column: Column, greatest: bool, ids: Array, n: int) -> Column:
    """The lowest or highest value per id; null for none."""
    best = np.zeros(n, DTYPES[column.type])
    has = np.zeros(n, np.bool_)
    _extreme(column.values, _NO_NULLS if column.null is None else column.null, ids, best, has, greatest)
    return Column(column.type, best, None if has.all() else ~has)


def count_rows(column: Column | None, ids: Array, n: int) -> Column:
    """Count the rows of each id; with `column`, only its rows that are not null."""
    out = np.zeros(n, np.int64)
    _count(_NO_NULLS if column is None or column.null is None else column.null, ids, out)
    return Column(Type.LONG, out)


_NAN = "NaN"


def set_elements(values: Iterable[Any]) -> list[Any]:
    """Values of one type as elements of a set: NaN, which does not equal itself, as a text. 0.0 and -0.0 are one, as in
    a database, which keeps the sets of several nodes."""
    return [_NAN if v != v else v + 0.0 if isinstance(v, float) else v for v in values]


def set_values(elements: frozenset[Any], type: Type) -> list[Any]:
    """The values of a set of `set_elements`, in order; null first, NaN last."""
    if not type.numeric or _NAN not in elements:
        values = sorted(elements - {None})
    else:
        values = [*sorted(elements - {None, _NAN}), math.nan]
    return [None, *values] if None in elements else values


def gather_sets(values: Sequence[Any], ids: Array, n: int) -> Column:
    """The set of the `values` (hashable) of each id."""
    order = np.argsort(ids, kind="stable")
    sorted_values = [values[i] for i in order.tolist()]
    ends = np.searchsorted(ids[order], np.arange(n + 1)).tolist()
    return _sets([frozenset(sorted_values[a:b]) for a, b in pairwise(ends)])


def unite_sets(sets: Sequence[frozenset[Any]], ids: Array, n: int) -> Column:
    """The union of the sets of each id."""
    sets_by_id: list[list[frozenset[Any]]] = [[] for _ in range(n)]
    for k, v in zip(ids.tolist(), sets, strict=True):
        sets_by_id[k].append(v)
    return _sets([some[0] if len(some) == 1 else frozenset().union(*some) for some in sets_by_id])


def _sets(sets: Sequence[frozenset[Any]]) -> Column:
    out = np.empty(len(sets), object)
    out[:] = sets
    return Column(Type.OBJECT, out)


def latest_rows(time: Array, ids: Array, n: int) -> Array:
    """int64[n]: the row of each id with the highest `time`; of equal ones the last to arrive."""
    row = np.full(n, -1, np.int64)
    _latest(time, ids, row)
    return row


def merge(part: PartialRows, base: Sequence[BaseColumn]) -> PartialRows:
    """Merges the rows of `part` with equal bucket and group, in the order of their first rows.

    Later rows win ties of `last`, so `part` must be in the order of arrival.
    """
    ids, first = group_rows(part.bucket, part.group)
    n = len(first)
    if n == len(part):
        return part
    latest = None if part.last is None else latest_rows(part.last, ids, n)
    columns = []
    for b, c in zip(base, part.columns, strict=True):
        if b.kind in ("sum", "count"):
            columns.append(sum_values(c, b.type, ids, n))
        elif b.kind in ("min", "max"):
            columns.append(extreme(c, b.kind == "max", ids, n))
        elif b.kind == "set":
            columns.append(unite_sets(c.values.tolist(), ids, n))
        else:
            assert latest is not None
            columns.append(c.take(latest))
    last = None if part.last is None or latest is None else part.last[latest]
    return PartialRows(part.bucket[first], part.group[first], columns, last)
