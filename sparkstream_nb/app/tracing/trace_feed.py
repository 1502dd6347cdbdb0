"""The feed of a trace as steps in order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ...errors import Misuse, nearest, shown
from ...ingest.feed_files import tables_of
from ...ingest.ingest import python_values
from ...ingest.row_typing import type_rows
from ...limits import Limits
from ...plan.nodes import Plan
from ...sources.feed_check import check_source
from ...sources.feeds import arrow_of
from ...types import Schema
from ..deployment.deployment import milliseconds
from ..results.traces import TracedFeed
from ..running.sent import row_of
from ..running.source_reading import Reading, readings_of
from ..running.source_shapes import shape_of

APART = 1000
"""The distance (ms) of events without a time."""

Rows = list[list[Any]]


@dataclass(frozen=True)
class FeedStep:
    """Events that are sent at once to a stream, at a time (ms)."""

    time: int
    stream: str
    rows: Rows


@dataclass(frozen=True)
class TraceFeed:
    """The steps of a trace, one at least; `total_rows`: events of the feed, which may be more; when the clock starts
    (ms; None: with the first step), and the end of the trace (ms; None: some time after the last step)."""

    steps: Sequence[FeedStep]
    total_rows: int
    starts: int | None = None
    until: int | None = None

    @property
    def start(self) -> int:
        """The first moment (ms)."""
        return self.steps[0].time if self.starts is None else min(self.starts, self.steps[0].time)

    def summarize(self, end: int) -> TracedFeed:
        """The feed, as a result shows it; the trace ended at `end`."""
        return TracedFeed(self.start, end, sum(len(s.rows) for s in self.steps), self.total_rows)


def steps_of(plan: Plan, feed: Any, reading: Mapping[str, Any], stream: str) -> list[FeedStep]:
    """The steps of a feed: a list of events, a source (frame or file) for `stream`, or sources by stream. `reading`:
    arguments of `readings_of`.

    Raises `Misuse` for a feed that is none of them and for unknown streams, SparkStreamError for events that do not
    fit, and for a source that cannot be read.
    """
    if isinstance(feed, (list, tuple)):
        steps = [_of_event(plan, event, stream, i) for i, event in enumerate(feed)]
    else:
        sources = {str(s): x for s, x in feed.items()} if isinstance(feed, Mapping) else {stream: feed}
        readings = readings_of({s: _schema(plan, s) for s in sources}, **reading)
        steps = [step for s, source in sources.items() for step in _of_source(plan, s, source, readings[s])]
    return sorted(steps, key=lambda step: step.time)


def _schema(plan: Plan, stream: str) -> Schema:
    if not stream:
        raise Misuse("feed: the query reads several streams: name the stream of each event, or of each source")
    streams = {s: d for s, d in plan.streams.items() if "#" not in s}
    if stream not in streams:
        raise Misuse(nearest(f"the app has no stream '{stream}'", stream, streams))
    return streams[stream].source.schema


def _of_event(plan: Plan, event: Any, stream: str, at: int) -> FeedStep:
    if not isinstance(event, (list, tuple)) or len(event) not in (2, 3):
        raise Misuse(f"feed: {shown(event)} is not an event: write (stream, time, values), or (time, values)")
    name, time, values = event if len(event) == 3 else (stream, *event)
    if not isinstance(name, str):
        raise Misuse(f"feed: {shown(name)} is not a stream: write (stream, time, values)")
    schema = _schema(plan, name)
    together = isinstance(values, (list, tuple)) and bool(values) and isinstance(values[0], (list, tuple, Mapping))
    rows = [row_of(name, schema, v) for v in (values if together else [values])]
    return FeedStep(milliseconds(time, f"feed, event {at + 1}"), name, rows)


def _of_source(plan: Plan, stream: str, source: Any, reading: Reading) -> list[FeedStep]:
    schema = _schema(plan, stream)
    shape = check_source(source, shape_of(reading, stream, schema))
    table = _table(source, shape.names, stream)
    stream_rows = type_rows(table, schema, shape.row_reading)
    if stream_rows.rejected:
        raise Misuse(
            f"{stream}: {len(stream_rows.rejected):,} of {table.num_rows:,} rows do not fit: "
            f"{stream_rows.rejected[0][2]}"
        )
    times = np.arange(len(stream_rows)) * APART if stream_rows.ts is None else stream_rows.ts
    columns = [python_values(c) for c in stream_rows.columns]
    return [FeedStep(int(t), stream, [list(row)]) for t, row in zip(times, zip(*columns, strict=True), strict=True)]


def _table(source: Any, names: Sequence[str], stream: str) -> pa.Table:
    if isinstance(source, pd.DataFrame):
        return arrow_of(source[[c for c in names if c in source.columns]], Limits())
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, (str, Path)):
        tables = list(tables_of(Path(source), names))
        return pa.concat_tables(tables) if tables else pa.table({n: [] for n in names})
    raise Misuse(f"{stream}: {shown(source)} is neither a pandas or Arrow frame nor a .csv or .parquet file")
