"""`distinctCount`: how many different values a group holds; null is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column
from ..groups import IdTable
from ..jit import kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import Feed, Grouped

_NULL = np.int64(-(2**63))


@kernel
def _distinct(
    pair: Array, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array, shown: int, now: Array, held:
    Array, held_epoch: Array, count: Array, epoch: Array, out: Array,
) -> None:  # fmt: skip
    """`DistinctCountAttributeAggregatorExecutor`: a count per (group, value), and how many of them are not zero."""
    m = 0
    for j in range(n):
        i = pos[j] if len(pos) else j
        k = kind[j] if len(kind) else CURRENT
        e = now[part[i] if len(part) else 0]
        if k == RESET:
            now[part[i] if len(part) else 0] += 1
            if (shown >> k) & 1:
                out[slot[m] if len(slot) else m] = 0
                m += 1
            continue
        g = group[i] if len(group) else 0
        p = pair[j]
        if epoch[g] != e:
            epoch[g] = e
            count[g] = 0
        if held_epoch[p] != e:
            held_epoch[p] = e
            held[p] = 0
        if k == CURRENT:
            held[p] += 1
            if held[p] == 1:
                count[g] += 1
        elif k == EXPIRED and held[p] > 0:
            held[p] -= 1
            if held[p] == 0:
                count[g] -= 1
        if (shown >> k) & 1:
            out[slot[m] if len(slot) else m] = count[g]
            m += 1


class DistinctCount(Grouped):
    """Values are numbered, and pairs of group and value; pairs that nothing holds any more are dropped in time."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (self.type,) = args
        self.count = np.zeros(0, np.int64)
        self._begin()
        self._clear()

    def _clear(self) -> None:
        self.values, self.pairs = IdTable(), IdTable()
        self.number, self.group_of, self.value_of = (np.zeros(0, np.int64) for _ in range(3))
        self.held, self.held_epoch = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def _numbers(self, column: Column) -> Array:
        """int64 that are equal where Java's boxed values are; strings stay codes."""
        values = column.values
        if self.type in (Type.FLOAT, Type.DOUBLE):
            values = np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.int64)
        out: Array = values.astype(np.int64)
        return out if column.null is None else np.where(column.null, _NULL, out)

    def _pair(self, numbers: Array, group: Array) -> Array:
        """The id of each (group, value)."""
        known_values, known = self.values.size, self.pairs.size
        value, first = self.values.assign(numbers)
        self.number = grown(self.number, self.values.size)
        self.number[known_values : self.values.size] = numbers[first]
        pair, first = self.pairs.assign((group.astype(np.int64) << 32) | value.astype(np.int64))
        size = self.pairs.size
        self.group_of, self.value_of = grown(self.group_of, size), grown(self.value_of, size)
        self.group_of[known:size], self.value_of[known:size] = group[first], value[first]
        self.held, self.held_epoch = grown(self.held, size), grown(self.held_epoch, size, -1)
        return pair

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        numbers, group = self._numbers(args[0]), feed.group
        if len(group) == 0:
            group = np.zeros(len(numbers), np.int32)
        if feed.pos is not None:
            numbers, group = numbers[feed.pos], group[feed.pos]
        pair = self._pair(numbers, group)
        self.eras, self.epoch = grown(self.eras, feed.parts), grown(self.epoch, feed.groups, -1)
        self.count = grown(self.count, feed.groups)
        out = np.empty(feed.size, np.int64)
        _distinct(pair, *feed.arrays, self.eras, self.held, self.held_epoch, self.count, self.epoch, out)
        if self.pairs.size > 4096:
            live = self._live()
            if 4 * len(live) < self.pairs.size:
                self._keep(self.number[self.value_of[live]], self.group_of[live], self.held[live])
        return Column(Type.LONG, out)

    def _live(self) -> Array:
        """Pairs that are held since their group began anew."""
        size = self.pairs.size
        return np.flatnonzero((self.held[:size] > 0) & (self.held_epoch[:size] == self.epoch[self.group_of[:size]]))

    def _keep(self, numbers: Array, group: Array, held: Array) -> None:
        """Begins anew with these pairs."""
        self._clear()
        pair = self._pair(numbers, group)
        self.held[pair], self.held_epoch[pair] = held, self.epoch[group]

    def state(self) -> dict[str, Any]:
        live = self._live()
        numbers = self.number[self.value_of[live]]
        values: Any = numbers
        if self.type is Type.STRING:
            values = Column(Type.STRING, np.where(numbers == _NULL, -1, numbers).astype(np.int32))
        return {
            "values": values, "group": self.group_of[live], "held": self.held[live],
            "count": self.count, "epoch": self.epoch, "era": self.eras,
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        numbers = state["values"]
        if self.type is Type.STRING:
            codes = numbers.values.astype(np.int64)
            numbers = np.where(codes < 0, _NULL, codes)
        self.count, self.epoch, self.eras = state["count"].copy(), state["epoch"].copy(), state["era"].copy()
        self._keep(numbers, state["group"], state["held"])
