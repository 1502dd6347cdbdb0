"""Feeds in a real JupyterLab: the bar moves and leaves nothing, a feed in the background, the Stop button."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]
ROWS = 1_000_000
CELLS = [
    f"""{LOAD}
import numpy as np, pandas as pd
rows = np.arange({ROWS})
numbers = pd.DataFrame({{"a": rows % 1000, "b": rows, "at": rows}})
later = numbers.assign(at=rows + {ROWS})
last = numbers.assign(at=rows + {2 * ROWS})""",
    # A script for each event: a feed takes some seconds on any machine.
    """%%siddhi Sums --fresh --master inline --allow-scripts
define stream S (a int, b int);
define function slow[javascript] return int { var n = 0; while (n < 50) n++; return data[0]; };
from S#window.length(1000) select a, sum(a) as total, stdDev(a) as deviation group by a insert into Out;
from every e1=S[a == 999] -> e2=S[a == 5] select e2.a as a insert into Pairs;
from S select slow(b) as b insert into Slow;
""",
    "%siddhi feed Sums.S numbers --time at",
    "%siddhi feed Sums.S later --time at --background",
    "%siddhi feeds pause 1",
    "%siddhi feeds resume 1",
    "%siddhi feeds stop 1",
    "sum(range(10))",
    "%siddhi stats Sums",
    "%siddhi feed Sums.S last --time at",
    "%siddhi list",
]
INIT, APP, FRONT, BACK, PAUSE, RESUME, STOP, OTHER, STATS, LONG, LIST = range(len(CELLS))
BAR = ".jp-Notebook [role=progressbar]"
RECORD = """() => {
  window.bars = new Set();
  new MutationObserver(() => {
    for (const bar of document.querySelectorAll('.jp-Notebook [role=progressbar]')) window.bars.add(bar.ariaValueNow);
  }).observe(document.body, {subtree: true, childList: true, attributes: true});
}"""


class Cells:
    """The cells of the notebook in the page."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def cell(self, number: int) -> Any:
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def start(self, number: int) -> None:
        """Runs the cell. JupyterLab may lay the notebook out anew when it has just opened it; then the key is lost."""
        for _ in range(6):
            self.cell(number).locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            with contextlib.suppress(Exception):
                self._prompt(number, r"\[[*\d]", seconds=10)
                return
        raise AssertionError(f"cell {number} did not start")

    def done(self, number: int) -> str:
        """Waits until the cell has run; its output as text."""
        self._prompt(number, r"\[\d+\]")
        return self.text(number)

    def _prompt(self, number: int, pattern: str, seconds: int = 120) -> None:
        self.page.wait_for_function(
            "([n, pattern]) => RegExp(pattern).test(document.querySelectorAll('.jp-Notebook .jp-CodeCell')[n]"
            ".querySelector('.jp-InputPrompt').textContent)",
            arg=[number, pattern], timeout=1000 * seconds,
        )  # fmt: skip

    def text(self, number: int) -> str:
        return str(self.cell(number).locator(".jp-OutputArea").inner_text())

    def run(self, number: int) -> str:
        self.start(number)
        return self.done(number)

    def bar(self, number: int, at_least: float) -> None:
        """Waits until the cell's bar is so far."""
        self.page.wait_for_function(
            "([n, least]) => Number(document.querySelectorAll('.jp-Notebook .jp-CodeCell')[n]"
            ".querySelector('[role=progressbar]')?.ariaValueNow ?? -1) >= least",
            arg=[number, at_least], timeout=180_000,
        )  # fmt: skip


def test_feeds(lab: Lab) -> None:
    with lab.notebook("feeds.ipynb", CELLS, height=1700, run=False) as page:
        feed(lab, Cells(page))


def feed(lab: Lab, n: Cells) -> None:
    n.page.evaluate(RECORD)
    n.run(INIT)
    assert "running" in n.run(APP)

    # In front: the bar moves, and the report is all that stays.
    n.start(FRONT)
    n.bar(FRONT, 1)
    lab.picture(n.page, "front")
    assert f"Sums.S {ROWS:,} events in" in n.done(FRONT)
    assert len(n.page.evaluate("[...window.bars]")) >= 3, "the bar moved"
    assert n.cell(FRONT).locator("[role=progressbar]").count() == 0

    # In the background: other cells run meanwhile.
    n.run(BACK)
    n.bar(BACK, 1)
    assert "45" in n.run(OTHER)
    assert "paused" in n.run(PAUSE)
    n.cell(BACK).get_by_text("paused").wait_for(timeout=60_000)
    lab.picture(n.page, "paused")
    assert "running" in n.run(RESUME)
    assert "stop" in n.run(STOP)
    n.cell(BACK).get_by_text("stopped at").wait_for(timeout=60_000)
    lab.picture(n.page, "stopped")
    assert n.cell(BACK).locator("[role=progressbar]").count() == 0
    assert "events out" in n.run(STATS)

    # The Stop button: message and list agree.
    n.start(LONG)
    n.bar(LONG, 0)
    n.page.locator("[data-command='notebook:interrupt-kernel']").first.click()
    assert "Sums is stopped, and starts again with its next event or query" in n.done(LONG)
    assert "stopped" in n.run(LIST)
    lab.picture(n.page, "interrupted")

    # Saved, closed, opened without the kernel that made it.
    lab.save(n.page)
    lab.close(n.page)
    lab.open(n.page, "feeds.ipynb")
    outputs = n.page.locator(".jp-Notebook .jp-OutputArea")
    for number, said in ((FRONT, f"{ROWS:,} events in"), (BACK, "stopped at")):  # a page shows its cells one by one
        n.cell(number).get_by_text(said).first.wait_for(timeout=60_000)
    shown = " ".join(outputs.all_inner_texts())
    assert "Error displaying widget" not in shown
    assert "model not found" not in shown
    assert n.page.locator(BAR).count() == 0
    lab.picture(n.page, "reopened")
    saved = lab.saved("feeds.ipynb")
    assert "starts again with its next event" in json.dumps(saved[LONG])
    assert [list(o.get("data", {})) for o in saved[FRONT]] == [[], ["text/html", "text/plain"]]
    assert not any("widget" in json.dumps(o) for o in saved[FRONT] + saved[BACK])


PLAYED = """
import pandas as pd
import sparkstream_nb

text = "define stream Lamp (id int); from Lamp#window.length(2) select id, count() as n insert into Lit;"
app = sparkstream_nb.deploy(text, name="Lit", fresh=True, master="inline")
lamps = pd.DataFrame({"id": range(600), "at": [1_717_236_000_000 + 1000 * i for i in range(600)]})
app.feed("Lamp", lamps, time="at", paused=True, speed=60)
"""
PLAY = ".sparkstream-play"


def position(page: Any, text: str) -> None:
    """Waits until the feed's position begins so."""
    page.locator(f"{PLAY} .position", has_text=text).wait_for(timeout=60_000)


def test_a_feed_is_played_paused_and_stepped(lab: Lab) -> None:
    with lab.notebook("played.ipynb", [LOAD, PLAYED, "len(app.output('Lit'))"], height=1200) as page:
        page.wait_for_selector(f"{PLAY} button.play", timeout=240_000)
        lab.idle(page)
        view = page.locator(PLAY)
        position(page, "0 events fed, 600 remaining")
        view.locator("button.step").click()
        position(page, "1 event fed, at 2024-06-01 10:00:00 UTC, 599 remaining")
        view.locator("input.events").fill("9")
        view.locator("button.step").click()
        position(page, "10 events fed, at 2024-06-01 10:00:09 UTC")
        assert view.locator("button.play").text_content() == "Play"
        lab.picture(page, "stepped")
        view.locator("button.play").click()
        page.wait_for_function(
            f"() => parseInt(document.querySelector('{PLAY} .position').textContent) > 70", timeout=60_000
        )
        assert view.locator("button.play").text_content() == "Pause"
        view.locator("button.play").click()
        page.wait_for_function(f"() => document.querySelector('{PLAY} button.play').textContent === 'Play'")
        view.locator("select.pace").select_option("3600")
        position(page, "3600 times event time")
        view.locator("button.play").click()
        view.get_by_text("600 events in").wait_for(timeout=60_000)
        lab.picture(page, "played")
        assert view.locator("button.stop").is_hidden()
        view.locator("button.restart").click()
        view.locator("button.step").wait_for(timeout=60_000)
        lab.save(page)
        saved = json.dumps(lab.saved("played.ipynb"))
        assert "widget" not in saved
