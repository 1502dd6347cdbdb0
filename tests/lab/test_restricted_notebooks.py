"""The notebooks for Databricks and for a Spark Connect server, on sessions that refuse what these refuse.

There is no Plotly, no anywidget and no comm of Jupyter's in their kernels, so results have static forms alone. What the
notebooks were saved with, on a Spark that refuses nothing, is what they give there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.apps.programs import ROOT
from tests.masters import connect
from tests.refusing_connect import ROCKSDB, SERVERLESS, Refusals, refusing_proxy

from .test_bare_notebooks import BARE

pytestmark = [pytest.mark.rotates, pytest.mark.thorough, pytest.mark.spark, pytest.mark.notebook]
PLAIN = Refusals(settings=False, endless_queries=False, files=True)
DURATIONS = re.compile(r"[\d.]+ s elapsed, [\d,]+ events/s")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Connect server with this package."""
    conf = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    address, (server,) = connect(tmp_path_factory.mktemp("server"), conf=conf, PYTHONPATH=str(ROOT))
    with server:
        yield address


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("book", "refusals"), [("17_databricks", SERVERLESS), ("18_spark_connect", PLAIN)])
def test_the_notebook_gives_the_same_on_a_session_that_refuses_much(
    book: str, refusals: Refusals, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = nbformat.read(ROOT / "notebooks" / f"{book}.ipynb", 4).cells
    cells = [nbformat.v4.new_code_cell(cell.source) for cell in saved if cell.cell_type == "code"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BARE), *cells])
    with refusing_proxy(server, refusals) as (address, proxy):
        monkeypatch.setenv("SPARK_REMOTE", address)
        monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "apps"))
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [texts(cell) for cell in notebook.cells[1:]]
    assert outputs == [texts(cell) for cell in saved if cell.cell_type == "code"]
    forms = {kind for cell in notebook.cells for o in cell.outputs for kind in o.get("data", {})}
    assert forms == {"text/html", "text/plain"}
    html = [o.data["text/html"] for cell in notebook.cells for o in cell.outputs if "text/html" in o.get("data", {})]
    assert sum("<img src=" in form for form in html) >= 1
    assert not any("<script" in form for form in html)
    assert bool(proxy.texts) == refusals.settings


def texts(cell: nbformat.NotebookNode) -> list[str]:
    """The outputs of a cell as text, without how long it took."""
    forms = [o.text if o.output_type == "stream" else o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return [DURATIONS.sub("DURATION", form) for form in forms if form]
