"""Running totals and counts of several aggregates of a select in one loop.

With many groups the loop waits for cache misses of group states; with few, it is bound by instructions per op. So up to
four aggregates of a select keep a group's totals and their count in one cache line and share one loop, as long as there
are no nulls and no RESET rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import Array, aligned_zeros, wider
from ..columnar.blocks import Blocks, Tracked
from ..columnar.column_data import Column
from ..state.saving import Form, by_change
from .aggregator_base import AggregateInput, Grouped
from .moving import (
    BOTH_EXACT,
    COUNT,
    EXACT,
    LEFT,
    MEAN,
    NEAR,
    NOTHING,
    REAL,
    WHOLE,
    Totals,
    compile_push,
    of_one_group,
    pushing_of_one_group,
    together,
    undone,
)

_MOST = 4
_NO_VALUES = np.zeros(0, np.int64)
_TYPES = {COUNT: Type.LONG, WHOLE: Type.LONG, REAL: Type.DOUBLE, MEAN: Type.DOUBLE}


class Cells:
    """The state of `size` aggregates: a row of words per group, a power of two, so that no row of up to a cache line
    spans two. The first word is the count, while it is the same for all; the totals follow."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.shift = size.bit_length()
        """Base-2 logarithm of the number of words of a row."""
        self._words = np.zeros(0, np.int64)
        self._counts: Array | None = None
        """Counts of each aggregate, at its total's position in `_words`, if the aggregates have not counted the same
        rows.
        """
        self._blocks = Blocks(8), Blocks(8)
        """Saved blocks of both arrays."""

    @property
    def even(self) -> bool:
        """True if the aggregates have counted the same rows."""
        return self._counts is None

    def grow(self, groups: int) -> None:
        """Make room for this number of groups."""
        have = len(self._words)
        if have < groups << self.shift:
            n = max(groups, wider(have >> self.shift), 16) << self.shift
            self._words = _more(self._words, n)
            if self._counts is not None:
                self._counts = _more(self._counts, n)

    def split(self) -> None:
        """Switches to a separate count for each aggregate."""
        if self._counts is None and self.size > 1:
            self._counts = aligned_zeros(len(self._words), np.int64)
            self._rows(self._counts)[:, 1:] = self._rows(self._words)[:, :1]
            self._blocks[1].forget()

    def unite(self) -> None:
        """Switches to a shared count, if all counts are the same."""
        if self._counts is not None:
            counts = self._rows(self._counts)[:, 1 : 1 + self.size]
            if np.all(counts == counts[:, :1]):
                self._rows(self._words)[:, 0] = counts[:, 0]
                self._counts = None
                self._blocks[0].forget()

    def totals(self, at: int, dtype: type) -> Array:
        """A view that starts at the total of aggregate `at` in the first row."""
        return self._words[1 + at :].view(dtype)

    def counts(self, at: int) -> Array:
        """A view that starts at the count of aggregate `at` in the first row."""
        return self._words if self._counts is None else self._counts[1 + at :]

    def clear(self, at: int, groups: Array) -> None:
        """Reset aggregate `at` for these groups. The other aggregates that share the cells must be reset too."""
        totals, counts = self.by_group(at)
        stored_groups = groups[groups < len(counts)]
        totals[stored_groups], counts[stored_groups] = 0, 0
        self._touch(stored_groups)

    def touch(self, feed: AggregateInput) -> None:
        """The groups of the ops of `feed` are written."""
        if not self._blocks[0].can_spare(feed.n) | self._blocks[1].can_spare(feed.n):
            return
        group = feed.group
        if len(group) == 0:
            group = np.zeros(1, np.int64)
        elif feed.fixed_lag is not None:
            first, end = feed.fixed_lag.first, feed.fixed_lag.first + feed.fixed_lag.n
            leavers = slice(first + feed.fixed_lag.free - feed.fixed_lag.lag, end - feed.fixed_lag.lag)
            group = np.concatenate([group[leavers], group[first:end]])
        elif feed.pos is not None:
            group = group[feed.pos]
        self._touch(group)

    def _touch(self, groups: Array) -> None:
        for blocks in self._blocks:
            blocks.touch(groups.astype(np.int64) << self.shift)

    def save_state(self) -> dict[str, Any]:
        """All of it, saved by change."""
        arrays = self._words, self._counts
        words, counts = (
            None if a is None else Tracked.of(b, 0, a) for a, b in zip(arrays, self._blocks, strict=True)
        )
        return {"words": words, "counts": counts}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `save_state`."""
        words, counts = state["words"], state["counts"]
        self._words = _more(words, len(words))
        self._counts = None if counts is None else _more(counts, len(counts))

    def _rows(self, words: Array) -> Array:
        return words.reshape(-1, 1 << self.shift)

    def by_group(self, at: int) -> tuple[Array, Array]:
        """(totals, as longs, counts) of aggregate `at`."""
        counts = self._rows(self._words)[:, 0] if self._counts is None else self._rows(self._counts)[:, 1 + at]
        return self._rows(self._words)[:, 1 + at], counts


def _more(words: Array, n: int) -> Array:
    out = aligned_zeros(n, np.int64)
    out[: len(words)] = words
    return out


class RunningAggregate(Grouped):
    """An aggregate with a total and a count per group, stored in `cells` as number `at`."""

    def _hold(self, what: int) -> None:
        """Holds nothing yet; `what` it shows."""
        self._begin()
        self.what, self.type = what, _TYPES[what]
        self.dtype = np.float64 if self.type is Type.DOUBLE else np.int64
        self.cells, self.at = Cells(1), 0
        self.exact = True
        """True if its totals, if longs, and their differences are doubles, so that it matters not that Siddhi takes
        longs away as doubles."""

    def alone(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        """`over` for ops of any type. `cells` have room, and counts of their own."""
        raise NotImplementedError

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        return over_all([self], [args], feed)[0]

    def forget(self, groups: Array, instances: Array) -> None:
        self.cells.clear(self.at, groups)

    def _state(self, form: Form) -> dict[str, Any]:
        """By change, all cells are in the state of the first aggregate that shares them."""
        epochs = super()._state(form)
        if form is by_change:
            return {"cells": self.cells.save_state() if self.at == 0 else None, "exact": self.exact, **epochs}
        totals, counts = self.cells.by_group(self.at)
        return {**({} if self.what == COUNT else {"total": totals.view(self.dtype)}), "count": counts, **epochs}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        if "cells" in state:
            if state["cells"] is not None:
                self.cells.load(state["cells"])
            self.exact = state["exact"]
            return
        n = len(state["count"])
        self.cells.grow(n)
        self.cells.split()  # until all are there: `settle`
        totals, counts = self.cells.by_group(self.at)
        counts[:n] = state["count"]
        if self.what != COUNT:
            totals[:n] = state["total"].view(np.int64)
        self.exact = self.what != WHOLE or not bool(np.any((state["total"] > EXACT) | (state["total"] < -EXACT)))


def share(aggregates: Sequence[Any]) -> None:
    """Makes new aggregates share their states if possible."""
    running = [a for a in aggregates if isinstance(a, RunningAggregate)]
    for first in range(0, len(running), _MOST):
        members = running[first : first + _MOST]
        cells = Cells(len(members))
        for k, a in enumerate(members):
            a.cells, a.at = cells, k


def settle(aggregates: Sequence[Any]) -> None:
    """To be called when all of the `aggregates` that share states were loaded."""
    for cells in _by_cells(aggregates):
        cells.unite()


def _by_cells(aggregates: Sequence[Any]) -> dict[Cells, list[tuple[int, RunningAggregate]]]:
    """The running ones, with their places, by where they hold their states."""
    by_cells: dict[Cells, list[tuple[int, RunningAggregate]]] = {}
    for i, a in enumerate(aggregates):
        if isinstance(a, RunningAggregate):
            by_cells.setdefault(a.cells, []).append((i, a))
    return by_cells


def over_all(aggregates: Sequence[Any], args: Sequence[tuple[Column, ...]], feed: AggregateInput) -> list[Column]:
    """Results of `Aggregator.over` for each of the `aggregates`, which include all that share their states."""
    out: list[Any] = [None] * len(aggregates)
    for cells, members in _by_cells(aggregates).items():
        cells.grow(max(feed.groups, 1))
        cells.touch(feed)
        has_nulls = [any(column.null is not None for column in args[i]) for i, _ in members]
        plain = feed.comes_and_goes and not len(members[0][1].epoch)
        easy = [m for m, null in zip(members, has_nulls, strict=True) if plain and m[1].exact and not null]
        if len(easy) < len(members):
            cells.split()
        for some in [easy] if easy and cells.even else [[m] for m in easy]:
            columns = _run(cells, [a for _, a in some], [args[i] for i, _ in some], feed)
            for (i, _), column in zip(some, columns, strict=True):
                out[i] = column
        for i, a in members:
            if out[i] is None:
                feed.lay_out()
                out[i] = a.alone(args[i], feed)
    others = [i for i, column in enumerate(out) if column is None]
    for i in sorted(others, key=lambda i: not aggregates[i].pushes):
        if not aggregates[i].pushes:
            feed.lay_out()
        out[i] = aggregates[i].over(args[i], feed)
    return out


def _run(
    cells: Cells, members: list[RunningAggregate], args: list[tuple[Column, ...]], feed: AggregateInput
) -> list[Column | None]:
    """Results of aggregates with equal counts, over CURRENT and EXPIRED ops; None for those that would not be exact,
    whose state is left unchanged.
    """
    if feed.slot is not None:
        feed.lay_out()
    size = feed.size + 1
    values = [columns[0].values if columns else _NO_VALUES for columns in args]
    outs: list[Array] = [np.empty(size, a.dtype) for a in members]
    none = None if feed.fixed_lag is not None else np.empty(size, np.uint8)
    if len(feed.group) or feed.slot is not None:
        far = _by_group(cells, members, values, feed, none, outs)
    else:
        far = _of_one_group(cells, members, values, feed, none, outs)
    if none is not None and not none[:-1].any():
        none = None
    result: list[Column | None] = []
    for a, column, out in zip(members, values, outs, strict=True):
        if a.what == WHOLE and far > BOTH_EXACT:
            cells.split()
            feed.lay_out()
            undone(a.ops(feed), cells.shift, cells.counts(a.at), cells.totals(a.at, np.int64), column)
            a.exact = False
            result.append(None)
            continue
        # A sum shows where a value is added, even where that leaves a count of nothing.
        null = None
        if none is not None and a.what != COUNT:
            null = none[:-1] != 0 if a.what == MEAN else none[:-1] == LEFT
        result.append(Column(a.type, out[:-1], null if null is not None and null.any() else None))
    return result


def _by_group(
    cells: Cells, members: list[RunningAggregate], values: list[Array], feed: AggregateInput, none: Array | None,
    outs: list[Array],
) -> int:  # fmt: skip
    """Fills `outs`, and `none` where ops are laid out; returns as the loops do."""
    first = members[0].at
    what, inputs, out = [NOTHING] * _MOST, [_NO_VALUES] * _MOST, [_NO_VALUES] * _MOST
    for a, v, o in zip(members, values, outs, strict=True):
        what[a.at - first], inputs[a.at - first], out[a.at - first] = a.what, v, o
    words = cells.counts(first), cells.totals(first, np.float64), cells.totals(first, np.int64)
    totals = Totals(what, inputs, out, words)
    if feed.fixed_lag is not None:
        group_distance = feed.group_distance(1 << cells.shift)
        push = compile_push(cells.shift, group_distance > 0, group_distance > 0 and feed.fixed_lag.lag <= NEAR, *what)
        return push(totals, feed.fixed_lag, feed.group, *((group_distance,) if group_distance else ()))
    ops = members[0].ops(feed)
    ops.group_distance = feed.group_distance(1 << cells.shift)
    if feed.slot is not None:
        ops.slot = np.append(ops.slot, feed.size)
    has = (len(a) > 0 for a in (ops.kind, ops.pos, ops.group))
    loop = together(cells.shift, feed.slot is not None, *has, ops.group_distance > 0, ops.event_distance > 0, *what)
    return loop(totals, ops, none)


def _of_one_group(
    cells: Cells, members: list[RunningAggregate], values: list[Array], feed: AggregateInput, none: Array | None,
    outs: list[Array],
) -> int:  # fmt: skip
    """`_by_group` without groups: one aggregate after the other."""
    count = cells.counts(members[0].at)
    far, after = 0, 0
    for a, v, out in zip(members, values, outs, strict=True):
        total, before = cells.totals(a.at, a.dtype), int(count[0])
        if feed.fixed_lag is not None:
            more, after = pushing_of_one_group(a.what)(feed.fixed_lag, before, total, v, out)
        else:
            ops = a.ops(feed)
            loop = of_one_group(a.what, len(ops.kind) > 0, len(ops.pos) > 0)
            more, after = loop(ops, before, total, v, none, out)
        far |= int(more)
    count[0] = after
    return far
