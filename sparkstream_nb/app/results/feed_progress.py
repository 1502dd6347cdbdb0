"""Progress of a running feed."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class FeedProgress:
    """The app has processed `done` of `total` events, with `micro_batches` of it committed so far, after `seconds`.

    Events that are done and not committed yet are part of the micro-batch under way. `total` is None while the feed is
    read, which took `reading` seconds; `rejected` rows did not fit the stream. `reached` is the event time (ms) of the
    last event that was put in, if it has one.
    """

    stream: str
    done: int
    total: int | None
    rejected: int
    micro_batches: int
    seconds: float
    reading: float = 0.0
    reached: int | None = None

    @property
    def fraction(self) -> float:
        """The share of the feed that is done, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def events_per_second(self) -> float:
        """Events that are done, by second since the feed was read."""
        working = self.seconds - self.reading
        return self.done / working if working > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the time until all is done; None as long as nothing is."""
        rate = self.events_per_second
        return None if self.total is None or not rate else (self.total - self.done) / rate

    def __str__(self) -> str:
        """`Trades: 200,000 of 336,346 events · 5 s · 40,000 events/s · 3 s left · micro-batch 3 · 12 rows refused`."""
        return self.describe("running")

    def describe(self, state: str) -> str:
        """The text of `str` for a feed in a state; only a running one has a time left."""
        if self.total is None:
            return f"{self.stream}: reading the feed · {span(self.seconds)}"
        left = self.seconds_left
        words = [
            f"{self.done:,} of {self.total:,} events",
            span(self.seconds),
            *([f"{self.events_per_second:,.0f} events/s"] if self.done else []),
            *([f"{span(left)} left"] if state == "running" and left is not None and self.done < self.total else []),
            f"micro-batch {self.micro_batches + 1}",
            *([f"{self.rejected:,} rows refused"] if self.rejected else []),
        ]
        return f"{self.stream}: {' · '.join(words)}"


OnProgress = Callable[[FeedProgress], None]


def span(seconds: float) -> str:
    """`5 s`, `3 min 20 s` or `2 h 5 min`."""
    full_seconds = round(seconds)
    if full_seconds < 60:
        return f"{full_seconds} s"
    if full_seconds < 3600:
        return f"{full_seconds // 60} min {full_seconds % 60} s"
    return f"{full_seconds // 3600} h {full_seconds % 3600 // 60} min"


_LINE_SECONDS = 10.0
"""Interval of lines about progress where there is no terminal."""


class ProgressLine:
    """Shows a feed's progress, or a text, on one line of a terminal. If the output is not a terminal, it prints a
    further line every ten seconds, so that a log shows that the work continues."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = sys.stderr if out is None else out
        self.line_length = 0
        self._printed_at = time.monotonic()

    def __call__(self, progress: FeedProgress | str) -> None:
        if self.out.isatty():
            # A line that the terminal breaks could not be removed again.
            self._write(str(progress)[: shutil.get_terminal_size().columns - 1])
        elif (now := time.monotonic()) - self._printed_at >= _LINE_SECONDS:
            self._printed_at = now
            print(progress, file=self.out, flush=True)

    def close(self) -> None:
        """Removes the line."""
        if self.line_length:
            self.out.write("\r" + " " * self.line_length + "\r")
            self.out.flush()

    def _write(self, text: str) -> None:
        self.out.write("\r" + text.ljust(self.line_length))
        self.out.flush()
        self.line_length = len(text)
