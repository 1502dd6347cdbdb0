"""Matches of a pattern in order, with lazy values of their events."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...plan.nodes import EventRef, Ref
from ...types import Type
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.frame import LazyRows, cache_columns
from ..columnar.rows import Rows
from ..expressions import Float, Long
from .log import Key, PatternLog
from .machine_layout import PatternLayout
from .machine_memory import EMPTY_EVENT, NO_EVENT


@dataclass(slots=True)
class Partials:
    """Slots of `n` partials. `first` int64[processors, n]: the event of each state, or where its events start in
    `events`; `count` int64[processors, n]: how many there are, of counted states. `row` gives the place of an event in
    the kept columns."""

    layout: PatternLayout
    strings: StringPool
    first: Array
    count: Array
    events: Array
    row: Array | None
    times: Array
    columns: dict[Key, Any]

    @staticmethod
    def over(
        layout: PatternLayout, strings: StringPool, log: PatternLog, first: Array, count: Array, events: Array
    ) -> Partials:
        """Slots that refer to the current contents of `log`."""
        return Partials(layout, strings, first, count, events, log.row, log.times, dict(log.columns))

    def key(self, slot: int, attr: int) -> Key:
        """The kept column of an attribute."""
        return attribute_key(self.layout, self.layout.slots[slot], attr)

    def numbers(self, ref: Ref | EventRef, filter_slot: int = -1) -> Array:
        """Log numbers of the event that a reference names, per partial. `filter_slot`: the slot of the filter that
        contains it.
        """
        p = self.layout.slots[ref.slot]
        first, index = self.first[p], ref.index
        back = int(filter_slot == ref.slot)
        if not self.layout.processors[p].is_counted:
            absent = index is not None and (index.offset > 0 or (index.from_last and back))
            return np.zeros(len(first), np.int64) if absent else first
        count = self.count[p]
        if index is None:
            place = count - 1
        elif index.from_last:
            place = count - 1 - index.offset - back
        else:
            place = np.full(len(first), index.offset, np.int64)
        there = (place >= 0) & (place < count)
        if len(self.events) == 0:
            return np.zeros(len(first), np.int64)
        return np.where(there, self.events[np.where(there, first + place, 0)], NO_EVENT)

    def _rows(self, numbers: Array) -> Array:
        return numbers if self.row is None else self.row[numbers]

    def resolve(self, ref: Ref | EventRef, filter_slot: int = -1) -> Column:
        """The column that a reference of a select (or, with `filter_slot`, of a filter) names."""
        if isinstance(ref, EventRef):
            numbers = self.numbers(ref, filter_slot)
            return Column(Type.BOOL, np.zeros(len(numbers), np.bool_), numbers == NO_EVENT)
        p = self.layout.slots[ref.slot]
        column = self.columns[self.key(ref.slot, ref.attr)]
        if filter_slot < 0 and ref.index is None and self.layout.processors[p].is_counted:
            return self._lists(column, p)
        numbers = self.numbers(ref, filter_slot)
        out: Column = column.take(self._rows(numbers))
        return out

    def _lists(self, column: Any, p: int) -> Column:
        """All values of a counted state, as a list per partial (`MultiValueVariableFunctionExecutor`)."""
        first, count = self.first[p], self.count[p]
        ends = np.cumsum(count)
        place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count - first, count)
        values = column.take(self._rows(self.events[place])).to_list(self.strings)
        wrap = {Type.LONG: Long, Type.FLOAT: Float}.get(column.type)
        if wrap is not None:
            values = [None if v is None else wrap(v) for v in values]
        out = np.empty(len(first), object)
        for i, (end, n) in enumerate(zip(ends.tolist(), count.tolist(), strict=True)):
            out[i] = values[end - n : end]
        return Column(Type.OBJECT, out)

    def event_time(self, ref: EventRef, filter_slot: int = -1) -> Column:
        """Timestamps (LONG, ms) of a whole event, null if it is absent."""
        numbers = self.numbers(ref, filter_slot)
        null = numbers <= EMPTY_EVENT
        return Column(Type.LONG, np.where(null, 0, self.times[numbers]), null if null.any() else None)


@dataclass(slots=True)
class SentMatches:
    """Changes of matches between their select and the end of their chunk, when they are sent on: Siddhi sends the
    partials themselves, which may change until then. `ts`, `kind`: at the end; `last`: which match is the last one of
    the same partial."""

    ts: Array
    kind: Array
    last: Array


@dataclass(slots=True)
class Matches:
    """`n` matches in order. `ts`, `order_key`, `chunk`, `instance`: as in `Rows`; for the select each match is a chunk.

    `kind` is EXPIRED for a match of a partial that had expired before in another state: Siddhi marks it and still
    continues with it. `group` int64[n] numbers the output chunks after the select: the matches that one event makes in
    one state of a stream that several states read (`MultiProcessStreamReceiver`); else each match is a chunk.
    `sent_matches` is None if nothing changed before they were sent.
    """

    ts: Array
    order_key: Array
    chunk: Array
    kind: Array | None
    instance: Array | None
    group: Array
    slots: Partials
    sent_matches: SentMatches | None

    def __len__(self) -> int:
        return len(self.ts)

    def column(self, ref: Ref | EventRef) -> Column:
        """Values of an attribute; of an `EventRef` a BOOL column whose null mask says that the event is absent."""
        return self.slots.resolve(ref)

    def frame(self) -> LazyRows:
        """The matches as the input of a select."""
        return LazyRows(
            self.ts, self.order_key, self.chunk, self.kind, self.instance, cache_columns(self.column),
            self.slots.event_time,
        )

    def send(self, rows: Rows) -> Rows:
        """The rows selected from these matches, in their output chunks and with the changes made until they are
        sent."""
        if len(rows) == 0:
            return rows
        match: Array | slice = slice(None) if len(rows) == len(self) else rows.chunk - self.chunk[0]
        group = self.group[match]
        if self.sent_matches is None:
            rows.chunk = group
            return rows
        match = np.arange(len(self))[match]
        partial = self.sent_matches.last[match]
        place = np.full(len(self), -1)
        place[match] = np.arange(len(match))
        values = place[partial]  # the final values of a partial are known if it passed the select then
        rows.ts, rows.kind = self.sent_matches.ts[match], self.sent_matches.kind[match]
        rows = rows.with_columns([c.take(np.where(values < 0, np.arange(len(match)), values)) for c in rows.columns])
        if (partial[1:] <= partial[:-1]).any():
            order, group = _link_matches(partial, group, rows.order_key)
            rows = rows.take(order)
        rows.chunk = group
        return rows


def _link_matches(partial: Array, group: Array, order_key: Array) -> tuple[Array, Array]:
    """Rows sent when partials match more than once under an order key, with the group of each.

    Siddhi's `ComplexEventChunk` is a linked list through the partials themselves: a partial that matches again leaves
    its list together with its successors, and successors appended to it later appear in both lists.
    """
    order: list[int] = []
    groups: list[int] = []
    cuts = np.flatnonzero(order_key[1:] != order_key[:-1]) + 1
    for a, b in itertools.pairwise([0, *cuts.tolist(), len(order_key)]):
        row: dict[int, int] = {}
        link: dict[int, int | None] = {}
        chains: list[list[int]] = []
        for i in range(a, b):
            e, g = int(partial[i]), int(group[i])
            row[e], link[e] = i, None
            if chains and chains[-1][0] == g:
                link[chains[-1][2]] = e
                chains[-1][2] = e
            else:
                chains.append([g, e, e])
        for g, first, _ in chains:
            at: int | None = first
            while at is not None:
                order.append(row[at])
                groups.append(g)
                at = link[at]
    return np.array(order), np.array(groups)


def attribute_key(layout: PatternLayout, p: int, attr: int) -> Key:
    """The key under which the log stores an attribute of the events of processor `p`."""
    source = layout.processors[p].state.input.source
    return (layout.stream_of(p), p if attr >= len(source.schema) else -1, attr)
