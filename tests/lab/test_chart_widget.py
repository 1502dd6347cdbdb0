"""The live chart without a page: its state, what a page may ask of it, and the picture that it keeps."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pandas as pd

from sparkstream_nb.app.results.stream_chart import Chart, ChartShape
from sparkstream_nb.app.results.stream_cursor import StreamEnd
from sparkstream_nb.charts.style import COLOURS
from sparkstream_nb.lab.widgets.chart import KEPT, ChartView
from sparkstream_nb.lab.widgets.plots import read_plotly

START = 1_717_236_000_000  # 2024-06-01 10:00 UTC


class Ends:
    """The end of a stream with so many `events`, one each second."""

    events = 100

    def total(self) -> int:
        return self.events

    def read(self, most: int, key: str | None) -> StreamEnd:
        n = np.arange(self.events)
        return StreamEnd(
            pd.DataFrame({"timestamp": START + 1000 * n, "k": "<i>", "v": n * 1.0}).tail(most), self.events
        )


def view(ends: Ends, clock: Any = lambda: 0.0) -> ChartView:
    return ChartView(Chart("App", "S", ChartShape(("v",), by="k"), ends, lambda c: lambda: None), clock)


def y(state: dict[str, Any]) -> list[float]:
    values: list[float] = np.frombuffer(state["series"][0]["y"], np.float64).tolist()
    return values


def test_a_page_zooms_pauses_and_gives_its_width() -> None:
    ends = Ends()
    shown = view(ends)
    assert [s["label"] for s in shown.state()["series"]] == ["<i>"]
    shown.act({"do": "zoom", "start": START + 10_000, "end": START + 12_000})
    shown.read()
    assert (y(shown.state()), shown.state()["zoomed"]) == ([9.0, 10.0, 11.0, 12.0, 13.0], True)
    shown.act({"do": "all"})
    shown.act({"do": "pause"})
    ends.events = 150
    shown.read()
    assert (len(y(shown.state())), shown.state()["paused"]) == (100, True)
    assert ": 50 more since then" in shown.state()["note"]
    shown.act({"do": "resume"})
    ends.events = 5_000
    shown.resize(250)
    shown.read()
    assert 500 <= len(y(shown.state())) <= 502
    assert "points drawn: the lowest and the highest of each pixel column" in shown.state()["note"]


def test_the_picture_is_kept_while_the_stream_never_rests(monkeypatch: Any) -> None:
    now = [0.0]
    shown = view(Ends(), lambda: now[0])
    kept = []
    monkeypatch.setattr(shown._output, "keep", lambda: kept.append(now[0]))
    for now[0] in (1.0, KEPT, KEPT + 1, 2 * KEPT):
        shown._follow()
    assert kept == [KEPT, 2 * KEPT]
    assert "data:image/svg+xml;base64," in shown.static()["text/html"]


def test_plotly_fits_into_a_message() -> None:
    assert len(read_plotly()) < 2_000_000, "Jupyter's server drops what is more than 3 MB in 3 seconds"
    assert b"plotly.js" in gzip.decompress(read_plotly())[:100]


def test_the_figure_has_the_colours_of_the_picture_and_escaped_names() -> None:
    figure = json.loads(view(Ends()).state()["figure"])
    (trace,) = figure["data"]
    assert (trace["line"]["color"], trace["name"]) == (COLOURS[0], "&lt;i&gt;")
    assert figure["layout"]["font"]["color"] == "currentColor", "the page's"
