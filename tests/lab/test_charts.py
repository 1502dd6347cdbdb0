"""Plain text and HTML of tables; the aggregation's data, picture and widget."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from IPython.utils.capture import capture_output

from sparkstream_nb.app.pictures.bucket_series import Measure, Series, bucket_name, measures
from sparkstream_nb.app.pictures.buckets_picture import buckets_picture, scales_of
from sparkstream_nb.app.results.buckets import AggregationReader, InputStream, Shard, StoredAggregation
from sparkstream_nb.app.results.listeners import Followed
from sparkstream_nb.charts.svg_picture import svg
from sparkstream_nb.charts.ticks import bucket_end, number_ticks, short, time_ticks
from sparkstream_nb.charts.value_texts import text_of, when
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.lab.drawings.text_tables import Grid
from sparkstream_nb.lab.widgets import aggregation, choices
from sparkstream_nb.lab.widgets.plots import figure_json
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import AggDuration
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.store_protocol import BatchKey

from .conftest import HOUR, StandIn


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"), (float("nan"), "NaN"), (pd.NA, "null"), (True, "true"), (np.bool_(False), "false"),
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

TOTAL = Measure("total", "sum(quantity)", True, is_integer=True)
NAN = float("nan")
AVERAGE = Measure("avg", "avg(x)", False)


def series(per: AggDuration, starts: Sequence[int], parts: Any, measure: Measure = TOTAL, total: int = 0) -> Series:
    """A chart's data; where it does not add up, the merged value is the shards' mean."""
    ends = [bucket_end(s, per) for s in starts]
    values = np.array(parts, float)
    merged = np.nansum(values, 0) if measure.additive else np.nanmean(values, 0)
    shards = tuple(Shard(f"node-{i + 1}", True, len(starts), max(starts)) for i in range(len(values)))
    total = total or len(starts)
    return Series(
        "A", per, measure, "", shards, np.array(starts), np.array(ends), values, merged, total - len(starts), total,
        measure.additive,
    )  # fmt: skip


def drawn(s: Series, width: int = 900) -> str:
    """The picture that is saved."""
    return svg(buckets_picture(s, width=width), width, has_titles=False)


def elements(s: Series, kind: str) -> list[Any]:
    """The picture's elements of a class."""
    root = ElementTree.fromstring(drawn(s))
    return [e for e in root.iter() if e.attrib.get("class") == kind]


def texts(s: Series, kind: str) -> list[str]:
    return [e.text for e in elements(s, kind)]


def bars(s: Series) -> list[list[tuple[float, ...]]]:
    """(x, y, width, height) of the bars of each shard that has some."""
    return [
        [tuple(map(float, n)) for n in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", e.attrib["d"])]
        for e in elements(s, "bars")
    ]


def test_what_adds_up(app: StandIn) -> None:
    found = measures(app.plan.aggregations["TradeAggregation"])
    assert found == [
        Measure("avgPrice", "avg(price)", False), Measure("total", "sum(quantity)", True, is_integer=True),
    ]  # fmt: skip
    assert [m.label for m in found] == ["avgPrice = avg(price)", "total = sum(quantity)"]


def test_what_has_a_value_over_all_groups() -> None:
    text = """define stream S (k string, price double, ts long);
    define aggregation A from S select k, price, avg(price) as mean, max(price) as most, avg(price) + price as odd
    group by k aggregate by ts every sec, min;"""
    found = measures(compile_app(text).aggregations["A"])
    assert {m.name: m.over_groups for m in found} == {"price": False, "mean": True, "most": True, "odd": False}


def test_buckets_end_where_the_calendar_says() -> None:
    assert bucket_end(HOUR, "sec") == HOUR + 1000
    january = 1_704_067_200_000
    assert bucket_end(january, "month") == january + 31 * 86_400_000
    assert bucket_end(bucket_end(january, "month"), "month") == january + (31 + 29) * 86_400_000
    assert bucket_end(january, "year") == january + 366 * 86_400_000
    assert bucket_name(HOUR, "month") == "Jun 2024"


def test_notes() -> None:
    assert series("hour", [HOUR], [[1], [2]]).note == "1 hour · the shards' bars add up to the merged value"
    latest = series("sec", [HOUR, HOUR + 1000], [[1, 2]], total=3)
    assert latest.note == "showing 2 to 3 of 3 seconds"
    assert "cannot be added" in series("hour", [HOUR], [[1], [2]], AVERAGE).note


def test_ticks_are_round_and_cover() -> None:
    for low, high in ((0, 70), (-3, 12), (0, 0), (0, 1e9), (0, 0.004)):
        marks = number_ticks(low, high)
        assert marks[0] <= low
        assert marks[-1] >= high
        assert 2 <= len(marks) <= 9
    assert [short(v) for v in (0, 70, 12_500, 3e6, 2.5e9, 0.546)] == ["0", "70", "12.5k", "3M", "2.5G", "0.546"]
    assert [short(v, 20_000) for v in (0, 5000, 20_000)] == ["0", "5k", "20k"]


@pytest.mark.parametrize(
    ("per", "length", "most", "labels"),
    [
        ("sec", 3000, 5, ["10:00:00", "10:00:01", "10:00:02"]),
        ("sec", 60_000, 5, ["10:00:00", "10:00:15", "10:00:30", "10:00:45"]),
        ("hour", 86_400_000, 8, ["12:00", "15:00", "18:00", "21:00", "00:00", "03:00", "06:00", "09:00"]),
        ("day", 20 * 86_400_000, 5, ["6 Jun", "11 Jun", "16 Jun", "21 Jun"]),
        ("month", 360 * 86_400_000, 12, ["Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb", "Mar", "Apr", "May"]),
        ("year", 10 * 365 * 86_400_000, 5, ["2026", "2028", "2030", "2032", "2034"]),
    ],
)  # fmt: skip
def test_ticks_of_time(per: AggDuration, length: int, most: float, labels: list[str]) -> None:
    found = time_ticks(HOUR, HOUR + length, per, most)
    assert [t.label for t in found][: len(labels)] == labels
    assert len(found) <= most + 1


def test_picture_has_a_bar_for_each_shard_of_each_bucket() -> None:
    s = series("hour", [HOUR], [[30], [40]])
    ((x, y, wide, high),), ((x2, y2, wide2, high2),) = bars(s)
    assert (x, wide) == (x2, wide2)
    assert y == pytest.approx(y2 + high2, abs=0.2)
    assert high2 / high == pytest.approx(40 / 30, rel=0.01)
    assert (texts(s, "value"), texts(s, "merged-value")) == (["30", "40"], ["70"])
    assert texts(s, "x-title") == ["time (UTC), by hour"]
    assert texts(s, "y-title") == ["total = sum(quantity)"]
    assert texts(s, "x-tick") == ["10:00", "1 Jun 2024"]
    assert "http" not in re.sub("http://www.w3.org/2000/svg", "", drawn(s))


def test_values_on_bars_can_be_read() -> None:
    inks = [e.attrib["fill"] for e in elements(series("hour", [HOUR], [[30], [40]]), "value")]
    assert inks == ["#fff", "#111"], "white on blue, black on orange"


def test_bars_stand_where_their_time_is() -> None:
    hour = 3_600_000
    s = series("hour", [HOUR, HOUR + hour, HOUR + 4 * hour], [[1, 1, 1]])
    (found,) = bars(s)
    first, second, third = (x + wide / 2 for x, _, wide, _ in found)
    assert third - second == pytest.approx(3 * (second - first), abs=0.5)


def test_a_line_joins_only_buckets_that_follow_on_one_another() -> None:
    hour = 3_600_000
    times = [HOUR + i * hour for i in range(400) if i % 24 >= 5 or i == 49]
    s = series("hour", times, np.ones((2, len(times))))
    root = ElementTree.fromstring(drawn(s))
    merged = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert len(merged) == 17, "one for each day"
    assert sum(e.tag.endswith("circle") for e in root.iter()) == 1, "the hour alone in a night"
    assert not [e for e in root.iter() if e.attrib.get("class") == "gap"]


def test_a_gap_that_would_leave_no_room_is_cut_and_named() -> None:
    s = series("sec", [HOUR, HOUR + 1000, HOUR + 1_802_000, HOUR + 1_803_000], [[10, 20, 10, 30]])
    assert texts(s, "gap") == ["30 min"]
    assert all(wide > 40 for _, _, wide, _ in bars(s)[0])
    assert texts(s, "x-tick") == ["10:00:00", "1 Jun 2024", "10:00:01", "10:30:02", "1 Jun 2024", "10:30:03"]


def test_every_picture_is_well_formed() -> None:
    rng = np.random.default_rng(1)
    lengths: dict[AggDuration, int] = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000}
    for per, length in lengths.items():
        for n in (1, 2, 13, 400):
            for measure in (TOTAL, AVERAGE):
                values = rng.normal(0, 1000, (12, n))
                values[rng.random((12, n)) < 0.3] = np.nan
                values[0] = np.inf
                starts = (HOUR // length + np.sort(rng.choice(5000, n, replace=False))) * length
                s = series(per, starts.tolist(), values, measure)
                ElementTree.fromstring(svg(buckets_picture(s, width=400), 400))
                assert "nan" not in drawn(s)
                assert figure_json(buckets_picture(s), 400)


def test_marks_reach_from_the_bottom_to_the_top() -> None:
    for values in ([-9.0, 120.0], [-4.0, 3900.0], [0.0, 7.0], [-3.0, -1.0]):
        s = series("hour", [HOUR, HOUR + 3_600_000], [values], AVERAGE)
        places = [float(e.attrib["y"]) for e in elements(s, "y-tick")]
        assert places == sorted(places, reverse=True)
        ((_, top, _, _), *_), *_ = bars(s)
        assert places[-1] - 4.1 <= top
        assert len(scales_of(s).ticks) == len(places)
        assert scales_of(s, scales_of(s)) == scales_of(s)


def test_scales_of_a_picture_that_is_carried_on_only_grow() -> None:
    minute = 60_000
    scales = scales_of(series("min", [HOUR], [[10]]))
    changes = 0
    for n in range(2, 400):
        s = series("min", [HOUR + i * minute for i in range(n)], [[10 if i != 5 else 95 for i in range(n)]])
        grown = scales_of(s, scales)
        assert grown.ticks[0] <= scales.ticks[0]
        assert grown.ticks[-1] >= scales.ticks[-1]
        assert grown.spans[0][0] == HOUR
        assert grown.spans[-1][1] >= max(scales.spans[-1][1], HOUR + n * minute)
        changes += grown.spans != scales.spans
        scales = grown
    assert changes < 50


# ------------------------------------------------------------------------------------------------------------- the view


def test_view_has_picture_table_and_text(app: StandIn) -> None:
    view = app.view(per="hours")
    assert view.text() == (
        "TradeAggregation: total per hour · all groups\n"
        "hour              node-1  node-2  merged\n"
        "────────────────  ──────  ──────  ──────\n"
        "2024-06-01 10:00      30      40      70\n"
        "1 hour"
    )
    assert repr(view) == view.text()
    assert view.html().count('<img src="data:image/svg+xml;base64,') == 1


def test_a_view_as_a_figure(app: StandIn) -> None:
    view = app.view("TradeAggregation", per="hour", measure="total")
    figure = view.figure
    assert {t.type for t in figure.data} == {"bar", "scatter"}
    lowest, highest = (t for t in figure.data if t.name in ("node-1", "node-2"))
    assert float(np.nansum(lowest.y) + np.nansum(highest.y)) == np.nansum(view.series().merged)
    assert [list(lowest.base), list(highest.base)] == [[0.0], list(lowest.y)], "the shards' bars stand on one another"


def test_without_widgets_the_static_form_is_shown(app: StandIn, shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    view = app.view(per="hour")
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    for name in [m for m in sys.modules if m.startswith(("anywidget", "sparkstream_nb.lab.widgets.live"))]:
        monkeypatch.delitem(sys.modules, name)
    with capture_output() as shown:
        shell.display_formatter.format(view)
    assert [sorted(o.data) for o in shown.outputs] == [["text/html", "text/plain"]]
    assert shown.outputs[0].data["text/html"] == view.html()


def test_an_empty_view_says_what_to_type(app: StandIn) -> None:
    app.store.drop("TradeAggregation")
    app.store.prepare(app.plan.aggregations.values())
    view = app.view()
    assert view.text().splitlines() == [
        "TradeAggregation: nothing here yet. Send an event:",
        """%siddhi send Trades.TradeStream '["text", 1.5, 1, 1717236000000]'""",
        "%siddhi feed Trades.TradeStream frame --time timestamp",
    ]
    assert "Nothing here yet" in view.html()
    assert "<img" not in view.html()
    app.runtime.commit(app.runtime.store, "node-1", [["wso2", 1.0, 5, HOUR], ["wso2", 1.0, 6, HOUR + 5 * 86_400_000]])
    view.refresh()
    assert (view.choice.per, view.series().merged.tolist()) == ("day", [5, 6])


def test_choices(app: StandIn) -> None:
    app.runtime.commit(app.runtime.store, "node-1", [["other", 400.0, 1, HOUR + 1000]])
    view = app.view("TradeAggregation", per="hour", measure="avgPrice")
    # Over all groups the average is that of the five trades, and not of the groups' averages.
    (menu,) = view._state()["keys"]
    assert (menu["name"], menu["chosen"], menu["every"], menu["typedIn"]) == ("symbol", "", True, False)
    assert menu["values"] == [['"other"', "other"], ['"wso2"', "wso2"]]
    assert view.series().merged.tolist() == [160]
    assert view.series().parts.tolist() == [[200], [100]]
    view._handle_message({"do": "key", "key": 0, "token": '"wso2"'})
    assert (view.series().group, view.series().merged.tolist()) == ("wso2", [100])
    view._handle_message({"do": "choose", "per": "sec"})
    assert view.series().names[-1] == "2024-06-01 10:30:03"
    assert view.choice.group == ("wso2",)
    view._handle_message({"do": "choose", "measure": "total"})
    assert view.series().merged.tolist() == [10, 20, 10, 30]
    before = len(app.calls)
    view.refresh()
    assert app.calls[before:] == [("settle",)]


def test_several_group_by_attributes_and_values_that_are_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compile_app(
        "define stream S (k string, n int, v long, ts long); @PartitionById(enable='true') define aggregation A from S "
        "select k, n, sum(v) as s group by k, n aggregate by ts every sec ... day;",
        properties={"shardId": "node-1"},
    )
    store, definition = DuckDBStore(":memory:"), plan.aggregations["A"]
    store.prepare([definition])
    columns = [["a", "a", "b", "<b>"], [1, 2, 1, 3], [1, 2, 4, 8], [HOUR] * 4]
    batch = InputBatch(np.full(4, HOUR), {"S": StreamRows(np.arange(4), np.full(4, HOUR), columns)})
    partials = NodeEngine(plan, outputs=OutputOptions(stored=True)).step(batch).partials["A"]
    store.commit(BatchKey("App", "run", 0), {("A", "node-1"): partials})
    reader = AggregationReader(
        StoredAggregation(definition, store, lambda: ["node-1"], "GMT"),
        InputStream("App", "S", plan.streams["S"].source.schema, "ts"),
        Followed("App", lambda changed: lambda: None), lambda: None,
    )  # fmt: skip
    view = aggregation.AggregationView(reader, per="day")
    assert view.series().merged.tolist() == [15]
    assert [m["values"] for m in view._state()["keys"]][1] == [["1", "1"], ["2", "2"], ["3", "3"]]
    view._handle_message({"do": "key", "key": 0, "token": '"a"'})
    assert (view.series().group, view.series().merged.tolist()) == ("k a", [3])
    assert view._state()["keys"][1]["values"] == [["1", "1"], ["2", "2"]]
    view._handle_message({"do": "key", "key": 1, "token": "2"})
    assert (view.series().group, view.series().merged.tolist()) == ("a, 2", [2])
    view._handle_message({"do": "key", "key": 0, "token": ""})
    assert view.series().merged.tolist() == [2]
    monkeypatch.setattr(choices, "MOST_VALUES", 1)
    view._handle_message({"do": "key", "key": 1, "text": "x"})
    assert "'x' is not a value of n, a number" in view._state()["failed"]
    view._handle_message({"do": "key", "key": 1, "text": ""})
    view._handle_message({"do": "suggest", "key": 0, "text": "<"})
    menu = view._state()["keys"][0]
    assert (menu["typedIn"], menu["values"]) == (True, [['"<b>"', "<b>"]])
    view._handle_message({"do": "key", "key": 0, "text": "<b>"})
    assert (view.series().merged.tolist(), view._state()["failed"]) == ([8], "")
    assert "<b>" not in view.html().split("</div>")[0].replace("<b>A</b>", "")


def test_stacked_or_side_by_side_and_the_table(app: StandIn) -> None:
    view = app.view("TradeAggregation", per="hour", measure="total")
    state = view._state()
    assert (state["stacked"], state["stacks"], state["table"], state["numbers"]) == (True, True, False, "")
    view._handle_message({"do": "choose", "stacked": False})
    assert not view._state()["stacked"]
    assert len(bars(view.series())) == 2
    assert len({y + high for shard in bars(view.series()) for _, y, _, high in shard}) == 1  # from one base line
    view._handle_message({"do": "choose", "table": True})
    assert '<table class="sparkstream-table">' in view._state()["numbers"]
    assert "<details open>" in view.html()


def test_what_wso2_would_not_show_yet_is_hatched(app: StandIn) -> None:
    view = app.view("TradeAggregation", per="hour", measure="total")
    assert not elements(view.series(), "unseen")
    view._handle_message({"do": "choose", "asWso2": True})
    # Of each node's two seconds, the second one is open; and the node with the latest event, which is asked, misses the
    # first one of the other, as the clock is in another minute.
    assert (view.series().merged.tolist(), view.series().as_wso2.tolist()) == ([70], [10])
    (hatched,) = elements(view.series(), "unseen")
    assert float(hatched.attrib["height"]) > 100
    assert "as WSO2: 10" in view._state()["figure"]
    assert "hatched: values that WSO2's servers do not show yet" in view.series().note
    view._handle_message({"do": "choose", "per": "sec"})
    assert np.isnan(view.series().as_wso2).tolist() == [False, True, False, True]


def test_shards_that_lack_rows_or_belong_to_no_node_are_named() -> None:
    hours = [HOUR + 3_600_000 * i for i in range(4)]
    whole = series("hour", hours, [[1] * 4, [1, 1, NAN, NAN], [NAN] * 4, [1] * 4])
    shards = (
        Shard("a", True, 4, hours[3]), Shard("b", True, 2, hours[1]), Shard("c"), Shard("<d>", False, 4, hours[3]),
    )  # fmt: skip
    s = replace(whole, shards=shards)
    assert [n and (n.flag, n.text) for n in s.shard_notes] == [
        None,
        ("behind", "b has nothing since 2024-06-01 11:00"),
        ("no rows", "c has no rows here"),
        ("not a node", "<d> is not a node of this deployment"),
    ]
    assert texts(s, "legend") == ["a", "b (behind)", "c (no rows)", "<d> (not a node)", "merged"]


def test_moving_through_time(app: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation, "MOST_BUCKETS", 2)
    view = app.view(per="sec")

    def shown() -> list[str]:
        return [n[-8:] for n in view.series().names]

    def may() -> tuple[bool, ...]:
        state = view._state()
        return state["earlier"], state["later"], state["moved"]

    assert (shown(), may()) == (["10:30:02", "10:30:03"], (True, False, False))
    assert view.series().note.startswith("showing 3 to 4 of 4 seconds")
    view._handle_message({"do": "earlier"})
    assert (shown(), may()) == (["10:00:00", "10:00:01"], (False, True, True))
    view._handle_message({"do": "range", "start": HOUR + 900.5, "end": HOUR + 1600.5})
    assert (shown(), may()) == (["10:00:01"], (True, True, True))
    view._handle_message({"do": "later"})  # as many as the stretch had that was chosen
    assert (shown(), may()) == (["10:30:02"], (True, True, True))
    view._handle_message({"do": "latest"})
    assert (shown(), may()) == (["10:30:02", "10:30:03"], (True, False, False))
    view._handle_message({"do": "all"})
    assert view.choice.per == "min"


def test_it_follows_while_a_page_shows_it(app: StandIn) -> None:
    view = app.view(per="hour")
    assert len(app.runtime.listeners) == 0
    view._handle_message({"do": "here", "width": 700})
    view._handle_message({"do": "here", "width": 800})
    assert len(app.runtime.listeners) == 1
    left, right = (json.loads(view._state()["figure"])["layout"]["margin"][side] for side in "lr")
    assert 0 < left < 100
    assert right == pytest.approx(18), "laid out for the page's width"
    app.runtime.commit(app.runtime.store, "node-1", [["wso2", 100.0, 5, HOUR]])
    wait_until(lambda: view.series().merged.tolist() == [75])
    view._handle_message({"do": "gone"})
    assert len(app.runtime.listeners) == 0


def test_a_view_of_an_app_that_does_not_go_on_keeps_its_picture_and_says_so(app: StandIn) -> None:
    view = app.view(per="hour")
    view._handle_message({"do": "here", "width": 700})
    assert view._state()["standing"] == ""
    app.runtime.running = False
    view._handle_message({"do": "choose", "per": "sec"})
    standing = "Trades is stopped: these are its last values. An event or a query starts it again."
    assert (view._state()["standing"], view._state()["per"], view._state()["failed"]) == (standing, "sec", "")
    figure = view._state()["figure"]
    app.runtime._closed = True
    app.store.close()
    for message in ({"do": "here", "width": 700}, {"do": "choose", "per": "hour"}, {"do": "refresh"}, {"do": "all"}):
        view._handle_message(message)
        state = view._state()
        assert state["standing"].startswith("Trades is stopped or was deployed again: these are the last values shown.")
        assert (state["figure"], state["failed"]) == (figure, "")


def test_a_view_of_a_store_that_was_lost_says_so(app: StandIn) -> None:
    view = app.view(per="hour")
    view._handle_message({"do": "here", "width": 700})
    app.store.close()
    view._handle_message({"do": "choose", "per": "sec"})
    assert view._state()["failed"] == "The store :memory: is closed. Run the cell again."
    assert len(app.runtime.listeners) == 0


def wait_until(done: Callable[[], bool]) -> None:
    """Waits for another thread."""
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)
