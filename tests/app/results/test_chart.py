"""The chart of a stream: its lines, what it reads and leaves out, a pause, a zoom, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.stream_chart import MOST_DRAWN, MOST_READ, Chart, ChartCursor, ChartShape
from sparkstream_nb.app.results.stream_cursor import StreamEnd
from sparkstream_nb.errors import Misuse

Run = Callable[..., App]
START = 1_717_236_000_000  # 2024-06-01 10:00 UTC


@dataclass
class Ends:
    """A stream in memory; `read_so_far` has the sizes of all reads."""

    frame: pd.DataFrame = field(default_factory=lambda: events(0, 0))
    read_so_far: list[int] = field(default_factory=list)

    def total(self) -> int:
        return len(self.frame)

    def read(self, most: int, key: str | None) -> StreamEnd:
        self.read_so_far.append(most)
        return StreamEnd(self.frame.tail(most), len(self.frame))

    def come(self, first: int, end: int) -> None:
        self.frame = pd.concat([self.frame, events(first, end)], ignore_index=True)


def events(first: int, end: int) -> pd.DataFrame:
    """An event each second, of two symbols in turn."""
    n = range(first, end)
    columns = {"timestamp": [START + 1000 * i for i in n], "k": [("a", None)[i % 2] for i in n], "v": [*map(float, n)]}
    return pd.DataFrame(columns, dtype=object).astype({"timestamp": "int64", "v": "Float64"})


def cursor(ends: Ends, **shape: Any) -> ChartCursor:
    seconds = iter(range(100, 200))
    chart = Chart("App", "S", ChartShape(("v",), **shape), ends, lambda c: lambda: None)
    return ChartCursor(chart, lambda: float(next(seconds)))


def test_lines_grow_by_what_is_new() -> None:
    ends = Ends(events(0, 4))
    chart = cursor(ends, by="k")
    shown = chart.advance()
    assert {s.label: s.points.y.tolist() for s in shown.series} == {"a": [0, 2], "null": [1, 3]}
    assert shown.range == (START, START + 3_000)
    ends.come(4, 8)
    assert [s.points.y.tolist() for s in chart.advance().series] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert ends.read_so_far == [MOST_READ, 4], "only what is new is read"
    before = len(ends.read_so_far)
    assert chart.advance().counts.total == 8
    assert len(ends.read_so_far) == before, "nothing new, nothing read"


def test_the_last_minutes_of_event_time() -> None:
    ends = Ends(events(0, 1_000))
    chart = cursor(ends, last=60_000)
    assert chart.advance().series[0].points.y.tolist() == list(range(939, 1_000))
    ends.come(1_000, 1_010)
    assert chart.advance().range == (START + 949_000, START + 1_009_000)


def test_what_cannot_be_seen_is_left_out_and_counted() -> None:
    ends = Ends(events(0, 10_000))
    chart = cursor(ends)
    chart.columns = 100
    shown = chart.advance()
    assert 200 <= len(shown.series[0].points) <= 202
    assert (shown.series[0].held, shown.drawn < 10_000, shown.drawn <= MOST_DRAWN) == (10_000, True, True)
    chart.zoom(START + 50_000, START + 80_500)
    zoomed = chart.advance()
    assert zoomed.series[0].points.y.tolist() == list(range(49, 82)), "and a neighbour at each side"
    assert zoomed.zoomed
    ends.come(10_000, 10_100)
    assert chart.advance().range == (START + 50_000, START + 80_500), "a zoom stays while the chart grows"
    chart.show_all()
    assert chart.advance().range == (START, START + 10_099_000)


def test_a_pause_keeps_the_points_and_counts() -> None:
    ends = Ends(events(0, 10))
    chart = cursor(ends)
    chart.advance()
    chart.pause()
    ends.come(10, 30)
    shown = chart.advance()
    assert (shown.drawn, shown.counts.waiting, shown.counts.paused) == (10, 20, 101.0)
    assert len(ends.read_so_far) == 1
    chart.resume()
    shown = chart.advance()
    assert (shown.drawn, shown.counts.waiting, shown.counts.paused) == (30, 0, None)


def test_more_than_can_be_read_at_a_time_is_counted() -> None:
    ends = Ends(events(0, 1))
    chart = cursor(ends)
    chart.advance()
    more = pd.DataFrame({"timestamp": START, "k": "a", "v": 1.0}, index=range(MOST_READ + 500))
    ends.frame = pd.concat([ends.frame, more], ignore_index=True)
    assert chart.advance().counts.not_read == 500


def test_events_that_are_committed_before_the_reading_are_read_too() -> None:
    class Growing(Ends):
        def read(self, most: int, key: str | None) -> StreamEnd:
            if len(self.read_so_far) == 1:
                self.come(20, 25)
            return super().read(most, key)

    ends = Growing(events(0, 10))
    chart = cursor(ends)
    chart.advance()
    ends.come(10, 20)
    shown = chart.advance()
    assert (shown.drawn, shown.counts.not_read, ends.read_so_far) == (25, 0, [MOST_READ, 10, 15])


def test_an_empty_stream() -> None:
    shown = cursor(Ends(), by="k").advance()
    assert (shown.series, shown.range, shown.drawn, len(shown.frame)) == ((), None, 0, 0)


APP = """define stream S (k string, v int, at long, o bool);
define stream Words (w string);
define aggregation Sums from S select k, sum(v) as total group by k aggregate every sec;
from S[v >= 0] select k, v, at, v * 2.0 as w insert into O;
from Words select w insert into Said;
"""


def test_charts_of_an_app(run: Run) -> None:
    app = run(APP, nodes=2, mode="active-active", master="inline")
    rows = [["ab"[n % 2], n, START + n, True] for n in range(100)]
    app.send("S", rows, at=START)
    app.flush()
    frame = app.chart("O", y="v", by="k").frame
    assert list(frame.columns) == ["series", "timestamp", "value"]
    assert frame.groupby("series")["value"].sum().to_dict() == {"a": sum(range(0, 100, 2)), "b": sum(range(1, 100, 2))}
    by_node = app.chart("O", y="w").snapshot()
    assert {s.label for s in by_node.series} <= {"node-1", "node-2"}, "a line for each node of several"
    arrived = app.chart("S", y="v", x="at", kind="points").snapshot()
    assert arrived.over_time, "whole numbers that look like times are times"
    assert arrived.range == (START, START + 99)
    assert app.chart("S", by="k").shape.y == ("v", "at")
    assert not app.chart("S", x="v", y="at").snapshot().over_time
    assert app.chart("S", x="time", y="v", last="10min").shape.last == 600_000


@pytest.mark.parametrize(
    ("stream", "arguments", "message"),
    [
        ("P", {}, "has no stream 'P'"),
        ("O", {"y": "vv"}, "y: app.O has no attribute 'vv'. Did you mean 'v'?"),
        ("O", {"y": "k"}, "y: 'k' of app.O is a string, which cannot be drawn; its numbers are v, at, w"),
        ("O", {"y": []}, "y is an attribute, or several: it is empty"),
        ("Said", {}, "app.Said has no numeric attribute to draw: its attributes are w string"),
        ("O", {"by": "kk"}, "by: app.O has no attribute 'kk'. Did you mean 'k'?"),
        ("O", {"x": "k"}, "x: 'k' of app.O is a string"),
        ("O", {"x": "at", "last": "1min"}, "last is a length of event time, and x is the attribute 'at'"),
        ("O", {"last": "soon"}, "last is a duration such as"),
        ("O", {"last": "0 s"}, "last is a duration above 0"),
        ("O", {"kind": "pie"}, "kind is 'line', 'bar' or 'points', not 'pie'"),
        ("Sums", {}, "app.Sums is an aggregation: %siddhi view app.Sums draws it"),
    ],
)
def test_mistakes(run: Run, stream: str, arguments: dict[str, Any], message: str) -> None:
    app = run(APP, master="inline")
    with pytest.raises(Misuse) as error:
        app.chart(stream, **arguments)
    assert message in str(error.value)
