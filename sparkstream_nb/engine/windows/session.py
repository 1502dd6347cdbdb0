"""`session(gap[, key[, allowed.latency]])`: events with no gap between them, per key."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Ref
from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Column
from ..columnar.javamap import string_hash
from ..columnar.key_ids import Keys
from ..columnar.rows import CURRENT, EXPIRED, Clock, Rows
from ..columnar.timers import Schedule, Timers
from ..notation.kernels import compiled, inlined, kernel
from .chain import ChainedLog
from .timed_window import Due, Event, TimedWindow, timed_window
from .window_protocol import Emission, WindowSetup

CUR, PREV = 0, 1
"""The two sessions that a key may have open: the current one, and with an allowed latency the one before it."""

START, END, BEFORE, AT = 0, 1, 2, 3
"""Numbers of a session: its first time, its last time + gap, and Siddhi's cursor in its list (`ComplexEventChunk`): the
position before the event returned last, and that event (-1: none)."""

NONE = np.int64(-(2**63))
"""No end: the current session of a key is not in the heap."""

LIVE, MOST, KEYS = 0, 1, 2
"""Fields of a partition instance, for each of the two: open sessions, their maximum so far; and its keys."""


@kernel
def _buckets(entries: int, eager: bool) -> int:
    """Number of buckets of a Java map that held `entries` entries; a concurrent one grows at three quarters, not above.
    """
    n = 16
    while entries > n * 3 // 4 or (eager and entries == n * 3 // 4):
        n *= 2
    return n


@kernel
def _map_order(sessions: Array, n: int, ends: Array, spread: Array, most: int, keys: int) -> None:
    """Sorts sessions by end, those with one end as Siddhi's maps walk through their keys (`findAllCurrentEndTimestamps`
    fills a `HashMap` from a `ConcurrentHashMap`)."""
    inner, outer = _buckets(most, False) - 1, _buckets(keys, True) - 1
    for i in range(1, n):
        s = sessions[i]
        j = i
        while j > 0:
            o = sessions[j - 1]
            if ends[o] != ends[s]:
                after = ends[o] > ends[s]
            elif (spread[o] & inner) != (spread[s] & inner):
                after = (spread[o] & inner) > (spread[s] & inner)
            elif (spread[o] & outer) != (spread[s] & outer):
                after = (spread[o] & outer) > (spread[s] & outer)
            else:
                after = o > s
            if not after:
                break
            sessions[j] = o
            j -= 1
        sessions[j] = s


@timed_window
class SessionWindow(TimedWindow):
    """Events pass at once; when no event of a key came for longer than the gap, its session expires as a whole.

    A join would look into Siddhi's chunk of expired sessions, which is empty whenever one looks.
    """

    stamps, moves, is_ordered = None, True, False

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.gap = int(setup.constant(0))
        has_key = len(setup.args) > 1 and isinstance(setup.args[1], Ref)
        self.key = setup.column(1) if has_key else None
        self.latency = int(setup.constant(2 if has_key else 1, 0))
        self.scheduler = setup.scheduler
        self._clear()

    def _clear(self) -> None:
        self.log = ChainedLog(self.setup.types, chains=2)
        self.keys = Keys((Type.INT, Type.STRING) if self.key is not None else (Type.INT,), self.setup.strings)
        self.num = np.zeros((4, 2, 0), np.int64)
        self.spread, self.instance_of = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.least = np.zeros(0, np.int64)
        self.instances = 0
        self.load_of = np.zeros((3, 2, 0), np.int64)
        self.heap_end, self.heap_of = np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)
        self.heap_size = np.zeros(2, np.int64)
        self.timers = Timers()
        # Of a run, a list of the events of sessions that are over, which leave at the end of their chunk.
        self.over_head, self.over_tail = -1, -1

    @compiled
    def _is_sooner(self, which: int, a: int, b: int) -> bool:
        ends, whose = self.heap_end[which], self.heap_of[which]
        return ends[a] < ends[b] or (ends[a] == ends[b] and whose[a] < whose[b])

    @compiled
    def _swap(self, which: int, a: int, b: int) -> None:
        ends, whose = self.heap_end[which], self.heap_of[which]
        ends[a], ends[b] = ends[b], ends[a]
        whose[a], whose[b] = whose[b], whose[a]

    @compiled
    def _enter(self, which: int, end: int, s: int) -> None:
        """Enters session `s` into the heap of instances' sessions by end."""
        i = self.heap_size[which]
        self.heap_size[which] += 1
        self.heap_end[which, i], self.heap_of[which, i] = end, s
        while i > 0:
            up = (i - 1) >> 1
            if not self._is_sooner(which, i, up):
                return
            self._swap(which, i, up)
            i = up

    @compiled
    def _leave(self, which: int) -> None:
        """Removes the first of the heap."""
        self.heap_size[which] -= 1
        n = self.heap_size[which]
        self.heap_end[which, 0], self.heap_of[which, 0] = self.heap_end[which, n], self.heap_of[which, n]
        i = 0
        while True:
            low = 2 * i + 1
            if low >= n:
                return
            if low + 1 < n and self._is_sooner(which, low + 1, low):
                low += 1
            if not self._is_sooner(which, low, i):
                return
            self._swap(which, i, low)
            i = low

    @inlined
    def _append(self, which: int, s: int, first: int) -> None:
        """`ComplexEventChunk.add` of a list that begins with `first`."""
        if self.head[which, s] < 0:
            self.head[which, s] = first
        else:
            self.log.next[self.tail[which, s]] = first
        at = first
        while self.log.next[at] >= 0:
            at = self.log.next[at]
        self.tail[which, s] = at

    @compiled
    def _step_on(self, which: int, s: int) -> None:
        """`if (hasNext()) next()`."""
        at, before = self.num[AT, which, s], self.num[BEFORE, which, s]
        following = self.log.next[at] if at >= 0 else self.log.next[before] if before >= 0 else self.head[which, s]
        if following >= 0:
            if at >= 0:
                self.num[BEFORE, which, s] = at
            self.num[AT, which, s] = following

    @compiled
    def _insert(self, which: int, s: int, first: int) -> None:
        """`insertBeforeCurrent` of a list that begins with `first`."""
        if self.num[BEFORE, which, s] >= 0:
            self.log.next[self.num[BEFORE, which, s]] = first
        else:
            self.head[which, s] = first
        at = first
        while self.log.next[at] >= 0:
            at = self.log.next[at]
        self.num[BEFORE, which, s] = at
        self.log.next[at] = self.num[AT, which, s]

    @compiled
    def _close(self, which: int, s: int, p: int) -> None:
        self.head[which, s] = -1
        self.tail[which, s] = -1
        self.num[BEFORE, which, s] = -1
        self.num[AT, which, s] = -1
        self.load_of[LIVE, which, p] -= 1

    @compiled
    def _merge(self, s: int, p: int) -> None:
        """`mergeWindows`: the session before joins the current one where no gap is left between them."""
        if self.head[PREV, s] >= 0 and self.num[END, PREV, s] >= self.num[START, CUR, s] - self.gap:
            self._step_on(CUR, s)
            self._insert(CUR, s, self.head[PREV, s])
            self.num[START, CUR, s] = self.num[START, PREV, s]
            self._close(PREV, s, p)

    @compiled
    def _timed_out(self, which: int, p: int, time: int) -> int:
        """The sessions of instance `p` that end by `time`, in Siddhi's order, into `due_sessions`; returns how many."""
        n = 0
        others = 0
        late = self.latency if which == PREV else 0
        self.load_of[MOST, which, p] = max(self.load_of[MOST, which, p], self.load_of[LIVE, which, p])
        while self.heap_size[which] > 0 and self.heap_end[which, 0] + late <= time:
            s = self.heap_of[which, 0]
            end = self.heap_end[which, 0]
            self._leave(which)
            if which == CUR:  # its entry has its least end, and is corrected when its turn comes
                if self.least[s] != end:
                    continue
                self.least[s] = NONE
                if self.head[CUR, s] >= 0 and self.num[END, CUR, s] != end:
                    self.least[s] = self.num[END, CUR, s]
                    self._enter(CUR, self.least[s], s)
                    continue
            if self.head[which, s] < 0 or self.num[END, which, s] != end:
                continue
            if self.instance_of[s] != p:
                self.back[others] = s
                others += 1
                continue
            if n == 0 or self.due_sessions[n - 1] != s:
                self.due_sessions[n] = s
                n += 1
        for i in range(others):
            s = self.back[i]
            if which == CUR:
                self.least[s] = self.num[END, CUR, s]
            self._enter(which, self.num[END, which, s], s)
        if n > 1:
            most, keys = self.load_of[MOST, which, p], self.load_of[KEYS, CUR, p]
            _map_order(self.due_sessions, n, self.num[END, which], self.spread, most, keys)
        return n

    @inlined
    def _expire(self, first: int, order_key: int, out: Emission) -> None:
        """The events of a list that begins with `first` leave."""
        at = first
        while at >= 0:
            out.emit(at, EXPIRED, self.log.ts[at], order_key)
            self.log.alive[at] = False
            at = self.log.next[at]

    @inlined
    def _to_previous(self, s: int, p: int, schedule: Schedule) -> None:
        """The current session becomes the one before."""
        if self.head[PREV, s] < 0:
            self.load_of[LIVE, PREV, p] += 1
        self._append(PREV, s, self.head[CUR, s])
        self.num[START, PREV, s] = self.num[START, CUR, s]
        self.num[END, PREV, s] = self.num[END, CUR, s]
        self._enter(PREV, self.num[END, PREV, s], s)
        schedule.notify(p, self.num[END, PREV, s] + self.latency)

    @inlined
    def on_chunk_end(self, order_key: int, out: Emission) -> None:
        """Sessions that are over leave at the end of their chunk."""
        self._expire(self.over_head, order_key, out)
        self.over_head = -1

    @inlined
    def on_timer(self, due: Due, schedule: Schedule, out: Emission) -> None:
        p = due.instance
        many = 0
        if self.heap_size[CUR] == 1:  # the entry of a session that continues is corrected at once
            s = self.heap_of[CUR, 0]
            is_open = self.least[s] == self.heap_end[CUR, 0] and self.head[CUR, s] >= 0
            if is_open and self.num[END, CUR, s] > self.least[s]:
                self.least[s] = self.num[END, CUR, s]
                self.heap_end[CUR, 0] = self.least[s]
        if self.heap_size[CUR] > 0 and self.heap_end[CUR, 0] <= due.time:
            many = self._timed_out(CUR, p, due.time)
        for k in range(many):
            s = self.due_sessions[k]
            if self.latency > 0:
                self._to_previous(s, p, schedule)
            else:
                self._expire(self.head[CUR, s], due.order_key, out)
            self._close(CUR, s, p)
        if self.latency > 0:
            many = self._timed_out(PREV, p, due.time)
            for k in range(many):
                s = self.due_sessions[k]
                self._expire(self.head[PREV, s], due.order_key, out)
                self._close(PREV, s, p)

    @inlined
    def on_event(self, event: Event, schedule: Schedule, out: Emission) -> None:
        p = event.instance
        s = self.session[event.row]
        t = self.log.ts[event.pos]
        self.log.next[event.pos] = -1
        stays = True
        goes_on = t >= self.num[START, CUR, s] and (t <= self.num[END, CUR, s] or self.latency > 0)
        if self.head[CUR, s] < 0 or goes_on:
            self._come(event.pos, s, p, t, schedule)
        elif t < self.num[START, CUR, s]:
            stays = self._come_late(event.pos, s, p, t)
        if stays:
            out.emit(event.pos, CURRENT, t, event.order_key)

    @inlined
    def _come(self, pos: int, s: int, p: int, t: int, schedule: Schedule) -> None:
        """An event extends the current session, or begins one."""
        if self.head[CUR, s] >= 0 and t > self.num[END, CUR, s]:
            # A new session: the one before the current one is over at last.
            if self.head[PREV, s] >= 0:
                if self.over_head < 0:
                    self.over_head = self.head[PREV, s]
                else:
                    self.log.next[self.over_tail] = self.head[PREV, s]
                self.over_tail = self.tail[PREV, s]
                self._close(PREV, s, p)
            self._to_previous(s, p, schedule)
            self._close(CUR, s, p)
        if self.head[CUR, s] < 0:
            self.num[START, CUR, s] = t
            self.load_of[LIVE, CUR, p] += 1
        if self.least[s] == NONE or self.least[s] > t + self.gap:
            self.least[s] = t + self.gap
            self._enter(CUR, t + self.gap, s)
        self._append(CUR, s, pos)
        self.log.alive[pos] = True
        self.num[END, CUR, s] = t + self.gap
        schedule.notify(p, t + self.gap)

    @compiled
    def _come_late(self, pos: int, s: int, p: int, t: int) -> bool:
        """An event that is older than its current session joins that, or the one before; False if neither takes it."""
        stays = True
        if t >= self.num[START, CUR, s] - self.gap:
            self._step_on(CUR, s)
            self._insert(CUR, s, pos)
            self.log.alive[pos] = True
            self.num[START, CUR, s] = t
            if self.latency > 0:
                self._merge(s, p)
        elif self.latency > 0 and self.head[PREV, s] >= 0 and t >= self.num[START, PREV, s] - self.gap:
            self._append(PREV, s, pos)
            self.log.alive[pos] = True
            if t <= self.num[END, PREV, s] - self.gap and t < self.num[START, PREV, s]:
                self.num[START, PREV, s] = t
            else:
                self.num[END, PREV, s] = t + self.gap
                self._enter(PREV, t + self.gap, s)
                self._merge(s, p)
        else:
            stays = False
        return stays

    def _sessions(self, rows: Rows, instances: int) -> Array:
        """The session number of each row; makes room for new sessions."""
        size_before = self.keys.size
        columns = [Column(Type.INT, rows.instances())]
        if self.key is not None:
            columns.append(rows.columns[self.key])
        ids = self.keys.ids(columns)
        self._widen(size_before, instances)
        return ids

    def _widen(self, size_before: int, instances: int) -> None:
        size = self.keys.size
        self.instances = max(self.instances, instances)
        self.load_of = grown(self.load_of, instances)
        if size == size_before:
            return
        self.num = grown(self.num, size)
        self.num[BEFORE:, :, size_before:] = -1
        self.spread, self.instance_of = grown(self.spread, size), grown(self.instance_of, size)
        self.least = grown(self.least, size, NONE)
        fresh = [c.take(np.arange(size_before, size)) for c in self.keys.columns()]
        self.instance_of[size_before:size] = fresh[0].values
        np.add.at(self.load_of[KEYS, CUR], fresh[0].values, 1)
        if self.key is not None:
            hashes = [string_hash(t or "") & 0xFFFFFFFF for t in self.setup.strings.decode(fresh[1].values)]
            self.spread[size_before:size] = [h ^ (h >> 16) for h in hashes]

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        if self.key is not None:
            rows = self.setup.without_nulls(rows, [self.key], "the session's key is null")
        n = len(rows)
        log = self.log
        session = self._sessions(rows, instances)
        at = log.add(rows, self.keys.size)
        self.timers.room(3 * n + self.keys.size, instances)
        more = int(self.heap_size.max()) + 2 * n + self.keys.size
        self.heap_end, self.heap_of = grown(self.heap_end, more), grown(self.heap_of, more)
        self.session, self.head, self.tail = session, np.stack(log.head), np.stack(log.tail)
        self.due_sessions, self.back = np.empty(self.keys.size, np.int64), np.empty(more, np.int64)
        out = Emission(at + 2 * n)
        count = self.step(rows, at, clock, hashes, out)
        log.head, log.tail = list(self.head), list(self.tail)
        result = out.rows(count, log, rows.instance is not None)
        log.tidy(self.num[BEFORE].reshape(-1), self.num[AT].reshape(-1))
        return result

    def next_due(self) -> int | None:
        """No earlier than the first end of an open session: most timers are of sessions that have gone on since."""
        due, size = self.timers.next_due(), self.keys.size
        ends = [self.num[END, which, :size][self.log.head[which][:size] >= 0] for which in (CUR, PREV)]
        open_ends = np.concatenate(ends)
        return None if due is None or not len(open_ends) else max(due, int(open_ends.min()) + self.latency)

    def forget(self, instances: Array) -> None:
        """The other sessions get new numbers, in the same order: a key that comes again must come last."""
        is_forgotten = np.isin(self.instance_of[: self.keys.size], instances)
        if not is_forgotten.any():
            return
        self.timers.forget(instances)
        state, keep = self.state(), np.flatnonzero(~is_forgotten)
        lists = []
        for events in state["lists"]:
            stays = np.flatnonzero(np.repeat(~is_forgotten, events["lengths"]))
            columns = [c.take(stays) for c in events["columns"]]
            times, instance = events["ts"][stays], events["part"][stays]
            lists.append({"columns": columns, "ts": times, "part": instance, "lengths": events["lengths"][keep]})
        fill_at(state["load"], instances, 0)
        self.load(
            {
                **state, "lists": lists, "cursors": state["cursors"][..., keep], "times": state["times"][..., keep],
                "keys": {"values": [c.take(keep) for c in state["keys"]["values"]]},
            }
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        size = self.keys.size
        lists = [self.log.chain_state(which) for which in (CUR, PREV)]
        # A cursor means a place in its session's list, wherever the list lies in memory.
        places = np.full((2, 2, size), -1, np.int64)
        for which in (CUR, PREV):
            for s in np.flatnonzero(self.num[BEFORE:, which, :size].max(axis=0, initial=-1) >= 0).tolist():
                at, i = int(self.log.head[which][s]), 0
                while at >= 0:
                    for k in (BEFORE, AT):
                        if self.num[k, which, s] == at:
                            places[k - BEFORE, which, s] = i
                    at, i = int(self.log.next[at]), i + 1
        return {
            "lists": lists,
            "cursors": places,
            "times": self.num[:BEFORE, :, :size],
            "keys": self.keys.state(),
            "load": self.load_of[:, :, : self.instances],
            "timers": self.timers.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        self.keys.load(state["keys"])
        size = self.keys.size
        self.log.load_chains(state["lists"])
        self._widen(0, state["load"].shape[-1])
        self.load_of = state["load"].copy()
        self.num[:BEFORE, :, :size] = state["times"]
        for which in (CUR, PREV):
            starts = np.cumsum(state["lists"][which]["lengths"]) - state["lists"][which]["lengths"]
            first = 0 if which == CUR else len(state["lists"][CUR]["ts"])
            place = state["cursors"][:, which]
            if size:
                self.num[BEFORE:, which, :size] = np.where(place >= 0, place + starts[:size] + first, -1)
        self.heap_end = np.zeros((2, size), np.int64)
        self.heap_of = np.zeros((2, size), np.int64)
        for which in (CUR, PREV):
            for s in range(size):
                if self.log.head[which][s] >= 0:
                    if which == CUR:
                        self.least[s] = self.num[END, CUR, s]
                    self._enter(which, int(self.num[END, which, s]), s)
        self.timers.load(state["timers"])

    @property
    def bytes(self) -> int:
        return self.log.bytes + self.num.nbytes
