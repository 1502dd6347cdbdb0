"""The loops of `running_totals.py`: totals and counts of up to four aggregates over a sequence of ops.

A group's row of words starts at index `id << shift`. It holds the totals, each a double in `real` or a long in `whole`,
which are views that start at the first aggregate's total. `count` is a view that starts at the count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..columnar.arrays import Array
from ..notation.intrinsics import prefetch
from ..notation.kernels import inlined, kernel
from .aggregator_base import ask

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


@inlined
def _move_total(what: int, values: Array, i: Any, sign: Any, real: Array, whole: Array, at: Any) -> Any:
    """Add a value to a total or subtract it. Returns bits that tell whether the total is beyond the exact range."""
    bits = np.uint64(0)
    if what == WHOLE:
        number = whole[at] + sign * np.int64(values[i])
        whole[at] = number
        bits = np.uint64(number + EXACT)
    elif what in (REAL, MEAN):
        real[at] += sign * np.float64(values[i])
    return bits


@inlined
def _show(what: int, count: Any, real: Array, whole: Array, at: Any, o: Any, out: Array) -> None:
    """Outputs the value of an aggregate."""
    if what == COUNT:
        out[o] = count
    elif what == WHOLE:
        out[o] = whole[at]
    elif what == REAL:
        out[o] = real[at]
    elif what == MEAN:
        out[o] = real[at] / count


@inlined
def _all_moved(
    what0: int, what1: int, what2: int, what3: int, values0: Array, values1: Array, values2: Array, values3: Array,
    i: Any, sign: Any, real: Array, whole: Array, at: Any,
) -> Any:  # fmt: skip
    """`_move_total` for all of a row."""
    far = _move_total(what0, values0, i, sign, real, whole, at)
    bits = _move_total(what1, values1, i, sign, real, whole, at + np.uint64(1))
    far |= bits
    bits = _move_total(what2, values2, i, sign, real, whole, at + np.uint64(2))
    far |= bits
    bits = _move_total(what3, values3, i, sign, real, whole, at + np.uint64(3))
    return far | bits


@inlined
def _show_all(
    what0: int, what1: int, what2: int, what3: int, count: Any, real: Array, whole: Array, at: Any, o: Any, out0: Array,
    out1: Array, out2: Array, out3: Array,
) -> None:  # fmt: skip
    """`_show` for all of a row."""
    _show(what0, count, real, whole, at, o, out0)
    _show(what1, count, real, whole, at + np.uint64(1), o, out1)
    _show(what2, count, real, whole, at + np.uint64(2), o, out2)
    _show(what3, count, real, whole, at + np.uint64(3), o, out3)


def _together(
    shift: int, placed: bool, kinds: bool, by_pos: bool, grouped: bool, what0: int, what1: int, what2: int,
    what3: int, n: int, kind: Array, pos: Array, group: Array, slot: Array, shown: int, ahead: int, reach: int,
    count: Array, real: Array, whole: Array, none: Array, values0: Array, values1: Array, values2: Array,
    values3: Array, out0: Array, out1: Array, out2: Array, out3: Array,
) -> int:  # fmt: skip
    """Runs aggregates with equal counts over CURRENT and EXPIRED ops, without branches on the type, which no processor
    can predict: a value that is not shown is overwritten by the next one, so `none` and the `out` have room for one
    more, and if values are `placed`, by `slot`, that has one more too. `none` is 0 but where the count is nothing:
    there 1 after a CURRENT row, and `LEFT` after an EXPIRED one. `kinds`, `by_pos` and `grouped` say whether there is a
    `kind`, a `pos` and a `group`. Returns a value above `BOTH_EXACT` if some long was not exact.

    The last ops, whose prefetches would lie beyond the end, run in a second pass of the loop: the loop does so little
    that testing for the end at each op took a tenth of its time.
    """
    m: Any = np.uint64(0)
    far: Any = np.uint64(0)
    turn: Any = max(n - max(ahead, reach), 0)
    for rest in range(2):
        soon, later = (np.uint64(0), np.uint64(0)) if rest else (np.uint64(ahead), np.uint64(reach))
        for j in range(turn if rest else 0, n if rest else turn):
            if ahead > 0:
                ask(np.uint64(j) + soon, np.uint64(j) + later, reach, by_pos, pos, group, values0, count, shift)
            i = np.uint64(pos[j]) if by_pos else np.uint64(j)
            k: Any = np.int64(kind[j]) if kinds else 0
            at = np.uint64(group[i]) << np.uint64(shift) if grouped else np.uint64(0)
            sign = 1 - 2 * k
            c = count[at] + sign
            count[at] = c
            o: Any = np.uint64(slot[m]) if placed else m
            none[o] = np.uint8(c == 0) << k
            bits = _all_moved(what0, what1, what2, what3, values0, values1, values2, values3, i, sign, real, whole, at)
            far |= bits
            _show_all(what0, what1, what2, what3, c, real, whole, at, o, out0, out1, out2, out3)
            m += np.uint64((shown >> k) & 1)
    return far


@cache
def together(
    shift: int, placed: bool, kinds: bool, by_pos: bool, grouped: bool, asks: tuple[str, ...], *what: int
) -> Callable[..., int]:
    """`_together` for these aggregates; of `ahead` and `reach` only those in `asks` are given, the others are 0."""
    fixed = {f"what{k}": w for k, w in enumerate(what)} | {name: 0 for name in ("ahead", "reach") if name not in asks}
    return kernel(_together, shift=shift, placed=placed, kinds=kinds, by_pos=by_pos, grouped=grouped, **fixed)


def _push_ops(
    shift: int, near: bool, what0: int, what1: int, what2: int, what3: int, first: int, n: int, free: int, lag: int,
    group: Array, ahead: int, count: Array, real: Array, whole: Array, values0: Array, values1: Array, values2: Array,
    values3: Array, out0: Array, out1: Array, out2: Array, out3: Array,
) -> int:  # fmt: skip
    """`_together` over the ops of `rows.FixedLagOps`; the values after CURRENT rows are output. An event that
    expires was added before, so its group has a row. Separate loops for add and remove, without values that are not
    output, take half the time per row. Groups of expiring events are not prefetched if they are still cached (`near`).
    """
    far: Any = np.uint64(0)
    turn = max(n - ahead, free)
    for pushes, begin, end, soon in ((0, 0, free, 0), (1, free, turn, ahead), (1, turn, n, 0)):
        for j in range(begin, end):
            o = np.uint64(j)
            i = np.uint64(first) + o
            if pushes:
                old = i - np.uint64(lag)
                if ahead > 0:
                    prefetch(count, np.uint64(group[i + np.uint64(soon)]) << np.uint64(shift))
                if ahead > 0 and not near:
                    prefetch(count, np.uint64(group[old + np.uint64(soon)]) << np.uint64(shift))
                at = np.uint64(group[old]) << np.uint64(shift)
                count[at] -= 1
                bits = _all_moved(
                    what0, what1, what2, what3, values0, values1, values2, values3, old, -1, real, whole, at
                )  # fmt: skip
                far |= bits
            at = np.uint64(group[i]) << np.uint64(shift)
            c = count[at] + 1
            count[at] = c
            bits = _all_moved(what0, what1, what2, what3, values0, values1, values2, values3, i, 1, real, whole, at)
            far |= bits
            _show_all(what0, what1, what2, what3, c, real, whole, at, o, out0, out1, out2, out3)
    return far


@cache
def compile_push(shift: int, asks: bool, near: bool, *what: int) -> Callable[..., int]:
    """`_push_ops` for these aggregates; if it does not ask for anything ahead, `ahead` is not given."""
    fixed = {f"what{k}": w for k, w in enumerate(what)} | ({} if asks else {"ahead": 0})
    return kernel(_push_ops, shift=shift, near=near, **fixed)


def _of_one_group(
    what: int, kinds: bool, by_pos: bool, n: int, kind: Array, pos: Array, shown: int, count: int, total: Array,
    values: Array, none: Array, out: Array,
) -> tuple[int, int]:  # fmt: skip
    """`_together` for one aggregate without groups, whose count was `count`. `total` is kept in the processor's
    registers: from memory it would come too late for the next op. Returns the same value, and the new count.
    """
    m: Any = np.uint64(0)
    far: Any = np.uint64(0)
    t = total[0]
    for j in range(n):
        i = np.uint64(pos[j]) if by_pos else np.uint64(j)
        k: Any = np.int64(kind[j]) if kinds else 0
        count += 1 - 2 * k
        none[m] = np.uint8(count == 0) << k
        if what != COUNT:
            t += (1 - 2 * k) * total.dtype.type(values[i])
        if what == WHOLE:
            far |= np.uint64(t + EXACT)
        out[m] = count if what == COUNT else t / count if what == MEAN else t
        m += np.uint64((shown >> k) & 1)
    total[0] = t
    return far, count


@cache
def of_one_group(what: int, kinds: bool, by_pos: bool) -> Callable[..., tuple[int, int]]:
    """`_of_one_group` for this aggregate."""
    return kernel(_of_one_group, what=what, kinds=kinds, by_pos=by_pos)


def _pushing_of_one_group(
    what: int, first: int, n: int, free: int, lag: int, count: int, total: Array, values: Array, out: Array
) -> tuple[int, int]:
    """`_of_one_group` over the ops of `rows.FixedLagOps`."""
    far: Any = np.uint64(0)
    t = total[0]
    for j in range(n):
        i = np.uint64(first + j)
        if j < free:
            count += 1
        elif what != COUNT:
            t -= total.dtype.type(values[i - np.uint64(lag)])
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
    """`_pushing_of_one_group` for this aggregate."""
    return kernel(_pushing_of_one_group, what=what)


@kernel
def undone(
    n: int, kind: Array, pos: Array, group: Array, shift: int, count: Array, whole: Array, values: Array
) -> None:  # fmt: skip
    """Undoes a loop's changes to the total and the count of a sum of longs."""
    for j in range(n):
        i = np.uint64(pos[j]) if len(pos) else np.uint64(j)
        sign = 1 - 2 * np.int64(kind[j]) if len(kind) else np.int64(1)
        at = np.uint64(group[i]) << np.uint64(shift) if len(group) else np.uint64(0)
        whole[at] -= sign * np.int64(values[i])
        count[at] -= sign
