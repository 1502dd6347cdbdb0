"""The selection of an app: times, nodes, values of attributes or alerts, which all its pictures and tables share."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...charts.focus import Focus
from ...charts.value_texts import format_count, text_of, when
from ...engine.expressions.objects import to_json

_log = logging.getLogger(__name__)
_LISTED = 4
"""Values of an attribute, or nodes, that a text names."""


@dataclass(frozen=True)
class EventRow:
    """An event of a stream by its time (ms) and its values."""

    stream: str
    timestamp: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class AlertRows:
    """Alerts that were picked: the `outputs` of the nodes among them, and the `events` that all of them were computed
    from. `count`: how many alerts; one that only a single node would have has no output."""

    stream: str
    count: int
    outputs: Sequence[EventRow]
    events: Sequence[EventRow]

    def of_stream(self, stream: str) -> list[EventRow]:
        """The rows of a stream."""
        return [row for row in (*self.outputs, *self.events) if row.stream == stream]


@dataclass(frozen=True)
class Criteria:
    """Times from `start` to `end` (ms since 1970, both included; None: open), `nodes` by shard id (empty: all), values
    of attributes by their names in `keys`, and `alerts`. An event is selected if it meets all of them; of values, those
    whose attribute its stream has."""

    start: int | None = None
    end: int | None = None
    nodes: frozenset[str] = frozenset()
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    alerts: AlertRows | None = None

    @property
    def is_empty(self) -> bool:
        """True if everything is selected."""
        return self == Criteria()

    def toggle_node(self, node: str) -> Criteria:
        """The same with a node more, or less."""
        return replace(self, nodes=self.nodes ^ {node})

    def toggle_key(self, attribute: str, value: Any) -> Criteria:
        """The same with one value of an attribute, or without it if that was its only one."""
        keys = {**self.keys, attribute: (value,)}
        if self.keys.get(attribute) == (value,):
            del keys[attribute]
        return replace(self, keys=keys)

    @property
    def span(self) -> tuple[float | None, float | None]:
        """The times of the selection: of alerts, from the first of their events to the last alert."""
        if self.alerts is None:
            return self.start, self.end
        times = [row.timestamp for row in (*self.alerts.outputs, *self.alerts.events)]
        return (min(times), max(times)) if times else (None, None)

    def focus(self, names: Sequence[str] = ()) -> Focus:
        """The part of a picture that stands out: the times, and the nodes with the further `names`."""
        return Focus(*self.span, (*sorted(self.nodes), *names))

    def __str__(self) -> str:
        """`10:30:00 to 10:45:00 · nodes n1, n2 · symbol wso2`."""
        parts = []
        if self.start is not None or self.end is not None:
            start, end = ("…" if t is None else when(t) for t in (self.start, self.end))
            parts.append(f"{start} to {end}")
        if self.nodes:
            parts.append(f"node{'s' if len(self.nodes) > 1 else ''} {_join_some(sorted(self.nodes))}")
        parts += [f"{name} {_join_some([text_of(v) for v in values])}" for name, values in self.keys.items()]
        if self.alerts is not None:
            parts.append(f"{format_count(self.alerts.count, 'alert')} of {self.alerts.stream}")
        return " · ".join(parts) or "everything"

    def filter(self, table: pa.Table, stream: str) -> pa.Table:
        """The selected events of a stream. `table` has the columns of `event_fields`: the node, the time, then the
        attributes."""
        node, timestamp, *attributes = table.column_names
        masks = []
        if self.start is not None:
            masks.append(pc.greater_equal(table[timestamp], self.start))
        if self.end is not None:
            masks.append(pc.less_equal(table[timestamp], self.end))
        if self.nodes:
            masks.append(_is_among(table[node], self.nodes))
        for name, values in self.keys.items():
            if name in attributes:
                masks.append(pc.is_in(table[name], _values_of_type(values, table[name].type)))
        if masks:
            table = table.filter(reduce(pc.and_, masks))
        return table if self.alerts is None else _rows_among(table, self.alerts.of_stream(stream))


def _is_among(column: pa.ChunkedArray, texts: Collection[str]) -> pa.ChunkedArray:
    """True for each value of a dictionary column that is among `texts`."""
    chunks = []
    for chunk in column.chunks:
        numbers = [i for i, text in enumerate(chunk.dictionary.to_pylist()) if text in texts]
        chunks.append(pc.is_in(chunk.indices, pa.array(numbers, chunk.indices.type)))
    return pa.chunked_array(chunks, pa.bool_())


def _values_of_type(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """The values that a column of this type may have: an attribute of one name may have several types."""
    scalars = []
    for value in values:
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            scalars.append(pa.scalar(value, type_).as_py())
    return pa.array(scalars, type_)


def _rows_among(table: pa.Table, rows: Sequence[EventRow]) -> pa.Table:
    """The events with the time and the values of one of `rows`."""
    times = pa.array({row.timestamp for row in rows}, pa.int64())
    at_these_times = table.filter(pc.is_in(table.column(1), times))
    keys = {(row.timestamp, *map(_comparable, row.values)) for row in rows}
    columns = [column.to_pylist() for column in at_these_times.columns[1:]]
    mask = [(ts, *map(_comparable, values)) in keys for ts, *values in zip(*columns, strict=True)]
    return at_these_times.filter(pa.array(mask, pa.bool_()))


def _comparable(value: Any) -> Any:
    """A value such that equal ones are equal, a NaN too; an object as tables have it."""
    if isinstance(value, float) and value != value:
        return "NaN"
    return value if isinstance(value, str | int | float | bool | None) else to_json(value)


def _join_some(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


class SharedSelection:
    """The criteria of one app's selection, which its pictures and tables follow. Thread-safe."""

    def __init__(self) -> None:
        self._criteria = Criteria()
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def criteria(self) -> Criteria:
        return self._criteria

    def choose(self, criteria: Criteria) -> None:
        """Selects by `criteria`, and calls those who follow. Hold no lock that they need."""
        with self._lock:
            if criteria == self._criteria:
                return
            self._criteria = criteria
            callbacks = list(self._callbacks.values())
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _log.exception("a view could not follow the selection")

    def follow(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` after each change; returns a function that ends that."""
        key = object()
        with self._lock:
            self._callbacks[key] = callback

        def leave() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return leave
