"""Running feeds in a notebook: a bar of plain HTML, which depends on no kernel and no widget.

The display is updated in its place. A notebook saves the last state: for a feed in the foreground nothing, as the bar
is taken away and the report is the cell's; for one in the background its report.
"""

from __future__ import annotations

import time
from typing import Any

from IPython.display import DisplayHandle, display

from ..app import Feed, FeedProgress
from . import display as looks
from .drawings.bars import bar_html

UPDATE_SECONDS = 0.25


class _ChangingOutput:
    """An output of a cell that changes in its place."""

    def __init__(self) -> None:
        self.handle: DisplayHandle | None = None

    def _show(self, data: dict[str, Any]) -> None:
        if self.handle is None:
            # Empty at first: comparisons of a notebook's outputs (nbval) use the first output, not its updates.
            self.handle = display({}, raw=True, display_id=True)
        if self.handle is not None:
            _update(self.handle, data)

    def close(self) -> None:
        """Leaves an empty output, in the notebook and in its saved form."""
        if self.handle is not None:
            _update(self.handle, {})


class FeedBar(_ChangingOutput):
    """The bar of a feed that a cell waits for. It appears with the first report of progress; `close` takes it away."""

    last_update = 0.0

    def __call__(self, progress: FeedProgress) -> None:
        now = time.monotonic()
        if self.handle is None or now - self.last_update >= UPDATE_SECONDS:
            self._show({"text/html": bar_html(progress)})
            self.last_update = now


class StatusLine(_ChangingOutput):
    """A line of a cell's output that changes in its place; `close` takes it away."""

    def __call__(self, text: str) -> None:
        self._show({"text/plain": text})


def show_live(feed: Feed) -> None:
    """Displays a feed in the background: a bar that moves, and its report when it is over."""
    handle = display(looks.bundle(feed), raw=True, display_id=True)
    if handle is not None:
        feed.watch(lambda: _update(handle, looks.bundle(feed)))


def _update(handle: DisplayHandle, data: dict[str, Any]) -> None:
    handle.update(data, raw=True)
