"""Views that follow the commits of an app while a page shows them: the common base of views of clusters, figures and
tails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...app.results.listeners import Followed, OnCommit
from ...app.results.selection_criteria import Criteria
from ...errors import Misuse, SparkStreamError
from .selection_link import SelectionLink

if TYPE_CHECKING:
    from .live import LiveOutput

INTERVAL = 0.34
"""Seconds between two drawings, at least: about three in a second."""


class CommitFollower:
    """Calls `draw` after commits, from a thread of its own, at most every `interval` seconds, and `rest` when no
    commit came for a while. The thread ends then. Call the follower itself after each commit: it returns at once."""

    def __init__(self, draw: Callable[[], None], rest: Callable[[], None], interval: float) -> None:
        self._draw, self._rest, self._interval = draw, rest, interval
        self._commit_event = threading.Event()
        self._lock = threading.Lock()
        self._runs = False

    def __call__(self) -> None:
        with self._lock:
            self._commit_event.set()
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._follow, name="follow-commits", daemon=True).start()

    def _follow(self) -> None:
        try:
            while self._waits():
                self._commit_event.clear()
                self._draw()
                time.sleep(self._interval)
            self._rest()
        except BaseException:
            with self._lock:
                self._runs = False
            raise

    def _waits(self) -> bool:
        """True if another commit came within a second."""
        if self._commit_event.wait(1.0):
            return True
        with self._lock:
            self._runs = self._commit_event.is_set()
            return self._runs


class Following:
    """Draws a view again after commits, as long as a page shows it. A subclass sets `_output`, and `_draw` draws it,
    with `lock` held. `interval`: seconds between two drawings, at least."""

    _output: LiveOutput | None = None
    """None without an output, or if it is not a widget."""

    def __init__(self, target: Followed, interval: float) -> None:
        self.lock = threading.RLock()
        self.target, self._interval = target, interval
        self.link = SelectionLink(target.selection, self.redraw_selection)
        self._leave: Callable[[], None] | None = None
        self._is_behind = False

    @property
    def is_closed(self) -> bool:
        """True if the app is closed: its data can no longer be read."""
        return self.target.state() == "closed"

    def status_note(self) -> str:
        """A note on an app that does not continue; empty if it does."""
        app = self.target.app
        match self.target.state():
            case "stopped":
                return f"{app} is stopped: these are its last values. An event or a query starts it again."
            case "closed":
                return f"{app} is stopped or was deployed again: these are the last values shown. Run the cell again."
        return ""

    def _draw(self) -> None:
        raise NotImplementedError

    def _draw_on(self) -> None:
        """Draw the commits since the last drawing."""
        self._draw()

    def _start_following(self) -> None:
        with self.lock:
            if self._leave is None:
                follower = CommitFollower(self._follow, self._rest, self._interval)
                self._leave = self.target.follow(lambda batches: follower())

    def _handle_message(self, message: Mapping[str, Any]) -> None:
        """Handle an action in the page. Runs in the thread in which Jupyter handles messages."""
        do = str(message["do"])
        if self.link.handle(message):
            return
        if do == "gone":
            self._stop_following()
            return
        if do == "select":
            self._select(message)
            return
        if do == "here":
            with self.lock:
                self.resize(int(message.get("width", 0)))
            self._start_following()
        self._handle_action(do, message)

    def _select(self, message: Mapping[str, Any]) -> None:
        try:
            with self.lock:
                criteria = self.criteria_of(message)
        except SparkStreamError as e:
            self.show_failure(" ".join(str(e).split()))
        else:
            self.link.choose(criteria)

    def criteria_of(self, message: Mapping[str, Any]) -> Criteria:
        """The selection that a person made in the page. Raises `Misuse` where nothing can be selected. Called with
        `lock` held."""
        raise Misuse("nothing can be selected here")

    def show_failure(self, text: str) -> None:
        """Draw the view with a message."""
        raise NotImplementedError

    def redraw_selection(self) -> None:
        """Draw the view after the selection of its app changed."""
        with self.lock:
            self._draw()

    def resize(self, width: int) -> None:
        """Take the width (px) of the output in the page. Called with `lock` held."""

    def _handle_action(self, do: str, message: Mapping[str, Any]) -> None:
        """Draw what the page asks for; `do` is "here" when it shows the output, or when its width changed."""
        raise NotImplementedError

    def _stop_following(self) -> None:
        with self.lock:
            if self._leave is not None:
                self._leave()
                self._leave = None

    def _follow(self) -> None:
        """Draw the last commits, unless the page cannot keep up."""
        with self.lock:
            self._is_behind = self._output is not None and self._output.lags
            if self._leave is not None and not self._is_behind:
                self._draw_on()

    def _rest(self) -> None:
        """Draws the last commits where that was put off, and keeps the static form of them."""
        with self.lock:
            if self._leave is not None and self._is_behind:
                self._draw_on()
        if self._output is not None:
            self._output.keep()


class FollowingView(Following):
    """An output that is drawn again after commits by `script`, as `LiveOutput` takes it. Thread-safe: what the subclass
    defines is called with `lock` held."""

    _output: LiveOutput

    def __init__(
        self, target: Followed, script: str, files: Mapping[str, Callable[[], bytes]] | None = None
    ) -> None:
        """`files` as in `LiveOutput`."""
        from .live import LiveOutput  # takes a second to load

        super().__init__(target, INTERVAL)
        self.failure = ""
        self._output = LiveOutput(self._forms, script, self._handle_message, files)

    def read(self) -> None:
        """Read the data to draw. Raises SparkStreamError if it cannot be read."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """The data that was read, as the script draws it."""
        raise NotImplementedError

    def static(self) -> dict[str, str]:
        """The data that was read in its static form, by MIME type."""
        raise NotImplementedError

    def act(self, message: Mapping[str, Any]) -> None:
        """Carry out a user's request from the page."""

    @property
    def output(self) -> LiveOutput:
        """The output, to be drawn elsewhere than in a cell."""
        return self._output

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def _forms(self) -> dict[str, str]:
        with self.lock:
            return self.static()

    def _handle_action(self, do: str, message: Mapping[str, Any]) -> None:
        with self.lock:
            if do != "here":
                self.act(message)
            self._draw()
        if do != "here":
            self._output.keep()

    def _draw(self) -> None:
        try:
            if not self.is_closed:
                self.read()
            self.failure = ""
        except SparkStreamError as e:
            self.failure = " ".join(str(e).split())
        self._show()

    def show_failure(self, text: str) -> None:
        with self.lock:
            self.failure = text
            self._show()

    def _show(self) -> None:
        notes = {"failed": self.failure, "standing": self.status_note()}
        self._output.show({**self.state(), **notes, **self.link.state()})


def every(seconds: float) -> Callable[[OnCommit], Callable[[], None]]:
    """A function for `Followed.follow` that calls back from a thread each time `seconds` have passed."""

    def follow(callback: OnCommit) -> Callable[[], None]:
        end_event = threading.Event()

        def run() -> None:
            count = 0
            while not end_event.wait(seconds):
                count += 1
                callback(count)

        threading.Thread(target=run, name="sparkstream-view", daemon=True).start()
        return end_event.set

    return follow
