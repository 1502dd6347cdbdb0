"""What the last step before a moment changed: in windows, and of partial matches, on each node."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App, Moment
from sparkstream_nb.app.pictures.moment_picture import MOST_ROWS, moment_picture
from sparkstream_nb.app.results.moment_changes import partial_changes, window_changes
from sparkstream_nb.charts.picture import LaneAxis, Points, Rules, Texts
from sparkstream_nb.charts.svg_picture import svg

START = 1_717_236_000_000
STREAM = "define stream S (k string, v double);"
PATTERN = STREAM + (
    "@info(name='p') from every a=S[v > 1] -> b=S[k == a.k and v > 5] within 1 min select a.k insert into O;"
)
ABSENT = STREAM + "@info(name='p') from every a=S[v > 1] -> not S[k == a.k] for 10 sec select a.k insert into O;"
SEQUENCE = STREAM + "@info(name='p') from every a=S[v > 1], b=S[v > 5] select a.k insert into O;"


@pytest.fixture
def app_of(run: Callable[..., App]) -> Callable[..., App]:
    def feed(text: str, *events: tuple[str, float, int]) -> App:
        """Events are (k, v, seconds)."""
        app = run(text)
        for k, v, second in events:
            app.send("S", [k, v], at=START + 1000 * second)
        return app

    return feed


def windows_of(moment: Moment) -> list[tuple[list[Any], list[Any], bool]]:
    """By window and node: the values of new events, of events that left, and whether the first leaves next."""
    changes = window_changes(moment, moment.back(), "q")
    return [
        ([c.window.events[i].values["v"] for i in sorted(c.added_numbers)],
         [e.values["v"] for e in c.removed_events], 0 in c.next_numbers)
        for c in changes
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("length(2)", [([1.0], [], True), ([1.0], [], True), ([2.0], [1.0], True), ([2.0], [1.0], True)]),
        ("time(15 sec)", [([1.0], [], True), ([1.0], [], True), ([2.0], [1.0], True), ([2.0], [1.0], True)]),
        ("lengthBatch(2)", [([1.0], [], False), ([], [1.0], False), ([2.0], [], False), ([], [2.0], False)]),
        ("sort(2, v)", [([1.0], [], False), ([1.0], [], False), ([], [], False), ([], [], False)]),
    ],
)
def test_windows(app_of: Callable[..., App], window: str, expected: list[Any]) -> None:
    app = app_of(
        f"{STREAM} @info(name='q') from S#window.{window} select v insert into O;",
        ("a", 1.0, 0), ("a", 1.0, 10), ("b", 2.0, 20), ("b", 2.0, 30),
    )  # fmt: skip
    found = [windows_of(app.at(event=number)) for number in (1, 2, 3, 4)]
    assert [f[0] for f in found] == expected


def test_in_a_partition_the_first_event_of_each_key_leaves_next(app_of: Callable[..., App]) -> None:
    app = app_of(
        f"{STREAM} partition with (k of S) begin @info(name='q') from S#window.length(2) select v insert into O; end;",
        ("a", 1.0, 0), ("b", 2.0, 1), ("a", 3.0, 2), ("a", 4.0, 3),
    )  # fmt: skip
    (change,) = window_changes(app.at(), app.at().back(), "q")
    assert {change.window.events[i].values["v"] for i in change.next_numbers} == {3.0, 2.0}
    assert [e.values["v"] for e in change.removed_events] == [1.0]


def test_a_join_has_a_lane_for_each_side(app_of: Callable[..., App]) -> None:
    join = "S#window.length(1) as x join S#window.time(9 sec) as y"
    app = app_of(f"{STREAM} @info(name='q') from {join} select x.v insert into O;", ("a", 1.0, 0), ("a", 2.0, 1))
    picture = moment_picture(app.at(), app.at().back(), "q")
    assert picture is not None
    (panel,) = picture.panels
    assert isinstance(panel.y, LaneAxis)
    assert [lane.name for lane in panel.y.lanes] == ["node-1 · S#length", "node-1 · S#time"]


def test_events_with_the_same_time_are_told_from_each_other(app_of: Callable[..., App]) -> None:
    text = f"{STREAM} @info(name='q') from S#window.length(1) select v insert into O;"
    app = app_of(text, ("a", 1.0, 0), ("a", 2.0, 0))
    assert windows_of(app.at()) == [([2.0], [1.0], True)]


def test_an_event_with_nan_stays(app_of: Callable[..., App]) -> None:
    text = f"{STREAM} @info(name='q') from S#window.length(2) select v insert into O;"
    app = app_of(text, ("a", math.nan, 0), ("a", 2.0, 1))
    assert windows_of(app.at()) == [([2.0], [], True)]


def partials_of(moment: Moment) -> list[tuple[float, bool, str | None]]:
    """By partial match: the value of its first event, whether it is new, how it ended."""
    changes = partial_changes(moment, moment.back(), "p")
    return [(next(events[0] for events in c.partial.events if events).values["v"], c.is_new, c.end) for c in changes]


def test_partial_matches_that_begin_match_and_expire(app_of: Callable[..., App]) -> None:
    app = app_of(PATTERN, ("a", 2.0, 0), ("b", 3.0, 10), ("a", 6.0, 20), ("c", 0.0, 65), ("b", 0.5, 90))
    assert partials_of(app.at(event=1)) == [(2.0, True, None)]
    assert partials_of(app.at(event=2)) == [(2.0, False, None), (3.0, True, None)]
    assert partials_of(app.at(event=3)) == [(3.0, False, None), (6.0, True, None), (2.0, False, "match")]
    ended = [row for number in (4, 5) for row in partials_of(app.at(event=number)) if row[2] is not None]
    assert (3.0, False, "expired") in ended


def test_partial_matches_that_advance_or_are_dropped(app_of: Callable[..., App]) -> None:
    text = PATTERN.replace("-> b=S", "-> c=S[k == a.k and v < 0] -> b=S")
    app = app_of(text, ("a", 2.0, 0), ("a", -1.0, 10))
    (change,) = partial_changes(app.at(event=2), app.at(event=1), "p")
    assert change.is_new
    assert [len(events) for events in change.partial.events] == [1, 1, 0]
    dropped = app_of(SEQUENCE, ("a", 2.0, 0), ("a", 1.0, 10))
    assert partials_of(dropped.at(event=2)) == [(2.0, False, "dropped")]


def test_nothing_is_new_without_the_moment_before(app_of: Callable[..., App]) -> None:
    moment = app_of(PATTERN, ("a", 2.0, 0)).at()
    assert [c.is_changed for c in partial_changes(moment, None, "p")] == [False]


def titles_of(picture: Any) -> list[str]:
    """The texts for a pointer, from above."""
    marks = [m for m in picture.marks() if isinstance(m, Points)]
    places = {(y, title) for m in marks for y, title in zip(m.y.tolist(), m.titles, strict=True)}
    return [title for _, title in sorted(places)]


def texts_of(picture: Any) -> list[str]:
    return [text for mark in picture.marks() if isinstance(mark, Texts) for text in mark.texts]


def test_the_picture_of_partial_matches(app_of: Callable[..., App]) -> None:
    app = app_of(PATTERN, ("<i>", 2.0, 0), ("b", 3.0, 10), ("<i>", 6.0, 20))
    picture = moment_picture(app.at(event=3), app.at(event=2), "p")
    assert picture is not None
    assert picture.title == "p: every a=S[v > 1] -> b=S[k == a.k and v > 5] within 1 min"
    assert titles_of(picture) == [
        "a: b, 3.0\nwaits for b until 10:01:10", "a: <i>, 6.0\nwaits for b until 10:01:20", "a: <i>, 2.0\nmatch",
    ]  # fmt: skip
    assert {"a: <i>, 2.0", "match", "node-1: 2 partial matches"} <= set(texts_of(picture))
    names = [m.name for m in picture.marks() if isinstance(m, Points)]
    assert {"event", "came in this step", "match"} <= set(names)
    assert "<i>" not in svg(picture)


def test_an_absence_is_waited_for_until_its_end(app_of: Callable[..., App]) -> None:
    app = app_of(ABSENT, ("a", 2.0, 0), ("b", 2.0, 3))
    picture = moment_picture(app.at(), None, "p")
    assert picture is not None
    words = "waits for not S[k == a.k] for 10 sec until 10:00:1"
    assert [t for t in texts_of(picture) if t.startswith("waits")] == [f"{words}0", f"{words}3"]


def test_the_picture_of_a_window_is_bounded_and_names_the_rest(app_of: Callable[..., App]) -> None:
    text = f"{STREAM} @info(name='q') from S#window.time(1 hour) select v insert into O;"
    app = app_of(text, *(("a", float(i), i) for i in range(MOST_ROWS + 10)))
    picture = moment_picture(app.at(), app.at().back(), "q")
    assert picture is not None
    assert list(picture.notes) == ["node-1: 50 of 60 events are drawn, the first, the last and new ones."]
    marks = {m.name: len(m.x) for m in picture.marks() if isinstance(m, Points)}
    assert marks == {"leaves next": 1, "in the window": MOST_ROWS - 1, "came in this step": 1}
    (timer,) = [m.x.tolist() for m in picture.marks() if isinstance(m, Rules) and m.name == "next timer"] or [[]]
    assert timer == [], "a timer far ahead would leave no room for the events"


def test_many_partial_matches_the_changed_and_the_last_are_drawn(app_of: Callable[..., App]) -> None:
    app = app_of(PATTERN, *((f"k{i}", 2.0, 0) for i in range(MOST_ROWS + 9)), ("k3", 9.0, 1))
    picture = moment_picture(app.at(), app.at().back(), "p")
    assert picture is not None
    assert list(picture.notes) == ["node-1: 10 further partial matches not drawn."]
    titles = titles_of(picture)
    assert len(titles) == MOST_ROWS
    assert "a: k3, 2.0\nmatch" in titles
    assert "a: k3, 9.0\nwaits for b until 10:01:01" in titles


def test_a_query_without_state_has_no_picture(app_of: Callable[..., App]) -> None:
    app = app_of(f"{STREAM} @info(name='q') from S[v > 1] select v insert into O;", ("a", 2.0, 0))
    assert moment_picture(app.at(), None, "q") is None
