"""The loops of `running_totals.py`: totals and counts of up to four aggregates over a sequence of ops.

A group's row of words starts at index `id << shift`. It holds the totals, each a double in `doubles` or a long in
`longs`, which are views that start at the first aggregate's total. `count` is a view that starts at the count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..columnar.arrays import Array
from ..columnar.rows import FixedLagOps
from ..notation.intrinsics import prefetch
from ..notation.kernels import inlined, kernel, struct
from .aggregator_base import Ops

NOTHING, COUNT, WHOLE, REAL, MEAN = range(5)
"""Kinds of output of an aggregate: the number of rows, a sum of longs, a sum of doubles, their mean."""

EXACT = 1 << 52
"""Longs up to here, and their differences, are doubles."""
BOTH_EXACT = np.uint64(2 * EXACT - 1)

NEAR = 1 << 12
"""Number of events after which an event's group is still in a near cache. To prefetch it all the same took
a tenth of the loop's time at 10,000 and 100,000 groups; not to prefetch took a tenth more with four times as many
events.
"""

LEFT = 2
"""Says that the last row of a group left."""


@struct
class Totals:
    """Aggregates with equal counts, up to four, in a loop: `what` each is, its values, and where its outputs go.
    `count`, `doubles` and `longs` are views of the groups' words."""

    what: list[int]
    values: list[Array]
    outs: list[Array]

    def __init__(
        self, what: list[int], values: list[Array], outs: list[Array], words: tuple[Array, Array, Array]
    ) -> None:
        self.what, self.values, self.outs = what, values, outs
        self.count, self.doubles, self.longs = words

    @inlined
    def _move(self, number: int, i: Any, sign: Any, at: Any) -> Any:
        """Add a value to a total or subtract it. Returns bits that tell whether the total is beyond the exact range."""
        bits = np.uint64(0)
        if self.what[number] == WHOLE:
            total = self.longs[at] + sign * np.int64(self.values[number][i])
            self.longs[at] = total
            bits = np.uint64(total + EXACT)
        elif self.what[number] in (REAL, MEAN):
            self.doubles[at] += sign * np.float64(self.values[number][i])
        return bits

    @inlined
    def _show(self, number: int, count: Any, at: Any, o: Any) -> None:
        """Outputs the value of an aggregate."""
        if self.what[number] == COUNT:
            self.outs[number][o] = count
        elif self.what[number] == WHOLE:
            self.outs[number][o] = self.longs[at]
        elif self.what[number] == REAL:
            self.outs[number][o] = self.doubles[at]
        elif self.what[number] == MEAN:
            self.outs[number][o] = self.doubles[at] / count

    @inlined
    def move_all(self, i: Any, sign: Any, at: Any) -> Any:
        """`_move` for all of a row."""
        far = self._move(0, i, sign, at)
        bits = self._move(1, i, sign, at + np.uint64(1))
        far |= bits
        bits = self._move(2, i, sign, at + np.uint64(2))
        far |= bits
        bits = self._move(3, i, sign, at + np.uint64(3))
        return far | bits

    @inlined
    def show_all(self, count: Any, at: Any, o: Any) -> None:
        """`_show` for all of a row."""
        self._show(0, count, at, o)
        self._show(1, count, at + np.uint64(1), o)
        self._show(2, count, at + np.uint64(2), o)
        self._show(3, count, at + np.uint64(3), o)


def _together(
    totals: Totals, ops: Ops, none: Array, shift: int, has_slots: bool, has_kinds: bool, by_pos: bool, has_groups: bool
) -> int:
    """Runs aggregates with equal counts over CURRENT and EXPIRED ops, without branches on the type, which no processor
    can predict: a value that is not shown is overwritten by the next one, so `none` and the outputs have room for one
    more, and if `has_slots`, where values go by `slot`, that has one more too. `none` is 0 but where the count is
    nothing: there 1 after a CURRENT row, and `LEFT` after an EXPIRED one. `has_kinds`, `by_pos` and `has_groups` say
    whether there is a `kind`, a `pos` and a `group`. Returns a value above `BOTH_EXACT` if some long was not exact.

    The last ops, whose prefetches would lie beyond the end, run in a second pass of the loop: the loop does so little
    that testing for the end at each op took a tenth of its time.
    """
    m: Any = np.uint64(0)
    far: Any = np.uint64(0)
    turn: Any = max(ops.n - max(ops.group_distance, ops.event_distance), 0)
    for rest in range(2):
        soon, later = (
            (np.uint64(0), np.uint64(0)) if rest else (np.uint64(ops.group_distance), np.uint64(ops.event_distance))
        )
        for j in range(turn if rest else 0, ops.n if rest else turn):
            if ops.group_distance > 0:
                ops.ask(np.uint64(j) + soon, np.uint64(j) + later, by_pos, totals.values[0], totals.count, shift)
            i = np.uint64(ops.pos[j]) if by_pos else np.uint64(j)
            k: Any = np.int64(ops.kind[j]) if has_kinds else 0
            at = np.uint64(ops.group[i]) << np.uint64(shift) if has_groups else np.uint64(0)
            sign = 1 - 2 * k
            c = totals.count[at] + sign
            totals.count[at] = c
            o: Any = np.uint64(ops.slot[m]) if has_slots else m
            none[o] = np.uint8(c == 0) << k
            bits = totals.move_all(i, sign, at)
            far |= bits
            totals.show_all(c, at, o)
            m += np.uint64((ops.shown_kinds >> k) & 1)
    return far


@cache
def together(
    shift: int,
    has_slots: bool,
    has_kinds: bool,
    by_pos: bool,
    has_groups: bool,
    prefetches_groups: bool,
    prefetches_events: bool,
    *what: int,
) -> Callable[..., int]:
    """`_together` for these aggregates; `prefetches_groups` and `prefetches_events`: whether `group_distance` and
    `event_distance` are more than 0."""
    constants: Any = {f"totals.what[{k}]": w for k, w in enumerate(what)}
    constants |= {
        f"ops.{name}": 0
        for name, prefetches in (("group_distance", prefetches_groups), ("event_distance", prefetches_events))
        if not prefetches
    }
    return kernel(
        _together,
        shift=shift,
        has_slots=has_slots,
        has_kinds=has_kinds,
        by_pos=by_pos,
        has_groups=has_groups,
        **constants,
    )


def _push(totals: Totals, lag: FixedLagOps, group: Array, group_distance: int, shift: int, near: bool) -> int:
    """`_together` over the ops of `rows.FixedLagOps`; the values after CURRENT rows are output. An event that
    expires was added before, so its group has a row. Separate loops for add and remove, without values that are not
    output, take half the time per row. Groups of expiring events are not prefetched if they are still cached (`near`).
    """
    far: Any = np.uint64(0)
    turn = max(lag.n - group_distance, lag.free)
    for pushes, begin, end, soon in ((0, 0, lag.free, 0), (1, lag.free, turn, group_distance), (1, turn, lag.n, 0)):
        for j in range(begin, end):
            o = np.uint64(j)
            i = np.uint64(lag.first) + o
            if pushes:
                leaver = i - np.uint64(lag.lag)
                if group_distance > 0:
                    prefetch(totals.count, np.uint64(group[i + np.uint64(soon)]) << np.uint64(shift))
                if group_distance > 0 and not near:
                    prefetch(totals.count, np.uint64(group[leaver + np.uint64(soon)]) << np.uint64(shift))
                at = np.uint64(group[leaver]) << np.uint64(shift)
                totals.count[at] -= 1
                bits = totals.move_all(leaver, -1, at)
                far |= bits
            at = np.uint64(group[i]) << np.uint64(shift)
            c = totals.count[at] + 1
            totals.count[at] = c
            bits = totals.move_all(i, 1, at)
            far |= bits
            totals.show_all(c, at, o)
    return far


@cache
def compile_push(shift: int, prefetches_groups: bool, near: bool, *what: int) -> Callable[..., int]:
    """`_push` for these aggregates; if nothing is asked for ahead, `group_distance` is not given."""
    constants: Any = {f"totals.what[{k}]": w for k, w in enumerate(what)} | (
        {} if prefetches_groups else {"group_distance": 0}
    )
    return kernel(_push, shift=shift, near=near, **constants)


def _of_one_group(
    ops: Ops, count: int, total: Array, values: Array, none: Array, out: Array, what: int, columns: int
) -> tuple[int, int]:
    """`_together` for one aggregate without groups, whose count was `count`. `total` is kept in the processor's
    registers: from memory it would come too late for the next op. `columns`: 1 if there is a `kind`, plus 2 if there is
    a `pos`. Returns the same value, and the new count.
    """
    m: Any = np.uint64(0)
    far: Any = np.uint64(0)
    t = total[0]
    for j in range(ops.n):
        i = np.uint64(ops.pos[j]) if columns & 2 else np.uint64(j)
        k: Any = np.int64(ops.kind[j]) if columns & 1 else 0
        count += 1 - 2 * k
        none[m] = np.uint8(count == 0) << k
        if what != COUNT:
            t += (1 - 2 * k) * total.dtype.type(values[i])
        if what == WHOLE:
            far |= np.uint64(t + EXACT)
        out[m] = count if what == COUNT else t / count if what == MEAN else t
        m += np.uint64((ops.shown_kinds >> k) & 1)
    total[0] = t
    return far, count


@cache
def of_one_group(what: int, kinds: bool, by_pos: bool) -> Callable[..., tuple[int, int]]:
    """`_of_one_group` for this aggregate."""
    return kernel(_of_one_group, what=what, columns=kinds + 2 * by_pos)


def _push_one_group(
    lag: FixedLagOps, count: int, total: Array, values: Array, out: Array, what: int
) -> tuple[int, int]:
    """`_of_one_group` over the ops of `rows.FixedLagOps`."""
    far: Any = np.uint64(0)
    t = total[0]
    for j in range(lag.n):
        i = np.uint64(lag.first + j)
        if j < lag.free:
            count += 1
        elif what != COUNT:
            t -= total.dtype.type(values[i - np.uint64(lag.lag)])
            if what == WHOLE:
                far |= np.uint64(t + EXACT)
        if what != COUNT:
            t += total.dtype.type(values[i])
        if what == WHOLE:
            far |= np.uint64(t + EXACT)
        out[np.uint64(j)] = count if what == COUNT else t / count if what == MEAN else t
    total[0] = t
    return far, count


@cache
def pushing_of_one_group(what: int) -> Callable[..., tuple[int, int]]:
    """`_push_one_group` for this aggregate."""
    return kernel(_push_one_group, what=what)


@kernel
def undone(ops: Ops, shift: int, count: Array, totals: Array, values: Array) -> None:
    """Undoes a loop's changes to the total and the count of a sum of longs."""
    for j in range(ops.n):
        i = np.uint64(ops.pos[j]) if len(ops.pos) else np.uint64(j)
        sign = 1 - 2 * np.int64(ops.kind[j]) if len(ops.kind) else np.int64(1)
        at = np.uint64(ops.group[i]) << np.uint64(shift) if len(ops.group) else np.uint64(0)
        totals[at] -= sign * np.int64(values[i])
        count[at] -= sign
