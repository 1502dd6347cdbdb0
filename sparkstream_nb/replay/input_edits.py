"""A recording with some of its events left out, changed, moved or added, and parts of recordings. All other events keep
their numbers, their order and their nodes, so that the outputs of both can be compared."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import ARROW
from ..engine.state.node_batch import InputBatch, StreamRows
from ..nodes.batches import between
from ..types import Schema, Type
from .replay import Recorded, Recording, Way


@dataclass(frozen=True)
class AddedEvent:
    """An event to add: its time (ms), its values, its number, and its node (from 0; None: as the routing says). It
    comes before the step that now has the number `position` (None: behind all up to its time)."""

    stream: str
    time: int
    values: Sequence[Any]
    number: int
    position: int | None = None
    node: int | None = None


@dataclass(frozen=True)
class InputEdits:
    """Edits of a recording, by the numbers of its events: which are left out, the new values of some by attribute, the
    events that are added, and the nodes (from 0) that some go to."""

    omissions: frozenset[int] = frozenset()
    values: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    additions: Sequence[AddedEvent] = ()
    nodes: Mapping[int, int] = field(default_factory=dict)

    def __or__(self, other: InputEdits) -> InputEdits:
        """Both edits."""
        values = {n: {**self.values.get(n, {}), **other.values.get(n, {})} for n in (*self.values, *other.values)}
        nodes = {**self.nodes, **other.nodes}
        return InputEdits(self.omissions | other.omissions, values, (*self.additions, *other.additions), nodes)

    def shift_positions(self, steps: int) -> InputEdits:
        """The edits with shifted positions, for a recording without its first steps."""
        additions = [a if a.position is None else replace(a, position=a.position + steps) for a in self.additions]
        return replace(self, additions=additions) if steps else self


def move_event(recording: Recording, number: int, time: int, position: int | None = None) -> InputEdits:
    """The edits that give an event another time (ms), and the place of that time, or the given one."""
    stream, _, values = recording.event(number)
    return InputEdits(frozenset([number]), additions=[AddedEvent(stream, time, values, number, position)])


def apply_edits(recording: Recording, way: Way, edits: InputEdits) -> Recording:
    """The recording with edits. Raises KeyError for the number of an event that it does not have."""
    rows: dict[int, dict[str, dict[int, int]]] = {}
    for number in {*edits.omissions, *edits.values, *edits.nodes}:
        place, stream, row = recording.locate(number)
        rows.setdefault(place, {}).setdefault(stream, {})[row] = number
    additions: dict[int, list[AddedEvent]] = {}
    for event in sorted(edits.additions, key=lambda e: e.time):
        position = event.position if event.position is not None else recording.position_of_time(event.time)
        additions.setdefault(position, []).append(event)
    items: list[Recorded | str] = []
    place = 0
    for item in recording.items:
        if isinstance(item, str):
            items.append(item)
            continue
        start, end = recording.starts[place : place + 2]
        is_last = place + 2 == len(recording.starts)
        positions = [p for p in sorted(additions) if start <= p < end or (is_last and p == end)]
        if place in rows or positions:
            events_by_step = {p - start: additions[p] for p in positions}
            items += _EditedItem(recording, way, item, edits).parts(rows.get(place, {}), events_by_step)
        else:
            items.append(item)
        place += 1
    return replace(recording, items=items)


def part_of(recording: Recording, first: int, end: int) -> Recording:
    """The steps from number `first` to before `end`, with all on-demand queries up to there."""
    items: list[Recorded | str] = []
    last = bisect_right(recording.starts, max(first, end - 1)) - 1
    place = 0
    for item in recording.items:
        if isinstance(item, str):
            items.append(item)
            continue
        if place > last:
            break
        start = recording.starts[place]
        low, high = max(0, first - start), min(item.entry.steps, end - start)
        if low < high:
            items.append(item if (low, high) == (0, item.entry.steps) else _steps_of(item, item.batch, low, high))
        place += 1
    return replace(recording, items=items)


class _EditedItem:
    """An item of a recording that edits touch."""

    def __init__(self, recording: Recording, way: Way, item: Recorded, edits: InputEdits) -> None:
        self._recording, self._way, self._item, self._edits = recording, way, item, edits
        self._batch = item.batch
        places = None if way.nodes == 1 else way.places(recording, item)
        self._item_with_places = replace(item, places=places)

    def parts(
        self, rows: Mapping[str, Mapping[int, int]], additions: Mapping[int, Sequence[AddedEvent]]
    ) -> Iterator[Recorded]:
        """The item's parts: `rows` of streams that are edited, by row their numbers, and the `additions` before its
        steps."""
        steps = {int(self._batch.rows[s].step[row]) for s, of_stream in rows.items() for row in of_stream}
        next_step = 0
        for step in sorted({*steps, *additions}):
            if next_step < step:
                yield _steps_of(self._item_with_places, self._batch, next_step, step)
                next_step = step
            for event in additions.get(step, ()):
                yield self._added_step(event)
            if step in steps:
                yield from self._edited_step(step)
                next_step = step + 1
        if next_step < self._item.entry.steps:
            yield _steps_of(self._item_with_places, self._batch, next_step, self._item.entry.steps)

    def _edited_step(self, step: int) -> Iterator[Recorded]:
        """The step with its edits; nothing, if all of its events are left out."""
        part = _steps_of(self._item_with_places, self._batch, step, step + 1)
        batch = part.batch
        rows: dict[str, StreamRows] = {}
        numbers, places = {}, {}
        for stream, r in batch.rows.items():
            row_numbers = part.numbers_of(stream)
            remaining = np.flatnonzero(~np.isin(row_numbers, list(self._edits.omissions)))
            if not len(remaining):
                continue
            numbers[stream] = row_numbers[remaining]
            schema = self._recording.schemas[stream]
            rows[stream] = self._with_values(r.take(remaining), numbers[stream].tolist(), schema)
            if part.places is not None:
                places[stream] = part.places[stream][remaining]
        if not rows:
            return
        changed_batch = InputBatch(batch.clock, rows)
        if part.places is not None:
            places = self._new_places(part, changed_batch, numbers, places)
        yield _item_of(part.entry, changed_batch, numbers, places or None)

    def _with_values(self, rows: StreamRows, numbers: Sequence[int], schema: Schema) -> StreamRows:
        columns = list(rows.columns)
        for at, attribute in enumerate(schema):
            new_values = {
                i: self._edits.values[n][attribute.name] for i, n in enumerate(numbers)
                if attribute.name in self._edits.values.get(n, {})
            }  # fmt: skip
            if new_values:
                column = columns[at]
                values = column if isinstance(column, list) else column.to_pylist()
                columns[at] = column_of([new_values.get(i, v) for i, v in enumerate(values)], attribute.type)
        return replace(rows, columns=columns)

    def _new_places(
        self, part: Recorded, batch: InputBatch, numbers: Mapping[str, Any], places: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The node of each event: by the edits, by its new values, or as in the recording."""
        routed_places = self._way.places(self._recording, _item_of(part.entry, batch, numbers, None))
        attribute = self._attribute(part)
        out = {}
        for stream, row_numbers in numbers.items():
            out[stream] = places[stream].copy()
            for row, number in enumerate(row_numbers.tolist()):
                if attribute in self._edits.values.get(number, {}):
                    out[stream][row] = routed_places[stream][row]
                out[stream][row] = self._edits.nodes.get(number, out[stream][row])
        return out

    def _attribute(self, item: Recorded) -> str | None:
        """The attribute whose value decides the node."""
        kind, _, argument = (self._way.route or item.entry.route).partition(":")
        return argument if kind == "hash" else None

    def _added_step(self, event: AddedEvent) -> Recorded:
        schema = self._recording.schemas[event.stream]
        columns = [column_of([v], a.type) for v, a in zip(event.values, schema, strict=True)]
        zero = np.zeros(1, np.int64)
        rows = StreamRows(zero, np.array([event.time], np.int64), columns)
        batch = InputBatch(np.array([event.time], np.int64), {event.stream: rows})
        numbers = {event.stream: np.array([event.number], np.int64)}
        item = _item_of(self._item.entry, batch, numbers, None)
        if self._way.nodes > 1:
            routed_places = self._way.places(self._recording, item)[event.stream]
            node = event.node if event.node is not None else int(routed_places[0])
            item = replace(item, places={event.stream: zero + node})
        return item


def column_of(values: Sequence[Any], type: Type) -> Any:
    """A column of `StreamRows`."""
    return list(values) if type is Type.OBJECT else pa.array(values, ARROW[type])


def _item_of(entry: Any, batch: InputBatch, numbers: Mapping[str, Any], places: Mapping[str, Any] | None) -> Recorded:
    counts = {s: len(r.ts) for s, r in batch.rows.items()}
    first = {s: int(n[0]) for s, n in numbers.items()}
    return Recorded(replace(entry, steps=len(batch.clock)), first, counts, lambda: batch, numbers, places)


def _steps_of(item: Recorded, batch: InputBatch, first: int, end: int) -> Recorded:
    """The steps from number `first` to before `end` of an item."""
    part = between(batch, first, end)
    numbers, places = {}, {}
    for stream, r in batch.rows.items():
        if stream in part.rows:
            low, high = np.searchsorted(r.step, [first, end]).tolist()
            numbers[stream] = item.numbers_of(stream)[low:high]
            if item.places is not None:
                places[stream] = item.places[stream][low:high]
    return _item_of(item.entry, part, numbers, places if item.places is not None else None)
