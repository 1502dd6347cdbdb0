"""The view of a cluster in a real JupyterLab: a node is killed by its button, and what follows is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

CLUSTER = ".sparkstream-cluster"
NOTICE = ".sparkstream-notice"
APP = """
import pandas as pd
import sparkstream_nb

text = '''
define stream Readings (room string, temp double);
@info(name='mean') from Readings#window.time(1 min) select room, avg(temp) as mean group by room insert into Means;
'''
app = sparkstream_nb.deploy(text, name="Rooms", mode="ha", fresh=True, master="inline")
at = 1_717_236_000_000 + 1000 * pd.RangeIndex(300)
frame = pd.DataFrame({"room": ["<i>a</i>", "b"] * 150, "temp": 20.5, "at": at})

def feed(start, end):
    app.feed("Readings", frame[start:end], time="at", progress=lambda p: None)

feed(0, 80)
"""
CELLS = [LOAD, APP, "app.cluster"]


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook("cluster.ipynb", CELLS, height=1700) as page:
        wait_for_map(lab, page)
        yield page


def wait_for_map(lab: Lab, page: Any) -> None:
    page.wait_for_selector(f"{CLUSTER} .map svg", timeout=240_000)
    lab.idle(page)


def node(page: Any, name: str) -> Any:
    return page.locator(f"{CLUSTER} .node[aria-label='{name}']")


def wait_for_role(page: Any, name: str, role: str) -> None:
    node(page, name).locator(".role", has_text=role).wait_for(timeout=60_000)


def test_the_nodes_and_their_buttons(lab: Lab, page: Any) -> None:
    page.locator(CLUSTER).scroll_into_view_if_needed()
    lab.picture(page, "cluster")
    wait_for_role(page, "node-1", "active")
    wait_for_role(page, "node-2", "passive")
    assert page.locator(f"{CLUSTER} .map svg").get_attribute("aria-label") == "Rooms: node-1 active, node-2 passive"
    labels = node(page, "node-1").locator("button").all_text_contents()
    assert labels == ["Kill", "Restart", "Pause 30 s", "database", "clients", "node-2"]
    kill = page.get_by_role("button", name="Kill node-1: its process ends, and its memory is gone")
    assert kill.count() == 1
    assert node(page, "node-1").locator("button.restart").get_attribute("aria-disabled") == "true"
    assert page.locator(f"{CLUSTER} .head").text_content().endswith("last revision 19 s old, 2 made")


def test_a_kill_waits_for_the_clock_and_the_other_node_takes_over(lab: Lab, page: Any) -> None:
    button = node(page, "node-1").locator("button.kill")
    button.focus()
    page.keyboard.press("Enter")
    page.locator(f"{CLUSTER} .said", has_text="kill node-1: waits for the clock").wait_for()
    page.wait_for_function("b => b.ariaDisabled === 'true'", arg=button.element_handle(), timeout=60_000)
    assert page.evaluate("document.activeElement.className") == "kill"
    lab.picture(page, "cluster-waiting")
    lab.run(page, "feed(80, 180)")
    wait_for_role(page, "node-1", "down")
    wait_for_role(page, "node-2", "active")
    said = page.locator(f"{CLUSTER} .said").text_content()
    assert "node-2 takes over, with the last revision: " in said
    assert " events lost before it, 20 replayed" in said
    bars = page.locator(f"{CLUSTER} .timeline svg title").all_text_contents()
    assert any(b.startswith("node-1 down: ") for b in bars)
    assert any(b.startswith("node-2 active: ") for b in bars)
    assert any(b.endswith("no node took the events") for b in bars)
    assert page.locator(f"{CLUSTER} .map svg").get_attribute("aria-label") == "Rooms: node-1 down, node-2 active"
    lab.idle(page)
    page.locator(CLUSTER).scroll_into_view_if_needed()
    lab.picture(page, "cluster-after-the-kill")
    page.set_viewport_size({"width": 1000, "height": 1400})
    log = page.locator(f"{CLUSTER} .log")
    log.scroll_into_view_if_needed()
    assert log.evaluate("l => l.scrollWidth <= l.clientWidth"), "long incidents are wrapped"
    lab.picture(page, "cluster-narrow")


def test_a_restart_a_cut_and_a_pause(lab: Lab, page: Any) -> None:
    node(page, "node-1").locator("button.restart").click()
    page.locator(f"{CLUSTER} .said", has_text="restart node-1: waits for the clock").wait_for()
    page.get_by_role("button", name="Cut node-2 off from database for 30 s").click()
    page.locator(f"{CLUSTER} .said", has_text="cut node-2 from database for 30 s: waits").wait_for()
    lab.run(page, "feed(180, 195)")
    page.locator(f"{CLUSTER} .map text", has_text="cut until 10:03:29.001").wait_for(timeout=60_000)
    wait_for_role(page, "node-1", "passive")
    page.locator(f"{CLUSTER} select").select_option("last 2 min")
    page.wait_for_function(
        "c => !document.querySelector(c + ' .timeline').textContent.includes('10:00:30')", arg=CLUSTER
    )
    node(page, "node-1").locator("button.pause").click()
    lab.run(page, "feed(195, 200)")
    wait_for_role(page, "node-1", "stands still")
    lab.picture(page, "cluster-cut")
    page.locator(f"{CLUSTER} select").select_option("all")


def test_a_button_moves_the_clock_after_the_last_event(lab: Lab, page: Any) -> None:
    node(page, "node-2").locator("button.kill").click()
    page.locator(f"{CLUSTER} .said", has_text="kill node-2: waits for the clock").wait_for()
    page.get_by_role("button", name="Move the app's clock by +1 min, with no event").click()
    wait_for_role(page, "node-2", "down")
    lab.picture(page, "cluster-clock-moved")
    node(page, "node-2").locator("button.restart").click()
    page.locator(f"{CLUSTER} .said", has_text="restart node-2: waits for the clock").wait_for()
    page.get_by_role("button", name="Move the app's clock by +1 s, with no event").click()
    wait_for_role(page, "node-2", "passive")


def test_errors_are_one_line_in_the_view(lab: Lab, page: Any) -> None:
    lab.run(page, 'sparkstream_nb.app.stop_all()\nprint("all", "stopped")')
    page.wait_for_selector(".jp-OutputArea-output >> text=all stopped", timeout=60_000)
    node(page, "node-2").locator("button.kill").click()
    failed = page.locator(f"{CLUSTER} .failed", has_text="this app 'Rooms' is closed")
    failed.wait_for()
    assert "\n" not in failed.text_content()
    page.locator(NOTICE, has_text="Rooms is stopped or was deployed again: these are the last values shown.").wait_for()
    assert page.locator(f"{CLUSTER} .map svg").count() == 1
    lab.picture(page, "cluster-closed")


def test_it_reads_in_a_dark_theme(lab: Lab, page: Any) -> None:
    with lab.dark(page):
        page.locator(CLUSTER).scroll_into_view_if_needed()
        lab.picture(page, "cluster-dark")
        ink = page.locator(f"{CLUSTER} .map svg").evaluate("e => getComputedStyle(e).color")
        assert min(int(c) for c in ink[ink.index("(") + 1 : -1].split(",")[:3]) > 127


def test_what_is_saved_is_the_picture(lab: Lab, page: Any) -> None:
    lab.idle(page)
    lab.save(page)
    book = json.loads((lab.folder / "cluster.ipynb").read_text())
    data = book["cells"][2]["outputs"][-1]["data"]
    assert "".join(data["text/html"]).count("data:image/svg+xml;base64,") == 2
    assert "".join(data["text/plain"]).startswith("Rooms: 2 nodes, ha · clock 2024-06-01 10:04:20 UTC")
    assert not lab.elsewhere()


def test_a_kernel_that_does_not_answer(lab: Lab, page: Any) -> None:
    """Restarted behind the page's back, it does not know the page's subshell: what it is told is lost."""
    (session,) = lab.server.ask("sessions")
    lab.server.ask(f"kernels/{session['kernel']['id']}/restart", "POST")
    lab.idle(page)
    node(page, "node-2").locator("button.kill").click()
    page.locator(NOTICE, has_text="The kernel did not answer: reload the page").wait_for(timeout=30_000)
    assert page.locator(f"{CLUSTER}.waiting").count() == 0
    lab.picture(page, "cluster-silent")


def test_after_a_restart_a_view_says_that_its_app_is_gone(lab: Lab, page: Any) -> None:
    lab.restart(page)
    page.locator(NOTICE, has_text="The kernel has ended or was restarted, and the app of this view with it").wait_for()
    assert page.locator(f"{CLUSTER} .controls").is_hidden()
    lab.run(page, 'print("here", "again")')
    page.wait_for_selector(".jp-OutputArea-output >> text=here again", timeout=60_000)
    lab.picture(page, "cluster-gone")
