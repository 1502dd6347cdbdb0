"""The view of an aggregation in a real JupyterLab: it is there after a reload, in what is saved, and while a feed runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest

from .browser import VIEW, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

APP = """
import pandas as pd
import sparkstream_nb

text = '''
define stream Trades (symbol string, price double, quantity long, ts long);
@PartitionById(enable='true')
define aggregation Totals from Trades select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol aggregate by ts every sec ... year;
'''
app = sparkstream_nb.deploy(text, name="Live", nodes=2, fresh=True, rows_per_micro_batch=2000)
"""
FRAME = """
n = 60_000  # ten hours
frame = pd.DataFrame({"symbol": ["a", "b", "c"] * (n // 3), "price": [1.0, 2.0, 6.0] * (n // 3),
                      "quantity": 1, "ts": 1_717_200_000_000 + 600 * pd.RangeIndex(n)})
"""
FEED = 'app.feed("Trades", frame, time="ts")'
CELLS = ["%load_ext sparkstream_nb", APP + FRAME, 'empty = app.view(per="minute"); empty']


def add_cell(page: Any, text: str) -> None:
    """Appends a cell and runs it."""
    page.evaluate("""text => window.jupyterapp""", text) if False else None
    page.locator(".jp-Notebook .jp-Cell").last.click()
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text(text)
    page.keyboard.press("Control+Enter")


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    """A notebook whose kernel runs an app, with a view of its empty aggregation."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    book.metadata.language_info = {"name": "python"}
    nbformat.write(book, lab.folder / "live.ipynb")
    page = lab.page(height=1600)
    lab.open(page, "live.ipynb")
    lab.menu(page, "Run", "Run All Cells")
    page.wait_for_selector(VIEW, timeout=180_000)
    yield page
    page.close()


def test_an_empty_view_says_what_to_type(lab: Lab, page: Any) -> None:
    lab.picture(page, "empty")
    text = page.locator(VIEW).text_content()
    assert "Nothing here yet" in text
    assert """%siddhi send Live.Trades '["text", 1.5, 1, 1717236000000]'""" in text
    assert "%siddhi feed Live.Trades frame --time ts" in text


def test_it_follows_a_feed_of_the_main_thread(lab: Lab, page: Any) -> None:
    page.evaluate(
        """view => {
          window.seen = [];
          const note = () => {
            const svg = document.querySelector(view + " svg");
            if (!svg) return;
            const ticks = [...svg.querySelectorAll(".y-tick")].map((t) => t.textContent);
            const buckets = [...svg.querySelectorAll(".bucket")].map((b) => Number(b.dataset.start));
            window.seen.push({ at: performance.now(), top: ticks.at(-1), buckets: buckets.length });
          };
          new MutationObserver(note).observe(document.querySelector(view + " .picture"), { childList: true, subtree: true });
        }""",
        VIEW,
    )
    add_cell(page, FEED)
    page.wait_for_function("() => window.seen.length >= 3", timeout=60_000)
    lab.picture(page, "following")
    page.wait_for_selector("text=60,000 events in", timeout=120_000)
    page.wait_for_function("n => window.seen.at(-1).buckets === n", arg=400, timeout=10_000)
    lab.picture(page, "followed")
    print(json.dumps(page.evaluate("window.seen")))
