"""Two texts whose streams have other attributes: they are compared by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, Labels
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.compared_shown import comparison_json
from sparkstream_nb.lab.display import html, text

TEXT = """
define stream Pay (card string, amount double, shop string);
define stream Refunds (card string, amount double);
@info(name='big') from Pay[amount > 300] select card, amount, shop insert into Big;
@info(name='back') from Refunds[amount > 10] select card, amount insert into Back;
"""
EVENTS = [("a", 100.0, "x"), ("<b>", 400.0, "y"), ("a", 600.0, "x"), ("c", 301.0, "z")]


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    for i, event in enumerate(EVENTS):
        app.send("Pay", list(event), at=1000 * i)
        app.send("Refunds", list(event[:2]), at=1000 * i + 1)
    return app


RENAMED = (
    TEXT.replace("Pay (card string, amount", "Payments (card string, price")
    .replace("from Pay[amount", "from Payments[price")
    .replace("select card, amount, shop", "select card, price, shop")
)  # fmt: skip
"""The stream Pay is Payments throughout; its amount is a price, while refunds still have an amount."""
LOST = [
    "Pay.amount is in the old text alone",
    "the events of Pay have no price: it is null; --rename Pay.OLD=Pay.price says its old name",
]
CASES: Mapping[str, tuple[str, Mapping[str, str], dict[str, int], list[str]]] = {
    "an attribute of one stream": (RENAMED, {"Pay.amount": "Payments.price"}, {"same": 7}, []),
    "without its old name": (RENAMED, {}, {"same": 4, "gone": 3}, LOST),
    "another order": (
        TEXT.replace("card string, amount double, shop string", "shop string, amount double, card string"), {},
        {"same": 7}, [],
    ),
    "one more": (
        TEXT.replace("shop string", "shop string, till int").replace("amount, shop", "amount, shop, till"), {},
        {"same": 7},
        ["the events of Pay have no till: it is null; --rename Pay.OLD=Pay.till says its old name",
         "Big.till is in the new text alone, and is not compared"],
    ),
    "one less": (TEXT.replace(", shop string", "").replace("amount, shop", "amount"), {}, {"same": 7},
                 ["Pay.shop is in the old text alone", "Big.shop is in the old text alone, and is not compared"]),
    "outputs in another order": (TEXT.replace("card, amount, shop", "shop, card, amount"), {}, {"same": 7}, []),
    "an output's name": (TEXT.replace("select card, amount, shop", "select shop, amount as cost, card"),
                         {"Big.amount": "Big.cost"}, {"same": 7}, []),
    "names that change places": (
        TEXT.replace("select card, amount, shop", "select card as shop, amount, shop as card"),
        {"Big.card": "Big.shop", "Big.shop": "Big.card"}, {"same": 7}, [],
    ),
    "another value at the same place": (
        TEXT.replace("select card, amount, shop", "select card, amount * 2 as doubled, shop"), {},
        {"same": 4, "other values": 3}, [],
    ),
    "a further query": (TEXT.replace("shop insert", "shop, 1 as n insert") + """
                        from Refunds[amount > 500] select card, amount, 'r' as shop, 2 as n insert into Big;""",
                        {}, {"same": 7, "new": 1}, ["Big.n is in the new text alone, and is not compared"]),
}  # fmt: skip


@pytest.mark.parametrize(("new", "new_names", "totals", "notes"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("nodes", [None, 2])
def test_outcomes(
    app: App, new: str, new_names: dict[str, str], totals: dict[str, int], notes: list[str], nodes: int | None
) -> None:
    routing = None if nodes is None else "hash:card"
    comparison = app.compare(new, new_names=new_names, nodes=nodes, routing=routing)
    assert {outcome: n for outcome, n in comparison.totals.items() if n} == totals
    assert list(comparison.notes) == notes
    assert comparison_json(comparison, 5)["notes"] == notes
    for note in notes:
        assert note in text(comparison)
        assert note.replace("<", "&lt;") in html(comparison)


def test_a_cause_of_several_changes_is_found_among_other_attributes(app: App) -> None:
    new = TEXT.replace("amount > 300", "amount > 400").replace("card, amount, shop", "shop, card, amount, 1 as n")
    frame = app.compare(new.replace("amount > 10]", "amount > 100]")).frame
    causes = frame.loc[frame["outcome"] == "gone", ["query", "cause"]].astype(str).values.tolist()
    assert causes == [
        ["big", "amount 400.0 is over 300 and not over 400"], ["big", "amount 301.0 is over 300 and not over 400"],
        ["back", "amount 100.0 is over 10 and not over 100"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("new_names", "words"),
    [
        ({"Pai.amount": "Payments.price"}, "the old text has no stream 'Pai'. Did you mean 'Pay'?"),
        ({"Pay.amont": "Payments.price"}, "stream Pay of the old text has no attribute 'amont'. Did you mean"),
        ({"Pay.amount": "Payments.prize"}, "stream Payments of the new text has no attribute 'prize'"),
        ({"Pay.amount": "price"}, "Pay.amount=price: write OLD=NEW, or the attribute of both streams"),
        ({"Pai": "Payments"}, "the old text has no name 'Pai'. Did you mean 'Pay'?"),
        ({"Pay": "Payment"}, "the new text has no name 'Payment'. Did you mean 'Payments'?"),
        ({"Pay": 5}, "each of the values in new_names is a text"),
    ],
)
def test_names_that_are_not_there(app: App, new_names: Any, words: str) -> None:
    with pytest.raises(Misuse) as error:
        app.compare(RENAMED, new_names=new_names)
    assert words in str(error.value)


def test_an_attribute_of_another_type(app: App) -> None:
    new = TEXT.replace("amount double, shop", "amount long, shop")
    words = "the new text gives stream Pay other attributes than its events have: amount is long, and double there"
    with pytest.raises(Misuse, match=words):
        app.compare(new)
    with pytest.raises(Misuse, match=words):
        app.sweep(new.replace("> 300", "> ${LIMIT}"), {"LIMIT": 300})


def test_a_sweep_of_other_streams_and_attributes(app: App) -> None:
    new = TEXT.replace("Pay", "Payments").replace("card", "owner").replace("shop insert", "shop, 1 as n insert")
    cases = pd.DataFrame({"at": [2000], "owner": ["a"]})
    sweep = app.sweep(new.replace("> 300", "> ${LIMIT}"), {"LIMIT": [300, 500]}, labels=Labels.of(cases, "at"))
    assert sweep.frame[["LIMIT", "outputs", "same", "gone", "new", "recall"]].values.tolist() == [
        ["300", 7, 7, 0, 0, 1.0], ["500", 5, 5, 2, 0, 1.0],
    ]  # fmt: skip
    assert sweep.notes == ("Big.n is in the new text alone, and is not compared",)
    assert sweep.notes[0] in text(sweep)
    assert comparison_json(sweep, 5)["notes"] == list(sweep.notes)
