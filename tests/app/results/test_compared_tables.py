"""Rows of tables under two texts of an app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App, RuleComparison
from sparkstream_nb.lab.compared_shown import comparison_json
from sparkstream_nb.lab.display import html, text

TEXT = """
define stream S (card string, amount int);
@primaryKey('card') define table Last (card string, amount int);
define table Big (card string, amount int);
@info(name='last') from S select card, amount update or insert into Last set Last.amount = amount
on Last.card == card;
@info(name='big') from S[amount > 300] insert into Big;
"""
EVENTS = [("a", 100), ("b", 400), ("a", 350), ("c", 301), ("b", 301), ("b", 301)]


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    for i, event in enumerate(EVENTS):
        app.send("S", list(event), at=1_717_236_000_000 + 1000 * i)
    return app


def differing_rows(comparison: RuleComparison) -> dict[str, list[Any]]:
    return {
        id: [(f"node-{p.node + 1}", p.before, p.after) for p in table.pairs]
        for id, table in comparison.tables.items() if table.pairs
    }  # fmt: skip


CASES = {
    "nothing": ("amount > 300", "300 < amount", {}),
    "fewer rows, equal ones counted": ("amount > 300", "amount > 301", {
        "Big": [("node-1", (c, 301), None) for c in ("c", "b", "b")],
    }),
    "more rows": ("amount > 300", "amount > 50", {"Big": [("node-1", None, ("a", 100))]}),
    "rows of a key": ("from S select card, amount update", "from S[amount != 350] select card, amount update", {
        "Last": [("node-1", ("a", 350), ("a", 100))],
    }),
    "a key's row is gone": ("from S select card, amount update", "from S[card != 'c'] select card, amount update", {
        "Last": [("node-1", ("c", 301), None)],
    }),
    "an attribute's name": ("amount", "price", {}),
    "a table that one text has": ("from S[amount > 300] insert into Big;", "from S[amount > 300] insert into Out;", {
        "Big": [("node-1", c, None) for c in EVENTS[1:]],
    }),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_rows_that_differ(app: App, old: str, new: str, expected: dict[str, Any]) -> None:
    assert old in TEXT
    assert differing_rows(app.compare(TEXT.replace(old, new))) == expected


def test_a_table_that_only_one_text_has_is_not_compared(app: App) -> None:
    definition = "define table Big (card string, amount int);"
    comparison = app.compare(TEXT.replace(definition, "").replace("into Big", "into Out"))
    assert list(comparison.tables) == ["Last"]


def test_on_several_nodes(app: App) -> None:
    new = TEXT.replace("amount > 300", "amount > 301")
    comparison = app.compare(new, nodes=2, routing="hash:card")
    assert sorted(row for _, row, _ in differing_rows(comparison)["Big"]) == [("b", 301), ("b", 301), ("c", 301)]
    assert comparison.tables["Big"].rows == 5


def test_attributes_that_are_left_out(app: App) -> None:
    new = TEXT.replace("from S select card, amount update", "from S[amount != 350] select card, amount update")
    assert differing_rows(app.compare(new, ignore=["amount"])) == {}


def test_queries_after_the_last_event_count(app: App) -> None:
    app.query("delete Big on Big.card == 'b'")
    comparison = app.compare(TEXT.replace("amount > 300", "amount > 301"))
    assert comparison.table_counts.values.tolist() == [["Last", 3, 0, 0, 0], ["Big", 2, 1, 0, 0]]


def test_what_it_looks_like(app: App) -> None:
    app.send("S", ["<b>&", 350])
    new = TEXT.replace("from S select card, amount update", "from S[amount != 350] select card, amount update")
    comparison = app.compare(new)
    assert "Last      4     1    0             1" in text(comparison)
    assert "no output differs" not in text(comparison)
    assert "<b>&" not in html(comparison)
    assert comparison_json(comparison, 1)["tables"][0] == {
        "table": "Last", "rows": 4, "gone": 1, "new": 0, "other values": 1,
    }  # fmt: skip
    rows = comparison.tables["Last"].frame
    assert rows.columns.tolist() == ["node", "outcome", "card", "amount", "new card", "new amount"]
    assert rows.iloc[0].tolist() == ["node-1", "other values", "a", 350, "a", 100]
