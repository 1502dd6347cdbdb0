"""Traces of a query: what its windows hold, or its partial matches, over a feed. Plain, typed data.

Times are ms of the app's clock. `app.pictures` describes their pictures, `lab.traces_shown` displays them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from ...charts.picture import Picture
from ..pictures.pattern_trace_picture import pattern_trace_picture
from ..pictures.window_trace_picture import window_trace_picture
from .plotly_results import Pictured

PartialEnd = Literal["match", "expired", "dropped", "waiting"]
"""The end of a partial match: it became a match, `within` passed, an event (or the lack of one) ended it, or the feed
ended first."""


@dataclass(frozen=True)
class TracedEvent:
    """An event that reached the query: its number, its stream, the clock (ms) at its step, its own timestamp, its
    values by attribute, and the key of its partition ("": none)."""

    number: int
    stream: str
    time: int
    timestamp: int
    values: Mapping[str, Any]
    key: str = ""


@dataclass(frozen=True)
class TracedOutput:
    """An output of the query: the clock (ms) at its step, its values, and whether it is an expired event."""

    time: int
    values: Mapping[str, Any]
    expired: bool = False


@dataclass(frozen=True)
class Stay:
    """The stay of an event in a window. `emitted`: when the window handed the event on (None: it did not); before that,
    an event of a batch waits. `left`: when it was no longer in the window (None: it still is). `held`: false for an
    event that was not in the window after any step."""

    event: TracedEvent
    emitted: int | None
    left: int | None
    held: bool

    @property
    def entry(self) -> int:
        """When the event arrived."""
        return self.event.time


@dataclass(frozen=True)
class TracedStep:
    """A step: an event, or a tick of the clock at which a timer was due; and the numbers of the events that the window
    held after it."""

    time: int
    timer: bool
    contents: tuple[int, ...]


@dataclass(frozen=True)
class TracedWindow:
    """One window over the feed. `text`: its call. `resets`: the times at which the aggregates were reset."""

    stream: str
    text: str
    stays: Sequence[Stay]
    steps: Sequence[TracedStep]
    resets: Sequence[int] = ()


@dataclass(frozen=True)
class TracedFeed:
    """The feed of a trace: its first and last moment (ms), how many of its events were used, of how many, and the
    attributes that were chosen for the labels of a drawing (empty: none were)."""

    start: int
    end: int
    events: int
    given: int
    labels: tuple[str, ...] = ()

    @property
    def cut(self) -> bool:
        """True if events were left out at the end."""
        return self.events < self.given


@dataclass(frozen=True, repr=False)
class WindowTrace(Pictured):
    """The contents, over a feed, of a query's windows (one, or one for each side of a join), or of a named window."""

    query: str
    windows: Sequence[TracedWindow]
    outputs: Sequence[TracedOutput]
    feed: TracedFeed

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each event and window: `window`, `entered`, `emitted`, `left`, `key`, then the attributes."""
        rows = [
            {
                "window": w.stream, "entered": s.entry, "emitted": s.emitted, "left": s.left, "held": s.held,
                "key": s.event.key, **s.event.values,
            }
            for w in self.windows for s in w.stays
        ]  # fmt: skip
        return _frame_of(rows, ["emitted", "left"])

    def picture(self) -> Picture:
        """A bar for each event, over time."""
        return window_trace_picture(self)

    def summary(self) -> str:
        events = sum(len(w.stays) for w in self.windows)
        return f"<WindowTrace of {self.query}: {events} events in {', '.join(w.text for w in self.windows)}>"


@dataclass(frozen=True)
class TracedState:
    """A state of a pattern: its name (`e1`, else its stream), its text, its stream, and whether it waits for the
    absence of an event."""

    name: str
    text: str
    stream: str
    absent: bool


@dataclass(frozen=True)
class Capture:
    """A step of a partial match: the clock (ms), the state, and the event; None: the absence was long enough."""

    time: int
    state: int
    event: TracedEvent | None


@dataclass(frozen=True)
class AbsenceWait:
    """A span (ms) in which a partial match waited that no event comes for an absent state."""

    state: int
    start: int
    end: int


@dataclass(frozen=True)
class PartialTrace:
    """A partial match: its captures in order, how and when it ended (None: it still waits), and why. `parent`: the
    partial match from which it was copied, with the first `shared` captures. `outputs`: the outputs of the match."""

    number: int
    start: int
    captures: Sequence[Capture]
    end: PartialEnd
    ended: int | None
    reason: str
    parent: int | None = None
    shared: int = 0
    waits: Sequence[AbsenceWait] = ()
    outputs: Sequence[TracedOutput] = ()
    key: str = ""


@dataclass(frozen=True, repr=False)
class PatternTrace(Pictured):
    """The partial matches and matches of a pattern or sequence over a feed, in the order in which they began."""

    query: str
    kind: Literal["pattern", "sequence"]
    text: str
    states: Sequence[TracedState]
    within: int | None
    events: Sequence[TracedEvent]
    partials: Sequence[PartialTrace]
    outputs: Sequence[TracedOutput]
    feed: TracedFeed
    streams: Sequence[str] = field(default_factory=tuple)

    @property
    def matches(self) -> list[PartialTrace]:
        """The partial matches that became matches."""
        return [p for p in self.partials if p.end == "match"]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each partial match: its number, `start`, `end`, `ended`, `reason`, `key`, and captures by state."""
        rows = []
        for p in self.partials:
            row: dict[str, Any] = {
                "number": p.number, "start": p.start, "end": p.end, "ended": p.ended, "reason": p.reason, "key": p.key,
            }  # fmt: skip
            for i, state in enumerate(self.states):
                row[state.name] = [
                    None if c.event is None else dict(c.event.values) for c in p.captures if c.state == i
                ]
            rows.append(row)
        return _frame_of(rows, ["ended"])

    def picture(self) -> Picture:
        """The events by stream and a lane for each partial match, over time."""
        return pattern_trace_picture(self)

    def summary(self) -> str:
        return f"<PatternTrace of {self.query}: {len(self.partials):,} partial matches, {len(self.matches):,} matches>"


def _frame_of(rows: list[dict[str, Any]], integers: list[str]) -> pd.DataFrame:
    """A frame of rows; `integers` are the columns of numbers that may be missing."""
    frame = pd.DataFrame(rows)
    if rows:
        frame[integers] = frame[integers].astype("Int64")
    return frame
