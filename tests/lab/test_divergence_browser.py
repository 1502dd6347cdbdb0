"""The time line of alerts and the heat map of a study in a real JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab, plotted, wait_for_title
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

OTHER_MARKS = """([t, n]) => document.querySelector(t + ' .sparkstream-plot').data
  .reduce((sum, line) => sum + (line.hovertext?.length ?? 0), 0) !== n"""


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook("diverging.ipynb", CELLS, height=1500) as page:
        page.wait_for_selector(f"{TIMELINE} .main-svg", timeout=180_000)
        lab.idle(page)
        yield page


def label(page: Any) -> str:
    return str(plotted(page, TIMELINE)["title"])


def marks(page: Any, words: str = "") -> list[str]:
    """The words of the marks that have these in them."""
    return [t for line in plotted(page, TIMELINE)["lines"] for t in line["titles"] if words in t]


def test_a_mark_tells_its_alert_its_events_and_their_nodes(lab: Lab, page: Any) -> None:
    lab.picture(page, "timeline")
    assert label(page).startswith("rise: ")
    assert label(page).endswith("their counterparts on 3 nodes")
    # Keys go through the marks; what they stand for is read out, and shown.
    plot = page.locator(f"{TIMELINE} .sparkstream-plot")
    plot.focus()
    said = page.locator(f"{TIMELINE} .sparkstream-said")
    for _ in range(200):
        page.keyboard.press("ArrowRight")
        if "lost: one node has it" in said.text_content():
            break
    words = said.text_content()
    assert words.startswith("truth: ")
    assert "user " in words
    assert "split over 2 nodes: Sessions[" in words
    assert page.locator(f"{TIMELINE} .hovertext").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{TIMELINE} .cause table")
    # Its output was kept, and so drawn anew; and Enter did not begin to edit the cell.
    lab.idle(page)
    assert page.evaluate("document.activeElement.classList.contains('sparkstream-plot')")
    cause = page.locator(f"{TIMELINE} .cause").text_content()
    assert "split over 2 nodes" in cause
    rings = [line for line in plotted(page, TIMELINE)["lines"] if not line["name"]]
    assert [len(ring["x"]) for ring in rings] == [1], "the mark that was chosen"
    page.mouse.move(5, 5)
    lab.picture(page, "timeline-cause")


def test_the_moment_of_the_mark_is_below_it(lab: Lab, page: Any) -> None:
    moment = page.locator(f"{TIMELINE} .sparkstream-moment")
    moment.locator(".timeline svg").wait_for()
    head = moment.locator(".head")
    assert "output: Rises (" in head.text_content()
    assert moment.locator(".timeline .lane", has_text="node-2").count() == 0, "the truth is of one node"
    assert "rise: every e1=Sessions" in moment.locator(".state").text_content()
    step = moment.locator(".where").text_content()
    moment.locator("button.forth").click()
    page.wait_for_function(
        "([view, text]) => document.querySelector(view).textContent !== text",
        arg=[f"{TIMELINE} .sparkstream-moment .where", step],
    )
    moment.scroll_into_view_if_needed()
    lab.picture(page, "timeline-moment")
    page.locator(f"{TIMELINE} .picture").scroll_into_view_if_needed()


def test_a_pointer_on_a_mark_shows_its_words_and_a_click_its_cause(lab: Lab, page: Any) -> None:
    point = page.locator(f"{TIMELINE} .scatterlayer .trace").nth(1).locator("path.point").first
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator(f"{TIMELINE} .hovertext").wait_for()
    assert page.locator(f"{TIMELINE} .hovertext i").count() == 0
    before = page.locator(f"{TIMELINE} .cause").text_content()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function(
        "([t, before]) => document.querySelector(t + ' .cause').textContent !== before", arg=[TIMELINE, before]
    )


def test_another_query_another_stretch_of_time(lab: Lab, page: Any) -> None:
    whole = label(page)
    page.locator(f"{TIMELINE} select.query").select_option(label="mean")
    wait_for_title(page, TIMELINE, "mean: ")
    page.locator(f"{TIMELINE} select.query").select_option(label="rise")
    wait_for_title(page, TIMELINE, "rise: ")
    before, range_before = len(marks(page)), plotted(page, TIMELINE)["range"]
    box = page.locator(f"{TIMELINE} .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] - 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + box["height"] - 5, steps=6)
    page.mouse.up()
    page.wait_for_selector(f"{TIMELINE} button.all:visible")
    page.wait_for_function(OTHER_MARKS, arg=[TIMELINE, before])
    lab.picture(page, "timeline-zoomed")
    assert label(page) == whole
    page.locator(f"{TIMELINE} button.all").click()
    page.wait_for_function(OTHER_MARKS.replace("!==", "==="), arg=[TIMELINE, before])
    assert plotted(page, TIMELINE)["range"] == range_before


def test_nodes_and_routing_run_the_study_again(lab: Lab, page: Any) -> None:
    assert marks(page, "lost: one node")
    page.locator(f"{TIMELINE} select.routing").select_option("hash:user")
    wait_for_title(page, TIMELINE, "hash:user")
    assert not marks(page, "lost: one node")
    lab.picture(page, "timeline-repaired")
    nodes = page.locator(f"{TIMELINE} input.nodes")
    nodes.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")  # not to another cell
    wait_for_title(page, TIMELINE, "on 7 nodes under hash:user")
    assert not marks(page, "lost: one node")
    page.locator(f"{TIMELINE} button.recorded").focus()
    page.keyboard.press("Enter")
    wait_for_title(page, TIMELINE, "on 3 nodes")


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
