"""The apps of this process, as the side panel controls them, and the views that it opens beside a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ... import app as api
from ...app import App
from ...app.results.listeners import Followed
from ...app.running.app_stats import read_stats
from ...charts.value_texts import format_count
from ...errors import Misuse, nearest
from .. import display
from ..drawings.result_blocks import muted_html
from ..drawings.text_tables import escaped_lines
from ..widgets.feed import control_feed
from ..widgets.following import FollowingView, every
from ..widgets.graph_widget import GraphView
from ..widgets.live import PageModel
from ..widgets.renewed_view import RenewedView
from ..widgets.tail import TailView
from .panel_state import default_tail, panel_state

SECONDS = 1.0
"""Between two readings of a card or a log."""
LINES = 200
"""Lines of a log that are shown."""


class AppControl:
    """Implements `panel_server.Control` for all apps of this process. `namespace` is the shell's."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def state(self) -> dict[str, Any]:
        return asdict(panel_state(api.apps(), self._namespace))

    def stop(self, app: str) -> None:
        api.get(app).stop()

    def stop_all(self) -> None:
        for app in api.apps().values():
            app.stop()

    def control_feed(self, message: Mapping[str, Any]) -> None:
        control_feed(api.feed_of(int(message["feed"])), {**message, "do": message["action"]})

    def open_view(self, view: str, message: Mapping[str, Any], send: Callable[..., None]) -> AppView:
        if view not in _VIEWS:
            raise Misuse(nearest(f"there is no view '{view}'", view, _VIEWS))
        app = api.get(str(message["app"]))
        stream = message.get("stream") or default_tail(app, read_stats(app.runtime))
        title = f"{view} · {app.name}" + (f".{stream}" if view == "tail" else "")
        return AppView(title, _VIEWS[view](app, str(stream)), send)


class AppView:
    """A view in a page, drawn there by the same script as in a notebook's output."""

    def __init__(self, title: str, view: FollowingView, send: Callable[..., None]) -> None:
        self._model = _ViewModel(send)
        output = view.output
        output.connect(self._model)
        form = output.form()
        self.form = {"title": title, "html": form["text/html"], "script": output.script, "key": output.key}

    def receive(self, content: Mapping[str, Any]) -> None:
        self._model.receive(content)

    def close(self) -> None:
        self._model.receive({"do": "gone"})


class _ViewModel(PageModel):
    """The model of a live output, over the panel's messages in place of a widget's."""

    def __init__(self, send: Callable[..., None]) -> None:
        self._send = send
        self._receive: Callable[..., None] | None = None
        self._state: dict[str, Any] = {}

    @property
    def state(self) -> dict[str, Any]:
        return self._state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._state = state
        self._send({"state": state})

    def send(self, content: Any, buffers: Any = None) -> None:
        self._send({"content": content}, buffers or ())

    def on_msg(self, callback: Callable[..., None]) -> None:
        self._receive = callback

    def receive(self, content: Mapping[str, Any]) -> None:
        assert self._receive is not None
        self._receive(self, content, [])


def _card(app: App, stream: str) -> FollowingView:
    return RenewedView(_target_of(app), lambda: display.bundle(app))


def _tail(app: App, stream: str) -> FollowingView:
    return TailView(app.tail(stream))


def _graph(app: App, stream: str) -> FollowingView:
    graph = app.graph()
    assert graph.flow is not None
    return GraphView(graph, graph.flow)


def _log(app: App, stream: str) -> FollowingView:
    return RenewedView(_target_of(app), lambda: _log_forms(app))


def _log_forms(app: App) -> dict[str, str]:
    """The last lines of the logs, the newest first."""
    lines = app.logs
    newest = "\n".join(reversed(lines[-LINES:]))
    if not lines:
        note = "No line yet: #log, log sinks and the app's own notes write here."
    else:
        note = f"{format_count(min(len(lines), LINES), 'line')}, the newest first"
    return {"text/plain": newest or note, "text/html": muted_html(note) + (escaped_lines(newest) if newest else "")}


def _target_of(app: App) -> Followed:
    return Followed(app.name, every(SECONDS), app.runtime.view_state)


_VIEWS: Mapping[str, Callable[[App, str], FollowingView]] = {
    "card": _card,
    "tail": _tail,
    "graph": _graph,
    "log": _log,
}
