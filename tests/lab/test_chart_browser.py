"""The chart of a stream in a real JupyterLab: it grows, its zoom stays, it can be paused, exported and read again."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

CHART = ".sparkstream-chart"
NAME = "chart.ipynb"
APP = """
import numpy as np
import pandas as pd
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream Ticks (symbol string, price double);
@info(name='all') from Ticks select symbol, price insert into Prices;
''', name="Market", fresh=True, master="inline")
n = np.arange(400_000)
names = np.array(["<i>a</i>", "b&amp;"])[n % 2]
frame = pd.DataFrame({"symbol": names, "price": np.sin(n / 5_000) + n % 2, "at": 1_717_236_000_000 + 20 * n})

def feed(start, end):
    app.feed("Ticks", frame[start:end], time="at", progress=lambda p: None)

feed(0, 1_000)
"""
CELLS = [LOAD, APP, "%siddhi chart Market.Prices --y price --by symbol", "%siddhi chart Market.Ticks --kind points"]


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook(NAME, CELLS, height=1900) as page:
        page.wait_for_selector(f"{CHART} .plot .main-svg", timeout=240_000)
        page.wait_for_function(f"document.querySelectorAll('{CHART} .plot .main-svg').length >= 4", timeout=60_000)
        lab.idle(page)
        yield page


def chart(page: Any, number: int = 0) -> Any:
    return page.locator(CHART).nth(number)


def look(page: Any, number: int = 0) -> dict[str, Any]:
    """The lines and the range of a chart."""
    found: dict[str, Any] = page.evaluate(
        f"""(number) => {{
          const plot = document.querySelectorAll('{CHART} .sparkstream-plot')[number];
          return {{
            names: plot.data.map((t) => t.name), counts: plot.data.map((t) => t.x.length),
            last: String(plot.data[0].x.at(-1)).replace("T", " "),
            range: plot._fullLayout.xaxis.range.map((at) => String(at).replace("T", " ")),
          }};
        }}""",
        number,
    )
    return found


def wait_for_head(page: Any, text: str, number: int = 0) -> None:
    chart(page, number).locator(".bar", has_text=text).wait_for(timeout=60_000)


def test_it_grows_and_says_what_is_left_out(lab: Lab, page: Any) -> None:
    wait_for_head(page, "1,000 events · 2024-06-01 10:00:00 to")
    shown = look(page)
    assert shown["names"] == ["&lt;i&gt;a&lt;/i&gt;", "b&amp;amp;"]
    assert sum(shown["counts"]) == 1_000
    legend = chart(page).locator(".legendtext").all_text_contents()
    assert legend == ["<i>a</i>", "b&amp;"], "values are texts, not markup"
    assert chart(page).locator(".note").text_content() == ""
    lab.run(page, "feed(1_000, 200_000)")
    wait_for_head(page, "200,000 events")
    chart(page).locator(".note", has_text="the lowest and the highest of each pixel column").wait_for(timeout=60_000)
    assert sum(look(page)["counts"]) <= 8_010
    assert look(page)["last"].startswith("2024-06-01 11:06:39"), "in UTC, and at its end"
    lab.idle(page)
    chart(page).scroll_into_view_if_needed()
    lab.picture(page, "chart")
    with lab.dark(page):
        page.wait_for_timeout(1_500)
        lab.picture(page, "chart-dark")


def test_a_zoom_stays_while_it_grows(lab: Lab, page: Any) -> None:
    page.wait_for_timeout(1_500)  # it takes the colours of the theme
    chart(page).scroll_into_view_if_needed()
    box = chart(page).locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()
    chart(page).locator(".all", has_text="All").wait_for(timeout=60_000)
    zoomed = look(page)["range"]
    assert "2024-06-01 10:25" < zoomed[0] < zoomed[1] < "2024-06-01 10:35"
    lab.run(page, "feed(200_000, 220_000)")
    wait_for_head(page, "220,000 events")
    assert look(page)["range"] == zoomed
    assert look(page)["last"] < "2024-06-01 10:40", "only what can be seen is sent"
    lab.picture(page, "chart-zoomed")
    chart(page).locator(".all").click()
    chart(page).locator(".all").wait_for(state="hidden", timeout=60_000)
    assert look(page)["last"].startswith("2024-06-01 11:13:19")


def test_a_pause_stops_it_and_counts(lab: Lab, page: Any) -> None:
    button = chart(page).locator(".pause")
    button.click()
    chart(page).locator(".note", has_text="paused at").wait_for(timeout=60_000)
    before = look(page)
    lab.run(page, "feed(220_000, 225_000)")
    chart(page).locator(".note", has_text=": 5,000 more since then").wait_for(timeout=60_000)
    assert look(page)["last"] == before["last"]
    button.click()
    wait_for_head(page, "225,000 events")
    page.wait_for_function("document.querySelector('.sparkstream-chart .pause').textContent === 'Pause'")
    assert look(page)["last"] > before["last"]


def test_exports(page: Any) -> None:
    begin = {
        "png": b"\x89PNG",
        "svg": b"<svg",
        "csv": b'"series","event time (UTC)","value"\r\n"<i>a</i>",2024-06-01 10:',
    }
    for format, expected in begin.items():
        with page.expect_download(timeout=60_000) as download:
            chart(page).locator(f".{format}").click()
        assert download.value.suggested_filename == f"Market.Prices.{format}"
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(expected)
    assert content.count(b"\r\n") == 1 + sum(look(page)["counts"])


def static_pictures(outputs: list[Any]) -> list[str]:
    """The pictures that a notebook keeps of its charts, as SVG."""
    found = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", json.dumps(outputs).replace('\\"', '"'))
    return [base64.b64decode(data).decode() for data in found]


def test_after_a_reload_and_without_a_kernel_it_is_there(lab: Lab, page: Any) -> None:
    lab.idle(page)
    page.wait_for_timeout(2_500)  # the last commit is a second ago: the static form is replaced
    lab.save(page)
    saved = lab.saved(NAME)[2:4]
    pictures = static_pictures(saved)
    assert len(pictures) == 2
    assert "&lt;i&gt;a&lt;/i&gt;" in pictures[0]
    assert "225,000 events" in saved[0][0]["data"]["text/plain"]
    assert not any("widget" in json.dumps(o) for o in saved)
    page.reload()
    page.wait_for_selector(f"{CHART} .plot .main-svg", timeout=120_000)
    wait_for_head(page, "225,000 events")
    lab.run(page, "feed(225_000, 226_000)")
    wait_for_head(page, "226,000 events")
    assert lab.elsewhere() == [], "nothing comes from another site"
    lab.idle(page)
    page.wait_for_timeout(2_500)
    lab.save(page)


def test_a_notebook_that_is_opened_again_has_the_picture(lab: Lab, page: Any) -> None:
    lab.close(page)
    lab.server.end_kernels()
    lab.load(page)
    lab.open(page, NAME)  # with a kernel that knows nothing of the charts
    images = page.locator(".jp-OutputArea img[src^='data:image/svg+xml']")
    images.nth(1).wait_for(timeout=60_000)
    assert (images.count(), page.locator(CHART).count()) == (2, 0)
    # After a reload JupyterLab does not know which output an update belongs to: the picture is the one before that.
    assert page.locator(".jp-OutputArea", has_text="225,000 events").count() == 2
    with lab.dark(page):
        lab.picture(page, "chart-reopened-dark")


def test_html_of_nbconvert_has_the_picture(lab: Lab, page: Any) -> None:
    from nbconvert import HTMLExporter  # takes a second to load

    html, _ = HTMLExporter().from_filename(str(lab.folder / NAME))
    other = lab.browser.new_page(viewport={"width": 1280, "height": 1400})  # nbconvert's own page asks for MathJax
    try:
        file = lab.folder / "chart.html"
        file.write_text(html, encoding="utf-8")
        other.goto(file.as_uri())
        images = other.locator("img[src^='data:image/svg+xml']")
        assert images.count() == 2
        assert other.evaluate("[...document.images].every((i) => i.complete && i.naturalWidth > 0)")
        images.first.scroll_into_view_if_needed()
        lab.picture(other, "chart-saved")
    finally:
        other.close()
