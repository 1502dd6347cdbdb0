"""A bounded store of the points of several series, and thinning: what a pixel column cannot show is left out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

CAPACITY = 16_384
"""Points that are held of one series, at most."""
MOST_SERIES = 40
"""Series that are held: more lines cannot be told apart."""
_MOST_REFUSED = 10_000
"""Names of further series that are remembered, to count them."""
_EARLIEST, _LATEST = 315_532_800_000, 4_102_444_800_000
"""1980 and 2100, in ms since 1970."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one series: `x` and `y`, float64[n] without NaN, in the order of `x`."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.x)

    def between(self, start: float, end: float) -> Points:
        """The points with `start` ≤ x ≤ `end`, and one more at each side, so that lines reach the edges."""
        first = max(0, int(np.searchsorted(self.x, start, "left")) - 1)
        last = int(np.searchsorted(self.x, end, "right")) + 1
        return Points(self.x[first:last], self.y[first:last])


def thin_points(points: Points, cells: int, start: float, end: float) -> Points:
    """The lowest and the highest point of each of `cells` equal parts of the range from `start` to `end`, and the first
    and the last point of all.

    All points if there are no more than `2 * cells`. Points outside the range count to its first and last part.
    """
    x, y = points.x, points.y
    if len(x) <= 2 * cells or not end > start:
        return points
    cell = np.clip((x - start) * (cells / (end - start)), 0, cells - 1).astype(np.int64)
    firsts = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    counts = np.diff(np.append(firsts, len(cell)))
    low, high = (_first_equal(y, extreme.reduceat(y, firsts), firsts, counts) for extreme in (np.minimum, np.maximum))
    keep = np.unique(np.concatenate((low, high, [0, len(x) - 1])))
    return Points(x[keep], y[keep])


def thin_scatter(points: Points, columns: int, rows: int, most: int) -> Points:
    """One point of each cell of a grid over the points' ranges, the first in the order of x: of scattered points the
    inner ones can be seen as well. The grid has `columns` by `rows` cells, fewer where more than `most` points were
    left.

    All points if there are no more than `most`.
    """
    x, y = points.x, points.y
    while len(x) > most and columns * rows > 1:
        cell = _cells(x, columns) * rows + _cells(y, rows)
        keep = np.sort(np.unique(cell, return_index=True)[1])
        x, y = x[keep], y[keep]
        columns, rows = max(1, columns // 2), max(1, rows // 2)
    return Points(x[:most], y[:most])


def _cells(values: NDArray[np.float64], cells: int) -> NDArray[np.int64]:
    """The number of the cell of each value, of equal parts of their range."""
    low, size = values.min(), np.ptp(values)
    if not size:
        return np.zeros(len(values), np.int64)
    numbers: NDArray[np.int64] = np.minimum((values - low) * (cells / size), cells - 1).astype(np.int64)
    return numbers


def _first_equal(
    y: NDArray[np.float64], run_values: NDArray[np.float64], firsts: NDArray[np.intp], counts: NDArray[np.intp]
) -> NDArray[np.intp]:
    """For each run of rows, the first with the value of the run in `run_values`."""
    positions = np.flatnonzero(y == np.repeat(run_values, counts))
    return positions[np.searchsorted(positions, firsts)]


def looks_like_time(values: NDArray[np.float64]) -> bool:
    """True if whole numbers are likely times in ms since 1970: all lie between 1980 and 2100."""
    return bool(len(values)) and bool(values.min() >= _EARLIEST) and bool(values.max() < _LATEST)


@dataclass(frozen=True, order=True)
class SeriesName:
    """The name of a series: the attribute of its values, and the value or the node (`group`) that its events have in
    common; empty where all events belong to it."""

    attribute: str
    group: str = ""

    def label(self, attributes: int) -> str:
        """The name in a legend; `attributes`: how many attributes the chart has."""
        if not self.group:
            return self.attribute
        return self.group if attributes == 1 else f"{self.group} · {self.attribute}"


@dataclass
class PointStore:
    """Points of at most `most` series, `capacity` points of each.

    A series that gets more is thinned over its whole range, so its beginning is kept with fewer points. `span`: only
    points with an x within this distance of the largest x are kept; None: all. `scatter`: the points are not joined by
    lines, so the inner ones are kept as well. Not thread-safe.
    """

    span: float | None = None
    capacity: int = CAPACITY
    most: int = MOST_SERIES
    scatter: bool = False
    thinned: bool = False
    """True if points were left out."""
    _points: dict[SeriesName, Points] = field(default_factory=dict)
    _refused_names: set[SeriesName] = field(default_factory=set)

    @property
    def names(self) -> tuple[SeriesName, ...]:
        """The series, in the order in which they came."""
        return tuple(self._points)

    @property
    def refused_count(self) -> int:
        """The number of series that came when `most` others were held; counted up to 10,000."""
        return len(self._refused_names)

    @property
    def points(self) -> int:
        """The number of points held."""
        return sum(map(len, self._points.values()))

    @property
    def range(self) -> tuple[float, float] | None:
        """The smallest and the largest x; None without points."""
        series = [p for p in self._points.values() if len(p)]
        if not series:
            return None
        last = max(float(p.x[-1]) for p in series)
        first = min(float(p.x[0]) for p in series)
        return (first if self.span is None else max(first, last - self.span)), last

    def series(self, name: SeriesName) -> Points:
        """The points of a series."""
        return self._points[name]

    def add(self, name: SeriesName, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Adds points to a series, in any order. Points without a finite x and y are left out."""
        if name not in self._points and len(self._points) >= self.most:
            if len(self._refused_names) < _MOST_REFUSED:
                self._refused_names.add(name)
            return
        finite = np.isfinite(x) & np.isfinite(y)
        if not finite.all():
            x, y = x[finite], y[finite]
        previous = self._points.get(name)
        if previous is not None:
            x, y = np.concatenate((previous.x, x)), np.concatenate((previous.y, y))
        if len(x) > 1 and not (x[1:] >= x[:-1]).all():
            order = np.argsort(x, kind="stable")
            x, y = x[order], y[order]
        if self.span is not None and len(x):
            first = int(np.searchsorted(x, x[-1] - self.span, "left"))
            x, y = x[first:], y[first:]
        self._points[name] = self._fit(Points(x, y))

    def forget_before(self) -> None:
        """Leave out points that are further than `span` from the largest x of all series."""
        bounds = self.range
        if self.span is None or bounds is None:
            return
        start = bounds[1] - self.span
        for name, p in self._points.items():
            if len(p) and p.x[0] < start:
                first = int(np.searchsorted(p.x, start, "left"))
                self._points[name] = Points(p.x[first:], p.y[first:])

    def _fit(self, points: Points) -> Points:
        if len(points) <= self.capacity:
            return points
        # Half of the room stays free, so that not every addition thins again.
        self.thinned = True
        if self.scatter:
            return thin_scatter(points, self.capacity // 16, self.capacity // 32, self.capacity // 2)
        thin = thin_points(points, self.capacity // 4, float(points.x[0]), float(points.x[-1]))
        if len(thin) > self.capacity:  # all have one x
            thin = Points(points.x[-self.capacity :], points.y[-self.capacity :])
        return thin
