"""Traces of windows: what a window holds after each step, and when each event enters and leaves."""

from __future__ import annotations

from typing import Any

import pytest

from sparkstream_nb import trace
from sparkstream_nb.app.results.traces import Stay, TracedWindow, WindowTrace
from sparkstream_nb.app.tracing.trace_feed import FeedStep, TraceFeed
from sparkstream_nb.app.tracing.traced_node import TracedNode
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.plan import bind_retrieval, compile_app
from sparkstream_nb.plan.window_declarations import DECLARATIONS

STREAM = "define stream S (k string, v int, at long);"
FEED = [(1000 * i, ["ab"[i % 2], v, 1000 * i]) for i, v in enumerate([0, 3, 1, 4, 2, 0, 3])]


def traced(text: str, feed: Any = None, **how: Any) -> WindowTrace:
    found = trace(f"{STREAM} {text}", None, FEED if feed is None else feed, **how)
    assert isinstance(found, WindowTrace)
    return found


def query(window: str, events: str = "") -> str:
    return f"@info(name = 'q') from S#window.{window} select k, v insert {events} into Out;"


def written(window: TracedWindow) -> list[str]:
    """Each stay as `entry-emitted-left` in seconds: `-` for what did not happen, `(...)` for an event that was not in
    the window after any step."""

    def one(s: Stay) -> str:
        times = [s.entry, s.emitted, s.left]
        text = " ".join("-" if t is None else f"{t / 1000:g}" for t in times)
        return text if s.held else f"({text})"

    return [one(s) for s in window.stays]


ALL = {
    "length(3)": ["0 0 3", "1 1 4", "2 2 5", "3 3 6", "4 4 -", "5 5 -", "6 6 -"],
    "lengthBatch(3)": ["0 2 5", "1 2 5", "2 2 5", "3 5 -", "4 5 -", "5 5 -", "6 - -"],
    "time(3 sec)": ["0 0 3", "1 1 4", "2 2 5", "3 3 6", "4 4 7", "5 5 8", "6 6 9"],
    "timeBatch(3 sec)": ["0 3 6", "1 3 6", "2 3 6", "3 6 9", "4 6 9", "5 6 9", "6 9 12"],
    "timeLength(3 sec, 2)": ["0 0 2", "1 1 3", "2 2 4", "3 3 5", "4 4 6", "5 5 8", "6 6 9"],
    "externalTime(at, 3 sec)": ["0 0 3", "1 1 4", "2 2 5", "3 3 6", "4 4 -", "5 5 -", "6 6 -"],
    "externalTimeBatch(at, 3 sec)": ["0 3 6", "1 3 6", "2 3 6", "3 6 -", "4 6 -", "5 6 -", "6 - -"],
    "session(3 sec, k)": ["0 0 9", "1 1 8", "2 2 9", "3 3 8", "4 4 9", "5 5 8", "6 6 9"],
    "batch()": ["0 0 1", "1 1 2", "2 2 3", "3 3 4", "4 4 5", "5 5 6", "6 6 -"],
    "delay(3 sec)": ["0 3 3", "1 4 4", "2 5 5", "3 6 6", "4 7 7", "5 8 8", "6 9 9"],
    "cron('*/2 * * * * ?')": ["0 2 4", "1 2 4", "2 4 6", "3 4 6", "4 6 8", "5 6 8", "6 8 -"],
    "sort(2, v)": ["0 0 -", "1 1 2", "2 2 5", "(3 3 3)", "(4 4 4)", "5 5 -", "(6 6 6)"],
    "expression('count() < 3')": ["0 0 2", "1 1 3", "2 2 4", "3 3 5", "4 4 6", "5 5 -", "6 6 -"],
    "expressionBatch('count() < 3')": ["0 2 4", "1 2 4", "2 4 6", "3 4 6", "4 6 -", "5 6 -", "6 - -"],
    "frequent(2, k)": ["0 0 2", "1 1 3", "2 2 4", "3 3 5", "4 4 6", "5 5 -", "6 6 -"],
    "lossyFrequent(0.01, 0.005, k)": ["0 0 2", "1 1 3", "2 2 4", "3 3 5", "4 4 6", "5 5 -", "6 6 -"],
    "unique:ever(k)": ["0 0 2", "1 1 3", "2 2 4", "3 3 5", "4 4 6", "5 5 -", "6 6 -"],
    "unique:first(k)": ["0 0 -", "1 1 -", "(2 - 2)", "(3 - 3)", "(4 - 4)", "(5 - 5)", "(6 - 6)"],
    "unique:length(k, 2)": ["0 0 2", "1 1 -", "2 2 -", "3 3 -", "4 4 -", "5 5 -", "6 6 -"],
    "unique:time(k, 3 sec)": ["0 0 2", "1 1 3", "2 2 4", "3 3 5", "4 4 6", "5 5 8", "6 6 9"],
    "unique:lengthBatch(k, 2)": ["0 1 3", "1 1 3", "2 3 5", "3 3 5", "4 5 -", "5 5 -", "6 - -"],
    "unique:timeBatch(k, 3 sec)": ["0 - 2", "1 3 6", "2 3 6", "3 - 5", "4 6 9", "5 6 9", "6 9 12"],
    "unique:timeLengthBatch(k, 3 sec, 2)": ["0 1 4", "1 1 4", "(2 - 2)", "3 4 9", "4 4 9", "(5 - 5)", "6 9 12"],
    "unique:externalTimeBatch(k, at, 3 sec)": ["0 - 2", "1 3 6", "2 3 6", "3 - 5", "4 6 -", "5 6 -", "6 - -"],
    "unique:firstLengthBatch(k, 2)": ["0 1 3", "1 1 3", "2 3 5", "3 3 5", "4 5 -", "5 5 -", "6 - -"],
    "unique:firstTimeBatch(k, 3 sec)": ["0 3 6", "1 3 6", "(2 - 2)", "3 6 9", "4 6 9", "(5 - 5)", "6 9 12"],
}
"""Stays of FEED's events, which come once a second, in each window, if the query asks for expired events too."""


def test_every_window_is_tried() -> None:
    assert {call.split("(")[0] for call in ALL} == set(DECLARATIONS)


@pytest.mark.parametrize("call", ALL)
def test_stays_of_each_window(call: str) -> None:
    found = traced(query(call, "all events"))
    (window,) = found.windows
    assert window.text == call
    assert written(window) == ALL[call]


def test_a_batch_is_gone_with_its_emission_where_expired_events_are_not_wanted() -> None:
    (window,) = traced(query("lengthBatch(3)")).windows
    assert written(window) == ["0 2 2", "1 2 2", "(2 2 2)", "3 5 5", "4 5 5", "(5 5 5)", "6 - -"]
    assert window.resets == [2000, 5000]


def test_events_that_are_counted_out() -> None:
    """A key too many takes one off every count: it gets in only where one falls to nothing."""
    feed = [(0, ["a", 1, 0]), (1000, ["a", 2, 0]), (2000, ["b", 3, 0]), (3000, ["c", 4, 0])]
    (window,) = traced(query("frequent(1, k)"), feed).windows
    assert written(window) == ["0 0 1", "1 1 3", "(2 - 2)", "3 3 -"]


FINDS = dict.fromkeys(DECLARATIONS, "held") | {
    "delay": "waiting", "expressionBatch": "waiting", "session": "nothing", "unique:lengthBatch": "waiting",
    "unique:firstLengthBatch": "waiting",
}  # fmt: skip
"""Which of a window's events an on-demand query finds: Siddhi's windows differ in it."""


@pytest.mark.parametrize("name", DECLARATIONS)
def test_contents_are_those_that_a_retrieval_finds(name: str) -> None:
    """After every step. Named windows follow their contents by rows that enter and leave, not by the window's state."""
    call = DECLARATIONS[name].example_call(count=3, few=2, time="3 sec", at="at", key="k", value="v")
    plan = compile_app(f"{STREAM} define window W (k string, v int, at long) {call}; from S insert into W;")
    text = "from W select v"
    retrieval = bind_retrieval(parse_on_demand(text), plan, text)
    node = TracedNode(plan, "W", "W")
    (window,) = node.watching.windows
    feed = [FeedStep(1000 * i, "S", [["abc"[i % 3], (7 * i) % 11, 1000 * i]]) for i in range(12)]
    values: dict[int, int] = {}
    steps = 0
    for _ in node.moments(TraceFeed(feed, len(feed)), lambda: bool(window.contents())):
        arrived, _ = window.take(node.engine.services.strings)
        values |= {e.number: e.values[1] for e in arrived}
        contents = window.contents()
        wanted = {
            "held": [values[n] for n, waits in contents if not waits],
            "waiting": [values[n] for n, waits in contents if waits],
            "nothing": [],
        }[FINDS[name]]
        assert sorted(row[0] for row in node.engine.answer(retrieval).rows) == sorted(wanted)
        steps += 1
    assert steps >= 12


def test_a_trace_changes_no_output() -> None:
    """A watched node has the outputs of one that is not watched, as far as both take the same steps."""
    for name, declaration in DECLARATIONS.items():
        call = declaration.example_call(count=3, few=2, time="3 sec", at="at", key="k", value="v")
        text = f"{STREAM} {query(call).replace('select k, v', 'select k, sum(v) as t group by k')}"
        plan = compile_app(text)
        results = []
        for watched in ("q", "nothing"):
            node = TracedNode(plan, watched, "q")
            feed = TraceFeed([FeedStep(1000 * i, "S", [["abc"[i % 3], i, 1000 * i]]) for i in range(12)], 12, 11_000)
            moments = node.moments(feed, lambda: False)
            results.append([o for m in moments for o in m.outputs])
        assert results[0] == results[1], name


def test_named_windows_and_their_readers() -> None:
    text = "define window W (k string, v int, at long) time(2 sec); from S insert into W; "
    reader = "@info(name = 'q') from W select sum(v) as t insert into Out;"
    direct = traced(text, FEED[:3])
    assert (direct.query, direct.windows[0].text) == ("W", "time(2 sec)")
    found = trace(f"{STREAM} {text} {reader}", "q", FEED[:3])
    assert isinstance(found, WindowTrace)
    assert written(found.windows[0]) == written(direct.windows[0]) == ["0 0 2", "1 1 3", "2 2 4"]
    assert [o.values["t"] for o in found.outputs] == [0, 3, 4]


def test_both_sides_of_a_join() -> None:
    text = (
        "define stream S (k string, v int); define stream T (k string, w int); @info(name = 'q') "
        "from S#window.length(1) join T#window.time(2 sec) on S.k == T.k select S.k, v, w insert into Out;"
    )
    feed = [("S", 0, ["a", 1]), ("T", 1000, ["a", 2]), ("S", 2000, ["a", 3]), ("S", 4000, ["a", 4])]
    found = trace(text, "q", feed)
    assert isinstance(found, WindowTrace)
    left, right = found.windows
    assert (left.stream, left.text, right.stream, right.text) == ("S", "length(1)", "T", "time(2 sec)")
    assert written(left) == ["0 0 2", "2 2 4", "4 4 -"]
    assert written(right) == ["1 1 3"]
    assert [(o.time, o.values["v"], o.values["w"]) for o in found.outputs] == [(1000, 1, 2), (2000, 3, 2)]


def test_instances_of_a_partition_have_their_keys() -> None:
    text = f"{STREAM} partition with (k of S) begin {query('lengthBatch(2)', 'all events')} end;"
    found = trace(text, "q", FEED[:5])
    assert isinstance(found, WindowTrace)
    assert [s.event.key for s in found.windows[0].stays] == ["a", "b", "a", "b", "a"]
    assert written(found.windows[0]) == ["0 2 -", "1 3 -", "2 2 -", "3 3 -", "4 - -"]


@pytest.mark.parametrize("call", ALL)
def test_one_key_of_a_partition_has_the_stays_of_a_window_outside(call: str) -> None:
    """Windows in partitions are other classes."""
    text = f"{STREAM} partition with ('all' of S) begin {query(call, 'all events')} end;"
    found = trace(text, "q", FEED)
    assert isinstance(found, WindowTrace)
    assert written(found.windows[0]) == ALL[call]


def test_events_sent_at_once_are_a_batch() -> None:
    found = traced(query("batch()", "all events"), [(0, [["a", 1, 0], ["b", 2, 0]]), (1000, ["a", 3, 0])])
    assert written(found.windows[0]) == ["0 0 1", "0 0 1", "1 1 -"]
    assert found.windows[0].resets == [1000]


def test_the_end_of_a_trace() -> None:
    text = query("time(1 hour)")
    assert traced(text, FEED[:3]).feed.end == 2000, "no timer is due soon"
    far = traced(text, FEED[:3], until=3_700_000)
    assert (far.feed.end, written(far.windows[0])[0]) == (3_700_000, "0 0 3600")
    assert traced(text, FEED, limit=4).feed.events == 4
    assert traced(text, FEED, limit=4).feed.cut


def test_outputs_are_in_the_order_of_the_query() -> None:
    found = traced(query("time(2 sec)", "all events"), [(0, ["a", 1, 0]), (2000, ["a", 2, 0])])
    assert [(o.time, o.values["v"], o.expired) for o in found.outputs] == [
        (0, 1, False), (2000, 1, True), (2000, 2, False), (4000, 2, True),
    ]  # fmt: skip


def test_the_frame_of_a_trace() -> None:
    frame = traced(query("lengthBatch(3)", "all events"), FEED[:4]).frame
    assert list(frame.columns) == ["window", "entered", "emitted", "left", "held", "key", "k", "v", "at"]
    assert frame["left"].isna().all()
    assert frame["emitted"].tolist()[:3] == [2000, 2000, 2000]
