"""Output rate limits (`output ...`). Siddhi's `query/output/ratelimit` (`OutputParser` chooses the class).

A limiter is between a query's select and its output: it takes `Selected` rows, CURRENT, EXPIRED and (from a select
without group by) RESET ones, and gives rows. Time-based limiters have one scheduler, counted after the schedulers of
the query's input. State is per partition instance and plain data.
"""

from __future__ import annotations

from typing import Any, Protocol

from ...plan import nodes
from ..columnar.column_data import Array
from ..columnar.rows import Clock, Rows
from ..select.selector import Selected
from ..state.services import Services
from .event_limiter import AllEvents, FirstEvents, LastEvents, LastGroupEvents
from .limiter_state import HeldState, WaitingRows
from .snapshot_limiter import (
    AggregatedSnapshot,
    GroupedAggregatedSnapshot,
    GroupedAggregatesSnapshot,
    GroupedSnapshot,
    LastSnapshot,
    OnlyAggregatesSnapshot,
    WindowedSnapshot,
)
from .time_limiter import FirstPerTime, Snapshots, TimedEvents


class Limiter(Protocol):
    """One query's rate limit."""

    def run(self, selection: Selected, clock: Clock) -> Rows:
        """The output rows for these rows, and for the timers that `clock` lets fire."""
        ...

    @property
    def waiting_rows(self) -> WaitingRows | None:
        """The outputs that it holds back; None if it never holds any."""
        ...

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone can let rows out; None if no time does."""
        ...

    def forget(self, instances: Array) -> None:
        """Drops the state of purged partition instances."""
        ...

    def state(self) -> Any: ...

    def load(self, state: Any) -> None: ...

    @property
    def bytes(self) -> int:
        """Bytes held."""
        ...


def waits(rate: nodes.Rate | None) -> bool:
    """True if the limiter emits rows when only the clock moves, so that it needs a scheduler."""
    return rate is not None and rate.unit == "time" and rate.kind != "first"


def limiter(query: nodes.Query, services: Services, scheduler: int) -> Limiter | None:
    """The limiter of a query, None if it has no rate limit. `scheduler` is the number of its timer phase."""
    rate = query.rate
    if rate is None:
        return None
    types = tuple(i.expr.type for i in query.select.items)
    has_groups = bool(query.select.group_by)
    if rate.unit == "events":
        if rate.kind == "all":
            return AllEvents(rate.every, types)
        if rate.kind == "first":
            return FirstEvents(rate.every, has_groups)
        return LastGroupEvents(rate.every, types) if has_groups else LastEvents(rate.every)
    if rate.kind == "first":
        return FirstPerTime(rate.every, has_groups)
    if rate.kind == "snapshot":
        return Snapshots(rate.every, _snapshot(query, services), types, services, scheduler)
    return TimedEvents(rate.every, rate.kind == "last", has_groups, types, services, scheduler)


def _snapshot(query: nodes.Query, services: Services) -> HeldState:
    """State of a snapshot limiter, as `WrappedSnapshotOutputRateLimiter` chooses it.

    Only the query's own window counts as one (a named window does not), and only attributes that are nothing but an
    aggregate count as aggregated.
    """
    has_groups = bool(query.select.group_by)
    source = query.input
    has_window = isinstance(source, nodes.JoinInput) or (
        isinstance(source, nodes.StreamInput) and any(isinstance(s, nodes.WindowStep) for s in source.steps)
    )
    if not has_window:
        return GroupedSnapshot() if has_groups else LastSnapshot()
    aggregate_attrs = [i for i, item in enumerate(query.select.items) if isinstance(item.expr, nodes.Agg)]
    plain = [i for i in range(len(query.select.items)) if i not in aggregate_attrs]
    if not aggregate_attrs:
        return WindowedSnapshot(plain, services.strings)
    if not plain:
        return GroupedAggregatesSnapshot() if has_groups else OnlyAggregatesSnapshot()
    kind = GroupedAggregatedSnapshot if has_groups else AggregatedSnapshot
    return kind(plain, aggregate_attrs, services.strings)


__all__ = ["Limiter", "limiter", "waits"]
