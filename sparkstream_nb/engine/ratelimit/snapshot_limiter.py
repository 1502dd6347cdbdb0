"""The state of `output snapshot every t`: one class for each of Siddhi's in `ratelimit/snapshot`.

State is kept after a flush, so the next snapshot shows it again. An expired event removes the first event with the same
output from a windowed snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.key_ids import Keys
from ..columnar.rows import CURRENT, EXPIRED, RESET
from ..notation.kernels import compiled, inlined, kernel, struct
from .limiter_state import HeldRows, LimiterRows, Out


def _currents(input_rows: LimiterRows) -> LimiterRows:
    index = (input_rows.kind == CURRENT).nonzero()[0]
    if len(index) == len(input_rows.kind):
        return input_rows
    return LimiterRows(
        input_rows.serial[index], input_rows.kind[index], input_rows.instance[index], input_rows.group[index],
        input_rows.rows.take(index),
    )  # fmt: skip


class _ByInstance:
    """Takes rows piece by piece (`take`). `_states` is plain data by partition instance."""

    aggregate_attrs: Sequence[int] = ()
    currents_only = False

    def __init__(self) -> None:
        self._states: dict[int, Any] = {}

    def prepare(self, input_rows: LimiterRows, log: HeldRows) -> LimiterRows:
        return input_rows

    def add(self, rows: LimiterRows, a: int, b: int) -> None:
        self.take(rows.slice(a, b))

    def take(self, input_rows: LimiterRows) -> None:
        raise NotImplementedError

    def drop(self, instances: Iterable[int]) -> None:
        for p in instances:
            self._states.pop(p, None)

    def state(self) -> Any:
        return {p: copy(instance_state) for p, instance_state in sorted(self._states.items())}

    def load(self, state: Any, log: HeldRows) -> None:
        self._states = {p: copy(instance_state) for p, instance_state in state.items()}


class _LastHeld(_ByInstance):
    """The last event of each instance."""

    def take(self, input_rows: LimiterRows) -> None:
        for instance, index in input_rows.by_instance():
            self._states[instance] = int(input_rows.serial[index[-1]])

    def flush(self, instance: int) -> Out:
        last = self._states.get(instance)
        return Out(() if last is None else (last,))

    def serials(self) -> Iterable[int]:
        return self._states.values()


class LastSnapshot(_LastHeld):
    """`PerSnapshotOutputRateLimiter`: the last current event, kept forever."""

    def take(self, input_rows: LimiterRows) -> None:
        super().take(_currents(input_rows))


class GroupedSnapshot(_ByInstance):
    """`GroupByPerSnapshotOutputRateLimiter`: the last current event of each group, kept forever."""

    currents_only = True

    def take(self, input_rows: LimiterRows) -> None:
        for instance, index in input_rows.by_instance():
            last = self._states.setdefault(instance, {})
            for group, serial in zip(input_rows.group[index].tolist(), input_rows.serial[index].tolist(), strict=True):
                last[group] = serial

    def flush(self, instance: int) -> Out:
        last = self._states.get(instance)
        return Out(() if last is None else list(last.values()))

    def serials(self) -> Iterable[int]:
        return (s for last in self._states.values() for s in last.values())


class OnlyAggregatesSnapshot(_LastHeld):
    """`AllAggregationPerSnapshotOutputRateLimiter`: the last event, unless it is EXPIRED or RESET."""

    def take(self, input_rows: LimiterRows) -> None:
        super().take(input_rows)
        for instance, index in input_rows.by_instance():
            if input_rows.kind[index[-1]] != CURRENT:
                self._states.pop(instance, None)


class GroupedAggregatesSnapshot(_ByInstance):
    """`AllAggregationGroupByWindowedPerSnapshotOutputRateLimiter`: per group its last event while it holds any, and how
    many it holds."""

    def take(self, input_rows: LimiterRows) -> None:
        for instance, index in input_rows.by_instance():
            groups = self._states.setdefault(instance, {})
            for group, serial, kind in zip(
                input_rows.group[index].tolist(),
                input_rows.serial[index].tolist(),
                input_rows.kind[index].tolist(),
                strict=True,
            ):
                count = groups[group][0] if group in groups else 0
                groups[group] = (count + (1 if kind == CURRENT else -1), serial)

    def flush(self, instance: int) -> Out:
        groups = self._states.get(instance)
        if not groups:
            return Out(())
        for group in [g for g, (count, _) in groups.items() if count <= 0]:
            del groups[group]
        return Out([serial for _, serial in groups.values()])

    def serials(self) -> Iterable[int]:
        return (s for groups in self._states.values() for _, s in groups.values())


SERIAL, GROUP, OUTPUT, NEXT, PREVIOUS, SAME = range(6)
"""Numbers of an event in a window: its serial number and group, the number of its output, its neighbours in the window,
and the next one with the same output."""

FIRST, LAST, SIZE, LATEST = range(4)
"""Numbers of an instance: its window's first and last event, how many it holds, and the event that aggregates were last
taken from (-1: none)."""


@struct
@dataclass
class SnapshotRows:
    """Rows that enter and leave windows, with the numbers of their groups and of their outputs."""

    serial: Array
    kind: Array
    instance: Array
    group: Array
    output: Array


@kernel
def _shown(first: int, once: bool, event: Array, seen: Array, out: Array) -> int:
    """The places of a window's events in order, or with `once` of the first of each group; returns how many. `seen` is
    all False."""
    n = 0
    at = first
    while at >= 0:
        g = event[GROUP, at]
        if not (once and seen[g]):
            out[n] = at
            n += 1
            if once:
                seen[g] = True
        at = event[NEXT, at]
    if once:
        for i in range(n):
            seen[event[GROUP, out[i]]] = False
    return n


@struct
class WindowedSnapshot:
    """`WindowedPerSnapshotOutputRateLimiter`: the window's events. `plain` are the attributes that distinguish them."""

    aggregate_attrs: Sequence[int] = ()
    currents_only = False
    once = False

    def __init__(self, plain: Sequence[int], strings: StringPool) -> None:
        self.plain, self.strings = plain, strings
        self._clear()

    def _clear(self) -> None:
        self._keys: Keys | None = None
        self._event = np.zeros((SAME + 1, 0), np.int64)
        self._free = np.full(1, -1, np.int64)
        self._window = np.full((LATEST + 1, 0), -1, np.int64)
        self._same = np.full((2, 0), -1, np.int64)
        self._latest, self._seen = np.full(0, -1, np.int64), np.zeros(0, np.bool_)

    def prepare(self, input_rows: LimiterRows, log: HeldRows) -> SnapshotRows:
        live = int(self._window[SIZE].clip(0).sum())
        if self._keys is not None and self._keys.size > 4 * (live + len(input_rows.serial)) + 4096:
            self.load(self.state(), log)  # forgets outputs that are gone
        columns = [input_rows.rows.columns[i] for i in self.plain]
        return self._number_rows(input_rows.serial, input_rows.kind, input_rows.instance, input_rows.group, columns)

    def add(self, rows: SnapshotRows, a: int, b: int) -> None:
        while (a := self._follow(rows, a, b)) < b:
            have = self._event.shape[1]  # all of which is in use
            self._event = grown(self._event, have + 1)
            size = self._event.shape[1]
            self._event[NEXT, have:] = np.append(np.arange(have + 1, size), -1)
            self._free[0] = have

    @compiled
    def _follow(self, rows: SnapshotRows, a: int, b: int) -> int:
        """Rows a ≤ i < b enter and leave windows. `_free[0]` is the first unused place of `_event`, linked by NEXT;
        `_same` holds the first and the last event of each output; `_latest` is LATEST by group. Stops if there is no
        place; returns the next row.
        """
        for i in range(a, b):
            p = rows.instance[i]
            k = rows.output[i]
            is_noted = False
            if rows.kind[i] == CURRENT:
                if self._free[0] < 0:
                    return i
                self._enter(rows.serial[i], rows.group[i], k, p)
                is_noted = True
            elif rows.kind[i] == EXPIRED:
                if self._same[0, k] >= 0:
                    self._leave(k, p)
                    is_noted = True
            else:
                self._clear_window(p)
            if is_noted:
                self._window[LATEST, p] = rows.serial[i]
                self._latest[rows.group[i]] = rows.serial[i]
        return b

    @inlined
    def _enter(self, serial: int, group: int, k: int, p: int) -> None:
        at = self._free[0]
        self._free[0] = self._event[NEXT, at]
        self._event[SERIAL, at] = serial
        self._event[GROUP, at] = group
        self._event[OUTPUT, at] = k
        self._event[NEXT, at] = -1
        self._event[SAME, at] = -1
        self._event[PREVIOUS, at] = self._window[LAST, p]
        if self._window[LAST, p] >= 0:
            self._event[NEXT, self._window[LAST, p]] = at
        else:
            self._window[FIRST, p] = at
        self._window[LAST, p] = at
        self._window[SIZE, p] += 1
        if self._same[0, k] >= 0:
            self._event[SAME, self._same[1, k]] = at
        else:
            self._same[0, k] = at
        self._same[1, k] = at

    @inlined
    def _leave(self, k: int, p: int) -> None:
        """The first event with output `k` leaves."""
        at = self._same[0, k]
        self._same[0, k] = self._event[SAME, at]
        before, after = self._event[PREVIOUS, at], self._event[NEXT, at]
        if before >= 0:
            self._event[NEXT, before] = after
        else:
            self._window[FIRST, p] = after
        if after >= 0:
            self._event[PREVIOUS, after] = before
        else:
            self._window[LAST, p] = before
        self._window[SIZE, p] -= 1
        self._event[NEXT, at] = self._free[0]
        self._free[0] = at

    @inlined
    def _clear_window(self, p: int) -> None:
        at = self._window[FIRST, p]
        while at >= 0:
            after = self._event[NEXT, at]
            self._same[0, self._event[OUTPUT, at]] = -1
            self._event[NEXT, at] = self._free[0]
            self._free[0] = at
            at = after
        self._window[FIRST, p] = -1
        self._window[LAST, p] = -1
        self._window[SIZE, p] = 0

    def _number_rows(
        self, serial: Array, kind: Array, instance: Array, group: Array, columns: list[Column]
    ) -> SnapshotRows:
        """The rows with the numbers of their outputs; `columns` distinguish events."""
        if len(serial) == 0:
            return SnapshotRows(serial, kind, instance, group, serial)
        # A text is told from null; elsewhere its code is its number.
        columns = [Column(Type.INT, c.values) if c.type is Type.STRING else c for c in columns]
        columns.insert(0, Column(Type.INT, instance.astype(np.int32, copy=False)))
        if self._keys is None:
            self._keys = Keys([c.type for c in columns], self.strings, instances=True)
        output = self._keys.ids(columns)
        self._same = grown(self._same, self._keys.size, -1)
        self._latest = grown(self._latest, int(group.max()) + 1, -1)
        self._seen = grown(self._seen, len(self._latest), False)
        instances = int(instance.max()) + 1
        have = self._window.shape[1]
        self._window = grown(self._window, instances, -1)
        self._window[SIZE, have:] = 0
        return SnapshotRows(serial, kind.astype(np.int8, copy=False), instance.astype(np.int64), group, output)

    def _events(self, instance: int, once: bool) -> Array:
        """Places of the events that a window shows."""
        out = np.empty(self._window[SIZE, instance], np.int64)
        return out[: _shown(self._window[FIRST, instance], once, self._event, self._seen, out)]

    def flush(self, instance: int) -> Out:
        if instance >= self._window.shape[1] or self._window[SIZE, instance] <= 0:
            return Out(())
        at = self._events(instance, self.once)
        return Out(self._event[SERIAL, at], self._values(instance, at))

    def _values(self, instance: int, at: Array) -> Array | None:
        """The events that the aggregates of those at places `at` come from."""
        return None

    def _instances(self) -> list[int]:
        """The instances whose windows hold something."""
        return np.flatnonzero(self._window[SIZE] > 0).tolist()

    def serials(self) -> Iterable[int]:
        for p in self._instances():
            at = self._events(p, False)
            yield from self._event[SERIAL, at].tolist()
            yield int(self._window[LATEST, p])
            yield from np.unique(self._latest[self._event[GROUP, at]]).tolist()

    def drop(self, instances: Iterable[int]) -> None:
        for p in instances:
            if p < self._window.shape[1]:
                instance = np.array([p])
                self.add(
                    SnapshotRows(instance, np.array([RESET], np.int8), instance, instance, instance.astype(np.int32)),
                    0,
                    1,
                )

    def state(self) -> Any:
        instances = self._instances()
        places = [self._events(p, False) for p in instances]
        at = np.concatenate([np.empty(0, np.int64), *places])
        return {
            "serials": self._event[SERIAL, at],
            "groups": self._event[GROUP, at],
            "parts": np.repeat(np.array(instances, np.int64), [len(p) for p in places]),
            "latest": self._latest[self._event[GROUP, at]],
            "last": self._window[LATEST].copy(),
        }

    def load(self, state: Any, log: HeldRows) -> None:
        self._clear()
        serial, group, instance = state["serials"], state["groups"], state["parts"]
        n = len(serial)
        if n:
            columns: list[Column] = log.columns(serial, self.plain)
            self.add(self._number_rows(serial, np.full(n, CURRENT), instance, group, columns), 0, n)
            self._latest[group] = state["latest"]
            width = min(len(state["last"]), self._window.shape[1])
            self._window[LATEST, :width] = state["last"][:width]


class AggregatedSnapshot(WindowedSnapshot):
    """`AggregationWindowedPerSnapshotOutputRateLimiter`: the events of the window, all with the latest aggregates."""

    def __init__(self, plain: Sequence[int], aggregate_attrs: Sequence[int], strings: StringPool) -> None:
        super().__init__(plain, strings)
        self.aggregate_attrs = aggregate_attrs

    def _values(self, instance: int, at: Array) -> Array | None:
        return np.full(len(at), self._window[LATEST, instance])


class GroupedAggregatedSnapshot(AggregatedSnapshot):
    """`AggregationGroupByWindowedPerSnapshotOutputRateLimiter`: each group's first event, its latest aggregates."""

    once = True

    def _values(self, instance: int, at: Array) -> Array | None:
        latest: Array = self._latest[self._event[GROUP, at]]
        return latest
