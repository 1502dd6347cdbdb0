"""Plotly figures of answers: of frames, aggregations, streams, divergences, failovers and studies.

Texts that come from events are escaped: Plotly reads a part of HTML in names and hover texts.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from plotly.graph_objects import Bar, Box, Figure, Heatmap, Scatter
from plotly.subplots import make_subplots

from ..errors import Misuse, escape_controls
from .colours import COLOURS, VERDICT_COLOURS
from .failover_costs import FAILOVER_COSTS
from .frame_plot import ChartKind, ChosenColumns, FramePlot, numbers_of, resolve
from .point_store import MOST_SERIES, Points, thin_points

__all__ = [
    "Axes", "BucketBars", "Figure", "Line", "draw_buckets", "draw_costs", "draw_errors", "draw_failover", "draw_frame",
    "draw_lines", "draw_marks", "draw_study", "escape_text",
]  # fmt: skip
MOST_POINTS = 20_000
"""Points of one line; a longer one is thinned."""
MOST_MARKS = 20_000
"""Marks of a divergence, at most."""
_TIME = "%Y-%m-%d %H:%M:%S.%L"


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a figure: its `label`, and its points."""

    label: str
    points: Points


@dataclass(frozen=True)
class Axes:
    """The titles of a figure and its axes. `over_time`: x are ms since 1970, in UTC."""

    title: str
    x: str
    y: str
    over_time: bool = False
    note: str = ""


def escape_text(text: object) -> str:
    """A text as Plotly shows it unchanged in a title, a name or a hover text."""
    return html.escape(escape_controls(str(text)), quote=False).replace("%{", "%&#123;")


def draw_lines(lines: Sequence[Line], axes: Axes, kind: ChartKind = "line") -> Figure:
    """A line, a set of bars or of points for each of `lines`."""
    figure = Figure()
    x_shown = f"%{{x|{_TIME}}}" if axes.over_time else "%{x}"
    hover = f"{escape_text(axes.x)}: {x_shown}<br>{escape_text(axes.y)}: %{{y}}<extra>%{{fullData.name}}</extra>"
    for i, line in enumerate(lines):
        x: Any = line.points.x.astype("datetime64[ms]") if axes.over_time else line.points.x
        colour = COLOURS[i % len(COLOURS)]
        same = {"x": x, "y": line.points.y, "name": escape_text(line.label), "hovertemplate": hover}
        if kind == "bar":
            figure.add_trace(Bar(**same, marker_color=colour))
        else:
            dash = ("solid", "dash", "dot", "dashdot", "longdash")[i // len(COLOURS) % 5]
            mode = "markers" if kind == "points" else "lines" if len(line.points) > 1 else "lines+markers"
            figure.add_trace(Scatter(**same, mode=mode, line={"color": colour, "dash": dash}, marker={"color": colour}))
    _lay_out(figure, axes, legend=len(lines) > 1)
    return figure


def draw_frame(frame: pd.DataFrame, title: str, plot: FramePlot) -> Figure:
    """The numbers of a frame. Raises `Misuse` as `resolve`."""
    columns = resolve(frame, plot)
    lines: list[Line] = []
    notes: list[str] = []
    further = 0
    x = _x_values(frame, columns)
    for label, rows in _group_rows(frame, columns):
        for name in columns.y:
            if len(lines) >= MOST_SERIES:
                further += 1
                continue
            points = _points(x[rows], numbers_of(frame[name])[rows])
            thin = _thin(points)
            if len(thin) < len(points):
                notes = ["long lines are thinned: the lowest and the highest point of each stretch"]
            lines.append(Line(label if len(columns.y) == 1 and label else f"{label} {name}".strip(), thin))
    if further:
        notes.append(f"{further:,} further lines are not drawn")
    axis = "row" if columns.x is None else f"{columns.x} (UTC)" if columns.over_time else columns.x
    axes = Axes(title, axis, ", ".join(columns.y), columns.over_time, "; ".join(notes))
    return draw_lines(lines, axes, plot.kind)


def _x_values(frame: pd.DataFrame, columns: ChosenColumns) -> NDArray[Any]:
    """The x of each row: numbers, of times ms; texts where they are texts."""
    if columns.x is None:
        return np.arange(len(frame), dtype=np.float64)
    column = frame[columns.x]
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        utc = pd.to_datetime(column, utc=True).dt.tz_localize(None)
        values = utc.to_numpy(dtype="datetime64[ms]")
        ms: NDArray[np.float64] = values.astype(np.int64).astype(np.float64)
        ms[np.isnat(values)] = np.nan
        return ms
    if pd.api.types.is_numeric_dtype(column.dtype) or columns.over_time:
        return numbers_of(column)
    return np.array([escape_text(v) for v in column.tolist()], dtype=object)


def _thin(points: Points) -> Points:
    if len(points) <= MOST_POINTS or points.x.dtype == object:
        return points
    return thin_points(points, MOST_POINTS // 2, float(points.x[0]), float(points.x[-1]))


def _points(x: NDArray[Any], y: NDArray[np.float64]) -> Points:
    """Points in the order of x; texts stay in theirs. Rows without a finite y have none."""
    if x.dtype == object:
        # Every text keeps its place on the axis, also where its number is missing.
        return Points(x, y)
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    order = np.argsort(x, kind="stable")
    return Points(x[order], y[order])


def _group_rows(frame: pd.DataFrame, columns: ChosenColumns) -> list[tuple[str, Any]]:
    """The label and the rows of each value of the column that parts the lines."""
    if columns.by is None:
        return [("", slice(None))]
    values = ["null" if v is None or v is pd.NA else str(v) for v in frame[columns.by].tolist()]
    codes, labels = pd.factorize(np.array(values, dtype=object))
    return [(str(label), np.flatnonzero(codes == i)) for i, label in enumerate(labels)]


def draw_errors(frame: pd.DataFrame, title: str) -> Figure:
    """The errors of an app by reason, over the time of their events; those without a time are counted in the title."""
    if not len(frame):
        raise Misuse("there is nothing to draw: the app has no errors")
    times = numbers_of(frame["timestamp"])
    has_time = np.isfinite(times)
    reasons = frame["reason"].map(str)
    if not has_time.any():
        counts = reasons.value_counts()
        figure = Figure(Bar(x=[escape_text(r) for r in counts.index], y=counts.to_numpy(), name="errors"))
        _lay_out(figure, Axes(title, "reason", "errors"), legend=False)
        return figure
    first, last = float(times[has_time].min()), float(times[has_time].max())
    edges = np.linspace(first, last if last > first else first + 1_000, 61)
    middles = (edges[1:] + edges[:-1]) / 2
    lines = []
    for reason in reasons[has_time].value_counts().index[:MOST_SERIES]:
        counts, _ = np.histogram(times[has_time & (reasons == reason).to_numpy()], edges)
        lines.append(Line(reason, Points(middles, counts.astype(np.float64))))
    without = int((~has_time).sum())
    note = f"{without:,} more have no time" if without else ""
    figure = draw_lines(lines, Axes(title, "event time (UTC)", "errors", True, note), "bar")
    figure.update_layout(barmode="stack")
    return figure


@dataclass(frozen=True, eq=False)
class BucketBars:
    """The numbers of an aggregation: `starts` int64[n] of its buckets (ms), `parts` float64[shards, n] and `merged`
    float64[n]. `is_stacked`: the parts add up."""

    starts: NDArray[np.int64]
    shards: Sequence[str]
    parts: NDArray[np.float64]
    merged: NDArray[np.float64]
    is_stacked: bool


def draw_buckets(bars: BucketBars, title: str, measure: str) -> Figure:
    """Bars of each shard by bucket, and a mark for the merged value."""
    lines = [Line(s, Points(bars.starts.astype(np.float64), p)) for s, p in zip(bars.shards, bars.parts, strict=True)]
    figure = draw_lines(lines, Axes(title, "start of the bucket (UTC)", measure, True), "bar")
    if len(bars.shards) > 1:
        figure.add_trace(
            Scatter(
                x=bars.starts.astype("datetime64[ms]"), y=bars.merged, name="merged", mode="markers",
                marker={"symbol": "line-ew", "size": 14, "line": {"width": 2, "color": "#444"}},
                hovertemplate=f"%{{x|{_TIME}}}<br>{escape_text(measure)}: %{{y}}<extra>%{{fullData.name}}</extra>",
            )
        )  # fmt: skip
    figure.update_layout(barmode="stack" if bars.is_stacked else "group", showlegend=len(bars.shards) > 1)
    return figure


def draw_marks(marks: pd.DataFrame, lanes: Sequence[str], title: str) -> Figure:
    """Outputs by time and lane, coloured by verdict. `marks`: clock (ms), lane, verdict, text; those that are not the
    same are drawn first, up to `MOST_MARKS`."""
    drawn_marks = marks.sort_values("verdict", key=lambda v: v == "same", kind="stable").head(MOST_MARKS)
    figure = Figure()
    for verdict, colour in VERDICT_COLOURS.items():
        verdict_marks = drawn_marks[drawn_marks["verdict"] == verdict]
        if not len(verdict_marks):
            continue
        figure.add_trace(
            Scatter(
                x=verdict_marks["clock"].to_numpy(np.int64).astype("datetime64[ms]"),
                y=[escape_text(lane) for lane in verdict_marks["lane"]],
                name=verdict,
                mode="markers",
                marker={"color": colour, "size": 9, "symbol": _SYMBOLS[verdict]},
                text=[escape_text(t) for t in verdict_marks["text"]],
                hovertemplate=f"%{{x|{_TIME}}}<br>%{{y}}<br>%{{text}}<extra>{verdict}</extra>",
            )
        )
    omitted_count = len(marks) - len(drawn_marks)
    note = f"{omitted_count:,} further outputs that are the same are not drawn" if omitted_count else ""
    _lay_out(figure, Axes(title, "the app's clock (UTC)", "node", True, note))
    order = [escape_text(lane) for lane in reversed(lanes)]
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=order)
    return figure


_SYMBOLS: Mapping[str, str] = {
    "same": "circle-open", "lost": "x", "spurious": "triangle-up", "late": "diamond", "duplicated": "square",
}  # fmt: skip


def draw_failover(counts: pd.DataFrame, log: pd.DataFrame, title: str) -> Figure:
    """The outputs of failing nodes by stream and verdict, and their log below. `counts`: query, stream, and a column
    for each verdict; `log`: at (ms), what."""
    figure = make_subplots(rows=2, cols=1, row_heights=[0.7, 0.3], vertical_spacing=0.2)
    streams = [escape_text(s) for s in counts["stream"]]
    for verdict, colour in VERDICT_COLOURS.items():
        if verdict in counts.columns:
            hover = f"%{{x}}: %{{y}} {verdict}<extra></extra>"
            bar = Bar(x=streams, y=counts[verdict].to_numpy(), name=verdict, marker_color=colour, hovertemplate=hover)
            figure.add_trace(bar, row=1, col=1)
    figure.add_trace(
        Scatter(
            x=log["at"].to_numpy(np.int64).astype("datetime64[ms]"), y=["log"] * len(log), mode="markers", name="log",
            text=[escape_text(w) for w in log["what"]], marker={"color": "#444", "size": 9},
            hovertemplate=f"%{{x|{_TIME}}}<br>%{{text}}<extra></extra>", showlegend=False,
        ),
        row=2, col=1,
    )  # fmt: skip
    _lay_out(figure, Axes(title, "", ""))
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title_text="stream", row=1, col=1)
    figure.update_yaxes(title_text="outputs", row=1, col=1)
    figure.update_xaxes(title_text="the app's clock (UTC)", type="date", row=2, col=1)
    return figure


def draw_study(frame: pd.DataFrame, routings: Sequence[str], title: str) -> Figure:
    """Outputs that differ by number of nodes and routing, in two heat maps. `frame` as in `Study`; `routings` in the
    order of the rows."""
    nodes = sorted(set(frame["nodes"]))
    panels = [("lost", ["lost"]), ("spurious and duplicated", ["spurious", "duplicated"])]
    figure = make_subplots(rows=2, cols=1, subplot_titles=[name for name, _ in panels], vertical_spacing=0.16)
    for row, (name, columns) in enumerate(panels, 1):
        wide = frame.assign(wrong=frame[columns].sum(axis=1)).pivot_table(
            index="routing", columns="nodes", values="wrong", aggfunc="sum"
        )
        z = wide.reindex(index=list(routings), columns=nodes).to_numpy(np.float64)
        figure.add_trace(
            Heatmap(
                z=z, x=[str(n) for n in nodes], y=[escape_text(r) for r in routings], colorscale="Oranges", zmin=0,
                showscale=row == 1, colorbar={"title": "outputs"}, coloraxis=None,
                hovertemplate=f"%{{y}} on %{{x}} nodes<br>%{{z}} outputs {name}<extra></extra>",
            ),
            row=row, col=1,
        )  # fmt: skip
    _lay_out(figure, Axes(title, "", ""), legend=False)
    figure.update_xaxes(title_text="nodes", type="category")
    figure.update_yaxes(title_text="routing", autorange="reversed", type="category")
    return figure


def draw_costs(frame: pd.DataFrame, parameters: Sequence[str], title: str) -> Figure:
    """The costs of failovers in boxes, one for each setting: quartiles, and whiskers from the 5th to the 95th
    percentile. `frame` as in `FailoverStudy`."""
    labels = [cost.label for cost in FAILOVER_COSTS]
    figure = make_subplots(rows=2, cols=2, subplot_titles=labels, vertical_spacing=0.2)
    groups = [((), frame)] if not parameters else list(frame.groupby(list(parameters), sort=False))
    names = [
        escape_text(", ".join(f"{n} {v}" for n, v in zip(parameters, values, strict=True))) for values, _ in groups
    ]
    for i, (cost, label, unit) in enumerate(FAILOVER_COSTS):
        low, first, median, third, high = (
            [float(costs[cost].quantile(q)) / unit for _, costs in groups] for q in (0.05, 0.25, 0.5, 0.75, 0.95)
        )
        figure.add_trace(
            Box(
                x=[n or "all failovers" for n in names], lowerfence=low, q1=first, median=median, q3=third,
                upperfence=high, name=label, marker_color=COLOURS[i], showlegend=False,
            ),
            row=1 + i // 2, col=1 + i % 2,
        )  # fmt: skip
        figure.update_yaxes(title_text=label, rangemode="tozero", row=1 + i // 2, col=1 + i % 2)
    _lay_out(figure, Axes(title, "", ""), legend=False)
    figure.update_xaxes(type="category")
    return figure


def _lay_out(figure: Figure, axes: Axes, *, legend: bool = True) -> None:
    """Titles, a legend and a plain ground."""
    title = {"text": escape_text(axes.title)}
    if axes.note:
        title["subtitle"] = {"text": escape_text(axes.note)}  # type: ignore[assignment]
    figure.update_layout(
        template="plotly_white", title=title, showlegend=legend, hoverlabel={"namelength": -1}, colorway=COLOURS,
        uirevision=axes.title,
    )  # fmt: skip
    if axes.x:
        figure.update_xaxes(title_text=escape_text(axes.x))
    if axes.over_time:
        figure.update_xaxes(type="date")
    if axes.y:
        figure.update_yaxes(title_text=escape_text(axes.y))
