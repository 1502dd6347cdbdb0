"""Pictures as Plotly figures: for what is live, and for people who want to change a picture.

Texts that come from events are escaped: Plotly reads a part of HTML in names and hover texts.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Bar, Figure, Scatter

from ..errors import escape_controls
from .layout import Layout, PanelLayout, lay_out
from .picture import (
    INK,
    Axis,
    Bars,
    LaneAxis,
    Line,
    Mark,
    NumberAxis,
    Panel,
    Picture,
    Points,
    Rules,
    Segments,
    Style,
    Texts,
    TimeAxis,
    Values,
)
from .style import WIDTH

__all__ = ["Figure", "escape_text", "figure_of"]
DRAWN_INK = "#444"
"""The colour of texts and lines in the place of the page's."""
_TIME = "%Y-%m-%d %H:%M:%S.%L"
_DASHES = {"": "solid", "dash": "dash", "dot": "dot", "dashdot": "dashdot", "fine": "dot"}
_SYMBOLS = {
    "circle": "circle", "square": "square", "diamond": "diamond", "triangle": "triangle-up", "arrow": "triangle-right",
    "chevron": "arrow-right-open", "cross": "x-thin", "bar": "line-ns", "clock": "circle-open-dot",
}  # fmt: skip
_RELATIVE = "durations"


def escape_text(text: object) -> str:
    """A text as Plotly shows it unchanged in a title, a name or a hover text."""
    shown = html.escape(escape_controls(str(text)), quote=False).replace("%{", "%&#123;")
    return shown.replace("\n", "<br>")


def figure_of(picture: Picture, width: int = WIDTH, ink: str = DRAWN_INK) -> Figure:
    """The picture as a figure, laid out for `width` px. `ink`: the colour of texts and lines that have the page's."""
    layout = lay_out(picture, width)
    figure = Figure()
    names: set[str] = set()
    for i, panel in enumerate(layout.panels):
        number = str(i + 1) if i else ""
        for mark_number, mark in enumerate(panel.panel.marks):
            for trace in _traces(mark, mark_number, panel, ink):
                trace.update(name=escape_text(mark.name), legendgroup=mark.name, xaxis=f"x{number}", yaxis=f"y{number}")
                trace.update(showlegend=bool(mark.name) and mark.name not in names)
                names.add(mark.name)
                figure.add_trace(trace)
    for entry in picture.legend:
        if entry.mark is not None:
            sample = {"color": _colour(entry.mark.style, ink), "symbol": "square", "size": 11}
            name = escape_text(entry.name)
            figure.add_trace(Scatter(x=[None], y=[None], mode="markers", marker=sample, name=name, showlegend=True))
    _lay_out(figure, layout, ink)
    return figure


def _lay_out(figure: Figure, layout: Layout, ink: str) -> None:
    """The title, the legend and the panels, where the layout has them, on a plain ground."""
    picture, height = layout.picture, layout.height
    areas = [panel.area for panel in layout.panels]
    left, right = areas[0].left, max(a.right for a in areas)
    top, bottom = areas[0].top, areas[-1].bottom
    below = height - bottom + 10
    figure.update_layout(
        template="plotly_white", barmode="overlay", hovermode="closest", hoverlabel={"namelength": -1, "align": "left"},
        uirevision=picture.title, font={"color": ink, "size": 12}, height=round(height + 10),
        margin={"l": left, "r": layout.width - right, "t": top, "b": below},
        title={
            "text": "<br>".join(escape_text(line) for line in layout.title), "font": {"size": 14, "weight": 600},
            "xref": "container", "x": 0, "pad": {"l": 6}, "yref": "container", "y": 1 - 6 / height, "yanchor": "top",
        },
        legend={
            "orientation": "h", "bgcolor": "rgba(0,0,0,0)", "xref": "container", "x": 0, "yref": "container",
            "y": 1 - (layout.legend[0].y - 12 if layout.legend else 0) / height, "yanchor": "top",
        },
        showlegend=bool(layout.legend),
    )  # fmt: skip
    across, down = right - left, bottom - top
    for i, (panel, area) in enumerate(zip(layout.panels, areas, strict=True)):
        number = str(i + 1) if i else ""
        x = {"domain": [(area.left - left) / across, (area.right - left) / across], "anchor": f"y{number}"}
        y = {"domain": [1 - (area.bottom - top) / down, 1 - (area.top - top) / down], "anchor": f"x{number}"}
        figure.update_layout({f"xaxis{number}": {**x, **_horizontal_axis(panel)}})
        figure.update_layout({f"yaxis{number}": {**y, **_vertical_axis(panel)}})
        for gap in panel.breaks:
            figure.add_annotation(
                text=f"⫽<br>{gap.text}", showarrow=False, xref="paper", x=(gap.x - left) / across, xanchor="center",
                yref="paper", y=y["domain"][0], yanchor="middle", font={"size": 10},
            )  # fmt: skip
        for words in panel.words:
            figure.add_annotation(
                text=escape_text(words.text), showarrow=False, xref=f"x{number}", yref="paper", xanchor="left",
                x=_places(panel.panel.x, np.array([words.value]))[0], y=y["domain"][1], yanchor="bottom",
                yshift=area.top - words.y - 4, font={"size": 11},
            )  # fmt: skip
        if panel.panel.title:
            figure.add_annotation(
                text=f"<b>{escape_text(panel.panel.title)}</b>", showarrow=False, xref="paper", yref="paper",
                x=x["domain"][0], xanchor="left", y=y["domain"][1], yanchor="bottom", yshift=4,
            )  # fmt: skip
        if isinstance(panel.panel.y, LaneAxis):
            for lane, edge in zip(panel.panel.y.lanes, range(len(panel.panel.y.lanes)), strict=True):
                if lane.shade:
                    figure.add_hrect(
                        y0=edge, y1=edge + 1, fillcolor=ink, opacity=lane.shade, line_width=0, layer="below",
                        yref=f"y{number}",
                    )  # fmt: skip
    for note in layout.notes:
        figure.add_annotation(
            text=f"<i>{escape_text(note.text)}</i>", showarrow=False, xref="paper", x=0, xshift=8 - left,
            xanchor="left", yref="paper", y=0, yshift=bottom - note.y - 4, yanchor="bottom",
        )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- axes


def _horizontal_axis(layout: PanelLayout) -> dict[str, Any]:
    axis = layout.panel.x
    common: dict[str, Any] = {
        "title": {"text": escape_text(axis.title), "font": {"size": 12}, "standoff": 6}, "zeroline": False,
        "ticks": "outside", "ticklen": 4,
    }  # fmt: skip
    if isinstance(axis, LaneAxis):
        # Lanes that are narrower than their share leave room at the right.
        shown = (layout.area.right - layout.area.left) / max(1.0, layout.x.place(1) - layout.area.left)
        return {**common, **_lane_ticks(axis), "range": [0, max(shown, len(axis.lanes))]}
    if isinstance(axis, NumberAxis):
        return {**common, "range": [axis.low, axis.high], "showticklabels": bool(axis.ticks), "showgrid": False}
    if axis.is_relative:
        return {**common, "ticksuffix": " s", "range": [axis.spans[0][0] / 1000, axis.spans[-1][1] / 1000]}
    out: dict[str, Any] = {**common, "type": "date"}
    if axis.spans:
        out["range"] = _moments(np.array([axis.spans[0][0], axis.spans[-1][1]]))
        breaks = zip(axis.spans, axis.spans[1:], strict=False)
        out["rangebreaks"] = [{"bounds": _moments(np.array([a[1], b[0]]))} for a, b in breaks]
    if len(axis.spans) > 1:
        out["tickvals"] = _moments(np.array([t.value for t in layout.x_ticks]))
        out["ticktext"] = [f"{t.label}<br>{t.context}" for t in layout.x_ticks]
    return out


def _vertical_axis(layout: PanelLayout) -> dict[str, Any]:
    axis = layout.panel.y
    if isinstance(axis, NumberAxis):
        title = {"text": escape_text(axis.title), "font": {"size": 12}}
        return {"title": title, "range": [axis.low, axis.high]}
    assert isinstance(axis, LaneAxis)
    ticks = _lane_ticks(axis) if layout.lane_names else {"showticklabels": False}
    return {**ticks, "showgrid": False, "zeroline": False, "range": [len(axis.lanes), 0]}


def _lane_ticks(axis: LaneAxis) -> dict[str, Any]:
    names = [f"<b>{escape_text(lane.name)}</b>" if lane.is_bold else escape_text(lane.name) for lane in axis.lanes]
    return {"tickmode": "array", "tickvals": [i + 0.5 for i in range(len(names))], "ticktext": names, "showgrid": False}


def _moments(ms: Values) -> list[str]:
    return [str(m) for m in ms.astype("datetime64[ms]")]


def _places(axis: Axis, values: Values) -> Any:
    """Values as Plotly takes them: moments of an axis of times, seconds of one of durations."""
    if not isinstance(axis, TimeAxis):
        return values
    return values / 1000 if axis.is_relative else np.rint(values).astype("datetime64[ms]")


def _hover(mark: Mark, panel: Panel) -> dict[str, Any]:
    """The text under a pointer: that of the mark, else its values."""
    if mark.titles:
        return {"hovertext": [escape_text(t) for t in mark.titles], "hovertemplate": "%{hovertext}<extra></extra>"}
    if mark.is_quiet or not mark.name:
        return {"hoverinfo": "skip"}
    is_moment = isinstance(panel.x, TimeAxis) and not panel.x.is_relative
    x, y = (f"{escape_text(axis.title)}: " if axis.title else "" for axis in (panel.x, panel.y))
    place = f"%{{x|{_TIME}}}" if is_moment else "%{x}"
    return {"hovertemplate": f"{x}{place}<br>{y}%{{y}}<extra>%{{fullData.name}}</extra>"}


# --------------------------------------------------------------------------------------------------------------- marks


def _traces(mark: Mark, number: int, layout: PanelLayout, ink: str) -> Iterator[Any]:
    axis = layout.panel.x
    common: dict[str, Any] = _hover(mark, layout.panel)
    if mark.keys:
        common["customdata"] = list(mark.keys)
    match mark:
        case Bars():
            yield _bars(mark, layout, common, ink)
        case Line():
            line = {"color": _colour(mark.style, ink), "dash": _DASHES[mark.style.dash], "width": mark.style.width}
            mode = "lines" if len(mark.x) > 1 else "markers"
            yield Scatter(x=_places(axis, mark.x), y=mark.y, mode=mode, line=line, opacity=mark.style.opacity, **common)
        case Segments():
            yield _lines(mark, (mark.x0, mark.x1, mark.y0, mark.y1), axis, ink)
        case Points():
            marker = {**_marker(mark, ink), "size": [2 * r for r in mark.radii] or 2 * mark.radius}
            yield Scatter(x=_places(axis, mark.x), y=mark.y, mode="markers", marker=marker, **common)
        case Rules():
            y0 = mark.y0 if mark.y0 is not None else _ends(layout.panel.y)[0]
            y1 = mark.y1 if mark.y1 is not None else _ends(layout.panel.y)[1]
            full = np.ones(len(mark.x))
            yield _lines(mark, (mark.x, mark.x, y0 * full, y1 * full), axis, ink)
        case Texts():
            yield from _texts(mark, number, layout, ink)


def _colour(style: Style, ink: str) -> str:
    return ink if style.colour == INK else style.colour


def _bars(mark: Bars, layout: PanelLayout, common: dict[str, Any], ink: str) -> Bar:
    axis = layout.panel.x
    colour: Any = list(mark.colours) or _colour(mark.style, ink)
    style = mark.style
    opacity = 0.14 if style.is_tinted else style.opacity
    marker: dict[str, Any] = {"color": colour, "opacity": opacity, "line": {"width": 0}}
    if style.is_outline and not style.is_tinted:
        marker = {"color": "rgba(0,0,0,0)", "line": {"color": colour, "width": style.width}}
    if style.is_hatched:
        marker = {
            "color": "rgba(255,255,255,.55)", "pattern": {"shape": "/", "fgcolor": "#b00", "size": 6},
            "line": {"color": "#b00", "width": 1},
        }  # fmt: skip
    width = mark.x1 - mark.x0
    inset = 0.0
    if isinstance(layout.panel.y, LaneAxis) and mark.inset:
        inset = mark.inset / layout.panel.y.lanes[0].extent
    if isinstance(axis, TimeAxis) and axis.is_relative:
        width = width / 1000
    more: dict[str, Any] = {"textposition": "none"}
    if mark.labels:
        more = {"text": [escape_text(t) for t in mark.labels], "textposition": "inside"}
        if style.colour == INK:
            more["insidetextfont"] = {"color": ink}
    return Bar(
        x=_places(axis, (mark.x0 + mark.x1) / 2), width=width, base=mark.y0 + inset,
        y=mark.y1 - mark.y0 - 2 * inset, marker=marker,
        textangle=0, insidetextanchor="middle", **more, **common,
    )  # fmt: skip


def _marker(mark: Points, ink: str) -> dict[str, Any]:
    colour, symbol = _colour(mark.style, ink), _SYMBOLS[mark.symbol]
    is_line = mark.symbol in ("cross", "bar", "chevron")
    hollow = mark.style.is_outline and not is_line and not symbol.endswith(("open", "dot"))
    return {
        "color": colour, "symbol": f"{symbol}-open" if hollow else symbol, "opacity": mark.style.opacity,
        "line": {"color": colour, "width": max(2.0, mark.style.width) if is_line or hollow else 0},
    }  # fmt: skip


def _lines(mark: Mark, ends: tuple[Values, Values, Values, Values], axis: Axis, ink: str) -> Scatter:
    """Straight lines with nothing between them."""
    x0, x1, y0, y1 = ends
    nothing = np.full(len(x0), np.nan)
    x = np.stack([x0, x1, x1], axis=1).ravel()
    y = np.stack([y0, y1, nothing], axis=1).ravel()
    titles = [t for t in mark.titles for _ in range(3)]
    line = {"color": _colour(mark.style, ink), "dash": _DASHES[mark.style.dash], "width": mark.style.width}
    hover: dict[str, Any] = {"hoverinfo": "skip"}
    if titles:
        hover = {"hovertext": [escape_text(t) for t in titles], "hovertemplate": "%{hovertext}<extra></extra>"}
    return Scatter(x=_places(axis, x), y=y, mode="lines", line=line, opacity=mark.style.opacity, **hover)


def _ends(axis: Axis) -> tuple[float, float]:
    if isinstance(axis, LaneAxis):
        return 0.0, float(len(axis.lanes))
    assert isinstance(axis, NumberAxis)
    return axis.low, axis.high


def _texts(mark: Texts, number: int, layout: PanelLayout, ink: str) -> Iterator[Scatter]:
    """The texts that have room in the whole picture."""
    placed: Sequence[Any] = layout.texts[number]
    if not placed:
        return
    positions = {"start": "middle right", "end": "middle left", "middle": "top center"}
    for anchor in dict.fromkeys(t.anchor for t in placed):
        texts = [t for t in placed if t.anchor == anchor]
        rows = [t.number for t in texts]
        yield Scatter(
            x=_places(layout.panel.x, mark.x[rows]), y=mark.y[rows], text=[f" {escape_text(t.text)} " for t in texts],
            mode="text", textposition=positions[anchor], textfont={"size": mark.size, "color": ink}, hoverinfo="skip",
        )  # fmt: skip
