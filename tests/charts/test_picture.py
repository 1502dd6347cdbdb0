"""Pictures as data, and what both renderers draw of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.charts.loading import draw_figure
from sparkstream_nb.charts.picture import (
    Bars,
    Lane,
    LaneAxis,
    LegendEntry,
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
    floats,
)
from sparkstream_nb.charts.picture_layout import lay_out
from sparkstream_nb.charts.svg_picture import svg
from sparkstream_nb.charts.text_places import text_width

SVG = "{http://www.w3.org/2000/svg}"
START = 1_717_236_000_000  # 2024-06-01 10:00 UTC
HOUR = 3_600_000
TEXT = st.text(max_size=12)


def over_time(*marks: Mark, height: float = 30.0, spans: Any = ((START, START + HOUR),)) -> Picture:
    """Marks on two lanes over an hour."""
    lanes = LaneAxis([Lane("one", height), Lane("<two>", height)])
    return Picture("<title>", [Panel(TimeAxis("time (UTC)", spans), lanes, marks)], ["a <note>"], "what it shows")


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Pictures of all kinds of marks, with any texts and numbers."""
    n = draw(st.integers(0, 6))
    texts = draw(st.lists(TEXT, min_size=n, max_size=n))
    number = st.floats(-1e6, 1e6) | st.just(float("nan"))
    x = np.sort(floats(draw(st.lists(st.floats(0, HOUR), min_size=n, max_size=n)))) + START
    y, other = (floats(draw(st.lists(number, min_size=n, max_size=n))) for _ in range(2))
    colour = draw(st.sampled_from(["currentColor", "#0072B2"]))
    style = Style(colour, is_outline=draw(st.booleans()), is_hatched=draw(st.booleans()))
    common: dict[str, Any] = {
        "style": style, "name": draw(TEXT), "titles": draw(st.sampled_from([texts, ()])), "keys": range(n),
    }  # fmt: skip
    marks = [
        Bars(x0=x, x1=x + 1000, y0=y, y1=other, labels=texts, **common),
        Segments(x0=x, x1=x + 5, y0=y, y1=y, **common),
        Line(x=x, y=y, **common),
        Points(x=x, y=y, symbol=draw(st.sampled_from(["circle", "cross", "clock"])), **common),
        Texts(x=x, y=y, texts=texts, anchor=draw(st.sampled_from(["middle", "beside"]))),
        Rules(x=x, words=texts, **common),
    ]
    low, high = draw(st.sampled_from([(0.0, 1.0), (-1e6, 1e6)]))
    panel = Panel(TimeAxis(draw(TEXT), [(START, START + HOUR)]), NumberAxis(draw(TEXT), low, high, [low, high]), marks)
    return Picture(draw(TEXT), [panel], draw(st.lists(TEXT, max_size=2)), draw(TEXT), [LegendEntry(draw(TEXT))])


@given(pictures())
@settings(max_examples=examples(100), deadline=None)
def test_both_renderers_draw_any_texts_and_numbers_as_texts_and_numbers(picture: Picture) -> None:
    drawn = ElementTree.fromstring(svg(picture))
    assert "nan" not in "".join(f"{v} " for e in drawn.iter() for k, v in e.attrib.items() if k != "aria-label")
    figure = draw_figure(picture)
    assert figure.to_json()
    for trace in figure.data:
        assert "<" not in trace.name.replace("<br>", "")


def test_a_mark_stands_at_the_same_place_in_both() -> None:
    points = Points(x=floats([START + HOUR / 4]), y=floats([1.5]), titles=["<b>"], name="here")
    picture = over_time(points)
    (circle,) = [e for e in ElementTree.fromstring(svg(picture)).iter(f"{SVG}circle") if e.get("r") == "4"][1:]
    layout, figure = lay_out(picture), draw_figure(picture)
    area = layout.panels[0].area
    assert float(circle.attrib["cx"]) == pytest.approx(area.left + (area.right - area.left) / 4, abs=0.1)
    assert float(circle.attrib["cy"]) == pytest.approx(area.top + 45, abs=0.1)
    margin = figure.layout.margin
    assert (margin.l, margin.t, layout.width - margin.r) == (area.left, area.top, area.right)
    assert (str(figure.data[0].x[0]), list(figure.data[0].hovertext)) == ("2024-06-01T10:15:00.000", ["&lt;b&gt;"])
    assert list(figure.layout.yaxis.ticktext) == ["one", "&lt;two&gt;"]


def test_an_axis_is_broken_and_says_for_how_long() -> None:
    spans = [(START, START + 2000), (START + HOUR, START + HOUR + 2000)]
    starts = floats([s for s, _ in spans])
    bars = Bars(x0=starts, x1=starts + 2000, y0=floats([0, 0]), y1=floats([1, 1]))
    picture = over_time(bars, spans=spans)
    gaps = [e.text for e in ElementTree.fromstring(svg(picture)).iter(f"{SVG}text") if e.get("class") == "gap"]
    assert gaps == ["60 min"]
    figure = draw_figure(picture)
    assert len(figure.layout.xaxis.rangebreaks) == 1
    assert any("60 min" in a.text for a in figure.layout.annotations)


def test_labels_beside_marks_do_not_overlap_and_lanes_grow_for_them() -> None:
    n = 12
    x = START + np.arange(n) * HOUR / n
    labels = Texts(x=x, y=np.full(n, 0.5), texts=["a long label, of parts"] * n, anchor="beside", rows=3)
    picture = over_time(labels)
    layout = lay_out(picture).panels[0]
    assert layout.area.bottom - layout.area.top > 60, "rows for labels that have no room beside their marks"
    placed = layout.texts[0]
    assert len(placed) > 3
    for row in {t.y for t in placed}:
        spans = sorted(
            (t.x, t.x + 0.93 * text_width(t.text)) if t.anchor == "start" else (t.x - 0.93 * text_width(t.text), t.x)
            for t in placed
            if t.y == row
        )
        assert all(a[1] <= b[0] + 1 for a, b in pairwise(spans))


def test_words_of_rules_have_rows_above() -> None:
    rules = Rules(x=floats([START + 60_000 * i for i in range(4)]), words=[f"a fault of node {i}" for i in range(4)])
    layout = lay_out(over_time(rules)).panels[0]
    assert [w.text for w in layout.words] == [f"a fault of node {i}" for i in range(4)]
    assert len({w.y for w in layout.words}) == 4
    assert all(w.y < layout.area.top for w in layout.words)
    assert len([a for a in draw_figure(over_time(rules)).layout.annotations if "fault" in a.text]) == 4


def test_what_lies_outside_of_the_axis_is_cut_or_left_out() -> None:
    beyond = floats([START - HOUR, START + 2 * HOUR])
    bars = Bars(x0=beyond, x1=beyond + HOUR * 1.5, y0=floats([0, 0]), y1=floats([1, 1]), titles=["cut", "out"])
    drawn = svg(over_time(bars, Points(x=beyond, y=floats([0.5, 0.5]), titles=["far", "far"])))
    assert "cut" in drawn
    assert "out" not in drawn.replace("outline", "").replace("outputs", "")
    assert "far" not in drawn


def test_an_image_has_no_texts_for_a_pointer() -> None:
    picture = over_time(Points(x=floats([START]), y=floats([0.5]), titles=["what it is"]))
    assert "what it is" in svg(picture)
    assert "what it is" not in svg(picture, has_titles=False)
