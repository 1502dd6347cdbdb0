"""`%%siddhi --fmt` in a real JupyterLab: the cell's text is replaced; a mistake has the line that the editor shows."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from .browser import Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

UGLY = "%%siddhi --fmt\ndefine stream S(a int); -- in\nfrom S select a insert into O"
NEAT = "%%siddhi --fmt\ndefine stream S (a int); -- in\n\nfrom S\nselect a\ninsert into O;"
WRONG = "%%siddhi --check\ndefine stream S (a int);\nfrom S select b insert into O;"
EDITOR = "n => document.querySelectorAll('.jp-Notebook .jp-CodeCell .cm-content')[n].cmView.view.state.doc.toString()"


def test_a_cell_is_formatted_in_its_place(lab: Lab) -> None:
    cells = [new_code_cell(s) for s in ("%load_ext sparkstream_nb", UGLY, WRONG)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=kernel), lab.folder / "format.ipynb")
    page = lab.page(height=800)
    lab.open(page, "format.ipynb")
    lab.run_all(page)
    page.get_by_text("line 3, column 15: ").first.wait_for(timeout=60_000)
    page.wait_for_function(f"want => ({EDITOR})(1) === want", arg=NEAT, timeout=30_000)
    lab.picture(page, "format")
    page.close()
