"""`time(t)` inside partitions.

All instances have the same length of time, so events of all instances leave in the order in which they came, and their
timers fire in that order: the log serves as both. `link` is, for each event, twice the distance to the next event of
its instance (0: none), plus one if the event has a timer: if it is newer than all before it in its instance. `places`
are the first event whose timer has not fired, the newest time that has a timer in this order, how many timers wait
aside, how many movements of the clock made instances due, and the state of Siddhi's map.

Aside, in a heap, wait timers of another order: timers of events older than earlier events of other instances, and
timers of instances that the rule of equal times (`timers.py`) left to the next movement of the clock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import grown
from ..columnar.blocks import Blocks, Tracked
from ..columnar.column_data import Array
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import step_before
from ..notation.intrinsics import AHEAD, prefetch
from ..notation.kernels import compiled, inlined, kernel, struct
from .window_protocol import Emission, Feed, WindowSetup

_BITS = np.int64(ORDER_KEY_BITS)
_NEVER = np.int64(2**63 - 1)
_UNSEEN = -(2**63)

FIRST, SEEN, ASIDE, TIMES, BUCKETS, HELD, TURN = range(7)
"""Places in `places`; the last three are of Siddhi's map of instances that have timers, as in `timers.py`."""

ENDS, OLDEST, NEWEST, NUMBER = range(4)
"""Places in what `instance_words` holds of an instance, four words in a row: its first and last event in the window
(`HEAD` and `TAIL`, half a word each; -1: none), the time of the first, the newest time it has seen, which its last
timer is for, and its number in the map (0: it is not in it)."""

_FRESH = np.array([-1, 0, _UNSEEN, 0], np.int64)
"""The words of an instance that has had no event."""

HEAD, TAIL = 0, 1
"""Places among the eight half words of an instance (`ends`, the same memory)."""

_MANY = 1 << 12
"""Number of instances whose words are more than the cache holds beside the rest."""


@kernel
def _put_aside(time: int, instance: int, size: int, times: Array, instances: Array) -> None:
    i = size
    while i > 0 and times[(i - 1) >> 1] > time:
        times[i] = times[(i - 1) >> 1]
        instances[i] = instances[(i - 1) >> 1]
        i = (i - 1) >> 1
    times[i] = time
    instances[i] = instance


@kernel
def _take_aside(size: int, times: Array, instances: Array) -> None:
    """Drops the first of `size` timers."""
    time, instance = times[size - 1], instances[size - 1]
    i = 0
    low = 1
    while low < size - 1:
        if low + 1 < size - 1 and times[low + 1] < times[low]:
            low += 1
        if times[low] >= time:
            break
        times[i] = times[low]
        instances[i] = instances[low]
        i = low
        low = 2 * i + 1
    times[i] = time
    instances[i] = instance


@kernel
def _shift(first: int, ends: Array) -> bool:
    """Counts places from `first` on, unless an instance holds an event before it; whether one does."""
    for p in range(0, len(ends), 8):
        if 0 <= ends[p + HEAD] < first:
            return True
    for p in range(0, len(ends), 8):
        if ends[p + HEAD] >= 0:
            ends[p + HEAD] -= first
            ends[p + TAIL] -= first
    return False


@kernel
def _held(link: Array, ends: Array, out: Array) -> None:
    """Marks the events that instances hold."""
    for p in range(0, len(ends), 8):
        pos = np.int64(ends[p + HEAD])
        while pos >= 0:
            out[pos] = True
            step = np.int64(link[pos] >> 1)
            pos = pos + step if step > 0 else np.int64(-1)


@kernel
def _tie(
    instance: Array, ts: Array, is_held: Array, has_timer: Array, link: Array, instance_words: Array, ends: Array
) -> None:
    """Link the held events of each instance again."""
    for pos in range(len(instance)):
        link[pos] = np.int32(has_timer[pos])
        if is_held[pos]:
            p = np.int64(instance[pos])
            if ends[8 * p + HEAD] < 0:
                ends[8 * p + HEAD] = pos
                instance_words[4 * p + OLDEST] = ts[pos]
            else:
                link[ends[8 * p + TAIL]] |= (pos - ends[8 * p + TAIL]) << 1
            ends[8 * p + TAIL] = pos


@struct
class TimeByInstance:
    """The events of all instances in the order in which they came."""

    log: EventLog

    stamps, moves, is_ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.span = int(setup.constant(0))
        self.scheduler, self.ops_only = setup.scheduler, setup.ops_only
        self.log = EventLog(setup.types)
        self.link = np.zeros(0, np.int32)
        self.instance_words, self.mark = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.places = np.array([0, _UNSEEN, 0, 0, 16, 0, 0], np.int64)
        self.times, self.instances = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self._timers = Blocks(1)
        """Saved blocks of the flags that say which events have timers."""
        self._stuck = 0  # events before the first whose timer has not fired, when that was looked at last

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        assert hashes is not None, "there are instances"
        n, log = len(rows), self.log
        self._instances(instances)
        self._room(n)
        at = log.append(rows)
        aside_count = int(self.places[ASIDE])
        times, waiting = (
            np.empty(aside_count + n + instances, np.int64),
            np.empty(aside_count + n + instances, np.int32),
        )
        times[:aside_count], waiting[:aside_count] = self.times, self.instances
        out = Emission(at + 2 * n, self.ops_only)
        self.times, self.instances = times, waiting
        self.ready, self.since = np.empty(instances, np.int64), np.empty(instances, np.int64)
        count = self._step(Feed(rows, at), clock, hashes, out)
        aside_count = int(self.places[ASIDE])
        self.times, self.instances = times[:aside_count].copy(), waiting[:aside_count].copy()
        result = out.beside(count, log, rows) if self.ops_only else out.rows(count, log, rows.instance is not None)
        if 2 * log.capacity > 3 * self._live() + 2048:
            self._move(0)
        return result

    @compiled
    def _step(self, rows: Feed, clock: Clock, hashes: Array, out: Emission) -> int:
        """`TimeWindowProcessor.process` over rows and timers merged by order key. Returns how many rows are put out."""
        tick = clock.first
        many = len(self.instance_words) > 4 * _MANY
        for i in range(rows.count + 1):
            pos = rows.first + i
            step = clock.last
            until = clock.last - 1
            if i < rows.count:
                step = (rows.order_key[i] >> _BITS) - clock.base
                before = step_before(rows.order_key[i], self.scheduler, clock.base)
                until = min(until, before)
            while tick <= until:
                due = self._next_timer(pos)
                if due > clock.now[until]:
                    tick = until + 1
                    break
                t = clock.now[tick]
                if clock.may_fire[tick] and due <= t:
                    order_key: Any = ((clock.base + tick) << _BITS) | self.scheduler
                    ready_count = self._fire(pos, t, due, order_key, many, out)
                    self._fire_together(ready_count, t, order_key, hashes, out)
                tick += 1
            if i == rows.count:
                break
            if many:
                prefetch(self.instance_words, 4 * self.log.instance[min(pos + AHEAD, rows.first + rows.count - 1)])
            if i == 0 or rows.chunk[i] != rows.chunk[i - 1]:
                out.chunks += 1
            p: Any = np.int64(self.log.instance[pos])
            self._expire(p, clock.now[step], rows.order_key[i], out)
            self._hold(pos, p)
            out.put(pos, CURRENT, self.log.ts[pos], rows.order_key[i])
        return out.count

    @inlined
    def _next_timer(self, end: int) -> Any:
        """When the next timer is due, of events before position `end`."""
        first = self.places[FIRST]
        while first < end and self.link[first] & 1 == 0:
            first += 1
        self.places[FIRST] = first
        time = self.log.ts[first] + self.span if first < end else _NEVER
        if self.places[ASIDE] > 0:
            time = min(time, self.times[0])
        return time

    @inlined
    def _take_timer(self, time: int) -> Any:
        """Takes the timer that is due next, at `time`; the instance that it is of."""
        instance = np.int64(0)
        if self.places[ASIDE] > 0 and self.times[0] == time:
            instance = np.int64(self.instances[0])
            _take_aside(self.places[ASIDE], self.times, self.instances)
            self.places[ASIDE] -= 1
        else:
            instance = np.int64(self.log.instance[self.places[FIRST]])
            self.places[FIRST] += 1
        return instance

    @inlined
    def _fire(self, end: int, t: int, first: int, order_key: int, many: bool, out: Emission) -> int:
        """Takes the timers that are due at `t`, of which the first is due at `first`. One instance alone runs; of
        several, the numbers are put into `ready`, and when they are due into `since`, which have room for all. Returns
        how many are there."""
        due: Any = first
        ready_count = 0
        self.places[TIMES] += 1
        while due <= t:
            if many:
                prefetch(self.instance_words, 4 * self.log.instance[min(self.places[FIRST] + AHEAD, end)])
            p = self._take_timer(due)
            time = due
            due = self._next_timer(end)
            if ready_count == 0 and due > t:
                out.chunks += 1
                self._run(p, t, order_key, out)
            elif self.mark[p] != self.places[TIMES]:
                self.mark[p] = self.places[TIMES]
                self.ready[ready_count] = p
                self.since[ready_count] = time
                ready_count += 1
        return ready_count

    @inlined
    def _fire_together(self, ready_count: int, t: int, order_key: int, hashes: Array, out: Emission) -> None:
        """Among instances that are due since the same time, one runs."""
        a = 0
        mask = self.places[BUCKETS] - 1
        while a < ready_count:
            best = a
            b = a + 1
            while b < ready_count and self.since[b] == self.since[a]:
                nearer = (hashes[self.ready[b]] & mask) - (hashes[self.ready[best]] & mask)
                newer = (
                    self.instance_words[4 * self.ready[b] + NUMBER] > self.instance_words[4 * self.ready[best] + NUMBER]
                )
                if nearer < 0 or (nearer == 0 and newer):
                    best = b
                b += 1
            for k in range(a, b):
                if k != best:
                    _put_aside(self.since[k], self.ready[k], self.places[ASIDE], self.times, self.instances)
                    self.places[ASIDE] += 1
            out.chunks += 1
            self._run(self.ready[best], t, order_key, out)
            a = b

    @inlined
    def _run(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """All timers of an instance fire that are due; without one it leaves the map."""
        self._expire(p, now, order_key, out)
        if self.instance_words[4 * p + NEWEST] + self.span <= now:
            self.instance_words[4 * p + NUMBER] = 0
            self.places[HELD] -= 1

    @inlined
    def _expire(self, p: int, now: int, order_key: int, out: Emission) -> None:
        head: Any = np.int64(self._ends[8 * p + HEAD])
        oldest = self.instance_words[4 * p + OLDEST]
        while head >= 0 and oldest - now + self.span <= 0:
            out.put(head, EXPIRED, now, order_key)
            step = np.int64(self.link[head] >> 1)
            head = head + step if step > 0 else np.int64(-1)
            oldest = self.log.ts[head if head >= 0 else 0]
            self._ends[8 * p + HEAD] = head
            self.instance_words[4 * p + OLDEST] = oldest

    @inlined
    def _hold(self, pos: int, p: int) -> None:
        """The event joins its instance, and gets a timer if it is newer than all before it."""
        self.link[pos] = 0
        if self._ends[8 * p + HEAD] < 0:
            self._ends[8 * p + HEAD] = pos
            self.instance_words[4 * p + OLDEST] = self.log.ts[pos]
        else:
            self.link[self._ends[8 * p + TAIL]] |= (pos - self._ends[8 * p + TAIL]) << 1
        self._ends[8 * p + TAIL] = pos
        if self.instance_words[4 * p + NEWEST] < self.log.ts[pos]:
            self.instance_words[4 * p + NEWEST] = self.log.ts[pos]
            if self.instance_words[4 * p + NUMBER] == 0:
                if self.places[HELD] > self.places[BUCKETS] * 3 // 4:
                    self.places[BUCKETS] *= 2
                self.places[HELD] += 1
                self.places[TURN] += 1
                self.instance_words[4 * p + NUMBER] = self.places[TURN]
            if self.log.ts[pos] >= self.places[SEEN]:
                self.places[SEEN] = self.log.ts[pos]
                self.link[pos] = 1
            else:
                _put_aside(self.log.ts[pos] + self.span, p, self.places[ASIDE], self.times, self.instances)
                self.places[ASIDE] += 1

    def _instances(self, instances: int) -> None:
        have = len(self.mark)
        self.mark = grown(self.mark, instances)
        if len(self.mark) > have:
            self.instance_words = np.concatenate([self.instance_words, np.tile(_FRESH, len(self.mark) - have)])

    @property
    def _ends(self) -> Array:
        return self.instance_words.view(np.int32)

    def _room(self, n: int) -> None:
        """Room for `n` more events."""
        spare = self._live() // 6 + n + 256
        size = self._live() + spare
        if self.log.end + n > self.log.capacity or self.log.capacity > size + size // 8:
            self._move(spare)

    def _live(self) -> int:
        """Number of events that are needed, as far as known without reading all instances."""
        return self.log.end - int(self.places[FIRST]) + self._stuck

    def _move(self, spare: int) -> None:
        """Drop events that are no longer needed, and make room for `spare` more."""
        log, first = self.log, int(self.places[FIRST])
        if _shift(first, self._ends):  # an instance holds events that others dropped long ago
            is_held, keep = self._kept()
            has_timer, self._stuck = self._have_timer(keep), int(np.searchsorted(keep, first))
            log.compact(keep, len(keep) + spare)
            self._timers.forget()
            self._tie(is_held[keep], has_timer)
            self.places[FIRST] = self._stuck
            return
        live = log.end - first
        links = self.link[first : log.end]
        log.move(first, live + spare)
        self.link = np.empty(log.capacity, np.int32)
        self.link[:live] = links
        self._stuck, self.places[FIRST] = 0, 0

    def _kept(self) -> tuple[Array, Array]:
        """(which events instances hold, the places of those and of all whose timers have not fired)."""
        is_held = np.zeros(self.log.end, np.bool_)
        _held(self.link, self._ends, is_held)
        is_needed = is_held.copy()
        is_needed[int(self.places[FIRST]) :] = True
        return is_held, np.flatnonzero(is_needed)

    def _have_timer(self, keep: Array) -> Array:
        """True if the events at `keep` have a timer."""
        return (self.link[keep] & 1).astype(np.bool_)

    def _tie(self, is_held: Array, has_timer: Array) -> None:
        """Rebuild the links between the events of the log."""
        log = self.log
        self.link = np.zeros(log.capacity, np.int32)
        self.instance_words[ENDS::4] = -1
        _tie(log.instance[: log.end], log.ts, is_held, has_timer, self.link, self.instance_words, self._ends)

    def next_due(self) -> int | None:
        first, end = int(self.places[FIRST]), self.log.end
        with_timer = np.flatnonzero(self.link[first:end] & 1)
        due = [int(self.log.ts[first + with_timer[0]]) + self.span] if len(with_timer) else []
        if self.places[ASIDE]:
            due.append(int(self.times.min()))
        return min(due, default=None)

    def forget(self, instances: Array) -> None:
        instances = instances[instances < len(self.mark)].astype(np.int64)
        instance_rows = self.instance_words.reshape(-1, 4)
        self.places[HELD] -= np.count_nonzero(instance_rows[instances, NUMBER])
        instance_rows[instances] = _FRESH
        self.link[: self.log.end][np.isin(self.log.instance[: self.log.end], instances)] = 0  # neither chain nor timer
        self._timers.forget()
        stays = np.flatnonzero(~np.isin(self.instances, instances))
        stays = stays[np.argsort(self.times[stays], kind="stable")]  # sorted is a heap
        self.times, self.instances, self.places[ASIDE] = self.times[stays], self.instances[stays], len(stays)

    def state(self) -> dict[str, Any]:
        is_held, keep = self._kept()
        events = {"events": self.log.state(keep), "held": is_held[keep], "timed": self._have_timer(keep)}
        return {**events, "first": int(np.searchsorted(keep, self.places[FIRST])), **self._instance_state()}

    def _instance_state(self) -> dict[str, Any]:
        """The state without the events."""
        order = np.lexsort((self.instances, self.times))
        number = self.instance_words[NUMBER::4]
        there = np.flatnonzero(number)
        return {
            "seen": int(self.places[SEEN]), "newest": self.instance_words[NEWEST::4],
            "aside": {"times": self.times[order], "parts": self.instances[order]},
            "map": there[np.argsort(number[there])], "buckets": int(self.places[BUCKETS]),
        }  # fmt: skip

    def save_state(self) -> dict[str, Any]:
        """`state`, with all events from the first needed one on. An instance holds its own from `heads` on."""
        heads = self._ends[HEAD::8]
        low = int(min(heads[heads >= 0].min(initial=self.log.end), self.places[FIRST]))
        self._timers.let_go(self.log.base)

        def select_timed(a: int, b: int) -> Array:
            return (self.link[low + a : low + b] & 1).astype(np.uint8)

        end = self.log.end
        return {
            "events": self.log.save_state(low, end), "heads": np.where(heads >= 0, heads - low, -1),
            "timed": Tracked(self._timers, self.log.base + low, end - low, np.dtype(np.uint8), select_timed),
            "first": int(self.places[FIRST]) - low, **self._instance_state(),
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        self.log.load(state["events"])
        self._timers.forget()
        newest, aside_timers, there = state["newest"], state["aside"], state["map"]
        self.mark, self.instance_words = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._instances(len(newest))
        self.instance_words[NEWEST::4][: len(newest)] = newest
        self.instance_words[4 * there + NUMBER] = np.arange(1, len(there) + 1)
        is_held = state.get("held")
        if is_held is None:
            heads = state["heads"][self.log.instance[: self.log.end]]
            is_held = (heads >= 0) & (heads <= np.arange(self.log.end))
        self._tie(is_held, state["timed"].astype(np.bool_))
        self.times, self.instances, self._stuck = (
            aside_timers["times"].copy(),
            aside_timers["parts"].copy(),
            state["first"],
        )
        self.places = np.array(
            [self._stuck, state["seen"], len(self.times), 0, state["buckets"], len(there), len(there)], np.int64
        )

    @property
    def bytes(self) -> int:
        return self.log.bytes_from(int(self.places[FIRST]))
