"""Reads the ends of an app's streams: outputs from their files, inputs from the inbox."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ...outputs.commit import Progress
from ...outputs.event_tables import event_fields, output_table
from ...outputs.input_events import InboxReader
from ...outputs.output_files import OutputFiles
from ...types import Schema
from .stream_cursor import StreamEnd
from .stream_tail import MOST_KEYS


@dataclass(frozen=True)
class OutputEnds:
    """The end of a derived stream's outputs, since the app began.
    `outputs` gives the app's files, which are others after it was scaled.
    """

    outputs: Callable[[], OutputFiles]
    progress: Progress
    stream: str
    schema: Schema

    def total(self) -> int:
        return self.progress.rows.get(self.stream, 0)

    def read(self, most: int, key: str | None) -> StreamEnd:
        batch, total = self._committed()
        outputs, names = self.outputs(), self.schema.names
        with outputs.tidying:
            if key is None:
                frame = outputs.frame(self.stream, names, batch, most)
            else:
                frame = outputs.latest(self.stream, names, batch, most, key).tail(MOST_KEYS)
        return StreamEnd(frame, total)

    def table(self, most: int) -> tuple[pa.Table, int]:
        batch, total = self._committed()
        outputs = self.outputs()
        with outputs.tidying:
            rows = outputs.read(self.stream, batch, most)
        if rows is None:
            return event_fields(self.schema).empty_table(), total
        return output_table(rows, outputs.shards, self.schema), total

    def _committed(self) -> tuple[int, int]:
        """The last micro-batch, and the outputs of the stream up to it."""
        with self.progress.changed:
            return self.progress.batch, self.progress.rows.get(self.stream, 0)


@dataclass(frozen=True)
class ArrivalEnds:
    """The end of an input stream. `arrived` gives the number of events that came in so far, `reader` a reader of
    the inbox, which is another after the app was scaled.
    """

    reader: Callable[[], InboxReader]
    stream: str
    count_arrivals: Callable[[], int]

    def total(self) -> int:
        return self.count_arrivals()

    def read(self, most: int, key: str | None) -> StreamEnd:
        arrivals = self.reader().last(self.stream, most)
        frame = arrivals.frame if key is None else arrivals.frame.drop_duplicates(key, keep="last").tail(MOST_KEYS)
        return StreamEnd(frame, arrivals.total)

    def table(self, most: int) -> tuple[pa.Table, int]:
        last_events = self.reader().last_table(self.stream, most)
        return last_events.table, last_events.total
