"""Tab, Shift-Tab and line numbers in a `%%siddhi` cell of a real JupyterLab."""

from __future__ import annotations

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = pytest.mark.timeout(300)
APP = "%%siddhi T --check\ndefine stream Orders (item string, price double);\nfrom Orders select "


def test_the_notebook_helps_while_one_writes(lab: Lab) -> None:
    with lab.notebook("assist.ipynb", [LOAD, APP], height=700) as page:
        page.locator(".jp-Cell .jp-OutputArea-output", has_text="line 3, column").wait_for(timeout=60_000)
        page.locator(".jp-Cell").nth(1).locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.press("Tab")
        page.locator(".jp-Completer-item").first.wait_for()
        assert page.locator(".jp-Completer-item .jp-Completer-match").all_inner_texts()[:2] == ["item", "price"]
        lab.picture(page, "assist-completion")
        page.keyboard.press("Escape")
        page.keyboard.type("sum(")
        page.keyboard.press("Shift+Tab")
        page.locator(".jp-Tooltip", has_text="sum(arg int|long) -> long").wait_for()
        lab.picture(page, "assist-inspection")
        page.keyboard.press("Escape")
    assert not lab.elsewhere()
