"""Rate limits by event count: `output [all|first|last] every n events`. Without a clock; rows are held for at most n
events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.column_data import Array, Column
from ..columnar.rows import EXPIRED, Clock, Rows, concat_rows
from ..notation.kernels import compiled, kernel, struct
from ..select.selector import Selected, last_per_group
from ..state.declared import DeclaredByInstance, per_key
from .limiter_state import WaitingRows


class ByCount:
    """A limiter that only rows move on."""

    def next_due(self) -> int | None:
        """None: there are no timers."""
        return None

    @property
    def waiting_rows(self) -> WaitingRows | None:
        """None: it holds no rows back."""
        return None


@kernel
def _ordinals(key: Array, counts: Array, every: int, out: Array) -> None:
    """Number each row within its key, from 1; after `every` it starts again (0: never)."""
    for i in range(len(key)):
        n = counts[key[i]] + 1
        out[i] = n
        counts[key[i]] = 0 if n == every else n


@struct
class _Blocks:
    """Rows that leave in blocks: their indices, the row by which each is completed (`last`), and which rows stay. By
    instance, the first and the newest row of the block at hand and its size; `following` chains the rows of each.
    """

    def __init__(self, rows: int, instances: int) -> None:
        self.index, self.last, self.following = (np.empty(rows, np.int64) for _ in range(3))
        self.stays = np.ones(rows, np.bool_)
        self.first, self.newest = np.empty(instances, np.int64), np.empty(instances, np.int64)
        self.count = np.zeros(instances, np.int64)

    @compiled
    def complete(self, instance: Array, every: int) -> int:
        """The rows that leave in blocks of `every` of one instance, block by block as they are completed; how many."""
        n = 0
        for i in range(len(instance)):
            p = instance[i]
            if self.count[p] == 0:
                self.first[p] = i
            else:
                self.following[self.newest[p]] = i
            self.newest[p] = i
            self.count[p] += 1
            if self.count[p] == every:
                at = self.first[p]
                for _ in range(every):
                    self.index[n] = at
                    self.last[n] = i
                    self.stays[at] = False
                    n += 1
                    at = self.following[at]
                self.count[p] = 0
        return n


class _Counting(ByCount, DeclaredByInstance):
    """Counts the rows of each partition instance or group."""

    counts = per_key()

    def __init__(self, every: int) -> None:
        self.every = every
        self._create()

    def _number_rows(self, key: Array) -> Array:
        """int64[n]: the ordinal of each row within its key."""
        out = np.empty(len(key), np.int64)
        self._widen(int(key.max(initial=-1)) + 1)
        _ordinals(key, self.counts, self.every, out)
        return out


def of_kind(selection: Selected, last: int) -> Selected:
    """The rows whose kind is at most `last`."""
    rows = selection.rows
    if rows.kind is None or not (rows.kind > last).any():
        return selection
    keep = np.flatnonzero(rows.kind <= last)
    return Selected(rows.take(keep), None if selection.group is None else selection.group[keep])


def without_resets(selection: Selected) -> Selected:
    """CURRENT and EXPIRED rows only."""
    return of_kind(selection, EXPIRED)


class FirstEvents(_Counting):
    """`FirstPerEventOutputRateLimiter` and its grouped kind: the first of every n, of an instance or of a group.

    As there, `first every 1 events` emits the first event and never another; a RESET counts as an event.
    """

    def __init__(self, every: int, has_groups: bool) -> None:
        super().__init__(every if every > 1 else 0)
        self.has_groups = has_groups

    def run(self, selection: Selected, clock: Clock) -> Rows:
        rows = selection.rows
        key = selection.group if self.has_groups and selection.group is not None else rows.instances()
        keep = self._number_rows(key) == 1
        if rows.kind is not None:
            keep &= rows.kind <= EXPIRED
        return rows.where(keep)


class LastEvents(_Counting):
    """`LastPerEventOutputRateLimiter`: every n-th event."""

    def run(self, selection: Selected, clock: Clock) -> Rows:
        rows = without_resets(selection).rows
        if self.every < 1:
            return rows.take(np.empty(0, np.int64))
        return rows.where(self._number_rows(rows.instances()) == self.every)


class AllEvents(ByCount):
    """`AllPerEventOutputRateLimiter`: events are held until n have arrived, and are emitted with the n-th."""

    def __init__(self, every: int, types: Sequence[Type]) -> None:
        self.every = every
        none = np.empty(0, np.int64)
        self._waiting_rows = Rows([Column.empty(t) for t in types], none, none, none)
        self._group = np.empty(0, np.int64)

    def run(self, selection: Selected, clock: Clock) -> Rows:
        selection = without_resets(selection)
        rows, groups = selection.rows, selection.group
        if len(rows) == 0 or self.every < 1:
            return rows.take(np.empty(0, np.int64))
        waiting_count = len(self._waiting_rows)
        every = rows if waiting_count == 0 else concat_rows([self._waiting_rows, rows])
        group = np.append(self._group, np.zeros(len(rows), np.int64) if groups is None else groups)
        order_key, chunk = every.order_key.copy(), every.chunk.copy()
        if waiting_count:  # numbers of earlier calls are no longer valid; numbers of this call stay
            chunk[waiting_count:], chunk[:waiting_count] = rows.chunk, rows.chunk[0]
        # Rows that leave take the place of the row that completes their block, and with it its chunk and order key.
        if every.instance is None:
            full = len(every) // self.every * self.every
            last = np.repeat(np.arange(self.every - 1, full, self.every), self.every)
            out, left = every.slice(0, full), group[:full]
            self._waiting_rows, self._group = every.take(np.arange(full, len(every))), group[full:].copy()
        else:
            index, last, stay = self._blocks(every.instances())
            out, left = every.take(index), group[index]
            self._waiting_rows, self._group = every.take(stay), group[stay]
        out.order_key, out.chunk = order_key[last], chunk[last]
        return self._reduce_block(out, left, last)[0]

    @property
    def waiting_rows(self) -> WaitingRows:
        rows = self._waiting_rows
        return WaitingRows(rows.ts, rows.instances(), rows.columns)

    def _blocks(self, instance: Array) -> tuple[Array, Array, Array]:
        """Rows that leave, the row that completes the block of each, and the rows that stay."""
        n = len(instance)
        blocks = _Blocks(n, int(instance.max()) + 1)
        count = blocks.complete(instance, self.every)
        return blocks.index[:count], blocks.last[:count], np.flatnonzero(blocks.stays)

    def _reduce_block(self, rows: Rows, group: Array, block: Array) -> tuple[Rows, Array]:
        return rows, group

    def forget(self, instances: Array) -> None:
        keep = np.flatnonzero(~np.isin(self._waiting_rows.instances(), instances))
        self._waiting_rows, self._group = self._waiting_rows.take(keep), self._group[keep]

    def state(self) -> Any:
        r = self._waiting_rows
        return {"columns": list(r.columns), "ts": r.ts, "kind": r.kinds(), "part": r.instances(), "group": self._group}

    def load(self, state: Any) -> None:
        zeros = np.zeros(len(state["ts"]), np.int64)
        kind, instance = state["kind"], state["part"]
        self._waiting_rows = Rows(
            state["columns"], state["ts"], zeros, zeros,
            kind if kind.any() else None, instance if instance.any() else None,
        )
        self._group = state["group"].copy()

    @property
    def bytes(self) -> int:
        return sum(c.values.nbytes for c in self._waiting_rows.columns) + self._waiting_rows.ts.nbytes


class LastGroupEvents(AllEvents):
    """`LastGroupByPerEventOutputRateLimiter`: of every n events the last of each group, in the order of their first."""

    def _reduce_block(self, rows: Rows, group: Array, block: Array) -> tuple[Rows, Array]:
        if len(rows) == 0:
            return rows, group
        stay = last_per_group(block, group)
        return rows.take(stay), group[stay]
