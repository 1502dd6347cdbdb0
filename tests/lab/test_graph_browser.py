"""The graph of a running app in a real JupyterLab: its edges have the present rates, and totals are saved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]

APP = """
import pandas as pd
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream S (k string, v int);
@info(name='<b>even</b>') from S[v % 2 == 0] select k, v insert into Evens;
''', name="Flow", fresh=True, master="inline")
n = range(100_000)
events = pd.DataFrame({"k": "a", "v": n, "at": n})
app.graph()
"""
EDGE = ".sparkstream-graph .sparkstream-edge"
RATE = f"""(least) => {{
  const label = document.querySelector('{EDGE} text')?.textContent ?? '';
  return label.endsWith('/s') && parseFloat(label.replaceAll(',', '')) >= least;
}}"""


def labels(page: Any) -> list[str]:
    texts: list[str] = page.locator(f"{EDGE} text").all_text_contents()
    return texts


def test_edges_have_the_present_rates(lab: Lab) -> None:
    with lab.notebook("flow.ipynb", [LOAD, APP], height=900) as page:
        page.wait_for_selector(EDGE, timeout=240_000)
        lab.idle(page)
        page.wait_for_function(f"{RATE}", arg=0, timeout=60_000)
        assert labels(page) == ["0/s", "0/s"]
        assert page.locator(".sparkstream-graph b").count() == 0  # a name is text
        lab.run(page, 'feed = app.feed("S", events, time="at", rate=200, background=True)')
        page.wait_for_function(RATE, arg=150, timeout=60_000)
        rates = [float(label.removesuffix("/s").replace(",", "")) for label in labels(page)]
        assert rates[1] == pytest.approx(rates[0] / 2, abs=15)
        assert page.locator(f"{EDGE}.flows").count() == 2
        lab.picture(page, "graph-rates-light")
        with lab.dark(page):
            page.wait_for_timeout(1_000)
            lab.picture(page, "graph-rates-dark")
        lab.run(page, "feed.stop(); feed.wait().events > 0")
        page.locator(f"{EDGE}.flows").first.wait_for(state="detached", timeout=60_000)
        assert labels(page) == ["0/s", "0/s"]
        lab.save(page)
    saved = json.dumps(lab.saved("flow.ipynb")[1])
    assert "widget" not in saved
    assert "query <b>even</b>" in saved
    assert "  \\u2192 <b>even</b> (" in saved  # with its total
    assert lab.elsewhere() == []
