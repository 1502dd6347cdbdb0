"""A part of a picture that stands out: the rest is pale."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from .picture import Bars, LaneAxis, Mark, NumberAxis, Panel, Picture, Style, TimeAxis, Veil, floats
from .style import GREY

_VEIL = Style(GREY, opacity=0.45)
_PALE = 0.2
"""The opacity of marks that do not stand out."""


@dataclass(frozen=True)
class Focus:
    """Times from `start` to `end` (ms since 1970; None: open), and `names` of lanes or of marks; empty: all."""

    start: float | None = None
    end: float | None = None
    names: Collection[str] = ()


def with_focus(picture: Picture, focus: Focus) -> Picture:
    """The picture, pale outside of the focus. A panel without an axis of times, or without one of the names, is not
    narrowed by them."""
    if focus == Focus():
        return picture
    return replace(picture, panels=[_narrow(panel, focus) for panel in picture.panels])


def _narrow(panel: Panel, focus: Focus) -> Panel:
    names = {m.name for m in panel.marks}
    marks = list(panel.marks)
    if names & set(focus.names):
        marks = [m if m.name in focus.names or not m.name else _pale(m) for m in marks]
    times = [*_outside_times(panel.x, focus)] if isinstance(panel.x, TimeAxis) else []
    lanes = [*_outside_lanes(panel.y, focus)] if isinstance(panel.y, LaneAxis) else []
    low, high = _extent(panel.y)
    rectangles = [(start, end, low, high) for start, end in times]
    if lanes and isinstance(panel.x, TimeAxis) and panel.x.spans:
        first, last = panel.x.spans[0][0], panel.x.spans[-1][1]
        rectangles += [(first, last, lane, lane + 1) for lane in lanes]
    return replace(panel, marks=[*marks, *_veils(rectangles)])


def _pale(mark: Mark) -> Mark:
    faint_mark = replace(mark, style=replace(mark.style, opacity=mark.style.opacity * _PALE))
    return replace(faint_mark, labels=()) if isinstance(faint_mark, Bars) else faint_mark


def _outside_times(axis: TimeAxis, focus: Focus) -> Iterator[tuple[float, float]]:
    """The parts of the axis's spans before and after the focus."""
    for first, last in axis.spans:
        if focus.start is not None and focus.start > first:
            yield first, min(focus.start, last)
        if focus.end is not None and focus.end < last:
            yield max(focus.end, first), last


def _outside_lanes(axis: LaneAxis, focus: Focus) -> Iterator[float]:
    """The numbers of the lanes with other names."""
    if any(lane.name in focus.names for lane in axis.lanes):
        yield from (float(i) for i, lane in enumerate(axis.lanes) if lane.name not in focus.names)


def _extent(axis: NumberAxis | LaneAxis) -> tuple[float, float]:
    return (axis.low, axis.high) if isinstance(axis, NumberAxis) else (0.0, float(len(axis.lanes)))


def _veils(rectangles: Sequence[tuple[float, float, float, float]]) -> list[Mark]:
    if not rectangles:
        return []
    x0, x1, y0, y1 = (floats(edges) for edges in zip(*rectangles, strict=True))
    return [Veil(x0=x0, x1=x1, y0=y0, y1=y1, style=_VEIL, part="veil", is_quiet=True)]
