"""Pictures of traces: texts that are escaped, within the picture, cut where there is too much; figures; plain text."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from sparkstream_nb import trace
from sparkstream_nb.app.pictures.trace_labels import clock_axis, moment_text
from sparkstream_nb.app.results.traces import PatternTrace, WindowTrace
from sparkstream_nb.charts.picture import Lane, LaneAxis, Panel, Picture
from sparkstream_nb.charts.picture_layout import PlacedTick, lay_out
from sparkstream_nb.charts.svg_picture import svg
from sparkstream_nb.charts.text_places import cut_values, text_width
from sparkstream_nb.charts.ticks import short_duration
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.lab.traces_shown import trace_picture

WINDOW = (
    "define stream S (k string, v int); @info(name = 'q') "
    "from S#window.{call} select k, sum(v) as total insert all events into Out;"
)
PATTERN = (
    "define stream A (k string); define stream B (k string); @info(name = 'q') "
    "from every e1=A -> not B for 2 sec select e1.k as k insert into Out;"
)
EVIL = "<script>&\"'\x07</script>"


def window(call: str, feed: list[Any], **how: Any) -> WindowTrace:
    found = trace(WINDOW.format(call=call), None, feed, **how)
    assert isinstance(found, WindowTrace)
    return found


def pattern(feed: list[Any], **how: Any) -> PatternTrace:
    found = trace(PATTERN, None, feed, **how)
    assert isinstance(found, PatternTrace)
    return found


def parsed(picture: str) -> ElementTree.Element:
    """The picture as XML: right, and without a script."""
    root = ElementTree.fromstring(picture)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    return root


def words(root: ElementTree.Element) -> list[str]:
    return [e.text or "" for e in root.iter() if e.tag.endswith("}text")]


def draw(t: WindowTrace | PatternTrace, **how: Any) -> str:
    return svg(trace_picture(t), **how)


FEED = [(1000 * i, ["ab"[i % 2], i]) for i in range(7)]


def test_a_window_has_a_bar_for_each_event() -> None:
    root = parsed(draw(window("lengthBatch(3)", FEED)))
    said = words(root)
    assert said[0] == "q: lengthBatch(3) over 7 events"
    assert {"a, 0", "b, 1", "outputs", "in the window", "not emitted yet", "reset"} <= set(said)
    described = next(e.text for e in root.iter() if e.tag.endswith("}desc"))
    assert described == "lengthBatch(3) of S holds 5 events at most; the query has 2 outputs"
    assert root.get("role") == "img"


def test_a_pattern_has_a_lane_for_each_partial_match() -> None:
    said = words(parsed(draw(pattern([("A", 0, ["x"]), ("A", 1000, ["y"]), ("B", 2500, ["z"])]))))
    assert said[0] == "q: every e1=A -> not B for 2 sec"
    assert {"A", "B", "1", "2", "match", "dropped", "not B for 2 sec"} <= set(said)
    said = words(parsed(draw(pattern([("A", 0, ["x"]), ("B", 1000, ["z"]), ("A", 3000, ["y"])]))))
    assert "an event of B came" in said


@pytest.mark.parametrize("make", [lambda: window("length(3)", [(0, [EVIL, 1])]), lambda: pattern([("A", 0, [EVIL])])])
def test_values_are_escaped(make: Any) -> None:
    shown = make()
    for picture in (draw(shown).replace("\x07", ""), html(shown)):
        assert "<script" not in picture
    parsed(draw(shown).replace("\x07", ""))


def test_control_characters_leave_the_picture_right() -> None:
    parsed(draw(window("length(3)", [(0, ["\x00\x07\ud7ff\ufffe", 1])])))


@pytest.mark.parametrize("width", [420, 900, 1400])
def test_everything_is_within_the_picture(width: int) -> None:
    long = "x" * 300
    shown = [
        window("time(3 sec)", [(1000 * i, [long, i]) for i in range(5)]),
        pattern([("A", 1000 * i, [long]) for i in range(5)]),
    ]
    for t in shown:
        root = parsed(draw(t, width=width))
        for e in root.iter():
            for name in ("x", "x1", "x2", "cx"):
                if (value := e.get(name)) is not None and not value.endswith("%"):
                    assert -8 <= float(value) <= width + 8, ElementTree.tostring(e)


def test_long_feeds_are_cut_and_the_picture_says_so() -> None:
    shown = window("length(3)", [(1000 * i, ["a", i]) for i in range(300)])
    notes = [w for w in words(parsed(draw(shown))) if "first" in w]
    assert notes == [
        "The first 60 of 200 events are drawn.", "The trace uses the first 200 of the feed's 300 events (limit).",
    ]  # fmt: skip
    assert text(shown).splitlines()[-2:] == notes
    many = pattern([("A", 100 * i, [str(i)]) for i in range(60)])
    assert "The first 40 of 60 partial matches are drawn." in words(parsed(draw(many)))


def test_a_notebook_gets_an_image_with_an_alternative() -> None:
    shown = html(window("length(3)", FEED))
    assert 'alt="q: length(3) over 7 events"' in shown
    found = re.search(r"base64,([^\"]+)", shown)
    assert found is not None
    parsed(base64.b64decode(found[1]).decode())


def test_the_plain_text_of_a_window() -> None:
    assert text(window("lengthBatch(2)", FEED[:3])).splitlines() == [
        "q: lengthBatch(2) over 3 events",
        "a, 0  ░░░░░░░░░░░░░░░░░░░░░░░░████████████████████████▶  0 s to the end, emitted 1 s",
        "b, 1                          ████████████████████████▶  1 s to the end",
        "a, 2                                                  ▶  2 s to the end",
        "reset at 1 s",
        "output at 1 s: b, 1",
    ]


def test_the_plain_text_of_a_pattern() -> None:
    assert text(pattern([("A", 0, ["x"]), ("A", 1000, ["y"]), ("B", 2500, ["z"])])).splitlines() == [
        "q: every e1=A -> not B for 2 sec",
        "3 events, 2 partial matches, 1 match",
        "1: e1 at 0 s (x), not B for 2 sec at 2 s: match at 2 s",
        "2: e1 at 1 s (y): dropped at 2.5 s (an event of B came)",
        "output at 2 s: x",
    ]


def test_the_key_of_a_partition_is_before_the_values_that_lack_it() -> None:
    app = (
        "define stream S (k string, v int); partition with ({by} of S) begin @info(name = 'q') "
        "from S#window.length(1) select v insert into Out; end;"
    )
    assert text(trace(app.format(by="str:upper(k)"), "q", [(0, ["a", 1])])).splitlines()[1].startswith("A: a, 1  ")
    assert text(trace(app.format(by="k"), "q", [(0, ["a", 1])])).splitlines()[1].startswith("a, 1  ")


def test_repr_is_the_plain_text() -> None:
    shown = window("length(3)", FEED)
    assert repr(shown) == text(shown)


def ticks(start: int, end: int) -> list[PlacedTick]:
    """The ticks of the clock from `start` to `end` (ms)."""
    return lay_out(Picture("", [Panel(clock_axis(start, end), LaneAxis([Lane("lane")]), [])])).panels[0].x_ticks


def test_ticks_of_clocks_of_today() -> None:
    noon = 1_700_000_000_000
    assert [t.label for t in ticks(noon, noon + 4_000)][:2] == ["22:13:20.000", "22:13:20.500"]
    assert ticks(noon, noon + 4_000)[0].context == "14 Nov 2023"
    first = ticks(noon, noon + 86_400_000 * 9)[0]
    assert (first.label, first.context) == ("15 Nov", "2023")
    assert [t.label for t in ticks(0, 90_000)][:2] == ["0 s", "15 s"]
    assert moment_text(noon, noon) == "2023-11-14 22:13:20"
    assert [short_duration(ms) for ms in (0, 250, 60_000, 5_400_000)] == ["0 s", "0.25 s", "1 min", "1 h 30 min"]


PAYMENTS = (
    "define stream S (card string, amount double, country string, at long); @info(name = 'q') "
    "from every e1=S -> e2=S[card == e1.card] select e1.card as card, e2.amount as amount, e2.at as at insert into Out;"
    "@info(name = 'w') from S#window.length(2) select * insert into Last;"
)
NOON = 1_700_000_000_000
PAID = [(NOON + 1000 * i, [f"card-{i % 2}", 1.5 * i, "germany", NOON + 1000 * i]) for i in range(8)]


def test_labels_leave_out_the_time_and_end_after_whole_values() -> None:
    assert "card-1, 1.5, germany" in words(parsed(draw(trace(PAYMENTS, "w", PAID))))
    said = [w for w in words(parsed(draw(trace(PAYMENTS, "q", PAID)))) if w.startswith("card-")]
    assert {"card-0, 0.0, germany", "card-1, 10.5, germany"} <= set(said)
    assert [cut_values("card-0, 1.5, germany", room) for room in (30, 60, 95, 500)] == [
        "car…", "card-0…", "card-0, 1.5…", "card-0, 1.5, germany",
    ]  # fmt: skip


def test_labels_of_close_neighbours_are_in_rows_below() -> None:
    close = [(NOON + at, [f"customer-{at:04d}", 1.0, "x", NOON + at]) for at in range(0, 7000, 500)]
    root = parsed(draw(trace(PAYMENTS, "q", close, labels="card")))
    rows = [e.get("y") for e in root.iter() if re.fullmatch(r"customer-\d{4}", e.text or "")]
    assert len(rows) >= len(close) - 1  # the last one has no room before the edge
    assert len(set(rows)) == 3


@pytest.mark.parametrize("labels", [["card"], ["card", "amount"], ["amount"]])
def test_no_label_covers_a_mark(labels: list[str]) -> None:
    times = [0, 900, 1000, 2500, 2600, 2700, 5000, 7000, 9900, 10_000]
    paid = [(NOON + at, [f"card-{at}", 1.0, "x", NOON + at]) for at in times]
    root = parsed(draw(trace(PAYMENTS, "q", paid, labels=labels)))
    marks = [e for e in root.iter() if e.get("class") == "event"]
    places, row = [float(m.get("cx", 0)) for m in marks], float(marks[0].get("cy", 0)) + 4
    assert len(marks) == len(times)
    beside = [e for e in root.iter() if e.get("font-size") == "11" and abs(float(e.get("y", 0)) - row) < 1]
    assert beside
    for label in beside:
        x, wide = float(label.get("x", 0)), 0.93 * text_width(label.text or "")
        begin = x - wide if label.get("text-anchor") == "end" else x
        assert not [place for place in places if begin < place < begin + wide]


def test_labels_are_chosen() -> None:
    said = words(parsed(draw(trace(PAYMENTS, "q", PAID, labels=["amount"]))))
    assert {"0.0", "1.5", "3.0"} <= set(said)
    assert "1.5  " in text(trace(PAYMENTS, "w", PAID, labels="amount"))
    with pytest.raises(Misuse, match=r"labels: q has no attribute 'amont'\. Did you mean 'amount'\?"):
        trace(PAYMENTS, "q", PAID, labels=["amont"])


def test_a_long_title_has_two_lines() -> None:
    state = (
        "e2=S[card == e1.card and amount > e1.amount and country != e1.country and e1.amount > 100.0 and amount > 1]"
    )
    said = words(parsed(draw(trace(PAYMENTS.replace("e2=S[card == e1.card]", state), "q", PAID))))
    assert f"{said[0]} {said[1]}" == f"q: every e1=S -> {state}"


def texts_in(value: Any) -> Iterator[str]:
    """All texts of a part of a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (t for v in value.values() for t in texts_in(v))
    elif isinstance(value, (list, tuple)):
        yield from (t for v in value for t in texts_in(v))


def hover_texts(t: WindowTrace | PatternTrace) -> list[str]:
    return [h for part in t.figure.data for h in part.hovertext or ()]


@pytest.mark.parametrize("call", ["length(3)", "lengthBatch(3)", "time(2 sec)", "timeBatch(2 sec)", "batch()"])
def test_the_figure_of_a_window_has_a_hover_text_for_each_event(call: str) -> None:
    t = window(call, FEED)
    shown = hover_texts(t)
    for stay in t.windows[0].stays:
        k, v = stay.event.values.values()
        assert [h for h in shown if h.startswith(f"{k}, {v}<br>came at {v} s")]


def test_the_figure_of_a_pattern_has_a_hover_text_for_each_event_partial_match_and_output() -> None:
    t = pattern([("A", 0, ["x"]), ("A", 1000, ["y"]), ("B", 2500, ["z"]), ("B", 9000, ["z"])])
    shown = hover_texts(t)
    assert {"A at 0 s<br>x", "A at 1 s<br>y", "B at 2.5 s<br>z", "B at 9 s<br>z", "x"} <= set(shown)
    assert {"1: e1 at 0 s (x), not B for 2 sec at 2 s: match at 2 s"} <= set(shown)
    assert {"2: e1 at 1 s (y): dropped at 2.5 s (an event of B came)"} <= set(shown)
    names = {part.name for part in t.figure.data if part.showlegend}
    assert names == {"captured event", "waits for an absence", "match", "dropped"}


@pytest.mark.parametrize("make", [lambda k: window("length(3)", [(0, [k, 1])]), lambda k: pattern([("A", 0, [k])])])
@pytest.mark.parametrize("value", [EVIL, "%{x}<b>", "<a href='javascript:x'>"])
def test_values_are_escaped_in_figures(make: Any, value: str) -> None:
    figure = make(value).figure.to_dict()
    figure["layout"].pop("template")
    texts = list(texts_in(figure))
    assert [t for t in texts if "&lt;" in t]
    for t in texts:
        assert "<" not in re.sub(r"</?(br|b|i|extra)>", "", t.replace("%{hovertext}", "")) or "fullData" in t
        assert "%{x}" not in t
        assert "\x07" not in t


def test_a_long_title_of_a_figure_has_two_lines() -> None:
    t = trace(PAYMENTS.replace("e2=S[", f"e2=S[{'amount > 1.0 and ' * 12}"), "q", PAID)
    assert t.figure.layout.title.text.count("<br>") == 1
