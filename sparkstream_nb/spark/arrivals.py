"""What came in on an input stream, read back from the app's inbox: the last events, and which node each went to.

The inbox drops the files of what Spark is done with, so that of a long feed only the end can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..types import Schema
from .entries import RowsEntry, StepsEntry, from_json
from .journal import lines
from .outputs import nullable
from .routing import Route, assign
from .segments import load


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The last events of a stream. `frame`: `node` (shard id), `timestamp` (ms; `event_timestamp` beside an attribute
    of that name), then the attributes. `total`: how many came in so far. `gone`: how many of them cannot be read any
    more; they came before those of `frame`."""

    frame: pd.DataFrame
    total: int
    gone: int


@dataclass(frozen=True)
class InboxReader:
    """The inbox of an app in `folder`: its streams' `schemas`, the `shards` of all nodes that there ever were, and how
    many nodes the app `began` with."""

    folder: Path
    schemas: Mapping[str, Schema]
    shards: Sequence[str]
    began: int

    def last(self, stream: str, most: int) -> Arrivals:
        """The last `most` events that came in on `stream`, in their order."""
        entries = [e for _, line in lines(self.folder, 0) for e in from_json(line) if _events(e, stream)]
        total = sum(_events(e, stream) for e in entries)
        parts: list[pd.DataFrame] = []
        rows = gone = 0
        while entries and rows < most and not gone:
            try:
                parts.append(self._frame(entries.pop(), stream, most - rows))
                rows += len(parts[-1])
            except FileNotFoundError:
                gone = total - rows
        frame = pd.concat(parts[::-1], ignore_index=True) if parts else pd.DataFrame(columns=self._names(stream))
        return Arrivals(frame, total, gone)

    def _names(self, stream: str) -> list[str]:
        names = self.schemas[stream].names
        return ["node", "event_timestamp" if "timestamp" in names else "timestamp", *names]

    def _frame(self, entry: Any, stream: str, most: int) -> pd.DataFrame:
        """The last `most` events of an entry. Raises FileNotFoundError where its file was dropped."""
        batch = load(self.folder, entry, self.schemas)
        over = entry.over or range(self.began)
        route = Route.parse(entry.route, len(over))
        places = assign(batch, route, self.schemas, len(over), entry.request)[stream][-most:]
        rows = batch.rows[stream]
        first = len(rows.ts) - len(places)
        nodes = pd.Series([self.shards[over[i]] for i in places.tolist()], dtype=object)
        columns = [nodes, pd.Series(rows.ts[first:]), *(_series(c[first:]) for c in rows.columns)]
        return pd.DataFrame(dict(zip(self._names(stream), columns, strict=True)))


def _events(entry: Any, stream: str) -> int:
    """How many events of `stream` an entry has."""
    match entry:
        case RowsEntry():
            return entry.steps if entry.stream == stream else 0
        case StepsEntry():
            return (entry.events or {}).get(stream, 0)
    return 0


def _series(column: Any) -> pd.Series[Any]:
    """A column of an input batch; integers and truth values with nulls are of pandas' nullable types."""
    if isinstance(column, list):
        return pd.Series(column, dtype=object)
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    found: pd.Series[Any] = plain.to_pandas(types_mapper=nullable if plain.null_count else None)
    return found
