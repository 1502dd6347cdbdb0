"""The view of an aggregation in a real JupyterLab: while a feed runs, after a reload, and in what is saved."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from .browser import VIEW, Lab, plotted, wait_for_title
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

APP = """
import threading
import time
import pandas as pd
import sparkstream_nb

text = '''
define stream Trades (symbol string, price double, quantity long, ts long);
@PartitionById(enable='true')
define aggregation Totals from Trades select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol aggregate by ts every sec ... year;
'''
app = sparkstream_nb.deploy(text, name="Live", nodes=2, fresh=True, master="inline")
n = 36_000  # an event each 600 ms: six hours
frame = pd.DataFrame({"symbol": ["a", "b", "c"] * (n // 3), "price": [1.0, 2.0, 6.0] * (n // 3),
                      "quantity": 1, "ts": 1_717_200_000_000 + 600 * pd.RangeIndex(n)})

def feed(start, end):
    for i in range(start, end, 3000):
        app.feed("Trades", frame[i : i + 3000], time="ts", progress=lambda p: None)
        time.sleep(0.4)
"""
CELLS = [LOAD, APP, 'app.view(per="minute")']
OBSERVE = """view => {
  window.drawn = [];
  const plot = document.querySelector(view + " .sparkstream-plot");
  const watch = () => {
    if (!plot.on) return setTimeout(watch, 20);
    const note = () => window.drawn.push({
      top: plot._fullLayout.yaxis.range[1], range: plot._fullLayout.xaxis.range, buckets: plot._fullData[0].y.length,
    });
    note();
    plot.on("plotly_afterplot", note);
  };
  watch();
}"""

DRAWN = "view => [...document.querySelectorAll(view)].filter((v) => v.querySelector('.main-svg')).length === 11"


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    """A notebook whose kernel runs an app, with a view of its empty aggregation."""
    with lab.notebook("live.ipynb", CELLS, height=1600) as page:
        observe(page)
        yield page


def observe(page: Any) -> None:
    """Waits for the first view, and notes what each of its pictures shows from then on."""
    page.wait_for_selector(VIEW, timeout=180_000)
    page.evaluate(OBSERVE, VIEW)


def test_an_empty_view_says_what_to_type(lab: Lab, page: Any) -> None:
    lab.picture(page, "empty")
    text = page.locator(VIEW).text_content()
    assert "Nothing here yet" in text
    assert """%siddhi send Live.Trades '["text", 1.5, 1, 1717236000000]'""" in text
    assert "%siddhi feed Live.Trades frame --time ts" in text


def test_it_follows_a_feed_of_the_main_thread(lab: Lab, page: Any) -> None:
    follow(lab, page)


def follow(lab: Lab, page: Any) -> None:
    chosen_file = lab.server.folder / "chosen"
    chosen_file.unlink(missing_ok=True)
    wait = f"import os\nwhile not os.path.exists({str(chosen_file)!r}):\n    time.sleep(0.1)"
    lab.run(page, f'feed(0, 18_000)\n{wait}\nprint("fed", "once")')
    page.wait_for_function("window.drawn.length >= 2", timeout=60_000)
    lab.picture(page, "following")
    # What a person chooses is shown at once, though the kernel is busy.
    page.locator(f"{VIEW} select.key").select_option(label="b")
    wait_for_title(page, VIEW, "total per min · b")
    page.locator(f"{VIEW} select.key").select_option(label="all")
    wait_for_title(page, VIEW, "all groups")
    assert page.locator(".jp-Notebook-ExecutionIndicator").get_attribute("data-status") == "busy"
    chosen_file.touch()
    page.wait_for_selector(".jp-OutputArea-output >> text=fed once", timeout=120_000)
    page.wait_for_function("window.drawn.at(-1).buckets === 180", timeout=60_000)
    lab.picture(page, "followed")


def test_it_follows_a_feed_of_another_thread_and_its_axes_do_not_jump(lab: Lab, page: Any) -> None:
    lab.idle(page)
    page.evaluate("window.drawn.splice(0)")
    lab.run(page, "fed = threading.Thread(target=feed, args=(18_000, n)); fed.start()")
    page.wait_for_function("window.drawn.at(-1)?.buckets === 360", timeout=120_000)
    drawn = page.evaluate("window.drawn")
    counts = [d["buckets"] for d in drawn]
    assert len(counts) >= 3, "several pictures, one for each of the micro-batches"
    assert counts == sorted(counts)
    assert len({d["top"] for d in drawn}) == 1
    assert {d["range"][0] for d in drawn} == {"2024-06-01T00:00:00.000"}
    axes = [d["range"] for d in drawn]
    assert sum(a != b for a, b in pairwise(axes)) < len(axes) - 1, "some room was left at the end"


def test_the_view_is_as_wide_as_its_cell(lab: Lab, page: Any) -> None:
    drawn_for_its_cell = """([view, low, high]) => {
      const wide = document.querySelector(view).clientWidth;
      const drawn = document.querySelector(view + " .sparkstream-plot").layout?.width;
      return low < wide && wide < high && Math.abs(drawn - wide) < 2;
    }"""
    for width, low, high in ((1280, 700, 1000), (900, 300, 600)):
        page.set_viewport_size({"width": width, "height": 1600})
        page.wait_for_function(drawn_for_its_cell, arg=[VIEW, low, high])
        svg = page.locator(f"{VIEW} .main-svg").first
        cell = page.locator(".jp-OutputArea-output", has=svg).first.bounding_box()["width"]
        assert cell - 30 < svg.bounding_box()["width"] <= cell
    # Where the buttons need two lines, the last one has none of its own.
    for width in range(760, 1100, 20):
        page.set_viewport_size({"width": width, "height": 1600})
        beside, last = (page.locator(f"{VIEW} .{name}").bounding_box() for name in ("as-wso2", "refresh"))
        assert beside["y"] == last["y"]
    lab.picture(page, "narrow")
    page.set_viewport_size({"width": 1280, "height": 1600})


def test_ten_views_in_a_row_are_all_drawn(lab: Lab, page: Any) -> None:
    lab.run(page, 'for _ in range(10):\n    display(app.view(per="hour", measure="avgPrice"))')
    page.wait_for_function("view => document.querySelectorAll(view).length === 11", arg=VIEW, timeout=60_000)
    for i in range(1, 11):
        wait_for_title(page, VIEW, "avgPrice per hour · all groups", i)
        lines = plotted(page, VIEW, i)["lines"]
        assert [line["name"] for line in lines[:3]] == ["node-1", "node-2", "merged"]
        # Six hours, the same average in each; and over all groups, not of one.
        assert [text.strip() for text in lines[3]["text"]] == ["3"] * 6


def test_values_under_the_pointer_and_a_stretch_of_time(lab: Lab, page: Any) -> None:
    view = page.locator(VIEW).nth(1)
    area = view.locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    hour = box["width"] / 6
    page.mouse.move(box["x"] + 2.4 * hour, box["y"] + box["height"] - 30)
    view.locator(".hovertext").wait_for()
    words = view.locator(".hovertext text").text_content()
    assert words == "2024-06-01 02:00node-1: 3.0node-2: 3.0merged: 3.0"
    page.mouse.move(box["x"] + 1.2 * hour, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 3.8 * hour, box["y"] + 60, steps=6)
    lab.picture(page, "dragging")
    page.mouse.up()
    view.locator(".note", has_text="showing 2 to 4 of 6 hours").wait_for()
    view.locator("button", has_text="latest").focus()
    page.keyboard.press("Enter")
    view.locator(".note", has_text="6 hours · ").wait_for()
    page.wait_for_function("document.activeElement.className === 'all'")  # the button that was pressed is hidden


def test_side_by_side_and_the_table(lab: Lab, page: Any) -> None:
    view = page.locator(VIEW).first
    view.locator("button.stacked").click()
    view.locator(".note", has_text="the merged value is the sum of the shards' bars").wait_for()
    view.locator("summary").click()
    view.locator("details table").wait_for()
    lab.picture(page, "side-by-side")
    view.locator("summary").click()
    view.locator("details table").wait_for(state="hidden")
    view.locator("button.stacked").click()
    view.locator(".note", has_text="the shards' bars add up to the merged value").wait_for()


def test_after_a_reload_every_chart_is_there(lab: Lab, page: Any) -> None:
    page.locator(VIEW).first.locator(".durations button", has_text="hour").click()
    wait_for_title(page, VIEW, "total per hour · all groups")
    lab.save(page)
    page.reload()
    page.wait_for_function(DRAWN, arg=VIEW, timeout=60_000)
    assert plotted(page, VIEW)["title"] == "total per hour · all groups"
    lab.picture(page, "reloaded")
    page.locator(VIEW).first.locator(".durations button", has_text="day").click()
    wait_for_title(page, VIEW, "total per day · all groups")
    assert "model not found" not in page.content()


def test_a_tab_that_is_closed_and_opened_again(lab: Lab, page: Any) -> None:
    lab.save(page)
    page.locator(".jp-mod-current .lm-TabBar-tabCloseIcon").click()
    page.locator(".jp-Notebook").wait_for(state="detached")
    page.locator(".jp-DirListing-item", has_text="live.ipynb").dblclick()
    page.wait_for_function(DRAWN, arg=VIEW, timeout=60_000)


def test_what_is_saved_shows_its_static_form(lab: Lab, page: Any) -> None:
    lab.save(page)
    lab.close(page)
    assert "widget-view" not in (lab.folder / "live.ipynb").read_text()
    lab.load(page)
    lab.open(page, "live.ipynb")
    pictures = page.locator(".jp-OutputArea img[alt^='total per'], .jp-OutputArea img[alt^='avgPrice per']")
    page.wait_for_function("document.querySelectorAll('.jp-OutputArea img').length === 11")
    assert pictures.count() == 11
    assert all(pictures.nth(i).bounding_box()["width"] > 500 for i in range(11))
    assert page.locator(VIEW).count() == 0
    assert "Error displaying widget" not in page.content()
    lab.picture(page, "saved")
    assert lab.elsewhere() == []


def test_a_page_made_by_nbconvert_shows_the_pictures(lab: Lab, page: Any) -> None:
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", str(lab.folder / "live.ipynb")]
    subprocess.run(command, check=True, capture_output=True)
    exported = lab.browser.new_page(viewport={"width": 1280, "height": 1600})
    exported.goto((lab.folder / "live.html").as_uri(), wait_until="domcontentloaded")
    pictures = exported.locator("img[alt*=' per ']")
    assert pictures.count() == 11
    assert all(pictures.nth(i).evaluate("i => i.complete && i.naturalWidth > 0") for i in range(11))
    assert "Error" not in exported.locator("body").text_content()
    lab.picture(exported, "exported")
    exported.close()
