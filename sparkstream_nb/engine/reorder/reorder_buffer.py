"""The events that a reordering step holds back, ordered by time per partition instance.

An event is a node of four words at its position in the log. Each instance has

- a queue of the events that arrived in order;
- a heap of the late events: a pairing heap, because merging two is free and needs no memory but the nodes;
- a heap of the late ones that are not merged yet: those that came since the last event with a new greatest time. The
  queue's events behind that one (`MERGED`) are not merged either.

Of events with equal times the first to arrive is first; one in the queue arrived before any in the heap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import Array
from ..notation.intrinsics import either
from ..notation.kernels import inlined, kernel

TIME, NEXT, CHILD, HELD = range(4)
"""Fields of a node: its time; the one behind it in the queue, or among the children of the one above it in a heap; the
first of its own children (-1: none); whether it is held.
"""

WIDTH = 4

GREATEST, SLACK, SENT, HEAD, TAIL, LATE, FRESH, MERGED, SCHEDULED, COUNT = range(10)
"""Fields of an instance: the greatest time seen, the slack, the time of the last event emitted; the ends of the queue,
the order keys of the heap of late events and of the heap of late events not merged, and the last event with a new
greatest time (-1: none); the time at which its timer was last set, and its events since alpha was last adapted.
"""

NEW = np.array([0, 0, -1, -1, -1, -1, -1, -1, -1, 0], np.int64)
"""An instance without events so far."""


@inlined
def _link(a: int, b: int, node: Array) -> int:
    """The order key of one heap of the events of two. Which of two events is the first no processor can guess."""
    one: Any = node[a, TIME]
    two: Any = node[b, TIME]
    turned = (two < one) | ((two == one) & (b < a))
    first: int = either(turned, b, a)
    other = either(turned, a, b)
    node[other, NEXT] = node[first, CHILD]
    node[first, CHILD] = other
    return first


@inlined
def meld(a: int, b: int, node: Array) -> int:
    """`_link` for heaps that may be empty (-1)."""
    order_key: int = a
    if a < 0:
        order_key = b
    elif b >= 0:
        order_key = _link(a, b, node)
    return order_key


@inlined
def without_first(first: int, node: Array) -> int:
    """The order key of a heap without its first event: its children, two by two, become one."""
    rest = node[first, CHILD]
    pairs = -1
    while rest >= 0:
        one = rest
        two = node[one, NEXT]
        if two >= 0:
            rest = node[two, NEXT]
            one = _link(one, two, node)
        else:
            rest = -1
        node[one, NEXT] = pairs
        pairs = one
    order_key: int = pairs
    if order_key >= 0:
        pairs = node[order_key, NEXT]
        while pairs >= 0:
            one = pairs
            pairs = node[one, NEXT]
            order_key = _link(order_key, one, node)
        node[order_key, NEXT] = -1
    return order_key


@inlined
def enqueue(pos: int, p: int, node: Array, fields: Array) -> None:
    """An event joins its instance's queue."""
    if fields[p, HEAD] < 0:
        fields[p, HEAD] = pos
    else:
        node[fields[p, TAIL], NEXT] = pos
    fields[p, TAIL] = pos


@inlined
def let_go(p: int, bound: int, node: Array, fields: Array, n: int, out: Array) -> int:
    """Puts the merged events of an instance whose time is not after `bound` into `out`, from its n-th place on."""
    head = fields[p, HEAD]
    late = fields[p, LATE]
    merged = fields[p, MERGED]
    # No event that was late outlasts the one that it was late for, so that the queue is the last to be empty.
    while head >= 0 and head <= merged:
        pos = head
        if late >= 0 and node[late, TIME] < node[head, TIME]:
            pos = late
        if node[pos, TIME] > bound:
            break
        if pos == head:
            head = node[head, NEXT]
        else:
            late = without_first(late, node)
        node[pos, HELD] = 0
        out[n] = pos
        n += 1
    fields[p, HEAD] = head
    fields[p, LATE] = late
    if head < 0:
        fields[p, TAIL] = -1
    return n


@inlined
def let_go_fresh(p: int, bound: int, node: Array, fields: Array, n: int, out: Array) -> int:
    """`let_go` for the events that are not merged, when all merged ones have left."""
    fresh = fields[p, FRESH]
    while fresh >= 0 and node[fresh, TIME] <= bound:
        node[fresh, HELD] = 0
        out[n] = fresh
        n += 1
        fresh = without_first(fresh, node)
    fields[p, FRESH] = fresh
    head = fields[p, HEAD]
    while head >= 0 and node[head, TIME] <= bound:
        node[head, HELD] = 0
        out[n] = head
        n += 1
        head = node[head, NEXT]
    fields[p, HEAD] = head
    if head < 0:
        fields[p, TAIL] = -1
    return n


@kernel
def close_ranks(end: int, node: Array, fields: Array, keep: Array) -> None:
    """The events that are held move together; into `keep` the positions that they had, in order."""
    n = 0
    for i in range(end):
        if node[i, HELD] > 0:
            keep[n] = i
            n += 1
            node[i, HELD] = n
    for p in range(len(fields)):
        for end_of in (HEAD, TAIL, LATE, FRESH):
            at: Any = fields[p, end_of]
            if at >= 0:
                fields[p, end_of] = node[at, HELD] - 1
        fields[p, MERGED] = np.searchsorted(keep, fields[p, MERGED], "right") - 1
    for k in range(n):
        for link in (NEXT, CHILD):
            at = node[keep[k], link]
            if at >= 0:
                node[keep[k], link] = node[at, HELD] - 1
    for k in range(n):
        node[k, TIME], node[k, NEXT], node[k, CHILD] = node[keep[k], TIME], node[keep[k], NEXT], node[keep[k], CHILD]
        node[k, HELD] = 1


@kernel
def hold(time: Array, instance: Array, fresh: Array, node: Array, fields: Array) -> None:
    """Restores held events, in their order of arrival: their times, instances (none: there is one), and
    which of them are not merged."""
    for i in range(len(time)):
        p = instance[i] if len(instance) else 0
        node[i, TIME], node[i, NEXT], node[i, CHILD], node[i, HELD] = time[i], -1, -1, 1
        if not fresh[i]:
            fields[p, MERGED] = i
        if fresh[i] and time[i] < fields[p, GREATEST]:
            order_key = meld(fields[p, FRESH], i, node)
            fields[p, FRESH] = order_key
        elif fields[p, TAIL] >= 0 and time[i] < node[fields[p, TAIL], TIME]:
            order_key = meld(fields[p, LATE], i, node)
            fields[p, LATE] = order_key
        else:
            enqueue(i, p, node, fields)
