"""The dashboard notebook outside of JupyterLab: Voila shows live views and no code, papermill sets its parameters."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from tests.processes import free_port

from .browser import LOCAL, plotted

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "16_dashboard.ipynb"
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


@pytest.fixture
def voila(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of Voila, which serves the notebook."""
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "apps"))
    port = free_port()
    words = ["--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    with (tmp_path / "voila.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-m", "voila", str(NOTEBOOK), *words], stdout=log, stderr=log)
        try:
            address, end = f"http://127.0.0.1:{port}/", time.monotonic() + 60
            while time.monotonic() < end:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}voila/static/voila.js", timeout=5):
                    break
                time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            process.wait(30)


def test_voila_shows_live_views_and_no_code(voila: str, chromium: Any) -> None:
    page = chromium.new_page(viewport={"width": 1200, "height": 1400})
    asked: list[str] = []
    page.route("**/*", lambda route: route.continue_() if route.request.url.startswith(LOCAL) else route.abort())
    page.on("request", lambda r: asked.append(r.url))
    page.goto(voila, wait_until="domcontentloaded", timeout=120_000)
    page.wait_for_function("document.querySelectorAll('.sparkstream-plot .main-svg').length >= 4", timeout=120_000)
    assert "define stream" not in page.inner_text("body")
    assert plotted(page, ".sparkstream-live-root")["title"] == "total per min · all groups"
    page.get_by_role("button", name="hour", exact=True).click()
    page.wait_for_function("document.querySelector('.sparkstream-plot').layout.title.text.startsWith('total per hour')")
    lines = {line["name"] for line in plotted(page, ".sparkstream-live-root")["lines"]}
    assert {"node-1", "node-2", "merged"} <= lines
    assert page.locator("td", has_text=re.compile("^card ")).count() >= 5
    page.close()


def test_papermill_sets_the_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSTREAM_HOME", str(tmp_path / "apps"))
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(NOTEBOOK, out, {"nodes": 4, "payments": 500}, progress_bar=False)
    notebook = nbformat.read(out, 4)
    outputs = [o.data.get("text/plain", "") for c in notebook.cells for o in c.get("outputs", []) if "data" in o]
    divergence = next(text for text in outputs if "against one node" in text)
    assert "Cards on 4 nodes" in divergence
    view = next(text for text in outputs if text.startswith("Spent:"))
    assert "node-4" in view
