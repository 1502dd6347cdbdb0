"""The front end of apps: their results in plain text, the progress of feeds, and pictures of aggregations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..app.results import frontend
from ..app.results.feed_progress import ProgressLine
from ..app.results.frontend import Displayed, ProgressDisplay, StatusDisplay, View
from . import display
from .ipython_shell import shell
from .panel.panel_comm import offer_panel

if TYPE_CHECKING:
    from ..app.results.buckets import AggregationReader


class Screen:
    """The screen on which something is shown: a notebook, a console of IPython's, or a plain one."""

    def notice(self, text: str) -> None:
        """A line in a notebook's output; elsewhere on standard error, apart from a command's output."""
        print(text, file=sys.stderr if getattr(shell(), "kernel", None) is None else sys.stdout, flush=True)

    def text(self, value: Displayed) -> str:
        """A result, or an app, as plain text."""
        return display.text(value)

    def html(self, value: Displayed) -> str:
        """A result, or an app, as HTML."""
        return display.html(value)

    def document(self) -> Path | None:
        """The notebook that runs here: VS Code names its file in a variable, Jupyter's server in the environment."""
        running = shell()
        if running is None:
            return None
        file = Path(str(running.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")))
        return file if file.suffix == ".ipynb" else None

    def progress(self) -> ProgressDisplay:
        """A bar in a notebook, a line elsewhere."""
        bars = _notebook_bars()
        return ProgressLine() if bars is None else bars.FeedBar()

    def status(self) -> StatusDisplay:
        """A line that changes in its place."""
        bars = _notebook_bars()
        return ProgressLine() if bars is None else bars.StatusLine()

    def view(self, aggregation: AggregationReader, *, per: str | None, measure: str | None) -> View:
        """Draws an aggregation. Raises `Misuse` for a duration or a measure that it does not have."""
        from .widgets.aggregation import AggregationView

        return AggregationView(aggregation, per=per, measure=measure)


def _notebook_bars() -> ModuleType | None:
    """The module of bars, which needs IPython; None outside notebooks."""
    if getattr(shell(), "kernel", None) is None:
        return None
    from . import progress_bar

    return progress_bar


def connect() -> None:
    """Makes apps and results of this process show themselves here. Again without effect."""
    frontend.connect(Screen())
    running = shell()
    if running is None:
        return
    running.display_formatter.mimebundle_formatter.for_type(Displayed, display.bundle)
    if getattr(running, "kernel", None) is not None:  # only a notebook can change its earlier output
        from .interactive import register_interactive

        register_interactive(running)
        offer_panel(running.kernel)
