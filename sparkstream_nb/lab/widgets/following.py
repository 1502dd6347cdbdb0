"""Views that follow the commits of an app while a page shows them: what those of clusters, figures and tails share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...cluster.listeners import OnCommit
from ...errors import SparkStreamError
from .live import Follower, LiveOutput

INTERVAL = 0.34
"""Seconds between two drawings, at least: about three in a second."""


class Following:
    """Draws a view again after commits, as long as a page shows it. A subclass sets `_output`, and `_draw` draws it,
    with `lock` held. `follow` calls back after commits, and returns what ends that; `interval`: seconds between two
    drawings, at least."""

    _output: LiveOutput

    def __init__(self, follow: Callable[[OnCommit], Callable[[], None]], interval: float) -> None:
        self.lock = threading.RLock()
        self._follow_commits, self._interval = follow, interval
        self._leave: Callable[[], None] | None = None
        self._behind = False

    def _draw(self) -> None:
        raise NotImplementedError

    def _start_following(self) -> None:
        with self.lock:
            if self._leave is None:
                follower = Follower(self._follow, self._rest, self._interval)
                self._leave = self._follow_commits(lambda batches: follower())

    def _stop_following(self) -> None:
        with self.lock:
            if self._leave is not None:
                self._leave()
                self._leave = None

    def _follow(self) -> None:
        """Draws what was committed, unless the page cannot keep up."""
        with self.lock:
            self._behind = self._output.lags
            if self._leave is not None and not self._behind:
                self._draw()

    def _rest(self) -> None:
        """Draws the last commits where that was put off, and keeps the static form of them."""
        with self.lock:
            if self._leave is not None and self._behind:
                self._draw()
        self._output.keep()


class FollowingView(Following):
    """An output that is drawn again after commits. `follow` is `App.on_commit`, `script` the name of a script beside
    this file. Thread-safe: what the subclass defines is called with `lock` held."""

    def __init__(self, follow: Callable[[OnCommit], Callable[[], None]], script: str) -> None:
        super().__init__(follow, INTERVAL)
        self.failed = ""
        text = Path(__file__).with_name(script).read_text(encoding="utf-8")
        self._output = LiveOutput(self._forms, text, self._received)

    def read(self) -> None:
        """Reads what is to be drawn. Raises SparkStreamError where that cannot be read."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """What was read, as the script draws it."""
        raise NotImplementedError

    def static(self) -> dict[str, str]:
        """What was read in its static form, by MIME type."""
        raise NotImplementedError

    def act(self, message: Mapping[str, Any]) -> None:
        """Does what a person asks for in the page."""

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def _forms(self) -> dict[str, str]:
        with self.lock:
            return self.static()

    def _received(self, message: Mapping[str, Any]) -> None:
        """What a person does in the page. Runs in whatever thread Jupyter handles messages."""
        do = message["do"]
        if do == "gone":
            self._stop_following()
            return
        if do == "here":
            self._start_following()
        else:
            with self.lock:
                self.act(message)
        with self.lock:
            self._draw()
        if do != "here":
            self._output.keep()

    def _draw(self) -> None:
        try:
            self.read()
            self.failed = ""
        except SparkStreamError as e:
            self.failed = " ".join(str(e).split())
        self._output.show({**self.state(), "failed": self.failed})
