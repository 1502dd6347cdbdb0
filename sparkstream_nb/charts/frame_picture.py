"""Pictures of numbers in frames and series: lines, bars or points over times, numbers or texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .frame_plot import ChartKind, ChosenColumns, FramePlot, numbers_of, resolve
from .picture import Axis, Bars, Lane, LaneAxis, Line, Mark, NumberAxis, Panel, Picture, Style, TimeAxis, Values
from .picture import Points as PointMarks
from .point_store import MOST_SERIES, Points, thin_points
from .style import COLOURS
from .ticks import number_ticks

MOST_POINTS = 20_000
"""Points of one line; a longer one is thinned."""
_DASHES = ("", "dash", "dot", "dashdot", "fine")


@dataclass(frozen=True, eq=False)
class NamedLine:
    """A line of a picture: its `label`, and its points. Where x are texts they are numbers of `LineAxes.names`."""

    label: str
    points: Points


@dataclass(frozen=True)
class LineAxes:
    """The titles of a picture and its axes. `over_time`: x are ms since 1970. `names`: x are numbers of these. `range`:
    from which x to which it is drawn; None: all."""

    title: str
    x: str
    y: str
    over_time: bool = False
    names: Sequence[str] = ()
    range: tuple[float, float] | None = None
    notes: Sequence[str] = ()
    is_stacked: bool = False


def lines_picture(lines: Sequence[NamedLine], axes: LineAxes, kind: ChartKind = "line") -> Picture:
    """A line, a set of bars or of points for each of `lines`."""
    marks = list(_bars(lines, axes)) if kind == "bar" else [_mark(i, line, axes, kind) for i, line in enumerate(lines)]
    panel = Panel(_x_axis(lines, axes, kind), _y_axis(lines, axes, marks), marks, height=260)
    return Picture(axes.title, [panel], axes.notes)


def _mark(number: int, line: NamedLine, axes: LineAxes, kind: ChartKind) -> Mark:
    x, y = line.points.x + (0.5 if axes.names else 0.0), line.points.y
    colour = COLOURS[number % len(COLOURS)]
    if kind == "points":
        return PointMarks(x=x, y=y, style=Style(colour, opacity=0.7), radius=2.5, name=line.label)
    dash = _DASHES[number // len(COLOURS) % len(_DASHES)]
    return Line(x=x, y=y, style=Style(colour, dash=dash), name=line.label)  # type: ignore[arg-type]


def _extent(lines: Sequence[NamedLine], axes: LineAxes) -> tuple[float, float]:
    """The range of x."""
    if axes.names:
        return 0.0, float(len(axes.names) - 1)
    if axes.range is not None:
        return axes.range
    every = [line.points.x for line in lines if len(line.points)]
    return (min(float(x.min()) for x in every), max(float(x.max()) for x in every)) if every else (0.0, 1.0)


def _slot(lines: Sequence[NamedLine], axes: LineAxes) -> float:
    """The room of the bars of one x, in units of x."""
    start, end = _extent(lines, axes)
    count = len(axes.names) or max((len(line.points) for line in lines), default=1)
    return (end - start) / max(1, count - 1) if end > start else 1.0


def _bars(lines: Sequence[NamedLine], axes: LineAxes) -> Iterator[Mark]:
    """Bars of several lines beside one another, or on one another."""
    width = 0.8 * _slot(lines, axes)
    each = width if axes.is_stacked else width / max(1, len(lines))
    base_by_x: dict[float, float] = {}
    offset = 0.5 if axes.names else 0.0  # a text has its place in the middle of its lane
    for i, line in enumerate(lines):
        x, y = line.points.x, line.points.y
        base = np.array([base_by_x.get(a, 0.0) for a in x.tolist()]) if axes.is_stacked else np.zeros(len(x))
        base_by_x.update(zip(x.tolist(), (base + y).tolist(), strict=True))
        first = x + offset - width / 2 + (0 if axes.is_stacked else each * i)
        style = Style(COLOURS[i % len(COLOURS)])
        yield Bars(x0=first, x1=first + each, y0=base, y1=base + y, style=style, name=line.label, part="bars")


def _x_axis(lines: Sequence[NamedLine], axes: LineAxes, kind: ChartKind) -> Axis:
    if axes.names:
        return LaneAxis([Lane(name, 1e9) for name in axes.names], axes.x)
    start, end = _extent(lines, axes)
    room = 0.5 if start == end else _slot(lines, axes) / 2 if kind == "bar" else 0.0
    if axes.over_time:
        return TimeAxis(axes.x, [(start - room, end + room)])
    ticks = [t for t in number_ticks(start - room, end + room, 8) if start - room <= t <= end + room]
    return NumberAxis(axes.x, start - room, end + room, ticks)


def _y_axis(lines: Sequence[NamedLine], axes: LineAxes, marks: Sequence[Mark]) -> NumberAxis:
    values = [v for m in marks for v in ((m.y0, m.y1) if isinstance(m, Bars) else (getattr(m, "y", np.zeros(0)),))]
    every: Values = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.zeros(0)
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    if low == high:
        low, high = low - max(1.0, abs(low) * 0.1), high + max(1.0, abs(high) * 0.1)
    ticks = number_ticks(low, high)
    return NumberAxis(axes.y, ticks[0], ticks[-1], ticks)


# --------------------------------------------------------------------------------------------------------------- frames


def frame_picture(frame: pd.DataFrame, title: str, plot: FramePlot) -> Picture:
    """The numbers of a frame. Raises `Misuse` as `resolve`."""
    columns = resolve(frame, plot)
    lines: list[NamedLine] = []
    notes: list[str] = []
    further = 0
    x, names = _x_values(frame, columns)
    for label, rows in _group_rows(frame, columns):
        for name in columns.y:
            if len(lines) >= MOST_SERIES:
                further += 1
                continue
            points = _points(x[rows], numbers_of(frame[name])[rows], is_sorted=not names)
            thin = points if names or len(points) <= MOST_POINTS else _thin(points)
            if len(thin) < len(points):
                notes = ["long lines are thinned: the lowest and the highest point of each stretch"]
            lines.append(NamedLine(label if len(columns.y) == 1 and label else f"{label} {name}".strip(), thin))
    if further:
        notes.append(f"{further:,} further lines are not drawn")
    axis = "row" if columns.x is None else f"{columns.x} (UTC)" if columns.over_time else columns.x
    axes = LineAxes(title, axis, ", ".join(columns.y), columns.over_time, names, notes=notes)
    return lines_picture(lines, axes, plot.kind)


def _x_values(frame: pd.DataFrame, columns: ChosenColumns) -> tuple[NDArray[np.float64], list[str]]:
    """The x of each row: numbers, of times ms; where they are texts, numbers of the names that come with them."""
    if columns.x is None:
        return np.arange(len(frame), dtype=np.float64), []
    column = frame[columns.x]
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        utc = pd.to_datetime(column, utc=True).dt.tz_localize(None)
        values = utc.to_numpy(dtype="datetime64[ms]")
        ms: NDArray[np.float64] = values.astype(np.int64).astype(np.float64)
        ms[np.isnat(values)] = np.nan
        return ms, []
    if pd.api.types.is_numeric_dtype(column.dtype) or columns.over_time:
        return numbers_of(column), []
    codes, names = pd.factorize(np.array([str(v) for v in column.tolist()], dtype=object))
    return codes.astype(np.float64), [str(n) for n in names]


def _thin(points: Points) -> Points:
    return thin_points(points, MOST_POINTS // 2, float(points.x[0]), float(points.x[-1]))


def _points(x: NDArray[np.float64], y: NDArray[np.float64], *, is_sorted: bool) -> Points:
    """The points with finite numbers; `is_sorted`: in the order of x."""
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    order = np.argsort(x, kind="stable") if is_sorted else np.arange(len(x))
    return Points(x[order], y[order])


def _group_rows(frame: pd.DataFrame, columns: ChosenColumns) -> list[tuple[str, Any]]:
    """The label and the rows of each value of the column that parts the lines."""
    if columns.by is None:
        return [("", slice(None))]
    values = ["null" if v is None or v is pd.NA else str(v) for v in frame[columns.by].tolist()]
    codes, labels = pd.factorize(np.array(values, dtype=object))
    return [(str(label), np.flatnonzero(codes == i)) for i, label in enumerate(labels)]
