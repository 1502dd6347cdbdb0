"""Plain text and HTML of tables; the aggregation's data, picture and widget."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.lab.charts import Measure, bucket_name, measures, series, short, svg, ticks
from sparkstream_nb.lab.tables import Grid, text_of, when

from .conftest import HOUR, StandIn


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"), (float("nan"), "null"), (pd.NA, "null"), (True, "true"), (np.bool_(False), "false"),
        (7, "7"),
        (np.int64(7), "7"), (0.1 + 0.2, "0.3"), (100.0, "100.0"), (1e-9, "1e-09"), (1 / 3, "0.3333"),
        (float("inf"), "∞"),
        ("a\nb", "a\\nb"), ("x" * 80, "x" * 59 + "…"), ([1, 2], "[1, 2]"),
    ],
)  # fmt: skip
def test_text_of_a_value(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_times() -> None:
    assert when(HOUR) == "2024-06-01 10:00:00"
    assert when(-1) == "1969-12-31 23:59:59.999"
    assert when(10**18) == str(10**18)
    assert text_of(HOUR, "AGG_TIMESTAMP") == "2024-06-01 10:00:00"


def test_grid() -> None:
    grid = Grid(["name", "n"], [("a", 1), ("bb", 22), ("<c>", None)], limit=2, notes=["string", "long"])
    assert grid.text() == (
        "name string  n long\n"
        "───────────  ──────\n"
        "a                 1\n"
        "bb               22\n"
        "showing 2 of 3 rows"
    )  # fmt: skip
    assert Grid(["n"], []).text() == "n\n─\n0 rows"


# ----------------------------------------------------------------------------------------------------------- charts


def test_what_adds_up(app: StandIn) -> None:
    found = measures(app.plan.aggregations["TradeAggregation"])
    assert found == [Measure("avgPrice", False), Measure("total", True, whole=True)]


def test_series_by_shard_and_merged(app: StandIn) -> None:
    a = app.plan.aggregations["TradeAggregation"]
    s = series(a, "sec", Measure("total", True), app.aggregation("A", "sec"), shards=["node-1", "node-2", "idle"])
    assert s.names == ["2024-06-01 10:00:00", "2024-06-01 10:00:01"]
    assert np.array_equal(s.parts, [[30, np.nan], [np.nan, 40], [np.nan, np.nan]], equal_nan=True)
    assert s.merged.tolist() == [30, 40]
    assert s.note == "2 seconds · the shards' bars add up to the merged answer"


def test_series_of_one_group_and_of_a_stretch() -> None:
    whole = pd.DataFrame({"AGG_TIMESTAMP": [0, 0, 1000, 2000], "symbol": ["a", None, "a", "a"], "total": [1, 10, 2, 3]})
    a = StandIn().plan.aggregations["TradeAggregation"]
    frames = (whole, whole.assign(SHARD_ID="x"))
    total = Measure("total", True)
    assert series(a, "sec", total, frames).merged.tolist() == [11, 2, 3]
    assert series(a, "sec", total, frames, group=("a",)).merged.tolist() == [1, 2, 3]
    assert series(a, "sec", total, frames, group=(None,)).merged.tolist() == [10]
    latest = series(a, "sec", total, frames, most=2)
    assert (latest.merged.tolist(), latest.of) == ([2, 3], (1, 3, 3))
    assert latest.note == "showing 2 to 3 of 3 seconds"
    assert series(a, "sec", total, frames, most=2, start=0).merged.tolist() == [11, 2]
    empty = whole.iloc[:0]
    nothing = series(a, "sec", total, (empty, empty.assign(SHARD_ID="x")))
    assert nothing.note == "Nothing here yet."
    ElementTree.fromstring(svg(nothing))


def test_ticks_are_round_and_cover() -> None:
    for low, high in ((0, 70), (-3, 12), (0, 0), (0, 1e9), (0, 0.004)):
        marks = ticks(low, high)
        assert marks[0] <= low
        assert marks[-1] >= high
        assert 2 <= len(marks) <= 9
    assert [short(v) for v in (0, 70, 12_500, 3e6, 2.5e9, 0.25)] == ["0", "70", "12.5k", "3M", "2.5G", "0.25"]
    assert bucket_name(HOUR, "month") == "Jun 2024"


def test_picture_has_a_bar_for_each_shard_of_each_bucket(app: StandIn) -> None:
    a = app.plan.aggregations["TradeAggregation"]
    s = series(a, "hour", Measure("total", True, whole=True), app.aggregation("A", "hour"))
    root = ElementTree.fromstring(svg(s))
    bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if len(e)]
    assert [e[0].text for e in bars] == ["node-1: 30", "node-2: 40"]
    low, high = sorted(bars, key=lambda e: -float(e.attrib["y"]))
    assert float(low.attrib["y"]) == pytest.approx(float(high.attrib["y"]) + float(high.attrib["height"]))
    assert float(high.attrib["height"]) / float(low.attrib["height"]) == pytest.approx(40 / 30, rel=0.01)
    assert "70" in "".join(root.itertext())
    assert "http" not in re.sub("http://www.w3.org/2000/svg", "", svg(s))


def test_view_has_widget_picture_and_text(app: StandIn) -> None:
    view = app.view(per="hours")
    bundle = view._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert "2024-06-01 10:00      30      40      70" in bundle["text/plain"]
    assert bundle["text/html"].count('<img src="data:image/svg+xml;base64,') == 1


def test_choices_redraw_the_figure(app: StandIn) -> None:
    view = app.view("TradeAggregation", per="hour", measure="total")
    _ = view.widget
    assert [(t.name, list(t.y)) for t in view.figure.data] == [("node-1", [30]), ("node-2", [40]), ("merged", [70])]
    assert view.figure.layout.barmode == "relative"
    view._per.value = "sec"
    assert [t.name for t in view.figure.data] == ["node-1", "node-2", "merged"]
    assert list(view.figure.data[2].y) == [30, 40]
    view._measures.value = view.measures[0]  # an average: bars side by side, and no sum over groups
    assert view.figure.layout.barmode == "group"
    assert [label for label, _ in view._groups.options] == ["wso2"]
    view._measures.value = view.measures[1]
    assert [label for label, _ in view._groups.options] == ["all groups", "wso2"]
    before = len(app.calls)
    view.refresh()
    assert app.calls[before:] == [("aggregation", "TradeAggregation", "sec")]
