"""What `output snapshot every t` keeps: Siddhi's classes in `ratelimit/snapshot`, one each.

What is kept stays after a flush, so that the next snapshot shows it again. An expired event takes out of a windowed
snapshot the first event that has the same output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from ..columns import Column
from ..rows import CURRENT, EXPIRED
from .held import Log, Out, Taken


def _currents(taken: Taken) -> Taken:
    index = (taken.kind == CURRENT).nonzero()[0]
    if len(index) == len(taken.kind):
        return taken
    return Taken(
        taken.serial[index], taken.kind[index], taken.part[index], taken.group[index], taken.rows.take(index)
    )  # fmt: skip


class _LastHeld:
    """The last event of each instance."""

    aggregated: Sequence[int] = ()
    currents_only = False

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def add(self, taken: Taken, log: Log) -> None:
        for part, index in taken.by_part():
            self._last[part] = int(taken.serial[index[-1]])

    def flush(self, part: int) -> Out:
        last = self._last.get(part)
        return Out(() if last is None else (last,))

    def serials(self) -> Iterable[int]:
        return self._last.values()

    def drop(self, parts: Iterable[int]) -> None:
        for p in parts:
            self._last.pop(p, None)

    def state(self) -> Any:
        return dict(sorted(self._last.items()))

    def load(self, state: Any, log: Log) -> None:
        self._last = dict(state)


class LastSnapshot(_LastHeld):
    """`PerSnapshotOutputRateLimiter`: the last current event, for ever."""

    def add(self, taken: Taken, log: Log) -> None:
        super().add(_currents(taken), log)


class GroupedSnapshot:
    """`GroupByPerSnapshotOutputRateLimiter`: the last current event of each group, for ever."""

    aggregated: Sequence[int] = ()
    currents_only = True

    def __init__(self) -> None:
        self._last: dict[int, dict[int, int]] = {}

    def add(self, taken: Taken, log: Log) -> None:
        for part, index in taken.by_part():
            last = self._last.setdefault(part, {})
            for group, serial in zip(taken.group[index].tolist(), taken.serial[index].tolist(), strict=True):
                last[group] = serial

    def flush(self, part: int) -> Out:
        last = self._last.get(part)
        return Out(() if last is None else list(last.values()))

    def serials(self) -> Iterable[int]:
        return (s for last in self._last.values() for s in last.values())

    def drop(self, parts: Iterable[int]) -> None:
        for p in parts:
            self._last.pop(p, None)

    def state(self) -> Any:
        return {p: dict(last) for p, last in sorted(self._last.items())}

    def load(self, state: Any, log: Log) -> None:
        self._last = {p: dict(last) for p, last in state.items()}


class OnlyAggregatesSnapshot(_LastHeld):
    """`AllAggregationPerSnapshotOutputRateLimiter`: the last event, unless that expired or reset something."""

    def add(self, taken: Taken, log: Log) -> None:
        super().add(taken, log)
        for part, index in taken.by_part():
            if taken.kind[index[-1]] != CURRENT:
                self._last.pop(part, None)


class GroupedAggregatesSnapshot:
    """`AllAggregationGroupByWindowedPerSnapshotOutputRateLimiter`: per group its last event while it holds any."""

    aggregated: Sequence[int] = ()
    currents_only = False

    def __init__(self) -> None:
        self._groups: dict[int, dict[int, tuple[int, int]]] = {}  # instance → group → (events held, last event)

    def add(self, taken: Taken, log: Log) -> None:
        for part, index in taken.by_part():
            groups = self._groups.setdefault(part, {})
            for group, serial, kind in zip(
                taken.group[index].tolist(), taken.serial[index].tolist(), taken.kind[index].tolist(), strict=True
            ):
                count = groups[group][0] if group in groups else 0
                groups[group] = (count + (1 if kind == CURRENT else -1), serial)

    def flush(self, part: int) -> Out:
        groups = self._groups.get(part)
        if not groups:
            return Out(())
        for group in [g for g, (count, _) in groups.items() if count <= 0]:
            del groups[group]
        return Out([serial for _, serial in groups.values()])

    def serials(self) -> Iterable[int]:
        return (s for groups in self._groups.values() for _, s in groups.values())

    def drop(self, parts: Iterable[int]) -> None:
        for p in parts:
            self._groups.pop(p, None)

    def state(self) -> Any:
        return {p: dict(groups) for p, groups in sorted(self._groups.items())}

    def load(self, state: Any, log: Log) -> None:
        self._groups = {p: dict(groups) for p, groups in state.items()}


class _Window:
    """The events of one instance's window, in order, to be taken out by equal output."""

    def __init__(self) -> None:
        self.events: dict[int, tuple[Any, ...]] = {}
        self.by_output: dict[tuple[Any, ...], deque[int]] = {}
        self.group: dict[int, int] = {}
        self.values: dict[int, int] = {}  # group → the event that its aggregates were last taken from

    def add(self, serial: int, output: tuple[Any, ...], group: int) -> None:
        self.events[serial] = output
        self.by_output.setdefault(output, deque()).append(serial)
        self.group[serial] = group

    def remove(self, output: tuple[Any, ...]) -> bool:
        """Takes the first event with this output out; False where there is none."""
        same = self.by_output.get(output)
        if same is None:
            return False
        serial = same.popleft()
        if not same:
            del self.by_output[output]
        del self.events[serial], self.group[serial]
        return True

    def state(self) -> Any:
        return {"events": [(s, self.group[s]) for s in self.events], "values": dict(self.values)}


def _outputs(columns: Sequence[Column], n: int, log: Log) -> list[tuple[Any, ...]]:
    """Values by row that are equal where Java's are: strings by code, NaN equal to itself, objects by their text."""
    lists: list[list[Any]] = []
    for c in columns:
        values = c.values.tolist()
        if c.values.dtype == object:
            values = [repr(v) for v in values]
        elif c.values.dtype.kind == "f":
            values = ["NaN" if v != v else v for v in values]
        if c.null is not None:
            for i in c.null.nonzero()[0].tolist():
                values[i] = None
        lists.append(values)
    return list(zip(*lists, strict=True)) if lists else [()] * n


class WindowedSnapshot:
    """`WindowedPerSnapshotOutputRateLimiter`: the window's events. `plain` are the attributes that tell them apart."""

    aggregated: Sequence[int] = ()
    currents_only = False

    def __init__(self, plain: Sequence[int]) -> None:
        self.plain = plain
        self._windows: dict[int, _Window] = {}

    def add(self, taken: Taken, log: Log) -> None:
        outputs = _outputs([taken.rows.columns[i] for i in self.plain], len(taken.serial), log)
        kinds, groups, serials = taken.kind.tolist(), taken.group.tolist(), taken.serial.tolist()
        for i, part in enumerate(taken.part.tolist()):
            window = self._windows.get(part)
            if window is None:
                window = self._windows[part] = _Window()
            if kinds[i] == CURRENT:
                window.add(serials[i], outputs[i], groups[i])
                self._note(window, groups[i], serials[i])
            elif kinds[i] == EXPIRED:
                if window.remove(outputs[i]):
                    self._note(window, groups[i], serials[i])
            else:
                self._windows[part] = _Window()

    def _note(self, window: _Window, group: int, serial: int) -> None:
        """Aggregates come from this event now."""

    def flush(self, part: int) -> Out:
        window = self._windows.get(part)
        return Out(()) if window is None else self._shown(window)

    def _shown(self, window: _Window) -> Out:
        return Out(list(window.events))

    def serials(self) -> Iterable[int]:
        for window in self._windows.values():
            yield from window.events
            yield from window.values.values()

    def drop(self, parts: Iterable[int]) -> None:
        for p in parts:
            self._windows.pop(p, None)

    def state(self) -> Any:
        return {p: w.state() for p, w in sorted(self._windows.items())}

    def load(self, state: Any, log: Log) -> None:
        self._windows = {}
        for part, s in state.items():
            window = self._windows[part] = _Window()
            serials = [serial for serial, _ in s["events"]]
            outputs = _outputs(log.columns(serials, self.plain), len(serials), log)
            for (serial, group), output in zip(s["events"], outputs, strict=True):
                window.add(serial, output, group)
            window.values = dict(s["values"])


class AggregatedSnapshot(WindowedSnapshot):
    """`AggregationWindowedPerSnapshotOutputRateLimiter`: the events of the window, all with the latest aggregates."""

    def __init__(self, plain: Sequence[int], aggregated: Sequence[int]) -> None:
        super().__init__(plain)
        self.aggregated = aggregated

    def _note(self, window: _Window, group: int, serial: int) -> None:
        window.values[0] = serial

    def _shown(self, window: _Window) -> Out:
        return Out(list(window.events), [window.values[0]] * len(window.events))


class GroupedAggregatedSnapshot(AggregatedSnapshot):
    """`AggregationGroupByWindowedPerSnapshotOutputRateLimiter`: each group's first event, its latest aggregates."""

    def _note(self, window: _Window, group: int, serial: int) -> None:
        window.values[group] = serial

    def _shown(self, window: _Window) -> Out:
        first: dict[int, int] = {}
        for serial, group in window.group.items():
            first.setdefault(group, serial)
        for gone in [g for g in window.values if g not in first]:
            del window.values[gone]
        return Out(list(first.values()), [window.values[g] for g in first])
