"""The clauses in which two texts differ, and texts with some of the changes."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from fuzz.compose import AREAS, compose
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.lang.clause_changes import TextComparison
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.lang.printer import to_text

TEXT = """
define stream S (card string, amount double, v int);
define stream R (card string, v int);
define table T (card string, n int);
define aggregation A from S select card, sum(v) as total group by card aggregate every sec ... day;
@info(name='big') from S[amount > 300 and v < 5]#window.time(1 min)
select card, sum(amount) as total group by card having total > 5 order by total limit 3
output last every 5 events insert into Big;
@info(name='twice') from every a=S -> b=S[b.card == a.card]<1:3> -> not R for 5 sec within 1 min
select a.card as card insert into Twice;
@info(name='pairs') from S#window.length(3) as x join R#window.length(2) as y on x.card == y.card
select x.card as card, y.v as v insert into Pairs;
partition with (card of S) begin
@info(name='inner') from S select card, count() as n insert into Counts;
end;
from R select card, v as n update or insert into T set T.n = n on T.card == card;
"""
CHANGES = {
    "a constant": ("> 300", "> 500", ["query big: filter [amount > 300 and v < 5] became [amount > 500 and v < 5]"]),
    "an operator": ("v < 5", "v <= 5", ["query big: filter [amount > 300 and v < 5] became [amount > 300 and v <= 5]"]),
    "a filter less": ("[amount > 300 and v < 5]", "", ["query big: filter [amount > 300 and v < 5] left out"]),
    "a window's length": ("time(1 min)", "time(5 min)", [
        "query big: window #window.time(1 min) became #window.time(5 min)",
    ]),
    "another window": ("time(1 min)", "length(4)", ["query big: window #window.time(1 min) became #window.length(4)"]),
    "no window": ("#window.time(1 min)", "", ["query big: window #window.time(1 min) left out"]),
    "an attribute more": ("select card, sum(amount)", "select v, card, sum(amount)", ["query big: select v added"]),
    "another aggregate": ("sum(amount)", "max(amount)", [
        "query big: select sum(amount) as total became max(amount) as total",
    ]),
    "no groups": (" group by card having", " having", ["query big: group by card left out"]),
    "having": ("having total > 5", "having total > 6", ["query big: having total > 5 became total > 6"]),
    "order": ("order by total", "order by total desc", ["query big: order by total became total desc"]),
    "limit": ("limit 3", "limit 4", ["query big: limit 3 became 4"]),
    "rate": ("every 5 events", "every 6 events", [
        "query big: rate output last every 5 events became output last every 6 events",
    ]),
    "within": ("within 1 min", "within 2 min", ["query twice: within 1 min became 2 min"]),
    "a pattern's filter": ("b.card == a.card", "b.card != a.card", [
        "query twice: filter [b.card == a.card] became [b.card != a.card]",
    ]),
    "no every": ("every a=S", "a=S", ["query twice: pattern every a=S became a=S"]),
    "a count": ("<1:3>", "<2:3>", ["query twice: count b=S[b.card == a.card]<1:3> became b=S[b.card == a.card]<2:3>"]),
    "a waiting time": ("for 5 sec", "for 6 sec", ["query twice: waiting time 5 sec became 6 sec"]),
    "a join's condition": ("x.card == y.card", "x.v == y.v", [
        "query pairs: join condition x.card == y.card became x.v == y.v",
    ]),
    "a kind of join": ("join R", "left outer join R", ["query pairs: kind of join inner became left outer"]),
    "a join's window": ("length(2)", "length(4)", ["query pairs: window #window.length(2) became #window.length(4)"]),
    "a partition's key": ("card of S", "v of S", ["partition: partition key card of S became v of S"]),
    "inside a partition": ("count() as n", "sum(v) as n", ["query inner: select count() as n became sum(v) as n"]),
    "an output's condition": ("on T.card == card", "on T.n == n", [
        "the query that writes T: output update or insert into T set T.n = n on T.card == card"
        " became update or insert into T set T.n = n on T.n == n",
    ]),
    "durations": ("every sec ... day", "every sec ... hour", ["aggregation A: durations day became hour"]),
    "a type": ("R (card string, v int)", "R (card string, v long)", ["stream R: definition v int became v long"]),
    "two clauses": ("time(1 min)\nselect card, sum(amount)", "time(2 min)\nselect card, avg(amount)", [
        "query big: window #window.time(1 min) became #window.time(2 min)",
        "query big: select sum(amount) as total became avg(amount) as total",
    ]),
    "formatting": ("from S[amount", "/* c */\nfrom   S [ amount", []),
    "a derived stream's name": ("Twice", "Double", []),
    "an attribute's name": ("amount", "price", []),
    "an output attribute's name": ("total", "sum1", []),
    "a query's name": ("'pairs'", "'couples'", []),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES.values(), ids=CHANGES)
def test_changes(old: str, new: str, expected: list[str]) -> None:
    assert old in TEXT
    comparison = TextComparison.of(parse(TEXT), parse(TEXT.replace(old, new)))
    assert [str(c) for c in comparison.changes] == expected


def test_elements_that_one_text_lacks() -> None:
    more = "@info(name='all') from S select card insert into All;"
    comparison = TextComparison.of(parse(TEXT), parse(TEXT + more))
    (change,) = comparison.changes
    assert (change.element, change.clause, change.text_before) == ("query all", "query", "")
    (change,) = TextComparison.of(parse(TEXT + more), parse(TEXT)).changes
    assert (change.element, change.clause, change.text_after) == ("query all", "query", "")
    assert to_text(comparison.with_changes([])) == to_text(parse(TEXT))


def test_a_name_that_both_texts_have_is_no_new_name() -> None:
    comparison = TextComparison.of(parse(TEXT), parse(TEXT.replace("on x.card", "on x.v").replace("y.card", "y.v")))
    assert comparison.new_names == {}
    assert TextComparison.of(parse(TEXT), parse(TEXT.replace("Big", "Large"))).new_names == {"Big": "Large"}


def test_each_change_alone_and_all_together() -> None:
    new = TEXT.replace("> 300", "> 500").replace("length(2)", "length(4)").replace("within 1 min", "within 2 min")
    comparison = TextComparison.of(parse(TEXT), parse(new))
    assert len(comparison.changes) == 3
    assert to_text(comparison.with_changes(comparison.changes)) == to_text(parse(new))
    alone = to_text(comparison.with_changes(comparison.changes[:1]))
    assert ("> 500" in alone, "length(4)" in alone, "2 min" in alone) == (True, False, False)


def test_any_app_becomes_any_other_by_all_changes() -> None:
    apps = []
    for number, area in product(range(3), AREAS):
        try:
            apps.append(parse(compose(5, number, area)["app"]))
        except SiddhiError:
            continue
    for old, new in pairwise(apps):
        comparison = TextComparison.of(old, new)
        assert comparison.with_changes([]) == old
        elements = comparison.with_changes(comparison.changes)
        names = dict.fromkeys(comparison.new_names.values())
        assert not names or comparison.changes
        if not names:
            assert sorted(map(to_text, elements.elements)) == sorted(map(to_text, new.elements))
