"""`math:percentile(x, p)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, Mask
from ..columnar.rows import CURRENT, EXPIRED
from ..notation.kernels import compiled, inlined, struct
from .aggregator_base import EVERY, NO_INSTANCE, NO_KIND, NO_PLACE, Grouped, Ops, null_rows

_AT_ONCE = 256
"""Up to this number of values, comparing all in wide registers is faster than binary search, whose branches the
processor cannot predict.
"""


@inlined
def _place(held: Array, first: Any, n: Any, value: Any, after: bool) -> Any:
    """Insertion position of `value` among the `n` sorted values of `held` from `first` on: before equal ones, or
    `after` them.
    """
    low: Any = np.uint64(first)
    size: Any = np.uint64(n)
    while size > _AT_ONCE:
        half = size >> np.uint64(1)
        there = held[low + half]
        if there < value or (after and not value < there):
            low += half
            size -= half
        else:
            size = half
    end = low + size
    for j in range(low, end):
        there = held[np.uint64(j)]
        low += np.uint64(not value < there if after else there < value)
    return low


@inlined
def _share_of(held: Array, first: Any, n: Any, share: float) -> Any:
    """The value at `share` percent of the `n` sorted values from `first` on."""
    place = share * n / 100
    whole = int(place)
    value = held[first + max(int(np.floor(place + 0.5)) - 1, 0)]
    if place == whole:
        value = held[first + n - 1]
        if whole != n:
            value = (held[first + whole - 1] + held[first + whole]) / 2
    return value


@struct
class Percentile(Grouped):
    """DOUBLE: the value at p percent (more than 0, at most 100) of the group's sorted values, or between the two around
    it; null for none.

    siddhi-execution-math (`PercentileFunctionExtension`) has one list for all groups of the query, as `str:groupConcat`
    had (wso2/api-manager#932): here each group has its own.
    """

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.narrow = args[0] in (Type.INT, Type.LONG)
        self.held = np.zeros(0, np.float64)
        self.used = 0
        """Length of the part of `held` that groups use, or used before they needed more room."""
        self.start, self.room, self.size = (np.zeros(0, np.int64) for _ in range(3))
        self._begin()

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return null_rows(args[0], "math:percentile takes no null")

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, instance: Array | None = None
    ) -> Column:
        n, values = len(group), args[0].values
        out, null = np.zeros(n), np.zeros(n, np.bool_)
        if n == 0:
            return Column(Type.DOUBLE, out)
        if self.narrow:  # through a float, as there
            values = values.astype(np.float32)
        instances = 1 if instance is None else int(instance.max()) + 1
        self.eras = grown(self.eras, instances)
        self.epoch, self.start, self.room, self.size = (
            grown(a, groups) for a in (self.epoch, self.start, self.room, self.size)
        )
        self._make_room(group if kind is None else group[kind == CURRENT])
        ops = Ops(
            n, NO_KIND if kind is None else kind, NO_PLACE, group, NO_INSTANCE if instance is None else instance,
            NO_PLACE, EVERY, self.eras, self.epoch, 0, 0,
        )  # fmt: skip
        self._step(float(args[1].values[0]), values.astype(np.float64), ops, out, null)
        return Column(Type.DOUBLE, out, null if null.any() else None)

    @compiled
    def _step(self, share: float, values: Array, ops: Ops, out: Array, null: Array) -> None:
        """The percentile of its group after each op. The `size` values of a group are sorted, in `held` from its
        `start` on, with room for all that come."""
        for i in range(ops.n):
            k: Any = ops.kind[i] if len(ops.kind) else CURRENT
            p = ops.instance[i] if len(ops.instance) else 0
            if k > EXPIRED:
                ops.reset(k, p)
                null[i] = True
                continue
            g = ops.group[i]
            anew = ops.begins(g, p)
            n = 0 if anew else self.size[g]
            first = self.start[g]
            v = values[i]
            place = _place(self.held, first, n, v, k == CURRENT)
            at = np.int64(place)
            if k == CURRENT:
                for j in range(first + n, at, -1):
                    self.held[np.uint64(j)] = self.held[np.uint64(j - 1)]
                self.held[at] = v
                n += 1
            elif at < first + n and self.held[at] == v:
                n -= 1
                for j in range(at, first + n):
                    self.held[np.uint64(j)] = self.held[np.uint64(j + 1)]
            self.size[g] = n
            null[i] = n == 0
            out[i] = 0.0
            if n:
                value = _share_of(self.held, first, n, share)
                out[i] = value

    def _make_room(self, coming: Array) -> None:
        """Room for one more value of each of the groups `coming`. A group that needs more moves to the end."""
        need = self.size.copy()
        need[: int(coming.max(initial=-1)) + 1] += np.bincount(coming)
        moves = np.flatnonzero(need > self.room)
        if not len(moves):
            return
        more = 2 * need[moves]
        if self.used + int(more.sum()) > 2 * int(self.room.sum() + more.sum()):
            self._lay(self._values(), self.size)  # more than half of it was left behind
        self.held = grown(self.held, self.used + int(more.sum()))
        for g, room in zip(moves.tolist(), more.tolist(), strict=True):
            first, size = int(self.start[g]), int(self.size[g])
            self.held[self.used : self.used + size] = self.held[first : first + size]
            self.start[g], self.room[g] = self.used, room
            self.used += room

    def _values(self) -> Array:
        """All values, group after group."""
        first = np.cumsum(self.size) - self.size
        places: Array = np.repeat(self.start - first, self.size) + np.arange(int(self.size.sum()))
        return self.held[places]

    def _lay(self, values: Array, size: Array) -> None:
        """Holds just these values, as `_values` gives them."""
        self.held, self.used = values.copy(), len(values)
        self.size, self.room = size.copy(), size.copy()
        self.start = np.cumsum(size) - size

    def forget(self, groups: Array, instances: Array) -> None:
        self.size[groups[groups < len(self.size)]] = 0

    def state(self) -> dict[str, Any]:
        return {"held": self._values(), "size": self.size.copy(), "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        self._lay(state["held"], state["size"])
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()
