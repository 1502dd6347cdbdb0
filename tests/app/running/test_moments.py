"""Moments of an app: what each node held, step by step, forth and back, and by SQL."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App, Moment
from sparkstream_nb.app.running import machine_moments
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import html, text

TEXT = """
define stream S (card string, amount double);
define table Last (card string, amount double);
define window W (card string, amount double) length(2);
@info(name='spree') from every a=S[amount > 300] -> b=S[card == a.card and amount > 300] within 1 min
select a.card as card, a.amount + b.amount as total insert into Sprees;
@info(name='recent') from S#window.time(30 sec) select card, sum(amount) as total group by card insert into Sums;
@info(name='pairs') from S#window.length(1) as x join S#window.length(2) as y on x.card == y.card
select x.card as card insert into Pairs;
@info(name='big') from S[amount > 500] select card, amount insert into Big;
@info(name='keep') from S select card, amount update or insert into Last on Last.card == card;
@info(name='fill') from S select card, amount insert into W;
"""
EVENTS = [("a", 400.0), ("<b>", 600.0), ("a", 100.0), ("<b>", 350.0), ("a", 301.0)]
"""One every 20 seconds, from 2024-06-01 10:00 on."""
START = 1_717_236_000_000


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    for i, event in enumerate(EVENTS):
        app.send("S", list(event), at=START + 20_000 * i)
    return app


def waiting(moment: Moment) -> list[list[Any]]:
    return moment["spree"].partial_matches[["a.card", "a.amount", "waits for"]].values.tolist()


def test_a_moment_by_time_event_output_and_at_the_end(app: App) -> None:
    assert app.at("2024-06-01 10:00:45").position == app.at(event=3).position == 3
    assert app.at(event=2).clock == START + 20_000
    assert app.at(output=("Sprees", 1)).position == 4
    assert [o.values for o in app.at(output=("Sprees", 1)).outputs if o.stream == "Sprees"] == [["<b>", 950.0]]
    assert app.at().position == app.at().steps == 5


def test_the_contents_of_windows_patterns_and_tables(app: App) -> None:
    moment = app.at(event=3)
    assert waiting(moment) == [["a", 400.0, "b"], ["<b>", 600.0, "b"]]
    began, ends = moment["spree"].partial_matches.loc[0, ["began", "ends"]]
    assert (began, ends) == (START, START + 60_000)
    assert moment["recent"].window[["timestamp", "amount"]].values.tolist() == [
        [START + 20_000, 600.0], [START + 40_000, 100.0],
    ]  # fmt: skip
    left, right = moment["pairs"].windows
    assert (left["amount"].tolist(), right["amount"].tolist()) == ([100.0], [600.0, 100.0])
    assert moment.rows("Last").values.tolist() == [["node-1", "a", 100.0], ["node-1", "<b>", 600.0]]
    assert moment["node-1"].windows["W"]["card"].tolist() == ["<b>", "a"]
    (event,) = moment.events
    assert (event.number, event.stream, event.values, event.node) == (3, "S", ["a", 100.0], "node-1")


def test_steps_forth_and_back(app: App) -> None:
    moments = [app.at(event=1)]
    while moments[-1].position < moments[-1].steps:
        moments.append(moments[-1].next())
    again = moments[-1]
    for moment in reversed(moments[:-1]):
        again = again.back()
        assert again.nodes == moment.nodes
        assert (again.events, again.outputs, again.clock) == (moment.events, moment.outputs, moment.clock)
    assert again.back().clock is None
    assert waiting(again.back()) == []
    with pytest.raises(Misuse, match="begins with step 1"):
        again.back(2)
    with pytest.raises(Misuse, match="the input of app ends after step 5"):
        again.next(5)


def test_several_nodes_as_they_would_be(app: App) -> None:
    moment = app.at(event=5, nodes=2, routing="round_robin")
    held = moment["spree"].partial_matches[["node", "a.card"]].values.tolist()
    assert held == [["node-1", "a"], ["node-2", "<b>"]]
    assert {o.node for o in moment.outputs if o.stream == "Sums"} == {moment.events[0].node}
    assert list(moment["node-2"]["recent"].by_node) == ["node-2"]


def test_sql_over_a_moment(app: App) -> None:
    moment = app.at(event=3)
    counts = moment.sql("select \"a.card\" as card, count(*) as n from partial_matches('spree') group by 1 order by 1")
    assert counts.values.tolist() == [["<b>", 1], ["a", 1]]
    assert moment.sql("select sum(amount) from contents('recent')").values.tolist() == [[700.0]]
    assert moment.sql("select card from Last where amount > 500").values.tolist() == [["<b>"]]
    files = "select * from read_csv('/etc/hosts')", "copy Last to '/tmp/x.csv'"
    for query in (*files, "select", "select * from Nothing"):
        with pytest.raises(Misuse):
            moment.sql(query)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"time": "2024-05-31"}, "the input of app begins at 2024-06-01 10:00:00 UTC, after 2024-05-31"),
        ({"time": "2025-01-01"}, "the input of app ends at 2024-06-01 10:01:20 UTC, before 2025-01-01"),
        ({"event": 0}, "event is at least 1, not 0"),
        ({"event": 6}, "5 events came: there is no 6th"),
        ({"output": ("Spree", 1)}, "no output stream 'Spree'. Did you mean 'Sprees'"),
        ({"output": ("Sprees", 9)}, "Sprees has fewer than 9 outputs"),
        ({"time": 1, "event": 1}, "give one of them"),
    ],
)
def test_moments_that_are_none(app: App, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        app.at(**arguments)


def test_names_that_are_none(app: App, run: Callable[..., App]) -> None:
    moment = app.at()
    with pytest.raises(Misuse, match=r"there is no node or query 'sprea'\. Did you mean 'spree'"):
        moment["sprea"]
    with pytest.raises(Misuse, match="query spree has no window: read partial_matches"):
        moment["spree"].window  # noqa: B018
    with pytest.raises(Misuse, match="query big has no window: it keeps no events"):
        moment["big"].window  # noqa: B018
    with pytest.raises(Misuse, match="query recent has no pattern: read window"):
        moment["recent"].partial_matches  # noqa: B018
    with pytest.raises(Misuse, match="no table or window 'Lost'"):
        moment.rows("Lost")


def test_no_input_yet(run: Callable[..., App]) -> None:
    with pytest.raises(Misuse, match="has no input yet"):
        run(TEXT).at()


def test_what_it_looks_like(app: App) -> None:
    moment = app.at(event=4)
    assert "app at 2024-06-01 10:01:00, step 4 of 5" in text(moment)
    assert "event 4: S (<b>, 350.0) to node-1" in text(moment)
    assert "output: Sprees (<b>, 950.0) of spree on node-1" in text(moment)
    assert "spree   pattern               node-1  2 partial matches" in text(moment)
    assert "&lt;b&gt;" in html(moment)
    assert "<b>, 350" not in html(moment)
    assert "waits for" in text(moment["spree"])
    assert "&lt;b&gt;" in html(moment["recent"])


def test_the_first_moment_of_a_condition_and_of_an_output(app: App) -> None:
    assert app.until(output="Sprees").position == 4
    with pytest.raises(Misuse, match="Sprees has no output after step 4 of 5"):
        app.until(output="Sprees").until(output="Sprees")
    assert app.until("spree", "partial matches >= 2").position == 2
    assert app.until("recent", "events > 1").position == 2
    assert app.until("Last", "rows > 1").position == 2
    moment = app.at(event=3)
    assert moment.until("spree", "partial matches >= 2").position == 4
    assert moment.since("spree", "partial matches > 1").position == 2
    with pytest.raises(Misuse, match="spree: partial matches >= 3 is not true at step 3"):
        moment.since("spree", "partial matches > 2")


def test_conditions_step_by_step(run: Callable[..., App]) -> None:
    """The first moment after any other is the one that a search step by step has."""
    app = run(TEXT)
    rng = random.Random(5)
    for i in range(40):
        app.send("S", [rng.choice("abc"), rng.choice([100.0, 400.0])], at=START + i * rng.choice([1000, 7000]))
    moments = [app.at().source.moment(position) for position in range(41)]
    for name, what in (("spree", "partial matches"), ("recent", "events"), ("pairs", "events"), ("Last", "rows")):
        counts = []
        for moment in moments:
            if name == "Last":
                counts.append(len(moment.rows("Last")))
            elif name == "spree":
                counts.append(len(moment["spree"].partial_matches))
            else:
                counts.append(sum(map(len, moment[name].windows)))
        for least in range(1, max(counts) + 2):
            start = rng.randrange(35)
            expected = next((p for p in range(start + 1, 41) if counts[p] >= least), None)
            before = moments[start]
            if expected is None:
                with pytest.raises(Misuse, match="is not true after step"):
                    before.until(name, f"{what} >= {least}")
            else:
                moment = before.until(name, f"{what} > {least - 1}")
                assert moment.position == expected
                assert len(moment.events) == 1
                since = moment.since(name, f"{what} >= {least}").position
                assert counts[since] >= least > counts[since - 1]


def test_changes_of_a_query_step_by_step(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(TEXT)
    rng = random.Random(5)
    for i in range(40):
        app.send("S", [rng.choice("abc"), rng.choice([100.0, 400.0, float("nan")])], at=START + i * 5000)
    moments = [app.at().source.moment(p) for p in range(41)]
    for name in ("spree", "recent", "pairs"):
        states = [str(moment[name].by_node) for moment in moments]
        for exact in (1000, 0):
            monkeypatch.setattr(machine_moments, "STEP_BY_STEP", exact)
            for start in (0, 20):
                before = moments[start]
                position = before.until(change=name).position
                if exact:
                    assert position == next(p for p in range(start + 1, 41) if states[p] != states[start])
                assert states[position] != states[start]
                assert states[position - 1] != states[position]
                since = before.since(change=name).position
                assert states[since] == states[start]
                assert since == 0 or states[since - 1] != states[since]
    spree_states = [str(moment["spree"].by_node) for moment in moments]
    assert app.until(change="spree").position == next(p for p in range(41) if spree_states[p] != spree_states[0])
    with pytest.raises(Misuse, match="the state of spree is the same after step 40 of 40"):
        app.at().until(change="spree")
    with pytest.raises(Misuse, match="has no query 'big' that keeps something"):
        app.until(change="big")
    with pytest.raises(Misuse, match="since takes a query or table and a condition, or change=QUERY"):
        app.at().since()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("spree", "events > 1"), "spree keeps partial matches: write 'partial matches > 1'"),
        (("spree", "many"), "a condition is 'partial matches > 1000'"),
        (("spreee", "events > 1"), "no table, 'spreee'. Did you mean 'spree'"),
        (("big", "events > 1"), "no query with a window or pattern, and no table, 'big'"),
        ((), "by a query or table and a condition, by output=STREAM"),
        (("Last", "rows > 1_000"), "Last: rows >= 1,001 is not true after step 0 of 5"),
    ],
)
def test_conditions_that_are_none(app: App, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        app.until(*arguments)
