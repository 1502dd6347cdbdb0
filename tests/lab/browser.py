"""A real JupyterLab and a real browser for tests: one of each for a whole run."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Offline and quiet; without a sandbox, which root cannot have.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:")
VIEW = ".sparkstream-aggregation"
PICTURES = "SPARKSTREAM_TEST_PICTURES"
"""The variable that names a folder for the pictures that tests take; else they lie in pytest's temporary one."""


@dataclass
class Lab:
    """A JupyterLab on loopback: `folder` is what it serves, `browser` Playwright's, `requested` every address that a
    page asked for, `pictures` where pictures go."""

    address: str
    token: str
    folder: Path
    browser: Any
    pictures: Path
    requested: list[str] = field(default_factory=list)

    def page(self, height: int = 1400, width: int = 1280) -> Any:
        """A new page of the browser."""
        page = self.browser.new_page(viewport={"width": width, "height": height})
        page.on("request", lambda r: self.requested.append(r.url))
        return page

    def open(self, page: Any, notebook: str) -> None:
        """Opens a notebook of `folder` and waits until its kernel is idle."""
        page.goto(f"{self.address}/lab/tree/{notebook}?token={self.token}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.locator(".jp-Toolbar-kernelName", has_text="Python 3").wait_for(timeout=60_000)
        self.idle(page)

    def idle(self, page: Any) -> None:
        """Waits until the kernel is idle."""
        page.wait_for_selector(
            ".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=120_000, state="attached"
        )

    def menu(self, page: Any, menu: str, item: str) -> None:
        """Chooses an item of a menu."""
        page.get_by_role("menuitem", name=menu, exact=True).click()
        page.get_by_role("menuitem", name=item, exact=True).click()

    def run_all(self, page: Any) -> None:
        """Runs all cells."""
        self.menu(page, "Run", "Run All Cells")

    def save(self, page: Any) -> None:
        """Saves the notebook."""
        page.locator(".jp-NotebookPanel-toolbar [data-command='docmanager:save'], [title^='Save']").first.click()
        page.locator(".lm-TabBar-tab.jp-mod-dirty").wait_for(state="detached")

    def picture(self, page: Any, name: str) -> None:
        """Takes a picture of the page."""
        page.screenshot(path=self.pictures / f"{name}.png")

    def elsewhere(self) -> list[str]:
        """Addresses outside this machine that a page asked for."""
        return [u for u in self.requested if not u.startswith(LOCAL)]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab with an empty folder, and a browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    port, token = free_port(), secrets.token_hex(16)
    bin_folder = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        **{f"JUPYTER{k}": str(home / k) for k in ("_CONFIG_DIR", "_DATA_DIR", "_RUNTIME_DIR")},
        **{f"JUPYTERLAB_{k}_DIR": str(home / k) for k in ("SETTINGS", "WORKSPACES")},
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (home / "lab.log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/api/status?token={token}")
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None, (home / "lab.log").read_text()[-2000:]
                time.sleep(0.1)
        pictures = Path(os.environ.get(PICTURES, home / "pictures"))
        pictures.mkdir(parents=True, exist_ok=True)
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            yield Lab(address, token, folder, browser, pictures)
            browser.close()
    finally:
        server.terminate()
        server.wait(30)
