"""The contents of a join's two sides, and the loop that inserts, removes and probes rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import grown, wider
from ..columnar.column_data import Array
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, Rows
from ..notation.kernels import compiled, inlined, kernel, struct

_BLOCK = 1 << 15
"""Pairs that one pass of the loop may make before the rest of the condition is evaluated over them, in the caches."""

_GONE, _LOST = 0, -1
"""Places of events that the contents do not hold. A lost one was looked at and will not expire."""

_NEXT, _PREV, _KEY, _ALIVE, _CELL = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), 4
"""Fields of a position's cell, int32 side by side: the neighbours among the positions of its key, its key, and whether
it is held.
"""

_HEAD, _TAIL = np.uint64(0), np.uint64(1)


@kernel
def _move(keep: Array, cells: Array, ends: Array, place: Array, new_places: Array) -> int:
    """The events at `keep`, which are all that are alive, move to 0, 1, 2 ...; `new_places` is room for where each
    comes. Places move by those before the first that holds something; returns how many."""
    new_places[0] = 0
    for i in range(len(keep)):
        new_places[keep[i] + 1] = i + 1
    for i in range(len(keep)):
        p = keep[i] + 1
        of = cells[p, _KEY]
        after = cells[p, _NEXT]
        before = cells[p, _PREV]
        cells[p, _ALIVE] = 0
        cells[i + 1, _ALIVE] = 1
        cells[i + 1, _KEY] = of
        cells[i + 1, _NEXT] = new_places[after] if of >= 0 else 0
        cells[i + 1, _PREV] = new_places[before] if of >= 0 else 0
    for k in range(len(ends)):
        if ends[k, _HEAD] > 0:
            ends[k, _HEAD] = new_places[ends[k, _HEAD]]
            ends[k, _TAIL] = new_places[ends[k, _TAIL]]
    cut = 0
    while cut < len(place) and place[cut] == _GONE:
        cut += 1
    for e in range(cut, len(place)):
        place[e - cut] = new_places[place[e]] if place[e] > 0 else place[e]
    for e in range(len(place) - cut, len(place)):
        place[e] = _GONE
    return cut


def _longer(array: Array, n: int, count: int) -> Array:
    """`array` with room for `n` along its second axis. The first `count` places are kept, the others are undefined. The
    same array if it has room."""
    k, have, width = array.shape
    if have >= n:
        return array
    out = np.empty((k, max(n, wider(have)), width), array.dtype)
    out[:, :count] = array[:, :count]
    return out


@struct
@dataclass
class Lookups:
    """The rows of all sides, in order, that enter, leave and look into a join's contents.

    `instance` is empty if there is one. `slot` is the place of a row's event on its side, -1 where it changes no
    contents, -2 - slot for a row of a window that `loses` events. Rows up to kind `last` of the sides that are
    `triggers` make pairs. `probe_positions`, unless it is empty, gets the positions of leaving rows whose contents were
    looked into since they came. `kind` of a row that no longer counts becomes LEAVE.
    """

    side: Array
    kind: Array
    key: Array
    slot: Array
    instance: Array
    triggers: Array
    loses: Array
    probe_positions: Array
    last: int = EXPIRED


@struct
class Contents:
    """The contents of one or two sides: values by side, and a linked list per join key as arrays with a row per side.

    `rank` is an order within a side other than the order of entry.
    """

    def __init__(self, types: Sequence[tuple[Type, ...]]) -> None:
        k = len(types)
        self.logs = [EventLog(t) for t in types]
        self.rank = [np.zeros(0, np.int64) for _ in types]
        self._cells = np.zeros((k, 1, _CELL), np.int32)
        self._ends = np.zeros((k, 0, 2), np.int32)
        self._seen = np.zeros((2, 0), np.int64)
        self._place = np.zeros((k, 0), np.int32)  # serial - first → position
        self.first = [0] * k
        self._fill, self._resume = np.zeros(k, np.int64), np.zeros(2, np.int64)

    def add(self, side: int, rows: Rows, rank: Array | None) -> None:
        """Appends the rows that will enter, in order; `rank` int64 of each, None for the order of entry."""
        log = self.logs[side]
        at = log.append(rows)
        if rank is not None:
            self.rank[side] = grown(self.rank[side], log.capacity)
            self.rank[side][at : log.end] = rank

    def run(self, rows: Lookups, keys: int, instances: int) -> Iterator[tuple[Array, Array]]:
        """Inserts, removes and probes the rows of all sides, in order; yields (op, position found) block by block.

        `keys` and `instances` are the numbers of join keys and partition instances. The rows that enter were added
        before.
        """
        room = 1 + max(max(log.capacity, log.end) for log in self.logs)
        self._cells = _longer(self._cells, room, 1 + int(self._fill.max()))
        key_room = self._ends.shape[1]
        self._ends, self._seen = _longer(self._ends, keys, key_room), grown(self._seen, max(instances, 1))
        self._ends[:, key_room:] = 0
        self._resume[:], at = 0, 0
        size = _BLOCK if rows.triggers.any() else 0
        while at < len(rows.side):
            op, places = np.empty(size, np.int64), np.empty(size, np.int64)
            at = self._lookup(at, rows, op, places)
            pairs = int(self._resume[1])
            yield op[:pairs], places[:pairs]

    @compiled
    def _lookup(self, at: int, rows: Lookups, op_out: Array, pos_out: Array) -> int:
        """Runs the rows from `at` on until the buffer of pairs is full; returns the next row. `_resume[0]` is the
        content at which an interrupted lookup resumes, 0 for none; `_resume[1]` becomes the number of pairs made.

        An entering row takes the next position of its side's log (`_fill`). `_seen` is the end of the contents at the
        last lookup, by side and instance.

        Places, `_ends` and neighbours are positions plus one, 0 for none; `_cells` are indexed by these too, and cell 0
        is written to if there is no neighbour.
        """
        pairs = 0
        for i in range(at, len(rows.side)):
            s = np.uint64(rows.side[i])
            o = np.uint64(1) - s
            w = np.uint64(rows.instance[i]) if len(rows.instance) else np.uint64(0)
            k: Any = np.int64(rows.key[i])
            c: Any = np.uint64(0)
            if self._resume[0] == 0:
                e = rows.slot[i]
                kind = rows.kind[i]
                if e >= 0 and kind in (CURRENT, ENTER):
                    self._enter(s, np.uint64(e), k)
                elif e >= 0 and kind in (EXPIRED, LEAVE) and self._place[s, np.uint64(e)] > 0:
                    c = np.uint64(self._place[s, np.uint64(e)])
                    self._place[s, np.uint64(e)] = _GONE
                    if np.int64(c) <= self._seen[s, w]:
                        if len(rows.probe_positions):
                            rows.probe_positions[i] = np.int64(c) - 1
                        if rows.loses[s]:
                            self._place[s, np.uint64(e)] = _LOST
                    self._leave(s, c)
                elif e <= -2 and kind == EXPIRED and self._place[s, np.uint64(-2 - e)] == _LOST:
                    self._place[s, np.uint64(-2 - e)] = _GONE
                    rows.kind[i] = LEAVE
                if not rows.triggers[s] or rows.kind[i] > EXPIRED:
                    continue
                self._seen[o, w] = self._fill[o]
                if k < 0 or rows.kind[i] > rows.last:
                    continue
                c = np.uint64(self._ends[o, np.uint64(k), _HEAD])
            else:
                c = np.uint64(self._resume[0])
                self._resume[0] = 0
            while c != 0:
                if pairs == len(op_out):
                    self._resume[0], self._resume[1] = c, pairs
                    return i
                op_out[pairs] = i
                pos_out[pairs] = np.int64(c) - 1
                pairs += 1
                c = np.uint64(self._cells[o, c, _NEXT])
        self._resume[1] = pairs
        return len(rows.side)

    @inlined
    def _enter(self, s: Any, e: Any, k: Any) -> None:
        """The event at place `e` of side `s` enters the contents, under key `k` (less than 0: none)."""
        self._fill[s] += 1
        c: Any = np.uint64(self._fill[s])
        self._place[s, e] = c
        self._cells[s, c, _KEY] = k
        self._cells[s, c, _ALIVE] = 1
        if k >= 0:
            before: Any = np.uint64(self._ends[s, np.uint64(k), _TAIL])
            self._cells[s, c, _NEXT] = 0
            self._cells[s, c, _PREV] = before
            self._cells[s, before, _NEXT] = c
            head: Any = np.uint64(self._ends[s, np.uint64(k), _HEAD])
            self._ends[s, np.uint64(k), _HEAD] = head if before != 0 else c
            self._ends[s, np.uint64(k), _TAIL] = c

    @inlined
    def _leave(self, s: Any, c: Any) -> None:
        """The event of cell `c` leaves the contents of side `s`."""
        self._cells[s, c, _ALIVE] = 0
        of: Any = np.int64(self._cells[s, c, _KEY])
        if of >= 0:
            before: Any = np.uint64(self._cells[s, c, _PREV])
            after: Any = np.uint64(self._cells[s, c, _NEXT])
            self._cells[s, before, _NEXT] = after
            self._cells[s, after, _PREV] = before
            head: Any = np.uint64(self._ends[s, np.uint64(of), _HEAD])
            tail: Any = np.uint64(self._ends[s, np.uint64(of), _TAIL])
            self._ends[s, np.uint64(of), _HEAD] = head if before != 0 else after
            self._ends[s, np.uint64(of), _TAIL] = tail if after != 0 else before

    def looked_into(self) -> None:
        """Records that all contents were read."""
        self._seen[: len(self._fill)] = self._fill[:, None]

    def _alive(self, side: int) -> Array:
        """The positions that a side holds."""
        return np.flatnonzero(self._cells[side, 1 : self.logs[side].end + 1, _ALIVE])

    def slots(self, side: int, serial: Array) -> Array:
        """Slots of serial numbers, with room for them. Rows that change no contents have numbers below 0."""
        if len(serial) == 0:
            return serial
        low = int(serial.min())
        if low < 0:
            low = int(serial.min(where=serial >= 0, initial=self.first[side]))
        if low < self.first[side]:  # it waited in a batch while others came and went
            self._begin_at(side, low)
        first = self.first[side]
        slot: Array = serial - first
        if serial.min() < 0:
            slot = np.where(serial >= 0, slot, np.minimum(serial + first, -1))
        self._place = grown(self._place, max(int(slot.max()), -2 - int(slot.min())) + 1, _GONE)
        return slot

    def _begin_at(self, side: int, first: int) -> None:
        """Makes room for places from the serial number `first` on, which is below the first so far."""
        more, place = self.first[side] - first, self._place
        self._place = np.full((len(place), place.shape[1] + more), _GONE, place.dtype)
        for s, row in enumerate(place):
            begin = more if s == side else 0
            self._place[s, begin : begin + len(row)] = row
        self.first[side] = first

    def held(self, side: int) -> Array:
        """The positions that a side holds, in order."""
        keep, rank = self._alive(side), self.rank[side]
        return keep[np.argsort(rank[keep], kind="stable")] if len(rank) else keep

    def compact(self, side: int) -> None:
        """Drops the dead rows of a side once they are the majority."""
        log = self.logs[side]
        if log.end < 2048:
            return
        keep = self._alive(side)
        if 2 * len(keep) > log.end:
            return
        log.compact(keep)
        n = self._fill[side] = len(keep)
        self.first[side] += _move(
            keep, self._cells[side], self._ends[side], self._place[side], np.empty(self._cells.shape[1], np.int32)
        )
        self._seen[side] = np.searchsorted(keep, self._seen[side])
        if len(self.rank[side]):
            self.rank[side][:n] = self.rank[side][keep]

    def state(self, side: int) -> dict[str, Any]:
        """The contents of a side as plain data."""
        log, place = self.logs[side], self._place[side]
        # Rows enter the chains in the order of their positions, so positions are all that order needs.
        keep = self._alive(side)
        serial = np.full(log.end, -1, np.int64)
        live_numbers = np.flatnonzero(place > 0)
        serial[place[live_numbers] - 1] = live_numbers + self.first[side]
        events = log.state(keep)
        return {
            **events,
            "key": self._cells[side, keep + 1, _KEY].astype(np.int64),
            "serial": serial[keep],
            "seen": keep < self._seen[side, events["part"]],
            "rank": self.rank[side][keep] if len(self.rank[side]) and len(keep) else None,
            "lost": np.flatnonzero(place == _LOST) + self.first[side],
        }

    def load(self, side: int, state: dict[str, Any], keys: int, instances: int) -> None:
        """The inverse of `state`, for contents that are empty."""
        serial, lost_serials = state["serial"], state["lost"]
        n = len(serial)
        zeros = np.zeros(n, np.int64)
        self.first[side] = min(int(s.min()) for s in (serial, lost_serials) if len(s)) if n + len(lost_serials) else 0
        self.add(side, Rows(state["columns"], state["ts"], zeros, zeros, None, state["part"]), state["rank"])
        self.slots(side, lost_serials)
        slot, off = self.slots(side, serial), np.zeros(2, np.bool_)
        sides, kinds, probe_positions = np.full(n, side, np.int8), np.zeros(n, np.int8), np.empty(0, np.int64)
        instance = state["part"].astype(np.int64)
        for _ in self.run(
            Lookups(sides, kinds, state["key"], slot, instance, off, off, probe_positions), keys, instances
        ):
            pass
        seen = np.flatnonzero(state["seen"])
        self._seen[side, instance[seen]] = seen + 1  # the last of an instance stays
        self._place[side, lost_serials - self.first[side]] = _LOST

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return sum(log.bytes for log in self.logs)

    @property
    def rows(self) -> int:
        """Events held."""
        return sum(len(self._alive(side)) for side in range(len(self.logs)))


def without(state: dict[str, Any], instances: Array, numbers: Array) -> dict[str, Any]:
    """The state of a side (`Contents.state`) less the events of these partition instances; `numbers` are the new ids of
    the join keys, -1 at the end."""
    stays = np.flatnonzero(~np.isin(state["part"], instances))
    return {
        "columns": [c.take(stays) for c in state["columns"]],
        "key": numbers[state["key"][stays]],
        "rank": None if state["rank"] is None else state["rank"][stays],
        "lost": state["lost"],
        **{name: state[name][stays] for name in ("ts", "part", "serial", "seen")},
    }
