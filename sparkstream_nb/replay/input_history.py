"""A recording at a glance: the position and node of every event and output, and a search in their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import UnreadAttribute
from ..plan.output_labels import is_inner, output_streams, stream_of
from .replay import ONE, Nodes, Recording, Way, replay_steps

_CLOSE = 5e-5
"""Numbers that differ by less are shown with the same four decimals."""


@dataclass(frozen=True)
class StepRows:
    """Events or outputs of one stream, in order: the position (number of steps) after the step that brought each, and
    its node (from 0)."""

    positions: Array
    nodes: Array

    def next(self, position: int) -> int | None:
        """The first position after this one that brings a row."""
        place = int(np.searchsorted(self.positions, position, "right"))
        return int(self.positions[place]) if place < len(self.positions) else None

    def previous(self, position: int) -> int | None:
        """The last position before this one that brings a row."""
        place = int(np.searchsorted(self.positions, position, "left"))
        return int(self.positions[place - 1]) if place else None


@dataclass(frozen=True, eq=False)
class InputHistory:
    """All events by stream, and all outputs by each stream that a query writes. `clock` (ms, int64[steps], ascending)
    is the clock after each step."""

    recording: Recording
    clock: Array
    events: Mapping[str, StepRows]
    outputs: Mapping[str, StepRows]
    output_columns: Sequence[tuple[Array, Sequence[Any]]]
    """The values of outputs: positions, and the columns of their stream."""

    def clock_at(self, position: int) -> int:
        """The clock (ms) at a position; at the beginning, of the first step."""
        return int(self.clock[max(0, position - 1)])

    def output_positions(self, stream: str, clock: int, node: int) -> list[int]:
        """The positions that bring outputs of a stream on a node (from 0), after steps with this clock (ms)."""
        steps = [
            np.flatnonzero(item.batch.clock == clock) + (start + 1)
            for start, item in zip(self.recording.starts, self.recording.recorded_events, strict=False)
        ]
        rows = self.outputs[stream]
        positions: list[int] = np.intersect1d(rows.positions[rows.nodes == node], np.concatenate(steps)).tolist()
        return positions

    def search(self, text: str) -> StepRows:
        """The positions that bring an event or output with a value that is shown as `text`; nodes are 0."""
        positions = [at[_matches(column, text)] for at, columns in self._columns() for column in columns]
        unique_positions = np.unique(np.concatenate([np.zeros(0, np.int64), *positions]))
        return StepRows(unique_positions, np.zeros(len(unique_positions), np.int64))

    def _columns(self) -> Iterator[tuple[Array, Sequence[Any]]]:
        """The values of events and outputs, with their positions."""
        for start, item in zip(self.recording.starts, self.recording.recorded_events, strict=False):
            for rows in item.batch.rows.values():
                yield rows.step + (start + 1), rows.columns
        yield from self.output_columns


def read_history(recording: Recording, way: Way, nodes: Nodes) -> InputHistory:
    """Replays a recording. Raises as `replay_steps`."""
    clocks: list[Array] = [np.zeros(0, np.int64)]
    events: dict[str, list[StepRows]] = {}
    none = StepRows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    outputs = {stream: [none] for stream in output_streams(nodes.plan)}
    output_columns: list[tuple[Array, Sequence[Any]]] = []
    replays_by_item = replay_steps(recording, way, replace(nodes, describes=False))
    for start, item, replays in zip(recording.starts, recording.recorded_events, replays_by_item, strict=False):
        clocks.append(item.batch.clock)
        places = None if way == ONE else way.places(recording, item)
        for stream, rows in item.batch.rows.items():
            node_numbers = np.zeros(len(rows.step), np.int64) if places is None else places[stream]
            events.setdefault(stream, []).append(StepRows(rows.step + (start + 1), node_numbers))
        for replay in replays:
            for label, parts in replay.streams.items():
                for output_rows, _ in () if is_inner(label) else parts:
                    positions = output_rows.step + (start + 1)
                    node_numbers = np.full(len(positions), replay.node, np.int64)
                    outputs.setdefault(stream_of(label), [none]).append(StepRows(positions, node_numbers))
                    output_columns.append((positions, output_rows.columns))
    return InputHistory(
        recording, np.maximum.accumulate(np.concatenate(clocks)), _join(events), _join(outputs), output_columns
    )


def _join(parts_by_stream: Mapping[str, Sequence[StepRows]]) -> dict[str, StepRows]:
    rows_by_stream = {}
    for stream, parts in parts_by_stream.items():
        positions = np.concatenate([p.positions for p in parts])
        order = np.argsort(positions, kind="stable")
        rows_by_stream[stream] = StepRows(positions[order], np.concatenate([p.nodes for p in parts])[order])
    return rows_by_stream


def _matches(column: Any, text: str) -> Array:
    """The rows (bool[n]) of a column whose value is shown as `text`."""
    none = np.zeros(len(column), bool)
    if isinstance(column, UnreadAttribute):
        return none
    if not isinstance(column, pa.Array):
        return np.array([str(column_value) == text for column_value in _list(column)], bool)
    type = column.type
    if pa.types.is_dictionary(type):
        return np.isin(column.indices.fill_null(-1).to_numpy(), np.flatnonzero(_matches(column.dictionary, text)))
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return _mask(pc.equal(column, text))
    if pa.types.is_boolean(type):
        return _mask(pc.equal(column, text == "true")) if text in ("true", "false") else none
    try:
        number = float(text)
    except ValueError:
        return none
    if pa.types.is_integer(type):
        return _mask(pc.equal(column, int(number))) if number.is_integer() and abs(number) < 2**63 else none
    if pa.types.is_floating(type):
        return np.isclose(column.cast(pa.float64()).fill_null(np.nan).to_numpy(), number, rtol=1e-12, atol=_CLOSE)
    return none


def _list(column: Any) -> Sequence[Any]:
    return column if isinstance(column, list) else column.take(np.arange(len(column)))


def _mask(matches: Any) -> Array:
    return matches.fill_null(False).to_numpy(zero_copy_only=False)
