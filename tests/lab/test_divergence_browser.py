"""The time line of alerts and the heat map of a study in a real JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

TIMELINE = ".sparkstream-timeline"
APP = """
import numpy as np
import pandas as pd
import sparkstream_nb

text = '''
define stream Sessions (user string, score int);
@info(name='rise')
from every e1=Sessions -> e2=Sessions[user == e1.user and score > e1.score + 30] within 20 min
select e1.user as user, e1.score as first, e2.score as then insert into Rises;
@info(name='mean')
from Sessions#window.length(20) select avg(score) as mean having mean > 58.0 insert into Means;
'''
app = sparkstream_nb.deploy(text, name="Diverging", nodes=3, fresh=True, master="inline")
random = np.random.default_rng(11)
n = 400
frame = pd.DataFrame({"user": random.choice(["ann", "bob", "cy", "<i>dee</i>"], n), "score": random.integers(0, 100, n),
                      "at": 1_717_200_000_000 + 60_000 * np.arange(n)})
app.feed("Sessions", frame, time="at", progress=lambda p: None)
"""
CELLS = [LOAD, APP, "%siddhi divergence Diverging", "%siddhi study Diverging --nodes 1-6"]


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook("diverging.ipynb", CELLS, height=1500) as page:
        page.wait_for_selector(f"{TIMELINE} svg", timeout=180_000)
        lab.idle(page)
        yield page


def label(page: Any) -> str:
    return str(page.locator(f"{TIMELINE} svg").get_attribute("aria-label"))


def test_a_mark_tells_its_alert_its_events_and_their_nodes(lab: Lab, page: Any) -> None:
    lab.picture(page, "timeline")
    assert label(page).startswith("rise: ")
    assert label(page).endswith("their counterparts on 3 nodes")
    mark = page.locator(f"{TIMELINE} .mark[data-values*='lost: one node has it']").first
    mark.hover()
    tip = page.locator(f"{TIMELINE} .tip").text_content()
    assert "user " in tip
    assert "split over 2 nodes: Sessions[" in tip
    assert page.locator(f"{TIMELINE} .tip i").count() == 0
    mark.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{TIMELINE} .cause table")
    assert mark.get_attribute("aria-pressed") == "true"
    # Its output was kept, and so drawn anew; and Enter did not begin to edit the cell.
    lab.idle(page)
    assert page.evaluate("document.activeElement.getAttribute('class')") == "mark pinned"
    cause = page.locator(f"{TIMELINE} .cause").text_content()
    assert "split over 2 nodes" in cause
    page.mouse.move(5, 5)
    lab.picture(page, "timeline-cause")


def test_another_query_another_stretch_of_time(lab: Lab, page: Any) -> None:
    whole = label(page)
    page.locator(f"{TIMELINE} select.query").select_option(label="mean")
    page.wait_for_function("t => document.querySelector(t + ' svg').ariaLabel.startsWith('mean: ')", arg=TIMELINE)
    page.locator(f"{TIMELINE} select.query").select_option(label="rise")
    page.wait_for_function("t => document.querySelector(t + ' svg').ariaLabel.startsWith('rise: ')", arg=TIMELINE)
    marks = page.locator(f"{TIMELINE} .mark")
    before = marks.count()
    box = page.locator(f"{TIMELINE} svg").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] - 45)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + box["height"] - 45, steps=4)
    page.mouse.up()
    page.wait_for_selector(f"{TIMELINE} button.all:visible")
    page.wait_for_function("([t, n]) => document.querySelectorAll(t + ' .mark').length !== n", arg=[TIMELINE, before])
    lab.picture(page, "timeline-zoomed")
    assert label(page) == whole
    page.locator(f"{TIMELINE} button.all").click()
    page.wait_for_function("([t, n]) => document.querySelectorAll(t + ' .mark').length === n", arg=[TIMELINE, before])


def test_nodes_and_routing_run_the_study_again(lab: Lab, page: Any) -> None:
    assert page.locator(f"{TIMELINE} .mark[data-values*='lost: one node']").count() > 0
    page.locator(f"{TIMELINE} select.routing").select_option("hash:user")
    page.wait_for_function("t => document.querySelector(t + ' svg').ariaLabel.endsWith('hash:user')", arg=TIMELINE)
    assert page.locator(f"{TIMELINE} .mark[data-values*='lost: one node']").count() == 0
    lab.picture(page, "timeline-repaired")
    nodes = page.locator(f"{TIMELINE} input.nodes")
    nodes.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")  # not to another cell
    page.wait_for_function(
        "t => document.querySelector(t + ' svg').ariaLabel.endsWith('on 7 nodes under hash:user')", arg=TIMELINE
    )
    assert page.locator(f"{TIMELINE} .mark[data-values*='lost: one node']").count() == 0
    page.locator(f"{TIMELINE} button.recorded").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("t => document.querySelector(t + ' svg').ariaLabel.endsWith('on 3 nodes')", arg=TIMELINE)


def test_what_is_saved_is_the_picture(lab: Lab, page: Any) -> None:
    lab.idle(page)
    lab.save(page)
    book = json.loads((lab.folder / "diverging.ipynb").read_text())
    divergence, study = (book["cells"][i]["outputs"][-1]["data"] for i in (2, 3))
    assert "data:image/svg+xml;base64," in "".join(divergence["text/html"])
    assert "<i>" not in "".join(divergence["text/html"])
    assert "".join(divergence["text/plain"]).startswith("Diverging on 3 nodes, as the events came, against one node")
    assert "data:image/svg+xml;base64," in "".join(study["text/html"])
    assert "".join(study["text/plain"]).startswith("Diverging: hash:user repairs most")
    assert not lab.elsewhere()
