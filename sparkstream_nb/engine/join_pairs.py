"""The rows of a join's two sides in the order in which they come, and the values of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plan.nodes import EventRef, Ref
from ..types import Type
from .columns import Array, Column
from .jit import kernel
from .join_contents import Contents
from .rows import Rows


@kernel
def _gather(
    op: Array, place: Array, side: Array, row: Array, s: int, own: Array, held: Array, fill: int, out: Array
) -> None:
    """Values of side `s` in pairs: of the rows that look, of what they found, or `fill` where there is neither."""
    i = 0
    while i < len(op):
        o = op[i]
        end = i + 1
        while end < len(op) and op[end] == o:
            end += 1
        if side[o] == s:
            value = own[row[o]]
            for k in range(i, end):
                out[k] = value
        else:
            for k in range(i, end):
                p = place[k]
                out[k] = held[p] if p >= 0 else fill
        i = end


class Ops:
    """`n` rows of both sides in order: `side` int8[n], `row` int64[n] in that side's rows, times, roots and kinds."""

    def __init__(self, left: Rows, right: Rows, right_first: bool) -> None:
        """`right_first`: of rows of one root those of the right side come first."""
        self.sides = (left, right)
        root, n0 = np.concatenate([left.root, right.root]), len(left)
        if right_first:
            self.order: Array = np.lexsort((np.arange(len(root)) < n0, root))
        else:
            self.order = np.argsort(root, kind="stable")
        self.side = (self.order >= n0).astype(np.int8)
        self.row = np.where(self.order >= n0, self.order - n0, self.order)
        self.root = root[self.order]
        self.ts = self.in_order(left.ts, right.ts)
        self.kinds = self.in_order(left.kinds(), right.kinds())

    def __len__(self) -> int:
        return len(self.order)

    def in_order(self, left: Array, right: Array) -> Array:
        """An array over the ops, from one over each side's rows."""
        out: Array = np.concatenate([left, right])[self.order]
        return out

    def parts(self) -> Array:
        """The instance of each op."""
        return self.in_order(self.sides[0].parts(), self.sides[1].parts())


class Pairs:
    """Ops with the positions of what they found on the other side; -1 for none (an outer join's null).

    `attrs` are the attributes that each side's columns hold.
    """

    def __init__(self, ops: Ops, contents: Contents, attrs: Sequence[Sequence[int]], op: Array, place: Array) -> None:
        self.ops, self.contents, self.attrs, self.op, self.place = ops, contents, attrs, op, place

    def _values(self, s: int, own: Array, held: Array, fill: int) -> Array:
        ops = self.ops
        if own.dtype == object:
            out = np.full(len(self.op), None, object)
            mine = ops.side[self.op] == s
            matched = ~mine & (self.place >= 0)
            out[mine] = own[ops.row[self.op[mine]]]
            out[matched] = held[self.place[matched]]
            return out
        size = f"i{own.dtype.itemsize}"  # one compiled loop serves all types of a size
        out = np.empty(len(self.op), own.dtype)
        _gather(self.op, self.place, ops.side, ops.row, s, own.view(size), held.view(size), fill, out.view(size))
        return out

    def _missing(self, s: int) -> Array:
        out: Array = (self.ops.side[self.op] != s) & (self.place < 0)
        return out

    def resolve(self, ref: Ref | EventRef) -> Column:
        """The column that a reference names; for a whole event a BOOL column that is null where there is none."""
        s = ref.slot
        if isinstance(ref, EventRef):
            return Column(Type.BOOL, np.ones(len(self.op), np.bool_), self._missing(s))
        i, log = self.attrs[s].index(ref.attr), self.contents.logs[s]
        own, held_null = self.ops.sides[s].columns[i], log.null_mask(i)
        values = self._values(s, own.values, log.values(i), -1 if ref.type is Type.STRING else 0)
        null = None
        if own.null is not None or held_null is not None:
            held = np.zeros(len(log.ts), np.bool_) if held_null is None else held_null
            null = self._values(s, own.nulls(), held, 1)
        elif len(self.place) and self.place.min() < 0:
            null = self._missing(s)
        return Column(ref.type, values, null if null is not None and null.any() else None)

    def times(self, ref: EventRef) -> Column:
        """Timestamps of the events of a side, null where an outer join has none."""
        s, missing = ref.slot, self._missing(ref.slot)
        values = self._values(s, self.ops.sides[s].ts, self.contents.logs[s].ts, 0)
        return Column(Type.LONG, values, missing if missing.any() else None)
