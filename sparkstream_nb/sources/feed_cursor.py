"""A feed's rows that are on disk and not fed yet: of one source, or of several merged by event time.

A cursor hands rows out in the order in which they are fed, cut where its caller wants: after some rows, or at an event
time. It holds the times of one chunk of each source in memory, so feeds may be larger than that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import InputBatch, StreamRows
from ..ingest import ingest
from ..journal.entries import Entry, EventsEntry, FileRows, MergedEntry, Reject, RowsEntry
from ..journal.inbox import Inbox
from ..journal.routing import Route, assign
from ..journal.segments import merge, read_rows
from . import feeds
from .disorder import Ranked
from .feeds import Chunk, FeedOnDisk, Shape, checked_write

SMALL_ROWS = 2_000
"""Fewer rows than this, where they are not all of a chunk, enter the journal as a batch of their own."""


@dataclass(frozen=True)
class Spacing:
    """Times of events without one: `apart` ms apart, from `now` (ms) or the app's clock on."""

    now: int
    apart: int = 1


@dataclass(frozen=True)
class Skew:
    """ms that are added to the event times of a node's events, by number of the node among the `nodes`."""

    by_node: Mapping[int, int]
    nodes: int


@dataclass(eq=False)
class _CursorSource:
    """A source and the place in it: row `row` of chunk number `chunk`. A source whose rows do not come in the order of
    their event times is `order`."""

    feed: FeedOnDisk
    shape: Shape
    order: Ranked | None = None
    chunk: int = 0
    row: int = 0
    _times: Array | None = field(default=None, repr=False)

    @property
    def here(self) -> Chunk | None:
        return self.feed.chunks[self.chunk] if self.chunk < len(self.feed.chunks) else None

    def times(self, folder: Path) -> Array:
        """The event times (ms) of the chunk's rows from the place on."""
        if self._times is None:
            assert self.here is not None
            self._times = _times_of(folder / self.here.file, self.here, self.shape)
        return self._times[self.row :]

    def ranks(self, folder: Path) -> Array:
        """The order of the chunk's rows from the place on, among the rows of all sources."""
        return self.times(folder) if self.order is None else self._own(self.order.ranks)

    def clocks(self, folder: Path) -> Array:
        """The times (ms) at which the chunk's rows come, from the place on."""
        return self.times(folder) if self.order is None else self._own(self.order.clocks)

    def _own(self, of_all: Array) -> Array:
        before = sum(c.rows for c in self.feed.chunks[: self.chunk])
        return of_all[before + self.row : before + self.row + self.left()]

    def left(self) -> int:
        """Number of the chunk's rows from the place on."""
        return 0 if self.here is None else self.here.rows - self.row

    def pass_rows(self, rows: int) -> None:
        self.row += rows
        if not self.left():
            self.chunk, self.row, self._times = self.chunk + 1, 0, None

    def rewind(self) -> None:
        self.chunk, self.row, self._times = 0, 0, None


@dataclass(frozen=True)
class _Part:
    """Rows of a source for an entry: their latest event time (ms), if they have one, their ranks, if the source is
    ranked, and whether they are all of a chunk."""

    source: _CursorSource
    rows: FileRows
    latest: int | None
    ranks: Array | None
    all_of_chunk: bool


@dataclass(frozen=True)
class _Routing:
    """The route of an entry, and the number of its first request."""

    route: str
    request: int


class FeedCursor:
    """The place in a feed whose files are in the inbox's `folder`. Sources whose rows have event times are merged; of
    equal times, rows of an earlier source come first. A source without event times is alone. `skew` changes event
    times. `done` counts the rows that were handed out.
    """

    def __init__(self, folder: Path, skew: Skew | None = None) -> None:
        self.folder, self.skew = folder, skew
        self.rows_done = self.rows = 0
        self.last_time: int | None = None
        """The event time (ms) of the last row that was handed out."""
        self._sources: list[_CursorSource] = []
        self._links = 0

    def add(self, feed: FeedOnDisk, shape: Shape) -> None:
        """Adds a source, in order of event time. Its first rows may lie before those that were handed out."""
        self._sources.append(_CursorSource(feed, shape))
        self.rows += feed.rows

    def add_ranked(self, source: Ranked) -> None:
        """Adds a source whose rows come in the order of their ranks. All sources of a cursor are ranked, or none is."""
        self._sources.append(_CursorSource(source.feed, source.shape, source))
        self.rows += source.feed.rows

    @property
    def has_times(self) -> bool:
        """True if rows have event times."""
        return all(s.shape.time is not None for s in self._sources)

    @property
    def left(self) -> int:
        """Number of rows that were not handed out."""
        return self.rows - self.rows_done

    def next_time(self) -> int | None:
        """The time (ms) at which the next row comes: its event time, if rows come in that order. None if there is no
        row, or rows have no times."""
        if not self.has_times:
            return None
        return min((int(s.clocks(self.folder)[0]) for s in self._sources if s.here is not None), default=None)

    def rewind(self) -> None:
        """Returns to the first row."""
        for source in self._sources:
            source.rewind()
        self.rows_done, self.last_time = 0, None

    def discard(self) -> None:
        """Removes the files. Entries that were made have their own names for them."""
        for source in self._sources:
            for name in {c.file for c in source.feed.chunks}:
                (self.folder / name).unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------------------------- entries

    def take(
        self, inbox: Inbox, route: str, spacing: Spacing, most: int | None = None, until: int | None = None
    ) -> list[Entry]:
        """Hands out the next rows as entries for the inbox: `most` of them, and those that come up to the time `until`
        (ms, inclusive). Raises SparkStreamError if the disk is full; the place stays where it was then.
        """
        before = [(s.chunk, s.row, s._times) for s in self._sources], self.rows_done, self.last_time
        out: list[Entry] = []
        remaining_rows = self.left if most is None else min(most, self.left)
        apart = spacing.apart
        now = spacing.now if inbox.position.clock is None else max(spacing.now, inbox.position.clock + apart)
        try:
            while remaining_rows and (parts := self._parts_of_entry(remaining_rows, until)):
                rows = sum(p.rows.rows for p in parts)
                request = inbox.position.request + sum(e.requests for e in out)
                out.append(self._entry(parts, inbox, _Routing(route, request), Spacing(now, apart)))
                self.rows_done, remaining_rows, now = self.rows_done + rows, remaining_rows - rows, now + apart * rows
                self.last_time = out[-1].clock
        except BaseException:
            for entry in out:
                for name in entry.files:
                    (self.folder / name).unlink(missing_ok=True)
            for source, place in zip(self._sources, before[0], strict=True):
                source.chunk, source.row, source._times = place
            self.rows_done, self.last_time = before[1:]
            raise
        return out

    def _parts_of_entry(self, most: int, until: int | None) -> list[_Part]:
        """The next rows, as parts of an entry, and passes them. Sources whose chunks end at other rows are put together
        until there are enough."""
        parts: list[_Part] = []
        rows = 0
        while rows < min(most, feeds.CHUNK_ROWS) and (next_parts := self._next_parts(most - rows, until)):
            parts += next_parts
            rows += sum(p.rows.rows for p in next_parts)
            for part in next_parts:
                part.source.pass_rows(part.rows.rows)
            if len(parts) == 1 and len(self._sources) == 1:
                break
        return parts

    def _next_parts(self, most: int, until: int | None) -> list[_Part]:
        """The next rows that no row of a later chunk comes before, as parts of an entry.

        The chunk that ends first bounds them: of the sources before it, rows with the same time as its last one come
        earlier, of the sources after it later.
        """
        here = [s for s in self._sources if s.here is not None]
        if not self.has_times or (len(here) == 1 and until is None):
            return [self._part(s, min(s.left(), most)) for s in here[:1]]
        ranks = [s.ranks(self.folder) for s in here]
        ending = min(range(len(here)), key=lambda i: (int(ranks[i][-1]), i), default=0)
        counts = []
        for i, source_ranks in enumerate(ranks):
            last = ranks[ending][-1]
            count = (
                len(source_ranks)
                if i == ending
                else int(np.searchsorted(source_ranks, last, "right" if i < ending else "left"))
            )
            if until is not None:
                count = min(count, int(np.searchsorted(here[i].clocks(self.folder), until, "right")))
            counts.append(min(count, most))
        if sum(counts) > most:
            counts = _first_of(most, [source_ranks[:n] for source_ranks, n in zip(ranks, counts, strict=True)])
        return [self._part(s, n) for s, n in zip(here, counts, strict=True) if n]

    def _part(self, source: _CursorSource, rows: int) -> _Part:
        all_of_chunk = source.here is not None and rows == source.here.rows
        if source.shape.time is None:
            return _Part(source, _rows_of(source, rows), None, None, all_of_chunk)
        ranks = None if source.order is None else source.ranks(self.folder)[:rows]
        return _Part(source, _rows_of(source, rows), int(source.times(self.folder)[:rows].max()), ranks, all_of_chunk)

    def _entry(self, parts: Sequence[_Part], inbox: Inbox, routing: _Routing, spacing: Spacing) -> EventsEntry:
        rows, route = sum(p.rows.rows for p in parts), routing.route
        small = rows < SMALL_ROWS and not all(p.all_of_chunk for p in parts)
        order = parts[0].source.order
        if small or self.skew is not None or (order is not None and (len(parts) > 1 or order.is_chunked)):
            batch = self._batch(parts, spacing)
            return inbox.batch(batch if self.skew is None else self._skew_times(batch, routing), route)
        file_rows = [self._with_own_name(p.rows) for p in parts]
        if len(file_rows) > 1:
            clock = max(p.latest or 0 for p in parts)
            return MergedEntry(steps=rows, requests=rows, clock=clock, route=route, parts=tuple(file_rows))
        (latest, part), has_times = (parts[0].latest, file_rows[0]), parts[0].source.shape.time is not None
        return RowsEntry(
            steps=rows,
            requests=rows,
            clock=spacing.now + spacing.apart * (rows - 1) if latest is None else latest,
            route=route,
            file=part.file,
            stream=part.stream,
            first=part.first,
            groups=part.groups,
            columns=part.columns,
            time=part.time,
            start=None if has_times else spacing.now,
            apart=spacing.apart,
        )

    def _batch(self, parts: Sequence[_Part], spacing: Spacing) -> InputBatch:
        rows_by_part = []
        for part in parts:
            schema, stream = part.source.shape.schema, part.rows.stream
            rows = read_rows(self.folder, part.rows, schema, range(len(schema)))
            if part.source.shape.time is None:
                ts = spacing.now + spacing.apart * np.arange(part.rows.rows, dtype=np.int64)
                return InputBatch(ts, {stream: StreamRows(rows.step, ts, rows.columns)})
            rows_by_part.append((stream, rows))
        order = parts[0].source.order
        if order is None:
            return merge(rows_by_part)
        return merge(
            rows_by_part, [p.ranks for p in parts if p.ranks is not None], equal_ranks_together=order.is_chunked
        )

    def _skew_times(self, batch: InputBatch, routing: _Routing) -> InputBatch:
        """The batch with the event times of those whose node's clock is off."""
        assert self.skew is not None
        schemas = {s.shape.stream: s.shape.schema for s in self._sources}
        route = Route.parse(routing.route, self.skew.nodes)
        places = assign(batch, route, schemas, self.skew.nodes, routing.request)
        shifts = np.array([self.skew.by_node.get(k, 0) for k in range(self.skew.nodes)], np.int64)
        clock = batch.clock.copy()
        for stream, rows in batch.rows.items():
            rows.ts = rows.ts + shifts[places[stream]]
            clock[rows.step] = rows.ts
        return InputBatch(clock, batch.rows)

    def _with_own_name(self, part: FileRows) -> FileRows:
        """The part in a file of its own name, which goes when its entry is done with."""
        name = f"{part.file}-{self._links:05d}"
        self._links += 1
        with checked_write(self.folder):
            os.link(self.folder / part.file, self.folder / name)
        return FileRows(
            file=name, stream=part.stream, rows=part.rows, first=part.first, groups=part.groups, columns=part.columns,
            time=part.time,
        )  # fmt: skip


def times_of(feed: FeedOnDisk, shape: Shape, folder: Path) -> Array:
    """The event times (ms) of all rows of a feed."""
    return np.concatenate([np.empty(0, np.int64), *(_times_of(folder / c.file, c, shape) for c in feed.chunks)])


def rejects_of(feed: FeedOnDisk) -> list[Reject]:
    """The entries of a feed's rejected rows."""
    return [Reject(file=file) for file in feed.rejects]


def _rows_of(source: _CursorSource, rows: int) -> FileRows:
    chunk, shape = source.here, source.shape
    assert chunk is not None
    taken_as_it_is = bool(chunk.groups)
    return FileRows(
        file=chunk.file,
        stream=shape.stream,
        rows=rows,
        first=source.row,
        groups=chunk.groups,
        columns=tuple(shape.columns.get(a.name, a.name) for a in shape.schema) if taken_as_it_is else (),
        time=shape.time if taken_as_it_is else None,
    )


def _first_of(most: int, times: Sequence[Array]) -> list[int]:
    """Numbers of rows that each source has among the first `most` in merged order."""
    order = np.argsort(np.concatenate(times), kind="stable")[:most]
    ends = np.cumsum([len(source_times) for source_times in times])
    return np.bincount(np.searchsorted(ends, order, side="right"), minlength=len(times)).tolist()


def _times_of(file: Path, chunk: Chunk, shape: Shape) -> Array:
    """The event times (ms) of a chunk's rows."""
    values: Any
    if chunk.groups:
        with pa.memory_map(str(file)) as source:
            table = pq.ParquetFile(source).read_row_groups(list(chunk.groups), columns=[shape.time])
        values = ingest.times(ingest.one(table.column(0)))[0]
    else:
        with pa.memory_map(str(file)) as source:
            values = ingest.one(pa.ipc.open_file(source).read_all()["ts"]).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.int64)
