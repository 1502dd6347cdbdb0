"""Pages that show the side panel: they get the state once a second, and their requests are carried out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import uuid4

from ...errors import SparkStreamError

INTERVAL = 1.0
"""Seconds between two states."""
LEASE = 70.0
"""Seconds for which a page that said that it is there gets states; it says so again before that."""

_log = logging.getLogger(__name__)

Send = Callable[[Mapping[str, Any], Sequence[bytes]], None]
"""Sends a message, plain data with buffers, to all pages."""


class OpenView(Protocol):
    """A view of an app in a page: its form before the page draws it, and the page's messages to it."""

    form: Mapping[str, Any]

    def receive(self, content: Mapping[str, Any]) -> None:
        """Handles a message of the page's."""

    def close(self) -> None:
        """The page does not show it any more."""


class Control(Protocol):
    """The apps, as pages see and control them. All but `state` raise SparkStreamError for what cannot be."""

    def state(self) -> Mapping[str, Any]:
        """The state of all apps, as plain data."""

    def stop(self, app: str) -> None:
        """Stops an app."""

    def stop_all(self) -> None:
        """Stops every app."""

    def control_feed(self, message: Mapping[str, Any]) -> None:
        """Pauses, resumes or stops a feed, or changes its pace."""

    def open_view(self, view: str, message: Mapping[str, Any], send: Callable[..., None]) -> OpenView:
        """Opens a view of an app, which sends its messages to the page by `send`."""


class PanelServer:
    """The pages and their views. Thread-safe. `seconds` gives the time."""

    def __init__(self, send: Send, control: Control, seconds: Callable[[], float] = time.monotonic) -> None:
        self._send, self._control, self._seconds = send, control, seconds
        self._lock = threading.RLock()
        self._leases: dict[str, float] = {}
        self._views: dict[str, tuple[str, OpenView]] = {}
        self._wake_event = threading.Event()
        self._thread: threading.Thread | None = None

    def receive(self, message: Mapping[str, Any]) -> None:
        """Handles a message of a page: `do` says what it asks for, `page` is its id."""
        do, page = str(message.get("do")), str(message.get("page"))
        try:
            self._carry_out(do, page, message)
        except SparkStreamError as error:
            self._fail(page, message, " ".join(str(error).split()))
        except Exception as error:
            _log.exception("A request of the side panel failed: %s", do)
            self._fail(page, message, f"{type(error).__name__}: {error}")
        if do not in ("tell", "open", "close"):  # a view's own messages change nothing
            self._wake_event.set()

    def _carry_out(self, do: str, page: str, message: Mapping[str, Any]) -> None:
        match do:
            case "here":
                self._renew(page)
            case "leave":
                self._leave(page)
            case "stop":
                self._control.stop(str(message["app"]))
            case "stop all":
                self._control.stop_all()
            case "feed":
                self._control.control_feed(message)
            case "open":
                self._open(page, message)
            case "tell" | "close" if (entry := self._views.get(str(message["view"]))) is not None:
                if do == "tell":
                    entry[1].receive(message["content"])
                else:
                    self._close(str(message["view"]))

    def _fail(self, page: str, message: Mapping[str, Any], text: str) -> None:
        self._send({"type": "failed", "page": page, "app": message.get("app"), "text": text}, ())

    def _renew(self, page: str) -> None:
        with self._lock:
            self._leases[page] = self._seconds() + LEASE
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sparkstream-panel", daemon=True)
                self._thread.start()

    def _leave(self, page: str) -> None:
        with self._lock:
            self._leases.pop(page, None)
            ids = [id for id, (owner, _) in self._views.items() if owner == page]
        for id in ids:
            self._close(id)

    def _open(self, page: str, message: Mapping[str, Any]) -> None:
        id = uuid4().hex

        def send(content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
            self._send({"type": "view", "view": id, **content}, buffers)

        view = self._control.open_view(str(message["view"]), message, send)
        with self._lock:
            self._views[id] = page, view
        self._send({"type": "opened", "page": page, "request": message.get("request"), "view": id, **view.form}, ())

    def _close(self, id: str) -> None:
        with self._lock:
            _, view = self._views.pop(id, (None, None))
        if view is not None:
            view.close()

    def _run(self) -> None:
        while self._has_pages():
            self._wake_event.clear()
            try:
                self._send({"type": "state", **self._control.state()}, ())
            except Exception:  # an app that is deployed or ends meanwhile: the next state has it as it is then
                _log.debug("The state of the side panel could not be read", exc_info=True)
            self._wake_event.wait(INTERVAL)

    def _has_pages(self) -> bool:
        """False, and the thread ends, if no page is there any more."""
        now = self._seconds()
        for page in [page for page, end in list(self._leases.items()) if end < now]:
            self._leave(page)
        with self._lock:
            if not self._leases:
                self._thread = None
            return bool(self._leases)
