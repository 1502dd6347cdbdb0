"""The view of a running app's graph: each edge with the events that go there now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...app.results.graph_flow import FlowMeter, GraphFlow
from ...app.results.listeners import Followed
from ...app.results.text_answers import AppGraph
from .. import display
from ..drawings.pictures import dark_where_page_is, on_white
from ..graph.edge_labels import LONGEST_RATE, rate_labels
from ..graph.graph_drawing import svg
from .following import FollowingView, every
from .view_scripts import read_script

SECONDS = 1.0
"""Between two readings."""
_PICTURE = "graph"


class GraphView(FollowingView):
    """A graph whose edges have rates while the kernel lives; the totals are saved."""

    def __init__(self, graph: AppGraph, flow: GraphFlow) -> None:
        target = Followed(flow.app, every(SECONDS), flow.state)
        super().__init__(target, read_script("graph_widget.js"), {_PICTURE: self._picture})
        self.graph, self._flow = graph, flow
        self._meter = FlowMeter()
        self._saved_reading = self._reading = flow.present
        self._rates = self._meter.add(flow.present.counts)

    def read(self) -> None:
        self._reading = self._flow.read()
        self._rates = self._meter.add(self._reading.counts)

    def state(self) -> dict[str, Any]:
        """Texts by edge, which the script puts into the picture as texts."""
        return {"labels": rate_labels(self.graph.graph, self._rates), "flows": [bool(r) for r in self._rates]}

    def static(self) -> dict[str, str]:
        return display.bundle(replace(self.graph, flow=replace(self._flow, present=self._reading)))

    def _draw_on(self) -> None:
        """Draw, and keep the static form when no more events come: a notebook whose apps rest can be saved."""
        self._draw()
        if self._reading != self._saved_reading and not any(self._rates):
            self._saved_reading = self._reading
            self._output.keep()

    def _rest(self) -> None:
        """Nothing: commits are not followed."""

    def _picture(self) -> bytes:
        """The picture as HTML, with room for a rate on each edge that has one; every text is escaped."""
        widest = [LONGEST_RATE if count is not None else "" for count in self._flow.present.counts]
        labels = [" · ".join(filter(None, [e.label, w])) for e, w in zip(self.graph.graph.edges, widest, strict=True)]
        # A page may have the picture twice, and one of them hidden, whose arrows the other could not show.
        arrow = f"arrow-{self.output.key}"
        picture = svg(self.graph.graph, labels).replace('"arrow"', f'"{arrow}"', 1)
        picture = picture.replace("url(#arrow)", f"url(#{arrow})")
        return dark_where_page_is(on_white(picture)).encode()
