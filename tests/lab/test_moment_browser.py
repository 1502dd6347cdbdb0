"""A moment in a real JupyterLab: the slider, outputs, a search, drawings, why-not; saved, and in the dark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

MOMENT = ".sparkstream-moment"
APP = """
import numpy as np
import pandas as pd
import sparkstream_nb

text = '''
define stream Payments (card string, amount double);
@info(name='spree')
from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > 300] within 1 min
select a.card as card, a.amount + b.amount as total insert into Sprees;
@info(name='recent')
from Payments#window.time(30 sec) select card, sum(amount) as total group by card insert into Totals;
'''

def deploy(name, frame, **options):
    app = sparkstream_nb.deploy(text, name=name, fresh=True, master="inline", **options)
    app.feed("Payments", frame, time="at", progress=lambda p: None)
    return app

cards = ["oak", "<i>elm</i>", "ash & fir", "oak", "yew", "<i>elm</i>", "yew", "oak"]
small = pd.DataFrame({"card": cards, "amount": [420.0, 350.0, 80.0, 505.0, 390.0, 610.0, 280.0, 90.0],
                      "at": [1_717_236_000_000 + 7_000 * i for i in range(8)]})
app = deploy("Watch", small)
"""
LARGE = """
n = 100_000
random = np.random.default_rng(1)
large = pd.DataFrame({"card": [f"card-{i:03d}" for i in random.integers(0, 500, n)],
                      "amount": random.integers(0, 400, n) + 0.5, "at": 1_717_236_000_000 + 200 * np.arange(n)})
deploy("Large", large, nodes=3, routing="round_robin").at(event=50_000)
"""
CELLS = [LOAD, APP, "app.at(event=2)", LARGE]
LATENCY = 0.3
"""Seconds from a click to the new drawing, of 10^5 events on three nodes."""


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """The errors of the page's console."""
    return []


@pytest.fixture(scope="module")
def page(lab: Lab, messages: list[str]) -> Iterator[Any]:
    with lab.notebook("moment.ipynb", CELLS, height=2600, run=False) as page:
        page.on("console", lambda m: messages.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: messages.append(str(e)))
        lab.run_all(page)
        page.wait_for_function(f"document.querySelectorAll('{MOMENT} .timeline svg').length == 2", timeout=240_000)
        lab.idle(page)
        yield page


def part(page: Any, selector: str, number: int = 0) -> Any:
    return page.locator(MOMENT).nth(number).locator(selector)


def wait_for_step(page: Any, step: str, number: int = 0) -> None:
    page.wait_for_function(
        "([view, number, text]) => document.querySelectorAll(view)[number]"
        ".querySelector('.head').textContent.includes(text)",
        arg=[MOMENT, number, f"step {step} of"], timeout=20_000,
    )  # fmt: skip


def test_the_slider_and_its_keys(lab: Lab, page: Any) -> None:
    lab.picture(page, "moment")
    slider = part(page, ".slider")
    assert slider.get_attribute("aria-label") == "step of the input"
    assert slider.get_attribute("aria-valuetext") == "step 2 of 8 · 2024-06-01 10:00:07"
    rule = part(page, ".timeline line.position")
    before = float(rule.get_attribute("x1"))
    slider.focus()
    page.keyboard.press("ArrowRight")
    wait_for_step(page, "3")
    page.keyboard.press("End")
    wait_for_step(page, "8")
    assert float(rule.get_attribute("x1")) > before
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, "7")
    lab.idle(page)
    assert page.evaluate("document.activeElement.classList.contains('slider')"), "its saved form was replaced meanwhile"
    page.keyboard.press("Home")
    page.wait_for_function(f"document.querySelector('{MOMENT} .head').textContent.includes('before the first step')")
    assert part(page, ".back").get_attribute("aria-disabled") == "true"


def test_tab_goes_through_the_controls_that_all_have_names(page: Any) -> None:
    part(page, ".previous").focus()
    names = []
    for _ in range(12):
        names.append(
            page.evaluate("""() => { const e = document.activeElement;
              return e.getAttribute('aria-label') ?? e.labels?.[0]?.firstChild.textContent ?? ''; }""")
        )
        page.keyboard.press("Tab")
    assert names == [
        "previous output", "a step back", "step of the input", "a step forth", "next output", "of", "go to",
        "go to this time or event", "find value", "previous event or output with this value",
        "next event or output with this value", "state of",
    ]  # fmt: skip


def test_the_next_output_and_a_click_on_the_time_line(page: Any) -> None:
    part(page, ".stream").select_option("Sprees")
    part(page, ".next").click()
    wait_for_step(page, "4")
    assert "output: Sprees (oak, 925.0) of spree on node-1" in part(page, ".head").text_content()
    part(page, ".next").click()
    wait_for_step(page, "6")
    part(page, ".next").click()
    part(page, ".failed").first.filter(has_text="there is no output of Sprees after step 6").wait_for()
    part(page, ".previous").click()
    wait_for_step(page, "4")
    box = part(page, ".timeline svg").bounding_box()
    rule = float(part(page, ".timeline line.position").get_attribute("x1"))
    page.mouse.click(box["x"] + rule + 1, box["y"] + box["height"] / 2)
    wait_for_step(page, "4")
    page.mouse.click(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    wait_for_step(page, "8")


def test_a_time_an_event_number_and_a_value(page: Any) -> None:
    part(page, ".place").fill("10:00:15")
    page.keyboard.press("Enter")
    wait_for_step(page, "3")
    part(page, ".place").fill("7")
    page.keyboard.press("Enter")
    wait_for_step(page, "7")
    part(page, ".value").fill("<i>elm</i>")
    page.keyboard.press("Shift+Enter")
    wait_for_step(page, "6")
    assert part(page, ".found").text_content() == "2 of 2 steps"
    assert "event 6: Payments (<i>elm</i>, 610.0) to node-1" in part(page, ".head").text_content()
    assert page.locator(f"{MOMENT} i").count() == 0, "a value with markup in it is a text"


def test_the_drawings_of_a_pattern_and_of_a_window(lab: Lab, page: Any) -> None:
    part(page, ".state-of").select_option("spree")
    part(page, ".state text").filter(has_text="waits for b until 10:01:35").first.wait_for()
    assert part(page, ".state text").filter(has_text="a: <i>elm</i>, 610.0").count() == 1
    assert part(page, ".state .legend").filter(has_text="match").count() == 1
    part(page, ".state-of").select_option("recent")
    part(page, ".state text").filter(has_text="recent: time(30 sec)").wait_for()
    assert part(page, ".state .legend").filter(has_text="leaves next").count() == 1
    lab.picture(page, "moment-window")


def test_why_not_in_the_background(lab: Lab, page: Any) -> None:
    part(page, ".output").select_option("Sprees")
    part(page, ".values").fill("card='yew'")
    part(page, ".why").click()
    part(page, ".answer table").first.wait_for()
    assert "amount > 300 was not true: event 7 had amount 280.0" in part(page, ".answer").text_content()
    lab.picture(page, "moment-why-not")
    part(page, ".proof").click()
    part(page, ".own").wait_for()
    assert "output: Sprees (yew, 690.0)" in part(page, ".head").text_content()
    part(page, ".own").click()
    part(page, ".own").wait_for(state="hidden")
    part(page, ".values").fill("card='oak'")
    page.keyboard.press("Enter")
    part(page, ".why-not .failed").filter(has_text="did come").wait_for()


@pytest.mark.timed
def test_a_click_is_drawn_soon_with_many_events_and_three_nodes(page: Any) -> None:
    seconds = []
    for selector, count in ((".forth", 3), (".back", 3), (".next", 4), (".find-next", 3)):
        if selector == ".find-next":
            part(page, ".value", 1).fill("card-007")
        for _ in range(count):
            before = part(page, ".head", 1).text_content()
            begin = time.monotonic()
            part(page, selector, 1).click()
            page.wait_for_function(
                "([view, text]) => document.querySelectorAll(view)[1].querySelector('.head').textContent !== text",
                arg=[MOMENT, before],
            )
            seconds.append(time.monotonic() - begin)
    print(f"a click to its drawing: median {sorted(seconds)[len(seconds) // 2]:.3f} s, most {max(seconds):.3f} s")
    assert sorted(seconds)[len(seconds) // 2] < LATENCY


def test_it_is_dark_on_a_dark_page(lab: Lab, page: Any) -> None:
    with lab.dark(page):
        page.wait_for_timeout(500)
        lab.picture(page, "moment-dark")
        for selector in (".timeline svg text", ".state svg text", ".head", ".where"):
            colour = part(page, selector).first.evaluate("e => getComputedStyle(e).color")
            assert min(map(int, re.findall(r"\d+", colour)[:3])) > 150, colour


def test_what_is_saved_and_exported_has_the_pictures_without_controls(
    lab: Lab, page: Any, messages: list[str]
) -> None:
    lab.idle(page)
    lab.save(page)
    book = json.loads((lab.folder / "moment.ipynb").read_text())
    data = book["cells"][2]["outputs"][-1]["data"]
    markup = "".join(data["text/html"])
    assert markup.count("data:image/svg+xml;base64,") == 2
    assert "<button" not in markup
    assert "<i>" not in markup
    assert "".join(data["text/plain"]).startswith("Watch at 2024-06-01 10:00:")
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", str(lab.folder / "moment.ipynb")],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    exported = lab.browser.new_page(viewport={"width": 1280, "height": 1800})
    try:
        exported.route(re.compile("^https?:"), lambda route: route.abort())  # scripts of nbconvert's own template
        exported.goto(f"file://{lab.folder / 'moment.html'}")
        images = exported.locator("img.sparkstream-picture")
        assert images.count() == 4
        assert all(images.nth(i).evaluate("e => e.naturalWidth") > 300 for i in range(4))
        assert exported.locator(MOMENT).count() == 0
        lab.picture(exported, "moment-exported")
    finally:
        exported.close()
    assert messages == []
