"""Saved pictures in a real JupyterLab of a dark theme: traces, studies, failovers and charts are dark too."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

APP = """
import pandas as pd
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream S (k string, v double);
@info(name='last3') from S#window.length(3) select k, sum(v) as s insert into Sums;
@info(name='rise') from every e1=S -> e2=S[v > e1.v and k == e1.k] select e1.v as a, e2.v as b insert into Rises;
''', name="Dark", nodes=2, fresh=True, master="inline")
n = range(12)
events = pd.DataFrame({"k": [f"k{i % 3}" for i in n], "v": [i * 7 % 5 / 2 for i in n], "at": [1000 * i for i in n]})
app.feed("S", events, time="at", progress=lambda p: None)
"""
CELLS = [
    LOAD, APP, "%siddhi trace Dark.last3 events --time at", "%siddhi trace Dark.rise events --time at",
    "%siddhi study Dark --nodes 1,2,3", "%siddhi graph Dark", "app.divergence()",
]  # fmt: skip
PICTURE = ":is(.jp-OutputArea-output .sparkstream-picture, .sparkstream-plot:has(.main-svg))"


PIXEL = """async (data) => {
  const image = new Image();
  image.src = "data:image/png;base64," + data;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const [r, g, b] = canvas.getImageData(image.width / 2, 3, 1, 1).data;
  return (r + g + b) / 3;
}"""


def brightness(page: Any, number: int) -> float:
    """Of the ground of a picture, as the screen shows it: from 0 to 255."""
    shown = page.locator(PICTURE).nth(number)
    shown.scroll_into_view_if_needed()
    return float(page.evaluate(PIXEL, base64.b64encode(shown.screenshot()).decode()))


def test_pictures_are_as_dark_as_the_page(lab: Lab) -> None:
    with lab.notebook("dark.ipynb", CELLS, height=3200) as page:
        page.wait_for_function(f"document.querySelectorAll('{PICTURE}').length >= 5", timeout=240_000)
        lab.idle(page)
        count = page.locator(PICTURE).count()
        assert all(brightness(page, n) > 240 for n in range(count))
        with lab.dark(page):
            page.wait_for_timeout(1_500)  # plots take the colours of the theme
            lab.picture(page, "pictures-dark")
            assert all(brightness(page, n) < 40 for n in range(count))
