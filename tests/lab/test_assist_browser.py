"""Tab, Shift-Tab and line numbers in a `%%siddhi` cell of a real JupyterLab."""

from __future__ import annotations

import nbformat
import pytest

from .browser import CHROMIUM, Lab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
APP = "%%siddhi T --check\ndefine stream Orders (item string, price double);\nfrom Orders select "


def test_the_notebook_helps_while_one_writes(lab: Lab) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in ("%load_ext sparkstream_nb", APP)])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nbformat.write(book, lab.folder / "assist.ipynb")
    page = lab.page(height=700)
    lab.open(page, "assist.ipynb")
    lab.run_all(page)
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
    assert not lab.elsewhere()
    page.close()
