"""Histories of events, and the events of outputs."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App, EventHistory, OutputOrigin
from sparkstream_nb.app.explaining import event_follower
from sparkstream_nb.app.explaining.event_history import EntryKind
from sparkstream_nb.app.running import moments
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.compared_shown import comparison_json, comparison_page
from sparkstream_nb.lab.display import html, text

START = 1_717_236_000_000
TEXT = """
define stream S (card string, amount long, shop string);
define stream Unread (v int);
define table Last (card string, amount long);
define aggregation Sales from S[amount > 0] select card, sum(amount) as total group by card aggregate every hour;
@info(name='big') from S[amount > 300 and shop == 'x'] select card, amount insert into Big;
@info(name='late') from Big[amount > 400]#window.length(2) select card, sum(amount) as total insert into Sums;
@info(name='pairs') from S#window.lengthBatch(2) select card, amount insert into Pairs;
@info(name='averages') from S#window.time(20 sec) select card, avg(amount) as mean group by card insert into Averages;
@info(name='twice') from every a=S[amount > 200] -> b=S[b.card == a.card and b.amount > 200] within 1 min
select a.card as card, b.amount as amount insert into Twice;
@info(name='keep') from S[amount > 250] select card, amount update or insert into Last on Last.card == card;
@info(name='run') from S select sum(amount) as total insert into Totals;
"""
ROWS = [("a", 500, "x"), ("a", 100, "x"), ("b", 210, "y"), ("a", 350, "y"), ("a", 450, "x"), ("b", 220, "y")]


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    for i, row in enumerate(ROWS):
        app.send("S", list(row), at=START + 15_000 * i)
    app.tick(START + 200_000)
    return app


def history_of(app: App, event: int, **how: Any) -> EventHistory:
    history = app.follow(event, **how)
    assert isinstance(history, EventHistory)
    return history


def entries(history: EventHistory, *kinds: EntryKind) -> list[tuple[int, str, str]]:
    return [(e.position, e.subject, e.text) for e in history.entries if e.kind in kinds]


def test_the_conditions_that_it_meets(app: App) -> None:
    history = history_of(app, 1)
    frame = history.frame[history.frame["what"] == "condition"]
    assert frame[["subject", "text"]].values.tolist() == [
        ["big", "amount > 300: true; amount is 500"],
        ["big", "shop == 'x': true; shop is x"],
        ["twice", "a: amount > 200: true; amount is 500"],
        ["twice", "b: b.card == a.card: depends on other events; card is a"],
        ["twice", "b: b.amount > 200: true; amount is 500"],
        ["keep", "amount > 250: true; amount is 500"],
        ["Sales", "amount > 0: true; amount is 500"],
        ["late", "amount > 400: true; amount is 500"],
    ]
    assert frame["holds"].isna().sum() == 1
    by_text = history_of(app, 2).frame.set_index("text")
    assert not by_text.loc["amount > 300: false; amount is 100", "holds"]


def test_windows_patterns_and_tables(app: App) -> None:
    history = history_of(app, 1)
    assert entries(history, EntryKind.WINDOW, EntryKind.PARTIAL_MATCH, EntryKind.TABLE) == [
        (1, "late", "entered #window.length"),
        (1, "pairs", "entered #window.lengthBatch, and waits to be emitted"),
        (1, "averages", "entered #window.time"),
        (1, "twice", "is a of a partial match that it begins; it waits for b"),
        (1, "Last", "a row of the table comes from it"),
        (2, "pairs", "left #window.lengthBatch"),
        (3, "averages", "left #window.time"),
        (4, "twice", "the partial match ended in a match"),
        (4, "Last", "its row is overwritten or deleted"),
    ]
    assert history.rest == ["the window of late on node-1"]
    assert history.notes == [
        "The running aggregates of run hold it for good.", "It counts in aggregation Sales.",
        "run has 1 output more with it, up to 2024-06-01 10:01:15 UTC.",
    ]  # fmt: skip
    assert history.sentence == "At the end of the input it is still in the window of late on node-1."
    texts = [e.text for e in history.entries]
    assert history.at(texts.index("its row is overwritten or deleted")).position == 4
    assert [o.stream for o in history.at(0).outputs] == ["Big", "Sums", "Averages", "Totals"]


def test_an_event_in_the_middle_of_a_pattern(run: Callable[..., App]) -> None:
    app = run("""define stream S (v int);
@info(name='p') from every a=S[v == 1] -> b=S[v == 2]<1:2> -> c=S[v == 3] within 10 sec
select a.v as v insert into O;""")
    for at, v in enumerate((1, 2, 2, 1, 3, 2, 9)):
        app.send("S", [v], at=START + 1000 * at + (20_000 if v == 9 else 0))
    assert entries(history_of(app, 1), EntryKind.PARTIAL_MATCH) == [
        (1, "p", "is a of a partial match that it begins; it waits for b"),
        (2, "p", "the partial match moved on: b is event 2; it waits for b, c"),
        (3, "p", "the partial match moved on: b is event 3; it waits for c"),
        (5, "p", "the partial match ended in a match"),
    ]
    assert entries(history_of(app, 3), EntryKind.PARTIAL_MATCH)[0] == (
        3, "p", "is b of a partial match with events 1 and 2; it waits for c",
    )  # fmt: skip
    assert entries(history_of(app, 4), EntryKind.PARTIAL_MATCH) == [
        (4, "p", "is a of a partial match that it begins; it waits for b"),
        (6, "p", "the partial match moved on: b is event 6; it waits for b, c"),
        (7, "p", "the partial match ended: 10 sec had passed"),
    ]


def test_its_outputs(app: App) -> None:
    assert entries(history_of(app, 4), EntryKind.OUTPUT) == [
        (4, "pairs", "Pairs (a, 350)"),
        (4, "averages", "Averages (a, 350.0)"),
        (4, "twice", "Twice (a, 350), with event 1"),
        (4, "run", "Totals (1160), with events 1, 2 and 3"),
        (5, "averages", "Averages (a, 400.0), with event 5"),
        (5, "twice", "Twice (a, 450), with event 5"),
        (5, "run", "Totals (1610), with 4 events from 1 to 5"),
        (6, "run", "Totals (1830), with 5 events from 1 to 6"),
    ]


def test_on_other_nodes(app: App) -> None:
    history = history_of(app, 4, nodes=2, routing="round_robin")
    assert {e.node for e in history.entries} == {"node-2"}
    assert (4, "twice", "Twice (a, 350), with event 1") not in entries(history, EntryKind.OUTPUT)


def test_a_late_event_and_one_that_nothing_reads(app: App) -> None:
    app.send("Unread", [1], at=START + 200_000)
    app.send("S", ["a", 1, "x"], at=START)
    unread, late = history_of(app, 7), history_of(app, 8)
    assert (unread.sentence, unread.notes) == ("Nothing came of it.", ["Nothing reads Unread."])
    assert late.entries[0].text == "came in with (a, 1, x), 3 min 20 sec late: the clock was at " + (
        "2024-06-01 10:03:20 UTC"
    )


def test_conditions_of_functions_tables_and_joins(run: Callable[..., App]) -> None:
    app = run("""define stream S (k string, v int);
define table T (k string);
define stream Q (k string);
from S[str:length(k) > 2 and not (v > 5)]#pol2Cart(1.0, 1.0)[x > 0] select k insert into A;
from S[T.k == k in T] select k insert into B;
from S[S.v > 3] join T on S.k == T.k select S.k insert into C;
partition with (k of S) begin from S[v > 1] select k insert into #I; from #I[k != 'x'] select k insert into D; end;""")
    app.send("S", ["abc", 4], at=START)
    history = history_of(app, 1)
    assert entries(history, EntryKind.CONDITION) == [
        (1, "query1", "str:length(k) > 2: true; k is abc"),
        (1, "query1", "not (v > 5): true; v is 4"),
        (1, "query1", "x > 0: true"),
        (1, "query2", "T.k == k in T: depends on other events; k is abc"),
        (1, "query3", "S.v > 3: true; v is 4"),
        (1, "query4", "v > 1: true; v is 4"),
    ]
    assert entries(history, EntryKind.OUTPUT)[0] == (1, "query1", "A (abc)")


def test_what_an_output_was_made_of(app: App) -> None:
    origin = app.follow(output=("Sums", 2))
    assert isinstance(origin, OutputOrigin)
    assert origin.frame[["event", "stream", "node"]].values.tolist() == [[1, "S", "node-1"], [5, "S", "node-1"]]
    assert (origin.output.query, origin.output.values) == ("late", ["a", 950])
    assert origin.sentence == "It was made of 2 events."
    for number in (1, 2, 3):
        output = app.at(output=("Pairs", number)).outputs
        assert app.follow(output=("Pairs", number)).output.values in [o.values for o in output if o.stream == "Pairs"]


def test_every_output_and_its_events_name_each_other(run: Callable[..., App]) -> None:
    app, chance = run(TEXT), random.Random(5)
    for i in range(30):
        app.send("S", [chance.choice("ab"), chance.randint(1, 50) * 10, chance.choice("xy")], at=START + 4000 * i)
    history_by_event = functools.cache(lambda event: history_of(app, event))
    for stream in ("Sums", "Averages", "Twice", "Pairs"):
        for number in range(1, len(app.output(stream)) + 1, 6):
            origin = app.follow(output=(stream, number))
            assert isinstance(origin, OutputOrigin)
            for event in origin.frame["event"]:
                outputs = history_by_event(event).outputs
                positions = {e.position for e in outputs if e.subject == origin.output.query}
                if len(positions) < event_follower.MOST_OUTPUTS:
                    assert app.at(output=(stream, number)).position in positions


def test_long_recordings_know_aggregates_by_their_first_and_last_event(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {n: entries(history_of(app, n), EntryKind.OUTPUT) for n in range(1, 7)}
    monkeypatch.setattr(moments, "EVERY", 3)
    app.tick(START + 300_000)
    for number, outputs in expected.items():
        in_short = [(position, query) for position, query, _ in outputs]
        assert [(p, q) for p, q, _ in entries(history_of(app, number), EntryKind.OUTPUT)] == in_short
    origin = app.follow(output=("Totals", 6))
    assert isinstance(origin, OutputOrigin)
    assert origin.sentence == "It was made of 6 events, of which the first and the last are here."


def test_many_changes_and_outputs(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_follower, "MOST_CHANGES", 3)
    app = run("""define stream S (v int);
@info(name='p') from every a=S[v == 0] -> b=S[v == 1]<9> -> c=S[v == 2] select a.v as v insert into O;
@info(name='w') from S#window.length(30) select sum(v) as t insert into Sums;""")
    for v in [0, *[1] * 9, 2]:
        app.send("S", [v], at=START)
    history = history_of(app, 1)
    assert not history.is_complete
    assert history.sentence.startswith("Only the changes up to 2024-06-01 10:00:00 are here")
    assert history.rest == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "follow takes the number of an event, or output="),
        ({"event": 1, "output": ("Big", 1)}, "follow takes the number of an event, or output="),
        ({"event": 7}, "6 events came: there is no 7th"),
        ({"event": 0}, "event is at least 1, not 0"),
        ({"output": ("Bug", 1)}, "no output stream 'Bug'. Did you mean 'Big'"),
        ({"output": ("Big", 99)}, "Big has fewer than 99 outputs"),
    ],
)
def test_what_cannot_be_followed(app: App, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        app.follow(**arguments)


def test_no_input_yet(run: Callable[..., App]) -> None:
    with pytest.raises(Misuse, match="has no input yet"):
        run(TEXT).follow(1)


def test_what_it_looks_like(app: App) -> None:
    app.send("S", ["<b>&", 400, "x"], at=START + 200_000)
    history = history_of(app, 7)
    assert "8  2024-06-01 10:03:20  node-1  big       output         Big (<b>&, 400)" in text(history)
    assert "&lt;b&gt;&amp;" in html(history)
    assert "<b>&" not in comparison_page(history, 10)
    data = comparison_json(history, 5)
    assert (data["event"]["number"], data["entries"][0]["kind"], len(data["entries"])) == (7, "came", 5)
    origin = app.follow(output=("Big", 3))
    assert isinstance(origin, OutputOrigin)
    assert "It was made of 1 event." in text(origin)
    assert "<b>&" not in html(origin)
    assert comparison_json(origin, 5)["events"][0]["number"] == 7
    with pytest.raises(Misuse, match="has the entries 0 to"):
        history.at(99)
