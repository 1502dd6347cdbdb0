"""A chart of a stream's attributes as it grows: a line for each value of an attribute, or for each node.

Only the end of each commit's output is read. What is held of it is bounded, and thinned where it is more than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...charts.frame_picture import LineAxes, NamedLine, lines_picture
from ...charts.frame_plot import ChartKind, numbers_of
from ...charts.picture import Picture
from ...charts.point_store import Points, PointStore, SeriesName, looks_like_time, thin_points, thin_scatter
from .followed_stream import FollowedStream, StreamSnapshot
from .plotly_results import Pictured
from .stream_cursor import StreamCursor

if TYPE_CHECKING:
    from ...charts.loading import Figure

MOST_READ = 200_000
"""New events that are read at a time; older ones are counted as not read."""
WIDTH = 800
"""Pixel columns of a chart whose width is not known."""
MOST_DRAWN = 8_000
"""Points that are drawn, of all series together."""
MOST_SAVED = 3_000
"""Points of a picture that is saved with a notebook, about."""
_FEWEST_CELLS = 50
_HEIGHT = 300
"""Pixel rows of a chart."""


@dataclass(frozen=True)
class ChartShape:
    """The shape of a chart: the attributes `y`, over the event time or the attribute `x`; a line for each value of the
    column `by`, an attribute or the node's. Of event times only the `last` ms; None: all.

    `time` and `node` are the columns of the event time and of the node. `whole`: `x` has whole numbers, which may be
    times in ms since 1970.
    """

    y: tuple[str, ...]
    by: str | None = None
    x: str | None = None
    last: int | None = None
    kind: ChartKind = "line"
    time: str = "timestamp"
    node: str = "node"
    whole: bool = False

    @property
    def x_column(self) -> str:
        """The column of x."""
        return self.time if self.x is None else self.x


@dataclass(frozen=True, eq=False)
class ChartSeries:
    """A series as it is drawn: the `points` that can be seen, of `held` ones."""

    name: SeriesName
    label: str
    points: Points
    held: int


@dataclass(frozen=True)
class ChartCounts:
    """The events and points of a chart: `total` events so far; `not_read` of them came after the chart was opened, at
    `since` (seconds since 1970), and were never read. `paused`: when it was paused; `waiting` events came after that.
    `series`: how many further series are not drawn. `thinned`: fewer points are held than came."""

    total: int
    since: float
    not_read: int = 0
    paused: float | None = None
    waiting: int = 0
    series: int = 0
    thinned: bool = False


@dataclass(frozen=True, repr=False, eq=False)
class ChartSnapshot(StreamSnapshot, Pictured):
    """A chart at a moment. `range`: from which x to which it is drawn; None without points. `zoomed`: a part of it was
    chosen. `over_time`: x are times (ms since 1970)."""

    app: str
    stream: str
    shape: ChartShape
    series: tuple[ChartSeries, ...]
    range: tuple[float, float] | None
    over_time: bool
    zoomed: bool
    counts: ChartCounts

    @property
    def drawn(self) -> int:
        """The number of points that are drawn."""
        return sum(len(s.points) for s in self.series)

    @property
    def frame(self) -> pd.DataFrame:
        """The points that are drawn: series, the column of x, y."""
        x = [v for s in self.series for v in s.points.x.tolist()]
        y = [v for s in self.series for v in s.points.y.tolist()]
        names = [s.label for s in self.series for _ in range(len(s.points))]
        at: Any = pd.to_datetime(pd.Series(x, dtype="float64"), unit="ms") if self.over_time else x
        return pd.DataFrame({"series": pd.Series(names, dtype=object), self.shape.x_column: at, "value": y})

    @property
    def title(self) -> str:
        """`average by symbol · Trades.Averages`."""
        by = f" by {self.shape.by}" if self.shape.by else ""
        return f"{', '.join(self.shape.y)}{by} · {self.app}.{self.stream}"

    @property
    def x_title(self) -> str:
        """The title of the horizontal axis."""
        if self.shape.x is None:
            return "event time (UTC)"
        return f"{self.shape.x} (UTC)" if self.over_time else self.shape.x

    def picture(self, most: int = MOST_SAVED) -> Picture:
        """The points that are drawn, about `most` of all series together; without points it has no marks."""
        start, end = self.range or (0.0, 1.0)
        cells = max(40, most // (2 * max(1, len(self.series))))
        lines = [NamedLine(s.label, self._thin(s.points, cells, start, end)) for s in self.series]
        y = ", ".join(self.shape.y)
        axes = LineAxes(self.title, self.x_title, y, self.over_time, range=self.range)
        return lines_picture(lines, axes, self.shape.kind)

    def _thin(self, points: Points, cells: int, start: float, end: float) -> Points:
        if self.shape.kind == "points":
            return thin_scatter(points, WIDTH, _HEIGHT, 2 * cells)
        return thin_points(points, cells, start, end)

    def summary(self) -> str:
        return f"<ChartSnapshot of {self.app}.{self.stream}: {len(self.series)} series, {self.drawn:,} points>"


@dataclass(frozen=True, repr=False, eq=False)
class Chart(FollowedStream[ChartShape, ChartSnapshot]):
    """A chart of a stream. Its display in a notebook follows the stream. `follow` and `state` as in `Followed`."""

    def snapshot(self) -> ChartSnapshot:
        """The current chart."""
        return ChartCursor(self).advance()

    @property
    def figure(self) -> Figure:
        """The current chart as a Plotly figure. Raises SparkStreamError where Plotly is not installed."""
        return self.snapshot().figure


class ChartCursor(StreamCursor):
    """The state of one display of a chart. Thread-safe. `clock` gives the seconds since 1970; `columns`: how many pixel
    columns the display has."""

    def __init__(self, chart: Chart, clock: Callable[[], float] = time.time, columns: int = WIDTH) -> None:
        super().__init__(chart.ends, MOST_READ, None, clock)
        self.chart, self.columns = chart, columns
        self._zoom: tuple[float, float] | None = None
        self._value_by_group: dict[str, Any] = {}
        self._store = PointStore(chart.shape.last, scatter=chart.shape.kind == "points")

    def zoom(self, start: float, end: float) -> None:
        """Draws the points from x `start` to `end` only, as many of them as can be seen."""
        with self._lock:
            self._zoom = (start, end) if end > start else None

    def show_all(self) -> None:
        """Draws all points that are held."""
        with self._lock:
            self._zoom = None

    def value_of(self, group: str) -> Any:
        """The value of the column `by` that a line's group is named after."""
        return self._value_by_group.get(group, group)

    def advance(self) -> ChartSnapshot:
        """Read new outputs, unless it is paused. Raises SparkStreamError if they cannot be read."""
        with self._lock:
            return self._snapshot(*self._read_on())

    def _snapshot(self, total: int, waiting: int) -> ChartSnapshot:
        store, shape = self._store, self.chart.shape
        range_shown = store.range if self._zoom is None else self._zoom
        series = []
        for name in store.names:  # a line keeps its colour when further ones come
            points = store.series(name)
            if range_shown is not None:
                points = points.between(*range_shown)
            points_drawn = points if range_shown is None else self._thin(points, *range_shown)
            series.append(ChartSeries(name, name.label(len(shape.y)), points_drawn, len(points)))
        counts = ChartCounts(
            total, self._since, self._left_out, self._paused, waiting, store.refused_count, store.thinned,
        )  # fmt: skip
        return ChartSnapshot(
            self.chart.app, self.chart.stream, shape, tuple(series), range_shown, self._is_over_time(),
            self._zoom is not None, counts,
        )  # fmt: skip

    def _thin(self, points: Points, start: float, end: float) -> Points:
        """The points that can be seen."""
        most = MOST_DRAWN // max(1, len(self._store.names))
        if self.chart.shape.kind == "points":
            return thin_scatter(points, self.columns, _HEIGHT, max(2 * _FEWEST_CELLS, most))
        return thin_points(points, max(_FEWEST_CELLS, min(self.columns, most // 2)), start, end)

    def _is_over_time(self) -> bool:
        shape, store = self.chart.shape, self._store
        return shape.x is None or (shape.whole and all(looks_like_time(store.series(n).x) for n in store.names))

    def _add(self, frame: pd.DataFrame, new: int) -> int:
        if new:
            self._add_points(frame.tail(new))
        return min(new, len(frame))

    def _add_points(self, frame: pd.DataFrame) -> None:
        shape = self.chart.shape
        x = numbers_of(frame[shape.x_column])
        values = [numbers_of(frame[name]) for name in shape.y]
        column = None if shape.by is None else frame[shape.by]
        for group, rows in _groups(column):
            if column is not None and group not in self._value_by_group:
                self._value_by_group[group] = _python_value(column.iloc[rows[0]])
            for name, y in zip(shape.y, values, strict=True):
                self._store.add(SeriesName(name, group), x[rows], y[rows])
        self._store.forget_before()


def _groups(column: pd.Series[Any] | None) -> Sequence[tuple[str, Any]]:
    """The text of each distinct value of a column and its rows, in the order of the texts."""
    if column is None:
        return [("", slice(None))]
    values = column.to_numpy(dtype=object)
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1])
    # factorize makes NaN of null
    return sorted(((group_text(values[rows[0]]), rows) for rows in parts), key=lambda group: group[0])


def _python_value(value: Any) -> Any:
    return None if value is pd.NA else value.item() if isinstance(value, np.generic) else value


def group_text(value: Any) -> str:
    """The name of a group of events with this value, in one line."""
    if value is None or value is pd.NA:
        return "null"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
