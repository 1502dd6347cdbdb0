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
from ..notation.kernels import compiled, inlined, struct

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
    is_swapped = (two < one) | ((two == one) & (b < a))
    first: int = either(is_swapped, b, a)
    other = either(is_swapped, a, b)
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


@struct
class Leaving:
    """The positions of leaving events with order keys and chunks, `count` so far; `at` is the order key of the
    events that leave now, and `number` their chunk."""

    def __init__(self, room: int) -> None:
        self.pos, self.order_key, self.chunk = (np.empty(room, np.int64) for _ in range(3))
        self.count, self.number, self.at = 0, 0, 0

    @inlined
    def put(self, pos: int) -> None:
        self.pos[self.count] = pos
        self.order_key[self.count] = self.at
        self.chunk[self.count] = self.number
        self.count += 1


@struct
class WaitingEvents:
    """The events that wait: `node` int64[positions, 4], and `fields` int64[instances, 10]."""

    def __init__(self) -> None:
        self.node, self.fields = np.empty((0, WIDTH), np.int64), np.zeros((0, len(NEW)), np.int64)

    @property
    def words(self) -> Array:
        """`fields`, flattened."""
        return self.fields.reshape(-1)

    @inlined
    def enqueue(self, pos: int, p: int) -> None:
        """An event joins its instance's queue."""
        if self.fields[p, HEAD] < 0:
            self.fields[p, HEAD] = pos
        else:
            self.node[self.fields[p, TAIL], NEXT] = pos
        self.fields[p, TAIL] = pos

    @inlined
    def let_go(self, p: int, bound: int, out: Leaving) -> None:
        """Puts the merged events of an instance out whose time is not after `bound`."""
        head = self.fields[p, HEAD]
        late = self.fields[p, LATE]
        last_merged = self.fields[p, MERGED]
        # No event that was late outlasts the one that it was late for, so that the queue is the last to be empty.
        while head >= 0 and head <= last_merged:
            pos = head
            if late >= 0 and self.node[late, TIME] < self.node[head, TIME]:
                pos = late
            if self.node[pos, TIME] > bound:
                break
            if pos == head:
                head = self.node[head, NEXT]
            else:
                late = without_first(late, self.node)
            self.node[pos, HELD] = 0
            out.put(pos)
        self.fields[p, HEAD] = head
        self.fields[p, LATE] = late
        if head < 0:
            self.fields[p, TAIL] = -1

    @inlined
    def let_go_fresh(self, p: int, bound: int, out: Leaving) -> None:
        """`let_go` for the events that are not merged, when all merged ones have left."""
        fresh = self.fields[p, FRESH]
        while fresh >= 0 and self.node[fresh, TIME] <= bound:
            self.node[fresh, HELD] = 0
            out.put(fresh)
            fresh = without_first(fresh, self.node)
        self.fields[p, FRESH] = fresh
        head = self.fields[p, HEAD]
        while head >= 0 and self.node[head, TIME] <= bound:
            self.node[head, HELD] = 0
            out.put(head)
            head = self.node[head, NEXT]
        self.fields[p, HEAD] = head
        if head < 0:
            self.fields[p, TAIL] = -1

    @compiled
    def close_ranks(self, end: int, keep: Array) -> None:
        """The events that are held move together; into `keep` the positions that they had, in order."""
        n = 0
        for i in range(end):
            if self.node[i, HELD] > 0:
                keep[n] = i
                n += 1
                self.node[i, HELD] = n
        for p in range(len(self.fields)):
            for end_of in (HEAD, TAIL, LATE, FRESH):
                at: Any = self.fields[p, end_of]
                if at >= 0:
                    self.fields[p, end_of] = self.node[at, HELD] - 1
            self.fields[p, MERGED] = np.searchsorted(keep, self.fields[p, MERGED], "right") - 1
        for k in range(n):
            for link in (NEXT, CHILD):
                at = self.node[keep[k], link]
                if at >= 0:
                    self.node[keep[k], link] = self.node[at, HELD] - 1
        for k in range(n):
            source = keep[k]
            self.node[k, TIME], self.node[k, NEXT] = self.node[source, TIME], self.node[source, NEXT]
            self.node[k, CHILD], self.node[k, HELD] = self.node[source, CHILD], 1

    @compiled
    def hold(self, time: Array, instance: Array, fresh: Array) -> None:
        """Restores held events, in their order of arrival: their times, instances (none: there is one), and which of
        them are not merged."""
        for i in range(len(time)):
            p = instance[i] if len(instance) else 0
            self.node[i, TIME], self.node[i, NEXT], self.node[i, CHILD], self.node[i, HELD] = time[i], -1, -1, 1
            if not fresh[i]:
                self.fields[p, MERGED] = i
            if fresh[i] and time[i] < self.fields[p, GREATEST]:
                heap = meld(self.fields[p, FRESH], i, self.node)
                self.fields[p, FRESH] = heap
            elif self.fields[p, TAIL] >= 0 and time[i] < self.node[self.fields[p, TAIL], TIME]:
                heap = meld(self.fields[p, LATE], i, self.node)
                self.fields[p, LATE] = heap
            else:
                self.enqueue(i, p)
