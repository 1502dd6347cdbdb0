"""Outputs with two forms: a static one, which a notebook saves, and an interactive one while the kernel lives.

Only the static form is output and saved, as HTML and text, with no widget in it. An invisible widget model goes with
it; its script (`live.js`) finds the output in the page by a class name, and draws the interactive form in the place of
the static one, as soon as the kernel answers it. A page that is loaded again gets the models of a live kernel back from
Jupyter's widget manager, and so its interactive outputs. Without a kernel there is no model, only the static form.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from ...errors import escape_controls
from ..ipython_shell import shell
from .view_scripts import read_script

_SCRIPT = read_script("live.js")
# A page that has this number of states left to draw gets further ones more slowly; a closed one says so.
_UNSEEN = 25
_SLOWLY = 5.0


class _Model(anywidget.AnyWidget):
    """The page's model: `state`, drawn by `_esm`, in outputs of the class of `key`."""

    key = traitlets.Unicode().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, script: str, **traits: Any) -> None:
        self._esm = script
        super().__init__(**traits)


class LiveOutput:
    """One output with a static and an interactive form. Thread-safe.

    `static` gives the static form by MIME type, with `text/html`. `script` is JavaScript that defines `create(root,
    send, width)`, which fills the element `root`, and returns a function that draws a state. Objects passed to `send`
    are given to `receive`, as are {"do": "here", "width": px} when the page shows the output, again when its width
    changes, and {"do": "gone"} when it does not any more. Each of these calls `show`. The text `standing` of a state is
    shown above the script's drawing. `files`: functions that give the bytes of files which the script may ask for, by
    name; Jupyter's server drops messages that have more than 3 MB in 3 seconds.
    """

    def __init__(
        self,
        static: Callable[[], dict[str, str]],
        script: str,
        receive: Callable[[Mapping[str, Any]], None],
        files: Mapping[str, Callable[[], bytes]] | None = None,
    ) -> None:
        self._static, self._script, self._receive = static, script, receive
        self._files = files or {}
        self._key = uuid4().hex
        self._lock = threading.RLock()
        self._model: _Model | None = None
        self._serial = self._seen_serial = 0
        self._shown_at = 0.0
        # ipykernel gives a page's next message to the subshell whose message the last one sent belongs to. A message
        # sent from a thread belongs to the cell that runs, and answers would wait for its end; so all are sent as part
        # of what the page said last.
        self._context: Context | None = None

    def display(self) -> None:
        """Puts the output into the cell that runs."""
        if self._model is None and getattr(shell(), "kernel", None) is not None:
            self._model = _Model(_SCRIPT + self._script, key=self._key)
            self._model.on_msg(self._dispatch_message)
        display(self._bundle(), raw=True, display_id=self._key)

    def keep(self) -> None:
        """Updates the static form, in the page and so in the notebook when it is saved."""
        if self._model is not None:
            display(self._bundle(), raw=True, display_id=self._key, update=True)

    def show(self, state: Mapping[str, Any]) -> None:
        """Draws `state`, plain data, in the page."""
        with self._lock:
            if self._model is not None:
                self._serial += 1
                self._shown_at = time.monotonic()
                self._within(self._set, {**state, "serial": self._serial})

    def _set(self, state: dict[str, Any]) -> None:
        assert self._model is not None
        self._model.state = _without_controls(state)

    def _within(self, send: Callable[[Any], None], what: Any) -> None:
        (Context() if self._context is None else self._context.copy()).run(send, what)

    @property
    def lags(self) -> bool:
        """True if the page has not drawn its last state, and should not get more yet."""
        with self._lock:
            return self._serial - self._seen_serial > _UNSEEN and time.monotonic() - self._shown_at < _SLOWLY

    def _dispatch_message(self, model: Any, message: Any, buffers: Any) -> None:
        do = message.get("do")
        with self._lock:
            self._seen_serial = int(message["serial"]) if do == "seen" else self._serial
            self._context = None if do == "gone" else copy_context()
            if do == "file":
                self._within(self._send_file, str(message["name"]))
                return
            if do not in ("seen", "gone"):  # a request may take a while, and the page reports a missing answer
                self._within(model.send, {"got": do})
            if do == "gone":  # the page's subshell goes with it: the main thread handles the next page
                self._within(model.send, {})
        if do != "seen":
            self._receive(message)

    def _send_file(self, name: str) -> None:
        assert self._model is not None
        if name in self._files:
            self._model.send({"file": name}, buffers=[self._files[name]()])

    def _bundle(self) -> dict[str, str]:
        forms = {mime: escape_controls(form) for mime, form in self._static().items()}
        name = f"sparkstream-live sparkstream-live-{self._key}"
        return {**forms, "text/html": f'<div class="{name}">{forms["text/html"]}</div>'}


def _without_controls(data: Any) -> Any:
    """Plain data whose texts have no control characters."""
    match data:
        case str():
            return escape_controls(data)
        case dict():
            return {key: _without_controls(value) for key, value in data.items()}
        case list() | tuple():
            return [_without_controls(value) for value in data]
    return data
