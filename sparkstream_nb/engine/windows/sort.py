"""`sort(n, attribute, 'asc' | 'desc', ...)`: the n least events."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Ref
from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, Clock, Rows
from ..notation.kernels import compiled, inlined, kernel, struct
from .chain import ChainedLog
from .window_protocol import Emission, Feed, Untimed, WindowSetup, with_ranks

_SIGNLESS = np.int64(2**63 - 1)
"""All bits of a double but its sign."""
_INFINITE, _NAN = np.array([np.inf, np.nan]).view(np.int64)


@kernel
def _after(keys: Array, arrival: Array, a: int, b: int) -> bool:
    """True if event `a` is after `b` in the sorted window; of equal ones the newer is."""
    for k in range(len(keys)):
        if keys[k, a] != keys[k, b]:
            return keys[k, a] > keys[k, b]
    return arrival[a] > arrival[b]


@kernel
def _double_numbers(bits: Array, out: Array) -> None:
    """Doubles, by their bits, as numbers of the same order; all that are no number are one."""
    for i in range(len(bits)):
        b = bits[i]
        if b & _SIGNLESS > _INFINITE:
            b = _NAN
        out[i] = b ^ _SIGNLESS if b < 0 else b


def sort_numbers(column: Column, strings: StringPool) -> Array:
    """int64 numbers in the order of the values by Java's `compareTo` (strings by UTF-16 units, NaN last)."""
    values = column.values
    if column.type is Type.STRING:
        distinct_codes, inverse = np.unique(values, return_inverse=True)
        texts = [(t or "").encode("utf-16-be", "surrogatepass") for t in strings.decode(distinct_codes)]
        place = np.empty(len(texts), np.int64)
        place[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        return place[inverse]
    if column.type in (Type.FLOAT, Type.DOUBLE):
        out = np.empty(len(values), np.int64)
        _double_numbers(values.astype(np.float64, copy=False).view(np.int64), out)
        return out
    return values.astype(np.int64, copy=False)


@struct
class SortWindow(Untimed):
    """The n least events in the order asked for; an event too many pushes out the greatest, itself perhaps."""

    log: ChainedLog

    stamps, is_ordered = None, True

    def __init__(self, setup: WindowSetup) -> None:
        self.setup, self.findable = setup, setup.findable
        self.moves = setup.findable
        self.length = int(setup.constant(0))
        self.by: list[tuple[int, bool]] = []
        for i, arg in enumerate(setup.args[1:], 1):
            if isinstance(arg, Ref):
                self.by.append((arg.attr, False))
            else:
                self.by[-1] = (self.by[-1][0], str(setup.constant(i)).lower() == "desc")
        self._clear()

    def _clear(self) -> None:
        self.log = ChainedLog(self.setup.types)
        self.arrival = np.zeros(0, np.int64)
        self.arrival_count = 0
        self.heap = np.full((0, self.length), -1, np.int64)
        self.size = np.zeros(0, np.int64)
        self.full = np.zeros(0, np.bool_)

    def _room(self, instances: int, n: int) -> None:
        """Room for `instances` instances, and in each for its heap after `n` more rows."""
        self.size, self.full = grown(self.size, instances), grown(self.full, instances, False)
        width = min(self.length, int(self.size.max(initial=0)) + n)
        if instances > self.heap.shape[0] or width > self.heap.shape[1]:
            wider = np.full((max(instances, self.heap.shape[0]), max(width, self.heap.shape[1])), -1, np.int64)
            wider[: self.heap.shape[0], : self.heap.shape[1]] = self.heap
            self.heap = wider

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        rows = self.setup.without_nulls(rows, [i for i, _ in self.by], "the window sorts by a null")
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self.arrival = grown(self.arrival, log.capacity)
        self.arrival[at : at + n] = np.arange(self.arrival_count, self.arrival_count + n)
        self.arrival_count += n
        self._room(instances, n)
        held_columns = log.between(0, log.end)
        keys = np.empty((len(self.by), log.end), np.int64)
        for k, (i, descending) in enumerate(self.by):
            numbers = sort_numbers(held_columns[i], self.setup.strings)
            keys[k] = ~numbers if descending else numbers
        findable, apart = self.setup.findable, self.setup.ops_only
        live_count = int(np.count_nonzero(log.alive[: log.end])) if findable else 0
        # An event comes and goes, with ENTER and LEAVE; held events may enter again with new places twice.
        out = Emission(4 * (n + live_count + n) if findable else 2 * n, apart)
        ranks = np.zeros(len(out.pos) if findable else 0, np.int64)
        places = np.empty(log.end if findable else 0, np.int64)
        if findable:
            places[np.lexsort((self.arrival[: log.end], *keys[::-1]))] = np.arange(log.end)
        self.keys, self.places, self.ranks = keys, places, ranks
        count = self._step(Feed(rows, at), clock.at(rows.order_key), out)
        result = out.beside(count, log, rows) if apart else out.rows(count, log, rows.instance is not None)
        if findable:
            result = with_ranks(result, ranks[:count])
        self._tidy()
        return result

    @compiled
    def _step(self, rows: Feed, now: Array, out: Emission) -> int:
        """`SortWindowProcessor.process`. `heap[p]` holds the positions of instance p with the greatest event first.

        Siddhi's list is in the order of arrival until the first event is too many (`full`), and sorted from then on:
        `places` are the log's positions in that order. Returns how many rows are put out, each in the chunk of the row
        that brought it.
        """
        if self.findable and rows.count > 0:
            out.chunks = rows.chunk[0]
            for p in range(len(self.full)):
                if self.full[p]:
                    self._enter_anew(p, -1, rows.order_key[0], out)
        for r in range(rows.count):
            pos = rows.first + r
            p = self.log.instance[pos]
            out.chunks = rows.chunk[r]
            if self.findable:
                self.ranks[out.count] = self.places[pos] if self.full[p] else 0
                out.emit(pos, ENTER, self.log.ts[pos], rows.order_key[r])
            out.put(pos, CURRENT, self.log.ts[pos], rows.order_key[r])
            self.log.alive[pos] = True
            surplus = self._insert(pos, p)
            if surplus >= 0:
                self.log.alive[surplus] = False
                if self.findable:
                    out.emit(surplus, LEAVE, self.log.ts[surplus], rows.order_key[r])
                    if not self.full[p]:
                        self._enter_anew(p, surplus, rows.order_key[r], out)
                    self.full[p] = True
                out.put(surplus, EXPIRED, now[r], rows.order_key[r])
        return out.count

    @inlined
    def _enter_anew(self, p: int, but: int, order_key: int, out: Emission) -> None:
        """Make the events of an instance, except `but`, leave the contents for joins and enter again with their places.
        """
        for i in range(self.size[p]):
            pos = self.heap[p, i]
            if pos != but:
                out.emit(pos, LEAVE, self.log.ts[pos], order_key)
                self.ranks[out.count] = self.places[pos]
                out.emit(pos, ENTER, self.log.ts[pos], order_key)

    @inlined
    def _insert(self, pos: int, p: int) -> int:
        """The event joins the heap of its instance; returns the one that is too many, -1 if none is."""
        surplus = -1
        if self.size[p] < self.length:
            i = self.size[p]
            self.size[p] += 1
            self.heap[p, i] = pos
            while i > 0:
                up = (i - 1) >> 1
                if not _after(self.keys, self.arrival, self.heap[p, i], self.heap[p, up]):
                    break
                self.heap[p, i], self.heap[p, up] = self.heap[p, up], self.heap[p, i]
                i = up
        elif self.length == 0 or _after(self.keys, self.arrival, pos, self.heap[p, 0]):
            surplus = pos
        else:
            surplus = self.heap[p, 0]
            self.heap[p, 0] = pos
            i = 0
            while True:
                low = 2 * i + 1
                if low >= self.length:
                    break
                if low + 1 < self.length and _after(
                    self.keys, self.arrival, self.heap[p, low + 1], self.heap[p, low]
                ):
                    low += 1
                if not _after(self.keys, self.arrival, self.heap[p, low], self.heap[p, i]):
                    break
                self.heap[p, i], self.heap[p, low] = self.heap[p, low], self.heap[p, i]
                i = low
        return surplus

    def _tidy(self) -> None:
        log = self.log
        before, keep = log.end, np.flatnonzero(log.alive[: log.end])
        log.tidy(self.heap.reshape(-1))
        if log.end != before:
            self.arrival = self.arrival[keep]

    def _held(self) -> Array:
        """The positions that the window holds, by instance and arrival."""
        keep = np.flatnonzero(self.log.alive[: self.log.end])
        return keep[np.lexsort((self.arrival[keep], self.log.instance[keep]))]

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        self.heap[instances[instances < len(self.heap)]] = -1
        fill_at(self.size, instances, 0)
        fill_at(self.full, instances, False)

    def state(self) -> dict[str, Any]:
        return {"events": self.log.state(self._held()), "parts": self.log.instances, "full": self.full.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Events that fit in push nothing out, so they just come once more."""
        self._clear()
        events = state["events"]
        n = len(events["ts"])
        zeros = np.zeros(n, np.int64)
        instance = events["part"]
        rows = Rows(events["columns"], events["ts"], zeros, zeros, None, instance)
        clock = Clock(0, np.zeros(1, np.int64), np.zeros(1, np.bool_), 0, 0)
        self.run(rows, clock, state["parts"], None)
        self.full = state["full"].copy()

    @property
    def bytes(self) -> int:
        return self.log.bytes
