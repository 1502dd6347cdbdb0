"""The picture of what windows hold: a bar for each event, from its arrival to the moment at which it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...charts.picture import INK, Bars, Lane, LaneAxis, Mark, Panel, Picture, Rules, Style, Texts, floats
from ...charts.value_texts import format_count, text_of
from . import trace_labels

if TYPE_CHECKING:
    from ..results.traces import Stay, TracedWindow, WindowTrace

MOST_BARS = 60
"""Events of a window that are drawn at most."""
_ROW, _HEADING, _GAP = 17.0, 18.0, 6.0
_BAR_INSET = 3.5
_IN_WINDOW = Style(trace_labels.BLUE, opacity=0.8)
_WAITING = Style(trace_labels.BLUE, is_outline=True, is_tinted=True, width=1.2, dash="dash")
_RING = Style(INK, is_outline=True)
_RESET = Style(trace_labels.RED, width=1.3, dash="dot")


def labels_of(t: WindowTrace) -> trace_labels.EventLabels:
    """The labels of its events."""
    events = [s.event for w in t.windows for s in w.stays]
    return trace_labels.EventLabels(t.feed.labels, [(e.timestamp, e.values) for e in events])


def label_of(stay: Stay, labels: trace_labels.EventLabels | None = None) -> str:
    """An event's label, by default all of its values, after the key of its partition, unless that is one of them."""
    key, values = stay.event.key, stay.event.values
    label = trace_labels.values_text(values) if labels is None else labels.text(values)
    return label if key in ("", *map(text_of, values.values())) else f"{key}: {label}"


def title_of(t: WindowTrace) -> str:
    """The query, its windows and the number of events."""
    calls = " and ".join(w.text for w in t.windows)
    return f"{t.query}: {calls} over {format_count(t.feed.events, 'event')}"


def describe(t: WindowTrace) -> str:
    """The picture in words."""
    parts = []
    for w in t.windows:
        most = max((len(s.contents) for s in w.steps), default=0)
        parts.append(f"{w.text} of {w.stream} holds {format_count(most, 'event')} at most")
    parts.append(f"the query has {format_count(len(t.outputs), 'output')}")
    return "; ".join(parts)


def describe_stay(s: Stay, start: int) -> str:
    """An event's values, and when it came, was emitted and left; lines of text. `start`: of the trace (ms)."""
    lines = [label_of(s), f"came at {trace_labels.moment_text(s.entry, start)}"]
    if s.emitted is not None and s.emitted != s.entry:
        lines.append(f"emitted at {trace_labels.moment_text(s.emitted, start)}")
    if not s.held:
        lines.append("not in the window after this step")
    else:
        lines.append("still in the window" if s.left is None else f"left at {trace_labels.moment_text(s.left, start)}")
    return "\n".join(lines)


def window_trace_picture(t: WindowTrace) -> Picture:
    """A lane for each event, below the name of its window if there are several; resets across them; outputs below."""
    windows = [(w, list(w.stays)[:MOST_BARS]) for w in t.windows]
    stays = [s for _, window_stays in windows for s in window_stays]
    total = sum(len(w.stays) for w in t.windows)
    ends = [t.feed.end if s.left is None else s.left for s in stays]
    end = max(ends, default=t.feed.end) if len(stays) < total else t.feed.end
    marks = _WindowMarks(t, max(end, t.feed.start + 1))
    for window, window_stays in windows:
        marks.add(window, window_stays)
    outputs = [o for o in t.outputs if o.time <= marks.end]
    lanes = [*marks.lanes, trace_labels.OUTPUTS] if outputs else marks.lanes
    lowest = trace_labels.output_marks(outputs, len(marks.lanes), t.feed.labels) if outputs else ()
    all_marks = [*marks.marks(), *lowest]
    panel = Panel(trace_labels.clock_axis(t.feed.start, marks.end), LaneAxis(lanes), all_marks)
    return Picture(title_of(t), [panel], trace_labels.feed_notes(t.feed, len(stays), total, "event"), describe(t))


class _WindowMarks:
    """The lanes of events and their marks; `end` (ms): of the axis."""

    def __init__(self, t: WindowTrace, end: int) -> None:
        self.end = end
        self.lanes: list[Lane] = []
        self._start, self._has_headings = t.feed.start, len(t.windows) > 1
        self._labels = labels_of(t)
        self._waiting: list[tuple[trace_labels.Place, int]] = []
        self._in_window: list[tuple[trace_labels.Place, int]] = []
        self._last: list[trace_labels.Place] = []
        self._dots: list[trace_labels.Place] = []
        self._rings: list[trace_labels.Place] = []
        self._rest: list[Mark] = []

    def add(self, window: TracedWindow, stays: Sequence[Stay]) -> None:
        """Adds a window with these of its events."""
        if self._has_headings:
            if self.lanes:
                self.lanes.append(Lane("", _GAP))
            place, name = floats([len(self.lanes) + 0.5]), f"{window.stream}: {window.text}"
            self._rest.append(Texts(x=floats([self._start]), y=place, texts=[name], anchor="start", is_bold=True))
            self.lanes.append(Lane("", _HEADING))
        first = len(self.lanes)
        for stay in stays:
            self._add(stay)
        if not stays:
            self.lanes.append(Lane("", _ROW))
        if resets := [r for r in window.resets if r <= self.end]:
            self._rest.append(Rules(x=floats(resets), y0=first, y1=len(self.lanes), style=_RESET, name="reset"))

    def _add(self, s: Stay) -> None:
        lane, title = len(self.lanes), describe_stay(s, self._start)
        self.lanes.append(Lane(label_of(s, self._labels), _ROW, title=title))
        first, last = s.entry, self.end if s.left is None else min(s.left, self.end)
        turn = last if s.emitted is None else min(max(s.emitted, first), last)
        if not s.held:
            (self._rings if s.emitted is None else self._dots).append(trace_labels.Place(first, lane + 0.5, title))
            return
        if turn > first:
            self._waiting.append((trace_labels.Place(first, lane, title), turn))
        if last > turn or (last == first and s.left is not None):
            self._in_window.append((trace_labels.Place(turn, lane, title), last))
        if s.left is None:
            self._last.append(trace_labels.Place(last, lane + 0.5, title))

    def marks(self) -> list[Mark]:
        """The marks, in the order of the legend."""
        return [
            *_bars(self._in_window, _IN_WINDOW, "in the window"),
            *_bars(self._waiting, _WAITING, "not emitted yet"),
            *trace_labels.points(self._last, "arrow", 5, Style(trace_labels.BLUE), name="still there at the end"),
            *trace_labels.points(self._dots, "circle", 4, Style(trace_labels.BLUE), name="emitted at once, not kept"),
            *trace_labels.points(self._rings, "circle", 4, _RING, name="not taken in"),
            *self._rest,
        ]


def _bars(spans: Sequence[tuple[trace_labels.Place, int]], style: Style, name: str) -> list[Mark]:
    """Bars from places to ends (ms); nothing where there are none."""
    if not spans:
        return []
    x0, x1 = floats([p.time for p, _ in spans]), floats([end for _, end in spans])
    y0, titles = floats([p.lane for p, _ in spans]), [p.title for p, _ in spans]
    return [
        Bars(
            x0=x0, x1=x1, y0=y0, y1=y0 + 1, least=2, rounding=2, inset=_BAR_INSET, style=style, name=name,
            titles=titles,
        )
    ]  # fmt: skip
