"""Lanes of pictures: which texts have room in them, and that both renderers place them alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from sparkstream_nb.charts.loading import draw_figure
from sparkstream_nb.charts.picture import (
    INK,
    Bars,
    Lane,
    LaneAxis,
    Mark,
    Panel,
    Picture,
    Points,
    Style,
    Texts,
    TimeAxis,
    floats,
)
from sparkstream_nb.charts.picture_layout import PanelLayout, lay_out
from sparkstream_nb.charts.plotly_picture import plotly_figure
from sparkstream_nb.charts.svg_picture import svg

LANES = [Lane("one, two, three", 20, title="one & all"), Lane("b", 30), Lane("c", 10)]


def picture(*marks: Mark, lanes: Any = LANES) -> Picture:
    return Picture("t", [Panel(TimeAxis("clock", [(0, 10_000)], is_relative=True), LaneAxis(lanes), marks)])


def layout_of(*marks: Mark) -> PanelLayout:
    return lay_out(picture(*marks)).panels[0]


def texts(x: list[float], y: list[float], words: list[str], **how: Any) -> Texts:
    return Texts(x=floats(x), y=floats(y), texts=words, **how)


def test_a_text_is_left_out_where_it_would_overlap_another_one_of_its_lane() -> None:
    layout = layout_of(
        texts([1000, 1020, 1000, 5000], [0.5, 0.5, 1.5, 0.5], ["first", "covered", "below", "later"]),
        texts([1000, 1000], [0.5, 0.5], ["covered", "above"], shift=4),
        texts([1000], [0.5], ["above"], shift=-8),
    )
    assert [t.text for t in layout.texts[0]] == ["first", "below", "later"]
    assert layout.texts[1] == []
    assert [t.text for t in layout.texts[2]] == ["above"]


def test_texts_are_cut_to_their_span_and_to_the_room_beside_others() -> None:
    name = texts([1000], [0.5], ["name"])
    words = ["a long text for a span"] * 3
    span = texts([4000, 7000, 9000], [0.5] * 3, words, spans=floats([3000, 1000, 100]))
    first, second = layout_of(name, span).texts[1]
    assert first.text == words[0]
    assert second.text == "a long te…"
    (third,) = layout_of(name, texts([2000], [0.5], words[:1], spans=floats([3000]))).texts[1]
    assert third.text == "a long text for a…"


@pytest.mark.parametrize(("neighbour", "count"), [("", 1), ("xx", 0)])
def test_a_text_to_the_left_is_lifted_unless_it_would_touch_another_one(neighbour: str, count: int) -> None:
    above = texts([9990], [1.5], [neighbour], shift=-8)
    beside = texts([10_000], [1.5], ["the end"], anchor="beside", lift=12)
    layout = layout_of(above, beside)
    assert len(layout.texts[1]) == count
    for text in layout.texts[1]:
        assert (text.anchor, text.y) == ("end", layout.y.place(1.5) - 8)


def test_names_of_lanes_are_cut_after_a_whole_value() -> None:
    long = Lane(", ".join(f"value {i}" for i in range(20)), title="all of them")
    name = lay_out(picture(lanes=[long])).panels[0].lane_names[0]
    assert name.endswith("…")
    assert name[:-1] == ", ".join(f"value {i}" for i in range(name.count(",") + 1))
    root = ElementTree.fromstring(svg(picture(lanes=[long])))
    assert [e.text for e in root.iter() if e.tag.endswith("}title")][1:] == ["all of them"]
    assert "all of them" not in svg(picture(lanes=[long]), has_titles=False)


def test_figures_have_lanes_where_the_layout_has_them() -> None:
    points = Points(x=floats([0, 1, 2]), y=floats([0.5, 1.5, 2.5]))
    bars = Bars(
        x0=floats([0]), x1=floats([0]), y0=floats([1]), y1=floats([2]), least=5, inset=3, style=Style("#0072B2")
    )
    labels = texts([1000, 1001, 1002], [0.5] * 3, ["a label", "another label", "a third"], anchor="beside", rows=3)
    shown = picture(points, bars, labels)
    layout, figure = lay_out(shown).panels[0], draw_figure(shown)
    assert list(figure.data[0].y) == [layout.y.place(v) for v in (0.5, 1.5, 2.5)]
    bar = figure.data[1]
    assert (bar.base[0], bar.y[0]) == (layout.y.place(1) + 3, 24)
    assert bar.width * 1000 * layout.x.per_ms == pytest.approx(5)  # type: ignore[attr-defined]
    assert len({y for part in figure.data[2:] for y in part.y}) > 1, "labels in rows below one another"
    assert list(figure.layout.yaxis.tickvals) == [layout.y.place(v) for v in (0.5, 1.5, 2.5)]
    assert list(figure.layout.yaxis.range) == [layout.area.bottom, layout.area.top]


def test_a_tinted_outline_has_a_line_and_a_pale_ground() -> None:
    style = Style("#0072B2", is_outline=True, is_tinted=True, width=2)
    figure = draw_figure(picture(Bars(x0=floats([0]), x1=floats([9]), y0=floats([1]), y1=floats([2]), style=style)))
    marker = figure.data[0].marker
    assert (marker.color, marker.line.color, marker.line.width) == ("rgba(0,114,178,.14)", "#0072B2", 2)
    page = Bars(x0=floats([0]), x1=floats([9]), y0=floats([1]), y1=floats([2]), style=replace(style, colour=INK))
    assert plotly_figure(picture(page)).data[0]["marker"]["color"] == "rgba(128,128,128,.14)"
    assert draw_figure(picture(page)).data[0].marker.color == "rgba(68,68,68,.14)"
