"""`session(gap[, key[, allowed.latency]])`: events with no gap between them, per key."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Ref
from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array, Column
from ..columnar.javamap import string_hash
from ..columnar.jit import inlined, kernel
from ..columnar.key_ids import Keys
from ..columnar.rows import CURRENT, EXPIRED, Clock, Rows
from ..columnar.timers import NEVER, ORDER_KEY, TIME, Timers, next_due, nothing_due, notify, timer_cursor
from .chain import ChainedLog
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
def _sooner(ends: Array, whose: Array, a: int, b: int) -> bool:
    return ends[a] < ends[b] or (ends[a] == ends[b] and whose[a] < whose[b])


@kernel
def _put(ends: Array, whose: Array, size: Array, which: int, end: int, s: int) -> None:
    """Enters session `s` into the heap of instances' sessions by end."""
    i = size[which]
    size[which] += 1
    ends[which, i], whose[which, i] = end, s
    while i > 0:
        up = (i - 1) >> 1
        if not _sooner(ends[which], whose[which], i, up):
            return
        ends[which, i], ends[which, up] = ends[which, up], ends[which, i]
        whose[which, i], whose[which, up] = whose[which, up], whose[which, i]
        i = up


@kernel
def _take(ends: Array, whose: Array, size: Array, which: int) -> None:
    """Removes the first of the heap."""
    size[which] -= 1
    n = size[which]
    ends[which, 0], whose[which, 0] = ends[which, n], whose[which, n]
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            return
        if low + 1 < n and _sooner(ends[which], whose[which], low + 1, low):
            low += 1
        if not _sooner(ends[which], whose[which], low, i):
            return
        ends[which, i], ends[which, low] = ends[which, low], ends[which, i]
        whose[which, i], whose[which, low] = whose[which, low], whose[which, i]
        i = low


@inlined
def _append(which: int, s: int, first: int, nxt: Array, head: Array, tail: Array) -> None:
    """`ComplexEventChunk.add` of a list that begins with `first`."""
    if head[which, s] < 0:
        head[which, s] = first
    else:
        nxt[tail[which, s]] = first
    at = first
    while nxt[at] >= 0:
        at = nxt[at]
    tail[which, s] = at


@kernel
def _step_on(which: int, s: int, nxt: Array, head: Array, num: Array) -> None:
    """`if (hasNext()) next()`."""
    at, before = num[AT, which, s], num[BEFORE, which, s]
    following = nxt[at] if at >= 0 else nxt[before] if before >= 0 else head[which, s]
    if following >= 0:
        if at >= 0:
            num[BEFORE, which, s] = at
        num[AT, which, s] = following


@kernel
def _insert(which: int, s: int, first: int, nxt: Array, head: Array, num: Array) -> None:
    """`insertBeforeCurrent` of a list that begins with `first`."""
    if num[BEFORE, which, s] >= 0:
        nxt[num[BEFORE, which, s]] = first
    else:
        head[which, s] = first
    at = first
    while nxt[at] >= 0:
        at = nxt[at]
    num[BEFORE, which, s] = at
    nxt[at] = num[AT, which, s]


@kernel
def _clear(which: int, s: int, p: int, head: Array, tail: Array, num: Array, load: Array) -> None:
    head[which, s] = -1
    tail[which, s] = -1
    num[BEFORE, which, s] = -1
    num[AT, which, s] = -1
    load[LIVE, which, p] -= 1


@kernel
def _merge(s: int, p: int, gap: int, nxt: Array, head: Array, tail: Array, num: Array, load: Array) -> None:
    """`mergeWindows`: the session before joins the current one where no gap is left between them."""
    if head[PREV, s] >= 0 and num[END, PREV, s] >= num[START, CUR, s] - gap:
        _step_on(CUR, s, nxt, head, num)
        _insert(CUR, s, head[PREV, s], nxt, head, num)
        num[START, CUR, s] = num[START, PREV, s]
        _clear(PREV, s, p, head, tail, num, load)


@kernel
def _buckets(entries: int, eager: bool) -> int:
    """Number of buckets of a Java map that held `entries` entries; a concurrent one grows at three quarters, not above.
    """
    n = 16
    while entries > n * 3 // 4 or (eager and entries == n * 3 // 4):
        n *= 2
    return n


@kernel
def _map_order(found: Array, n: int, ends: Array, spread: Array, most: int, keys: int) -> None:
    """Sorts sessions by end, those with one end as Siddhi's maps walk through their keys (`findAllCurrentEndTimestamps`
    fills a `HashMap` from a `ConcurrentHashMap`)."""
    inner, outer = _buckets(most, False) - 1, _buckets(keys, True) - 1
    for i in range(1, n):
        s = found[i]
        j = i
        while j > 0:
            o = found[j - 1]
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
            found[j] = o
            j -= 1
        found[j] = s


@kernel
def _timed_out(
    which: int, p: int, time: int, heap_end: Array, heap_of: Array, heap_size: Array, head: Array, num: Array,
    latency: int, spread: Array, instance_of: Array, load: Array, least: Array, found: Array, back: Array,
) -> int:  # fmt: skip
    """The sessions of instance `p` that end by `time`, in Siddhi's order, into `found`; returns how many."""
    n = 0
    others = 0
    late = latency if which == PREV else 0
    load[MOST, which, p] = max(load[MOST, which, p], load[LIVE, which, p])
    while heap_size[which] > 0 and heap_end[which, 0] + late <= time:
        s = heap_of[which, 0]
        end = heap_end[which, 0]
        _take(heap_end, heap_of, heap_size, which)
        if which == CUR:  # its entry has its least end, and is corrected when its turn comes
            if least[s] != end:
                continue
            least[s] = NONE
            if head[CUR, s] >= 0 and num[END, CUR, s] != end:
                least[s] = num[END, CUR, s]
                _put(heap_end, heap_of, heap_size, CUR, least[s], s)
                continue
        if head[which, s] < 0 or num[END, which, s] != end:
            continue
        if instance_of[s] != p:
            back[others] = s
            others += 1
            continue
        if n == 0 or found[n - 1] != s:
            found[n] = s
            n += 1
    for i in range(others):
        if which == CUR:
            least[back[i]] = num[END, CUR, back[i]]
        _put(heap_end, heap_of, heap_size, which, num[END, which, back[i]], back[i])
    if n > 1:
        _map_order(found, n, num[END, which], spread, load[MOST, which, p], load[KEYS, CUR, p])
    return n


@kernel
def _session(
    gap: int, latency: int, scheduler: int, at: int, rows: int, row_order_key: Array, row_chunk: Array, base: int, now:
    Array,
    moved: Array, last: int, cursor: Array, ts: Array, instance: Array, nxt: Array, alive: Array, session: Array, head:
    Array,
    tail: Array, num: Array, spread: Array, instance_of: Array, load: Array, heap_end: Array, heap_of: Array,
    heap_size: Array, least: Array, found: Array, back: Array, hashes: Array, qtime: Array, qnext: Array, qhead: Array,
    qtail: Array,
    heap: Array, qfirst: Array, due: Array, meta: Array, pos_out: Array, kind_out: Array, ts_out: Array,
    order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`SessionWindowProcessor.processEventChunk` over rows and timers merged by order key."""
    n = 0
    chunk = 0
    over_head = np.int64(-1)  # sessions that are over leave at the end of their chunk
    over_tail = np.int64(-1)
    for i in range(rows + 1):
        if over_head >= 0 and (i == rows or row_chunk[i] != row_chunk[i - 1]):
            while over_head >= 0:
                pos_out[n], kind_out[n], ts_out[n] = over_head, EXPIRED, ts[over_head]
                order_key_out[n], chunk_out[n] = row_order_key[i - 1], chunk
                alive[over_head] = False
                n += 1
                over_head = nxt[over_head]
        limit: Any = row_order_key[i] if i < rows else NEVER
        idle = nothing_due(cursor, limit, scheduler, base, now, last, heap, qfirst, meta)
        while not idle:
            p = next_due(
                cursor, limit, scheduler, base, now, moved, last, hashes, qtime, qnext, qhead, qtail, heap, qfirst, due,
                meta
            )
            if p < 0:
                break
            chunk += 1
            many = 0
            if heap_size[CUR] == 1:  # the entry of a session that goes on is put right at once
                s = heap_of[CUR, 0]
                if least[s] == heap_end[CUR, 0] and head[CUR, s] >= 0 and num[END, CUR, s] > least[s]:
                    least[s] = num[END, CUR, s]
                    heap_end[CUR, 0] = least[s]
            if heap_size[CUR] > 0 and heap_end[CUR, 0] <= cursor[TIME]:
                many = _timed_out(
                    CUR, p, cursor[TIME], heap_end, heap_of, heap_size, head, num, 0, spread, instance_of, load, least,
                    found, back,
                )  # fmt: skip
            for k in range(many):
                s = found[k]
                if latency > 0:
                    if head[PREV, s] < 0:
                        load[LIVE, PREV, p] += 1
                    _append(PREV, s, head[CUR, s], nxt, head, tail)
                    num[START, PREV, s] = num[START, CUR, s]
                    num[END, PREV, s] = num[END, CUR, s]
                    _put(heap_end, heap_of, heap_size, PREV, num[END, PREV, s], s)
                    notify(
                        cursor, p, num[END, PREV, s] + latency, qtime, qnext, qhead, qtail, heap, qfirst, due, meta
                    )
                else:
                    pos = head[CUR, s]
                    while pos >= 0:
                        pos_out[n], kind_out[n], ts_out[n] = pos, EXPIRED, ts[pos]
                        order_key_out[n], chunk_out[n] = cursor[ORDER_KEY], chunk
                        alive[pos] = False
                        n += 1
                        pos = nxt[pos]
                _clear(CUR, s, p, head, tail, num, load)
            if latency > 0:
                many = _timed_out(
                    PREV, p, cursor[TIME], heap_end, heap_of, heap_size, head, num, latency, spread, instance_of, load,
                    least, found, back,
                )  # fmt: skip
                for k in range(many):
                    s = found[k]
                    pos = head[PREV, s]
                    while pos >= 0:
                        pos_out[n], kind_out[n], ts_out[n] = pos, EXPIRED, ts[pos]
                        order_key_out[n], chunk_out[n] = cursor[ORDER_KEY], chunk
                        alive[pos] = False
                        n += 1
                        pos = nxt[pos]
                    _clear(PREV, s, p, head, tail, num, load)
        if i == rows:
            break
        if i == 0 or row_chunk[i] != row_chunk[i - 1]:
            chunk += 1
        pos = at + i
        p = instance[pos]
        s = session[i]
        t = ts[pos]
        nxt[pos] = -1
        stays = True
        if head[CUR, s] < 0 or (t >= num[START, CUR, s] and (t <= num[END, CUR, s] or latency > 0)):
            if head[CUR, s] >= 0 and t > num[END, CUR, s]:
                # A new session: the one before the current one is over at last.
                if head[PREV, s] >= 0:
                    if over_head < 0:
                        over_head = head[PREV, s]
                    else:
                        nxt[over_tail] = head[PREV, s]
                    over_tail = tail[PREV, s]
                    _clear(PREV, s, p, head, tail, num, load)
                _append(PREV, s, head[CUR, s], nxt, head, tail)
                load[LIVE, PREV, p] += 1
                num[START, PREV, s] = num[START, CUR, s]
                num[END, PREV, s] = num[END, CUR, s]
                _put(heap_end, heap_of, heap_size, PREV, num[END, PREV, s], s)
                notify(cursor, p, num[END, PREV, s] + latency, qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
                _clear(CUR, s, p, head, tail, num, load)
            if head[CUR, s] < 0:
                num[START, CUR, s] = t
                load[LIVE, CUR, p] += 1
            if least[s] == NONE or least[s] > t + gap:
                least[s] = t + gap
                _put(heap_end, heap_of, heap_size, CUR, t + gap, s)
            _append(CUR, s, pos, nxt, head, tail)
            alive[pos] = True
            num[END, CUR, s] = t + gap
            notify(cursor, p, t + gap, qtime, qnext, qhead, qtail, heap, qfirst, due, meta)
        elif t < num[START, CUR, s]:  # late
            if t >= num[START, CUR, s] - gap:
                _step_on(CUR, s, nxt, head, num)
                _insert(CUR, s, pos, nxt, head, num)
                alive[pos] = True
                num[START, CUR, s] = t
                if latency > 0:
                    _merge(s, p, gap, nxt, head, tail, num, load)
            elif latency > 0 and head[PREV, s] >= 0 and t >= num[START, PREV, s] - gap:
                _append(PREV, s, pos, nxt, head, tail)
                alive[pos] = True
                if t <= num[END, PREV, s] - gap and t < num[START, PREV, s]:
                    num[START, PREV, s] = t
                else:
                    num[END, PREV, s] = t + gap
                    _put(heap_end, heap_of, heap_size, PREV, t + gap, s)
                    _merge(s, p, gap, nxt, head, tail, num, load)
            else:
                stays = False
        if stays:
            pos_out[n], kind_out[n], ts_out[n] = pos, CURRENT, t
            order_key_out[n], chunk_out[n] = row_order_key[i], chunk
            n += 1
    return n


class SessionWindow:
    """Events pass at once; when no event of a key came for longer than the gap, its session expires as a whole.

    A join would look into Siddhi's chunk of expired sessions, which is empty whenever one looks.
    """

    stamps, moves, is_ordered = None, True, False

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.gap = int(setup.constant(0))
        keyed = len(setup.args) > 1 and isinstance(setup.args[1], Ref)
        self.key = setup.column(1) if keyed else None
        self.latency = int(setup.constant(2 if keyed else 1, 0))
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

    def _sessions(self, rows: Rows, instances: int) -> Array:
        """The session number of each row; makes room for new sessions."""
        known = self.keys.size
        columns = [Column(Type.INT, rows.instances())]
        if self.key is not None:
            columns.append(rows.columns[self.key])
        ids = self.keys.ids(columns)
        self._widen(known, instances)
        return ids

    def _widen(self, known: int, instances: int) -> None:
        size = self.keys.size
        self.instances = max(self.instances, instances)
        self.load_of = grown(self.load_of, instances)
        if size == known:
            return
        self.num = grown(self.num, size)
        self.num[BEFORE:, :, known:] = -1
        self.spread, self.instance_of = grown(self.spread, size), grown(self.instance_of, size)
        self.least = grown(self.least, size, NONE)
        fresh = [c.take(np.arange(known, size)) for c in self.keys.columns()]
        self.instance_of[known:size] = fresh[0].values
        np.add.at(self.load_of[KEYS, CUR], fresh[0].values, 1)
        if self.key is not None:
            hashes = [string_hash(t or "") & 0xFFFFFFFF for t in self.setup.strings.decode(fresh[1].values)]
            self.spread[known:size] = [h ^ (h >> 16) for h in hashes]

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
        head, tail = np.stack(log.head), np.stack(log.tail)
        out = Emission(at + 2 * n)
        found, back = np.empty(self.keys.size, np.int64), np.empty(more, np.int64)
        made = _session(
            self.gap, self.latency, self.scheduler, at, n, rows.order_key, rows.chunk, clock.base, clock.now,
            clock.moved, clock.last, timer_cursor(clock.first), log.ts, log.instance, log.next, log.alive, session,
            head, tail, self.num, self.spread, self.instance_of, self.load_of, self.heap_end, self.heap_of,
            self.heap_size, self.least, found, back, self.timers.hashes(hashes), *self.timers.arrays, *out.arrays,
        )  # fmt: skip
        log.head, log.tail = list(head), list(tail)
        result = out.rows(made, log, rows.instance is not None)
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
        gone = np.isin(self.instance_of[: self.keys.size], instances)
        if not gone.any():
            return
        self.timers.forget(instances)
        state, keep = self.state(), np.flatnonzero(~gone)
        lists = []
        for held in state["lists"]:
            stays = np.flatnonzero(np.repeat(~gone, held["lengths"]))
            columns = [c.take(stays) for c in held["columns"]]
            times, instance = held["ts"][stays], held["part"][stays]
            lists.append({"columns": columns, "ts": times, "part": instance, "lengths": held["lengths"][keep]})
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
                    _put(self.heap_end, self.heap_of, self.heap_size, which, int(self.num[END, which, s]), s)
        self.timers.load(state["timers"])

    @property
    def bytes(self) -> int:
        return self.log.bytes + self.num.nbytes
