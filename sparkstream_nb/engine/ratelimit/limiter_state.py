"""The state of snapshot limiters, and their output at a flush.

Events are named by serial numbers, which never change; `HeldRows` holds their rows. So the state of a `HeldState` is
numbers. """

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..columnar.column_data import Array, Column
from ..columnar.eventlog import EventLog
from ..columnar.rows import Rows


@dataclass(frozen=True)
class LimiterRows:
    """Input rows of a limiter: `serial` int64[n], `kind` int8[n], `instance` int32[n], `group` int64[n] (zeros where
    the query does not group), `rows` with the values."""

    serial: Array
    kind: Array
    instance: Array
    group: Array
    rows: Rows

    def slice(self, a: int, b: int) -> LimiterRows:
        return LimiterRows(self.serial[a:b], self.kind[a:b], self.instance[a:b], self.group[a:b], self.rows.slice(a, b))

    def by_instance(self) -> Iterable[tuple[int, Array]]:
        """(instance, its rows in order) pairs."""
        n = len(self.instance)
        if n == 0:
            return
        if (self.instance == self.instance[0]).all():
            yield int(self.instance[0]), np.arange(n)
            return
        order = np.argsort(self.instance, kind="stable")
        cuts = np.flatnonzero(np.diff(self.instance[order])) + 1
        for index in np.split(order, cuts):
            yield int(self.instance[index[0]]), index


@dataclass(frozen=True)
class Out:
    """Output events in order; the values of the aggregated attributes come from `values` if given."""

    serial: Sequence[int] | Array
    values: Sequence[int] | Array | None = None


class HeldState(Protocol):
    """The state per partition instance.

    `aggregate_attrs` are the attributes whose values come from `Out.values`; with `currents_only` other events do not
    cause a flush.
    """

    aggregate_attrs: Sequence[int]
    currents_only: bool

    def prepare(self, input_rows: LimiterRows, log: HeldRows) -> Any:
        """Prepares the rows of a call for `add`."""
        ...

    def add(self, rows: Any, a: int, b: int) -> None:
        """Add rows a ≤ i < b of the result of `prepare`: the rows between two flushes."""
        ...

    def flush(self, instance: int) -> Out:
        """The output of an instance at a flush."""
        ...

    def serials(self) -> Iterable[int]:
        """The events that must be kept."""
        ...

    def drop(self, instances: Iterable[int]) -> None:
        """Forgets instances."""
        ...

    def state(self) -> Any: ...

    def load(self, state: Any, log: HeldRows) -> None: ...


@dataclass(frozen=True)
class WaitingRows:
    """Outputs that a rate limit holds back: timestamps (ms), partition instances, and columns of values."""

    ts: Array
    instance: Array
    columns: Sequence[Column]


class HeldRows:
    """The rows of events by serial number: values, time and kind."""

    def __init__(self, types: Sequence[Type]) -> None:
        self.width = len(types)
        self._log = EventLog((*types, Type.INT, Type.LONG))
        self.next = 0
        self._look_at = 2048

    def append(self, rows: Rows) -> Array:
        """Adds rows; returns their serial numbers."""
        n = len(rows)
        serial = np.arange(self.next, self.next + n, dtype=np.int64)
        self.next += n
        kind = Column(Type.INT, rows.kinds().astype(np.int32))
        self._log.append(rows.with_columns([*rows.columns, kind, Column(Type.LONG, serial)]))
        return serial

    def _positions(self, serial: Sequence[int] | Array) -> Array:
        serials = self._log.values(self.width + 1)[: self._log.end]
        return np.searchsorted(serials, np.asarray(serial, np.int64))

    def rows(self, serial: Sequence[int] | Array) -> tuple[list[Column], Array, Array, Array]:
        """(columns, ts, kind, instance) of events."""
        at = self._positions(serial)
        columns = self._log.columns(at)
        kind = columns[self.width].values.astype(np.int8)
        return columns[: self.width], self._log.ts[at], kind, self._log.instance[at]

    def columns(self, serial: Sequence[int] | Array, attrs: Sequence[int]) -> list[Column]:
        """Values of some attributes."""
        at = self._positions(serial)
        return [self._log.column(a, at) for a in attrs]

    def tidy(self, contents: HeldState) -> None:
        """Drops unused rows, if there are enough of them."""
        if self._log.end < self._look_at:
            return
        self._keep(contents)
        self._look_at = 2 * self._log.end + 2048

    def _keep(self, contents: HeldState) -> None:
        serials = np.unique(np.fromiter(contents.serials(), np.int64))
        self._log.compact(self._positions(serials))

    def state(self, contents: HeldState) -> Any:
        self._keep(contents)
        return {"next": self.next, "rows": self._log.state(np.arange(self._log.end))}

    def load(self, state: Any) -> None:
        self.next = state["next"]
        self._log.load(state["rows"])

    @property
    def bytes(self) -> int:
        return self._log.bytes
