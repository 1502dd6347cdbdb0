"""The interface between apps and a screen: the calls of an app to a front end, and the connected front end.

`lab` connects itself (`sparkstream_nb.lab.connect`). Without it, progress is a line on a terminal, results print as a
short summary, and `App.view` is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...errors import SparkStreamError
from .feed_progress import FeedProgress, ProgressLine

if TYPE_CHECKING:
    from ...charts.loading import Figure
    from .buckets import AggregationReader


class Displayed:
    """Base of everything that users look at: apps and their results. `repr()` is the front end's text of it."""

    def summary(self) -> str:
        """A description in one line, or in full if it is a text itself."""
        raise NotImplementedError

    def still(self) -> Displayed:
        """A copy with the present values, if it is something that changes."""
        return self

    def __repr__(self) -> str:
        return current().text(self)

    def _repr_html_(self) -> str | None:
        """The front end's HTML of it, for notebooks without IPython, such as marimo; None: it has none."""
        return current().html(self.still())


class ProgressDisplay(Protocol):
    """Shows how far a feed is. Called several times a second, and closed when the feed has ended."""

    def __call__(self, progress: FeedProgress) -> None: ...

    def close(self) -> None: ...


class StatusDisplay(Protocol):
    """A line that changes: how far something is. Closed when that is over."""

    def __call__(self, text: str, /) -> None: ...

    def close(self) -> None: ...


class View(Protocol):
    """An aggregation as a picture, by shard and merged."""

    def text(self) -> str:
        """The picture's numbers as a table in plain text."""
        ...

    def html(self) -> str:
        """The picture and its numbers as HTML."""
        ...

    def refresh(self) -> None:
        """Read the aggregation again, and draw its present values."""
        ...

    @property
    def figure(self) -> Figure:
        """The picture as a Plotly figure. Raises SparkStreamError where Plotly is not installed."""
        ...


class FrontEnd(Protocol):
    """The interface of a screen, as apps use it."""

    def notice(self, text: str) -> None:
        """Announce in one line a call that takes its time."""
        ...

    def text(self, value: Displayed) -> str:
        """A result, or an app, as plain text."""
        ...

    def html(self, value: Displayed) -> str | None:
        """A result, or an app, as HTML; None if only text is there."""
        ...

    def document(self) -> Path | None:
        """The notebook that runs here, where its file is known; an app without a name is called after it."""
        ...

    def progress(self) -> ProgressDisplay:
        """A display for one feed."""
        ...

    def status(self) -> StatusDisplay:
        """A line that changes."""
        ...

    def view(self, aggregation: AggregationReader, *, per: str | None, measure: str | None) -> View:
        """Draws an aggregation. Raises `Misuse` for a duration or a measure that it does not have."""
        ...


class _NoScreen:
    """The screen without a front end."""

    def notice(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def text(self, value: Displayed) -> str:
        return value.summary()

    def html(self, value: Displayed) -> str | None:
        return None

    def document(self) -> Path | None:
        return None

    def progress(self) -> ProgressDisplay:
        return ProgressLine()

    def status(self) -> StatusDisplay:
        return ProgressLine()

    def view(self, aggregation: AggregationReader, *, per: str | None, measure: str | None) -> View:
        raise SparkStreamError(
            f"There is no front end to draw {aggregation.definition.id}. Deploy by sparkstream_nb.deploy, or run "
            "%load_ext sparkstream_nb in a notebook."
        )


_current: FrontEnd = _NoScreen()


def connect(front_end: FrontEnd | None) -> None:
    """Makes apps and results show themselves by `front_end`; None: by none."""
    global _current
    _current = front_end or _NoScreen()


def current() -> FrontEnd:
    """The front end that is connected, or the plain one."""
    return _current
