"""Reads the ends of an app's streams: outputs from their files, inputs from the inbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...outputs.commit import Progress
from ...outputs.input_events import InboxReader
from ...outputs.output_files import OutputFiles
from .stream_cursor import StreamEnd
from .stream_tail import MOST_KEYS


@dataclass(frozen=True)
class OutputEnds:
    """The end of a derived stream's outputs, since the app began. `names`: its attributes.
    `outputs` gives the app's files, which are others after it was scaled.
    """

    outputs: Callable[[], OutputFiles]
    progress: Progress
    stream: str
    names: Sequence[str]

    def total(self) -> int:
        return self.progress.rows.get(self.stream, 0)

    def read(self, most: int, key: str | None) -> StreamEnd:
        with self.progress.changed:
            batch, total = self.progress.batch, self.progress.rows.get(self.stream, 0)
        outputs = self.outputs()
        with outputs.tidying:
            if key is None:
                frame = outputs.frame(self.stream, self.names, batch, most)
            else:
                frame = outputs.latest(self.stream, self.names, batch, most, key).tail(MOST_KEYS)
        return StreamEnd(frame, total)


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
