"""`distinctCount`: how many different values a group holds; null is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column
from ..jit import inlined, kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import NO_MASK, Feed, Grouped

_NULL = np.int64(-(2**63))
_NAN = np.float64(np.nan).view(np.int64)
_INFINITE = np.int64(0x7FF0000000000000)
_SIGN = np.int64(2**63 - 1)
"""All bits but a double's sign."""

NUMBER, GROUP, HELD, EPOCH, WIDTH = range(5)
"""Words of a place in the table: a value, its group, how often the group holds it (0: the place is free), and the era
in which it does."""


_SPARSE = 1 << 13
"""A table of so many places may well be nearly empty, which is faster."""


@inlined
def _home(number: Any, group: Any, mask: Any) -> Any:
    """Where a pair is looked for first."""
    h = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    h = ((h ^ (h >> np.uint64(32))) + np.uint64(group)) * np.uint64(0xC2B2AE3D27D4EB4F)
    return (h >> np.uint64(32)) & mask


@kernel
def _distinct(
    begin: int, m: int, size: int, most: int, serial: int, table: Array, serials: Array, values: Array, real: bool,
    null: Array, n: int, kind: Array, pos: Array, group: Array, part: Array, slot: Array, shown: int, now: Array,
    count: Array, epoch: Array, out: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """`DistinctCountAttributeAggregatorExecutor` from the op `begin` on, of which `m` values came out before: a count
    per (group, value) in an open-addressing `table`, and how many there are of each group.

    Stops where the table has `most` pairs. Returns (ops done, values that came out, pairs, the next serial number).
    """
    one = np.uint64(1)
    mask = np.uint64(len(serials) - 1)
    for j in range(begin, n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        k: Any = np.int64(kind[j]) if len(kind) else 0
        p = np.uint64(part[i]) if len(part) else np.uint64(0)
        shows = (shown >> k) & 1
        if k > EXPIRED:
            if k == RESET:
                now[p] += 1
            if shows:
                out[slot[m] if len(slot) else m] = 0
                m += 1
            continue
        if size >= most:
            return j, m, size, serial
        e = now[p]
        g = np.uint64(group[i]) if len(group) else np.uint64(0)
        v: Any = np.int64(values[i])
        if real and (v & _SIGN) > _INFINITE:
            v = _NAN
        if len(null) and null[i]:
            v = _NULL
        if epoch[g] != e:
            epoch[g] = e
            count[g] = 0
        at = _home(v, g, mask)
        while table[at, HELD] > 0 and (table[at, NUMBER] != v or np.uint64(table[at, GROUP]) != g):
            at = (at + one) & mask
        held = table[at, HELD]
        if k == CURRENT:
            if held == 0:
                table[at, NUMBER] = v
                table[at, GROUP] = np.int64(g)
                serials[at] = serial
                serial += 1
                size += 1
            if held == 0 or table[at, EPOCH] != e:
                table[at, EPOCH] = e
                table[at, HELD] = 1
                count[g] += 1
            else:
                table[at, HELD] = held + 1
        elif held > 0 and table[at, EPOCH] == e:
            table[at, HELD] = held - 1
            if held == 1:
                count[g] -= 1
                size -= 1
                free: Any = at  # what stands behind it and is looked for from before moves up
                at = (at + one) & mask
                while table[at, HELD] > 0:
                    home = _home(table[at, NUMBER], table[at, GROUP], mask)
                    if ((at - home) & mask) >= ((at - free) & mask):
                        for x in range(WIDTH):
                            table[free, x] = table[at, x]
                        serials[free] = serials[at]
                        table[at, HELD] = 0
                        free = at
                    at = (at + one) & mask
        if shows:
            out[slot[m] if len(slot) else m] = count[g]
            m += 1
    return n, m, size, serial


@kernel
def _enter(pairs: Array, numbers: Array, table: Array, serials: Array) -> None:
    """Enters pairs with their serial numbers into an empty table."""
    one = np.uint64(1)
    mask = np.uint64(len(serials) - 1)
    for i in range(len(pairs)):
        at = _home(pairs[i, NUMBER], pairs[i, GROUP], mask)
        while table[at, HELD] > 0:
            at = (at + one) & mask
        for x in range(WIDTH):
            table[at, x] = pairs[i, x]
        serials[at] = numbers[i]


class DistinctCount(Grouped):
    """Pairs of group and value in a table, which they leave when the group holds the value no more. Of eras that are
    over they leave when there is no room."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (self.type,) = args
        self.real = self.type in (Type.FLOAT, Type.DOUBLE)
        self.count = np.zeros(0, np.int64)
        self.size = self.serial = self.most = 0
        self._begin()
        self._keep(np.zeros((0, WIDTH), np.int64), np.zeros(0, np.int64))

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        (column,) = args
        values = column.values.astype(np.float64, copy=False).view(np.int64) if self.real else column.values
        self.eras, self.epoch = grown(self.eras, feed.parts), grown(self.epoch, feed.groups, -1)
        self.count = grown(self.count, feed.groups)
        out = np.empty(feed.size, np.int64)
        done = made = 0
        while True:
            done, made, self.size, self.serial = _distinct(
                done, made, self.size, self.most, self.serial, self.table, self.serials, values, self.real,
                NO_MASK if column.null is None else column.null, *feed.arrays, self.eras, self.count, self.epoch, out,
            )  # fmt: skip
            if done == feed.n:
                return Column(Type.LONG, out)
            at = self._live()
            self._keep(self.table[at], self.serials[at])

    def _live(self) -> Array:
        """The places of the pairs that are held since their group began anew."""
        pairs = self.table
        at = np.flatnonzero(pairs[:, HELD] > 0)
        live: Array = at[pairs[at, EPOCH] == self.epoch[pairs[at, GROUP]]]
        return live

    def _keep(self, pairs: Array, serials: Array) -> None:
        """Begins anew with these pairs, and room for more."""
        places, self.most = 64, 8
        while self.most < 2 * len(pairs):
            places *= 2
            self.most = places // (8 if places <= _SPARSE else 2)
        self.size = len(pairs)
        self.table: Array = np.zeros((places, WIDTH), np.int64)
        self.serials: Array = np.zeros(places, np.int64)
        _enter(pairs, serials, self.table, self.serials)

    def state(self) -> dict[str, Any]:
        at = self._live()
        live = self.table[at[np.argsort(self.serials[at])]]
        numbers = live[:, NUMBER].copy()
        values: Any = numbers
        if self.type is Type.STRING:
            values = Column(Type.STRING, np.where(numbers == _NULL, -1, numbers).astype(np.int32))
        return {
            "values": values, "group": live[:, GROUP].copy(), "held": live[:, HELD].copy(),
            "count": self.count, "epoch": self.epoch, "era": self.eras,
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        numbers, group = state["values"], state["group"]
        if self.type is Type.STRING:
            codes = numbers.values.astype(np.int64)
            numbers = np.where(codes < 0, _NULL, codes)
        self.count, self.epoch, self.eras = state["count"].copy(), state["epoch"].copy(), state["era"].copy()
        self.serial = len(group)
        self._keep(np.stack([numbers, group, state["held"], self.epoch[group]], axis=1), np.arange(len(group)))
