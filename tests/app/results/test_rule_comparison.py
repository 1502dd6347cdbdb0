"""Two texts of an app over the same events: outcomes and causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import pytest

from sparkstream_nb.app import App, RuleComparison
from sparkstream_nb.app.results import rule_trial
from sparkstream_nb.app.results.output_matching import Alert
from sparkstream_nb.app.results.rule_comparison import match_outputs
from sparkstream_nb.errors import Misuse, SiddhiError
from sparkstream_nb.lab.compared_shown import comparison_json, comparison_page
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.replay import replay

TEXT = """
define stream S (card string, amount double, shop string);
@info(name='big') from S[amount > 300] select card, amount insert into Big;
@info(name='twice') from every a=S -> b=S[b.card == a.card] within 1 min
select a.card as card, b.amount as amount insert into Twice;
@info(name='sums') from S#window.lengthBatch(2) select card, sum(amount) as total group by card insert into Sums;
@info(name='missing') from every a=S[shop == 'x'] -> not S[shop == 'y'] for 10 sec
select a.card as card insert into Missing;
"""
EVENTS = [("a", 100.0, "x"), ("a", 400.0, "z"), ("b", 600.0, "x"), ("b", 300.0, "y"), ("a", 301.0, "z")]
"""One every 20 seconds."""


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    for i, event in enumerate(EVENTS):
        app.send("S", list(event), at=1_717_236_000_000 + 20_000 * i)
    app.tick(1_717_236_200_000)
    return app


def differences(comparison: RuleComparison) -> list[tuple[str, str, list[Any], str]]:
    frame = comparison.frame
    rows = frame[frame["outcome"] != "same"].itertuples(index=False)
    return [(r.query, r.outcome, r.values, str(r.cause)) for r in rows]


CASES: Mapping[str, tuple[str, str, list[tuple[str, str, list[Any], str]]]] = {
    "nothing": ("select card, amount", "select   card, amount", []),
    "a limit is raised": ("amount > 300", "amount > 400", [
        ("big", "gone", ["a", 400.0], "amount 400.0 is over 300 and not over 400"),
        ("big", "gone", ["a", 301.0], "amount 301.0 is over 300 and not over 400"),
    ]),
    "a limit is lowered": ("amount > 300", "amount >= 300", [
        ("big", "new", ["b", 300.0], "amount 300.0 is at least 300 and not over 300"),
    ]),
    "a shorter within": ("within 1 min", "within 30 sec", [
        ("twice", "gone", ["a", 301.0], "1 min from first to last event, within 1 min and not 30 sec"),
    ]),
    "other values of groups": ("sum(amount)", "max(amount)", [
        ("sums", "other values", ["a", 500.0], "query sums: select sum(amount) as total became max(amount) as total"),
        ("sums", "other values", ["b", 900.0], "query sums: select sum(amount) as total became max(amount) as total"),
    ]),
    "another time": ("for 10 sec", "for 15 sec", [
        ("missing", "other time", ["a"], "query missing: waiting time 10 sec became 15 sec"),
        ("missing", "other time", ["b"], "query missing: waiting time 10 sec became 15 sec"),
    ]),
    "a text in place of another": ("shop == 'x'", "shop == 'y'", [
        ("missing", "gone", ["a"], "shop x is 'x' and not 'y'"),
        ("missing", "gone", ["b"], "shop x is 'x' and not 'y'"),
        ("missing", "new", ["b"], "shop y is 'y' and not 'x'"),
    ]),
    "every is left out": ("every a=S -> b", "a=S -> b", [
        ("twice", "gone", ["b", 300.0], "query twice: pattern every a=S became a=S"),
        ("twice", "gone", ["a", 301.0], "query twice: pattern every a=S became a=S"),
    ]),
    "a comparison of constants": ("amount > 300", "amount > 300 and 1 > 2", [
        ("big", "gone", ["a", 400.0], "query big: filter [amount > 300] became [amount > 300 and 1 > 2]"),
        ("big", "gone", ["b", 600.0], "query big: filter [amount > 300] became [amount > 300 and 1 > 2]"),
        ("big", "gone", ["a", 301.0], "query big: filter [amount > 300] became [amount > 300 and 1 > 2]"),
    ]),
    "a derived stream's name": ("Big", "Large", []),
    "an attribute's name": ("amount", "price", []),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_outcomes_and_causes(app: App, old: str, new: str, expected: list[Any]) -> None:
    assert old in TEXT
    assert differences(app.compare(TEXT.replace(old, new))) == expected


def test_each_difference_has_the_change_that_causes_it(app: App) -> None:
    new = TEXT.replace("amount > 300", "amount > 400").replace("within 1 min", "within 30 sec")
    comparison = app.compare(new.replace("a=S ->", "a=S[shop != 'q'] ->"))
    assert len(comparison.changes) == 3
    causes = {(query, cause) for query, _, _, cause in differences(comparison)}
    assert causes == {
        ("big", "amount 400.0 is over 300 and not over 400"),
        ("big", "amount 301.0 is over 300 and not over 400"),
        ("twice", "1 min from first to last event, within 1 min and not 30 sec"),
    }


def test_changes_that_cause_a_difference_only_together(run: Callable[..., App]) -> None:
    old = "define stream S (v int); @info(name='q') from S[v > 5] select v having v > 5 insert into O;"
    app = run(old)
    app.send("S", [1], at=1)
    assert differences(app.compare(old.replace("5", "0"))) == [
        ("q", "new", [1], "together: v 1 is over 0 and not over 5")
    ]


def test_the_texts_take_a_recording_or_frames(app: App, tmp_path: Any) -> None:
    new = TEXT.replace("amount > 300", "amount > 400")
    file = tmp_path / "week.parquet"
    app.recording.save(file)
    assert differences(app.compare(new, feed=file)) == differences(app.compare(new))


def test_the_first_differences_are_the_first_of_all_streams(app: App) -> None:
    comparison = app.compare(TEXT.replace("amount > 300", "amount > 400").replace("every a=S -> b", "a=S -> b"))
    assert comparison.first_differences(3)["query"].tolist() == ["big", "twice", "big"]


def test_on_several_nodes(app: App) -> None:
    new = TEXT.replace("within 1 min", "within 30 sec")
    # On two nodes the pattern sees the cards' events on different nodes: the text changes nothing there.
    assert differences(app.compare(new, nodes=2, routing="round_robin")) == []
    assert len(differences(app.compare(new, nodes=2, routing="hash:card"))) == 1


def test_rows_of_aggregations(run: Callable[..., App]) -> None:
    old = """define stream S (k string, v int);
define aggregation A from S select k, sum(v) as s group by k aggregate every sec;"""
    app = run(old)
    app.send("S", ["a", 5], at=1000)
    comparison = app.compare(old.replace("sum(v)", "max(v)"))
    assert comparison.aggregations.values.tolist() == [["A", 1, 0]]
    app.send("S", ["a", 6], at=1001)
    assert app.compare(old.replace("sum(v)", "max(v)")).aggregations.values.tolist() == [["A", 1, 1]]


@pytest.mark.parametrize(
    ("new", "error", "words"),
    [
        (TEXT.replace("amount > 300", "amont > 300"), SiddhiError, "Did you mean 'amount'?"),
        (
            TEXT.replace("shop string", "shop int").replace("'x'", "1").replace("'y'", "2"),
            Misuse,
            "gives stream S other attributes",
        ),
        (5, Misuse, "the text is a text, not 5"),
    ],
)
def test_what_cannot_be_compared(app: App, new: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        app.compare(new)


def test_a_stream_that_the_new_text_lacks(run: Callable[..., App]) -> None:
    rest = "define stream R (v int); @info(name='q') from S select v insert into O; from R select v insert into P;"
    app = run(f"define stream S (v int); {rest}")
    app.send("S", [1], at=1)
    app.send("R", [2], at=2)
    comparison = app.compare("define stream S (v int); @info(name='q') from S select v insert into O;")
    assert [(q, o) for q, o, _, _ in differences(comparison)] == [("query2", "gone")]


def test_a_derived_stream_may_have_other_attributes(run: Callable[..., App]) -> None:
    old = "define stream S (v int); @info(name='q') from S select v as n insert into O;"
    app = run(old)
    app.send("S", [1], at=1)
    assert [o for _, o, _, _ in differences(app.compare(old.replace("v as n", "v * 1.0 as n")))] == []
    comparison = app.compare(old.replace("v as n", "v + 1 as m, v as n"))
    assert comparison.totals["same"] == 1
    assert comparison.notes == ("O.m is in the new text alone, and is not compared",)


def test_what_it_looks_like(app: App) -> None:
    app.send("S", ["<b>&", 400.0, "z"], at=1_717_236_300_000)
    comparison = app.compare(TEXT.replace("amount > 300", "amount > 400"))
    assert "query big  filter  [amount > 300]  [amount > 400]" in text(comparison)
    assert "amount 301.0 is over 300 and not over 400" in text(comparison)
    assert "&lt;b&gt;&amp;" in html(comparison)
    assert "<b>&" not in comparison_page(comparison, 10)
    data = comparison_json(comparison, 1)
    assert data["changes"] == [
        {"in": "query big", "clause": "filter", "old": "[amount > 300]", "new": "[amount > 400]"}
    ]
    assert (data["differences"], len(data["first"])) == (3, 1)


def test_what_comes_while_it_warms_up_is_not_judged(app: App) -> None:
    comparison = app.compare(TEXT.replace("amount > 300", "amount > 100"), warm_up="1 min")
    counts = comparison.counts.set_index("query")
    assert comparison.differences == 1
    assert counts.loc["big"].tolist() == ["Big", 1, 0, 1, 0, 0, 2]
    assert comparison.totals["not judged"] == counts["not judged"].sum() == 5
    assert "not judged" in text(comparison)
    with pytest.raises(Misuse, match="warm_up is a duration such as '1 min', not 'soon'"):
        app.compare(TEXT, warm_up="soon")


def test_many_differences_are_counted_and_no_longer_paired(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_trial, "MOST_DIFFERENCES", 0)
    app.send("S", ["c", 301.0, "z"], at=1_717_236_300_000)  # an item of its own, as each before
    comparison = app.compare(TEXT.replace("amount > 300", "amount > 400"))
    assert comparison.totals == {
        "same": comparison.totals["same"], "gone": 1, "new": 0, "other values": 0, "other time": 0, "not judged": 3
    }  # fmt: skip


def test_an_attribute_of_chance_is_named_and_left_out(run: Callable[..., App]) -> None:
    old = (
        "define stream S (v int); @info(name='q') from S[v > 2] select UUID() as id, v insert into O;"
        "@info(name='r') from S[math:rand() > 2.0] select v insert into P;"
    )
    app = run(old)
    app.send("S", [1], at=1)
    app.send("S", [3], at=2)
    new = old.replace("v > 2", "v > 0")
    first, second = app.compare(new).notes
    assert first == (
        "O.id has other values each time, as UUID does: leave it out with ignore=['id'] (--ignore id), "
        "or give both texts equal values with freeze=True (--freeze)"
    )
    assert second == "math:rand decides which outputs there are, and gives other values each time"
    comparison = app.compare(new, ignore=["id"])
    assert comparison.notes == (second,)
    assert [(o, values) for _, o, values, _ in differences(comparison)] == [("new", [None, 1])]
    assert comparison.totals["same"] == 1
    with pytest.raises(Misuse, match=r"no output has an attribute 'ide'\. Did you mean 'id'"):
        app.compare(new, ignore="ide")


FROZEN = """
define stream S (v int); define stream R (v int);
@info(name='ids') from S[v > 2] select UUID() as id, v insert into O;
@info(name='drawn') from S[v > 2 and math:rand() < 0.5] select v, math:rand(7) as chance, UUID() as id insert into P;
@info(name='pairs') from every a=S -> b=R select UUID() as id, a.v as a, b.v as b insert into Q;
@info(name='sides') from S#window.length(2) join R#window.length(2) select S.v as v, UUID() as id insert into J;
@info(name='days') from S[v > 2] select time:currentTimestamp() as day, time:timestampInMilliseconds() as ms, v
having ms > 0 insert into D;
partition with (v of S) begin @info(name='parts') from S[v > 2] select UUID() as id insert into X; end;
"""


def test_chance_is_frozen(run: Callable[..., App]) -> None:
    app = run(FROZEN)
    for v in range(40):
        app.send("S", [v], at=1_717_236_000_000 + v // 4)
        app.send("R", [v], at=1_717_236_000_000 + v // 4)
    comparison = app.compare(FROZEN.replace("v > 2", "v > 4"), freeze=True)
    assert comparison.notes == ()
    assert {o for _, o, _, _ in differences(comparison)} == {"gone"}
    pairs = comparison.pairs
    assert {stream: len(of_stream) for stream, of_stream in pairs.items() if stream != "P"} == {
        "O": 37, "Q": 40, "J": 156, "D": 37, "X": 37,
    }  # fmt: skip
    values = {stream: [p.alert.values for p in of_stream] for stream, of_stream in pairs.items()}
    ids = [v for stream in "OPQX" for row in values[stream] for v in row if isinstance(v, str)]
    assert len(set(ids)) == len(ids), "each place and each event has an id of its own"
    assert all(UUID(i).version == 4 for i in ids)
    drawn = [chance for _, chance, _ in values["P"]]
    assert 8 < len(drawn) < 30
    assert min(drawn) < 0.3 < 0.7 < max(drawn)
    assert values["D"][0] == ("2024-06-01 10:00:00", 1_717_236_000_000, 3)


def test_a_sweep_with_frozen_chance(run: Callable[..., App]) -> None:
    own = "define stream S (v int); from S[v > 2] select UUID() as id, v insert into O;"
    app = run(own)
    for v in range(5):
        app.send("S", [v], at=v + 1)
    varied = own.replace("> 2", "> ${LIMIT}")
    assert app.sweep(varied, {"LIMIT": 3}).frame.values.tolist() == [["3", 1, 0, 2, 1]]
    assert app.sweep(varied, {"LIMIT": 3}, freeze=True).frame.values.tolist() == [["3", 1, 1, 1, 0]]


def test_a_script_of_chance_is_not_frozen(run: Callable[..., App]) -> None:
    old = (
        "define stream S (v int); define function f[javascript] return double { return Math.random(); };"
        "@info(name='q') from S select f() as chance insert into O;"
    )
    app = run(old, allow_scripts=True)
    app.send("S", [1], at=1)
    (note,) = app.compare(old.replace("from S ", "from S[v > 0] "), freeze=True).notes
    assert note.endswith("as f does: leave it out with ignore=['chance'] (--ignore chance)")


def test_outputs_with_objects(run: Callable[..., App]) -> None:
    old = "define stream S (v int); @info(name='q') from S[v > 3] select v, createSet(v) as items insert into O;"
    app = run(old)
    for v in range(1, 6):
        app.send("S", [v], at=v)
    assert [(o, values[0], str(cause)) for _, o, values, cause in differences(app.compare(old.replace("3", "4")))] == [
        ("gone", 4, "v 4 is over 3 and not over 4")
    ]


def test_equal_sets_are_equal_in_any_order(run: Callable[..., App]) -> None:
    query = "from S#window.length(2) select unionSet(createSet(v)) as items insert into O;"
    old = f"define stream S (v int); @info(name='q') {query}"
    app = run(old)
    for v in (0, 8, 8, 0):  # these two share a place in Python's sets: the first one comes first
        app.send("S", [v], at=v + 1)
    comparison = app.compare(old.replace("length(2)", "length(4)"))
    assert [(o, values) for _, o, values, _ in differences(comparison)] == [("other values", [{8}])]
    assert comparison_json(comparison, 1)["first"][0]["new values"] == [[0, 8]]


def test_a_long_recording_is_read_again(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = TEXT.replace("amount > 300", "amount > 400").replace("1 min", "30 sec")
    frame = pd.DataFrame(EVENTS, columns=["card", "amount", "shop"])
    frame["at"] = 1_717_236_000_000 + 20_000 * frame.index
    expected = app.compare(new, feed={"S": frame}, time="at").frame
    monkeypatch.setattr(replay, "MOST_KEPT_STEPS", 0)
    reread = app.compare(new, feed={"S": frame}, time="at").frame
    assert reread.astype(str).equals(expected.astype(str))
    assert len(reread)


def test_outputs_by_the_change_that_causes_them(app: App) -> None:
    comparison = app.compare(TEXT.replace("amount > 300", "amount > 400").replace("1 min", "30 sec"))
    assert comparison.by_change[["in", "gone", "new"]].values.tolist() == [["query big", 2, 0], ["query twice", 1, 0]]
    assert [comparison.texts.new_line(c) for c in comparison.changes] == [3, 4]


def test_pairs_of_outputs() -> None:
    def alert(ts: int, *values: Any, made_of: Any = None) -> Alert:
        return Alert(ts, ts, values, None, made_of)

    old = [
        alert(1, "a", 1.0),
        alert(2, "a", 2.0, made_of=[7]),
        alert(3, "b", 3.0, made_of=[8]),
        alert(4, "c", 4.0),
        alert(5, "d", 5.0),
    ]
    new = [
        alert(1, "a", 1.0),
        alert(9, "a", 2.0, made_of=[7]),
        alert(3, "b", 9.0, made_of=[8]),
        alert(4, "c", 9.0),
        alert(5, "e", 5.0),
    ]
    pairs = match_outputs(old, new, keys=[0])
    assert [(p.outcome, p.alert.values[0]) for p in pairs] == [
        ("same", "a"), ("other time", "a"), ("other values", "b"), ("other values", "c"), ("gone", "d"), ("new", "e"),
    ]  # fmt: skip
