"""The first notebook in a real JupyterLab, on Spark: run its cells, change the duration, look at the bars."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .browser import VIEW, Lab

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
    page.wait_for_selector(f"{VIEW} .bars", timeout=180_000)
    page.locator(VIEW).scroll_into_view_if_needed()

    def values() -> list[str]:
        return page.locator(f"{VIEW} svg .value").all_text_contents()

    def merged() -> list[str]:
        return page.locator(f"{VIEW} svg .merged-value").all_text_contents()

    assert (values(), merged()) == (["30", "40"], ["70"])
    assert page.locator(f"{VIEW} .x-tick").all_text_contents() == ["10:00", "1 Jun 2024"]

    page.locator(f"{VIEW} .durations button", has_text="sec").click()
    page.wait_for_function("view => document.querySelector(view).textContent.includes('10:30:03')", arg=VIEW)
    assert values() == ["10", "20", "10", "30"]
    # The half hour between the trades is not drawn, and said.
    assert page.locator(f"{VIEW} .gap").all_text_contents() == ["30 min"]
    lab.picture(page, "first-notebook")

    errors = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']").all_text_contents()
    assert any("Leave it out" in e for e in errors)
    assert not any("Traceback" in e for e in errors)
    assert lab.elsewhere() == [], "the page asked for something from outside this machine"

    # A kernel that is started anew knows nothing of the view: its picture stays, without controls that do nothing.
    lab.restart(page)
    page.locator(f"{VIEW} .controls").wait_for(state="hidden")
    lab.idle(page)
    assert values() == ["10", "20", "10", "30"]
