"""The view of a stream's chart: a Plotly chart that follows the stream, with a bar to pause and export it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ...app.results.listeners import Followed
from ...app.results.stream_chart import MOST_DRAWN, Chart, ChartCursor
from ...charts.style import WIDTH
from .. import display
from ..chart_shown import headline, note
from .following import FollowingView
from .plots import PLOT_FILES, figure_json
from .view_scripts import read_script

KEPT = 10.0
"""Seconds after which the static form of a chart that grows all the time is updated."""
_NARROWEST = 200


class ChartView(FollowingView):
    """A chart of a stream, which follows it while the kernel lives; its picture is saved. `clock` gives seconds."""

    def __init__(self, chart: Chart, clock: Callable[[], float] = time.monotonic) -> None:
        script = read_script("plot.js", "chart.js")
        super().__init__(Followed(chart.app, chart.follow, chart.state), script, PLOT_FILES)
        self.chart, self._clock = chart, clock
        self.cursor = ChartCursor(chart)
        self.snapshot = self.cursor.advance()
        self._kept_at = clock()
        self._width = WIDTH

    def read(self) -> None:
        self.snapshot = self.cursor.advance()

    def resize(self, width: int) -> None:
        self.cursor.columns = self._width = max(_NARROWEST, width)

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
        """The figure, and the points as bytes of float64; texts are put into the page as texts, none of them is HTML.

        A line has no more points than can be seen."""
        s = self.snapshot
        return {
            "name": f"{s.app}.{s.stream}",
            "head": headline(s),
            "note": note(s),
            "paused": s.counts.paused is not None,
            "zoomed": s.zoomed,
            "figure": figure_json(s.picture(MOST_DRAWN), self._width),
            "overTime": s.over_time,
            "xTitle": s.x_title,
            "series": [
                {"label": one.label, "x": one.points.x.tobytes(), "y": one.points.y.tobytes()} for one in s.series
            ],
        }

    def static(self) -> dict[str, str]:
        return display.bundle(self.snapshot)
