"""The picture of a stream's chart: lines, bars and points, axes, legend, and texts that are escaped."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparkstream_nb.app.results.stream_chart import ChartCounts, ChartSeries, ChartShape, ChartSnapshot
from sparkstream_nb.charts.point_store import Points, SeriesName
from sparkstream_nb.charts.svg_picture import svg
from sparkstream_nb.lab import display

START = 1_717_236_000_000  # 2024-06-01 10:00 UTC
SVG = "{http://www.w3.org/2000/svg}"


def snapshot(*ys: Any, kind: Any = "line", over_time: bool = True, seconds: float = 60.0) -> ChartSnapshot:
    """A series for each of `ys`, over so many seconds."""
    series = []
    for i, y in enumerate(ys):
        x = START + np.linspace(0, 1000 * seconds, len(y)) if over_time else np.arange(float(len(y)))
        name = SeriesName("v", f"<b>&{i}")
        series.append(ChartSeries(name, name.label(1), Points(x, np.asarray(y, np.float64)), len(y)))
    ends = (START, START + 1000 * seconds) if over_time else (0.0, max(map(len, ys), default=1) - 1.0)
    shape = ChartShape(("v",), by="<k>", x=None if over_time else "n", kind=kind)
    counts = ChartCounts(1_200, 0.0)
    return ChartSnapshot("App", "S", shape, tuple(series), ends if ys else None, over_time, False, counts)


def elements(shown: ChartSnapshot, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(svg(shown.picture())).iter(SVG + tag))


def texts(shown: ChartSnapshot, kind: str) -> list[str]:
    return ["".join(t.itertext()) for t in elements(shown, "text") if t.get("class") == kind]


def test_a_line_for_each_series_with_its_name() -> None:
    shown = snapshot([1, 5, 3], [2, 2, 4])
    lines = elements(shown, "polyline")
    assert [len(str(line.get("points")).split()) for line in lines] == [3, 3]
    assert texts(shown, "legend") == ["<b>&0", "<b>&1"], "names are texts"
    assert lines[0].get("stroke") != lines[1].get("stroke")
    assert texts(shown, "y-tick") == ["1", "2", "3", "4", "5"]
    assert texts(shown, "x-tick")[:2] == ["10:00:00", "1 Jun 2024"]
    assert texts(shown, "x-title") == ["event time (UTC)"]
    assert texts(shown, "y-title") == ["v"]


def test_bars_begin_at_zero_and_points_are_circles() -> None:
    bars = snapshot([4, 8], [6, 5], kind="bar")
    assert len([p for p in elements(bars, "path") if p.get("class") == "bars"]) == 2
    assert texts(bars, "y-tick")[0] == "0"
    assert len(elements(snapshot([4, 8, 1], kind="points"), "circle")) == 4, "and one in the legend"
    assert len(elements(snapshot([4]), "circle")) == 1, "a line of one point is a point"


@pytest.mark.parametrize("seconds", [0.0, 0.05, 3.0, 3_600.0, 40 * 86_400.0])
def test_any_length_of_time_has_labels(seconds: float) -> None:
    labels = texts(snapshot([1, 2], seconds=seconds), "x-tick")
    assert labels
    assert seconds > 1 or re.fullmatch(r"\d\d:\d\d:\d\d\.\d\d\d", labels[0])


def test_an_axis_of_numbers_and_values_that_are_all_the_same() -> None:
    shown = snapshot([7] * 20, over_time=False)
    assert texts(shown, "x-title") == ["n"]
    assert texts(shown, "x-tick")[0] == "0"
    assert "7" in texts(shown, "y-tick") or len(texts(shown, "y-tick")) > 1


def test_a_long_legend_says_how_many_more() -> None:
    assert texts(snapshot(*([[1, 2]] * 30)), "legend")[-1] == "and 6 more"


def test_both_forms() -> None:
    shown = replace(
        snapshot([1, 5, 3]), counts=ChartCounts(1_200, 0.0, not_read=5, paused=60.0, waiting=7, series=2, thinned=True)
    )
    forms = display.bundle(shown)
    assert "App.S: 1,200 events · 2024-06-01 10:00:00 to 2024-06-01 10:01:00 UTC" in forms["text/plain"]
    for words in ("paused at 00:01:00 UTC: 7 more", "5 events since", "2 further lines not drawn", "held thinned"):
        assert words in forms["text/plain"]
        assert words in forms["text/html"]
    data = re.search(r"data:image/svg\+xml;base64,([^\"]+)", forms["text/html"])
    assert data is not None
    assert "&lt;b&gt;&amp;0" in base64.b64decode(data[1]).decode()
    assert "<b>&0" not in forms["text/html"]


def test_a_chart_of_nothing() -> None:
    forms = display.bundle(replace(snapshot(), counts=ChartCounts(0, 0.0)))
    assert forms["text/plain"] == "App.S: no event yet"
    assert "<img" not in forms["text/html"]
