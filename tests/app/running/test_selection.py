"""One selection of an app: the events that meet it, as pandas would choose them, and the views that follow it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.app import App
from sparkstream_nb.app.results.selected_ends import SelectedEnds
from sparkstream_nb.app.results.selected_events import SelectedEvents, frame_of_streams
from sparkstream_nb.app.results.selection_criteria import AlertRows, Criteria, EventRow, SharedSelection
from sparkstream_nb.app.results.stream_cursor import StreamEnd
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab import display
from sparkstream_nb.lab.widgets.aggregation import AggregationView
from sparkstream_nb.lab.widgets.chart import ChartView
from sparkstream_nb.lab.widgets.divergence_widget import DivergenceView
from sparkstream_nb.lab.widgets.selection_widget import SelectionView
from sparkstream_nb.lab.widgets.tail import TailView
from sparkstream_nb.outputs.event_tables import event_table
from sparkstream_nb.types import Schema, Type

Run = Callable[..., App]
START = 1_700_000_000_000
SCHEMA = Schema.of(("k", Type.STRING), ("n", Type.INT), ("x", Type.DOUBLE), ("o", Type.OBJECT))
SHARDS = ["node-1", "<b>", "node-3"]
TEXT = """define stream T (symbol string, price double, level int);
define stream Notes (text string, level string);
@PartitionById(enable='true')
define aggregation Sums from T select symbol, sum(price) as total group by symbol aggregate every sec...hour;
@info(name='rise') from every e1=T -> e2=T[symbol == e1.symbol and price > e1.price] within 10 sec
select e1.symbol as symbol, e1.price as low, e2.price as high insert into Rises;
@info(name='high') from T[price > 90.0] select symbol, price insert into Highs;
"""

rows = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 50), st.sampled_from(["a", "b", "", None]),
        st.one_of(st.none(), st.integers(-3, 3)), st.sampled_from([None, 0.5, float("nan"), -0.0]),
    ), max_size=40,
)  # fmt: skip
criteria = st.builds(
    Criteria, st.one_of(st.none(), st.integers(-5, 55)), st.one_of(st.none(), st.integers(-5, 55)),
    st.frozensets(st.sampled_from(SHARDS)),
    st.dictionaries(st.sampled_from(["k", "n", "missing"]), st.tuples(st.sampled_from(["a", "b", None, 1, -3]))),
)  # fmt: skip


def table_of(events: list[tuple[Any, ...]]) -> pa.Table:
    columns = [list(column) for column in zip(*events, strict=True)] or [[] for _ in range(5)]
    nodes, times, k, n, x = columns
    objects = [{"k": value} for value in k]
    typed = [pa.array(times, pa.int64()), pa.array(k, pa.string()), pa.array(n, pa.int32()), pa.array(x, pa.float64())]
    return event_table(np.array(nodes, np.int32), [*typed, objects], SHARDS, SCHEMA)


def meets(row: dict[str, Any], c: Criteria) -> bool:
    """Whether an event meets criteria, one after the other."""
    if (c.start is not None and row["timestamp"] < c.start) or (c.end is not None and row["timestamp"] > c.end):
        return False
    if c.nodes and row["node"] not in c.nodes:
        return False
    return all(row[name] in values for name, values in c.keys.items() if name in row)


@given(rows, criteria)
def test_events_are_selected_that_meet_all_criteria(events: list[tuple[Any, ...]], c: Criteria) -> None:
    table = table_of(events)
    expected = [row for row in table.to_pylist() if meets(row, c)]
    assert repr(c.filter(table, "S").to_pylist()) == repr(expected)


@given(rows, st.data())
def test_alerts_select_their_rows_by_time_and_values(events: list[tuple[Any, ...]], data: st.DataObject) -> None:
    table = table_of(events)
    as_rows = [EventRow("S", ts, (k, n, x, {"k": k})) for _, ts, k, n, x in events]
    picked = data.draw(st.lists(st.sampled_from(as_rows), max_size=5)) if as_rows else []
    alerts = AlertRows("S", len(picked), picked, [EventRow("Other", 1, ("a", 1, 0.5, None))])
    keys = {repr((row.timestamp, *row.values)) for row in picked}
    expected = [repr((ts, k, n, x, {"k": k})) in keys for _, ts, k, n, x in events]
    assert Criteria(alerts=alerts).filter(table, "S").num_rows == sum(expected)
    assert Criteria(alerts=alerts).filter(table, "Third").num_rows == 0


class GrowingEnds:
    """A stream in memory, which grows by `grow` each time it is counted."""

    def __init__(self, table: pa.Table, grow: int) -> None:
        self.rows, self.count, self._grow = table, 0, grow

    def total(self) -> int:
        self.count = min(self.rows.num_rows, self.count + self._grow)
        return self.count

    def table(self, most: int) -> tuple[pa.Table, int]:
        self.count = min(self.rows.num_rows, self.count + self._grow)  # more comes while it is read
        return self.rows.slice(max(0, self.count - most), min(most, self.count)), self.count

    def read(self, most: int, key: str | None) -> StreamEnd:
        raise NotImplementedError


@given(rows, criteria, st.integers(1, 15), st.integers(1, 6))
def test_the_end_of_a_selection_grows_with_its_stream(
    events: list[tuple[Any, ...]], c: Criteria, grow: int, most: int
) -> None:
    table = table_of(events)
    ends, selected = GrowingEnds(table, grow), SelectedEnds(GrowingEnds(table, grow), "S", c)
    for _ in range(len(events) + 2):
        last, total = selected.table(most)
        assert last.num_rows == min(most, total)
    expected = c.filter(table, "S")
    assert selected.total() == expected.num_rows
    assert selected.table(most)[0].to_pandas().equals(expected.slice(max(0, expected.num_rows - most)).to_pandas())
    assert selected.read(1, "k").total == expected.num_rows
    assert ends.total() <= selected.stream_total()


def test_attributes_of_one_name_and_several_types_are_texts() -> None:
    one = event_table(np.array([0]), [[1], ["a"]], ["n"], Schema.of(("stream", Type.STRING)))
    two = event_table(np.array([0]), [[2], [7], [3]], ["n"], Schema.of(("stream", Type.LONG), ("timestamp", Type.LONG)))
    frame = frame_of_streams([SelectedEvents("A", one, True), SelectedEvents("B", two, True)])
    assert list(frame.columns) == ["event_stream", "node", "event_timestamp", "stream", "timestamp"]
    assert frame["stream"].tolist() == ["a", "7"]
    assert frame["event_stream"].tolist() == ["A", "B"]
    assert frame_of_streams([]).empty


def test_who_follows_is_called_after_each_change_until_it_leaves() -> None:
    shared, calls = SharedSelection(), []
    leave = shared.follow(lambda: calls.append(str(shared.criteria)))
    shared.follow(lambda: 1 / 0)  # a view that fails does not hold the others up
    shared.follow(lambda: calls.append("second"))
    shared.choose(Criteria(start=0))
    shared.choose(Criteria(start=0))
    leave()
    shared.choose(Criteria())
    assert calls == ["1970-01-01 00:00:00 to …", "second", "second"]


# -------------------------------------------------------------------------------------------------------------- apps


@pytest.fixture
def app(run: Run) -> App:
    app = run(TEXT, nodes=2)
    n = np.arange(300)
    symbols = np.array(["ibm", "<i>", "wso2"])[n // 4 % 3]
    frame = pd.DataFrame({"symbol": symbols, "price": (n * 37 % 101) * 1.0, "level": n % 5, "at": START + 1000 * n})
    app.feed("T", frame, time="at")
    app.send("Notes", ["x", "3"], at=START + 400_000)
    return app


def test_its_frames_have_what_meets_it(app: App) -> None:
    selection = app.select(
        start=START + 10_000, end="2023-11-14T22:15:20", nodes="node-2", where={"symbol": ["ibm", "wso2"]}
    )
    whole = app.output("Highs").frame
    mask = whole.timestamp.between(START + 10_000, START + 120_000) & (whole.node == "node-2") & (whole.symbol != "<i>")
    assert selection.stream("Highs").equals(whole[mask].reset_index(drop=True))
    assert set(selection.frame["stream"]) == {"Highs", "Rises"}
    assert selection.events["level"].tolist() == [n % 5 for n in range(11, 121, 2) if n // 4 % 3 != 1]
    counted = app.sql("select count(*) as n from s where stream = 'Highs'", frames={"s": selection})
    assert counted.frame["n"].tolist() == [mask.sum()]
    assert "node node-2 · symbol ibm, wso2" in display.text(selection)
    assert app.selection.criteria == selection.criteria
    assert app.select().criteria.is_empty
    assert len(app.selection.events) == 301
    assert app.select(where={"level": "3"}).events["level"].tolist() == ["3"] * 61, "as a text where it is one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": "node-9"}, "has no node 'node-9'"),
        ({"where": {"symbl": "a"}}, "Did you mean 'symbol'?"),
        ({"where": {"price": "high"}}, "price is double: 'high' is none"),
        ({"where": {"symbol": []}}, "symbol has no value"),
        ({"where": "symbol"}, "where is a dict of values by attribute"),
        ({"start": 2, "end": 1}, "end is before start"),
        ({"start": "noon"}, "start: 'noon' is neither ms"),
        ({"nodes": [1]}, "nodes"),
    ],
)
def test_what_cannot_be_selected_is_refused(app: App, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Misuse, match=re.escape(message)):
        app.select(**arguments)
    assert app.selection.criteria.is_empty


class Page:
    """A page that shows a view."""

    def __init__(self, view: Any) -> None:
        self.states: list[dict[str, Any]] = []
        self._receive: Callable[..., None] = lambda *_: None
        self.view, output = view, view._output if view._output is not None else view._made()
        view._output = output
        output.connect(self)
        self.say({"do": "here", "width": 900})

    @property
    def state(self) -> dict[str, Any]:
        return self.states[-1]

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self.states.append(state)

    def send(self, content: Any, buffers: Any = None) -> None:
        pass

    def on_msg(self, callback: Callable[..., None]) -> None:
        self._receive = callback

    def say(self, message: dict[str, Any]) -> None:
        self._receive(self, message, [])


@pytest.fixture
def pages(app: App) -> dict[str, Page]:
    views = [
        TailView(app.tail("Rises", last=5)), ChartView(app.chart("Rises", y="high", by="symbol")),
        AggregationView(app.queries.reader_of("Sums"), per="min"), DivergenceView(app.divergence()),
        SelectionView(app.selection),
    ]  # fmt: skip
    return {type(view).__name__: Page(view) for view in views}


def test_a_choice_in_one_view_is_followed_by_all(app: App, pages: dict[str, Page]) -> None:
    def texts() -> set[str]:
        return {page.state["selection"] for page in pages.values()}

    assert texts() == {""}
    pages["ChartView"].say({"do": "select", "start": START + 60_000.4, "end": START + 120_000, "low": 0, "high": 1})
    assert texts() == {"2023-11-14 22:14:20 to 2023-11-14 22:15:20"}
    pages["AggregationView"].say({"do": "select", "name": "node-2"})
    assert texts() == {"2023-11-14 22:14:20 to 2023-11-14 22:15:20 · node node-2"}
    tail = pages["TailView"]
    assert {row[0] for row in tail.state["rows"]} == {"node-2"}
    text = tail.state["rows"][0][2]
    tail.say({"do": "select", "row": 0, "column": 2, "text": text})
    assert all(t.endswith(f"· symbol {text}") for t in texts())
    assert {row[2] for row in tail.state["rows"]} == {text}
    assert pages["AggregationView"].view.choice.group == (text,)
    assert len(app.selection.frame) > 0
    tail.say({"do": "unselect"})
    assert texts() == {""}
    assert pages["AggregationView"].view.choice.group != (text,), "its own choice again"
    pages["AggregationView"].say({"do": "select", "start": START, "end": START + 150_000, "low": 0, "high": 0})
    assert app.selection.criteria.start == START // 60_000 * 60_000
    assert ((app.selection.criteria.end or 0) + 1) % 60_000 == 0, "whole buckets"


def test_the_time_line_selects_nodes_by_lanes_and_alerts_by_marks(app: App, pages: dict[str, Page]) -> None:
    page = pages["DivergenceView"]
    view = page.view
    figure = json.loads(page.state["figure"])
    places = dict(zip(figure["layout"]["yaxis"]["ticktext"], figure["layout"]["yaxis"]["tickvals"], strict=True))
    low, high = places["node-1"] - 5, places["node-1"] + 5
    page.say({"do": "select", "start": START, "end": START + 50_000, "low": low, "high": high})
    assert app.selection.criteria == Criteria(START, START + 50_000, frozenset({"node-1"}))
    page.say({"do": "select", "start": START, "end": START + 50_000, "low": -1e6, "high": 1e6})
    assert app.selection.criteria.nodes == frozenset(), "all lanes are all nodes"
    page.say({"do": "unselect"})
    lost = next(i for i, m in enumerate(view.timeline().marks) if m.verdict == "lost")
    page.say({"do": "pin", "mark": lost})
    matches = view.timeline().marks[lost].matches
    origins = [o for m in matches for o in view.divergence.events_behind(m.alert)]
    assert len(origins) == 2 * len(matches)
    behind = app.selection.events
    assert set(zip(behind.timestamp, behind.price, strict=True)) == {(o.timestamp, o.values[1]) for o in origins}
    assert app.selection.frame.empty, "no node has it"
    spurious = next(i for i, m in enumerate(view.timeline().marks) if m.verdict == "spurious")
    page.say({"do": "pin", "mark": spurious})
    lows = [m.alert.values[1] for m in view.timeline().marks[spurious].matches]
    assert app.selection.frame["low"].tolist() == lows
    pages["TailView"].say({"do": "unselect"})
    assert view.choice.pinned is None, "no mark is pinned without its alerts"


def test_what_cannot_be_selected_in_a_view_is_said_there(app: App, pages: dict[str, Page]) -> None:
    tail = pages["TailView"]
    tail.say({"do": "select", "row": 0, "column": 3, "text": tail.state["rows"][0][3]})
    assert "low is no text and no whole number" in tail.state["failed"]
    tail.say({"do": "select", "row": 0, "column": 2, "text": "another"})
    assert "the rows have moved on" in tail.state["failed"]
    pages["AggregationView"].say({"do": "select", "name": "merged"})
    assert "merged is no node" in pages["AggregationView"].state["failed"]
    chart = Page(ChartView(app.chart("Rises", y="high", x="low")))
    chart.say({"do": "select", "start": 0, "end": 1})
    assert "this chart is over low" in chart.state["failed"]
    assert app.selection.criteria.is_empty


def test_a_view_that_opens_later_has_the_selection_and_one_that_is_gone_none(app: App, pages: dict[str, Page]) -> None:
    pages["TailView"].say({"do": "gone"})
    count = len(pages["TailView"].states)
    app.select(nodes="node-1", where={"symbol": "<i>"})
    assert len(pages["TailView"].states) == count
    page = Page(TailView(app.tail("Rises")))
    assert {(row[0], row[2]) for row in page.state["rows"]} == {("node-1", "<i>")}
    assert "&lt;i&gt;" in display.html(app.selection)
    assert "<i>" not in display.html(app.selection)


def test_views_that_select_at_the_same_time_do_not_wait_for_each_other(app: App, pages: dict[str, Page]) -> None:
    def select(page: Page, name: str) -> None:
        for _ in range(20):
            page.say({"do": "select", "name": name})

    threads = [
        threading.Thread(target=select, args=(pages["ChartView"], "ibm"), daemon=True),
        threading.Thread(target=select, args=(pages["AggregationView"], "node-1"), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
