"""Sliding windows whose expired events nobody sees but the aggregates."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..jit import kernel
from ..rows import EXPIRED
from .chain import ChainedLog

UNBOUNDED = 2**62
"""More events than a window holds."""


@kernel
def slide_apart(
    span: int, most: int, at: int, now: Array, until: int, ts: Array, places: Array, pos_out: Array, kind_out: Array
) -> int:
    """The ops of events from the position `at` on, which lie in a row: each leaves `span` after its time `ts`, or when
    there are `most`. `now` is the clock at each, `until` where it stands at the end. `places[0]` is the first event
    that is held.

    Aggregates do not care whether a timer or the next event drives an event out. Where the number did (`full`), the
    same event drives out no other by its time (`TimeLengthWindowProcessor.process`). One op a turn, without a branch on
    which.
    """
    n = 0
    i = 0
    full = False
    head = places[0]
    end = at + len(now)
    if at < end:
        # The times of the event at hand and of the first that is held, and of those after them, which are loaded before
        # it is known which is next.
        t = now[0]
        after = now[min(1, len(now) - 1)]
        leaves = ts[head] + span
        later = ts[min(head + 1, end - 1)] + span
        while i < len(now):
            pos = at + i
            late = (leaves <= t) & (not full)
            gone = (head < pos) & (late | (pos - head >= most))
            full = gone & (not late)
            pos_out[n] = head if gone else pos
            kind_out[n] = gone
            head += gone
            i += 1 - gone
            n += 1
            leaves = later if gone else leaves
            t = t if gone else after
            later = ts[min(head + 1, end - 1)] + span
            after = now[min(i + 1, len(now) - 1)]
    while head < end and ts[head] + span <= until:
        pos_out[n] = head
        kind_out[n] = EXPIRED
        head += 1
        n += 1
    places[0] = head
    return n


def slide_in_line(
    log: ChainedLog, span: int, most: int, at: int, now: Array, until: int, ts: Array, pos_out: Array, kind_out: Array
) -> int:
    """`slide_apart` over the chain of a log that is in line."""
    head, tail = log.head[0], log.tail[0]
    places = np.array([at if head[0] < 0 else head[0]], np.int64)
    made: int = slide_apart(span, most, at, now, until, ts, places, pos_out, kind_out)
    head[0], tail[0] = (places[0], log.end - 1) if places[0] < log.end else (-1, -1)
    return made
