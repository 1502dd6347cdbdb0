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
from typing import Any, Protocol
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from ...errors import escape_controls
from ..ipython_shell import shell
from ..plain_data import without_controls
from .view_scripts import read_script

_SCRIPT = read_script("live.js")
# A page that has this number of states left to draw gets further ones more slowly; a closed one says so.
_UNSEEN = 25
_SLOWLY = 5.0


class PageModel(Protocol):
    """The model of an output in a page, in the part of a widget's that is needed: `state` is what the page draws."""

    @property
    def state(self) -> dict[str, Any]: ...

    @state.setter
    def state(self, state: dict[str, Any]) -> None: ...

    def send(self, content: Any, buffers: Any = None) -> None:
        """Sends a message to the script in the page."""

    def on_msg(self, callback: Callable[..., None]) -> None:
        """Calls `callback(model, content, buffers)` for each message of the script."""


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
        self._static, self._receive = static, receive
        self._files = files or {}
        self.script = _SCRIPT + script
        self.key = uuid4().hex
        self._lock = threading.RLock()
        self._model: PageModel | None = None
        self._is_displayed = False
        self._serial = self._seen_serial = 0
        self._shown_at = 0.0
        # ipykernel gives a page's next message to the subshell whose message the last one sent belongs to. A message
        # sent from a thread belongs to the cell that runs, and answers would wait for its end; so all are sent as part
        # of what the page said last.
        self._context: Context | None = None

    def display(self) -> None:
        """Puts the output into the cell that runs."""
        if self._model is None and getattr(shell(), "kernel", None) is not None:
            self.connect(_Model(self.script, key=self.key))
            self._is_displayed = True
        display(self.form(), raw=True, display_id=self.key)

    def connect(self, model: PageModel) -> None:
        """Draws by `model`, in a page that shows the output's `form`, and has its `script`."""
        self._model = model
        model.on_msg(self._dispatch_message)

    def keep(self) -> None:
        """Updates the static form, in the page and so in the notebook when it is saved."""
        if self._is_displayed:
            display(self.form(), raw=True, display_id=self.key, update=True)

    def show(self, state: Mapping[str, Any]) -> None:
        """Draws `state`, plain data, in the page."""
        with self._lock:
            if self._model is not None:
                self._serial += 1
                self._shown_at = time.monotonic()
                self._within(self._set, {**state, "serial": self._serial})

    def _set(self, state: dict[str, Any]) -> None:
        assert self._model is not None
        self._model.state = without_controls(state)

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

    def form(self) -> dict[str, str]:
        """The static form by MIME type, in the place that the script looks for."""
        forms = {mime: escape_controls(form) for mime, form in self._static().items()}
        name = f"sparkstream-live sparkstream-live-{self.key}"
        return {**forms, "text/html": f'<div class="{name}">{forms["text/html"]}</div>'}
