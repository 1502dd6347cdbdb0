"""Input events of a stream, read back from the app's inbox: the last events, and the node that each went to.

The inbox keeps processed input as long as the app's retention says: of a long input, only the end can be read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import StreamRows
from ..journal.inbox import InboxPosition
from ..journal.journal import entries_from, entries_of, lines_of, segments
from ..journal.routing import nodes_of
from ..journal.segments import load
from ..types import Schema
from .event_tables import event_fields, event_table
from .output_files import series_of, stamps


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The last events of a stream. `frame`: `node` (shard id), `timestamp` (ms), then the attributes; beside an
    attribute of that name, `event_node` and `event_timestamp`. `total`: the number that came in so far.
    `unreadable`: the number that can no longer be read; they came before the events in `frame`.
    """

    frame: pd.DataFrame
    total: int
    unreadable: int


@dataclass(frozen=True, eq=False)
class KeptEvents:
    """The events of a stream in their order, as `event_table` has them. `unreadable` ones, before these, can no longer
    be read."""

    table: pa.Table
    unreadable: int


@dataclass(frozen=True, eq=False)
class LastEvents:
    """The last events of a stream in `table`, as `event_table` has them, of `total` ones that came in."""

    table: pa.Table
    total: int


@dataclass(frozen=True, eq=False)
class _LastParts:
    """The last events of a stream by entry, with the numbers of their nodes."""

    parts: Sequence[tuple[StreamRows, Array]]
    total: int

    @property
    def rows(self) -> int:
        return sum(len(node_numbers) for _, node_numbers in self.parts)


@dataclass(frozen=True)
class InboxReader:
    """The inbox of an app in `folder`: its streams' `schemas`, the `shards` of all nodes that there ever were, and how
    many nodes the app `began` with. `since`: the first entry that has the schema, of streams which had another."""

    folder: Path
    schemas: Mapping[str, Schema]
    shards: Sequence[str]
    began: int
    since: Mapping[str, int] = field(default_factory=dict)

    def last(self, stream: str, most: int) -> Arrivals:
        """The last `most` events that came in on `stream`, in their order."""
        last = self._last_parts(stream, most)
        unreadable = last.total - last.rows if last.rows < most else 0
        return Arrivals(self._frame(stream, last.parts), last.total, unreadable)

    def last_table(self, stream: str, most: int) -> LastEvents:
        """The same as a table."""
        last, schema = self._last_parts(stream, most), self.schemas[stream]
        tables = [event_table(nodes, [rows.ts, *rows.columns], self.shards, schema) for rows, nodes in last.parts]
        return LastEvents(pa.concat_tables([event_fields(schema).empty_table(), *tables]), last.total)

    def _last_parts(self, stream: str, most: int) -> _LastParts:
        total: int | None = None
        parts: list[tuple[StreamRows, Array]] = []
        rows = 0
        try:
            for first, file in reversed(segments(self.folder)):
                entries = [e for at, line in lines_of(first, file, first) for e in entries_of(self.folder, at, line)]
                entries = [e for e in entries if stream in e.events_by_stream]
                first_entry = self.since.get(stream, 0)
                if total is None:
                    total = InboxPosition.of(file).events.get(stream, 0) + sum(
                        e.events_by_stream[stream] for e in entries
                    )
                while entries and rows < most and entries[-1].seq >= first_entry:
                    parts.append(_last_rows(*self._routed_rows(entries.pop(), stream), most - rows))
                    rows += len(parts[-1][1])
        except FileNotFoundError:
            pass  # earlier events are not kept
        return _LastParts(parts[::-1], total or 0)

    def up_to(self, stream: str, last_entry: int) -> KeptEvents:
        """The events of `stream` up to entry `last_entry`."""
        parts = [event_fields(self.schemas[stream]).empty_table()]
        total = next((InboxPosition.of(file).events.get(stream, 0) for _, file in segments(self.folder)), 0)
        for entry, _ in entries_from(self.folder):
            if entry.seq > last_entry:
                break
            total += entry.events_by_stream.get(stream, 0)
            if stream in entry.events_by_stream and entry.seq >= self.since.get(stream, 0):
                with contextlib.suppress(FileNotFoundError):  # no longer kept
                    rows, nodes = self._routed_rows(entry, stream)
                    parts.append(event_table(nodes, [rows.ts, *rows.columns], self.shards, self.schemas[stream]))
        table = pa.concat_tables(parts)
        return KeptEvents(table, total - table.num_rows)

    def _frame(self, stream: str, parts: Sequence[tuple[StreamRows, Array]]) -> pd.DataFrame:
        """Events with the numbers of their nodes, as `Arrivals.frame`."""
        names = self.schemas[stream].names
        columns = [*stamps(names), *names]
        if not parts:
            return pd.DataFrame(columns=columns)
        shards = pa.array(self.shards, pa.string())
        nodes = shards.take(pa.array(np.concatenate([node_numbers for _, node_numbers in parts])))
        attributes = [_series(c) for c in zip(*(rows.columns for rows, _ in parts), strict=True)]
        data = [nodes.to_pandas(), pd.Series(np.concatenate([rows.ts for rows, _ in parts])), *attributes]
        return pd.DataFrame(dict(zip(columns, data, strict=True)))

    def _routed_rows(self, entry: Any, stream: str) -> tuple[StreamRows, Array]:
        """The events of an entry, and the number of the node (from 0) that each went to. Raises FileNotFoundError if
        its file was dropped."""
        batch = load(self.folder, entry, self.schemas)
        return batch.rows[stream], nodes_of(batch, entry, self.schemas, self.began)[stream]


def _last_rows(rows: StreamRows, node_numbers: Array, most: int) -> tuple[StreamRows, Array]:
    """The last `most` events and their nodes."""
    first = max(0, len(rows.ts) - most)
    columns = [column[first:] for column in rows.columns]
    return StreamRows(rows.step[first:], rows.ts[first:], columns), node_numbers[first:]


def _series(parts: Sequence[Any]) -> pd.Series[Any]:
    """A column of several input batches."""
    arrays = [p.dictionary_decode() if not isinstance(p, list) and pa.types.is_dictionary(p.type) else p for p in parts]
    if any(isinstance(a, list) for a in arrays) or len({a.type for a in arrays}) > 1:  # objects
        values = [v for a in arrays for v in (a if isinstance(a, list) else a.to_pylist())]
        return pd.Series(values, dtype=object)
    return series_of(pa.chunked_array(arrays))
