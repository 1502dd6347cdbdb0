"""A real JupyterLab in a real browser for tests: one of each for a whole run, and one page that shows a notebook after
the other, as a page of JupyterLab takes longer to load than most tests take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.found import program, skip_unless

from .jupyter_lab import Server, jupyter

# Offline and quiet; without a sandbox, which root cannot have.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:")
VIEW = ".sparkstream-aggregation"
PLOT = ".sparkstream-plot"
PICTURES = "SPARKSTREAM_TEST_PICTURES"
"""The variable that names a folder for the pictures that tests take; else they lie in pytest's temporary one."""
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
COMMAND = "([name, given]) => window.jupyterapp.commands.execute(name, given).then(() => null)"
CLOSE = """async () => {
  for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
    if (widget.context) await widget.context.sessionContext.shutdown();
    widget.dispose(); // close() would ask whether to save what an output changed meanwhile
  }
}"""


def plotted(page: Any, view: str, number: int = 0) -> dict[str, Any]:
    """The plot of the view with this `number`: its title, its lines (name, x, y, titles, keys, text), its ranges."""
    found: dict[str, Any] = page.evaluate(
        """([view, number]) => {
          const plot = document.querySelectorAll(view)[number].querySelector('.sparkstream-plot');
          const list = (values) => Array.from(values ?? []);
          return {
            title: plot.layout.title.text, width: plot.layout.width, range: plot._fullLayout.xaxis.range,
            top: plot._fullLayout.yaxis.range[1], ink: plot._fullLayout.font.color,
            ticks: list(plot.layout.xaxis.ticktext), ground: plot._fullLayout.paper_bgcolor,
            lines: plot._fullData.map((t) => ({
              name: t.name, x: list(t.x), y: list(t.y), titles: list(t.hovertext), keys: list(t.customdata),
              text: list(t.text),
            })),
          };
        }""",
        [view, number],
    )
    return found


def wait_for_title(page: Any, view: str, title: str, number: int = 0) -> None:
    """Waits until the plot of a view has a title with this text in it."""
    page.wait_for_function(
        """([view, title, number]) => document.querySelectorAll(view)[number]?.querySelector('.sparkstream-plot')
          ?.layout?.title?.text.includes(title)""",
        arg=[view, title, number],
        timeout=60_000,
    )


class Markdown(str):
    """The text of a cell that is no code."""


@dataclass
class Lab:
    """A JupyterLab on loopback, and a page of it: `pictures` is where pictures go, `requested` every address that a
    page asked for."""

    server: Server
    browser: Any
    pictures: Path
    requested: list[str] = field(default_factory=list)
    _page: Any = None

    @property
    def folder(self) -> Path:
        """What JupyterLab serves."""
        return self.server.folder

    def new_page(self, height: int = 1400, width: int = 1280) -> Any:
        """A further page of the browser, to be closed."""
        page = self.browser.new_page(viewport={"width": width, "height": height})
        page.on("request", lambda r: self.requested.append(r.url))
        return page

    @contextmanager
    def notebook(self, name: str, cells: Sequence[str], *, height: int = 1400, run: bool = True) -> Iterator[Any]:
        """The page with a new notebook of these cells (texts of code, or of another kind: `Markdown`), whose kernel is
        idle and then runs all cells. It is closed at the end, and its kernel ended."""
        from nbformat import v4, write  # takes a second to load

        made = [v4.new_markdown_cell(c) if isinstance(c, Markdown) else v4.new_code_cell(c) for c in cells]
        write(v4.new_notebook(cells=made, metadata={"kernelspec": KERNEL}), self.folder / name)
        with self.opened(name, height=height) as page:
            if run:
                self.run_all(page)
            yield page

    @contextmanager
    def opened(self, name: str, *, height: int = 1400) -> Iterator[Any]:
        """The page with a notebook of `folder`, whose kernel is idle. It is closed at the end, and its kernel ended."""
        if self._page is None:
            self._page = self.new_page()
            self.load(self._page)
        page, usable = self._page, False
        page.set_viewport_size({"width": 1280, "height": height})
        try:
            self.open(page, name)
            yield page
            self.close(page)
            usable = page.locator(".jp-Dialog").count() == 0
        finally:
            if not usable:
                page.close()
                self._page = None
                self.server.end_kernels()

    def load(self, page: Any) -> None:
        """Loads JupyterLab anew, with nothing open."""
        page.goto(self.server.lab)
        page.wait_for_function("window.jupyterapp")
        page.evaluate("window.jupyterapp.restored.then(() => null)")

    def do(self, page: Any, command: str, **given: str) -> None:
        """Carries out a command of JupyterLab."""
        page.evaluate(COMMAND, [command, given])

    def open(self, page: Any, name: str) -> None:
        """Opens a notebook of `folder`, and waits until its kernel is idle."""
        self.do(page, "docmanager:open", path=name)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.locator(".jp-Toolbar-kernelName", has_text="Python 3").wait_for(timeout=60_000)
        self.idle(page)

    def close(self, page: Any) -> None:
        """Closes the notebook as it was saved, and ends its kernel."""
        page.evaluate(CLOSE)
        page.locator(".jp-Notebook").wait_for(state="detached")

    def idle(self, page: Any) -> None:
        """Waits until the kernel is idle."""
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=120_000, state="attached")

    def menu(self, page: Any, menu: str, item: str) -> None:
        """Chooses an item of a menu."""
        page.get_by_role("menuitem", name=menu, exact=True).click()
        page.get_by_role("menuitem", name=item, exact=True).click()

    def run_all(self, page: Any) -> None:
        """Runs all cells."""
        self.menu(page, "Run", "Run All Cells")

    def run(self, page: Any, text: str) -> None:
        """Runs `text` in a new cell at the end."""
        page.locator(".jp-Notebook .jp-Cell").last.locator(".jp-InputPrompt").click()
        page.keyboard.press("Escape")
        page.keyboard.press("b")
        page.keyboard.press("Enter")
        page.keyboard.insert_text(text)
        page.keyboard.press("Control+Enter")

    def restart(self, page: Any) -> None:
        """Restarts the kernel."""
        page.get_by_role("menuitem", name="Kernel", exact=True).click()
        page.locator("li[data-command='kernelmenu:restart']").click()
        page.locator(".jp-Dialog button", has_text="Restart").click()

    def save(self, page: Any) -> None:
        """Saves the notebook; once more where an output was replaced meanwhile, as it is a second after a commit."""
        dirty = page.locator(".lm-TabBar-tab.jp-mod-dirty")
        for _ in range(20):
            self.do(page, "docmanager:save")
            with suppress(Exception):
                dirty.wait_for(state="detached", timeout=2_000)
                return
        raise AssertionError("the notebook is never as it was saved")

    @contextmanager
    def dark(self, page: Any) -> Iterator[None]:
        """The dark theme."""
        try:
            self.do(page, "apputils:change-theme", theme="JupyterLab Dark")
            page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
            yield
        finally:
            self.do(page, "apputils:change-theme", theme="JupyterLab Light")
            page.wait_for_selector("body[data-jp-theme-light=true]", state="attached")

    def saved(self, name: str) -> list[list[Any]]:
        """The outputs of each code cell of a saved notebook."""
        from nbformat import read

        return [c.outputs for c in read(self.folder / name, 4).cells]

    def picture(self, page: Any, name: str) -> None:
        """Takes a picture of the page."""
        page.screenshot(path=self.pictures / f"{name}.png")

    def elsewhere(self) -> list[str]:
        """Addresses outside this machine that a page asked for."""
        return [u for u in self.requested if not u.startswith(LOCAL)]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Playwright's browser, the only one of a run: a second one cannot be started while this one is there."""
    found = program("browser", "chromium", "chromium-browser", "google-chrome")
    skip_unless(found, "browser", "a browser: chromium is not on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Lab]:
    """A JupyterLab with an empty folder, and a browser."""
    home = tmp_path_factory.mktemp("lab")
    pictures = Path(os.environ.get(PICTURES, home / "pictures"))
    pictures.mkdir(parents=True, exist_ok=True)
    with jupyter(home) as server:
        yield Lab(server, chromium, pictures)
