"""Live views in Notebook 7: the graph, the view of an aggregation and the time line of alerts, while a feed runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .browser import VIEW, Lab, plotted, wait_for_title
from .cells import LOAD
from .test_divergence_browser import TIMELINE
from .test_graph_browser import EDGE, RATE

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

APP = """
import pandas as pd
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream Payments (card string, amount double, at long);
@PartitionById(enable='true')
define aggregation Spent from Payments select card, sum(amount) as total group by card aggregate by at every sec...hour;
@info(name='sprees')
from every a=Payments[amount > 50] -> b=Payments[card == a.card and amount > a.amount] within 5 min
select a.card as card, b.amount as amount insert into Sprees;
''', name="Seven", nodes=2, fresh=True, master="inline")
n = range(36_000)
payments = pd.DataFrame({"card": [f"card-{i * 7 % 5}" for i in n], "amount": [float(i * 37 % 101) for i in n],
                         "at": [1_717_200_000_000 + 1_000 * i for i in n]})
"""
FEED = 'feed = app.feed("Payments", payments, time="at", rate=300, background=True)'
CELLS = [LOAD, APP, "app.graph()", 'app.view("Spent", per="minute")', FEED]
BUCKETS = f"""(least) => {{
  const data = document.querySelector('{VIEW} .sparkstream-plot')?._fullData;
  return data !== undefined && data[0].y.length >= least;
}}"""
WORDS = f"""() => document.querySelector('{TIMELINE} .sparkstream-plot').data
  .some((line) => (line.hovertext ?? []).some((words) => words))"""
"""The marks of the time line have their words, which come after the picture."""


@pytest.fixture
def page(lab: Lab) -> Iterator[Any]:
    """A page of Notebook 7 that runs a notebook of these cells."""
    from nbformat import v4, write  # takes a second to load

    notebook = v4.new_notebook(
        cells=[v4.new_code_cell(text) for text in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    write(notebook, lab.folder / "seven.ipynb")
    page = lab.new_page(height=1700)
    try:
        page.goto(lab.server.notebook("seven.ipynb"))
        page.wait_for_load_state("networkidle")
        lab.idle(page)
        lab.run_all(page)
        page.locator(".jp-InputPrompt", has_text="[1]:").wait_for(timeout=60_000)
        yield page
    finally:
        page.close()
        lab.server.end_kernels()


def test_views_are_live_while_a_feed_runs(lab: Lab, page: Any) -> None:
    assert page.locator("[data-notebook=notebooks]").count() == 1, "this is Notebook 7"
    page.wait_for_selector(EDGE, timeout=180_000)
    page.wait_for_function(RATE, arg=200, timeout=120_000)
    page.wait_for_function(BUCKETS, arg=3, timeout=60_000)
    buckets = len(plotted(page, VIEW)["lines"][0]["y"])
    page.wait_for_function(BUCKETS, arg=buckets + 5, timeout=60_000)
    lab.run(page, "app.divergence()")
    page.wait_for_selector(f"{TIMELINE} .main-svg", timeout=60_000)
    assert plotted(page, TIMELINE)["title"].startswith("sprees: ")
    page.wait_for_function(WORDS, timeout=90_000)
    page.locator(f"{TIMELINE} select.routing").select_option("hash:card")
    wait_for_title(page, TIMELINE, "under hash:card")
    page.wait_for_function(RATE, arg=200, timeout=60_000)  # the feed still runs
    assert not page.locator(".sparkstream-selection").first.is_visible(), "nothing is selected"
    lab.picture(page, "notebook-7-live")
    assert lab.elsewhere() == []
