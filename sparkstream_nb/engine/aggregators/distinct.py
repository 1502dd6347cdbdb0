"""`distinctCount`: the number of distinct values of a group; null counts as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT, EXPIRED, RESET
from ..notation.kernels import compiled, inlined, kernel, struct
from ..state.saving import Form
from .aggregator_base import NO_MASK, AggregateInput, Grouped, Ops, as_numbers

_NULL = np.int64(1 << 30)
"""Added to the life of a pair whose value is null."""
_FORMER_NULL = np.int64(-(2**63))
"""The value that meant null in states without a mask of nulls."""
_NAN = np.float64(np.nan).view(np.int64)
_INFINITE = np.int64(0x7FF0000000000000)
_SIGN = np.int64(2**63 - 1)
"""All bits but a double's sign."""

_TIMES = 2**32 - 1
"""The bits of a pair's second word for the count of how often it is held; its life is above them."""

_SPARSE = 1 << 14
"""Up to this size a table may be sparse, which is faster."""

SIZE, LIVES, MADE = range(3)
"""Places in `counts`: the pairs in the table, the next life, and how many values of a run were output when it stopped.
"""

_LIVES = 1 << 29
"""The maximum number of epochs before they are renumbered."""


@inlined
def _home(number: Any, generation: Any, mask: Any) -> Any:
    """Home position of a pair in the table."""
    h = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    h = ((h ^ (h >> np.uint64(32))) + np.uint64(generation)) * np.uint64(0xC2B2AE3D27D4EB4F)
    return (h >> np.uint64(32)) & mask


@kernel
def _enter(numbers: Array, entries: Array, table: Array) -> None:
    """Enters pairs into an empty table."""
    one = np.uint64(1)
    mask = np.uint64(len(table) // 2 - 1)
    for i in range(len(numbers)):
        at = _home(numbers[i], entries[i] >> 32, mask)
        while table[(at << one) + one] != 0:
            at = (at + one) & mask
        table[at << one] = numbers[i]
        table[(at << one) + one] = entries[i]


@struct
class DistinctCount(Grouped):
    """A hash table of (group, value) pairs with counts. A pair is removed when its count is 0; pairs of an older epoch
    are removed when the table is full."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        (self.type,) = args
        self.real = self.type in (Type.FLOAT, Type.DOUBLE)
        self.cells = np.zeros(0, np.int64)
        self.counts, self.most = np.zeros(3, np.int64), 0
        self._begin()
        none = np.zeros(0, np.int64)
        self._keep(none, none, none, none)

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        (column,) = args
        values = as_numbers(column.values, np.float64).view(np.int64) if self.real else column.values
        self.cells = grown(self.cells, 2 * feed.groups, -1)
        out = np.empty(feed.size, np.int64)
        ops, null, next_op = self.ops(feed), NO_MASK if column.null is None else column.null, 0
        self.counts[MADE] = 0
        while next_op < feed.n:
            next_op = self._count(next_op, values, null, ops, out)
            if next_op < feed.n or self.counts[LIVES] > _LIVES:
                self._keep(*self._live())
        return Column(Type.LONG, out)

    @compiled
    def _count(self, begin: int, values: Array, null: Array, ops: Ops, out: Array) -> int:
        """`DistinctCountAttributeAggregatorExecutor` from the op `begin` on, after `counts[MADE]` values were output:
        counts of each pair of a group and a value, in an open-addressing `table` of two words a place: the value; the
        group's life, and how often (0: the place is free). `cells` are two words a group: how many values it holds, and
        its life, which is another one after a RESET (-1: it has none yet).

        Stops when the table has `most` pairs. Returns how many ops are done.
        """
        m: Any = self.counts[MADE]
        size, generations = self.counts[SIZE], self.counts[LIVES]
        one = np.uint64(1)
        mask = np.uint64(len(self.table) // 2 - 1)
        for j in range(begin, ops.n):
            ops.look_ahead(j, values, self.cells, 1)
            i = np.uint64(ops.pos[j]) if len(ops.pos) else np.uint64(j)
            k: Any = np.int64(ops.kind[j]) if len(ops.kind) else 0
            p = np.uint64(ops.instance[i]) if len(ops.instance) else np.uint64(0)
            if size >= self.most:
                self.counts[SIZE], self.counts[LIVES], self.counts[MADE] = size, generations, m
                return j
            different: Any = np.int64(0)
            if k <= EXPIRED:
                g = np.uint64(ops.group[i]) if len(ops.group) else np.uint64(0)
                cell = g << one
                v: Any = np.int64(values[i])
                if self.real and (v & _SIGN) > _INFINITE:
                    v = _NAN
                if self.cells[cell + one] < 0 or (len(ops.epoch) and ops.epoch[g] != ops.eras[p]):
                    if len(ops.epoch):
                        ops.epoch[g] = ops.eras[p]
                    self.cells[cell] = 0
                    self.cells[cell + one] = generations
                    generations += 1
                generation = self.cells[cell + one]
                if len(null) and null[i]:
                    v = np.int64(0)
                    generation += _NULL
                at = _home(v, generation, mask)
                entry = self.table[(at << one) + one]
                while entry != 0 and (entry >> 32 != generation or self.table[at << one] != v):
                    at = (at + one) & mask
                    entry = self.table[(at << one) + one]
                if k == CURRENT:
                    if entry == 0:
                        self.table[at << one] = v
                        entry = generation << 32
                        size += 1
                        self.cells[cell] += 1
                    self.table[(at << one) + one] = entry + 1
                elif entry != 0:
                    if entry & _TIMES > 1:
                        self.table[(at << one) + one] = entry - 1
                    else:
                        self.table[(at << one) + one] = 0
                        self.cells[cell] -= 1
                        size -= 1
                        free: Any = at  # what stands behind it and is looked for from before moves up
                        at = (at + one) & mask
                        next_entry = self.table[(at << one) + one]
                        while next_entry != 0:
                            home = _home(self.table[at << one], next_entry >> 32, mask)
                            if ((at - home) & mask) >= ((at - free) & mask):
                                self.table[free << one] = self.table[at << one]
                                self.table[(free << one) + one] = next_entry
                                self.table[(at << one) + one] = 0
                                free = at
                            at = (at + one) & mask
                            next_entry = self.table[(at << one) + one]
                different = self.cells[cell]
            elif k == RESET:
                ops.eras[p] += 1
            if (ops.shown_kinds >> k) & 1:
                out[ops.slot[m] if len(ops.slot) else m] = different
                m += 1
        self.counts[SIZE], self.counts[LIVES] = size, generations
        return ops.n

    def _live(self) -> tuple[Array, Array, Array, Array]:
        """(values, groups, how often they are held, whether the value is null) of the pairs of the groups' lives, in no
        order."""
        pairs = self.table.reshape(-1, 2)
        pairs = pairs[np.flatnonzero(pairs[:, 1])]
        generations = self.cells[1::2]
        group_of = np.full(int(self.counts[LIVES]), -1, np.int64)
        group_of[generations[generations >= 0]] = np.flatnonzero(generations >= 0)
        generation = pairs[:, 1] >> 32
        group = group_of[generation & ~_NULL]
        alive = np.flatnonzero(group >= 0)
        return pairs[alive, 0], group[alive], pairs[alive, 1] & _TIMES, generation[alive] >= _NULL

    def _keep(self, numbers: Array, group: Array, times: Array, null: Array) -> None:
        """Rebuilds the table with these pairs and room for more; renumbers the groups' epochs."""
        generations = self.cells[1::2]
        generations[generations >= 0] = np.arange(np.count_nonzero(generations >= 0))
        self.counts[LIVES] = np.count_nonzero(generations >= 0)
        places, self.most = 128, 8
        while self.most < 2 * len(numbers):
            places *= 2
            self.most = places // (16 if places <= _SPARSE else 4)
        self.counts[SIZE] = len(numbers)
        self.table: Array = np.zeros(2 * places, np.int64)
        _enter(numbers, ((generations[group] + np.where(null, _NULL, 0)) << 32) + times, self.table)

    def forget(self, groups: Array, instances: Array) -> None:
        fill_at(self.cells[::2], groups, 0)
        fill_at(self.cells[1::2], groups, -1)

    def _state(self, form: Form) -> dict[str, Any]:
        live = self._live()
        order = np.lexsort((live[0], live[3], live[1]))  # equal states are equal bytes
        numbers, group, times, null = (x[order] for x in live)
        values: Any = numbers
        if self.type is Type.STRING:
            values = Column(Type.STRING, np.where(null, -1, numbers).astype(np.int32))
        return {
            "values": values, "group": group, "held": times, "null": null,
            "count": self.cells[::2], "alive": self.cells[1::2] >= 0, **super()._state(form),
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        numbers = state["values"]
        if self.type is Type.STRING:
            codes = numbers.values.astype(np.int64)
            numbers = np.where(codes < 0, _FORMER_NULL, codes)
        null = np.asarray(state["null"]) if "null" in state else numbers == _FORMER_NULL
        numbers = np.where(null, 0, numbers)
        self.cells = np.stack([state["count"], state["alive"] - np.int64(1)], axis=1).ravel()
        super().load(state)
        self._keep(numbers, state["group"], state["held"], null)
