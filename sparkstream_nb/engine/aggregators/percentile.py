"""`math:percentile(x, p)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, Mask
from ..columnar.rows import CURRENT
from ..notation.kernels import inlined, struct
from ..state.declared import per_group
from ..state.saving import Form
from .aggregator_base import AggregateInput, Base, Grouped, Outputs, null_rows

_AT_ONCE = 256
"""Up to this number of values, comparing all in wide registers is faster than binary search, whose branches the
processor cannot predict.
"""


@inlined
def _place(values: Array, first: Any, n: Any, value: Any, after: bool) -> Any:
    """Insertion position of `value` among the `n` sorted `values` from `first` on: before equal ones, or
    `after` them.
    """
    low: Any = np.uint64(first)
    size: Any = np.uint64(n)
    while size > _AT_ONCE:
        half = size >> np.uint64(1)
        there = values[low + half]
        if there < value or (after and not value < there):
            low += half
            size -= half
        else:
            size = half
    end = low + size
    for j in range(low, end):
        there = values[np.uint64(j)]
        low += np.uint64(not value < there if after else there < value)
    return low


@inlined
def _share_of(values: Array, first: Any, n: Any, share: float) -> Any:
    """The value at `share` percent of the `n` sorted values from `first` on."""
    place = share * n / 100
    rank = int(place)
    value = values[first + max(int(np.floor(place + 0.5)) - 1, 0)]
    if place == rank:
        value = values[first + n - 1]
        if rank != n:
            value = (values[first + rank - 1] + values[first + rank]) / 2
    return value


@struct
class Percentile(Grouped):
    """DOUBLE: the value at p percent (more than 0, at most 100) of the group's sorted values, or between the two around
    it; null for none.

    siddhi-execution-math (`PercentileFunctionExtension`) has one list for all groups of the query, as `str:groupConcat`
    had (wso2/api-manager#932): here each group has its own.
    """

    type, dtype = Type.DOUBLE, np.float64
    start = per_group(is_saved=False)
    room = per_group(is_saved=False)
    size = per_group(is_saved=False)
    """The values of a group are sorted, in `values` from its `start` on, with room for all that come."""
    over = Base.over

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.narrow = args[0] in (Type.INT, Type.LONG)
        self.values, self.share = np.zeros(0, np.float64), 0.0
        self.values_end = 0
        """Length of the part of `values` that groups use, or used before they needed more room."""
        self._begin()

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return null_rows(args[0], "math:percentile takes no null")

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, instance: Array | None = None
    ) -> Column:
        column, share = args
        if len(group) == 0:
            return Column.empty(Type.DOUBLE)
        if self.narrow:  # through a float, as there
            column = Column(Type.FLOAT, column.values.astype(np.float32), column.null)
        self._widen(groups)
        self.epoch, self.share = grown(self.epoch, groups), float(share.values[0])
        self._make_room(group if kind is None else group[kind == CURRENT])
        return super().over((column,), AggregateInput.of(kind, group, groups, instance))

    @inlined
    def clear(self, g: Any) -> None:
        self.size[g] = 0

    @inlined
    def take(self, g: Any, value: Any, kind: Any) -> None:
        first = self.start[g]
        end = first + self.size[g]
        place = _place(self.values, first, self.size[g], value, kind == CURRENT)
        at = np.int64(place)
        if kind == CURRENT:
            for j in range(end, at, -1):
                self.values[np.uint64(j)] = self.values[np.uint64(j - 1)]
            self.values[at] = value
            self.size[g] += 1
        elif at < end and self.values[at] == value:
            for j in range(at, end - 1):
                self.values[np.uint64(j)] = self.values[np.uint64(j + 1)]
            self.size[g] -= 1

    @inlined
    def show(self, g: Any, o: Any, outputs: Outputs) -> None:
        n = self.size[g]
        outputs.null[o] = n == 0
        outputs.holes[0] |= n == 0
        outputs.values[o] = 0.0
        if n > 0:
            value = _share_of(self.values, self.start[g], n, self.share)
            outputs.values[o] = value

    def _make_room(self, coming: Array) -> None:
        """Room for one more value of each of the groups `coming`. A group that needs more moves to the end."""
        need = self.size.copy()
        need[: int(coming.max(initial=-1)) + 1] += np.bincount(coming)
        moves = np.flatnonzero(need > self.room)
        if not len(moves):
            return
        more = 2 * need[moves]
        if self.values_end + int(more.sum()) > 2 * int(self.room.sum() + more.sum()):
            self._lay(self._in_order(), self.size)  # more than half of it was left behind
        self.values = grown(self.values, self.values_end + int(more.sum()))
        for g, room in zip(moves.tolist(), more.tolist(), strict=True):
            first, size = int(self.start[g]), int(self.size[g])
            self.values[self.values_end : self.values_end + size] = self.values[first : first + size]
            self.start[g], self.room[g] = self.values_end, room
            self.values_end += room

    def _in_order(self) -> Array:
        """All values, group after group."""
        first = np.cumsum(self.size) - self.size
        places: Array = np.repeat(self.start - first, self.size) + np.arange(int(self.size.sum()))
        return self.values[places]

    def _lay(self, values: Array, size: Array) -> None:
        """Holds just these values, as `_in_order` gives them."""
        self.values, self.values_end = values.copy(), len(values)
        self.size, self.room = size.copy(), size.copy()
        self.start = np.cumsum(size) - size

    def forget(self, groups: Array, instances: Array) -> None:
        self.size[groups[groups < len(self.size)]] = 0

    def _state(self, form: Form) -> dict[str, Any]:
        return {"held": self._in_order(), "size": self.size.copy(), **super()._state(form)}

    def load(self, state: dict[str, Any]) -> None:
        self._lay(state["held"], state["size"])
        super().load(state)
