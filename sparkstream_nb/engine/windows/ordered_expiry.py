"""Sliding windows of one instance, whose events leave in the order in which they came; most of them for aggregates
alone, which see which events expire but not when.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import Array
from ..columnar.rows import CURRENT, EXPIRED, FixedLagOps, Rows, WindowOps
from ..notation.kernels import kernel
from .chain import ChainedLog
from .window_protocol import Emission, Feed


@kernel
def slide_apart(
    span: int, at: int, now: Array, until: int, ts: Array, places: Array, out: Emission
) -> int:
    """The ops of events from the position `at` on, in a row: each leaves `span` after its time `ts`. `now` is the clock
    at each, `until` its time at the end. `places[0]` is the first event that is held.

    For aggregates it does not matter whether a timer or the next event expires an event. No processor can predict the
    number that an event expires, so the next four are written as if they left, and those that stay are overwritten.
    """
    n: Any = np.uint64(0)
    head: Any = np.uint64(places[0])
    one, four = np.uint64(1), np.uint64(4)
    end = at + len(now)
    room = np.int64(len(out.pos)) - 4
    for i in range(len(now)):
        pos = at + i
        due = now[np.uint64(i)] - span
        leaving: Any = four
        while leaving == four and np.int64(head) + 4 <= pos and np.int64(n) <= room:
            late = np.uint64(ts[head] <= due)
            leaving = late
            for k in range(1, 4):
                late = late & np.uint64(ts[head + np.uint64(k)] <= due)
                leaving += late
            for k in range(4):
                out.pos[n + np.uint64(k)] = head + np.uint64(k)
                out.kind[n + np.uint64(k)] = EXPIRED
            head += leaving
            n += leaving
        if leaving == four:
            while np.int64(head) < pos and ts[head] <= due:
                out.pos[n] = head
                out.kind[n] = EXPIRED
                head += one
                n += one
        out.pos[n] = pos
        out.kind[n] = CURRENT
        n += one
    while np.int64(head) < end and ts[head] + span <= until:
        out.pos[n] = head
        out.kind[n] = EXPIRED
        head += one
        n += one
    places[0] = head
    return n


@kernel
def _slide_bounded(
    span: int, most: int, at: int, now: Array, until: int, ts: Array, places: Array, out: Emission
) -> int:
    """`slide_apart` with at most `most` events. An event before which one leaves because of `most` expires no other by
    its time (`TimeLengthWindowProcessor.process`).
    """
    head = places[0]
    end = at + len(now)
    for i in range(len(now)):
        pos = at + i
        due = now[i] - span
        while head < pos and ts[head] <= due:
            out.put_op(head, EXPIRED)
            head += 1
        if pos - head >= most:
            out.put_op(head, EXPIRED)
            head += 1
        out.put_op(pos, CURRENT)
    while head < end and ts[head] + span <= until:
        out.put_op(head, EXPIRED)
        head += 1
    places[0] = head
    return out.count


def slide_in_line(
    log: ChainedLog, span: int, most: int | None, at: int, now: Array, until: int, ts: Array, out: Emission
) -> int:
    """`slide_apart` over the chain of a log that is in line, with at most `most` events if given."""
    places = _first(log, at)
    if most is None:
        count: int = slide_apart(span, at, now, until, ts, places, out)
    else:
        count = _slide_bounded(span, most, at, now, until, ts, places, out)
    _hold(log, places)
    return count


@kernel
def _push_out(length: int, rows: Feed, now: Array, ts: Array, places: Array, out: Emission) -> int:
    head = places[0]
    for i in range(rows.count):
        pos = rows.first + i
        out.chunks = rows.chunk[i]
        if pos - head >= length:
            out.emit(head, EXPIRED, now[i], rows.order_key[i])
            head += 1
        out.emit(pos, CURRENT, ts[pos], rows.order_key[i])
    places[0] = head
    return out.count


def pushed_out(log: ChainedLog, length: int, at: int, now: Array, rows: Rows, out: Emission) -> int:
    """Output for `rows`, which begin at position `at` of a log that is in line: each pushes out the event
    that came `length` before.
    """
    places = _first(log, at)
    count: int = _push_out(length, Feed(rows, at), now, log.ts, places, out)
    _hold(log, places)
    return count


def pushed_beside(log: ChainedLog, length: int, at: int, rows: Rows) -> Rows:
    """`pushed_out` as the arriving rows with the operations beside them."""
    places, n = _first(log, at), len(rows)
    ops = FixedLagOps(at, n, min(n, length - (at - int(places[0]))), length)
    places[0] = max(places[0], log.end - length)
    _hold(log, places)
    passing = WindowOps(log.at(np.empty(0, np.int64)), np.empty(0, np.int8), None, True, ops)
    return Rows(rows.columns, rows.ts, rows.order_key, rows.chunk, None, None, passing)


def _first(log: ChainedLog, at: int) -> Array:
    """The first position that the chain holds; where it holds none, `at`."""
    return np.array([at if log.head[0][0] < 0 else log.head[0][0]], np.int64)


def _hold(log: ChainedLog, places: Array) -> None:
    """The chain holds all from there on."""
    log.head[0][0], log.tail[0][0] = (places[0], log.end - 1) if places[0] < log.end else (-1, -1)
