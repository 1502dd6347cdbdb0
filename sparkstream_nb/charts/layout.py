"""The places of the parts of a picture (px): scales, ticks, the legend, and the texts that have room."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from .picture import Axis, LaneAxis, LegendEntry, NumberAxis, Panel, Picture, Rules, Texts, TimeAxis, Values
from .style import WIDTH
from .ticks import TimeTick, duration_ticks, short, time_ticks

_CHARACTER = 6.7  # the width of a character in px, about
_TITLE = 1.3  # the width of a letter of the title to that of others
_RIGHT = 18.0
_BREAK = 40.0
_LEGEND_ROW, _TITLE_ROW, _WORD_ROW, _NOTE_ROW = 20.0, 18.0, 13.0, 16.0
_MOST_WORD_ROWS = 20
_WORD_GAP = 4.0
_LEAST_CUT = 5
"""Characters of a text that is cut, at least; a shorter one says nothing."""
_MOST_ENTRIES = 24
_LABEL_ROOM = 250.0
"""Width (px) of the names of lanes at most."""
_NAME_GAP = 18.0
"""Distance (px) of a name to the marks: a symbol at the edge covers a part of it."""


def text_width(text: str) -> float:
    """The width of a line of text (px), about."""
    return _CHARACTER * len(text)


def cut_text(text: str, room: float) -> str:
    """The beginning of a text that fits into a width (px)."""
    while len(text) > 1 and text_width(text) > room:
        text = text[:-2] + "…"
    return text


def cut_values(text: str, room: float) -> str:
    """The first values of a text, parted by commas, that fit into a width (px); of the first one its beginning."""
    cut = cut_text(text, room)
    comma = cut.rfind(",")
    return cut if cut == text or comma < 0 else f"{cut[:comma]}…"


# -------------------------------------------------------------------------------------------------------------- scales


class Scale(Protocol):
    """The places (px) of values of an axis."""

    def places(self, values: Values) -> Values:
        """The place of each value."""
        ...

    def place(self, value: float) -> float:
        """The place of one value."""
        ...


@dataclass(frozen=True)
class LinearScale:
    """From `low` at `first` (px) to `high` at `last`."""

    low: float
    high: float
    first: float
    last: float

    def places(self, values: Values) -> Values:
        return self.first + (values - self.low) * ((self.last - self.first) / ((self.high - self.low) or 1.0))

    def place(self, value: float) -> float:
        return float(self.places(np.array([value]))[0])


class TimeScale:
    """Times over several spans, with a gap between each two of them."""

    def __init__(self, spans: Sequence[tuple[float, float]], first: float, last: float) -> None:
        self.spans = spans
        total = sum(b - a for a, b in spans) or 1.0
        self.per_ms = (last - first - _BREAK * (len(spans) - 1)) / total
        lengths = np.array([(b - a) * self.per_ms + _BREAK for a, b in spans])
        self.lefts: Values = first + np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
        self._starts: Values = np.array([a for a, _ in spans], np.float64)

    def places(self, values: Values) -> Values:
        span = np.maximum(0, np.searchsorted(self._starts, values, "right") - 1)
        places: Values = self.lefts[span] + (values - self._starts[span]) * self.per_ms
        return places

    def place(self, value: float) -> float:
        return float(self.places(np.asarray([value], np.float64))[0])


class LaneScale:
    """Lanes of `extents` (px), the first one at `first`; marks are in the first `mark_extents` px of each."""

    def __init__(self, mark_extents: Sequence[float], first: float, extents: Sequence[float] | None = None) -> None:
        self.edges = first + np.concatenate(([0.0], np.cumsum(np.asarray(extents or mark_extents, np.float64))))
        self._mark_extents = np.asarray([*mark_extents, 0.0], np.float64)

    def places(self, values: Values) -> Values:
        lane = np.clip(np.floor(values), 0, len(self._mark_extents) - 1).astype(np.int64)
        return self.edges[lane] + (values - lane) * self._mark_extents[lane]

    def place(self, value: float) -> float:
        return float(self.places(np.asarray([value], np.float64))[0])


# -------------------------------------------------------------------------------------------------------------- layout


@dataclass(frozen=True)
class PlacedTick:
    """A tick at `at` (px), its label and the context below it, where that begins. `value`: its place on the axis."""

    at: float
    label: str
    context: str = ""
    value: float = 0.0


@dataclass(frozen=True)
class PlacedText:
    """A text at (`x`, `y`), the one of `number` among its mark's. `value`: the place on the horizontal axis of what it
    explains."""

    x: float
    y: float
    text: str
    anchor: str = "middle"
    number: int = 0
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
            last = first + room - _RIGHT
            panels.append(_lay_out_panel(panel, first, last, top, has_names=column == 0))
            bottom = max(bottom, panels[-1].area.bottom + _below(panel))
        top = bottom
    notes = [PlacedText(8, top + 12 + _NOTE_ROW * i, note, "start") for i, note in enumerate(picture.notes)]
    return Layout(picture, width, top + _NOTE_ROW * len(notes) + 4, title, legend, panels, notes)


def _title_lines(title: str, width: int) -> list[str]:
    """A title in one line or two; what does not fit is cut."""
    room = (width - 16) / _TITLE
    if text_width(title) <= room:
        return [title]
    first = textwrap.wrap(title, max(8, int(room / _CHARACTER)), break_on_hyphens=False)[0]
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
    words, above = _place_words(panel, x, top, left, right)
    top += above + (10.0 if isinstance(panel.y, NumberAxis) else 4.0)
    rows: dict[int, int] = {}
    lines = _Lines()
    placers: list[tuple[int, Callable[[Scale], list[PlacedText]]]] = []
    for number, mark in enumerate(panel.marks):
        if isinstance(mark, Texts):
            if mark.anchor == "beside":
                placers.append((number, _place_beside(mark, x, left, right + _RIGHT, rows, lines)))
            else:
                lane_lines = lines if isinstance(panel.y, LaneAxis) else None
                placers.append((number, _place_texts(mark, x, left, right + _RIGHT, lane_lines)))
    y: Scale
    if isinstance(panel.y, LaneAxis):
        extents = [lane.extent + _WORD_ROW * rows.get(i, 0) for i, lane in enumerate(panel.y.lanes)]
        y = LaneScale([lane.extent for lane in panel.y.lanes], top, extents)
        bottom = top + sum(extents)
    else:
        bottom = top + panel.height
        y = LinearScale(panel.y.low, panel.y.high, bottom, top)
    area = Area(left, right, top, bottom)
    layout = PanelLayout(panel, area, x, y, _x_ticks(panel.x, x, area), [], _breaks(panel.x, x, bottom), words=words)
    layout.y_ticks = [] if isinstance(panel.y, LaneAxis) else _number_ticks(panel.y, y)
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


def _x_ticks(axis: Axis, scale: Scale, area: Area) -> list[PlacedTick]:
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
    return [PlacedText(float(left) - _BREAK / 2, bottom, _length(gap)) for left, gap in gaps]


def _length(ms: float) -> str:
    """A length of time in one unit: `30 min`."""
    units = ((31_557_600_000, "y"), (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
    size, name = next((u for u in units if ms >= u[0]), (1000, "s"))
    return f"{ms / size:.3g} {name}"


# --------------------------------------------------------------------------------------------------------------- texts


def _place_words(panel: Panel, x: Scale, top: float, left: float, right: float) -> tuple[list[PlacedText], float]:
    """The words of rules in rows above the panel, the lowest first, and the height of the rows."""
    free: list[float] = []
    places: list[tuple[float, int, str, float]] = []
    for mark in panel.marks:
        if not isinstance(mark, Rules):
            continue
        for at, words, value in zip(x.places(mark.x).tolist(), mark.words, mark.x.tolist(), strict=False):
            first = max(4.0, min(at, right + _RIGHT - 4 - text_width(words)))
            row = next((i for i, f in enumerate(free) if first > f), len(free))
            if row == _MOST_WORD_ROWS or not left - 1 <= at <= right + 1:
                continue
            free[row:] = [first + text_width(words) + 6, *free[row + 1 :]]
            places.append((first, row, words, value))
    height = _WORD_ROW * len(free)
    base = top + height - 5
    placed_texts = [PlacedText(a, base - _WORD_ROW * row, words, "start", value=v) for a, row, words, v in places]
    return placed_texts, height


class _Lines:
    """The lines of text in the lanes of a panel, by the place of their lane and their height above it, with the
    stretches (px) that have a text."""

    def __init__(self) -> None:
        self._stretches: dict[tuple[float, float], list[tuple[float, float]]] = {}

    def room(self, lane: float, height: float, x: float) -> float:
        """The width (px) that a text around `x` may have, without touching another one."""
        stretches = self._stretches.get((lane, height), ())
        return 2 * min((max(a - x, x - b) for a, b in stretches), default=math.inf)

    def add(self, lane: float, height: float, first: float, last: float) -> None:
        """Takes a stretch for a text."""
        self._stretches.setdefault((lane, height), []).append((first, last))


def _place_texts(
    mark: Texts, x: Scale, left: float, right: float, lines: _Lines | None
) -> Callable[[Scale], list[PlacedText]]:
    """The texts of a mark that have room: in their lane where there are `lines`, else after the one before. What it
    returns places them once the vertical scale is known."""
    at, share, free = x.places(mark.x).tolist(), mark.size / 12, -math.inf
    spans = None if mark.spans is None else x.places(mark.x + mark.spans / 2) - x.places(mark.x - mark.spans / 2)
    chosen_texts: list[tuple[int, str]] = []
    for i, (place, full_text) in enumerate(zip(at, mark.texts, strict=True)):
        if not left - 20 <= place <= right or not np.isfinite(mark.y[i]):
            continue
        lane, text = float(mark.y[i]), full_text
        if spans is not None:
            room = lines.room(lane, mark.shift, place) if lines else math.inf
            text = cut_text(full_text, min(spans[i] - 2 * _WORD_GAP, room) / share)
        width = text_width(text) * share
        first = place - width * {"middle": 0.5, "end": 1.0}.get(mark.anchor, 0.0)
        has_room = first >= free if lines is None else lines.room(lane, mark.shift, first + width / 2) >= width
        if not text or (len(text) < len(full_text) and len(text) < _LEAST_CUT) or not (has_room or mark.overlap):
            continue
        free = first + width
        if lines is not None:
            lines.add(lane, mark.shift, first, free)
        chosen_texts.append((i, text))

    def places(y: Scale) -> list[PlacedText]:
        heights = y.places(mark.y) + mark.shift
        return [PlacedText(at[i], float(heights[i]), text, mark.anchor, i) for i, text in chosen_texts]

    return places


@dataclass
class _Row:
    """A row of labels, from left to right; `free`: where the last one ends (px)."""

    free: float

    def has_room(self, width: float, x: float, following: float) -> bool:
        """True if a whole label of the mark at `x` fits beside it."""
        return (x + 8 >= self.free and following - x - 16 >= width) or x - self.free - 14 > width

    def place(self, text: str, width: float, x: float, following: float) -> tuple[float, str, str] | None:
        """A label of the mark at `x`, if there is room (x, text, anchor): to its right as far as the `following` mark,
        cut if need be, else to its left."""
        right, left = following - x - 16, x - self.free - 14
        begin, self.free = self.free, max(self.free, x + 5)
        if right < width < left and x - width > begin:
            return x - 8, text, "end"
        label = cut_values(text, right / 0.93)
        if right < 10 or label in ("", "…") or (len(label) < len(text) and right < 40):
            return None
        self.free = x + 8 + 0.93 * text_width(label)
        return x + 8, label, "start"


def _place_beside(
    mark: Texts, scale: Scale, left: float, right: float, rows: dict[int, int], lines: _Lines
) -> Callable[[Scale], list[PlacedText]]:
    """The labels beside their marks, each lane for itself; `rows` gets how many rows below a lane needs. What it
    returns places them once the vertical scale is known."""
    at = scale.places(mark.x).tolist()
    placed_texts: list[tuple[PlacedText, float, int]] = []
    for lane in dict.fromkeys(mark.y[np.isfinite(mark.y)].tolist()):
        numbers = np.flatnonzero(mark.y == lane).tolist()
        beside, *below = (_Row(left) for _ in range(1 + mark.rows))
        for i, following in zip(numbers, [*(at[n] for n in numbers[1:]), right], strict=True):
            x, text = at[i], mark.texts[i]
            width = 0.93 * text_width(text)
            roomy = next((r for r, row in enumerate(below) if row.has_room(width, x, right)), None)
            if roomy is None or beside.has_room(width, x, following):
                place, row = beside.place(text, width, x, following), 0
            else:
                place, row = below[roomy].place(text, width, x, right), roomy + 1
                beside.free = max(beside.free, x + 5)  # no label covers the mark
                rows[int(lane)] = max(rows.get(int(lane), 0), row)
            if place is not None and (place[2] == "start" or _takes_left(mark, lines, lane, place[0], width)):
                placed_texts.append((PlacedText(place[0], 0.0, place[1], place[2], i), lane, row))

    def places(y: Scale) -> list[PlacedText]:
        lifts = {"end": mark.lift}
        return [
            replace(text, y=y.place(lane) + mark.shift + _WORD_ROW * row - lifts.get(text.anchor, 0.0))
            for text, lane, row in placed_texts
        ]

    return places


def _takes_left(mark: Texts, lines: _Lines, lane: float, end: float, width: float) -> bool:
    """True if a label that ends at `end` (px) has its place; a lifted one must not touch other texts there."""
    if not mark.lift:
        return True
    height = mark.shift - mark.lift
    if lines.room(lane, height, end - width / 2) < width + 2 * _WORD_GAP:
        return False
    lines.add(lane, height, end - width, end)
    return True
