"""Sliding windows whose expired events nobody sees but the aggregates."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..jit import kernel
from ..rows import CURRENT, EXPIRED
from .chain import ChainedLog


def _slide(
    bounded: bool, span: int, most: int, at: int, now: Array, until: int, ts: Array, places: Array, pos_out: Array,
    kind_out: Array,
) -> int:  # fmt: skip
    """The ops of events from the position `at` on, in a row: each leaves `span` after its time `ts`, or, where the
    window is `bounded`, when there are `most`. `now` is the clock at each, `until` where it stands at the end.
    `places[0]` is the first event that is held.

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
            late = leaves <= t
            if bounded:
                late = late & (not full)
            gone = (head < pos) & (late | (bounded & (pos - head >= most)))
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


slide_apart, _slide_bounded = kernel(_slide, bounded=False, most=0), kernel(_slide, bounded=True)


def slide_in_line(
    log: ChainedLog, span: int, most: int | None, at: int, now: Array, until: int, ts: Array, pos_out: Array,
    kind_out: Array,
) -> int:  # fmt: skip
    """`slide_apart` over the chain of a log that is in line, with `most` events where that is a number."""
    places = _first(log, at)
    if most is None:
        made: int = slide_apart(span, at, now, until, ts, places, pos_out, kind_out)
    else:
        made = _slide_bounded(span, most, at, now, until, ts, places, pos_out, kind_out)
    _hold(log, places)
    return made


@kernel
def _pushed_out(length: int, at: int, n: int, places: Array, pos_out: Array, kind_out: Array) -> int:
    m = 0
    head = places[0]
    for pos in range(at, at + n):
        if pos - head >= length:
            pos_out[m] = head
            kind_out[m] = EXPIRED
            head += 1
            m += 1
        pos_out[m] = pos
        kind_out[m] = CURRENT
        m += 1
    places[0] = head
    return m


def pushed_out(log: ChainedLog, length: int, at: int, n: int, pos_out: Array, kind_out: Array) -> int:
    """The ops of `n` events from the position `at` on of a log that is in line: each pushes out the one that came
    `length` before."""
    places = _first(log, at)
    made: int = _pushed_out(length, at, n, places, pos_out, kind_out)
    _hold(log, places)
    return made


def _first(log: ChainedLog, at: int) -> Array:
    """The first position that the chain holds; where it holds none, `at`."""
    return np.array([at if log.head[0][0] < 0 else log.head[0][0]], np.int64)


def _hold(log: ChainedLog, places: Array) -> None:
    """The chain holds all from there on."""
    log.head[0][0], log.tail[0][0] = (places[0], log.end - 1) if places[0] < log.end else (-1, -1)
