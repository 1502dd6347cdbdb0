"""Parts of all pictures of traces: texts of moments and events, the axis of the clock, the lane of outputs, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...charts.picture import Lane, Mark, Points, Style, Symbol, Texts, TimeAxis, floats
from ...charts.ticks import DAY_MS, short_duration
from ...charts.value_texts import format_count, text_of, when

if TYPE_CHECKING:
    from ..results.traces import PartialEnd, TracedFeed, TracedOutput

BLUE, ORANGE, GREEN, RED = "#1E88D2", "#E69F00", "#009E73", "#D55E00"
"""Okabe and Ito's colours, which the colour-blind tell apart; the blue is lighter, so that it reads on dark too."""


class EndLook(NamedTuple):
    """The look of an end of partial matches: its colour, its words, and its symbol with radius and width of line (px).
    """

    colour: str
    words: str
    symbol: Symbol
    radius: float
    width: float


ENDS: Mapping[PartialEnd, EndLook] = {
    "match": EndLook(GREEN, "match", "square", 5.5, 0.0),
    "expired": EndLook(ORANGE, "expired: within passed", "clock", 6, 1.6),
    "dropped": EndLook(RED, "dropped", "cross", 5, 2.4),
    "waiting": EndLook(BLUE, "still waits at the end", "chevron", 5, 2),
}
LABEL_SIZE = 11.0
OUTPUTS = Lane("outputs", 26, is_bold=True)


def has_clock_of_day_one(start: int) -> bool:
    """True if a clock that starts at `start` (ms) starts on the first day of 1970, as the clocks of examples do."""
    return 0 <= start < DAY_MS


def moment_text(ms: int, start: int) -> str:
    """A moment of a trace that starts at `start`: seconds since 1970 for clocks on that day, as of examples; else the
    time in UTC."""
    return short_duration(ms) if has_clock_of_day_one(start) else when(ms)


def values_text(values: Mapping[str, Any]) -> str:
    """The values of an event, in the order of its attributes."""
    return ", ".join(text_of(v, name) for name, v in values.items())


class EventLabels:
    """The texts of labels of events: their chosen attributes, else all but those that repeat the event's own time.

    `rows` are the times (ms) and values of the events that are drawn.
    """

    def __init__(self, label_names: Sequence[str], rows: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        self._label_names = label_names
        names = {name for _, values in rows for name in values}
        self._repeated_names = {
            n for n in names if all(at >= DAY_MS and values.get(n, at) == at for at, values in rows)
        }

    def text(self, values: Mapping[str, Any]) -> str:
        """The label of an event with these values; all of them where none would be left."""
        names = [n for n in self._label_names if n in values] or [n for n in values if n not in self._repeated_names]
        return values_text({n: values[n] for n in names or values})


def feed_notes(feed: TracedFeed, drawn_count: int, total: int, what: str, several: str | None = None) -> list[str]:
    """Notes on events that a drawing leaves out."""
    notes = []
    if drawn_count < total:
        notes.append(f"The first {drawn_count:,} of {format_count(total, what, several)} are drawn.")
    if feed.cut:
        notes.append(f"The trace uses the first {feed.events:,} of the feed's {feed.given:,} events (limit).")
    return notes


def clock_axis(start: int, end: int) -> TimeAxis:
    """The app's clock from `start` to `end` (ms)."""
    is_relative = has_clock_of_day_one(start)
    title = "the app's clock" if is_relative else f"the app's clock (UTC), from {when(start)}"
    return TimeAxis(title, [(start, max(end, start + 1))], is_relative=is_relative)


class Place(NamedTuple):
    """A place of a mark: its time (ms), its lane, and its text for a pointer."""

    time: int
    lane: float
    title: str


def points(
    places: Sequence[Place], symbol: Symbol, radius: float, style: Style, *, name: str = "", part: str = ""
) -> list[Mark]:
    """Symbols with a radius of `radius` px at these places; no mark without places."""
    if not places:
        return []
    x, y = floats([p.time for p in places]), floats([p.lane for p in places])
    titles = [p.title for p in places]
    return [Points(x=x, y=y, symbol=symbol, radius=radius, style=style, name=name, part=part, titles=titles)]


def output_marks(outputs: Sequence[TracedOutput], lane: int, label_names: Sequence[str] = ()) -> list[Mark]:
    """A symbol in the lane of this number for each moment with outputs, hollow where all are expired, and their values;
    of the attributes `label_names` alone, if there are any."""
    labels = EventLabels(label_names, [(o.time, o.values) for o in outputs])
    groups = [(time, list(outputs_at)) for time, outputs_at in groupby(outputs, key=lambda o: o.time)]
    full: list[Place] = []
    hollow: list[Place] = []
    texts = []
    for time, outputs_at in groups:
        title = "\n".join(("expired: " if o.expired else "") + values_text(o.values) for o in outputs_at)
        (hollow if all(o.expired for o in outputs_at) else full).append(Place(time, lane + 0.5, title))
        texts.append(f"{len(outputs_at)}×" if len(outputs_at) > 1 else labels.text(outputs_at[0].values))
    times = floats([time for time, _ in groups])
    return [
        *points(full, "triangle", 5, Style(ORANGE)),
        *points(hollow, "triangle", 5, Style(ORANGE, is_outline=True, width=1.6)),
        Texts(
            x=times, y=np.full(len(times), lane + 0.5), texts=texts, anchor="beside", size=LABEL_SIZE, noun="output"
        ),
    ]
