"""Two texts of an app and a sweep in a real JupyterLab: tables that are sorted and filtered, and a live picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab, plotted
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

APP = """
import pandas as pd
import sparkstream_nb
from sparkstream_nb.app import Labels

text = '''
define stream Payments (card string, amount double);
@info(name='big') from Payments[amount > 300] select card, amount insert into Big;
@info(name='spree') from every a=Payments[amount > 250] -> b=Payments[b.card == a.card and b.amount > 250] within 1 min
select a.card as card, a.amount + b.amount as total insert into Sprees;
'''
app = sparkstream_nb.deploy(text, name="Rules", fresh=True, master="inline")
n = range(200)
cards = ["ann", "<i>bob</i>", "card & co", "d" * 20]
frame = pd.DataFrame({"card": [cards[i % 4] for i in n], "amount": [i * 37 % 500 + 0.5 for i in n],
                      "at": [1_717_236_000_000 + 7_000 * i for i in n]})
app.feed("Payments", frame, time="at", progress=lambda p: None)
labels = Labels.of(frame[frame["amount"].between(440, 490)][["at", "card"]], "at", "10 sec")
"""
CELLS = [
    LOAD,
    APP,
    'app.compare(text.replace("amount > 300", "amount > 400").replace("1 min", "20 sec"), warm_up="3 min")',
    'app.sweep(text.replace("> 300", "> ${LIMIT}").replace("1 min", "${SPAN}"),\n'
    '          {"LIMIT": [300, 400, 480], "SPAN": ["20 sec", "1 min"]}, labels=labels, warm_up="3 min")',
]
PLOT = ".jp-Notebook .jp-CodeCell:has(.sparkstream-plot)"


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook("rules.ipynb", CELLS, height=3200) as page:
        page.wait_for_selector(f"{PLOT} .main-svg", timeout=180_000)
        lab.idle(page)
        yield page


def table(page: Any, cell: int, head: str) -> Any:
    """The table of a code cell that has a column with this name."""
    return page.locator(".jp-Notebook .jp-CodeCell").nth(cell).locator(
        "table.sparkstream-table", has=page.locator("th", has_text=head)
    )  # fmt: skip


def column(shown_table: Any, number: int) -> list[str]:
    """The texts of a column that are seen."""
    texts: list[str] = shown_table.locator(f"tbody tr:not([hidden]) td:nth-child({number})").all_text_contents()
    return texts


def test_differences_are_sorted_and_filtered(lab: Lab, page: Any) -> None:
    differences = table(page, 2, "cause")
    times = column(differences, 3)
    assert times == sorted(times)
    differences.locator("th", has_text="query").click()
    queries = column(differences, 1)
    assert queries == sorted(queries)
    assert {"big", "spree"} == set(queries)
    field = page.locator(".jp-Notebook .jp-CodeCell").nth(2).get_by_role("searchbox").last
    field.fill("<I>BOB")
    assert column(differences, 4)
    assert all("<i>bob</i>" in text for text in column(differences, 4)), "a value with markup in it is a text"
    assert differences.locator("td i").count() == 0
    assert any("is over 300 and not over 400" in text for text in column(differences, 5))
    lab.picture(page, "rules-compared")
    field.fill("")
    assert table(page, 2, "not judged").count() == 1


def test_a_sweep_has_a_table_a_live_picture_and_examples(lab: Lab, page: Any) -> None:
    settings = table(page, 3, "precision")
    assert len(column(settings, 1)) == 6
    assert any(int(text) for text in column(settings, 7)), "outputs that are not judged"
    plot = plotted(page, PLOT)
    assert plot["title"] == "Rules: 6 settings over 200 events"
    assert "of the first 3 min are not judged" in page.locator(PLOT).text_content()
    examples = table(page, 3, "kind")
    assert {"true positive", "false positive"} <= set(column(examples, 1))
    assert any("<i>bob</i>" in text for text in column(examples, 4))
    assert examples.locator("td i").count() == 0
    lab.picture(page, "rules-sweep")


def test_both_are_dark_on_a_dark_page(lab: Lab, page: Any) -> None:
    with lab.dark(page):
        page.wait_for_timeout(1_500)  # plots take the colours of the theme
        lab.picture(page, "rules-dark")
        for shown_table in (table(page, 2, "cause"), table(page, 3, "kind")):
            colour = shown_table.locator("td").first.evaluate("e => getComputedStyle(e).color")
            assert min(map(int, re.findall(r"\d+", colour)[:3])) > 150, colour
