"""Input events of a stream, read back from the app's inbox: the last events, and the node that each went to.

The inbox keeps processed input as long as the app's retention says: of a long input, only the end can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..journal.inbox import InboxPosition
from ..journal.journal import entries_of, lines_of, segments
from ..journal.routing import Route, assign
from ..journal.segments import load
from ..types import Schema
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
        total: int | None = None
        parts: list[pd.DataFrame] = []
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
                    parts.append(self._frame(entries.pop(), stream, most - rows))
                    rows += len(parts[-1])
        except FileNotFoundError:
            pass  # earlier events are not kept
        total = total or 0
        unreadable = total - rows if rows < most else 0
        frame = pd.concat(parts[::-1], ignore_index=True) if parts else pd.DataFrame(columns=self._names(stream))
        return Arrivals(frame, total, unreadable)

    def _names(self, stream: str) -> list[str]:
        names = self.schemas[stream].names
        return [*stamps(names), *names]

    def _frame(self, entry: Any, stream: str, most: int) -> pd.DataFrame:
        """The last `most` events of an entry. Raises FileNotFoundError if its file was dropped."""
        batch = load(self.folder, entry, self.schemas)
        over = entry.over or range(self.began)
        route = Route.parse(entry.route, len(over))
        places = assign(batch, route, self.schemas, len(over), entry.request)[stream][-most:]
        rows = batch.rows[stream]
        first = len(rows.ts) - len(places)
        nodes = pd.Series([self.shards[over[i]] for i in places.tolist()], dtype=object)
        columns = [nodes, pd.Series(rows.ts[first:]), *(_series(c[first:]) for c in rows.columns)]
        return pd.DataFrame(dict(zip(self._names(stream), columns, strict=True)))


def _series(column: Any) -> pd.Series[Any]:
    """A column of an input batch."""
    if isinstance(column, list):
        return pd.Series(column, dtype=object)
    return series_of(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
