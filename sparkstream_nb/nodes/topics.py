"""Topics between partial apps: events that their writers publish become steps of their readers.

The messaging layer keeps the order of each writer. Events of several are merged by the time at which they were
published, then by writer, so the order depends neither on timing nor on how steps are cut into batches. Events emitted
at once are one message, and arrive at once. Events that a timer emitted between two steps of the app reach their reader
before the later one, at the last time of these events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.state.node_batch import Chunks, Emitted, InputBatch, StreamRows, take_rows
from .batches import concat_columns, rows_in_order


@dataclass(frozen=True)
class TopicLog:
    """Events that one writer has published on a stream, in order: `place` is the app's step (int64[n], ascending), `ts`
    the events' times (ms), `chunks` the events emitted at once.
    """

    stream: str
    place: Array
    ts: Array
    chunks: Chunks
    columns: list[Any]

    @staticmethod
    def of(stream: str, parts: Sequence[Emitted]) -> TopicLog:
        """Several outputs of a writer, one after the other; their steps are the app's."""
        numbers, timer_marks, last = [], [], 0
        for e in parts:
            assert e.chunks is not None, "the engine was not made to tell chunks"
            numbers.append(e.chunks.number + last)
            timer_marks.append(e.chunks.timed)
            last = int(numbers[-1][-1]) + 1 if len(numbers[-1]) else last
        return TopicLog(
            stream,
            np.concatenate([e.step for e in parts]),
            np.concatenate([e.ts for e in parts]),
            Chunks(np.concatenate(numbers), np.concatenate(timer_marks)),
            [concat_columns(cs) for cs in zip(*(e.columns for e in parts), strict=True)],
        )

    def select(self, index: Array) -> TopicLog:
        """The events at some positions."""
        chunks = Chunks(self.chunks.number[index], self.chunks.timed[index])
        columns = [take_rows(c, index) for c in self.columns]
        return TopicLog(self.stream, self.place[index], self.ts[index], chunks, columns)

    def begins(self) -> Array:
        """True if an event is the first of its chunk, bool[n]."""
        out = np.ones(len(self.place), bool)
        out[1:] = (np.diff(self.chunks.number) != 0) | (np.diff(self.place) != 0)
        return out

    def times(self, clock_before: Array, clock: Array) -> Array:
        """When each event was published (ms), ascending. An event of the app makes others at the clock of its step; a
        timer after the clock of the step before it."""
        begins = self.begins()
        first = np.flatnonzero(begins)
        latest = np.maximum.reduceat(self.ts, first)[np.cumsum(begins) - 1]
        timer_times = np.clip(latest, clock_before[self.place], clock[self.place])
        return np.maximum.accumulate(np.where(self.chunks.timed, timer_times, clock[self.place]))


def with_arrivals(batch: InputBatch, before: int, writers: Sequence[TopicLog]) -> tuple[InputBatch, Array]:
    """A reader's steps: the app's steps, which hold outside input, and between them steps from topics; with the app's
    step of each, int64. The clock was at `before` (ms). An app's own step comes before arrivals at its time.
    """
    count = len(batch.clock)
    writers = [w for w in writers if len(w.place)]
    if not writers:
        return batch, np.arange(count)
    clock = np.maximum(np.maximum.accumulate(batch.clock), before)
    clock_before = np.concatenate([[before], clock[:-1]])
    place = np.concatenate([np.arange(count), *(w.place for w in writers)])
    time = np.concatenate([clock, *(w.times(clock_before, clock) for w in writers)])
    writer = np.concatenate([np.zeros(count, np.int64), *(np.full(len(w.place), i + 1) for i, w in enumerate(writers))])
    begins = np.concatenate([np.ones(count, bool), *(w.begins() for w in writers)])
    order = np.lexsort((writer, time, place))
    step = np.empty(len(order), np.int64)
    step[order] = np.cumsum(begins[order]) - 1
    firsts = order[begins[order]]
    out = InputBatch(time[firsts])
    parts: dict[str, list[StreamRows]] = {}
    for stream, r in batch.rows.items():
        parts.setdefault(stream, []).append(StreamRows(step[r.step], r.ts, r.columns))
    at = count
    for w in writers:
        parts.setdefault(w.stream, []).append(StreamRows(step[at : at + len(w.place)], w.ts, w.columns))
        at += len(w.place)
    out.rows = {stream: rows_in_order(stream_rows) for stream, stream_rows in parts.items()}
    return out, place[firsts]


