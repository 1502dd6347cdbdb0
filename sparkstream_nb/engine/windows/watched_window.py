"""A window that is watched for a trace: its events are numbered as they arrive, and its contents can be read.

The contents come from the window's own state, so that they are those that a restored window would continue with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...plan.nodes import WindowStep
from ...types import Type
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.eventlog import rows_of
from ..columnar.rows import Clock, Rows
from .batch import BatchWindow
from .batch_windows import BatchesInLine
from .cron import CronWindow
from .delay import DelayByInstance
from .expression import ExpressionBatchWindow, ExpressionWindow
from .external import ExternalTimeBatchWindow, ExternalTimeWindow
from .frequent import FrequentWindow, LossyFrequentWindow
from .length import LengthBatchWindow, LengthWindow
from .session import SessionWindow
from .sort import SortWindow
from .time import TimeInLine
from .time_batch import TimeBatchWindow
from .time_by_instance import TimeByInstance
from .timelength import TimeLengthWindow
from .unique import UniqueEverWindow, UniqueList
from .unique_keys import KeyedWindow
from .window_protocol import Window


@dataclass(frozen=True)
class HeldEvents:
    """Events in a window. `waiting`: they have not been emitted yet, as in a batch that is being collected."""

    rows: Rows
    waiting: bool


def held_events(window: Window) -> list[HeldEvents]:
    """The contents of a window. Raises TypeError for a class without a rule here."""
    state: Any = window.state()
    if isinstance(window, KeyedWindow):
        return _events_by_key(window, state)
    if isinstance(window, BatchesInLine):
        rows, new = rows_of(state["events"]), int(state["places"][1])
        return [HeldEvents(rows.slice(0, new), False), HeldEvents(rows.slice(new, len(rows)), True)]
    if isinstance(window, TimeInLine):
        rows = rows_of(state["events"])
        return [HeldEvents(rows.slice(int(state["places"][0]), len(rows)), window.moves)]
    if isinstance(window, TimeByInstance):
        return [HeldEvents(rows_of(state["events"]).where(state["held"]), False)]
    if isinstance(window, LengthBatchWindow | TimeBatchWindow):
        return _batches(state["current"], state["expired"], not window.streaming)
    if isinstance(window, CronWindow):
        return _batches(state["current"], state["expired"], True)
    if isinstance(window, ExternalTimeBatchWindow):
        return _batches(state["pending"], state["held"], True)
    if isinstance(window, ExpressionBatchWindow):
        current, last_batch = state["lists"]
        return _batches(current, last_batch, not window.streaming)
    if isinstance(window, ExpressionWindow | SessionWindow):
        return [HeldEvents(rows_of(events), False) for events in state["lists"]]
    if isinstance(window, _PLAIN):
        return [HeldEvents(rows_of(state["events"]), isinstance(window, DelayByInstance))]
    raise TypeError(f"{type(window).__name__} has no rule for its contents in held_events")


_PLAIN = (
    LengthWindow, TimeLengthWindow, ExternalTimeWindow, BatchWindow, DelayByInstance, SortWindow, FrequentWindow,
    LossyFrequentWindow, UniqueEverWindow,
)  # fmt: skip
"""Windows whose state has its contents, and nothing but them, under `events`."""


def _batches(current: dict[str, Any], last_batch: dict[str, Any], waiting: bool) -> list[HeldEvents]:
    return [HeldEvents(rows_of(last_batch), False), HeldEvents(rows_of(current), waiting)]


def _events_by_key(window: KeyedWindow, state: dict[str, Any]) -> list[HeldEvents]:
    """The contents of a window whose events are found by key: its list, or its last batch and the one at hand."""
    rows, first = rows_of(state["events"]), state["by_key"][0]
    last_batch = rows.take(np.sort(state["chains"][window.chains.index(window.shows)]["events"]))
    if isinstance(window, UniqueList):
        return [HeldEvents(last_batch, False)]
    return [HeldEvents(last_batch, False), HeldEvents(rows.take(np.sort(first[first >= 0])), True)]


class WindowEvent(NamedTuple):
    """An event that arrived at a window: its number, its partition instance, its timestamp (ms) and its values."""

    number: int
    instance: int
    timestamp: int
    values: tuple[Any, ...]


class WatchedWindow:
    """A window whose events carry a number, in the column `at`, that no one outside sees; the columns before it are
    the attributes `names`. It keeps a record of what arrives and leaves until `take` returns it.
    """

    def __init__(self, window: Window, names: Sequence[str], stream: str, step: WindowStep) -> None:
        self.inner, self.names, self.stream, self.step, self._at = window, tuple(names), stream, step, len(names)
        self._arrivals: list[Rows] = []
        self._emissions: list[tuple[int, int]] = []
        self._count = 0

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        if len(rows):
            self._arrivals.append(rows)
        numbers = Column(Type.LONG, np.arange(self._count, self._count + len(rows), dtype=np.int64))
        self._count += len(rows)
        columns = list(rows.columns)
        out = self.inner.run(
            rows.with_columns([*columns[: self._at], numbers, *columns[self._at :]]), clock, instances, hashes
        )
        rest = list(out.columns)
        self._emissions += zip(rest.pop(self._at).values.tolist(), out.kinds().tolist(), strict=True)
        return out.with_columns(rest)

    def take(self, strings: StringPool) -> tuple[list[WindowEvent], list[tuple[int, int]]]:
        """The events that arrived since the last call, and the rows that were emitted: their event's number, and
        their kind (`columnar.rows`)."""
        events = []
        number = self._count - sum(map(len, self._arrivals))
        for rows in self._arrivals:
            values = zip(*(c.to_list(strings) for c in rows.columns[: self._at]), strict=True)
            for instance, ts, row in zip(rows.instances().tolist(), rows.ts.tolist(), values, strict=True):
                events.append(WindowEvent(number, instance, ts, tuple(row)))
                number += 1
        emissions = self._emissions
        self._arrivals, self._emissions = [], []
        return events, emissions

    def contents(self) -> list[tuple[int, bool]]:
        """The number of each event that the window holds, and whether it waits to be emitted."""
        numbers = []
        for events in held_events(self.inner):
            if len(events.rows):
                numbers += [(int(n), events.waiting) for n in events.rows.columns[self._at].values.tolist()]
        return numbers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
