"""The manager's dashboard in a real browser, and all apps at a glance in a real JupyterLab: they refresh themselves,
are dark where the page is, and fit a narrow screen."""

from __future__ import annotations

import base64
import os
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app.manager.manager import ClusterDeployer
from sparkstream_nb.app.manager.manager_command import ManagerOptions, open_manager

from .browser import LOCAL, PICTURES, Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

CONF = Path(__file__).parents[2] / "conf" / "distributed"
PASSWORD = "tr0ub4dor&3"
CARD = ".sparkstream-overview article"
ROOMS = """@app:name('{name}')
define stream S (room string, temp double);
@info(name='valid') @dist(execGroup='filter') from S[temp > 0.0] select room, temp insert into Valid;
@dist(execGroup='means', parallel='2') partition with (room of Valid) begin
from Valid#window.length(5) select room, avg(temp) as mean insert into Means; end;
"""
CELLS = [
    LOAD,
    """
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream S (k string, v int);
from S[v > 0] select k, v insert into O;
''', name="Glance", mode="ha", fresh=True, master="inline")
app.send("S", ["<i>a</i>", 1], at=1_717_236_000_000)
app.flush()
""",
    "%siddhi stats",
]


class Managed:
    """A manager that deploys real apps, as its command does."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}/"

    def ask(self, method: str, path: str = "", body: str = "") -> None:
        login = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.url}siddhi-apps{path}", body.encode() or None, headers, method=method)
        with urllib.request.urlopen(request, timeout=60):
            pass


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    """The manager of the deployment files, with one app."""
    from sparkstream_nb.app import deploy, stop_all

    home = tmp_path_factory.mktemp("manager")
    conf = home / "conf"
    shutil.copytree(CONF, conf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADMIN_PASSWORD", PASSWORD)
        patch.setenv("SPARKSTREAM_HOME", str(home / "apps"))
        deployer = ClusterDeployer(
            lambda text, name: deploy(text, name=name, mode="distributed", conf=[conf], master="inline")
        )
        options = ManagerOptions([str(conf)], port=0, allow_env=["ADMIN_PASSWORD"])
        with open_manager(options, deployer, print) as server:
            managed = Managed(server.port)
            managed.ask("POST", body=ROOMS.format(name="Rooms"))
            yield managed
    stop_all()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get(PICTURES, tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def open_page(chromium: Any, manager: Managed, *, width: int = 1280, **options: Any) -> tuple[Any, list[str]]:
    """A page of the dashboard in a context with the manager's login, and the addresses that it asks for."""
    login = {"username": "admin", "password": PASSWORD}
    context = chromium.new_context(http_credentials=login, viewport={"width": width, "height": 800}, **options)
    page, requested = context.new_page(), []
    page.on("request", lambda r: requested.append(r.url))
    page.on("console", lambda m: requested.append(m.text) if "Content Security Policy" in m.text else None)
    page.goto(manager.url)
    page.locator(CARD, has_text="Rooms").first.wait_for()
    return page, requested


def feed(name: str, count: int) -> None:
    from sparkstream_nb.app import get

    app = get(name)
    for i in range(count):
        app.send("S", [f"<room {i % 3}>", 20.0 + i], at=1_717_236_000_000 + 1000 * i)
    app.flush()


def test_the_page_refreshes_itself(chromium: Any, manager: Managed, pictures: Path) -> None:
    page, requested = open_page(chromium, manager)
    card = page.locator(CARD)
    assert card.locator("h2").inner_text().split() == ["Rooms", "running", "distributed"]
    feed("Rooms", 20)
    card.locator(".figures", has_text="2024-06-01 10:00:19").wait_for(timeout=20_000)
    runs = card.locator("tbody tr").all_inner_texts()
    assert any("wso2-sp-manager-1" in row and "active" in row for row in runs)
    assert any("Rooms-means-2" in row for row in runs)
    manager.ask("POST", body=ROOMS.format(name="Halls"))
    page.locator(CARD, has_text="Halls").wait_for(timeout=20_000)
    page.screenshot(path=pictures / "dashboard-light.png")
    manager.ask("DELETE", "/Halls")
    page.locator(CARD, has_text="Halls").wait_for(state="detached", timeout=20_000)
    assert requested
    assert [u for u in requested if not u.startswith(LOCAL)] == []
    page.context.close()


def test_a_manager_that_is_away_is_said(chromium: Any, manager: Managed) -> None:
    page, _ = open_page(chromium, manager)
    page.route("**/*part=apps", lambda route: route.abort())
    page.locator(".failed", has_text="Not refreshed since").wait_for(timeout=20_000)
    assert page.locator("main.stale").count() == 1
    page.unroute("**/*part=apps")
    page.locator("main:not(.stale)").wait_for(timeout=20_000)
    assert page.locator(".failed").text_content() == ""
    page.context.close()


def test_without_the_login_there_is_nothing(chromium: Any, manager: Managed) -> None:
    context = chromium.new_context()
    page = context.new_page()
    with pytest.raises(Exception, match="ERR_INVALID_AUTH_CREDENTIALS"):  # a person would be asked for the login
        page.goto(manager.url)
    answer = context.request.get(f"{manager.url}dashboard?part=apps")
    assert answer.status == 401
    assert "Rooms" not in answer.text()
    context.close()


def test_a_dark_page(chromium: Any, manager: Managed, pictures: Path) -> None:
    page, _ = open_page(chromium, manager, color_scheme="dark")
    feed("Rooms", 30)
    page.locator(CARD, has_text="10:00:29").wait_for(timeout=20_000)
    ground, ink = page.locator(CARD).evaluate("c => [getComputedStyle(c).backgroundColor, getComputedStyle(c).color]")
    assert sum(map(int, ground[4:-1].split(","))) < 120
    assert sum(map(int, ink[4:-1].split(","))) > 600
    page.screenshot(path=pictures / "dashboard-dark.png")
    page.context.close()


def test_a_narrow_screen(chromium: Any, manager: Managed, pictures: Path) -> None:
    """The page is as wide as the screen; the table of nodes scrolls by itself."""
    page, _ = open_page(chromium, manager, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(f"{CARD} .nodes").evaluate("n => n.scrollWidth > n.clientWidth")
    page.screenshot(path=pictures / "dashboard-narrow.png", full_page=True)
    page.context.close()


def test_all_apps_in_a_notebook(lab: Lab) -> None:
    with lab.notebook("glance.ipynb", CELLS) as page:
        card = page.locator(f".jp-OutputArea-output {CARD}", has_text="Glance")
        card.wait_for(timeout=240_000)
        lab.idle(page)
        assert card.locator("tbody tr").all_inner_texts()[0].split()[:2] == ["node-1", "active"]
        lab.run(page, 'app.send("S", ["b", 2], at=1_717_236_005_000)\nprint("sent", "it")')
        page.wait_for_selector(".jp-OutputArea-output >> text=sent it", timeout=60_000)
        card.locator(".figures", has_text="2024-06-01 10:00:05").wait_for(timeout=20_000)
        head, value = (card.locator(f".{part}").nth(1).bounding_box() for part in ("label", "value"))
        assert head["y"] + head["height"] <= value["y"] + 1  # JupyterLab's own style moves nothing
        # An app that is deployed later is there as well.
        lab.run(page, 'sparkstream_nb.deploy("define stream S (v int);", name="Later", master="inline", fresh=True)')
        page.locator(f".jp-OutputArea-output {CARD}", has_text="Later").wait_for(timeout=60_000)
        lab.picture(page, "glance-light")
        with lab.dark(page):
            page.wait_for_function(
                "c => getComputedStyle(document.querySelector(c)).color.startsWith('rgba(255') || "
                "getComputedStyle(document.querySelector(c)).color.startsWith('rgb(2')",
                arg=f".jp-OutputArea-output {CARD}",
            )
            page.locator("#jupyterlab-splash").wait_for(state="detached")
            lab.picture(page, "glance-dark")
        lab.save(page)
    saved = str(lab.saved("glance.ipynb")[2])
    assert "sparkstream-overview" in saved
    assert lab.elsewhere() == []
