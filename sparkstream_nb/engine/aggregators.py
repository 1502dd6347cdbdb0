"""Aggregators of a query's select: signed running values per group, in the order of the rows.

A CURRENT row adds, an EXPIRED row takes away, a RESET row clears every group, and every row gets the value after it
(Siddhi's `AttributeAggregatorExecutor`). Nulls neither add nor take away. State is one array per quantity, by group
id; a RESET is an epoch: a group whose epoch is older than the last reset starts from nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numba import njit

from ..types import Type
from .arrays import grown
from .columns import DTYPES, Array, Column
from .rows import CURRENT, EXPIRED, RESET

_NONE = np.zeros(0, np.bool_)


class Aggregator(Protocol):
    """One aggregator of one query."""

    def run(self, column: Column | None, kind: Array | None, group: Array, groups: int) -> Column:
        """Values after each row. `kind` int8[n] or None (all CURRENT), `group` int32[n] ids below `groups`."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain data that `load` takes back."""
        ...

    def load(self, state: dict[str, Any]) -> None: ...


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sums(
    values: Array, null: Array, kind: Array, group: Array, total: Array, count: Array, epoch: Array, now: int,
    out: Array, out_count: Array,
) -> int:  # fmt: skip
    """Running sum and count of non-null values; returns the epoch after the last row."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            now += 1
            out_count[i] = 0
            continue
        g = group[i]
        if epoch[g] != now:
            epoch[g] = now
            total[g] = 0
            count[g] = 0
        if not (len(null) and null[i]):
            if k == CURRENT:
                total[g] += values[i]
                count[g] += 1
            elif k == EXPIRED:
                total[g] -= values[i]
                count[g] -= 1
        out[i] = total[g]
        out_count[i] = count[g]
    return now


@njit(cache=True)  # type: ignore[untyped-decorator]
def _long_minus(a: int, b: int) -> int:
    """a - b as Siddhi takes it away from a long sum: through a double, and back with Java's saturation."""
    d = float(a) - float(b)
    if d >= 9223372036854775807.0:
        return np.int64(9223372036854775807)
    if d <= -9223372036854775808.0:
        return np.int64(-9223372036854775808)
    return np.int64(d)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _long_sums(
    values: Array, null: Array, kind: Array, group: Array, total: Array, count: Array, epoch: Array, now: int,
    out: Array, out_count: Array,
) -> int:  # fmt: skip
    """As `_sums` for longs (`SumAttributeAggregatorExecutor.AggregatorStateLong`, whose `processRemove` takes a double)."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            now += 1
            out_count[i] = 0
            continue
        g = group[i]
        if epoch[g] != now:
            epoch[g] = now
            total[g] = 0
            count[g] = 0
        if not (len(null) and null[i]):
            if k == CURRENT:
                total[g] += values[i]
                count[g] += 1
            elif k == EXPIRED:
                total[g] = _long_minus(total[g], values[i])
                count[g] -= 1
        out[i] = total[g]
        out_count[i] = count[g]
    return now


@njit(cache=True)  # type: ignore[untyped-decorator]
def _counts(kind: Array, group: Array, count: Array, epoch: Array, now: int, out: Array) -> int:
    """Running number of rows, nulls too."""
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            now += 1
            out[i] = 0
            continue
        g = group[i]
        if epoch[g] != now:
            epoch[g] = now
            count[g] = 0
        if k == CURRENT:
            count[g] += 1
        elif k == EXPIRED:
            count[g] -= 1
        out[i] = count[g]
    return now


class Sum:
    """`sum`: LONG for int and long, DOUBLE for float and double; null when nothing is left."""

    def __init__(self, arg: Type | None, sliding: bool) -> None:
        self.long = arg in (Type.INT, Type.LONG)
        self.dtype = np.int64 if self.long else np.float64
        self.total = np.zeros(0, self.dtype)
        self.count = np.zeros(0, np.int64)
        self.epoch = np.zeros(0, np.int64)
        self.now = 0

    def _run(self, column: Column, kind: Array | None, group: Array, groups: int) -> tuple[Array, Array]:
        self.total = grown(self.total, groups)
        self.count = grown(self.count, groups)
        self.epoch = grown(self.epoch, groups, -1)
        n = len(group)
        out, left = np.empty(n, self.dtype), np.empty(n, np.int64)
        self.now = (_long_sums if self.long else _sums)(
            column.values.astype(self.dtype, copy=False), _NONE if column.null is None else column.null,
            np.empty(0, np.int8) if kind is None else kind, group, self.total, self.count, self.epoch, self.now, out, left,
        )  # fmt: skip
        return out, left

    def run(self, column: Column | None, kind: Array | None, group: Array, groups: int) -> Column:
        assert column is not None
        out, left = self._run(column, kind, group, groups)
        type = Type.LONG if self.long else Type.DOUBLE
        if kind is None and column.null is None:
            return Column(type, out)
        null = left == 0
        return Column(type, out, null if null.any() else None)

    def state(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count, "epoch": self.epoch, "now": self.now}

    def load(self, state: dict[str, Any]) -> None:
        self.total, self.count, self.epoch = state["total"].copy(), state["count"].copy(), state["epoch"].copy()
        self.now = state["now"]


class Avg(Sum):
    """`avg`: DOUBLE, the running sum over the running count. Siddhi adds up doubles, also for int and long."""

    def __init__(self, arg: Type | None, sliding: bool) -> None:
        super().__init__(Type.DOUBLE, sliding)

    def run(self, column: Column | None, kind: Array | None, group: Array, groups: int) -> Column:
        assert column is not None
        out, left = self._run(column, kind, group, groups)
        if kind is None and column.null is None:
            out /= left
            return Column(Type.DOUBLE, out)
        null = left == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            out /= left
        if not null.any():
            return Column(Type.DOUBLE, out)
        out[null] = 0.0
        return Column(Type.DOUBLE, out, null)


class Count:
    """`count()`: LONG, every row counts."""

    def __init__(self, arg: Type | None, sliding: bool) -> None:
        self.count = np.zeros(0, np.int64)
        self.epoch = np.zeros(0, np.int64)
        self.now = 0

    def run(self, column: Column | None, kind: Array | None, group: Array, groups: int) -> Column:
        self.count = grown(self.count, groups)
        self.epoch = grown(self.epoch, groups, -1)
        out = np.empty(len(group), np.int64)
        kinds = np.empty(0, np.int8) if kind is None else kind
        self.now = _counts(kinds, group, self.count, self.epoch, self.now, out)
        return Column(Type.LONG, out)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "epoch": self.epoch, "now": self.now}

    def load(self, state: dict[str, Any]) -> None:
        self.count, self.epoch, self.now = state["count"].copy(), state["epoch"].copy(), state["now"]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _extremes(
    values: Array, null: Array, kind: Array, group: Array, sign: int, head: Array, tail: Array, epoch: Array, now: int,
    node_value: Array, node_next: Array, node_prev: Array, free: int, spare: int, out: Array, out_null: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """A monotonic queue per group (linked lists in a pool): its front is the minimum of sign * value.

    Values that a newer, smaller one makes irrelevant leave from the back; an expired value leaves from where it
    stands, which is the front for windows that expire in order (`MinAttributeAggregatorExecutor`, its deque).
    """
    for i in range(len(group)):
        k = kind[i] if len(kind) else CURRENT
        if k == RESET:
            now += 1
            out_null[i] = True
            continue
        g = group[i]
        if epoch[g] != now:
            epoch[g] = now
            at = head[g]
            while at >= 0:  # back to the pool
                nxt = node_next[at]
                node_next[at] = free
                free = at
                spare += 1
                at = nxt
            head[g] = -1
            tail[g] = -1
        if not (len(null) and null[i]):
            v = values[i]
            if k == CURRENT:
                back = tail[g]
                while back >= 0 and (node_value[back] > v if sign > 0 else node_value[back] < v):
                    before = node_prev[back]
                    node_next[back] = free
                    free = back
                    spare += 1
                    back = before
                fresh = free
                free = node_next[fresh]
                spare -= 1
                node_value[fresh] = v
                node_next[fresh] = -1
                node_prev[fresh] = back
                if back >= 0:
                    node_next[back] = fresh
                else:
                    head[g] = fresh
                tail[g] = fresh
            elif k == EXPIRED:
                at = head[g]
                while at >= 0 and (node_value[at] < v if sign > 0 else node_value[at] > v):
                    at = node_next[at]
                if at >= 0 and node_value[at] == v:
                    before, after = node_prev[at], node_next[at]
                    if before >= 0:
                        node_next[before] = after
                    else:
                        head[g] = after
                    if after >= 0:
                        node_prev[after] = before
                    else:
                        tail[g] = before
                    node_next[at] = free
                    free = at
                    spare += 1
        if head[g] >= 0:
            out[i] = node_value[head[g]]
            out_null[i] = False
        else:
            out_null[i] = True
    return now, free, spare


@njit(cache=True)  # type: ignore[untyped-decorator]
def _running_extremes(
    values: Array, null: Array, kind: Array, group: Array, sign: int, best: Array, has: Array, epoch: Array, now: int,
    out: Array, out_null: Array,
) -> int:  # fmt: skip
    """The extreme since the last RESET, where nothing ever expires one by one."""
    for i in range(len(group)):
        if len(kind) and kind[i] == RESET:
            now += 1
            out_null[i] = True
            continue
        g = group[i]
        if epoch[g] != now:
            epoch[g] = now
            has[g] = False
        if not (len(null) and null[i]):
            v = values[i]
            if not has[g] or (best[g] > v if sign > 0 else best[g] < v):
                best[g] = v
                has[g] = True
        out[i] = best[g]
        out_null[i] = not has[g]
    return now


class Min:
    """`min` and `max`: the type of the argument; null when nothing is left.

    Where rows expire one by one the candidates are kept in a queue per group, else only the best so far.
    """

    sign = 1

    def __init__(self, arg: Type | None, sliding: bool) -> None:
        assert arg is not None
        self.type = arg
        self.sliding = sliding
        self.dtype = np.dtype(np.int64 if arg in (Type.INT, Type.LONG) else np.float64)
        self._clear()

    def _clear(self) -> None:
        self.epoch, self.now = np.zeros(0, np.int64), 0
        self.best, self.has = np.zeros(0, self.dtype), np.zeros(0, np.bool_)
        self.head, self.tail = np.full(0, -1, np.int64), np.full(0, -1, np.int64)
        self.value = np.zeros(0, self.dtype)
        self.next, self.prev, self.free, self.spare = np.zeros(0, np.int64), np.zeros(0, np.int64), -1, 0

    def _room(self, n: int) -> None:
        """At least `n` free nodes, for the case that every row is a new candidate."""
        if self.spare >= n:
            return
        have = len(self.value)
        self.value = grown(self.value, have + n)
        size = len(self.value)
        self.prev, chain = grown(self.prev, size, -1), grown(self.next, size)
        chain[have : size - 1] = np.arange(have + 1, size)
        chain[size - 1] = self.free
        self.next, self.free, self.spare = chain, have, self.spare + size - have

    def run(self, column: Column | None, kind: Array | None, group: Array, groups: int) -> Column:
        assert column is not None
        n = len(group)
        values = column.values.astype(self.dtype, copy=False)
        null_in = _NONE if column.null is None else column.null
        kinds = np.empty(0, np.int8) if kind is None else kind
        self.epoch = grown(self.epoch, groups, -1)
        out, null = np.zeros(n, self.dtype), np.empty(n, np.bool_)
        if self.sliding:
            self._room(n)
            self.head, self.tail = grown(self.head, groups, -1), grown(self.tail, groups, -1)
            self.now, self.free, self.spare = _extremes(
                values, null_in, kinds, group, self.sign, self.head, self.tail, self.epoch, self.now,
                self.value, self.next, self.prev, self.free, self.spare, out, null,
            )  # fmt: skip
        else:
            self.best, self.has = grown(self.best, groups), grown(self.has, groups, False)
            self.now = _running_extremes(
                values, null_in, kinds, group, self.sign, self.best, self.has, self.epoch, self.now, out, null
            )
        return Column(self.type, out.astype(DTYPES[self.type], copy=False), null if null.any() else None)

    def state(self) -> dict[str, Any]:
        """The queues laid end to end: a node's place in memory is no part of what it means."""
        live = self.epoch == self.now
        if not self.sliding:
            has = grown(self.has, len(live), False)[: len(live)] & live
            return {"values": self.best[: len(has)][has], "lengths": has.astype(np.int64)}
        values: list[float] = []
        lengths = []
        for g in range(len(self.head)):
            at, n = int(self.head[g]) if live[g] else -1, 0
            while at >= 0:
                values.append(self.value[at])
                at, n = int(self.next[at]), n + 1
            lengths.append(n)
        return {"values": np.array(values, self.dtype), "lengths": np.array(lengths, np.int64)}

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        values, lengths = state["values"], state["lengths"]
        groups = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        if len(lengths):
            self.run(Column(Type.LONG if self.dtype == np.int64 else Type.DOUBLE, values), None, groups, len(lengths))


class Max(Min):
    sign = -1


AGGREGATORS: dict[str, Callable[[Type | None, bool], Aggregator]] = {
    "sum": Sum,
    "avg": Avg,
    "count": Count,
    "min": Min,
    "max": Max,
}
"""Aggregator by its key in `plan.functions.AGGREGATORS`; each takes the type of its first argument,
and whether rows of its query expire one by one."""
