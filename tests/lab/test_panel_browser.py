"""The side panel in a real JupyterLab: what runs in which kernel, feeds, views beside the notebook, stopping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]

PANEL = "#sparkstream-apps"
BESIDE = ".sparkstream-beside"
MARKUP = "<b>Bold</b>"
APPS = f"""
import pandas as pd
import sparkstream_nb

text = '''define stream S (k string, v int);
define table T (k string, v int);
@info(name='<i>even</i>') from S[v % 2 == 0]#log('<u>even</u>') select k, v insert into Evens;
from S select k, v insert into T;
'''
app = sparkstream_nb.deploy(text, name="Rooms", nodes=2, fresh=True, master="inline")
marked = sparkstream_nb.deploy(text, name="{MARKUP}", fresh=True, master="inline")
n = range(600_000)
events = pd.DataFrame({{"k": "<s>a</s>", "v": n, "at": n}})
"""
OTHER = """
import sparkstream_nb

app = sparkstream_nb.deploy("define stream S (v int); from S select v insert into O;", name="Other", master="inline",
                            fresh=True)
"""
FEED = 'feed = app.feed("S", events, time="at", rate=400, background=True); None'


def open_panel(lab: Lab, page: Any) -> Any:
    """Shows the panel, and returns it."""
    lab.do(page, "sparkstream-nb:show-apps")
    panel = page.locator(PANEL)
    panel.wait_for(timeout=20_000)
    return panel


@contextmanager
def panel_of(lab: Lab, name: str, cells: list[str]) -> Iterator[tuple[Any, Any]]:
    """The page with a notebook that has run, and the panel beside it."""
    with lab.notebook(name, [LOAD, *cells], height=900) as page:
        panel = open_panel(lab, page)
        try:
            panel.locator(".app").first.wait_for(timeout=240_000)
            lab.idle(page)
            yield page, panel
        finally:
            lab.do(page, "filebrowser:activate")


def app_in(panel: Any, name: str) -> Any:
    return panel.locator(".app", has=panel.page.get_by_text(name, exact=True))


def wait_for_rate(panel: Any, name: str, pattern: str) -> None:
    app_in(panel, name).locator(".line", has_text=re.compile(pattern)).wait_for(timeout=60_000)


def test_what_do_i_have(lab: Lab) -> None:
    """Apps of all kernels, with their streams, tables and nodes, and variables; names are texts."""
    with panel_of(lab, "rooms.ipynb", [APPS]) as (page, panel):
        assert panel.locator(".app .app-head b").all_text_contents() == [MARKUP, "Rooms"]
        assert panel.locator(".app b b").count() == 0
        assert panel.locator(".kernel-head .name").all_text_contents() == ["rooms.ipynb"]
        panel.get_by_text("2 of 2 apps running").wait_for(timeout=20_000)
        rooms = app_in(panel, "Rooms")
        assert "0 events/s · 0 events · 0 errors · 2 nodes, active-active" in rooms.inner_text()
        lab.run(page, 'app.send("S", [["a", 1], ["b", 2], ["c", 4]], wait=True)')
        rooms.locator("summary", has_text="3 parts").click()
        rooms.locator(".row", has_text="2 events").wait_for(timeout=60_000)
        rows = [" ".join(r.split()) for r in rooms.locator(".parts .row").all_inner_texts()]
        assert rows == ["stream S 3 events", "stream Evens 2 events", "table T 3 rows"]
        rooms.locator("summary", has_text="figures and nodes").click()
        assert rooms.locator("tbody tr").count() == 2
        panel.locator("summary", has_text="variables").click()
        variables = [" ".join(r.split()) for r in panel.locator(".variables .row").all_inner_texts()]
        assert variables == ["app App Rooms", f"marked App {MARKUP}", "events frame 600,000 rows, 3 columns"]
        lab.picture(page, "panel-parts-light")
        lab.do(page, "filebrowser:activate")
        panel.wait_for(state="hidden")
        open_panel(lab, page)
        lab.run(page, 'app.send("S", ["a", 3], wait=True)')
        rooms.locator(".parts .row", has_text="4 events").wait_for(timeout=60_000)  # open as it was
        with lab.dark(page):
            page.locator("#jupyterlab-splash").wait_for(state="detached")
            lab.picture(page, "panel-parts-dark")
    assert lab.elsewhere() == []


def test_two_kernels_and_one_that_restarts(lab: Lab) -> None:
    with panel_of(lab, "rooms.ipynb", [APPS]) as (page, panel):
        other = lab.server.ask("kernels", "POST")
        try:
            page.evaluate("window.jupyterapp.serviceManager.kernels.refreshRunning()")
            page.evaluate(
                """async ([id, code]) => {
                  const { kernels } = window.jupyterapp.serviceManager;
                  const model = [...kernels.running()].find((k) => k.id === id);
                  const kernel = kernels.connectTo({ model });
                  await kernel.requestExecute({ code }).done;
                  kernel.dispose();
                }""",
                [other["id"], f"{LOAD}\n{OTHER}"],
            )
            app_in(panel, "Other").wait_for(timeout=120_000)
            assert panel.locator(".kernel").count() == 2
            panel.get_by_text("3 of 3 apps running").wait_for(timeout=20_000)
            lab.restart(page)
            app_in(panel, "Rooms").wait_for(state="detached", timeout=60_000)
            assert panel.locator(".app .app-head b").all_text_contents() == ["Other"]
        finally:
            lab.server.ask(f"kernels/{other['id']}", "DELETE")
        panel.get_by_text("No app is deployed").wait_for(timeout=60_000)
        lab.idle(page)


def test_a_feed_is_paused_and_resumed(lab: Lab) -> None:
    """The rate moves while a cell runs; pause, resume, another pace and stop work meanwhile."""
    with panel_of(lab, "fed.ipynb", [APPS]) as (page, panel):
        lab.run(page, FEED)
        rooms = app_in(panel, "Rooms")
        feed = rooms.locator(".feed")
        feed.get_by_text("feed 1 of S: running").wait_for(timeout=60_000)
        wait_for_rate(panel, "Rooms", r"^[1-9][\d,.]* events/s")
        lab.run(page, "import time\nwhile feed.active: time.sleep(0.1)\nprint('it is over')")
        panel.locator(".kernel-head", has_text="busy").wait_for(timeout=20_000)
        feed.get_by_role("button", name="Pause feed 1").click()
        feed.get_by_text("feed 1 of S: paused").wait_for(timeout=20_000)
        lab.picture(page, "panel-feed-light")
        wait_for_rate(panel, "Rooms", r"^0 events/s")
        feed.locator("select").select_option("10")
        feed.get_by_role("button", name="Resume feed 1").click()
        feed.get_by_text("feed 1 of S: running").wait_for(timeout=20_000)
        assert feed.locator("select").input_value() == "10"
        feed.get_by_role("button", name="Stop feed 1").click()
        feed.get_by_text("feed 1 of S: stopped").wait_for(timeout=20_000)
        page.wait_for_selector(".jp-OutputArea-output >> text=it is over", timeout=60_000)


def test_views_beside_the_notebook(lab: Lab) -> None:
    """A click opens graph, tail, card and log to the right of the notebook; they follow the app."""
    with panel_of(lab, "seen.ipynb", [APPS]) as (page, panel):
        lab.run(page, FEED)
        rooms = app_in(panel, "Rooms")
        rooms.get_by_role("button", name="Open the graph of Rooms").dblclick()
        graph = page.locator(f"{BESIDE} .sparkstream-graph")
        graph.locator(".sparkstream-edge.flows").first.wait_for(timeout=60_000)
        notebook, view = (page.locator(s).bounding_box() for s in (".jp-NotebookPanel", BESIDE))
        assert notebook["x"] + notebook["width"] <= view["x"] + 1
        assert abs(notebook["y"] - view["y"]) < 60
        assert "<i>even</i>" in graph.text_content()
        page.wait_for_function(
            "(texts) => [...document.querySelectorAll(texts)].some((t) => parseFloat(t.textContent) > 300)",
            arg=f"{BESIDE} .sparkstream-edge text", timeout=60_000,
        )  # fmt: skip
        lab.picture(page, "panel-graph-light")
        with lab.dark(page):
            page.locator("#jupyterlab-splash").wait_for(state="detached")
            lab.picture(page, "panel-graph-dark")
        rooms.get_by_role("button", name="Open the tail of Evens").click()
        tail = page.locator(f"{BESIDE} .sparkstream-tail")
        tail.locator("td", has_text="<s>a</s>").first.wait_for(timeout=60_000)
        first = tail.locator(".bar .muted").text_content()
        page.wait_for_function(
            f"(first) => document.querySelector('{BESIDE} .sparkstream-tail .bar .muted').textContent !== first",
            arg=first, timeout=60_000,
        )  # fmt: skip
        rooms.get_by_role("button", name="Open the log of Rooms").click()
        page.locator(f"{BESIDE} pre", has_text="<u>even</u>").wait_for(timeout=60_000)
        rooms.get_by_role("button", name="Open the card of Rooms").click()
        card = page.locator(f"{BESIDE} .renewed", has_text="2 nodes, active-active")
        card.wait_for(timeout=60_000)
        lab.picture(page, "panel-card-light")
        assert page.locator(f"{BESIDE}").count() == 4
        # Again: the one that is open comes to the front.
        rooms.get_by_role("button", name="Open the graph of Rooms").click()
        graph.locator(".sparkstream-edge.flows").first.wait_for(timeout=20_000)
        assert page.locator(f"{BESIDE}").count() == 4
        assert page.locator(f"{BESIDE} :is(b b, u, s, i)").count() == 0
        # They say so when the kernel restarts.
        page.locator(".jp-NotebookPanel .jp-InputPrompt").first.click()
        lab.restart(page)
        page.locator(f"{BESIDE} .sparkstream-notice", has_text="restarted").first.wait_for(timeout=60_000)
        lab.idle(page)


def test_stop_and_stop_all(lab: Lab) -> None:
    with panel_of(lab, "stopped.ipynb", [APPS]) as (page, panel):
        panel.get_by_role("button", name="Stop all").click()
        page.locator(".jp-Dialog", has_text=f"{MARKUP}, Rooms. State and outputs stay").wait_for(timeout=20_000)
        assert page.locator(".jp-Dialog b").count() == 0
        page.locator(".jp-Dialog button", has_text="Cancel").click()
        app_in(panel, MARKUP).get_by_role("button", name=f"Stop {MARKUP}").click()
        panel.get_by_text("1 of 2 apps running").wait_for(timeout=20_000)
        assert app_in(panel, MARKUP).locator(".state").text_content() == "stopped"
        lab.run(page, 'print(marked.state, "and", app.state)')
        page.wait_for_selector(".jp-OutputArea-output >> text=stopped and running", timeout=60_000)
        panel.get_by_role("button", name="Stop all").click()
        page.locator(".jp-Dialog", has_text="Rooms. State and outputs stay").wait_for(timeout=20_000)
        page.locator(".jp-Dialog button", has_text="Stop all").click()
        panel.get_by_text("0 of 2 apps running").wait_for(timeout=20_000)
        assert panel.get_by_role("button", name="Stop all").is_hidden()
        lab.run(page, 'app.send("S", ["a", 1], wait=True); print(app.state, "again")')
        panel.get_by_text("1 of 2 apps running").wait_for(timeout=60_000)


def test_a_further_page_while_a_cell_runs(lab: Lab) -> None:
    """A page that has no notebook of the kernel has its apps, and live views; both pages see what one does."""
    with panel_of(lab, "shared.ipynb", [APPS]) as (page, panel):
        lab.run(page, FEED)
        lab.run(page, "import time\nwhile feed.active: time.sleep(0.1)\nprint('it is over')")
        panel.locator(".kernel-head", has_text="busy").wait_for(timeout=20_000)
        other = lab.new_page(height=900)
        try:
            lab.load(other)
            further = open_panel(lab, other)
            rooms = app_in(further, "Rooms")
            rooms.wait_for(timeout=60_000)
            further.locator(".kernel-head", has_text="busy").wait_for(timeout=20_000)
            rooms.get_by_role("button", name="Open the graph of Rooms").click()
            other.locator(f"{BESIDE} .sparkstream-edge.flows").first.wait_for(timeout=60_000)
            rooms.get_by_role("button", name="Pause feed 1").click()
            app_in(panel, "Rooms").get_by_text("feed 1 of S: paused").wait_for(timeout=20_000)
            other.locator(f"{BESIDE} .sparkstream-edge.flows").first.wait_for(state="detached", timeout=60_000)
            rooms.get_by_role("button", name="Stop feed 1").click()
            page.wait_for_selector(".jp-OutputArea-output >> text=it is over", timeout=60_000)
        finally:
            other.close()
        panel.get_by_text("2 of 2 apps running").wait_for(timeout=20_000)


def test_a_kernel_that_crashes(lab: Lab) -> None:
    """Jupyter starts it again: its apps are gone, and those of a further deployment are there."""
    with panel_of(lab, "crashed.ipynb", [APPS]) as (page, panel):
        lab.run(page, "import os; os._exit(1)")
        panel.get_by_text("No app is deployed").wait_for(timeout=60_000)
        page.locator(".jp-Dialog button").first.click()
        lab.idle(page)
        lab.run(page, f"{LOAD}\n{APPS}")
        app_in(panel, "Rooms").wait_for(timeout=120_000)
        panel.get_by_text("2 of 2 apps running").wait_for(timeout=20_000)


def test_a_kernel_that_does_not_answer_has_its_last_figures(lab: Lab) -> None:
    """Nothing else runs in Python while `sum` does: the figures have their age, and come again."""
    with panel_of(lab, "silent.ipynb", [APPS]) as (page, panel):
        panel.get_by_text("2 of 2 apps running").wait_for(timeout=20_000)
        lab.run(page, "sum(range(1_000_000_000))")
        head = panel.locator(".kernel-head")
        head.get_by_text(re.compile(r"(busy|does not answer), as of \d+ s ago")).wait_for(timeout=60_000)
        assert panel.locator(".app .app-head b").all_text_contents() == [MARKUP, "Rooms"]
        lab.idle(page)
        head.get_by_text("as of").wait_for(state="detached", timeout=20_000)
        app_in(panel, "Rooms").get_by_role("button", name="Stop Rooms").click()
        panel.get_by_text("1 of 2 apps running").wait_for(timeout=20_000)


def test_nothing_is_asked_while_no_one_looks(lab: Lab) -> None:
    """A hidden panel has no connection, and the kernel's thread ends."""
    threads = "[t for t in threading.enumerate() if t.name == 'sparkstream-panel']"
    with panel_of(lab, "hidden.ipynb", [APPS]) as (page, panel):
        lab.run(page, f"import threading, time; print(len({threads}), 'thread')")
        page.wait_for_selector(".jp-OutputArea-output >> text=1 thread", timeout=60_000)
        lab.do(page, "filebrowser:activate")
        panel.wait_for(state="hidden")
        for _ in range(60):  # a cell that waits itself would keep the kernel from hearing of it
            page.wait_for_timeout(500)
            lab.run(page, f"print('no thread' if not {threads} else 'a thread')")
            lab.idle(page)
            if page.locator(".jp-OutputArea-output", has_text="no thread").count():
                break
        page.wait_for_selector(".jp-OutputArea-output >> text=no thread", timeout=1_000)
        open_panel(lab, page)
        panel.get_by_text("2 of 2 apps running").wait_for(timeout=20_000)
