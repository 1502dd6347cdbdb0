"""A picture as data: panels with axes and marks, in the units of their axes. It knows no subject.

`app/pictures/` describes results so. There are two renderers: `svg_picture` for what is saved, printed and put into
pages, `plotly_picture` for what is live. Both place things as `picture_layout` says.

Places on a `LaneAxis` are the number of the lane, from the top or the left, and a share of it: 2.5 is the middle of the
third lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

INK = "currentColor"
"""The colour of texts: the page's own."""
Unit = Literal["ms", "sec", "min", "hour", "day", "month", "year"]
Symbol = Literal["circle", "square", "diamond", "triangle", "arrow", "chevron", "cross", "bar", "clock"]
Anchor = Literal["start", "middle", "end", "beside"]
Values = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------------------- axes


@dataclass(frozen=True, eq=False)
class TimeAxis:
    """An axis of times (ms since 1970, in UTC) over `spans` of (start, end), ascending. It is broken between two of
    them.

    No ticks are closer than one `finest`. `is_relative`: ticks are durations since 0, as of the clocks of examples.
    `buckets`: a tick at the start of one of these (start, end) stands under its middle.
    """

    title: str
    spans: Sequence[tuple[float, float]]
    finest: Unit = "ms"
    is_relative: bool = False
    buckets: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class NumberAxis:
    """An axis of numbers from `low` to `high`; `ticks` are the numbers that have a label."""

    title: str
    low: float
    high: float
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Lane:
    """A lane: its name, its `extent` (px; at most, where lanes lie beside one another), the opacity of its ground, and
    a text for a pointer on its name."""

    name: str
    extent: float = 30.0
    is_bold: bool = False
    shade: float = 0.0
    title: str = ""


@dataclass(frozen=True)
class LaneAxis:
    """An axis of names, each with a lane."""

    lanes: Sequence[Lane]
    title: str = ""


Axis = TimeAxis | NumberAxis | LaneAxis


# --------------------------------------------------------------------------------------------------------------- marks


@dataclass(frozen=True)
class Style:
    """The look of marks. `width`: of lines and outlines (px). An outline has no ground in it, unless it is
    `tinted`. `is_hatched`: red stripes on the ground."""

    colour: str = INK
    opacity: float = 1.0
    is_outline: bool = False
    width: float = 1.5
    dash: Literal["", "dash", "dot", "dashdot", "fine"] = ""
    is_tinted: bool = False
    is_hatched: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Mark:
    """Marks of one kind and look.

    `name` is theirs in the legend, `part` what they are in the picture (the class of their SVG elements). `titles` are
    texts for a pointer, one for each or none; `keys` are numbers that a view gets where a person chooses one.
    `is_quiet`: a pointer finds nothing on them, as other marks have the titles.
    """

    style: Style = Style()
    name: str = ""
    part: str = ""
    titles: Sequence[str] = ()
    keys: Sequence[int] = ()
    is_quiet: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars(Mark):
    """Rectangles from (`x0`, `y0`) to (`x1`, `y1`), float64[n] each, at least `least` px wide.

    `colours`: one for each, in place of the style's. `labels`: texts inside, where there is room; `overflows`: room is
    what is free up to the next bar of the lane. `rounding`, `inset` (px): of the corners, and on the upper and lower
    side.
    """

    x0: Values
    x1: Values
    y0: Values
    y1: Values
    least: float = 0.0
    colours: Sequence[str] = ()
    labels: Sequence[str] = ()
    overflows: bool = False
    rounding: float = 0.0
    inset: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Veil(Bars):
    """Rectangles over all other marks of the panel, which they make pale."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Line(Mark):
    """A line through the points (`x`, `y`), float64[n] each. A y that is NaN parts it; a point alone is a dot."""

    x: Values
    y: Values


@dataclass(frozen=True, eq=False, kw_only=True)
class Segments(Mark):
    """Straight lines from (`x0`, `y0`) to (`x1`, `y1`), float64[n] each; `overhang` (px) at both ends."""

    x0: Values
    x1: Values
    y0: Values
    y1: Values
    overhang: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Points(Mark):
    """Symbols at (`x`, `y`), float64[n] each, with a radius of `radius` px, or `radii` of their own."""

    x: Values
    y: Values
    symbol: Symbol = "circle"
    radius: float = 4.0
    radii: Sequence[float] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Texts(Mark):
    """Texts at (`x`, `y`), float64[n] each, in order of x. `shift` (px) is how far below they stand.

    With `anchor` "beside" a text stands to the right of its place, else to the left, cut where there is no room before
    the next place; `rows`: the number of rows below for texts without room, and the lane grows by them; `lift` (px):
    how far above the others those to the left stand. `spans`: lengths along x, float64[n], to which texts are cut.
    Texts that would overlap another one, of a lane or of a panel without lanes, are left out, unless they `overlap`.
    `signs`: they are signs, with a white rim. `noun`: what the texts are labels of, as "event"; a note below the
    picture says which have no room.
    """

    x: Values
    y: Values
    texts: Sequence[str] = ()
    anchor: Anchor = "middle"
    shift: float = 4.0
    size: float = 12.0
    is_bold: bool = False
    is_italic: bool = False
    rows: int = 0
    lift: float = 0.0
    spans: Values | None = None
    overlap: bool = False
    signs: bool = False
    noun: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rules(Mark):
    """Lines across the panel at `x`, float64[n]; `words` stand above the panel. `y0` and `y1`: they go over a part of
    the panel alone."""

    x: Values
    words: Sequence[str] = ()
    y0: float | None = None
    y1: float | None = None


# ------------------------------------------------------------------------------------------------------------- pictures


@dataclass(frozen=True)
class Panel:
    """Marks between a horizontal axis `x` and a vertical one `y`. `height`: of an axis of numbers (px)."""

    x: Axis
    y: NumberAxis | LaneAxis
    marks: Sequence[Mark]
    title: str = ""
    height: float = 230.0
    has_grid: bool = True


@dataclass(frozen=True)
class LegendEntry:
    """A name of the legend with the mark that it explains; without a mark it is a note."""

    name: str
    mark: Mark | None = None


@dataclass(frozen=True)
class Picture:
    """Panels, `columns` of them beside one another; all of one row have the lanes of its first one.

    `title` is read out and drawn, `description` is for people who do not see it, `notes` stand below. `legend`: further
    entries, after the marks' names.
    """

    title: str
    panels: Sequence[Panel]
    notes: Sequence[str] = ()
    description: str = ""
    legend: Sequence[LegendEntry] = ()
    columns: int = 1
    summary: str = ""
    """Read out in place of the title."""

    def entries(self) -> list[LegendEntry]:
        """The legend: a row for each name of marks, in their order."""
        marks = {m.name: m for panel in reversed(self.panels) for m in reversed(panel.marks) if m.name}
        names = dict.fromkeys(m.name for panel in self.panels for m in panel.marks if m.name)
        return [*(LegendEntry(name, marks[name]) for name in names), *self.legend]

    def marks(self) -> Iterator[Mark]:
        """The marks of all panels."""
        for panel in self.panels:
            yield from panel.marks

    def without_titles(self) -> Picture:
        """The same without the texts for a pointer, which an image does not show."""
        panels = [replace(p, marks=[replace(m, titles=()) for m in p.marks]) for p in self.panels]
        return replace(self, panels=[_without_lane_titles(p) for p in panels])


def _without_lane_titles(panel: Panel) -> Panel:
    if not isinstance(panel.y, LaneAxis):
        return panel
    return replace(panel, y=replace(panel.y, lanes=[replace(lane, title="") for lane in panel.y.lanes]))


def floats(values: Any) -> Values:
    """Numbers as a mark has them."""
    return np.asarray(values, dtype=np.float64)
