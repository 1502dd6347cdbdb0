"""Rate limits by time: `output [all|first|last] every t`, `output snapshot every t`.

Siddhi's limiters of this kind read the wall clock even in playback. Here they run on the app's clock: a period begins
with the app's first clock step, in a partition with the event that makes the instance.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT, EXPIRED, ORDER_KEY_BITS, Clock, Rows
from ..notation.kernels import kernel
from ..select.selector import Selected, last_per_group
from ..state.declared import DeclaredByInstance, per_key
from ..state.services import Services
from .event_limiter import of_kind, without_resets
from .limiter_state import HeldRows, HeldState, LimiterRows, Out, WaitingRows

_NEVER = -(2**63)


@kernel
def _first(key: Array, chunk: Array, now: Array, once: bool, every: int, at: Array, out: Array) -> None:
    """Rows whose key has let nothing out for `every` ms; with `once`, only the first row of a chunk is looked at."""
    for i in range(len(key)):
        out[i] = False
        if once and i > 0 and chunk[i] == chunk[i - 1]:
            continue
        t = at[key[i]]
        if t == -9223372036854775808 or t + every <= now[i]:
            at[key[i]] = now[i]
            out[i] = True


class FirstPerTime(DeclaredByInstance):
    """`FirstPerTimeOutputRateLimiter` (of a chunk only its first event, which may be a RESET) and its grouped kind."""

    at = per_key(_NEVER)

    def __init__(self, every: int, has_groups: bool) -> None:
        self.every, self.has_groups = every, has_groups
        self._create()

    def run(self, selection: Selected, clock: Clock) -> Rows:
        rows = selection.rows
        n = len(rows)
        if n == 0:
            return rows
        key = selection.group if self.has_groups and selection.group is not None else rows.instances()
        self._widen(int(key.max()) + 1)
        out = np.empty(n, np.bool_)
        _first(key, rows.chunk, clock.at(rows.order_key), not self.has_groups, self.every, self.at, out)
        if rows.kind is not None:
            out &= rows.kind <= EXPIRED
        return rows.where(out)

    def next_due(self) -> int | None:
        """None: rows are let out when they come, or never."""
        return None

    @property
    def waiting_rows(self) -> WaitingRows | None:
        return None


@dataclass(slots=True)
class _Flush:
    """A flush of an instance's events: before row `before`, `repeat` times, each a chunk of its own.

    `of_row`: the row itself caused it, and not a timer.
    """

    before: int
    instance: int
    order_key: int
    repeat: int
    of_row: bool


class _FlushSchedule:
    """When instances flush: `scheduledTime` and the scheduler's queue of each (Siddhi's `Scheduler`)."""

    def __init__(self, every: int, scheduler: int, by_events: bool) -> None:
        self.every, self.scheduler, self.by_events = max(every, 1), scheduler, by_events
        self.due = np.zeros(0, np.int64)
        self.queues: list[deque[int]] = []
        self._heap: list[tuple[int, int]] = []

    def born(self, at: Array) -> None:
        """New instances, with the clock (ms) at which each was made."""
        for t in at.tolist():
            instance = len(self.queues)
            due = t + self.every
            self.due = grown(self.due, instance + 1)
            self.due[instance] = due
            self.queues.append(deque((due,)))
            heapq.heappush(self._heap, (due, instance))

    def notice(self, clock: Clock, services: Services) -> None:
        """Adds new instances."""
        instance_count = len(self.queues)
        if services.is_partitioned:
            self.born(services.partition.born()[instance_count:])
        elif instance_count == 0 and clock.may_fire.any():
            self.born(clock.now[:1])

    def run(self, rows: Rows, clock: Clock, rank: Array | None) -> list[_Flush]:
        """The flushes of this call, in order."""
        out: list[_Flush] = []
        ts, order_key, instance = rows.ts, rows.order_key, rows.instances()
        row, step = 0, clock.first
        if not self.queues:  # before the first clock step
            return out
        while True:
            step = self._next(clock, step)
            end = len(rows)
            timer = ((clock.base + step) << ORDER_KEY_BITS) | self.scheduler
            if step < clock.last:
                end = int(np.searchsorted(order_key, timer))
            if self.by_events:
                again = self._by_rows(ts, order_key, instance, row, end, out)
                if again:  # a flush by an event puts another time into a queue, but never an earlier one
                    row = end
                    continue
            row = end
            if step >= clock.last:
                return out
            for p in self._ready(int(clock.now[step]), rank):
                self._timers(p, int(clock.now[step]), row, timer, out)
            step += 1

    def _next(self, clock: Clock, step: int) -> int:
        """The first step from `step` on at which a timer is due; `clock.last` if none is."""
        if not self._heap or step >= clock.last:
            return clock.last
        step = max(step, int(np.searchsorted(clock.now, self._heap[0][0])))
        while step < clock.last and not clock.may_fire[step]:
            step += 1
        return min(step, clock.last)

    def _by_rows(self, ts: Array, order_key: Array, instance: Array, a: int, b: int, out: list[_Flush]) -> bool:
        """Rows a ≤ i < b that are as late as a flush that is due: it comes before them."""
        has_flush = False
        while a < b:
            late = ts[a:b] >= self.due[instance[a:b]]
            i = int(late.argmax())
            if not late[i]:
                break
            a += i
            p = int(instance[a])
            out.append(_Flush(a, p, int(order_key[a]), 1, True))
            self.due[p] += self.every
            self.queues[p].append(int(self.due[p]))
            has_flush = True
            a += 1
        return has_flush

    def _ready(self, now: int, rank: Array | None) -> list[int]:
        """The instances that run at `now`: of several with the same first time only the first by `rank`."""
        first: dict[int, list[int]] = {}
        while self._heap and self._heap[0][0] <= now:
            time, instance = heapq.heappop(self._heap)
            first.setdefault(time, []).append(instance)
        ready = []
        for time, instances in first.items():
            runs = instances[0] if rank is None else min(instances, key=lambda p: int(rank[p]))
            ready.append(runs)
            for p in instances:
                if p != runs:
                    heapq.heappush(self._heap, (time, p))
        return ready

    def _timers(self, instance: int, now: int, row: int, order_key: int, out: list[_Flush]) -> None:
        queue = self.queues[instance]
        while queue and queue[0] <= now:
            time = queue.popleft()
            if time >= self.due[instance]:
                repeat = (now - time) // self.every + 1
                # Rows without a snapshot are gone with the first of several flushes.
                out.append(_Flush(row, instance, order_key, repeat if self.by_events else 1, False))
                self.due[instance] = time + repeat * self.every
                queue.append(int(self.due[instance]))
        heapq.heappush(self._heap, (queue[0], instance))

    def next_due(self, instances: Iterable[int]) -> int | None:
        """When the first of these instances flushes by the clock (ms); None if none does."""
        queues = self.queues
        return min((queues[p][0] for p in instances if p < len(queues) and queues[p]), default=None)

    def forget(self, instances: Iterable[int]) -> None:
        """Removes the times of instances."""
        for p in instances:
            self.queues[p].clear()
        self._heap = [(t, p) for t, p in self._heap if self.queues[p]]
        heapq.heapify(self._heap)

    def state(self) -> Any:
        return {"due": self.due[: len(self.queues)].copy(), "queues": [list(q) for q in self.queues]}

    def load(self, state: Any) -> None:
        self.due = state["due"].copy()
        self.queues = [deque(q) for q in state["queues"]]
        self._heap = [(q[0], p) for p, q in enumerate(self.queues) if q]
        heapq.heapify(self._heap)


class TimedEvents:
    """`output [all|last] every t` (`AllPerTimeOutputRateLimiter`, `LastPerTimeOutputRateLimiter` and its grouped kind):
    rows since the last flush, or the last row of each instance or group, groups in order of first occurrence.
    """

    def __init__(
        self, every: int, last: bool, has_groups: bool, types: Sequence[Type], services: Services, scheduler: int
    ) -> None:
        self.last, self.has_groups, self.services = last, has_groups, services
        self._schedule = _FlushSchedule(every, scheduler, by_events=False)
        self._log = EventLog((*types, Type.INT, Type.LONG))
        """Waiting rows, with their type and group."""
        self._look_at = 2048

    def run(self, selection: Selected, clock: Clock) -> Rows:
        selection = without_resets(selection)
        rows, group, log = selection.rows, selection.group, self._log
        self._schedule.notice(clock, self.services)
        flushes = self._schedule.run(rows, clock, self.services.partition.rank())
        waiting_count, n = log.end, len(rows)
        kind = Column(Type.INT, rows.kinds().astype(np.int32))
        of = Column(Type.LONG, np.zeros(n, np.int64) if group is None else group.astype(np.int64))
        log.append(rows.with_columns([*rows.columns, kind, of]))
        if not flushes:
            self._tidy()
            return rows.take(np.empty(0, np.int64))
        # A row leaves with the first flush of its instance that comes after it.
        flush_instance = np.array([f.instance for f in flushes], np.int64)
        flush_end = waiting_count + np.array([f.before for f in flushes], np.int64)
        width = log.end + 1
        by = np.argsort(flush_instance * width + flush_end, kind="stable")
        instance = log.instance[: log.end].astype(np.int64)
        row_end = instance * width + np.arange(log.end)
        place = np.searchsorted((flush_instance * width + flush_end)[by], row_end, "right")
        flush = by[np.minimum(place, len(by) - 1)]
        leaves = (place < len(by)) & (flush_instance[flush] == instance)
        index = np.flatnonzero(leaves)
        index = index[np.argsort(flush[index], kind="stable")]
        index = index[self._chosen(flush[index], index)]
        columns = log.columns(index)
        *values, kinds, _ = columns
        kind_out = kinds.values.astype(np.int8)
        order_keys = np.array([f.order_key for f in flushes], np.int64)
        out = Rows(
            values, log.ts[index], order_keys[flush[index]], flush[index], kind_out if kind_out.any() else None,
            log.instance[index] if self.services.is_partitioned else None,
        )  # fmt: skip
        log.compact(np.flatnonzero(~leaves))
        return out

    def _chosen(self, block: Array, index: Array) -> Array:
        """Indexes of the waiting rows at `index` that are emitted; rows with equal `block` are emitted together."""
        if not self.last or len(index) == 0:
            return np.arange(len(index))
        if self.has_groups:
            return last_per_group(block, self._log.column(len(self._log.types) - 1, index).values)
        return np.flatnonzero(np.append(block[1:] != block[:-1], True))

    def _tidy(self) -> None:
        """Drop rows that will not be emitted, if that is worth it."""
        log = self._log
        if not self.last or log.end < self._look_at:
            return
        log.load(log.state(self._waiting_index()))
        self._look_at = 2 * log.end + 2048

    def _waiting_index(self) -> Array:
        """The rows that will be emitted, by instance."""
        instance = self._log.instance[: self._log.end]
        index = np.argsort(instance, kind="stable")
        out: Array = index[self._chosen(instance[index], index)]
        return out

    @property
    def waiting_rows(self) -> WaitingRows:
        index = self._waiting_index()
        return WaitingRows(self._log.ts[index], self._log.instance[index], self._log.columns(index)[:-2])

    def next_due(self) -> int | None:
        return self._schedule.next_due(np.unique(self._log.instance[: self._log.end]).tolist())

    def forget(self, instances: Array) -> None:
        self._log.compact(np.flatnonzero(~np.isin(self._log.instance[: self._log.end], instances)))
        self._schedule.forget(instances.tolist())

    def state(self) -> Any:
        return {"schedule": self._schedule.state(), "rows": self._log.state(np.arange(self._log.end))}

    def load(self, state: Any) -> None:
        self._schedule.load(state["schedule"])
        self._log.load(state["rows"])

    @property
    def bytes(self) -> int:
        return self._log.bytes


class Snapshots:
    """`output snapshot every t`: what `contents` shows when a time comes, or an event of that time."""

    def __init__(
        self, every: int, contents: HeldState, types: Sequence[Type], services: Services, scheduler: int
    ) -> None:
        self.contents, self.services = contents, services
        self._schedule = _FlushSchedule(every, scheduler, by_events=True)
        self._log = HeldRows(types)

    def run(self, selection: Selected, clock: Clock) -> Rows:
        if self.contents.currents_only:
            selection = of_kind(selection, CURRENT)
        rows, group = selection.rows, selection.group
        self._schedule.notice(clock, self.services)
        n = len(rows)
        serial = self._log.append(rows)
        input_rows = LimiterRows(
            serial, rows.kinds(), rows.instances(), np.zeros(n, np.int64) if group is None else group, rows
        )  # fmt: skip
        prepared_rows = self.contents.prepare(input_rows, self._log)
        outs: list[tuple[Out, _Flush]] = []
        next_row = 0
        for f in self._schedule.run(rows, clock, self.services.partition.rank()):
            if f.before > next_row:
                self.contents.add(prepared_rows, next_row, f.before)
                next_row = f.before
            outs.append((self.contents.flush(f.instance), f))
        if next_row < n:
            self.contents.add(prepared_rows, next_row, n)
        result = self._rows(outs, rows)
        self._log.tidy(self.contents)
        return result

    def _rows(self, outs: list[tuple[Out, _Flush]], rows: Rows) -> Rows:
        serial: list[Array] = []
        values: list[Array] = []
        order_keys: list[int] = []
        chunks: list[int] = []
        chunk, source = 0, -1
        for out, f in outs:
            one = np.asarray(out.serial, np.int64)
            if f.of_row:  # all that one chunk brings about is one chunk
                at = int(rows.chunk[f.before])
                chunk += at != source
                source = at
            else:
                chunk, source = chunk + 1, -1
            k = len(one)
            if k == 0:
                continue
            for _ in range(f.repeat):
                serial.append(one)
                values.append(one if out.values is None else np.asarray(out.values, np.int64))
                order_keys.append(f.order_key)
                chunks.append(chunk)
                chunk += 1
            chunk -= 1
        if not serial:
            return rows.take(np.empty(0, np.int64))
        all_serials = np.concatenate(serial)
        columns, ts, kind, instance = self._log.rows(all_serials)
        if self.contents.aggregate_attrs:
            latest = self._log.columns(np.concatenate(values), self.contents.aggregate_attrs)
            for i, c in zip(self.contents.aggregate_attrs, latest, strict=True):
                columns[i] = c
        sizes = [len(one) for one in serial]
        return Rows(
            columns, ts, np.repeat(np.array(order_keys, np.int64), sizes), np.repeat(np.array(chunks, np.int64), sizes),
            kind if kind.any() else None, instance if self.services.is_partitioned else None,
        )  # fmt: skip

    @property
    def waiting_rows(self) -> WaitingRows:
        columns, ts, _, instance = self._log.rows(list(self.contents.serials()))
        return WaitingRows(ts, instance, columns)

    def next_due(self) -> int | None:
        """The next snapshot of anything: it may turn out empty, as events leave without a sign before it."""
        if next(iter(self.contents.serials()), None) is None:
            return None
        return self._schedule.next_due(range(len(self._schedule.queues)))

    def forget(self, instances: Array) -> None:
        self.contents.drop(instances.tolist())
        self._schedule.forget(instances.tolist())

    def state(self) -> Any:
        return {
            "schedule": self._schedule.state(),
            "held": self.contents.state(),
            "log": self._log.state(self.contents),
        }

    def load(self, state: Any) -> None:
        self._schedule.load(state["schedule"])
        self._log.load(state["log"])
        self.contents.load(state["held"], self._log)

    @property
    def bytes(self) -> int:
        return self._log.bytes
