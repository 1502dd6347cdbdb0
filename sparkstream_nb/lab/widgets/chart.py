"""The view of a stream's chart: a Plotly chart that follows the stream, with a bar to pause and export it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...app.results.selection_criteria import Criteria
from ...app.results.stream_chart import MOST_DRAWN, Chart, ChartCursor, group_text
from ...charts.focus import Focus, with_focus
from ...charts.style import WIDTH
from ...errors import Misuse
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
        super().__init__(chart.target, script, PLOT_FILES)
        self.chart, self._clock = chart, clock
        self.cursor = ChartCursor(chart)
        self.snapshot = self.cursor.advance()
        self._kept_at = clock()
        self._width = WIDTH

    def read(self) -> None:
        self.snapshot = self.cursor.advance()

    def resize(self, width: int) -> None:
        self.cursor.columns = self._width = max(_NARROWEST, width)

    def criteria_of(self, message: Mapping[str, Any]) -> Criteria:
        criteria, shape = replace(self.link.criteria, alerts=None), self.chart.shape
        if "name" not in message:
            if shape.x is not None:
                raise Misuse(f"this chart is over {shape.x}: select a time in a chart over event time")
            return replace(criteria, start=round(float(message["start"])), end=round(float(message["end"])))
        series = next((s for s in self.snapshot.series if s.label == message["name"]), None)
        if series is None or shape.by is None:
            raise Misuse("the lines of this chart are attributes: nodes and values are selected in a chart with by")
        if shape.by == shape.node:
            return criteria.toggle_node(series.name.group)
        return criteria.toggle_key(shape.by, self.cursor.value_of(series.name.group))

    def _focus(self) -> Focus:
        """The part of the chart that is selected: a time, and the lines of nodes or values."""
        criteria, shape = self.link.criteria, self.chart.shape
        values = [group_text(v) for v in criteria.keys.get(shape.by or "", ())]
        groups = criteria.nodes if shape.by == shape.node else values
        focus = criteria.focus([s.label for s in self.snapshot.series if s.name.group in groups])
        return focus if shape.x is None else Focus(names=focus.names)

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
            "figure": figure_json(with_focus(s.picture(MOST_DRAWN), self._focus()), self._width),
            "namesSelect": s.shape.by is not None,
            "overTime": s.over_time,
            "xTitle": s.x_title,
            "series": [
                {"label": one.label, "x": one.points.x.tobytes(), "y": one.points.y.tobytes()} for one in s.series
            ],
        }

    def static(self) -> dict[str, str]:
        return display.bundle(self.snapshot)
