"""A streaming DataFrame as a source: Spark writes its rows into the app's folder, and the app takes them from there.

Spark's parquet sink has a log of its own: a file for each micro-batch, with the names of its data files. So what a
micro-batch wrote is read whole or not at all, and the number of the last micro-batch that was taken is the source's
position, which is in the app's journal beside the events. Data files are removed once their events are there.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..engine.columnar.column_data import Array
from ..errors import Misuse, nearest
from ..ingest.row_typing import type_rows
from ..mapping.decoding import Decoded
from .feeds import Shape
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable

BATCH = "batch"
"""The part of the position: the number of the last micro-batch of Spark's that was taken."""
ROWS = 1_000_000
"""Rows that are read at once, if there are as many in several micro-batches."""
MOST_AHEAD = 20
"""Micro-batches that Spark may be ahead of the app; with more, its query is stopped until the app has taken them."""
_POLL = 0.05


def is_stream(source: Any) -> bool:
    """True for a streaming DataFrame."""
    return bool(getattr(source, "isStreaming", False)) and hasattr(source, "writeStream")


def check_stream(frame: Any, shape: Shape) -> Shape:
    """The shape for a streaming frame's columns. Raises `Misuse` if it lacks a column that a stream needs."""
    shape = shape.fit_columns(frame.columns)
    for name in shape.names:
        if name not in frame.columns:
            raise Misuse(nearest(f"the frame has no column '{name}' for stream '{shape.stream}'", name, frame.columns))
    return shape


@dataclass(frozen=True)
class _SinkFolder:
    """The folder into which Spark writes a stream, with the log of its sink."""

    path: Path

    def logs(self) -> dict[int, Path]:
        """The files of the log, by the number of their micro-batch."""
        files = {}
        for file in (self.path / "_spark_metadata").glob("[0-9]*"):
            files[int(file.name.partition(".")[0])] = file
        return files

    def data(self, log: Path) -> Iterator[Path]:
        """The data files that a file of the log names, and that are still there: one that is compacted names the files
        of all micro-batches before it, too."""
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:
            file = Path(unquote(urlsplit(json.loads(line)["path"]).path))
            if file.is_file():
                yield file

    def remove_until(self, batch: int) -> None:
        """Removes the data files of a micro-batch and of those before it."""
        for number, log in self.logs().items():
            if number <= batch:
                for file in self.data(log):
                    file.unlink(missing_ok=True)


class FrameStreamReader(SourceReader):
    """Reads a streaming frame: Spark's query over it writes into `folder`, where its checkpoint is, too. `latest` gives
    the last time (ms) that is taken; None: all are."""

    def __init__(self, frame: Any, folder: Path, shape: Shape, latest: Callable[[], int | None]) -> None:
        self._frame, self._folder, self._shape, self._latest = frame, folder, shape, latest
        self._sink = _SinkFolder(folder / "rows")
        self._query: Any = None
        self._last_batch = -1
        self._backlog: Behind | None = None

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self._last_batch = int(positions.get(BATCH, -1))
        self._sink.remove_until(self._last_batch)  # a crash may have left them
        self._start()
        return None

    def _start(self) -> None:
        names = [self._frame[f"`{name}`"] for name in self._shape.names]
        writing = self._frame.select(*names).writeStream.format("parquet").outputMode("append")
        writing = writing.option("path", (self._folder / "rows").as_uri())
        writing = writing.option("checkpointLocation", (self._folder / "checkpoint").as_uri())
        try:
            self._query = writing.start()
        except Exception as error:  # Spark's and Connect's errors have no common base
            raise SourceUnavailable(_first_line(error)) from error

    def read(self, seconds: float) -> ReadMessages | None:
        end = clock.monotonic() + seconds
        while True:
            began, idle = clock.monotonic(), self._is_idle()
            if waiting := sorted(n for n in self._sink.logs() if n > self._last_batch):
                break
            if idle:  # all that there was is in micro-batches that were taken
                self._backlog = Behind(began, {BATCH: 0})
            self._check_query()
            if clock.monotonic() >= end:
                return None
            clock.sleep(_POLL)
        if len(waiting) > MOST_AHEAD:
            self._stop()
        tables: list[pa.Table] = []
        for number in waiting:
            log = self._sink.logs().get(number)
            if log is None:  # compacted meanwhile: a later one has its files
                continue
            tables += [pq.read_table(file) for file in self._sink.data(log)]
            self._last_batch = number
            if sum(t.num_rows for t in tables) >= ROWS:
                break
        backlog = sum(1 for n in waiting if n > self._last_batch)
        self._backlog = Behind(clock.monotonic(), {BATCH: backlog})
        events = self._decode(tables)
        row_count = len(events) + len(events.refused)
        return ReadMessages(events, row_count, {BATCH: self._last_batch}, lasting=True)

    def _decode(self, tables: Sequence[pa.Table]) -> Decoded:
        """The rows as events, in the order of their times."""
        s = self._shape
        table = pa.concat_tables(tables) if tables else pa.table({name: pa.nulls(0) for name in s.names})
        reading = replace(s.row_reading, latest=self._latest())
        typed_rows = type_rows(table, s.schema, reading, keep=table.num_rows)
        order: Array | None = None
        if typed_rows.ts is not None and not bool(np.all(typed_rows.ts[1:] >= typed_rows.ts[:-1])):
            order = np.argsort(typed_rows.ts, kind="stable")
        columns, ts = list(typed_rows.columns), typed_rows.ts
        if order is not None and ts is not None:
            columns, ts = [c.take(pa.array(order)) for c in columns], ts[order]
        return Decoded(columns, np.arange(len(typed_rows)), (), ts, tuple(typed_rows.rejected))

    def _is_idle(self) -> bool:
        """True if Spark has taken all rows that there are."""
        return self._query is not None and str(self._query.status["message"]).startswith("Waiting for")

    def _check_query(self) -> None:
        """Starts Spark's query again if it was stopped. Raises SourceUnavailable if it has failed."""
        query = self._query
        if query is not None and query.isActive:
            return
        error = None if query is None else query.exception()
        if error is not None:
            self._query = None
            raise SourceUnavailable(_first_line(error))
        self._start()

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        self._sink.remove_until(int(messages.reached[BATCH]))

    def busy(self, *, full: bool) -> None:
        if full and self._query is not None and len(self._sink.logs()) > MOST_AHEAD:
            self._stop()

    def behind(self) -> Behind | None:
        return self._backlog

    def close(self) -> None:
        self._stop()

    def _stop(self) -> None:
        query, self._query = self._query, None
        if query is not None:
            query.stop()


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
