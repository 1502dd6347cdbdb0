"""Pictures as SVG: for what is saved with a notebook, printed, put into pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import escape_controls
from .picture import INK, Bars, LaneAxis, Line, Mark, NumberAxis, Picture, Points, Rules, Segments, Style, Texts
from .picture_layout import Layout, PanelLayout, PlacedEntry, lay_out
from .style import WIDTH, ink_on
from .text_places import PlacedText, text_width

SAVED_INK = "#4b5563"
"""The colour of texts and lines on white. Pictures in a page may take the page's own."""
_DASHES = {"": "", "dash": "6 3", "dot": "2 3", "dashdot": "8 3 2 3", "fine": "1 4"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#fff" fill-opacity=".55"/><rect width="2" height="6" fill="#b00"/></pattern>'
    "</defs>"
)


def escape_text(text: str) -> str:
    """A text for an SVG element: escaped, and without the characters that XML does not allow."""
    return html.escape(_NOT_XML.sub("\ufffd", escape_controls(text)))


def svg(picture: Picture, width: int = WIDTH, ink: str = SAVED_INK, *, has_titles: bool = True) -> str:
    """The picture as one SVG element, `width` px wide. `ink`: the colour of texts; `currentColor` for the page's.
    Without `has_titles` it has no texts for a pointer, and is smaller."""
    picture = picture if has_titles else picture.without_titles()
    layout = lay_out(picture, width)
    title = escape_text(picture.summary or picture.title)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {layout.height:.0f}" width="{width}" '
        f'height="{layout.height:.0f}" role="img" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{ink};max-width:100%;height:auto" fill="currentColor">'
        f"<title>{title}</title>",
        f"<desc>{escape_text(picture.description)}</desc>" if picture.description else "",
        _HATCH if any(m.style.is_hatched for m in picture.marks()) else "",
        *_title(layout),
        *(part for entry in layout.legend for part in _legend_entry(entry)),
        *(part for panel in layout.panels for part in _panel(panel, layout)),
        *(_text(note, 'font-style="italic" class="note"') for note in layout.notes),
        "</svg>",
    ]
    return "".join(out)


def _title(layout: Layout) -> Iterator[str]:
    for i, line in enumerate(layout.title):
        yield f'<text x="6" y="{18 + 18 * i}" font-size="14" font-weight="600">{escape_text(line)}</text>'


def _text(text: PlacedText, style: str = "", title: str = "") -> str:
    content = escape_text(text.text) + (f"<title>{escape_text(title)}</title>" if title else "")
    return f'<text x="{text.x:.1f}" y="{text.y:.1f}" text-anchor="{text.anchor}" {style}>{content}</text>'


# -------------------------------------------------------------------------------------------------------------- legend


def _legend_entry(entry: PlacedEntry) -> Iterator[str]:
    x, y, mark = entry.x, entry.y, entry.entry.mark
    if mark is not None:
        yield f'<g class="sample">{_sample(mark, x, y)}</g>'
    weight = ' font-weight="600"' if isinstance(mark, Segments) and mark.style.colour == INK else ""
    yield (
        f'<text x="{x + 20:.0f}" y="{y + 4:.0f}" class="legend"{weight}>{escape_text(entry.entry.name)}</text>'
    )


def _sample(mark: Mark, x: float, y: float) -> str:
    match mark:
        case Bars():
            return _rectangle((x, y - 6, 12, 12), mark.style, min(2.0, mark.rounding))
        case Points():
            radius = min(5.5, mark.radius)
            return _symbol(mark, x + 6, y, radius)
        case Texts():
            return _text(PlacedText(x + 6, y + 4, mark.texts[0] if mark.texts else "", "middle"))
        case Rules():
            return f'<line x1="{x + 6:.1f}" x2="{x + 6:.1f}" y1="{y - 7:.1f}" y2="{y + 7:.1f}" {_stroke(mark.style)}/>'
    return f'<line x1="{x:.1f}" x2="{x + 14:.1f}" y1="{y:.1f}" y2="{y:.1f}" {_stroke(mark.style)}/>'


# --------------------------------------------------------------------------------------------------------------- panel


def _panel(layout: PanelLayout, picture: Layout) -> Iterator[str]:
    panel, area = layout.panel, layout.area
    if panel.title:
        top = area.top - 10 - ((layout.words and 13) or 0)
        yield _text(PlacedText(area.left, top, panel.title, "start"), 'font-weight="600"')
    yield from _lanes(layout, picture)
    yield from _value_axis(layout)
    yield from _horizontal_axis(layout)
    for number, mark in enumerate(panel.marks):
        if mark.style.opacity or mark.titles:
            yield from _mark(mark, number, layout)
    for words in layout.words:
        yield _text(words, 'font-size="11" class="words"')


def _lanes(layout: PanelLayout, picture: Layout) -> Iterator[str]:
    axis = layout.panel.y
    if not isinstance(axis, LaneAxis):
        return
    for i, lane in enumerate(axis.lanes):
        top, bottom = layout.y.place(i), layout.y.place(i + 1)
        if lane.shade:
            yield (
                f'<rect x="0" y="{top:.1f}" width="{picture.width}" height="{bottom - top:.1f}" '
                f'fill-opacity="{lane.shade:g}"/>'
            )
        if layout.lane_names:
            style = 'class="lane"' + (' font-weight="600"' if lane.is_bold else "")
            yield _text(PlacedText(8, layout.y.place(i + 0.5) + 4, layout.lane_names[i], "start"), style, lane.title)


def _value_axis(layout: PanelLayout) -> Iterator[str]:
    """The vertical axis of numbers: its name, and a line over the whole panel for each tick."""
    axis, area = layout.panel.y, layout.area
    if not isinstance(axis, NumberAxis):
        return
    yield (
        f'<text transform="translate(14 {(area.top + area.bottom) / 2:.0f}) rotate(-90)" text-anchor="middle" '
        f'class="y-title">{escape_text(_cut(axis.title, 38))}</text>'
    )
    for value, tick in zip(axis.ticks, layout.y_ticks, strict=True):
        opacity = 0.6 if value == 0 else 0.15
        yield (
            f'<line x1="{area.left:.0f}" x2="{area.right:.0f}" y1="{tick.at:.1f}" y2="{tick.at:.1f}" '
            f'stroke="currentColor" stroke-opacity="{opacity}"/>'
        )
        yield _text(PlacedText(area.left - 7, tick.at + 4, tick.label, "end"), 'class="y-tick"')


def _horizontal_axis(layout: PanelLayout) -> Iterator[str]:
    area, axis = layout.area, layout.panel.x
    base = area.bottom
    has_context = any(t.context for t in layout.x_ticks)
    for tick in layout.x_ticks:
        if layout.panel.has_grid and isinstance(layout.panel.y, LaneAxis) and not isinstance(axis, LaneAxis):
            yield (
                f'<line x1="{tick.at:.1f}" x2="{tick.at:.1f}" y1="{area.top:.0f}" y2="{base:.0f}" '
                'stroke="currentColor" stroke-opacity=".13"/>'
            )
        elif not isinstance(axis, LaneAxis):
            yield (
                f'<line x1="{tick.at:.1f}" x2="{tick.at:.1f}" y1="{base:.0f}" y2="{base + 4:.0f}" '
                'stroke="currentColor" stroke-opacity=".6"/>'
            )
        yield _text(PlacedText(tick.at, base + 17, tick.label), 'class="x-tick"')
        if tick.context:
            yield _text(PlacedText(tick.at, base + 31, tick.context), 'fill-opacity=".75" class="x-tick"')
    for gap in layout.breaks:
        yield (
            f'<path d="M{gap.x - 6:.1f} {base + 6:.0f}l5 -12M{gap.x + 1:.1f} {base + 6:.0f}l5 -12" fill="none" '
            'stroke="currentColor"/>'
        )
        yield _text(PlacedText(gap.x, base - 10, gap.text), 'font-size="10" fill-opacity=".8" class="gap"')
    if axis.title:
        y = base + (17 if layout.x_ticks else 0) + (14 if has_context else 0) + 16
        yield _text(PlacedText((area.left + area.right) / 2, y, _cut(axis.title, 60)), 'class="x-title"')


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# --------------------------------------------------------------------------------------------------------------- marks


def _mark(mark: Mark, number: int, layout: PanelLayout) -> Iterator[str]:
    match mark:
        case Bars():
            yield from _bars(mark, layout)
        case Line():
            yield from _line(mark, layout)
        case Segments():
            yield from _segments(mark, layout)
        case Points():
            yield from _points(mark, layout)
        case Texts():
            yield from _texts(mark, layout.texts[number])
        case Rules():
            yield from _rules(mark, layout)


def _fill(style: Style, colour: str | None = None) -> str:
    """The attributes of a shape of this look."""
    colour = colour or style.colour
    if style.is_hatched:
        return f'fill="url(#hatch)" stroke="{colour}"'
    if not style.is_outline:
        return f'fill="{colour}"' + (f' fill-opacity="{style.opacity:g}"' if style.opacity < 1 else "")
    ground = f'fill="{colour}" fill-opacity=".14"' if style.is_tinted else 'fill="none"'
    return f"{ground} {_stroke(style, colour)}"


def _stroke(style: Style, colour: str | None = None) -> str:
    dash = f' stroke-dasharray="{_DASHES[style.dash]}"' if style.dash else ""
    opacity = f' stroke-opacity="{style.opacity:g}"' if style.opacity < 1 else ""
    return f'stroke="{colour or style.colour}" stroke-width="{style.width:g}"{dash}{opacity}'


def _with_title(shape: str, mark: Mark, i: int) -> str:
    """A shape, with its text for a pointer if it has one."""
    if not mark.titles or not mark.titles[i]:
        return shape
    return f"<g><title>{escape_text(mark.titles[i])}</title>{shape}</g>"


def _class(mark: Mark) -> str:
    return f' class="{mark.part}"' if mark.part else ""


def _rectangle(place: tuple[float, ...], style: Style, rounding: float, more: str = "") -> str:
    """A rectangle at x, y, with a width and a height; an outline is within it."""
    x, y, width, height = place
    half = style.width / 2 if style.is_outline else 0.0
    corners = f' rx="{rounding:g}"' if rounding else ""
    return (
        f'<rect x="{x + half:.1f}" y="{y + half:.1f}" width="{max(0.5, width - 2 * half):.1f}" '
        f'height="{max(0.5, height - 2 * half):.1f}"{corners} {more or _fill(style)}/>'
    )


def _bars(mark: Bars, layout: PanelLayout) -> Iterator[str]:
    left, right = np.sort([layout.x.places(mark.x0), layout.x.places(mark.x1)], axis=0)
    top, bottom = np.sort([layout.y.places(mark.y0), layout.y.places(mark.y1)], axis=0)
    inside = np.isfinite(top) & np.isfinite(bottom) & (right >= layout.area.left) & (left <= layout.area.right)
    left, right = (np.clip(x, layout.area.left, layout.area.right) for x in (left, right))
    right = np.maximum(right, left + mark.least)
    top, bottom = top + mark.inset, bottom - mark.inset
    rows = list(zip(*(v.tolist() for v in (left, top, right - left, bottom - top)), strict=True))
    is_inside = inside.tolist()
    if mark.titles or mark.colours or mark.rounding or mark.style.is_outline or mark.style.is_hatched:
        for i, row in enumerate(rows):
            if is_inside[i]:
                fill = _fill(mark.style, mark.colours[i] if mark.colours else None) + _class(mark)
                yield _with_title(_rectangle(row, mark.style, mark.rounding, fill), mark, i)
    elif any(is_inside):  # one shape for all
        shapes = [row for row, is_shown in zip(rows, is_inside, strict=True) if is_shown]
        path = "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h-{w:.1f}z" for x, y, w, h in shapes)
        yield f'<path d="{path}" {_fill(mark.style)}{_class(mark)}/>'
    yield from _bar_labels(mark, [(row, i) for i, row in enumerate(rows) if is_inside[i]], layout)


def _bar_labels(mark: Bars, rows: Sequence[tuple[tuple[float, ...], int]], layout: PanelLayout) -> Iterator[str]:
    """The labels that have room in their bars."""
    for (x, y, width, height), i in rows if mark.labels else ():
        label = mark.labels[i]
        if not label:
            continue
        if mark.overflows:
            later = [row[0] for row, _ in rows if row[1] == y and row[0] > x]
            room = max(width, min([*later, layout.area.right]) - x)
            if room > text_width(label) + 5:
                yield _text(PlacedText(x + 5, y + height / 2 + 4, label, "start"))
        elif height >= 15 and width >= text_width(label) + 2:
            colour = mark.colours[i] if mark.colours else mark.style.colour
            ink = f'fill="{ink_on(colour)}" class="value"'
            yield _text(PlacedText(x + width / 2, y + height / 2 + 4, label), ink)


def _line(mark: Line, layout: PanelLayout) -> Iterator[str]:
    x, y = layout.x.places(mark.x), layout.y.places(mark.y)
    area = layout.area
    goes_beyond = len(x) and (x.min() < area.left - 1 or x.max() > area.right + 1)
    if goes_beyond:
        clip = f"plot-{area.left:.0f}-{area.top:.0f}-{area.right:.0f}-{area.bottom:.0f}"
        yield (
            f'<clipPath id="{clip}"><rect x="{area.left:.0f}" y="{area.top - 4:.0f}" '
            f'width="{area.right - area.left:.0f}" height="{area.bottom - area.top + 8:.0f}"/></clipPath>'
            f'<g clip-path="url(#{clip})">'
        )
    parts = np.split(np.arange(len(x)), np.flatnonzero(~np.isfinite(y)))
    for part in parts:
        run = part[np.isfinite(y[part])]
        if len(run) == 1:
            colour = mark.style.colour
            yield f'<circle cx="{x[run[0]]:.1f}" cy="{y[run[0]]:.1f}" r="2.2" fill="{colour}"{_class(mark)}/>'
        elif len(run):
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[run].tolist(), y[run].tolist(), strict=True))
            yield f'<polyline points="{points}" fill="none" {_stroke(mark.style)}{_class(mark)}/>'
    if goes_beyond:
        yield "</g>"


def _segments(mark: Segments, layout: PanelLayout) -> Iterator[str]:
    places = [layout.x.places(mark.x0) - mark.overhang, layout.x.places(mark.x1) + mark.overhang]
    places += [layout.y.places(mark.y0), layout.y.places(mark.y1)]
    first, last = layout.area.left, layout.area.right
    for i, (x0, x1, y0, y1) in enumerate(zip(*(p.tolist() for p in places), strict=True)):
        if np.isfinite(y0) and np.isfinite(y1) and x1 >= first and x0 <= last:
            x0, x1 = max(x0, first - mark.overhang), min(x1, last + mark.overhang)
            yield _with_title(_straight(x0, x1, y0, y1, _stroke(mark.style) + _class(mark)), mark, i)


def _straight(x0: float, x1: float, y0: float, y1: float, look: str) -> str:
    return f'<line x1="{x0:.1f}" x2="{x1:.1f}" y1="{y0:.1f}" y2="{y1:.1f}" {look}/>'


def _points(mark: Points, layout: PanelLayout) -> Iterator[str]:
    rows = zip(layout.x.places(mark.x).tolist(), layout.y.places(mark.y).tolist(), strict=True)
    for i, (x, y) in enumerate(rows):
        if np.isfinite(y) and layout.area.left - 1 <= x <= layout.area.right + 1:
            radius = mark.radii[i] if mark.radii else mark.radius
            yield _with_title(_symbol(mark, x, y, radius, _class(mark)), mark, i)


def _symbol(mark: Points, x: float, y: float, r: float, more: str = "") -> str:
    """The symbol of a mark, with a radius of about `r` px."""
    style = mark.style
    look = _fill(style) + more
    stroke = f'fill="none" stroke="{style.colour}" stroke-width="{max(2.0, style.width):g}"{more}'
    match mark.symbol:
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" {look}/>'
        case "square":
            return f'<rect x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r:g}" height="{2 * r:g}" rx="1.5" {look}/>'
        case "triangle":
            return f'<path d="M{x:.1f} {y - r:.1f}l{r:.1f} {1.8 * r:.1f}h{-2 * r:.1f}z" {look}/>'
        case "diamond":
            h = f"{1.2 * r:.1f}"
            return f'<path d="M{x:.1f} {y - 1.2 * r:.1f}l{h} {h}l-{h} {h}l-{h} -{h}z" {look}/>'
        case "arrow":
            return f'<path d="M{x + 2:.1f} {y - r:.1f}l{1.4 * r:.1f} {r:g}l-{1.4 * r:.1f} {r:g}z" {look}/>'
        case "chevron":
            return f'<path d="M{x:.1f} {y - r:.1f}l{1.4 * r:.1f} {r:g}l-{1.4 * r:.1f} {r:g}" {stroke}/>'
        case "cross":
            d = f"{2 * r:g}"
            return f'<path d="M{x - r:.1f} {y - r:.1f}l{d} {d}m0 -{d}l-{d} {d}" {stroke}/>'
        case "bar":
            return _straight(x, x, y - r, y + r, _stroke(style) + more)
    clock = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" fill="none" {_stroke(style)}/>'
    hands = f"M{x:.1f} {y - r * 0.7:.1f}v{r * 0.7:.1f}l{r / 2:.1f} {r / 3:.1f}"
    return f'{clock}<path d="{hands}" fill="none" {_stroke(style)}/>'


def _texts(mark: Texts, texts: Sequence[PlacedText]) -> Iterator[str]:
    style = "" if mark.size == 12 else f'font-size="{mark.size:g}" '
    style += 'font-weight="600" ' if mark.is_bold else ""
    style += 'font-style="italic" ' if mark.is_italic else ""
    style += 'fill="#111" stroke="#fff" stroke-width="2.5" paint-order="stroke"' if mark.signs else ""
    for text in texts:
        yield _text(text, style.strip() + _class(mark), mark.titles[text.number] if mark.titles else "")


def _rules(mark: Rules, layout: PanelLayout) -> Iterator[str]:
    top = layout.area.top - 4 if mark.y0 is None else layout.y.place(mark.y0)
    bottom = layout.area.bottom if mark.y1 is None else layout.y.place(mark.y1)
    for i, x in enumerate(layout.x.places(mark.x).tolist()):
        if layout.area.left - 1 <= x <= layout.area.right + 1:
            yield _with_title(_straight(x, x, top, bottom, _stroke(mark.style) + _class(mark)), mark, i)
