"""Notebooks of others: each result has its static form in kernels without anywidget, Plotly and comms, in kernels whose
front end answers no comm, and without IPython."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

from sparkstream_nb.lab import display

from .test_display import SHOWN

BARE = """
import sys
for module in ("plotly", "anywidget", "comm"):
    sys.modules[module] = None
"""
DEPLOY = """
import pandas as pd
import sparkstream_nb as ss
app = ss.deploy('''
define stream S (k string, v int);
@PartitionById define aggregation T from S select k, sum(v) as total group by k aggregate every sec...hour;
@info(name='p') from every e1=S[v > 5] -> e2=S[k == e1.k and v > 5] select e1.k as k insert into O;
''', name="Bare", nodes=2, master="inline", fresh=True)
frame = pd.DataFrame({"k": ["<i>x</i>", "b"] * 50, "v": range(100), "t": range(0, 100_000, 1000)})
fed = app.feed("S", frame, time="t")
"""
RESULTS = (
    "app", "app.output('O')", "app.view('T', per='min')", "app.divergence()", "app.study()", "app.graph()",
    "app.chart('S', y='v')", "app.tail('O')", "app.stats()", "app.at(event=5)", "app.profile()", "app.explain()",
    "app.sql('select k, count(*) as n from O group by k')", "ss.overview()", "app.errors",
)  # fmt: skip


KERNELS = {
    "Databricks: no anywidget, Plotly, comms": BARE,
    "Colab: no anywidget, comms without an answer": "import sys\nsys.modules['anywidget'] = None",
    "VS Code: comms without an answer": "__vsc_ipynb_file__ = 'a.ipynb'",
}
"""The first cell of a notebook, by the front end that has such a kernel."""
IMAGE = re.compile(r'src="data:image/svg\+xml;base64,([^"]+)"')


@pytest.mark.notebook
@pytest.mark.parametrize("first_cell", KERNELS.values(), ids=KERNELS.keys())
def test_each_result_has_a_static_form_where_nothing_can_be_live(
    first_cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "apps"))
    cells = [nbformat.v4.new_code_cell(text) for text in (first_cell, DEPLOY, *RESULTS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    nbformat.validate(notebook)
    pictures = 0
    for cell in notebook.cells[2:]:
        forms = [o.data for o in cell.outputs if o.output_type in ("display_data", "execute_result") and o.data]
        assert len(forms) == 1, cell.source
        assert set(forms[0]) == {"text/html", "text/plain"}, cell.source
        html = forms[0]["text/html"]
        assert html, cell.source
        assert "<i>x" not in html, cell.source
        assert "<script" not in html, cell.source
        assert forms[0]["text/plain"], cell.source
        for image in IMAGE.findall(html):
            assert ElementTree.fromstring(base64.b64decode(image)).tag.endswith("svg"), cell.source
            pictures += 1
    assert pictures >= 4


@pytest.mark.parametrize("shown", [s for s, _, _ in SHOWN], ids=lambda s: type(s).__name__)
def test_without_ipython_results_have_html(shown: display.Displayed) -> None:
    assert shown._repr_html_() == display.html(shown.still())
