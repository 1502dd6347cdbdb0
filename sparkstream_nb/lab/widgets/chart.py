"""The view of a stream's chart: a Plotly chart that follows the stream, with a bar to pause and export it."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ...app.results.listeners import Followed
from ...app.results.stream_chart import Chart, ChartCursor
from .. import display
from ..chart_shown import headline, note
from .following import FollowingView

KEPT = 10.0
"""Seconds after which the static form of a chart that grows all the time is updated."""
_NARROWEST = 200


@cache
def read_plotly() -> bytes:
    """Plotly's script, compressed with gzip. Raises ImportError where Plotly is not installed."""
    from plotly.offline import get_plotlyjs

    return gzip.compress(get_plotlyjs().encode())


class ChartView(FollowingView):
    """A chart of a stream, which follows it while the kernel lives; its picture is saved. `clock` gives seconds."""

    def __init__(self, chart: Chart, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ImportError where Plotly is not installed."""
        read_plotly()
        super().__init__(Followed(chart.app, chart.follow, chart.state), "chart.js", {"plotly": read_plotly})
        self.chart, self._clock = chart, clock
        self.cursor = ChartCursor(chart)
        self.snapshot = self.cursor.advance()
        self._kept_at = clock()

    def read(self) -> None:
        self.snapshot = self.cursor.advance()

    def resize(self, width: int) -> None:
        self.cursor.columns = max(_NARROWEST, width)

    def act(self, message: Mapping[str, Any]) -> None:
        match message["do"]:
            case "pause":
                self.read()  # the events present when the button is pressed
                self.cursor.pause()
            case "resume":
                self.cursor.resume()
            case "zoom":
                self.cursor.zoom(float(message["start"]), float(message["end"]))
            case "all":
                self.cursor.show_all()

    def _follow(self) -> None:
        super()._follow()
        if self._clock() - self._kept_at >= KEPT:
            self._kept_at = self._clock()
            self._output.keep()

    def state(self) -> dict[str, Any]:
        """Numbers as bytes of float64, and texts, which the script puts into the page as texts; none of them is HTML.

        A line has no more points than can be seen."""
        s = self.snapshot
        return {
            "name": f"{s.app}.{s.stream}",
            "title": s.title,
            "head": headline(s),
            "note": note(s),
            "paused": s.counts.paused is not None,
            "zoomed": s.zoomed,
            "kind": s.shape.kind,
            "overTime": s.over_time,
            "xTitle": s.x_title,
            "yTitle": ", ".join(s.shape.y),
            "series": [
                {"label": one.label, "x": one.points.x.tobytes(), "y": one.points.y.tobytes()} for one in s.series
            ],
        }

    def static(self) -> dict[str, str]:
        return display.bundle(self.snapshot)
