"""The selected events of a stream that grows, as a display of its end reads them."""

from __future__ import annotations

import threading

import pyarrow as pa

from ...outputs.event_tables import frame_of_events
from .selection_criteria import Criteria
from .stream_cursor import StreamEnd, StreamEnds
from .stream_tail import LOOKED_AT, MOST_KEYS

MOST_SEARCHED = 1_000_000
"""Events among which the selected ones are looked for at first, the last ones."""


class SelectedEnds:
    """The end of the events of `stream` that meet `criteria`: of the last `MOST_SEARCHED` events, and of later ones."""

    def __init__(self, ends: StreamEnds, stream: str, criteria: Criteria) -> None:
        self._ends, self._stream, self._criteria = ends, stream, criteria
        self._lock = threading.Lock()
        self._read_count = self._selected_count = 0
        self._last: pa.Table | None = None

    def stream_total(self) -> int:
        """The number of events of the stream, selected or not."""
        return self._ends.total()

    def total(self) -> int:
        with self._lock:
            self._read_on()
            return self._selected_count

    def read(self, most: int, key: str | None) -> StreamEnd:
        table, total = self.table(LOOKED_AT if key is not None else most)
        frame = frame_of_events(table)
        if key is not None:
            frame = frame.drop_duplicates(key, keep="last").tail(min(most, MOST_KEYS))
        return StreamEnd(frame, total)

    def table(self, most: int) -> tuple[pa.Table, int]:
        with self._lock:
            last = self._read_on()
            return last.slice(max(0, last.num_rows - most)), self._selected_count

    def _read_on(self) -> pa.Table:
        """Reads new events, and returns the last of the selected ones."""
        total = self._ends.total()
        if self._last is not None and total == self._read_count:
            return self._last
        row_limit = -1
        while row_limit < (new_count := min(total - self._read_count, MOST_SEARCHED)):
            row_limit = new_count  # further events may be committed before the reading
            table, total = self._ends.table(row_limit)
        self._read_count = total
        selected = self._criteria.filter(table, self._stream)
        self._selected_count += selected.num_rows
        if self._last is not None:
            selected = pa.concat_tables([self._last, selected])
        self._last = selected.slice(max(0, selected.num_rows - LOOKED_AT))
        return self._last
