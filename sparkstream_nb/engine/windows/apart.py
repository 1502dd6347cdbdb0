"""Sliding windows whose expired events nobody sees but the aggregates."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..jit import kernel
from ..rows import EXPIRED, ROOT_BITS
from .chain import ChainedLog

_BITS = np.int64(ROOT_BITS)

UNBOUNDED = 2**62
"""More events than a window holds."""

NO_ROOTS = np.empty(0, np.int64)


@kernel
def slide_apart(
    span: int, most: int, at: int, rows: int, row_root: Array, base: int, now: Array, last: int, ts: Array,
    places: Array, pos_out: Array, kind_out: Array,
) -> int:  # fmt: skip
    """The ops of events from the position `at` on, which lie in a row: each leaves `span` after its time `ts`, or when
    there are `most`. The clock is `now` by step, where the rows have roots, else by position. `places[0]` is the first
    event that is held.

    Aggregates do not care whether a timer or the next event drives an event out. Where the number did (`full`), the
    same event drives out no other by its time (`TimeLengthWindowProcessor.process`). One op a turn, without a branch on
    which.
    """
    n = 0
    i = 0
    full = False
    head = places[0]
    while i < rows:
        pos = at + i
        t = now[(row_root[i] >> _BITS) - base] if len(row_root) else now[pos]
        late = (ts[min(head, pos)] - t + span <= 0) & (not full)
        gone = (head < pos) & (late | (pos - head >= most))
        full = gone & (not late)
        pos_out[n] = head if gone else pos
        kind_out[n] = gone
        head += gone
        i += 1 - gone
        n += 1
    if last > 0:
        while head < at + rows and ts[head] - now[last - 1] + span <= 0:
            pos_out[n] = head
            kind_out[n] = EXPIRED
            head += 1
            n += 1
    places[0] = head
    return n


def slide_in_line(
    log: ChainedLog, span: int, most: int, at: int, roots: Array, base: int, now: Array, last: int, ts: Array,
    pos_out: Array, kind_out: Array,
) -> int:  # fmt: skip
    """`slide_apart` over the chain of a log that is in line."""
    head, tail = log.head[0], log.tail[0]
    places = np.array([at if head[0] < 0 else head[0]], np.int64)
    made: int = slide_apart(span, most, at, log.end - at, roots, base, now, last, ts, places, pos_out, kind_out)
    head[0], tail[0] = (places[0], log.end - 1) if places[0] < log.end else (-1, -1)
    return made
