"""The first notebook in a real JupyterLab, in a real browser: run its cells, change the duration, look at the bars."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01_first_query.ipynb"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Offline and quiet; without a sandbox, which root cannot have.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
VIEW = ".sparkstream-aggregation"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab of its own, on loopback, with the notebook in it."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(NOTEBOOK, folder)
    port, token = free_port(), secrets.token_hex(16)
    bin_folder = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        **{f"JUPYTER{k}": str(tmp_path / k) for k in ("_CONFIG_DIR", "_DATA_DIR", "_RUNTIME_DIR")},
        **{f"JUPYTERLAB_{k}_DIR": str(tmp_path / k) for k in ("SETTINGS", "WORKSPACES")},
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/api/status?token={token}")
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None, (tmp_path / "lab.log").read_text()[-2000:]
                time.sleep(0.1)
        yield f"{address}/lab/tree/{NOTEBOOK.name}?token={token}&reset"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_first_notebook(lab: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page: Any = browser.new_page(viewport={"width": 1280, "height": 3600})
        requested: list[str] = []
        page.on("request", lambda r: requested.append(r.url))
        page.goto(lab)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)

        # Saved outputs: the picture without JavaScript stands in for the widget that no kernel backs.
        page.locator("h2", has_text="The picture").scroll_into_view_if_needed()
        page.wait_for_selector(".jp-OutputArea img[alt='total per hour']", timeout=30_000)

        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=60_000, state="attached")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_selector(f"{VIEW} .barlayer .bars .point", timeout=180_000)
        page.locator(VIEW).scroll_into_view_if_needed()

        def bars() -> list[str]:
            return [t for t in page.locator(f"{VIEW} .barlayer text").all_text_contents() if t]

        def names() -> list[str]:
            return [t for t in page.locator(f"{VIEW} .xtick text").all_text_contents() if t]

        assert bars() == ["30", "40"]
        assert any("2024-06-01 10:00" in n for n in names())
        assert "70" in page.locator(f"{VIEW} .scatterlayer").text_content()

        page.locator(f"{VIEW} .widget-toggle-buttons button", has_text="sec").click()
        page.wait_for_function(
            "([view, n]) => document.querySelectorAll(view + ' .barlayer .bars .point path').length >= n && "
            "document.querySelector(view).textContent.includes('10:30:03')",
            arg=[VIEW, 4], timeout=30_000,
        )  # fmt: skip
        assert bars() == ["10", "20", "10", "30"]

        errors = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']").all_text_contents()
        assert any("Leave it out" in e for e in errors)
        assert not any("Traceback" in e for e in errors)
        elsewhere = [u for u in requested if not u.startswith(("http://127.0.0.1:", "data:", "blob:"))]
        assert elsewhere == [], "the page asked for something from outside this machine"
        browser.close()
