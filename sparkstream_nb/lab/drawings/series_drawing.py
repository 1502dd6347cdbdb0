"""The picture of a chart's series as one SVG element: lines, bars or points, with axes and a legend."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from datetime import timedelta

from ...app.results.stream_chart import ChartSeries, ChartSnapshot
from ...charts.colours import COLOURS
from ...charts.point_store import Points, thin_points, thin_scatter
from .axes import PlotArea, TickRow, ValueMark, cut, draw_value_axis, draw_x_title
from .charts import at, short, ticks, time_ticks
from .pictures import INK, WIDTH, embed_svg, text_width

_PLOT_HEIGHT = 260.0
_MOST_POINTS = 3_000
"""Points of the picture, about: it is saved with the notebook."""
_LEGEND = 24
"""Names in the legend, at most."""
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")
"""Dashes of lines, which tell lines of one colour apart."""
_CALENDAR_END = 253_402_300_799_999


def svg(snapshot: ChartSnapshot, width: int = WIDTH) -> str:
    """The picture of a snapshot that has points, `width` px wide."""
    return _SeriesDrawing(snapshot, width).markup()


def image(snapshot: ChartSnapshot) -> str:
    """`svg` as an HTML image."""
    return embed_svg(svg(snapshot), snapshot.title)


@dataclass(frozen=True)
class _Tick:
    """A labelled place on the axis of x; `context` is the day or the year of its label."""

    x: float
    label: str
    context: str = ""


class _SeriesDrawing:
    """One picture: where things are, and the elements of each kind."""

    def __init__(self, snapshot: ChartSnapshot, width: int) -> None:
        self.snapshot, self.width = snapshot, width
        self.legend_rows = self._legend_rows()
        self.marks = self._marks()
        largest = max(map(abs, self.marks))
        self.mark_labels = [short(m, largest) for m in self.marks]
        self.left = 34 + max(map(text_width, self.mark_labels))
        self.right = width - 34.0
        self.top = 34.0 + 20 * len(self.legend_rows)
        self.bottom = self.top + _PLOT_HEIGHT
        self.plot = PlotArea(self.left, self.right, self.top, self.bottom)
        start, end = snapshot.range or (0.0, 1.0)
        pad = 0.5 if start == end else self._half_slot() * (end - start) if snapshot.shape.kind == "bar" else 0.0
        self.start, self.end = start - pad, end + pad
        self.cells = max(40, min(int(self.right - self.left), _MOST_POINTS // (2 * max(1, len(snapshot.series)))))

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * (value - self.start) / (self.end - self.start)

    def y(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        return self.bottom - _PLOT_HEIGHT * (value - low) / (high - low)

    def markup(self) -> str:
        title = html.escape(self.snapshot.title)
        height = self.bottom + 56
        series = [line for i, s in enumerate(self.snapshot.series) for line in self._series(i, s)]
        return "".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:.0f}" '
                f'width="{self.width}" height="{height:.0f}" role="img" aria-label="{title}" '
                f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">',
                f'<text x="4" y="18" font-size="14" font-weight="600">{title}</text>',
                *self._legend(),
                *self._value_axis(),
                *self._x_axis(),
                f'<clipPath id="plot"><rect x="{self.left - 4:.0f}" y="{self.top - 4:.0f}" '
                f'width="{self.right - self.left + 8:.0f}" height="{_PLOT_HEIGHT + 8:.0f}"/></clipPath>'
                '<g clip-path="url(#plot)">',
                *series,
                "</g></svg>",
            ]
        )

    # ------------------------------------------------------------------------------------------------------------ axes

    def _marks(self) -> list[float]:
        value_arrays = [s.points.y for s in self.snapshot.series if len(s.points)]
        low, high = min(float(y.min()) for y in value_arrays), max(float(y.max()) for y in value_arrays)
        if self.snapshot.shape.kind == "bar":
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = low - max(1.0, abs(low) * 0.1), high + max(1.0, abs(high) * 0.1)
        return ticks(low, high)

    def _value_axis(self) -> list[str]:
        marks = [ValueMark(m, label, self.y(m)) for m, label in zip(self.marks, self.mark_labels, strict=True)]
        return draw_value_axis(self.plot, cut(", ".join(self.snapshot.shape.y), 38), marks)

    def _x_axis(self) -> list[str]:
        row = TickRow(self.plot)
        ticks = [e for tick in self._ticks() for e in row.draw(self.x(tick.x), tick.label, tick.context)]
        return [draw_x_title(self.plot, cut(self.snapshot.x_title, 60)), *ticks]

    def _ticks(self) -> list[_Tick]:
        if not self.snapshot.over_time:
            times = [t for t in ticks(self.start, self.end, 8) if self.start <= t <= self.end]
            largest = max(map(abs, times), default=0.0)
            return [_Tick(t, short(t, largest)) for t in times]
        if not -_CALENDAR_END // 4 < self.start <= self.end < _CALENDAR_END:
            return []
        most = (self.right - self.left) / 86
        if self.end - self.start >= 3_000:
            moments = time_ticks(math.ceil(self.start), math.floor(self.end) + 1, "sec", most)
            return [_Tick(t.ms, t.label, t.context) for t in moments]
        marks = [round(t) for t in ticks(self.start, self.end, 6) if self.start <= t <= self.end]
        return [_Tick(t, f"{at(t):%H:%M:%S}.{t % 1000:03d}", _day(t)) for t in dict.fromkeys(marks)]

    # ---------------------------------------------------------------------------------------------------------- legend

    def _legend_rows(self) -> list[list[tuple[int, str]]]:
        """Numbers and names of the series, as many in a row as fit; the number -1 is a note on further ones."""
        names = [(i, cut(s.label, 40)) for i, s in enumerate(self.snapshot.series)]
        if len(names) > _LEGEND:
            names = [*names[:_LEGEND], (-1, f"and {len(names) - _LEGEND} more")]
        rows: list[list[tuple[int, str]]] = [[]]
        x = 0.0
        for one in names:
            wide = 34 + text_width(one[1])
            if rows[-1] and x + wide > self.width - 20:
                rows.append([])
                x = 0.0
            rows[-1].append(one)
            x += wide
        return rows

    def _legend(self) -> list[str]:
        out = []
        for row, names in enumerate(self.legend_rows):
            x, y = 4.0, 34 + 20 * row
            for number, name in names:
                if number >= 0:
                    out.append(
                        f'<line x1="{x:.0f}" x2="{x + 13:.0f}" y1="{y + 6}" y2="{y + 6}" {_stroke(number)} '
                        'stroke-width="3"/>'
                    )
                out.append(f'<text x="{x + 17:.0f}" y="{y + 10}" class="legend">{html.escape(name)}</text>')
                x += 34 + text_width(name)
        return out

    # ---------------------------------------------------------------------------------------------------------- series

    def _series(self, number: int, series: ChartSeries) -> list[str]:
        points = self._thin(series.points)
        places = [(self.x(a), self.y(b)) for a, b in zip(points.x.tolist(), points.y.tolist(), strict=True)]
        colour = COLOURS[number % len(COLOURS)]
        match self.snapshot.shape.kind:
            case "bar":
                wide = self._bar_width()
                shift = wide * (number - len(self.snapshot.series) / 2)
                base = self.y(0.0)
                bars = [
                    f"M{x + shift:.1f} {min(y, base):.1f}h{wide:.1f}v{abs(base - y):.1f}h-{wide:.1f}z"
                    for x, y in places
                ]
                return [f'<path d="{"".join(bars)}" fill="{colour}" class="bars"/>'] if bars else []
            case "points":
                return [
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}" fill-opacity=".7"/>' for x, y in places
                ]
        if len(places) == 1:
            return [f'<circle cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="2.5" fill="{colour}"/>']
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        return [f'<polyline points="{path}" fill="none" {_stroke(number)} stroke-width="1.5"/>'] if places else []

    def _thin(self, points: Points) -> Points:
        if self.snapshot.shape.kind == "points":
            return thin_scatter(points, int(self.right - self.left), int(_PLOT_HEIGHT), 2 * self.cells)
        return thin_points(points, self.cells, self.start, self.end)

    def _half_slot(self) -> float:
        """Half of the share of the axis that the bars of one x have."""
        return 0.5 / max(1, max((len(s.points) for s in self.snapshot.series), default=1) - 1)

    def _bar_width(self) -> float:
        """The width of a bar (px), such that the bars of one x stand beside each other."""
        several = max((len(s.points) for s in self.snapshot.series), default=1)
        return max(0.5, min(40.0, 0.8 * (self.right - self.left) / max(1, several)) / max(1, len(self.snapshot.series)))


def _stroke(number: int) -> str:
    dash = _DASHES[number // len(COLOURS) % len(_DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{COLOURS[number % len(COLOURS)]}"{dashes}'


def _day(ms: int) -> str:
    moment = at(0) + timedelta(milliseconds=ms)
    return f"{moment.day} {moment:%b} {moment.year}"
