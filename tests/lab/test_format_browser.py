"""`%%siddhi --fmt` in a real JupyterLab: the cell's text is replaced; a mistake has the line that the editor shows."""

from __future__ import annotations

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

UGLY = "%%siddhi --fmt\ndefine stream S(a int); -- in\nfrom S select a insert into O"
NEAT = "%%siddhi --fmt\ndefine stream S (a int); -- in\n\nfrom S\nselect a\ninsert into O;"
WRONG = "%%siddhi --check\ndefine stream S (a int);\nfrom S select b insert into O;"
EDITOR = "n => document.querySelectorAll('.jp-Notebook .jp-CodeCell .cm-content')[n].cmView.view.state.doc.toString()"


def test_a_cell_is_formatted_in_its_place(lab: Lab) -> None:
    with lab.notebook("format.ipynb", [LOAD, UGLY, WRONG], height=800) as page:
        page.get_by_text("line 3, column 15: ").first.wait_for(timeout=60_000)
        page.wait_for_function(f"want => ({EDITOR})(1) === want", arg=NEAT, timeout=30_000)
        lab.picture(page, "format")
