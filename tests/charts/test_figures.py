"""Plotly figures of frames: the columns that are chosen, lines, names, and texts that are escaped."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app.pictures.errors_picture import errors_picture
from sparkstream_nb.charts.frame_picture import frame_picture
from sparkstream_nb.charts.frame_plot import ChosenColumns, FramePlot, resolve
from sparkstream_nb.charts.loading import draw_figure
from sparkstream_nb.errors import Misuse, SparkStreamError

START = 1_717_236_000_000  # 2024-06-01 10:00 UTC
EVENTS = pd.DataFrame(
    {
        "node": ["node-1", "node-2"] * 2, "timestamp": [START + 2000, START, START + 3000, START + 1000],
        "symbol": ["<b>", "x", "<b>", "x"], "price": [1.0, 2.0, None, 4.0], "alert": [True] * 4,
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (FramePlot(), ChosenColumns(("price",), "node", "timestamp", True)),
        (FramePlot(by="symbol"), ChosenColumns(("price",), "symbol", "timestamp", True)),
        (FramePlot(x="price", y="timestamp"), ChosenColumns(("timestamp",), "node", "price", False)),
        (FramePlot(x="symbol"), ChosenColumns(("price",), "node", "symbol", False)),
    ],
)
def test_columns_of_events(asked: FramePlot, chosen: ChosenColumns) -> None:
    assert resolve(EVENTS, asked) == chosen


def test_columns_of_buckets() -> None:
    frame = pd.DataFrame({"AGG_TIMESTAMP": [0, 1000], "symbol": ["a", "b"], "total": [1, 2], "mean": [0.5, None]})
    assert resolve(frame, FramePlot()) == ChosenColumns(("total", "mean"), "symbol", "AGG_TIMESTAMP", True)
    assert resolve(pd.DataFrame({"a": [1, 2]}), FramePlot()) == ChosenColumns(("a",), None, None, False)
    dated = pd.DataFrame({"when": pd.to_datetime(["2024-06-01"]), "v": pd.Series([1], dtype="Int64")})
    assert resolve(dated, FramePlot()) == ChosenColumns(("v",), None, "when", True)


@pytest.mark.parametrize(
    ("frame", "asked", "message"),
    [
        (EVENTS, FramePlot(y="prize"), "y: there is no column 'prize'. Did you mean 'price'?"),
        (EVENTS, FramePlot(y="symbol"), "y: the column 'symbol' has no numbers; the numbers are timestamp, price"),
        (EVENTS, FramePlot(by="symbl"), "by: there is no column 'symbl'. Did you mean 'symbol'?"),
        (EVENTS, FramePlot(kind="pie"), "kind is 'line', 'bar' or 'points', not 'pie'"),  # type: ignore[arg-type]
        (EVENTS[:0], FramePlot(), "there is nothing to draw: no rows"),
        (EVENTS[["symbol", "alert"]], FramePlot(), "there is no column of numbers to draw"),
    ],
)
def test_mistakes(frame: pd.DataFrame, asked: FramePlot, message: str) -> None:
    with pytest.raises(Misuse) as error:
        resolve(frame, asked)
    assert message in str(error.value)


def test_lines_over_time() -> None:
    figure = draw_figure(frame_picture(EVENTS, "App.<S>", FramePlot(by="symbol")))
    assert [t.name for t in figure.data] == ["&lt;b&gt;", "x"]
    first, second = figure.data
    assert list(map(str, second.x)) == ["2024-06-01T10:00:00.000", "2024-06-01T10:00:01.000"], "in the order of time"
    assert (list(first.y), list(second.y)) == ([1.0], [2.0, 4.0]), "an event without a value has no point"
    assert "%{fullData.name}" in first.hovertemplate
    assert figure.layout.title.text == "App.&lt;S&gt;"
    assert (figure.layout.xaxis.title.text, figure.layout.xaxis.type) == ("timestamp (UTC)", "date")
    assert figure.layout.yaxis.title.text == "price"
    assert first.line.color != second.line.color


def test_a_text_is_no_markup_and_no_template() -> None:
    frame = pd.DataFrame({"%{x}<i>": [1.0, 2.0], "n": ["&lt;", "<a href='x'>"]})
    figure = draw_figure(frame_picture(frame, "", FramePlot(by="n")))
    assert [t.name for t in figure.data] == ["&amp;lt;", "&lt;a href='x'&gt;"]
    assert "%&#123;x}&lt;i&gt;: " in figure.data[0].hovertemplate


def test_a_long_line_is_thinned_and_the_figure_says_so() -> None:
    y = np.zeros(100_000)
    y[77_777] = 5.0
    figure = draw_figure(frame_picture(pd.DataFrame({"y": y}), "t", FramePlot()))
    assert len(figure.data[0].y) < 25_000
    assert (max(figure.data[0].y), figure.data[0].x[list(figure.data[0].y).index(5.0)]) == (5.0, 77_777)
    assert "thinned" in figure.layout.annotations[-1].text


def test_bars_points_and_texts_on_the_axis() -> None:
    bars = draw_figure(frame_picture(EVENTS, "", FramePlot(x="symbol", y="price", kind="bar")))
    assert {t.type for t in bars.data} == {"bar"}
    assert list(bars.layout.xaxis.ticktext) == ["&lt;b&gt;", "x"]
    assert list(bars.data[0].x) == [0.5 - 0.2], "on the left of the first one's middle, as there are two nodes"
    points = draw_figure(frame_picture(EVENTS, "", FramePlot(kind="points")))
    assert {t.mode for t in points.data} == {"markers"}
    many = pd.DataFrame({"k": [f"k{i}" for i in range(60)], "v": 1.0})
    figure = draw_figure(frame_picture(many, "", FramePlot(by="k")))
    assert (len(figure.data), "20 further lines" in figure.layout.annotations[-1].text) == (40, True)


def errors(*times: Any) -> pd.DataFrame:
    return pd.DataFrame({"stream": "S", "timestamp": list(times), "values": None, "reason": "<late>"})


def test_errors_by_reason() -> None:
    figure = draw_figure(errors_picture(errors(START, START + 1000, None), "errors"))
    assert ([t.name for t in figure.data], sum(figure.data[0].y)) == (["&lt;late&gt;"], 2)
    assert "1 more have no time" in figure.layout.annotations[-1].text
    assert list(draw_figure(errors_picture(errors(None, None), "errors")).data[0].y) == [2]
    with pytest.raises(Misuse, match="the app has no errors"):
        draw_figure(errors_picture(errors(), "errors"))


def test_where_plotly_is_missing_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    monkeypatch.delitem(sys.modules, "sparkstream_nb.charts.plotly_picture")
    with pytest.raises(SparkStreamError, match=re.escape("pip install 'sparkstream-nb[magics]'")):
        draw_figure(frame_picture(EVENTS, "", FramePlot()))
