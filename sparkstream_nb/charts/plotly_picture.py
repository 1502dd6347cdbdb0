"""Pictures as Plotly's script draws them: traces and a layout, as plain data. Plotly itself is not needed here.

Texts that come from events are escaped: Plotly reads a part of HTML in names and hover texts.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import escape_controls
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
    Veil,
)
from .picture_layout import Layout, PanelLayout, lay_out
from .scales import TimeScale
from .style import WIDTH, ink_on

Trace = dict[str, Any]
"""A trace of a figure, by Plotly's names."""
_TIME = "%Y-%m-%d %H:%M:%S.%L"
_DASHES = {"": "solid", "dash": "dash", "dot": "dot", "dashdot": "dashdot", "fine": "dot"}
_SYMBOLS = {
    "circle": "circle", "square": "square", "diamond": "diamond", "triangle": "triangle-up", "arrow": "triangle-right",
    "chevron": "arrow-right-open", "cross": "x-thin", "bar": "line-ns", "clock": "circle-open-dot",
}  # fmt: skip


def escape_text(text: object) -> str:
    """A text as Plotly shows it unchanged in a title, a name or a hover text."""
    escaped_text = html.escape(escape_controls(str(text)), quote=False).replace("%{", "%&#123;")
    return escaped_text.replace("\n", "<br>")


@dataclass
class PlotlyFigure:
    """A figure: its traces, and its layout; arrays in them are numpy's."""

    data: list[Trace]
    layout: dict[str, Any]


def plotly_figure(picture: Picture, width: int = WIDTH, ink: str = INK) -> PlotlyFigure:
    """The picture as a figure, laid out for `width` px. `ink`: the colour of texts and lines that have the page's."""
    layout = lay_out(picture, width)
    traces: list[Trace] = []
    names: set[str] = set()
    for i, panel in enumerate(layout.panels):
        axes = {"xaxis": f"x{_number(i)}", "yaxis": f"y{_number(i)}"}
        for number, mark in enumerate(panel.panel.marks):
            for trace in _traces(mark, number, panel, ink):
                is_first = bool(mark.name) and mark.name not in names
                names.add(mark.name)
                traces.append(
                    {"name": escape_text(mark.name), "legendgroup": mark.name, "showlegend": is_first, **axes, **trace}
                )
    for entry in picture.legend:
        if entry.mark is not None:
            sample = {"color": _colour(entry.mark.style, ink), "symbol": "square", "size": 11}
            look = {"mode": "markers", "marker": sample, "name": escape_text(entry.name), "showlegend": True}
            traces.append({"type": "scatter", "x": [None], "y": [None], **look})
    return PlotlyFigure(traces, _layout(layout, ink))


def _number(panel: int) -> str:
    """The number of a panel's axes: nothing for the first one."""
    return str(panel + 1) if panel else ""


def _layout(layout: Layout, ink: str) -> dict[str, Any]:
    """The title, the legend and the panels, where `layout` has them, on a plain ground."""
    picture, height = layout.picture, layout.height
    areas = [panel.area for panel in layout.panels]
    left, right = areas[0].left, max(a.right for a in areas)
    top, bottom = areas[0].top, areas[-1].bottom
    out: dict[str, Any] = {
        "barmode": "overlay", "hovermode": "closest", "hoverlabel": {"namelength": -1, "align": "left"},
        "uirevision": picture.title, "font": {"color": ink, "size": 12}, "height": round(height + 10),
        "margin": {"l": left, "r": layout.width - right, "t": top, "b": height - bottom + 10},
        "title": {
            "text": "<br>".join(escape_text(line) for line in layout.title), "font": {"size": 14, "weight": 600},
            "xref": "container", "x": 0, "pad": {"l": 6}, "yref": "container", "yanchor": "top",
            "y": 1 - (6 + 18 * (len(layout.title) - 1)) / height,  # where the last line is
        },
        "legend": {
            "orientation": "h", "bgcolor": "rgba(0,0,0,0)", "xref": "container", "x": 0, "yref": "container",
            "y": 1 - (layout.legend[0].y - 12 if layout.legend else 0) / height, "yanchor": "top",
        },
        "showlegend": bool(layout.legend), "annotations": [], "shapes": [],
    }  # fmt: skip
    width, height_px = right - left, bottom - top
    for i, (panel, area) in enumerate(zip(layout.panels, areas, strict=True)):
        number = _number(i)
        x = {"domain": [(area.left - left) / width, (area.right - left) / width], "anchor": f"y{number}"}
        y = {"domain": [1 - (area.bottom - top) / height_px, 1 - (area.top - top) / height_px], "anchor": f"x{number}"}
        out[f"xaxis{number}"] = {**x, **_horizontal_axis(panel)}
        out[f"yaxis{number}"] = {**y, **_vertical_axis(panel)}
        out["annotations"] += _annotations(panel, number, (x["domain"][0], y["domain"][0], y["domain"][1]))
        out["shapes"] += [*_shades(panel, number, ink), *_veils(panel, number)]
    out["annotations"] += [
        {
            "text": f"<i>{escape_text(note.text)}</i>", "showarrow": False, "xref": "paper", "x": 0, "xshift": 8 - left,
            "xanchor": "left", "yref": "paper", "y": 0, "yshift": bottom - note.y - 4, "yanchor": "bottom",
        }
        for note in layout.notes
    ]  # fmt: skip
    return out


def _annotations(panel: PanelLayout, number: str, edges: tuple[Any, Any, Any]) -> Iterator[dict[str, Any]]:
    """The title of a panel, the words of its rules, the breaks of its axis; `edges`: its left, lower and upper edge as
    parts of the whole plot."""
    left, bottom, top = edges
    area = panel.area
    for gap in panel.breaks:
        yield {
            "text": f"⫽<br>{gap.text}", "showarrow": False, "xref": f"x{number} domain", "xanchor": "center",
            "x": (gap.x - area.left) / (area.right - area.left), "yref": "paper", "y": bottom, "yanchor": "middle",
            "font": {"size": 10},
        }  # fmt: skip
    for words in panel.words:
        yield {
            "text": escape_text(words.text), "showarrow": False, "xref": f"x{number}", "xanchor": "left",
            "x": _places(panel.panel.x, np.array([words.value]))[0], "yref": "paper", "y": top, "yanchor": "bottom",
            "yshift": area.top - words.y - 4, "font": {"size": 11},
        }  # fmt: skip
    if panel.panel.title:
        yield {
            "text": f"<b>{escape_text(panel.panel.title)}</b>", "showarrow": False, "xref": "paper", "x": left,
            "xanchor": "left", "yref": "paper", "y": top, "yanchor": "bottom", "yshift": 4,
        }  # fmt: skip


def _shades(panel: PanelLayout, number: str, ink: str) -> Iterator[dict[str, Any]]:
    """The grounds of lanes."""
    for i, lane in enumerate(panel.panel.y.lanes if isinstance(panel.panel.y, LaneAxis) else ()):
        if lane.shade:
            yield {
                "type": "rect", "xref": f"x{number} domain", "x0": 0, "x1": 1, "yref": f"y{number}",
                "y0": panel.y.place(i), "y1": panel.y.place(i + 1), "fillcolor": ink, "opacity": lane.shade,
                "line": {"width": 0}, "layer": "below",
            }  # fmt: skip


def _veils(panel: PanelLayout, number: str) -> Iterator[dict[str, Any]]:
    """The veils, which Plotly draws over traces only as shapes."""
    for veil in panel.panel.marks:
        if isinstance(veil, Veil):
            edges = [_places(panel.panel.x, x) for x in (veil.x0, veil.x1)]
            heights = [_heights(panel, y) for y in (veil.y0, veil.y1)]
            for x0, x1, y0, y1 in zip(*edges, *heights, strict=True):
                yield {
                    "type": "rect", "xref": f"x{number}", "x0": x0, "x1": x1, "yref": f"y{number}", "y0": y0, "y1": y1,
                    "fillcolor": veil.style.colour, "opacity": veil.style.opacity, "line": {"width": 0},
                    "layer": "above",
                }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- axes


def _horizontal_axis(layout: PanelLayout) -> dict[str, Any]:
    axis = layout.panel.x
    common: dict[str, Any] = {
        "title": {"text": escape_text(axis.title), "font": {"size": 12}, "standoff": 6}, "zeroline": False,
        "ticks": "outside", "ticklen": 4,
    }  # fmt: skip
    if isinstance(axis, LaneAxis):
        # Lanes that are narrower than their share leave room at the right.
        columns = (layout.area.right - layout.area.left) / max(1.0, layout.x.place(1) - layout.area.left)
        names, places = [lane.name for lane in axis.lanes], [i + 0.5 for i in range(len(axis.lanes))]
        return {**common, **_lane_ticks(axis, names, places), "range": [0, max(columns, len(axis.lanes))]}
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
    """An axis of numbers as it is; lanes at their places in px, as they differ in height."""
    axis = layout.panel.y
    if isinstance(axis, NumberAxis):
        title = {"text": escape_text(axis.title), "font": {"size": 12}}
        return {"title": title, "range": [axis.low, axis.high]}
    assert isinstance(axis, LaneAxis)
    ticks: dict[str, Any] = {"showticklabels": False}
    if layout.lane_names:
        ticks = _lane_ticks(axis, layout.lane_names, [layout.y.place(i + 0.5) for i in range(len(axis.lanes))])
        ticks["ticklabelstandoff"] = 9  # for symbols at the edge
    return {**ticks, "showgrid": False, "zeroline": False, "range": [layout.area.bottom, layout.area.top]}


def _lane_ticks(axis: LaneAxis, names: Sequence[str], places: Sequence[float]) -> dict[str, Any]:
    texts = [
        f"<b>{escape_text(name)}</b>" if lane.is_bold else escape_text(name)
        for lane, name in zip(axis.lanes, names, strict=True)
    ]
    return {"tickmode": "array", "tickvals": list(places), "ticktext": texts, "showgrid": False}


def _heights(layout: PanelLayout, values: Values) -> Values:
    """Values as the vertical axis has them."""
    return layout.y.places(values) if isinstance(layout.panel.y, LaneAxis) else values


def _moments(ms: Values) -> list[str]:
    return np.datetime_as_string(ms.astype("datetime64[ms]")).tolist()  # type: ignore[no-any-return]


def _places(axis: Axis, values: Values) -> Any:
    """Values as Plotly takes them: moments of an axis of times, seconds of one of durations."""
    if not isinstance(axis, TimeAxis):
        return values
    return values / 1000 if axis.is_relative else np.rint(values).astype("datetime64[ms]")


def _hover(mark: Mark, panel: Panel) -> dict[str, Any]:
    """The text under a pointer: the mark's own, else its values, but no number of a lane."""
    if mark.titles:
        return {"hovertext": [escape_text(t) for t in mark.titles], "hovertemplate": "%{hovertext}<extra></extra>"}
    if mark.is_quiet or not mark.name:
        return {"hoverinfo": "skip"}
    is_moment = isinstance(panel.x, TimeAxis) and not panel.x.is_relative
    x, y = (f"{escape_text(axis.title)}: " if axis.title else "" for axis in (panel.x, panel.y))
    place = f"%{{x|{_TIME}}}" if is_moment else "%{x}"
    height = "" if isinstance(panel.y, LaneAxis) else f"<br>{y}%{{y}}"
    return {"hovertemplate": f"{x}{place}{height}<extra>%{{fullData.name}}</extra>"}


# --------------------------------------------------------------------------------------------------------------- marks


def _traces(mark: Mark, number: int, layout: PanelLayout, ink: str) -> Iterator[Trace]:
    axis = layout.panel.x
    common: dict[str, Any] = _hover(mark, layout.panel)
    if mark.keys:
        common["customdata"] = list(mark.keys)
    match mark:
        case Veil():
            return
        case Bars():
            yield _bars(mark, layout, common, ink)
        case Line():
            line = {"color": _colour(mark.style, ink), "dash": _DASHES[mark.style.dash], "width": mark.style.width}
            mode = "lines" if len(mark.x) > 1 else "markers"
            look = {"mode": mode, "line": line, "opacity": mark.style.opacity, **common}
            yield {"type": "scatter", "x": _places(axis, mark.x), "y": _heights(layout, mark.y), **look}
        case Segments():
            yield _lines(mark, (mark.x0, mark.x1, mark.y0, mark.y1), layout, ink)
        case Points():
            marker = {**_marker(mark, ink), "size": [2 * r for r in mark.radii] or 2 * mark.radius}
            look = {"mode": "markers", "marker": marker, "cliponaxis": False, **common}
            yield {"type": "scatter", "x": _places(axis, mark.x), "y": _heights(layout, mark.y), **look}
        case Rules():
            y0 = mark.y0 if mark.y0 is not None else _ends(layout.panel.y)[0]
            y1 = mark.y1 if mark.y1 is not None else _ends(layout.panel.y)[1]
            full = np.ones(len(mark.x))
            yield _lines(mark, (mark.x, mark.x, y0 * full, y1 * full), layout, ink)
        case Texts():
            yield from _texts(mark, number, layout, ink)


def _colour(style: Style, ink: str) -> str:
    return ink if style.colour == INK else style.colour


def _tint(colour: str) -> str:
    """A colour (`#rgb` or `#rrggbb`) as a pale ground; grey for the page's own, which only the page knows."""
    if not colour.startswith("#"):
        return "rgba(128,128,128,.14)"
    digits = colour[1:] if len(colour) == 7 else "".join(2 * d for d in colour[1:])
    return f"rgba({','.join(str(int(digits[i : i + 2], 16)) for i in (0, 2, 4))},.14)"


def _bars(mark: Bars, layout: PanelLayout, common: dict[str, Any], ink: str) -> Trace:
    axis = layout.panel.x
    colour: Any = list(mark.colours) or _colour(mark.style, ink)
    style = mark.style
    marker: dict[str, Any] = {"color": colour, "opacity": style.opacity, "line": {"width": 0}}
    if style.is_outline:
        ground: Any = "rgba(0,0,0,0)"
        if style.is_tinted:
            ground = [_tint(c) for c in colour] if mark.colours else _tint(colour)
        marker = {"color": ground, "line": {"color": colour, "width": style.width}}
    if style.is_hatched:
        marker = {
            "color": "rgba(255,255,255,.55)", "pattern": {"shape": "/", "fgcolor": "#b00", "size": 6},
            "line": {"color": "#b00", "width": 1},
        }  # fmt: skip
    width: Any = mark.x1 - mark.x0
    if isinstance(layout.x, TimeScale):
        width = np.maximum(width, mark.least / layout.x.per_ms)
    low, high = _heights(layout, mark.y0), _heights(layout, mark.y1)
    inset = mark.inset if isinstance(layout.panel.y, LaneAxis) else 0.0
    if isinstance(axis, TimeAxis) and axis.is_relative:
        width = width / 1000
    if len(width) and width.min() == width.max():
        width = float(width[0])
    more: dict[str, Any] = {"textposition": "none"}
    if mark.labels:
        more = {"text": [escape_text(t) for t in mark.labels], "textposition": "inside"}
        inks = [ink_on(c) for c in mark.colours] or (ink if style.colour == INK else ink_on(style.colour))
        more["insidetextfont"] = {"color": inks}
    return {
        "type": "bar", "x": _places(axis, (mark.x0 + mark.x1) / 2), "width": width, "base": low + inset,
        "y": high - low - 2 * inset, "marker": marker, "textangle": 0, "insidetextanchor": "middle", **more, **common,
    }  # fmt: skip


def _marker(mark: Points, ink: str) -> dict[str, Any]:
    colour, symbol = _colour(mark.style, ink), _SYMBOLS[mark.symbol]
    is_line = mark.symbol in ("cross", "bar", "chevron", "clock")
    hollow = mark.style.is_outline and not is_line
    return {
        "color": colour, "symbol": f"{symbol}-open" if hollow else symbol, "opacity": mark.style.opacity,
        "line": {"color": colour, "width": max(2.0, mark.style.width) if is_line or hollow else 0},
    }  # fmt: skip


def _lines(mark: Mark, ends: tuple[Values, Values, Values, Values], layout: PanelLayout, ink: str) -> Trace:
    """Straight lines with nothing between them."""
    x0, x1, y0, y1 = ends
    nothing = np.full(len(x0), np.nan)
    x = np.stack([x0, x1, x1], axis=1).ravel()
    y = np.stack([_heights(layout, y0), _heights(layout, y1), nothing], axis=1).ravel()
    titles = [t for t in mark.titles for _ in range(3)]
    line = {"color": _colour(mark.style, ink), "dash": _DASHES[mark.style.dash], "width": mark.style.width}
    hover: dict[str, Any] = {"hoverinfo": "skip"}
    if titles:
        hover = {"hovertext": [escape_text(t) for t in titles], "hovertemplate": "%{hovertext}<extra></extra>"}
    look = {"mode": "lines", "line": line, "opacity": mark.style.opacity, **hover}
    return {"type": "scatter", "x": _places(layout.panel.x, x), "y": y, **look}


def _ends(axis: Axis) -> tuple[float, float]:
    if isinstance(axis, LaneAxis):
        return 0.0, float(len(axis.lanes))
    assert isinstance(axis, NumberAxis)
    return axis.low, axis.high


def _texts(mark: Texts, number: int, layout: PanelLayout, ink: str) -> Iterator[Trace]:
    """The texts that have room in the whole picture."""
    texts_with_room: Sequence[Any] = layout.texts[number]
    if not texts_with_room:
        return
    has_lanes = isinstance(layout.panel.y, LaneAxis)
    positions = {
        "start": "middle right",
        "end": "middle left",
        "middle": "middle center" if has_lanes else "top center",
    }
    font = {
        "size": mark.size, "color": ink, "weight": 600 if mark.is_bold else "normal",
        "style": "italic" if mark.is_italic else "normal",
    }  # fmt: skip
    for anchor in dict.fromkeys(t.anchor for t in texts_with_room):
        texts = [t for t in texts_with_room if t.anchor == anchor]
        rows = [t.number for t in texts]
        # The layout has the height of a text's foot.
        y = np.array([t.y - mark.size / 3 for t in texts]) if has_lanes else mark.y[rows]
        space = "\u2002\u2005" if mark.anchor == "beside" else " "  # 8 px, as in the layout
        yield {
            "type": "scatter", "x": _places(layout.panel.x, mark.x[rows]), "y": y, "mode": "text", "textfont": font,
            "text": [f"{space}{escape_text(t.text)}{space}" for t in texts], "textposition": positions[anchor],
            "hoverinfo": "skip", "cliponaxis": False,
        }  # fmt: skip
