"""The loop over the events and timers of a reordering step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import Array
from ..columnar.rows import ORDER_KEY_BITS
from ..notation.intrinsics import AHEAD, FAR, prefetch
from ..notation.kernels import inlined, kernel
from .reorder_buffer import (
    CHILD,
    COUNT,
    FRESH,
    GREATEST,
    HEAD,
    HELD,
    LATE,
    MERGED,
    NEXT,
    SCHEDULED,
    SENT,
    SLACK,
    TAIL,
    TIME,
    enqueue,
    let_go,
    let_go_fresh,
    meld,
)

ROW, STEP, OUT, DROPPED, CHUNK, AGAIN = range(6)
"""Places in a cursor: the row and the step that come next, how many events have left, how many came too late, the
number of the last chunk, and whether the row has been looked at and only waits for alpha."""

OWNER, DUE, IDLE = range(3)
"""The timer, of which there is one: the instance that set it (-1: none), the time (ms) at which it goes off, and
whether it waits to be set by the next event of any instance."""

NO_TIMEOUT = -1

_BITS = np.int64(ORDER_KEY_BITS)
_SECOND = 1000
_LEAST, _MOST = -(2**63), 2**63 - 1
_LAST = np.int64(_MOST)


@kernel
def java_round(value: float) -> int:
    """Java's `Math.round`."""
    whole: Any = np.floor(value + 0.5)
    if whole >= 2.0**63:
        return _MOST
    if whole <= -(2.0**63):
        return _LEAST
    return int(whole) if whole == whole else 0


@inlined
def _wake(p: int, now: int, timer: Array, fields: Array) -> None:
    """The timer goes off at the next whole second from when the instance last had one."""
    last = fields[p, SCHEDULED]
    fields[p, SCHEDULED] = last + np.int64(np.ceil((now - last) / 1000.0)) * _SECOND
    timer[OWNER], timer[DUE], timer[IDLE] = p, fields[p, SCHEDULED], 0


@inlined
def _go_off(timeout: int, adaptive: bool, timer: Array, node: Array, fields: Array, n: int, out: Array) -> int:
    """The timer emits events that have waited too long, and is set again while any wait."""
    p = timer[OWNER]
    rest = False
    if p >= 0:
        bound = timeout + timer[DUE] - 1
        n = let_go(p, bound, node, fields, n, out)
        rest = 0 <= fields[p, HEAD] <= fields[p, MERGED]
        if adaptive:
            n = let_go_fresh(p, bound, node, fields, n, out)
            rest = fields[p, HEAD] >= 0 or fields[p, FRESH] >= 0
    if rest:
        fields[p, SCHEDULED] += _SECOND
        timer[DUE] = fields[p, SCHEDULED]
    else:
        timer[IDLE] = 1
    return n


@inlined
def _merge(p: int, pos: int, time: int, most: int, alpha: float, node: Array, fields: Array) -> None:
    """Process an event with a new greatest time: the slack grows to the disorder since the last such event, and events
    since then are merged.
    """
    fresh = fields[p, FRESH]
    oldest = time
    if fields[p, TAIL] > fields[p, MERGED]:
        oldest = fields[p, GREATEST]
    if fresh >= 0:
        oldest = node[fresh, TIME]
        late = fields[p, LATE]
        late = meld(late, fresh, node)
        fields[p, LATE] = late
        fields[p, FRESH] = -1
    disorder = time - oldest
    if disorder > fields[p, SLACK]:
        if disorder >= most:
            fields[p, SLACK] = most
        elif alpha == 1.0:
            fields[p, SLACK] = disorder
        else:
            fields[p, SLACK] = java_round(disorder * alpha)
    fields[p, GREATEST] = time
    enqueue(pos, p, node, fields)
    fields[p, MERGED] = pos


@kernel
def reorder(
    adaptive: bool, batch: int, alpha: float, drop_late: bool, timeout: int, most: int, scheduler: int, at: int,
    time: Array, instance: Array, order_key: Array, chunk: Array, base: int, now: Array, moved: Array, last: int,
    cursor: Array,
    timer: Array, node: Array, fields: Array, words: Array, pos_out: Array, order_key_out: Array, chunk_out: Array,
) -> bool:  # fmt: skip
    """Merge rows and timers by order key: the positions of leaving events, with order keys and chunks. The rows begin
    at position `at`; `instance` is empty if there is one instance; `words` is `instance` flattened.

    Stops, with true, at the row `cursor[ROW]` when `adaptive` and its instance has had more than `batch` events, for
    alpha to be adapted; the next call continues there.
    """
    n = cursor[OUT]
    number = cursor[CHUNK]
    step = cursor[STEP]
    seen = cursor[AGAIN] > 0
    rows = len(time)
    far = len(words) > FAR and len(instance) > 0
    for i in range(cursor[ROW], rows + 1):
        if not seen and (i == 0 or i == rows or chunk[i] != chunk[i - 1]):
            limit: Any = order_key[i] if i < rows else _LAST
            while timeout != NO_TIMEOUT and step < last:
                tick = ((base + step) << _BITS) | scheduler
                if tick > limit:
                    break
                if moved[step]:
                    while timer[IDLE] == 0 and timer[DUE] <= now[step]:
                        first = n
                        number += 1
                        n = _go_off(timeout, adaptive, timer, node, fields, n, pos_out)
                        for k in range(first, n):
                            order_key_out[k] = tick
                            chunk_out[k] = number
                step += 1
            number += 1
        if i == rows:
            break
        p = instance[i] if len(instance) else 0
        if far and i + AHEAD < rows:
            soon = instance[i + AHEAD] * fields.shape[1]
            prefetch(words, soon)
            prefetch(words, soon + COUNT)
        pos = at + i
        t = time[i]
        if not seen:
            if drop_late and t < fields[p, SENT]:
                node[pos, HELD] = 0
                cursor[DROPPED] += 1
                continue
            if adaptive:
                fields[p, COUNT] += 1
                if fields[p, COUNT] > batch:
                    fields[p, COUNT] = 0
                    cursor[ROW], cursor[STEP], cursor[OUT], cursor[CHUNK], cursor[AGAIN] = i, step, n, number, 1
                    return True
        seen = False
        if timer[IDLE]:
            _wake(p, now[(order_key[i] >> _BITS) - base], timer, fields)
        node[pos, TIME], node[pos, NEXT], node[pos, CHILD], node[pos, HELD] = t, -1, -1, 1
        if t < fields[p, GREATEST]:
            fresh = meld(fields[p, FRESH], pos, node)
            fields[p, FRESH] = fresh
        elif t == fields[p, GREATEST]:
            enqueue(pos, p, node, fields)
        else:
            _merge(p, pos, t, most, alpha, node, fields)
            first = n
            n = let_go(p, t - fields[p, SLACK], node, fields, n, pos_out)
            for k in range(first, n):
                order_key_out[k] = order_key[i]
                chunk_out[k] = number
            if n > first:
                fields[p, SENT] = node[pos_out[n - 1], TIME]
    cursor[OUT] = n
    return False
