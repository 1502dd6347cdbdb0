"""A real JupyterLab and a real browser for tests: one of each for a whole run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .jupyter_lab import jupyter

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
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        page.locator(".lm-TabBar-tab.jp-mod-dirty").wait_for(state="detached")

    def picture(self, page: Any, name: str) -> None:
        """Takes a picture of the page."""
        page.screenshot(path=self.pictures / f"{name}.png")

    def elsewhere(self) -> list[str]:
        """Addresses outside this machine that a page asked for."""
        return [u for u in self.requested if not u.startswith(LOCAL)]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Playwright's browser, the only one of a run: a second one cannot be started while this one is there."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Lab]:
    """A JupyterLab with an empty folder, and a browser."""
    home = tmp_path_factory.mktemp("lab")
    pictures = Path(os.environ.get(PICTURES, home / "pictures"))
    pictures.mkdir(parents=True, exist_ok=True)
    with jupyter(home) as server:
        yield Lab(server.address, server.token, server.folder, chromium, pictures)
