"""The places of a node that hold an event or a row computed from it: windows, partial matches, tables.

The node's plan has lineage (`plan.reports.lineage`), and it was created with `OutputOptions.describes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...plan.reports.lineage import LINEAGE, events_of
from ...types import Type
from ..columnar.column_data import Column, StringPool
from ..patterns.machine_partials import partial_matches_of
from ..patterns.matches import attribute_key
from ..windows.watched_window import held_events
from .descriptions import describe_partials, instance_keys
from .operators import QueryOperator

if TYPE_CHECKING:
    from ..node import NodeEngine
    from ..patterns.op import StateOp


@dataclass(frozen=True)
class WindowPlace:
    """A window that holds it: the query, the side of a join (0 or 1), the window's function, the number of events in
    the window, and of events that wait to be emitted, as in a batch that is being collected."""

    query: str
    side: int
    function: str
    events: int
    waiting: int


@dataclass(frozen=True)
class PartialPlace:
    """A partial match that holds it: the query, the key of the partition, by state of the pattern its slot in the plan
    and the numbers of its events, and the numbers of the states that it waits for."""

    query: str
    key: str
    slots: tuple[int, ...]
    events: tuple[tuple[int, ...], ...]
    waits_for: tuple[int, ...]


@dataclass(frozen=True)
class RowPlace:
    """A table or named window that holds it, and the number of its rows that come from it."""

    name: str
    is_window: bool
    rows: int


HoldingPlace = WindowPlace | PartialPlace | RowPlace


def holding_places(node: NodeEngine, number: int) -> list[HoldingPlace]:
    """The places that hold an event, by its number (from 0), in the order of the plan."""
    strings = node.services.strings
    places: list[HoldingPlace] = []
    for op in node.operators:
        if not isinstance(op, QueryOperator):
            continue
        windows = [s for s in op.query.input_steps if s.window is not None]
        for side, steps in enumerate(windows):
            counts = [0, 0]
            assert steps.window is not None
            for part in held_events(steps.window):
                if len(part.rows):
                    column = part.rows.columns[list(steps.window_names).index(LINEAGE)]
                    counts[part.waiting] += _count(column, number, strings)
            if any(counts):
                places.append(WindowPlace(op.name, side, steps.window_function, *counts))
        if op.query.pattern is not None:
            places += _partial_places(op.query.pattern, op.name, number, instance_keys(node, op.name), strings)
    parts = node.parts
    rows = [
        (id, False, t.names, t.columns(t.order())) for id, t in parts.tables.items() if id not in parts.stored_tables
    ] + [(id, True, w.definition.source.schema.names, w.contents()) for id, w in parts.windows.items()]
    for id, is_window, names, columns in rows:
        if LINEAGE in names and (count := _count(columns[list(names).index(LINEAGE)], number, strings)):
            places.append(RowPlace(id, is_window, count))
    return places


def _count(column: Column, number: int, strings: StringPool) -> int:
    """The number of values of a column of lineages that name an event."""
    if column.type is Type.LONG:
        return int(np.count_nonzero((column.values == number) & ~column.nulls()))
    return sum(number in events_of(lineage) for lineage in column.to_list(strings))


def _partial_places(
    pattern: StateOp, query: str, number: int, keys: Mapping[int, str], strings: StringPool
) -> list[PartialPlace]:
    """The partial matches that hold an event."""
    if not any(_count(column, number, strings) for column in _lineage_columns(pattern)):
        return []
    slots = tuple(p.state.slot for p in pattern.layout.processors)
    places = []
    for partial in describe_partials(pattern, keys, strings, partial_matches_of(pattern)):
        events = tuple(
            tuple(n for event in of_state for n in events_of([event.values.get(LINEAGE)]))
            for of_state in partial.events
        )
        if any(number in of_state for of_state in events):
            places.append(PartialPlace(query, partial.key, slots, events, tuple(partial.waits_for)))
    return sorted(places, key=lambda p: (p.key, p.events, p.waits_for))


def _lineage_columns(pattern: StateOp) -> Iterator[Column]:
    """The columns of the lineages of all events in a pattern's log, each once."""
    keys = set()
    for p, processor in enumerate(pattern.layout.processors):
        names = processor.state.input.source.schema.names
        if LINEAGE in names:
            keys.add(attribute_key(pattern.layout, p, list(names).index(LINEAGE)))
    for key in keys:
        column = pattern.log.columns[key]
        yield column.take(np.arange(column.n))
