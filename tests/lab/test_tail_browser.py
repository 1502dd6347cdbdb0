"""Tails of streams and the figures of an app in a real JupyterLab: they follow the app, and a tail can be paused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]

TAIL = ".sparkstream-tail"
STATS = ".sparkstream-stats"
APP = """
import pandas as pd
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream Ticks (symbol string, price double);
@info(name='all') from Ticks#window.length(10) select symbol, price, max(price) as top insert into Tops;
''', name="Market", fresh=True, master="inline")
frame = pd.DataFrame({"symbol": ["<i>a</i>", "b"] * 5000, "price": range(10_000), "at": range(10_000)})

def feed(start, end):
    app.feed("Ticks", frame[start:end], time="at", progress=lambda p: None)

feed(0, 10)
"""
CELLS = [
    LOAD,
    APP,
    "%siddhi tail Market.Tops --last 5",
    "%siddhi tail Market.Ticks --latest symbol",
    "%siddhi tail Market.Tops --number top",
    "%siddhi stats Market",
]
LAST, LATEST, NUMBER = range(3)


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook("tail.ipynb", CELLS, height=2000) as page:
        page.wait_for_selector(f"{STATS} .tiles svg, {STATS} table", timeout=240_000)
        lab.idle(page)
        yield page


def tail(page: Any, number: int) -> Any:
    return page.locator(TAIL).nth(number)


def rows(page: Any, number: int) -> list[list[str]]:
    found = tail(page, number).locator("tbody tr")
    return [found.nth(i).locator("td").all_text_contents() for i in range(found.count())]


def wait_for_first(page: Any, number: int, price: str) -> None:
    """Waits until the first row of a tail has this price."""
    tail(page, number).locator("tbody tr").first.locator(
        "td", has_text=re.compile(f"^{re.escape(price)}$")
    ).first.wait_for(timeout=60_000)


def test_rows_appear_and_the_others_are_counted(lab: Lab, page: Any) -> None:
    wait_for_first(page, LAST, "9.0")
    assert [r[2:4] for r in rows(page, LAST)] == [
        ["b", "9.0"], ["<i>a</i>", "8.0"], ["b", "7.0"], ["<i>a</i>", "6.0"], ["b", "5.0"],
    ]  # fmt: skip
    assert tail(page, LAST).locator(".note").text_content() == ""
    assert page.locator(f"{TAIL} i").count() == 0, "values are texts, not markup"
    lab.run(page, "feed(10, 1010)")
    wait_for_first(page, LAST, "1009.0")
    assert re.fullmatch(
        r"9\d\d more since \d\d:\d\d:\d\d UTC not shown", tail(page, LAST).locator(".note").text_content()
    )
    assert "the last 5 of 1,010 events" in tail(page, LAST).locator(".bar").text_content()
    assert [r[2:] for r in rows(page, LATEST)] == [["<i>a</i>", "1008.0"], ["b", "1009.0"]]
    tail(page, NUMBER).locator(".number", has_text="1009.0").wait_for(timeout=60_000)
    page.locator(f"{STATS} .head", has_text="1,010 events sent").wait_for(timeout=60_000)
    assert page.locator(f"{STATS} .tiles").text_content().startswith("input")
    assert page.locator(f"{STATS} .tiles svg").count() >= 2, "sparklines"
    page.locator(TAIL).first.scroll_into_view_if_needed()
    lab.picture(page, "tail")
    page.locator(STATS).scroll_into_view_if_needed()
    lab.picture(page, "stats")


def test_a_pause_stops_the_rows_and_not_the_counting(lab: Lab, page: Any) -> None:
    button = tail(page, LAST).locator("button")
    button.focus()
    page.keyboard.press("Enter")
    tail(page, LAST).locator(".note", has_text="paused at").wait_for(timeout=60_000)
    assert button.text_content() == "Resume"
    assert page.evaluate("document.activeElement.className") == "pause"
    before = rows(page, LAST)
    lab.run(page, "feed(1010, 1310)")
    tail(page, LAST).locator(".note", has_text=": 300 more since then").wait_for(timeout=60_000)
    assert rows(page, LAST) == before
    wait_for_first(page, LATEST, "1308.0")
    lab.idle(page)
    page.locator(TAIL).first.scroll_into_view_if_needed()
    lab.picture(page, "tail-paused")
    button.click()
    wait_for_first(page, LAST, "1309.0")
    assert button.text_content() == "Pause"
    assert re.fullmatch(r"1,2\d\d more since .* not shown", tail(page, LAST).locator(".note").text_content())


def test_what_is_saved_is_what_was_shown_last(lab: Lab, page: Any) -> None:
    lab.idle(page)
    page.wait_for_timeout(2_500)  # the last commit is a second ago: the static form is replaced
    lab.save(page)
    saved = lab.saved("tail.ipynb")[2:6]
    texts = [o[0]["data"]["text/plain"] for o in saved]
    assert "1309.0" in texts[0]
    assert "top = 1309.0" in texts[2]
    assert "1,310 events sent" in texts[3]
    assert "&lt;i&gt;a&lt;/i&gt;" in saved[0][0]["data"]["text/html"]
    assert not any("widget" in json.dumps(o) for o in saved)
    assert lab.elsewhere() == []
