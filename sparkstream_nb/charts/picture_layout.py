"""The places of the parts of a picture (px): scales, ticks, the legend, and the texts that have room."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .picture import Axis, LaneAxis, LegendEntry, NumberAxis, Panel, Picture, Texts, TimeAxis
from .scales import BREAK, LaneScale, LinearScale, Scale, TimeScale
from .style import WIDTH
from .text_places import (
    CHARACTER,
    RIGHT,
    WORD_ROW,
    Lines,
    PlacedText,
    cut_text,
    cut_values,
    place_beside,
    place_texts,
    place_words,
    text_width,
)
from .ticks import TimeTick, duration_ticks, short, time_ticks
from .value_texts import format_count

_TITLE = 1.3  # the width of a letter of the title to that of others
_LEGEND_ROW, _TITLE_ROW, _NOTE_ROW = 20.0, 18.0, 16.0
_MOST_ENTRIES = 24
_MOST_NAMED = 4
"""Labels that a note on those without room names."""
_LABEL_ROOM = 250.0
"""Width (px) of the names of lanes at most."""
_NAME_GAP = 18.0
"""Distance (px) of a name to the marks: a symbol at the edge covers a part of it."""


# -------------------------------------------------------------------------------------------------------------- layout


@dataclass(frozen=True)
class PlacedTick:
    """A tick at `at` (px), its label and the context below it, where that begins. `value`: its place on the axis."""

    at: float
    label: str
    context: str = ""
    value: float = 0.0


@dataclass(frozen=True)
class Area:
    """The rectangle (px) of a panel's marks."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass
class PanelLayout:
    """A panel with its places. `breaks`: of its time axis, with their lengths. `texts`: of its marks of that kind, by
    number of the mark; `words`: above its rules."""

    panel: Panel
    area: Area
    x: Scale
    y: Scale
    x_ticks: list[PlacedTick]
    y_ticks: list[PlacedTick]
    breaks: list[PlacedText]
    texts: dict[int, list[PlacedText]] = field(default_factory=dict)
    words: list[PlacedText] = field(default_factory=list)
    lane_names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PlacedEntry:
    """An entry of the legend, with its left edge and its middle."""

    entry: LegendEntry
    x: float
    y: float


@dataclass
class Layout:
    """All of a picture that is `width` px wide."""

    picture: Picture
    width: int
    height: float
    title: list[str]
    legend: list[PlacedEntry]
    panels: list[PanelLayout]
    notes: list[PlacedText]


def lay_out(picture: Picture, width: int = WIDTH) -> Layout:
    """The places of all parts of `picture`."""
    title = _title_lines(picture.title, width)
    top = 26.0 + _TITLE_ROW * (len(title) - 1)
    legend, top = _place_legend(picture.entries(), top + 14, width)
    panels: list[PanelLayout] = []
    left = max((_left_margin(p, width) for p in picture.panels[:: picture.columns]), default=0.0)
    room = (width - left) / picture.columns
    for row in range(0, len(picture.panels), picture.columns):
        bottom = top
        for column, panel in enumerate(picture.panels[row : row + picture.columns]):
            first = left + room * column
            last = first + room - RIGHT
            panels.append(_lay_out_panel(panel, first, last, top, has_names=column == 0))
            bottom = max(bottom, panels[-1].area.bottom + _below(panel))
        top = bottom
    characters = max(20, int((width - 16) / CHARACTER))
    left_out = [line for note in _notes_on_labels(panels) for line in textwrap.wrap(note, characters)]
    lines = [*picture.notes, *left_out]
    notes = [PlacedText(8, top + 12 + _NOTE_ROW * i, line, "start") for i, line in enumerate(lines)]
    return Layout(picture, width, top + _NOTE_ROW * len(notes) + 4, title, legend, panels, notes)


def _notes_on_labels(panels: Sequence[PanelLayout]) -> list[str]:
    """Notes on the labels that have no room, with a way to see the values."""
    labels: dict[str, list[str]] = {}
    for panel in panels:
        for number, texts in panel.texts.items():
            mark = panel.panel.marks[number]
            if isinstance(mark, Texts) and mark.noun:
                placed_numbers = {text.number for text in texts}
                missing = [text for i, text in enumerate(mark.texts) if text and i not in placed_numbers]
                labels.setdefault(mark.noun, []).extend(missing)
    return [
        f"No room for the {'label' if len(missing) == 1 else 'labels'} of {format_count(len(missing), noun)} "
        f"({_abridge(missing)}): point at one for its values, or choose shorter labels."
        for noun, missing in labels.items()
        if missing
    ]


def _abridge(labels: Sequence[str]) -> str:
    """The first labels and the last one."""
    shown_labels = [cut_text(label, _LABEL_ROOM / 2) for label in labels]
    if len(labels) > _MOST_NAMED:
        shown_labels = [*shown_labels[: _MOST_NAMED - 1], "…", shown_labels[-1]]
    return "; ".join(shown_labels)


def _title_lines(title: str, width: int) -> list[str]:
    """A title in one line or two; what does not fit is cut."""
    room = (width - 16) / _TITLE
    if text_width(title) <= room:
        return [title]
    first = textwrap.wrap(title, max(8, int(room / CHARACTER)), break_on_hyphens=False)[0]
    return [first, cut_text(title[len(first) :].strip(), room)]


def _place_legend(entries: Sequence[LegendEntry], top: float, width: int) -> tuple[list[PlacedEntry], float]:
    """The entries in rows, as many in a row as fit, and the end of the last row."""
    if not entries:
        return [], top - 6
    if len(entries) > _MOST_ENTRIES:
        entries = [*entries[:_MOST_ENTRIES], LegendEntry(f"and {len(entries) - _MOST_ENTRIES} more")]
    out: list[PlacedEntry] = []
    x, y = 6.0, top
    for entry in entries:
        entry_width = 36 + text_width(entry.name)
        if x > 6 and x + entry_width > width:
            x, y = 6.0, y + _LEGEND_ROW
        out.append(PlacedEntry(entry, x, y))
        x += entry_width
    return out, y + 12


def _left_margin(panel: Panel, width: int) -> float:
    if isinstance(panel.y, LaneAxis):
        names = max((text_width(lane.name) * (1.08 if lane.is_bold else 1) for lane in panel.y.lanes), default=0.0)
        return _NAME_GAP + 8 + min(names, _LABEL_ROOM, width / 3)
    return 34 + max((text_width(t.label) for t in _number_ticks(panel.y, LinearScale(0, 1, 0, 1))), default=0.0)


def _below(panel: Panel) -> float:
    """The height (px) of what is below the marks of a panel."""
    title = 17.0 if panel.x.title else 0.0
    if isinstance(panel.x, TimeAxis):
        return 22.0 + (0 if panel.x.is_relative else 13) + title
    return title + (22.0 if isinstance(panel.x, LaneAxis) or panel.x.ticks else 4.0)


def _lay_out_panel(panel: Panel, left: float, right: float, top: float, *, has_names: bool) -> PanelLayout:
    top += 22.0 if panel.title else 0.0
    x = _x_scale(panel.x, left, right)
    words, above = place_words(panel, x, top, left, right)
    top += above + (10.0 if isinstance(panel.y, NumberAxis) else 4.0)
    rows: dict[int, int] = {}
    lines = Lines()
    placers: list[tuple[int, Callable[[Scale], list[PlacedText]]]] = []
    for number, mark in enumerate(panel.marks):
        if isinstance(mark, Texts):
            if mark.anchor == "beside":
                placers.append((number, place_beside(mark, x, (left, right + RIGHT), rows, lines)))
            else:
                lane_lines = lines if isinstance(panel.y, LaneAxis) else None
                placers.append((number, place_texts(mark, x, left, right + RIGHT, lane_lines)))
    y: Scale
    if isinstance(panel.y, LaneAxis):
        extents = [lane.extent + WORD_ROW * rows.get(i, 0) for i, lane in enumerate(panel.y.lanes)]
        y = LaneScale([lane.extent for lane in panel.y.lanes], top, extents)
        bottom = top + sum(extents)
    else:
        bottom = top + panel.height
        y = LinearScale(panel.y.low, panel.y.high, bottom, top)
    area = Area(left, right, top, bottom)
    ticks = _x_ticks(panel.x, x), _number_ticks(panel.y, y)
    layout = PanelLayout(panel, area, x, y, *ticks, _breaks(panel.x, x, bottom), words=words)
    if has_names and isinstance(panel.y, LaneAxis):
        layout.lane_names = [cut_values(lane.name, left - _NAME_GAP) for lane in panel.y.lanes]
    layout.texts = {number: place(y) for number, place in placers}
    return layout


def _x_scale(axis: Axis, left: float, right: float) -> Scale:
    if isinstance(axis, TimeAxis):
        return TimeScale(axis.spans or ((0.0, 1.0),), left, right)
    if isinstance(axis, NumberAxis):
        return LinearScale(axis.low, axis.high, left, right)
    room = (right - left) / max(1, len(axis.lanes))
    return LaneScale([min(lane.extent, room) for lane in axis.lanes], left)


# --------------------------------------------------------------------------------------------------------------- ticks


def _number_ticks(axis: Axis, scale: Scale) -> list[PlacedTick]:
    if not isinstance(axis, NumberAxis):
        return []
    largest = max(map(abs, axis.ticks), default=0.0)
    return [PlacedTick(scale.place(t), short(t, largest)) for t in axis.ticks]


def _x_ticks(axis: Axis, scale: Scale) -> list[PlacedTick]:
    """The ticks from left to right. One whose label would overlap the one before is left out."""
    if isinstance(axis, LaneAxis):
        ticks = [PlacedTick(scale.place(i + 0.5), lane.name) for i, lane in enumerate(axis.lanes)]
        return _without_overlaps([ticks])
    if isinstance(axis, NumberAxis):
        return _without_overlaps([_number_ticks(axis, scale)])
    assert isinstance(scale, TimeScale)
    runs = []
    for a, b in axis.spans:
        room = {"ms": 96, "sec": 86}.get(axis.finest, 62)
        most = (b - a) * scale.per_ms / room
        start, end = math.ceil(a), math.floor(b)
        until = end + (axis.buckets is None)  # no bucket starts at the end of the last one
        times = duration_ticks(start, end, most) if axis.is_relative else time_ticks(start, until, axis.finest, most)
        middles = [(_middle(t, axis, b), t) for t in times if t.ms <= b]
        runs.append([PlacedTick(scale.place(ms), t.label, t.context, ms) for ms, t in middles])
    return _without_overlaps(runs)


def _middle(tick: TimeTick, axis: TimeAxis, end: float) -> float:
    """The place of a tick: where its buckets are told, the middle of the one that starts there."""
    if axis.buckets is None or not len(axis.buckets[0]):
        return tick.ms
    starts, ends = axis.buckets
    i = min(int(np.searchsorted(starts, tick.ms)), len(starts) - 1)
    return tick.ms + min(float(ends[i] - starts[i]), end - tick.ms) / 2


def _without_overlaps(runs: Sequence[Sequence[PlacedTick]]) -> list[PlacedTick]:
    """The ticks of the stretches of an axis with room for their labels. A context, such as the day, is written once,
    below the first of its ticks of a stretch."""
    out: list[PlacedTick] = []
    free = -math.inf
    for ticks in runs:
        context = ""
        for tick in ticks:
            half = text_width(tick.label) / 2
            if tick.at - half < free:
                continue
            free = tick.at + half + 6
            is_new = tick.context != context
            context = tick.context
            if is_new:
                free = max(free, tick.at + text_width(context) / 2 - 20)
            out.append(replace(tick, context=context if is_new else ""))
    return out


def _breaks(axis: Axis, scale: Scale, bottom: float) -> list[PlacedText]:
    """The breaks of a time axis, and how long they are."""
    if not isinstance(axis, TimeAxis) or not isinstance(scale, TimeScale):
        return []
    gaps = [(scale.lefts[i + 1], axis.spans[i + 1][0] - axis.spans[i][1]) for i in range(len(axis.spans) - 1)]
    return [PlacedText(float(left) - BREAK / 2, bottom, _length(gap)) for left, gap in gaps]


def _length(ms: float) -> str:
    """A length of time in one unit: `30 min`."""
    units = ((31_557_600_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
    size, name = next((u for u in units if ms >= u[0]), (1000, "s"))
    return f"{ms / size:.3g} {name}"
