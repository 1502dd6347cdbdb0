"""The picture of a pattern: the events by stream above, and below a lane for each partial match with its captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...charts.picture import INK, Bars, Lane, LaneAxis, Mark, Panel, Picture, Rules, Segments, Style, Texts, floats
from ...charts.value_texts import format_count
from .trace_labels import (
    BLUE,
    ENDS,
    LABEL_SIZE,
    OUTPUTS,
    EventLabels,
    Place,
    clock_axis,
    feed_notes,
    moment_text,
    output_marks,
    points,
    values_text,
)

if TYPE_CHECKING:
    from ..results.traces import Capture, PartialTrace, PatternTrace

MOST_LANES = 40
"""Partial matches that are drawn at most."""
_ROW, _EVENT_ROW, _GAP = 30.0, 24.0, 8.0
_ROWS_BELOW = 3
"""Rows of labels below the events of a stream at most."""
_LINE = 2 / 3
"""The place of a partial match in its lane: there is a row of names above it."""
_ABOVE = 12.0
"""Distance (px) of that row to the texts beside the line."""
_BAND = 5.0
"""Half the height (px) of the span of an absence."""
_EVENT_RADIUS = 4.2
_WAIT = Style(BLUE, is_outline=True, is_tinted=True, width=1, dash="dash")
_GUIDE = Style(INK, opacity=0.35, width=1, dash="fine")


def title_of(t: PatternTrace) -> str:
    """The query and its pattern."""
    return f"{t.query}: {t.text}"


def describe(t: PatternTrace) -> str:
    """The picture in words."""
    events = format_count(len(t.events), "event")
    partials = format_count(len(t.partials), "partial match", "partial matches")
    return f"{events}, {partials}, {format_count(len(t.matches), 'match', 'matches')}"


def partial_text(t: PatternTrace, p: PartialTrace) -> str:
    """A partial match in words: `1: e1 at 0 s (A), e2 at 3 s (B): match at 3 s`."""
    start = t.feed.start

    def one(c: Capture) -> str:
        state = t.states[c.state]
        if c.event is None:
            return f"{state.text} at {moment_text(c.time, start)}"
        return f"{state.name} at {moment_text(c.time, start)} ({values_text(c.event.values)})"

    captures = ", ".join(one(c) for c in p.captures) or f"waits from {moment_text(p.start, start)}"
    number = f"{p.number} [{p.key}]" if p.key else str(p.number)
    copy_text = f" copied from {p.parent}," if p.parent is not None else ""
    if p.end == "waiting":
        return f"{number}:{copy_text} {captures}: still waits at the end"
    assert p.ended is not None
    reason = f" ({p.reason})" if p.reason else ""
    return f"{number}:{copy_text} {captures}: {p.end} at {moment_text(p.ended, start)}{reason}"


def pattern_trace_picture(t: PatternTrace) -> Picture:
    """A lane for each stream, then one for each partial match, with thin lines down from its events; outputs below."""
    partials = list(t.partials)[:MOST_LANES]
    start, end = _span(t, partials)
    lanes = [Lane(stream, _EVENT_ROW, is_bold=True) for stream in t.streams]
    lanes.append(Lane("", _GAP))
    first = len(lanes)
    rows = [
        _Row(p, first + i, partial_text(t, p), end if p.ended is None else min(p.ended, end))
        for i, p in enumerate(partials)
    ]
    lanes += [
        Lane(
            f"{p.number}  {p.key}" if p.key else str(p.number), _ROW, shade=0.0 if i % 2 else 0.04, title=rows[i].title
        )
        for i, p in enumerate(partials)
    ]
    guides = sorted({c.time for p in partials for c in p.captures if c.event is not None})
    marks: list[Mark] = [
        *([Rules(x=floats(guides), y0=first - 1, y1=len(lanes), style=_GUIDE)] if guides else []),
        *_stream_marks(t, partials, end),
        *_wait_bands(rows, end),
        *_lines(rows),
        *_capture_marks(t, rows),
        *_end_marks(rows),
        *_texts(t, rows, end),
    ]
    if outputs := [o for o in t.outputs if o.time <= end]:
        marks += output_marks(outputs, len(lanes), t.feed.labels)
        lanes.append(OUTPUTS)
    notes = feed_notes(t.feed, len(partials), len(t.partials), "partial match", "partial matches")
    return Picture(title_of(t), [Panel(clock_axis(start, end), LaneAxis(lanes), marks)], notes, describe(t))


def _span(t: PatternTrace, partials: Sequence[PartialTrace]) -> tuple[int, int]:
    """The first and the last moment (ms) of the picture: the last one of the feed only where nothing is left out."""
    ends = [t.feed.end if p.ended is None else p.ended for p in partials]
    is_cut = len(partials) < len(t.partials)
    end = max(ends, default=t.feed.end) if is_cut else max([t.feed.end, *ends])
    return min([t.feed.start, *(_begin(p) for p in partials)]), max(end, t.feed.start + 1)


def _begin(p: PartialTrace) -> int:
    """The first moment (ms) of a partial match and of the one that it was copied from."""
    return min([p.start, *(c.time for c in p.captures)])


class _Row(NamedTuple):
    """A partial match with its lane, its text for a pointer and its last moment (ms)."""

    partial: PartialTrace
    lane: int
    title: str
    last: int

    @property
    def height(self) -> float:
        """The place of its line in the panel."""
        return self.lane + _LINE


def _stream_marks(t: PatternTrace, partials: Sequence[PartialTrace], end: int) -> list[Mark]:
    """The events up to `end` (ms), hollow unless a partial match has them. A label that does not fit before the next
    event is in a row below."""
    captured_numbers = {c.event.number for p in partials for c in p.captures if c.event is not None}
    full: list[Place] = []
    hollow: list[Place] = []
    texts = []
    for lane, stream in enumerate(t.streams):
        events = [e for e in t.events if e.stream == stream and e.time <= end]
        labels = EventLabels(t.feed.labels, [(e.timestamp, e.values) for e in events])
        for e in events:
            title = f"{e.stream} at {moment_text(e.time, t.feed.start)}\n{values_text(e.values)}"
            place = Place(e.time, lane + 0.5, title)
            (full if e.number in captured_numbers else hollow).append(place)
            texts.append((place, labels.text(e.values)))
    return [
        *points(full, "circle", _EVENT_RADIUS, Style(INK), name="captured event", part="event"),
        *points(hollow, "circle", _EVENT_RADIUS, Style(INK, is_outline=True, width=1.4), part="event"),
        Texts(
            x=floats([p.time for p, _ in texts]), y=floats([p.lane for p, _ in texts]),
            texts=[label for _, label in texts], anchor="beside", rows=_ROWS_BELOW, size=LABEL_SIZE, noun="event",
        ),
    ]  # fmt: skip


def _wait_bands(rows: Sequence[_Row], end: int) -> list[Mark]:
    """The spans of absences that are waited for."""
    bands = [(row, w.start, min(w.end, end)) for row in rows for w in row.partial.waits if w.start < min(w.end, end)]
    if not bands:
        return []
    middles, half = floats([row.height for row, _, _ in bands]), _BAND / _ROW
    return [
        Bars(
            x0=floats([a for _, a, _ in bands]), x1=floats([b for _, _, b in bands]), y0=middles - half,
            y1=middles + half, style=_WAIT, name="waits for an absence", titles=[row.title for row, _, _ in bands],
        )
    ]  # fmt: skip


def _lines(rows: Sequence[_Row]) -> list[Mark]:
    """A line for each partial match in the colour of its end; the copied part is dotted."""
    copies, lines = [], []
    for end, look in ENDS.items():
        spans = [(row, _begin(row.partial)) for row in rows if row.partial.end == end]
        turns = [row.partial.start if row.partial.parent is not None else begin for row, begin in spans]
        parents = [(row, begin, turn) for (row, begin), turn in zip(spans, turns, strict=True) if turn > begin]
        style = Style(look.colour, width=2, dash="dot")
        copies += _segments(parents, style, "copied by every")
        lines += _segments(
            [(row, t, row.last) for (row, _), t in zip(spans, turns, strict=True)], Style(look.colour, width=2)
        )
    return [*copies, *lines]


def _segments(spans: Sequence[tuple[_Row, int, int]], style: Style, name: str = "") -> list[Mark]:
    if not spans:
        return []
    y = floats([row.height for row, _, _ in spans])
    x0, x1 = floats([a for _, a, _ in spans]), floats([b for _, _, b in spans])
    return [Segments(x0=x0, x1=x1, y0=y, y1=y, style=style, name=name, titles=[row.title for row, _, _ in spans])]


def _capture_marks(t: PatternTrace, rows: Sequence[_Row]) -> list[Mark]:
    """The events of partial matches, hollow if they are another one's or end an absence; and the moments at which an
    absence was long enough."""
    marks: list[Mark] = []
    for end, look in ENDS.items():
        full: list[Place] = []
        hollow: list[Place] = []
        absences: list[Place] = []
        for row in rows:
            for i, c in enumerate(row.partial.captures if row.partial.end == end else ()):
                is_hollow = i < row.partial.shared or t.states[c.state].absent
                group = absences if c.event is None else hollow if is_hollow else full
                group.append(Place(c.time, row.height, row.title))
        marks += points(full, "circle", 4.5, Style(look.colour))
        marks += points(hollow, "circle", 4.5, Style(look.colour, is_outline=True, width=2))
        marks += points(absences, "bar", 7, Style(look.colour, width=2.5))
    return marks


def _end_marks(rows: Sequence[_Row]) -> list[Mark]:
    """The ends of partial matches: a filled square, a cross, a clock, an arrow."""
    marks: list[Mark] = []
    for end, look in ENDS.items():
        places = [Place(row.last, row.height, row.title) for row in rows if row.partial.end == end]
        marks += points(places, look.symbol, look.radius, Style(look.colour, width=look.width), name=look.words)
    return marks


def _texts(t: PatternTrace, rows: Sequence[_Row], end: int) -> list[Mark]:
    """Above the lines the names of states and of absences, beside their ends the reasons."""
    names = [
        (c.time, row.height, _capture_name(t, row.partial, i))
        for row in rows
        for i, c in enumerate(row.partial.captures)
    ]
    waits = [(w.start, min(w.end, end), row.height, t.states[w.state].text) for row in rows for w in row.partial.waits]
    ends = [(row.last, row.height, _end_word(row.partial)) for row in rows if row.partial.end != "waiting"]
    marks: list[Mark] = []
    if names:
        x, y, texts = zip(*names, strict=True)
        marks.append(Texts(x=floats(x), y=floats(y), texts=texts, shift=4 - _ABOVE, size=10.5))
    if waits:
        first, last, y, texts = zip(*waits, strict=True)
        x0, x1 = floats(first), floats(last)
        marks.append(
            Texts(
                x=(x0 + x1) / 2, y=floats(y), texts=texts, spans=x1 - x0, shift=4 - _ABOVE, size=10, is_italic=True,
            )
        )  # fmt: skip
    if ends:
        x, y, texts = zip(*ends, strict=True)
        marks.append(
            Texts(x=floats(x), y=floats(y), texts=texts, anchor="beside", lift=_ABOVE, size=LABEL_SIZE, is_italic=True)
        )
    return marks


def _end_word(p: PartialTrace) -> str:
    return "match" if p.end == "match" else p.reason or p.end


def _capture_name(t: PatternTrace, p: PartialTrace, i: int) -> str:
    """`e1`; of several events of one state `e1[0]`; of an absence nothing, as its span has its text."""
    c = p.captures[i]
    if c.event is None:
        return ""
    same = [k for k, other in enumerate(p.captures) if other.state == c.state and other.event is not None]
    name = t.states[c.state].name
    return f"{name}[{same.index(i)}]" if len(same) > 1 else name
