"""The kernel's side of the side panel, without a browser: the state that it sends, and what a page may ask of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, deploy, stop_all
from sparkstream_nb.lab.panel.panel_comm import SUBSHELLS, TARGET, offer_panel
from sparkstream_nb.lab.panel.panel_control import AppControl
from sparkstream_nb.lab.panel.panel_server import LEASE, PanelServer
from sparkstream_nb.lab.panel.panel_state import MOST, panel_state

TEXT = """
define stream S (k string, v int);
define table T (k string, v int);
define window W (k string) length(2);
define trigger Tick at every 1 hour;
define aggregation A from S select k, sum(v) as total group by k aggregate every sec ... year;
@info(name='even') from S[v % 2 == 0]#log('even') select k, v insert into Evens;
@info(name='keep') from S select k, v insert into T;
@info(name='last') from S select k insert into W;
partition with (k of S) begin from S select k insert into #Inner; from #Inner select k insert into Ks; end;
"""
EVENTS = pd.DataFrame({"k": ["a", "b"] * 50, "v": range(100), "at": [1000 * i for i in range(100)]})


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:  # not the stand-in: figures are of a real one
    yield deploy(TEXT, name="<i>Rooms</i>", nodes=2, fresh=True, master="inline", home=tmp_path / "app")
    stop_all()


class Pages:
    """The messages that pages get."""

    def __init__(self, app: App, seconds: Callable[[], float] = time.monotonic) -> None:
        self.messages: list[dict[str, Any]] = []
        self.arrival = threading.Condition()
        self.server = PanelServer(self.take, AppControl({"app": app, "frame": EVENTS, "_": app, "n": 3}), seconds)

    def take(self, message: Mapping[str, Any], buffers: Any) -> None:
        with self.arrival:
            self.messages.append({**json.loads(json.dumps(message)), "buffers": [bytes(b) for b in buffers]})
            self.arrival.notify_all()

    def ask(self, do: str, **more: Any) -> None:
        self.server.receive({"do": do, "page": "p", **more})

    def next(self, kind: str, where: Callable[[dict[str, Any]], bool] = lambda m: True) -> dict[str, Any]:
        """Waits for a message of a kind, and takes it."""
        matches: list[dict[str, Any]] = []

        def has_come() -> bool:
            matches[:] = [m for m in self.messages if m["type"] == kind and where(m)]
            return bool(matches)

        with self.arrival:
            assert self.arrival.wait_for(has_come, 20), f"no such {kind}"
            self.messages.remove(matches[0])
        return matches[0]


@pytest.fixture
def pages(app: App) -> Iterator[Pages]:
    made = Pages(app)
    yield made
    made.ask("leave")


def test_the_state_of_an_app(app: App) -> None:
    app.feed("S", EVENTS, time="at", progress=lambda p: None)
    state = panel_state({app.name: app}, {"app": app, "frame": EVENTS, "_": app, "n": 3, "pd": pd})
    (entry,) = state.apps
    assert (entry.name, entry.state, entry.mode) == ("<i>Rooms</i>", "running", "2 nodes, active-active")
    assert dict(entry.figures)["events"] == "100"
    assert [(p.kind, p.name, p.about, p.has_tail) for p in entry.parts] == [
        ("stream", "S", "100 events", True),
        ("trigger", "Tick", "0 events", True),
        ("stream", "Evens", "50 events", True),
        ("stream", "Ks", "100 events", True),
        ("table", "T", "100 rows", False),
        ("window", "W", "4 rows", False),
        ("aggregation", "A", "every sec … year", False),
    ]
    assert entry.tail == "Ks"
    assert entry.node_columns == ["node", "events", "events/s", "state", "clock (UTC)"]
    assert [row[:2] for row in entry.nodes] == [["node-1", "50"], ["node-2", "50"]]
    assert [(v.name, v.kind, v.about) for v in state.variables] == [
        ("app", "App", "<i>Rooms</i>"), ("frame", "frame", "100 rows, 3 columns"),
    ]  # fmt: skip
    assert json.loads(json.dumps(asdict(state)))["apps"][0]["parts"][0]["name"] == "S"


def test_many_parts_are_cut_and_counted(tmp_path: Path) -> None:
    text = "".join(f"define stream S{i} (v int);\n" for i in range(MOST + 5))
    app = deploy(text, name="Many", fresh=True, master="inline", home=tmp_path / "many")
    try:
        (entry,) = panel_state({"Many": app}, {}).apps
        assert (len(entry.parts), entry.left_out) == (MOST, 5)
    finally:
        stop_all()
    assert panel_state({"Many": app}, {}).apps == []  # closed


def test_a_page_gets_states_until_it_leaves(pages: Pages) -> None:
    pages.ask("here")
    assert pages.next("state")["apps"][0]["name"] == "<i>Rooms</i>"
    pages.next("state")
    pages.ask("leave")
    thread = pages.server._thread
    if thread is not None:
        thread.join(20)
    pages.messages.clear()
    assert pages.server._thread is None


def test_a_page_that_says_nothing_for_long_is_forgotten(app: App) -> None:
    now = [0.0]
    pages = Pages(app, lambda: now[0])
    pages.ask("here")
    pages.ask("open", request="1", view="log", app=app.name)
    pages.next("opened")
    thread = pages.server._thread
    assert thread is not None
    now[0] = LEASE + 1
    thread.join(20)
    assert not thread.is_alive()
    assert pages.server._views == {}


def test_feeds_are_paused_resumed_and_stopped(app: App, pages: Pages) -> None:
    feed = app.feed("S", EVENTS, time="at", rate=5, background=True, progress=None)
    pages.ask("here")

    def state_of_feed(state: str) -> dict[str, Any]:
        def is_so(message: dict[str, Any]) -> bool:
            return [f["state"] for f in message["apps"][0]["feeds"]] == [state]

        found: dict[str, Any] = pages.next("state", is_so)["apps"][0]["feeds"][0]
        return found

    entry = state_of_feed("running")
    assert (entry["id"], entry["stream"], entry["active"]) == (feed.id, "S", True)
    assert (entry["pace"]["kind"], entry["pace"]["value"]) == ("rate", 5)
    pages.ask("feed", feed=feed.id, action="pause")
    state_of_feed("paused")
    pages.ask("feed", feed=feed.id, action="pace", kind="speed", value=60)
    pages.ask("feed", feed=feed.id, action="resume")
    assert state_of_feed("running")["pace"]["value"] == 60
    pages.ask("feed", feed=feed.id, action="stop")
    assert state_of_feed("stopped")["active"] is False
    pages.ask("feed", feed=99_999, action="stop")
    assert "there is no feed 99999" in pages.next("failed")["text"]


def test_stop_and_stop_all(app: App, pages: Pages, tmp_path: Path) -> None:
    other = deploy("define stream S (v int);", name="Other", fresh=True, master="inline", home=tmp_path / "other")
    pages.ask("stop", app="Other")
    assert (app.state, other.state) == ("running", "stopped")
    pages.ask("stop", app="<i>Room</i>")
    failed = pages.next("failed")
    assert (failed["app"], failed["page"]) == ("<i>Room</i>", "p")
    assert "Did you mean" in failed["text"]
    pages.ask("stop all")
    assert (app.state, other.state) == ("stopped", "stopped")


@pytest.mark.parametrize("view", ["card", "tail", "graph", "log"])
def test_views_have_a_form_and_follow(app: App, pages: Pages, view: str) -> None:
    app.feed("S", EVENTS, time="at", progress=lambda p: None)
    pages.ask("here")
    pages.ask("open", request="7", view=view, app=app.name, stream="Evens")
    opened = pages.next("opened")
    assert opened["request"] == "7"
    assert opened["title"] == f"{view} · <i>Rooms</i>" + (".Evens" if view == "tail" else "")
    assert f"sparkstream-live-{opened['key']}" in opened["html"]
    assert "export default" in opened["script"]
    assert "<i>Rooms" not in opened["html"]
    id = opened["view"]
    pages.ask("tell", view=id, content={"do": "here", "width": 600})
    drawn = pages.next("view", lambda m: m["view"] == id and "state" in m)["state"]
    assert drawn["serial"] == 1
    if view == "graph":
        pages.ask("tell", view=id, content={"do": "file", "name": "graph"})
        picture = pages.next("view", lambda m: bool(m["buffers"]))
        assert picture["content"] == {"file": "graph"}
        assert b"<svg" in picture["buffers"][0]
        assert len(drawn["labels"]) == picture["buffers"][0].count(b'class="sparkstream-edge"')
    app.send("S", ["c", 200], wait=True)
    pages.next("view", lambda m: m["view"] == id and m.get("state", {}).get("serial", 0) > 1)
    pages.ask("close", view=id)
    pages.ask("tell", view=id, content={"do": "here", "width": 700})  # too late, and no error
    assert pages.server._views == {}


def test_wrong_requests_are_refused(app: App, pages: Pages) -> None:
    pages.ask("open", request="1", view="grahp", app=app.name)
    assert pages.next("failed")["text"].startswith("there is no view 'grahp'")
    pages.ask("open", request="1", view="tail", app=app.name, stream="Nope")
    assert "has no stream 'Nope'" in pages.next("failed")["text"]
    pages.ask("feed")
    assert pages.next("failed")["text"].startswith("KeyError")
    pages.ask("something else")
    assert pages.messages == []


class Kernel:
    """A kernel with what the comm needs of it."""

    def __init__(self, *, subshells: bool) -> None:
        self._supports_kernel_subshells = subshells
        self.comm_manager = SimpleNamespace(comms={}, register_comm=self.register)
        self.shell = SimpleNamespace(user_ns={})
        self.iopub_socket = object()
        self.session = SimpleNamespace(send=self.send)
        self.messages: list[Any] = []

    def register(self, comm: Any) -> None:
        self.comm_manager.comms[comm.comm_id] = comm

    def send(self, socket: Any, kind: str, content: Any, **more: Any) -> None:
        assert socket is self.iopub_socket
        self.messages.append((kind, content, more))


@pytest.mark.parametrize("subshells", [True, False])
def test_a_page_finds_the_comm_of_a_kernel(subshells: bool) -> None:
    kernel = Kernel(subshells=subshells)
    offer_panel(kernel)
    offer_panel(kernel)
    ((id, comm),) = kernel.comm_manager.comms.items()
    assert id == TARGET + (SUBSHELLS if subshells else "")
    assert comm.target_name == TARGET
    assert [content["data"] for _, content, _ in kernel.messages] == [{"type": "hello"}]
    comm.send({"name": "a\x1b[2J"})
    kind, content, more = kernel.messages[-1]
    assert (kind, content) == ("comm_msg", {"comm_id": id, "data": {"name": "a\\u001b[2J"}})
    assert more["parent"] == {}  # no cell's
    comm.handle_msg({"content": {"data": {"do": "open", "page": "p", "view": "card", "app": "None"}}})
    assert kernel.messages[-1][1]["data"]["text"].startswith("no app is called 'None'")


def test_a_page_that_looks_loads_nothing_heavy() -> None:
    """A kernel without an app stays as light as it is."""
    program = """
import sys
from sparkstream_nb.lab.panel.panel_comm import _LateControl
print(_LateControl({}).state(), sorted({"pandas", "numba", "anywidget", "duckdb"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'apps': [], 'variables': []} []"
