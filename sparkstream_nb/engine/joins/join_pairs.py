"""Merges the rows of a join's two sides by order key, and gathers the values of joined pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.nodes import EventRef, Ref
from ...types import Type
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT, Rows
from ..notation.kernels import compiled, inlined, kernel, struct
from .join_contents import Contents

NO_KIND = np.empty(0, np.int8)
NO_INSTANCE = np.empty(0, np.int64)


@kernel
def _lay(side: Array, row: Array, left: Array, right: Array, out: Array) -> None:
    for n in range(len(side)):
        r = np.uint64(row[n])
        out[n] = left[r] if side[n] == 0 else right[r]


@struct
class _Side:
    """The rows of a side as the loop takes them; no `kind` at all: all are CURRENT."""

    def __init__(self, rows: Rows) -> None:
        self.order_key, self.ts = rows.order_key, rows.ts
        self.kind = NO_KIND if rows.kind is None else rows.kind
        self.chunk = np.ascontiguousarray(rows.chunk)


@struct
class Ops:
    """`n` rows of both sides in order: `side` int8[n], `row` int64[n] in that side's rows, times, order keys, kinds,
    and `group`, which numbers the stretches of one side and chunk."""

    def __init__(self, left: Rows, right: Rows, right_first: bool) -> None:
        """`right_first`: among rows of one order key, rows of the right side come first."""
        self.sides = (left, right)
        n = len(left) + len(right)
        self.side, self.kinds = np.empty(n, np.int8), np.empty(n, np.int8)
        self.row, self.order_key, self.ts, self.group = (np.empty(n, np.int64) for _ in range(4))
        self._merge(right_first, _Side(left), _Side(right))

    @compiled
    def _merge(self, right_first: bool, left: _Side, right: _Side) -> None:
        """The rows of both sides by order key."""
        i = 0
        j = 0
        g = -1
        last = np.int64(0)
        for n in range(len(self.side)):
            if i < len(left.order_key) and j < len(right.order_key):
                is_left = left.order_key[i] < right.order_key[j] or (
                    left.order_key[i] == right.order_key[j] and not right_first
                )
            else:
                is_left = i < len(left.order_key)
            s = 0 if is_left else 1
            chunk = left.chunk[i] if is_left else right.chunk[j]
            if n == 0 or s != self.side[n - 1] or chunk != last:
                g += 1
            last = chunk
            self.group[n] = g
            self.side[n] = s
            if is_left:
                self._take(n, i, left)
                i += 1
            else:
                self._take(n, j, right)
                j += 1

    @inlined
    def _take(self, n: int, i: int, side: _Side) -> None:
        """Row `i` of a side is the n-th."""
        self.row[n] = i
        self.order_key[n] = side.order_key[i]
        self.ts[n] = side.ts[i]
        self.kinds[n] = side.kind[i] if len(side.kind) else CURRENT

    def __len__(self) -> int:
        return len(self.side)

    def in_order(self, left: Array, right: Array) -> Array:
        """An int64 array over the ops, from one over each side's rows."""
        out = np.empty(len(self), np.int64)
        _lay(self.side, self.row, left, right, out)
        return out

    def instances(self) -> Array:
        """The instance of each op; empty if there is only one."""
        left, right = self.sides
        if left.instance is None and right.instance is None:
            return NO_INSTANCE
        return self.in_order(left.instances().astype(np.int64), right.instances().astype(np.int64))


@struct
class Pairs:
    """Operations with the positions that they matched on the other side; -1 for none (an outer join's null).

    `attrs` are the attributes that each side's columns hold.
    """

    ops: Ops

    def __init__(self, ops: Ops, contents: Contents, attrs: Sequence[Sequence[int]], op: Array, place: Array) -> None:
        self.ops, self.contents, self.attrs, self.op, self.place = ops, contents, attrs, op, place

    def _values(self, s: int, row_values: Array, held_values: Array, fill: int) -> Array:
        ops = self.ops
        if row_values.dtype == object:
            out = np.full(len(self.op), None, object)
            mine = ops.side[self.op] == s
            has_match = ~mine & (self.place >= 0)
            out[mine] = row_values[ops.row[self.op[mine]]]
            out[has_match] = held_values[self.place[has_match]]
            return out
        size = f"i{row_values.dtype.itemsize}"  # one compiled loop serves all types of a size
        out = np.empty(len(self.op), row_values.dtype)
        row_values, held_values = (a if len(a) else np.zeros(1, a.dtype) for a in (row_values, held_values))
        self._gather(s, row_values.view(size), held_values.view(size), fill, out.view(size))
        return out

    @compiled
    def _gather(self, s: int, row_values: Array, held_values: Array, fill: int, out: Array) -> None:
        """Values of side `s` in pairs: from the rows that look, from the rows found, or `fill` if neither. Branch-free,
        so `row_values` and `held_values` must not be empty.
        """
        for k in range(len(self.op)):
            o = np.uint64(self.op[k])
            p = self.place[k]
            mine = self.ops.side[o] == s
            has_match = p >= 0
            a = row_values[np.uint64(self.ops.row[o]) if mine else np.uint64(0)]
            b = held_values[np.uint64(p) if has_match and not mine else np.uint64(0)]
            b = b if has_match else out.dtype.type(fill)
            out[k] = a if mine else b

    def _find_unmatched(self, s: int) -> Array:
        out: Array = (self.ops.side[self.op] != s) & (self.place < 0)
        return out

    def resolve(self, ref: Ref | EventRef) -> Column:
        """The column that a reference names; for a whole event a BOOL column, null where the event is missing."""
        s = ref.slot
        if isinstance(ref, EventRef):
            return Column(Type.BOOL, np.ones(len(self.op), np.bool_), self._find_unmatched(s))
        i, log = self.attrs[s].index(ref.attr), self.contents.logs[s]
        row_column, held_null = self.ops.sides[s].columns[i], log.null_mask(i)
        values = self._values(s, row_column.values, log.values(i), -1 if ref.type is Type.STRING else 0)
        null = None
        if row_column.null is not None or held_null is not None:
            held_mask = np.zeros(log.capacity, np.bool_) if held_null is None else held_null
            null = self._values(s, row_column.nulls(), held_mask, 1)
        elif len(self.place) and self.place.min() < 0:
            null = self._find_unmatched(s)
        return Column(ref.type, values, null if null is not None and null.any() else None)

    def times(self, ref: EventRef) -> Column:
        """Timestamps of the events of a side, null where an outer join has none."""
        s, missing = ref.slot, self._find_unmatched(ref.slot)
        values = self._values(s, self.ops.sides[s].ts, self.contents.logs[s].ts, 0)
        return Column(Type.LONG, values, missing if missing.any() else None)
