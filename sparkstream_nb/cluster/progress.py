"""Progress of a running feed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class FeedProgress:
    """`done` of `total` events are committed, with `micro_batches` of the app so far, after `seconds`.

    `total` is None while the feed is read; `rejected` rows did not fit the stream.
    """

    stream: str
    done: int
    total: int | None
    rejected: int
    micro_batches: int
    seconds: float

    @property
    def events_per_second(self) -> float:
        return self.done / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        """`Trades: 200,000 of 336,346 events · 5 s · 40,000 events/s · micro-batch 3 · 12 rows refused`."""
        if self.total is None:
            return f"{self.stream}: reading the feed · {self.seconds:.0f} s"
        words = [
            f"{self.done:,} of {self.total:,} events",
            f"{self.seconds:.0f} s",
            *([f"{self.events_per_second:,.0f} events/s"] if self.done else []),
            f"micro-batch {self.micro_batches + 1}",
            *([f"{self.rejected:,} rows refused"] if self.rejected else []),
        ]
        return f"{self.stream}: {' · '.join(words)}"


OnProgress = Callable[[FeedProgress], None]


class ProgressLine:
    """Shows progress on one line of a terminal; prints nothing if the output is not a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = sys.stderr if out is None else out
        self.shown = 0

    def __call__(self, progress: FeedProgress) -> None:
        if self.out.isatty():
            self._write(str(progress))

    def close(self) -> None:
        """Removes the line."""
        if self.shown:
            self.out.write("\r" + " " * self.shown + "\r")
            self.out.flush()

    def _write(self, text: str) -> None:
        self.out.write("\r" + text.ljust(self.shown))
        self.out.flush()
        self.shown = len(text)
