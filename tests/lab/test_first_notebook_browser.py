"""The first notebook in a real JupyterLab, on Spark: run its cells, change the duration, look at the bars."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .browser import VIEW, Lab, plotted, wait_for_title

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01_first_query.ipynb"

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.rotates, pytest.mark.timeout(300)]


def test_first_notebook(lab: Lab) -> None:
    shutil.copy(NOTEBOOK, lab.folder)
    with lab.opened(NOTEBOOK.name, height=3600) as page:
        look(lab, page)


def look(lab: Lab, page: Any) -> None:
    # Saved outputs: the picture without JavaScript stands alone, since no kernel backs the interactive one.
    page.wait_for_selector(".jp-OutputArea img[alt='total per hour · all groups']", timeout=30_000)
    assert page.locator(VIEW).count() == 0
    assert "model not found" not in page.content()

    lab.run_all(page)
    page.wait_for_selector(f"{VIEW} .main-svg", timeout=180_000)
    page.locator(VIEW).scroll_into_view_if_needed()

    def texts(number: int) -> list[str]:
        return [text.strip() for text in plotted(page, VIEW)["lines"][number]["text"]]

    wait_for_title(page, VIEW, "total per hour")
    assert (texts(0), texts(1), texts(3)) == (["30"], ["40"], ["70"])

    page.locator(f"{VIEW} .durations button", has_text="sec").click()
    wait_for_title(page, VIEW, "total per sec")
    seconds = [(texts(0), texts(1)), plotted(page, VIEW)["ticks"][-1][:8]]
    assert seconds == [(["10", "20"], ["10", "30"]), "10:30:03"]
    # The half hour between the trades is not drawn, and said.
    assert page.locator(f"{VIEW} .annotation", has_text="30 min").count() == 1
    lab.picture(page, "first-notebook")

    errors = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']").all_text_contents()
    assert any("Leave it out" in e for e in errors)
    assert not any("Traceback" in e for e in errors)
    assert lab.elsewhere() == [], "the page asked for something from outside this machine"

    # A kernel that is started anew knows nothing of the view: its picture stays, without controls that do nothing.
    lab.restart(page)
    page.locator(f"{VIEW} .controls").wait_for(state="hidden")
    lab.idle(page)
    assert (texts(0), texts(1)) == (["10", "20"], ["10", "30"])
