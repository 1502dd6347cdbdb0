"""The front end of apps: their results in plain text, the progress of feeds, and pictures of aggregations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..cluster import Displayed, ProgressLine, frontend
from ..cluster.frontend import Fetch, ProgressDisplay, View
from ..plan.nodes import AggregationDef
from . import display


class Screen:
    """A notebook, a console of IPython's, or a plain one: what there is when something is shown."""

    def text(self, shown: Displayed) -> str:
        """A result, or an app, as plain text."""
        return display.text(shown)

    def progress(self) -> ProgressDisplay:
        """A bar in a notebook, a line elsewhere."""
        if getattr(shell(), "kernel", None) is None:
            return ProgressLine()
        from .progress import FeedBar

        return FeedBar()

    def view(
        self,
        aggregation: AggregationDef,
        fetch: Fetch,
        *,
        shards: Sequence[str],
        per: str | None,
        measure: str | None,
    ) -> View:
        """Draws an aggregation. Raises `Misuse` for a duration or a measure that it does not have."""
        from .widgets.aggregation import AggregationView  # plotly and ipywidgets take a second to load

        return AggregationView(aggregation, fetch, shards=shards, per=per, measure=measure)


def shell() -> Any:
    """The shell of IPython's that runs here; None where there is none."""
    if sys.modules.get("IPython") is None:
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()


def connect() -> None:
    """Makes apps and results of this process show themselves here. Again without effect."""
    frontend.connect(Screen())
    running = shell()
    if running is not None:
        display.register(running)
