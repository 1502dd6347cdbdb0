"""A reordering step: its arguments, its log, and its snapshot.

Rules of `KSlackExtension` and `AlphaKSlackExtension` of siddhi-execution-reorder: the slack K is the greatest disorder
seen so far; an event leaves once the greatest time seen is K ahead of its own; with a timeout, a timer emits events
that have waited too long. In a partition there is also only one timer: it belongs to the instance that set it and, once
that holds no events, to the instance of the next event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import wider
from ..columnar.column_data import Array, Column, writable
from ..columnar.eventlog import EventLog
from ..columnar.rows import Clock, Rows
from .adapting import Adapting
from .reorder_buffer import COUNT, GREATEST, HELD, MERGED, NEW, SCHEDULED, SENT, SLACK, TIME, WIDTH, Leaving
from .reorder_loop import DROPPED, DUE, IDLE, NO_TIMEOUT, OUT, ROW, Coming, Reordering

_UNBOUNDED = 2**63 - 1
_KEPT = [GREATEST, SLACK, SENT, SCHEDULED, COUNT]
"""Fields of an instance in a snapshot, besides its events."""

_NONE = np.empty(0, np.int32)

_SMALL = 2048
"""A log with so few events is left as it is."""


class ReorderStep:
    """A reordering step. `adaptive` makes it `akslack`, whose second argument is the correlation field."""

    def __init__(
        self, types: Sequence[Type], constants: Sequence[Any], scheduler: int, adaptive: bool, is_partitioned: bool
    ) -> None:
        self.types, self.scheduler = tuple(types), scheduler
        self.adaptive, self.is_partitioned = adaptive, is_partitioned
        self.timeout, self.most, self.drop_late = NO_TIMEOUT, _UNBOUNDED, False
        self.batch, self.threshold, self.confidence = 10000, 0.03, 0.95
        rest = list(constants)
        if adaptive:
            self.batch = rest[0] if rest else self.batch
            if len(rest) > 4:
                self.threshold, self.confidence = rest[4:6]
            rest = rest[1:4]
        if len(rest) == 1 and isinstance(rest[0], bool):
            self.drop_late = rest[0]
        elif rest:
            self.timeout = rest[0]
            if len(rest) > 1 and isinstance(rest[1], bool):
                self.drop_late = rest[1]
            elif len(rest) > 1:
                self.most = _UNBOUNDED if adaptive and rest[1] == -1 else rest[1]
                self.drop_late = bool(rest[2]) if len(rest) > 2 else False
        self._clear()

    def _clear(self) -> None:
        self.log = EventLog(self.types, is_partitioned=self.is_partitioned)
        self._loop = Reordering(
            self.adaptive, self.batch, self.drop_late, self.timeout, self.most, self.scheduler
        )
        self._waiting = self._loop.waiting
        self._waiting_count = 0
        # An app in a partition starts with its timer set, and no instance yet that it belongs to.
        self._loop.timer = np.array([-1 if self.is_partitioned else 0, self.timeout, 0], np.int64)
        self._adapting = Adapting(self.threshold, self.confidence)
        if not self.is_partitioned:
            self._room_for_instances(1)
            self._waiting.fields[0, SCHEDULED] = self.timeout

    def _room_for_instances(self, instances: int) -> Array:
        """The instances' fields, with room for `instances` instances."""
        have = len(self._waiting.fields)
        if have < instances:
            more = np.tile(NEW, (max(instances, wider(have)) - have, 1))
            self._waiting.fields = np.concatenate([self._waiting.fields, more])
        return self._waiting.fields

    def _nodes(self, count: int) -> Array:
        """Room for the log's events, of which the first are known."""
        have = len(self._waiting.node)
        if have < self.log.capacity:
            node = np.empty((max(self.log.capacity * 5 // 4, wider(have)), WIDTH), np.int64)
            node[:count] = self._waiting.node[:count]
            self._waiting.node = node
        return self._waiting.node

    def run(self, rows: Rows, args: Sequence[Column], clock: Clock, instances: int) -> Rows:
        """The emitted rows in their new order: those released by one chunk, or by a timer, are one chunk."""
        n, at = len(rows), self.log.append(rows)
        time = writable(np.ascontiguousarray(args[0].values, np.int64)) if n else np.empty(0, np.int64)
        value = args[1].values.astype(np.float64, copy=False) if self.adaptive and n else np.empty(0)
        instance = rows.instances() if self.is_partitioned else _NONE
        fields = self._room_for_instances(instances)
        self._nodes(at)
        out, coming = Leaving(self._waiting_count + n), Coming(at, time, instance, rows.order_key, rows.chunk)
        self._loop.cursor = cursor = np.array([0, clock.first, 0, 0, 0, 0], np.int64)
        noted_end, reorder = 0, self._loop.reorder
        while True:
            self._loop.alpha = self._adapting.alpha
            waits = reorder(coming, clock, out)
            if self.adaptive:
                row = int(cursor[ROW])
                end = row + 1 if waits else n
                self._adapting.note(time[noted_end:end], value[noted_end:end], instance[noted_end:end])
                noted_end = end
            if not waits:
                break
            p = int(instance[row]) if self.is_partitioned else 0
            self._adapting.adapt(p, int(time[row]), int(fields[p, SLACK]))
        count = int(cursor[OUT])
        self._waiting_count += n - count - int(cursor[DROPPED])
        pos, order_key, chunk = (a[:count] for a in (out.pos, out.order_key, out.chunk))
        instance_out = None if rows.instance is None else self.log.instance[pos]
        result = Rows(self.log.at(pos), self.log.ts[pos], order_key, chunk, None, instance_out)
        self._compact(n)
        return result

    def _compact(self, more: int) -> None:
        """Drop the events that have left, if they are most of the log; there is room for `more` then."""
        if self.log.end < _SMALL or 2 * self._waiting_count > self.log.end:
            return
        keep = np.empty(self._waiting_count, np.int64)
        self._waiting.close_ranks(self.log.end, keep)
        size = self._waiting_count + self._waiting_count // 3 + more
        self.log.compact(keep, size)
        if len(self._waiting.node) > 2 * size:
            self._waiting.node = self._waiting.node[:size].copy()

    def next_due(self) -> int | None:
        """Time (ms) of the timer that may emit waiting events; None if there is none."""
        if self.timeout == NO_TIMEOUT or not self._waiting_count or self._loop.timer[IDLE]:
            return None
        return int(self._loop.timer[DUE])

    def state(self) -> dict[str, Any]:
        node = self._waiting.node[: self.log.end]
        keep = np.flatnonzero(node[:, HELD])
        instance = self.log.instance[keep] if self.is_partitioned else np.zeros(len(keep), np.int32)
        used_instances = np.flatnonzero(np.any(self._waiting.fields != NEW, axis=1))
        return {
            "events": self.log.state(keep),
            "times": node[keep, TIME],
            "fresh": keep > self._waiting.fields[instance, MERGED],
            "instances": self._waiting.fields[: used_instances[-1] + 1 if len(used_instances) else 0, _KEPT],
            "timer": self._loop.timer.copy(),
            "adapting": self._adapting.state() if self.adaptive else None,
        }

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        self.log.load(state["events"])
        self._waiting_count = self.log.end
        self._room_for_instances(len(state["instances"]))[: len(state["instances"]), _KEPT] = state["instances"]
        self._loop.timer = state["timer"].copy()
        self._nodes(0)
        instance = self.log.instance[: self.log.end] if self.is_partitioned else _NONE
        self._waiting.hold(state["times"], instance, state["fresh"])
        if self.adaptive:
            self._adapting.load(state["adapting"])

    @property
    def held(self) -> int:
        """Number of waiting events."""
        return int(self._waiting_count)

    @property
    def bytes(self) -> int:
        """Bytes that the waiting events take."""
        return self.log.bytes_from(self.log.end - self._waiting_count)
