"""Running totals and counts of several aggregates in one loop.

What such a loop waits for is a group's state, which the cache does not hold where there are many groups, and what it
costs is instructions for each op. So up to four aggregates of a select keep a group's totals and counts in one line,
and go through the ops together, as long as they can: no nulls, no RESET rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...types import Type
from ..arrays import Array, lined, wider
from ..columns import Column
from ..jit import inlined, kernel
from .base import Feed, Grouped, ask

NOTHING, COUNT, WHOLE, REAL, MEAN = range(5)
"""What an aggregate shows: the number of rows, a sum of longs, a sum of doubles, their mean."""

EXACT = 1 << 52
"""Longs up to here, and their differences, are doubles."""
BOTH_EXACT = np.uint64(2 * EXACT - 1)

_LEFT = 2
_MOST = 4
_NO_VALUES = np.zeros(0, np.int64)
_TYPES = {COUNT: Type.LONG, WHOLE: Type.LONG, REAL: Type.DOUBLE, MEAN: Type.DOUBLE}


@inlined
def _moved(what: int, values: Array, i: Any, sign: Any, count: Any, real: Array, whole: Array, at: Any, o: Any,
           out: Array) -> Any:  # fmt: skip
    """Adds a value to a total or takes it away, and shows what the aggregate comes to. Returns what tells whether the
    total is beyond what is exact."""
    bits = np.uint64(0)
    if what == COUNT:
        out[o] = count
    elif what == WHOLE:
        number = whole[at] + sign * np.int64(values[i])
        whole[at] = number
        out[o] = number
        bits = np.uint64(number + EXACT)
    elif what != NOTHING:
        total = real[at] + sign * np.float64(values[i])
        real[at] = total
        out[o] = total / count if what == MEAN else total
    if what != NOTHING:
        whole[at + np.uint64(1)] = count
    return bits


def _together(
    shift: int, placed: bool, kinds: bool, by_pos: bool, grouped: bool, what0: int, what1: int, what2: int,
    what3: int, n: int, kind: Array, pos: Array, group: Array, slot: Array, shown: int, ahead: int, reach: int,
    real: Array, whole: Array, none: Array, values0: Array, values1: Array, values2: Array, values3: Array,
    out0: Array, out1: Array, out2: Array, out3: Array,
) -> int:  # fmt: skip
    """Runs aggregates whose counts are the same over ops that are CURRENT or EXPIRED, without branches on which, as no
    processor can guess that: a value that is not shown lies where the next one comes, so `none` and the `out` have room
    for one more, and if values are `placed`, by `slot`, that has one more too. `none` is 0 but where the count is
    nothing: there 1 after a CURRENT row, and `_LEFT` after an EXPIRED one. `kinds`, `by_pos` and `grouped` say whether
    there is a `kind`, a `pos` and a `group`.

    A group's row begins at its id, shifted by `shift`; in it aggregate k has its total, a double in `real` or a long in
    `whole`, at 2k, and its count behind it. Returns what is more than `BOTH_EXACT` if some long was not exact.

    The last ops, from which what is ahead is beyond the end, go through the loop apart: it has so little to do that
    looking for the end at each op took a tenth of its time.
    """
    m: Any = np.uint64(0)
    far: Any = np.uint64(0)
    two, four, six = np.uint64(2), np.uint64(4), np.uint64(6)
    turn: Any = max(n - max(ahead, reach), 0)
    for rest in range(2):
        soon, later = (np.uint64(0), np.uint64(0)) if rest else (np.uint64(ahead), np.uint64(reach))
        for j in range(turn if rest else 0, n if rest else turn):
            if ahead > 0:
                ask(np.uint64(j) + soon, np.uint64(j) + later, reach, by_pos, pos, group, values0, whole, shift)
            i = np.uint64(pos[j]) if by_pos else np.uint64(j)
            k: Any = np.int64(kind[j]) if kinds else 0
            at = np.uint64(group[i]) << np.uint64(shift) if grouped else np.uint64(0)
            sign = 1 - 2 * k
            count = whole[at + np.uint64(1)] + sign
            o: Any = np.uint64(slot[m]) if placed else m
            none[o] = np.uint8(count == 0) << k
            bits = _moved(what0, values0, i, sign, count, real, whole, at, o, out0)
            far |= bits
            bits = _moved(what1, values1, i, sign, count, real, whole, at + two, o, out1)
            far |= bits
            bits = _moved(what2, values2, i, sign, count, real, whole, at + four, o, out2)
            far |= bits
            bits = _moved(what3, values3, i, sign, count, real, whole, at + six, o, out3)
            far |= bits
            m += np.uint64((shown >> k) & 1)
    return far


@cache
def _loop(
    shift: int, placed: bool, kinds: bool, by_pos: bool, grouped: bool, asks: tuple[str, ...], *what: int
) -> Callable[..., int]:
    """`_together` for these aggregates; of `ahead` and `reach` only what it `asks` for is given, the other is 0."""
    fixed = {f"what{k}": w for k, w in enumerate(what)} | {name: 0 for name in ("ahead", "reach") if name not in asks}
    return kernel(_together, shift=shift, placed=placed, kinds=kinds, by_pos=by_pos, grouped=grouped, **fixed)


@kernel
def _undone(n: int, kind: Array, pos: Array, group: Array, whole: Array, shift: int, values: Array) -> None:
    """Takes back what `_together` did to the total and the count of a sum of longs."""
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        sign = 1 - 2 * np.int64(kind[j]) if len(kind) else np.int64(1)
        at = np.uint64(group[i]) << np.uint64(shift) if len(group) else np.uint64(0)
        whole[at] -= sign * np.int64(values[i])
        whole[at + np.uint64(1)] -= sign


class Cells:
    """What `size` aggregates hold for each group: a row of words, of a power of two of them, so that no row of up to
    a line of the cache lies in two."""

    def __init__(self, size: int) -> None:
        self.shift = 1 + (size - 1).bit_length()
        """Which power of two the words of a row are."""
        self.even = True
        """Whether the aggregates have counted the same rows."""
        self._words = np.zeros(0, np.int64)

    def grow(self, groups: int) -> None:
        """Room for so many groups."""
        have = len(self._words)
        if have < groups << self.shift:
            n = max(groups, wider(have >> self.shift), 16) << self.shift
            words = lined(n, np.int64)
            words[:have] = self._words
            self._words = words

    def words(self, first: int, dtype: type) -> Array:
        """From this word of the first group on."""
        return self._words[first:].view(dtype)

    def rows(self) -> Array:
        """[group, word]; total and count of aggregate k are the words 2k and 2k + 1."""
        return self._words.reshape(-1, 1 << self.shift)


class Running(Grouped):
    """An aggregate that holds a total and a count for each group, in `cells`, where it is number `at`."""

    def _hold(self, what: int) -> None:
        """Holds nothing yet; `what` it shows."""
        self._begin()
        self.what, self.type = what, _TYPES[what]
        self.cells, self.at = Cells(1), 0
        self.exact = True
        """Whether its totals, if longs, and their differences are doubles, so that it matters not that Siddhi takes
        longs away as doubles."""

    @property
    def dtype(self) -> type:
        """Of its total, and what it shows."""
        return np.float64 if self.type is Type.DOUBLE else np.int64

    def alone(self, args: tuple[Column, ...], feed: Feed) -> Column:
        """As `over`, whatever there is among the ops. `cells` have room."""
        raise NotImplementedError

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        return over_all([self], [args], feed)[0]

    def state(self) -> dict[str, Any]:
        rows = self.cells.rows()
        count = {"count": rows[:, 2 * self.at + 1], "epoch": self.epoch, "era": self.eras}
        return count if self.what == COUNT else {"total": rows[:, 2 * self.at].view(self.dtype), **count}

    def load(self, state: dict[str, Any]) -> None:
        count = state["count"]
        self.cells.grow(len(count))
        rows = self.cells.rows()[: len(count)]
        rows[:, 2 * self.at + 1] = count
        if self.what != COUNT:
            rows[:, 2 * self.at] = state["total"].view(np.int64)
        self.cells.even = False  # until all are there: `settle`
        self.exact = self.what != WHOLE or not bool(np.any((state["total"] > EXACT) | (state["total"] < -EXACT)))
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()


def share(aggregates: Sequence[Any]) -> None:
    """Lets new aggregates keep their states together where they can."""
    running = [a for a in aggregates if isinstance(a, Running)]
    for first in range(0, len(running), _MOST):
        members = running[first : first + _MOST]
        cells = Cells(len(members))
        for k, a in enumerate(members):
            a.cells, a.at = cells, k


def settle(aggregates: Sequence[Any]) -> None:
    """To be called when all of the `aggregates` that share states were loaded."""
    for cells, members in _by_cells(aggregates).items():
        counts = cells.rows()[:, [2 * a.at + 1 for _, a in members]]
        cells.even = bool(np.all(counts == counts[:, :1]))


def _by_cells(aggregates: Sequence[Any]) -> dict[Cells, list[tuple[int, Running]]]:
    """The running ones, with their places, by where they hold their states."""
    found: dict[Cells, list[tuple[int, Running]]] = {}
    for i, a in enumerate(aggregates):
        if isinstance(a, Running):
            found.setdefault(a.cells, []).append((i, a))
    return found


def over_all(aggregates: Sequence[Any], args: Sequence[tuple[Column, ...]], feed: Feed) -> list[Column]:
    """What `Aggregator.over` gives for each of the `aggregates`, which are all that share their states."""
    out: list[Any] = [None] * len(aggregates)
    for cells, members in _by_cells(aggregates).items():
        cells.grow(max(feed.groups, 1))
        masked = [any(column.null is not None for column in args[i]) for i, _ in members]
        cells.even = cells.even and not any(masked)
        plain = feed.comes_and_goes and not len(members[0][1].epoch)
        easy = [m for m, null in zip(members, masked, strict=True) if plain and m[1].exact and not null]
        for some in [easy] if cells.even and easy else [[m] for m in easy]:
            columns = _run(cells, [a for _, a in some], [args[i] for i, _ in some], feed)
            for (i, _), column in zip(some, columns, strict=True):
                out[i] = column
        for i, a in members:
            if out[i] is None:
                out[i] = a.alone(args[i], feed)
    return [a.over(args[i], feed) if out[i] is None else out[i] for i, a in enumerate(aggregates)]


def _run(cells: Cells, members: list[Running], args: list[tuple[Column, ...]], feed: Feed) -> list[Column | None]:
    """What aggregates come to that have counted the same, over ops that are CURRENT or EXPIRED; None for those that
    would not be exact, which are as if nothing had been."""
    first, size = members[0].at, feed.size + 1
    asks = {name: n for name, n in (("ahead", feed.ahead(1 << cells.shift)), ("reach", feed.reach)) if n}
    what, values, outs = [NOTHING] * _MOST, [_NO_VALUES] * _MOST, [_NO_VALUES] * _MOST
    for a, columns in zip(members, args, strict=True):
        k = a.at - first
        what[k], outs[k] = a.what, np.empty(size, a.dtype)
        if columns:
            values[k] = columns[0].values
    none = np.empty(size, np.uint8)
    n, kind, pos, group, _, slot, shown = feed.arrays
    if feed.slot is not None:
        slot = np.append(slot, feed.size)
    given = (len(a) > 0 for a in (kind, pos, group))
    far = _loop(cells.shift, feed.slot is not None, *given, (*asks,), *what)(
        n, kind, pos, group, slot, shown, *asks.values(), cells.words(2 * first, np.float64),
        cells.words(2 * first, np.int64), none, *values, *outs,
    )  # fmt: skip
    nothing = bool(none[:-1].any())
    result: list[Column | None] = []
    for a in members:
        k = a.at - first
        if a.what == WHOLE and far > BOTH_EXACT:
            _undone(n, kind, pos, group, cells.words(2 * a.at, np.int64), cells.shift, values[k])
            a.exact = False
            result.append(None)
            continue
        # A sum shows where a value is added, even where that leaves a count of nothing.
        null = None if a.what == COUNT or not nothing else none[:-1] != 0 if a.what == MEAN else none[:-1] == _LEFT
        result.append(Column(a.type, outs[k][:-1], null if null is not None and null.any() else None))
    return result
