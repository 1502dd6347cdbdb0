"""The view of a divergence: the time line of alerts, with controls for the query, the nodes, the routing and time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...app.pictures.timeline_picture import Timeline, TimelineMark, full_timeline, timeline_picture, with_ring, worst
from ...app.results.divergence import Divergence, Match
from ...app.results.selection_criteria import AlertRows, Criteria, EventRow, SharedSelection
from ...app.running.study import candidates
from ...charts.focus import with_focus
from ...charts.picture import Picture
from ...errors import SparkStreamError
from ..display import bundle
from ..drawings.text_tables import Grid
from ..results_shown import divergence_html
from .live import LiveOutput
from .moment_controls import MomentControls
from .plots import PLOT_FILES, figure_json
from .selection_link import SelectionLink, lanes_between
from .view_scripts import read_script

_PINNED = 12
MOST_ALERTS = 1_000
"""Outputs of one mark that are selected at most."""


@dataclass(frozen=True)
class TimelineChoice:
    """The choices of a time line: the outputs to `stream` of `nodes` nodes under `routing` (None: unchanged), from
    `start` to `end` (ms by the app's clock; None: all), and the number of the mark that is `pinned`."""

    stream: str
    nodes: int
    routing: str | None = None
    start: int | None = None
    end: int | None = None
    pinned: int | None = None


class DivergenceView:
    """A divergence as a time line that is interactive while the kernel lives; its picture is saved."""

    def __init__(self, divergence: Divergence) -> None:
        """`divergence` has outputs to some stream; the one that lost most is shown first."""
        self.recorded_divergence = self.divergence = divergence
        plan = divergence.truth.nodes.plan
        self.routings = candidates(plan)
        self.choice = TimelineChoice(worst(divergence), divergence.nodes, divergence.way.route)
        self._lock = threading.RLock()
        self._width = 900
        self._failure = ""
        self._moment: MomentControls | None = None
        self._picture: tuple[Timeline, Picture] | None = None
        self.link = SelectionLink(divergence.selection or SharedSelection(), self._redraw_selection)
        script = read_script("plot.js", "moment_controls.js", "divergence_widget.js")
        self._output = LiveOutput(self._forms, script, self._handle_message, PLOT_FILES)

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def timeline(self) -> Timeline:
        """The choices of the time line."""
        timeline = full_timeline(self.divergence, self.choice.stream, self._width)
        c = self.choice
        if c.start is not None and c.end is not None:
            timeline = replace(timeline, start=c.start, end=c.end)
        return replace(timeline, keys=self.link.criteria.keys)

    def _forms(self) -> dict[str, str]:
        with self._lock:
            forms = bundle(self.divergence)
            return {**forms, "text/html": divergence_html(self.divergence, replace(self.timeline(), width=900))}

    # ------------------------------------------------------------------------------------------- the interactive form

    def _handle_message(self, message: Mapping[str, Any]) -> None:
        """Handle an action in the page. Runs in the thread in which Jupyter handles messages."""
        do = message["do"]
        if self.link.handle(message) or do == "gone":
            return
        if do == "select":
            with self._lock:
                criteria = self._criteria_of(message)
            self.link.choose(criteria)
            return
        with self._lock:
            self._failure = ""
            try:
                self._choose(do, message)
            except SparkStreamError as e:
                self._failure = str(e)
            if self.choice.pinned is None:
                self._moment = None
            self._output.show(self._state())
            criteria = self._pinned_criteria()
        if do in ("pin", "query", "route", "recorded", "zoom", "all"):
            self.link.choose(criteria)
        if do not in ("here", "moment"):
            self._output.keep()

    def _criteria_of(self, message: Mapping[str, Any]) -> Criteria:
        """The time and the nodes that a person drew a rectangle around."""
        t = self.timeline()
        picture = timeline_picture(t, has_titles=False)
        lanes = lanes_between(picture, self._width, float(message["low"]), float(message["high"]))
        nodes = frozenset(lanes) & frozenset(self.divergence.shards)
        start, end = round(float(message["start"])), round(float(message["end"]))
        return replace(self.link.criteria, start=start, end=end, nodes=nodes, alerts=None)

    def _pinned_criteria(self) -> Criteria:
        """The selection with the outputs of the pinned mark, and without another mark's."""
        criteria, marks, d = self.link.criteria, self.timeline().marks, self.divergence
        if self.choice.pinned is None or self.choice.pinned >= len(marks):
            return replace(criteria, alerts=None)
        stream, matches = self.choice.stream, marks[self.choice.pinned].first_matches(MOST_ALERTS)
        outputs = [EventRow(stream, m.found.ts, m.found.values) for m in matches if m.found is not None]
        origins = [origin for m in matches for origin in d.events_behind(m.alert)]
        events = [EventRow(origin.stream, origin.timestamp, origin.values) for origin in origins]
        return replace(criteria, alerts=AlertRows(stream, len(matches), outputs, events))

    def _draw(self) -> None:
        with self._lock:
            self._output.show(self._state())

    def _redraw_selection(self) -> None:
        with self._lock:
            if self.link.criteria.alerts is None:
                self.choice, self._moment = replace(self.choice, pinned=None), None
            self._draw()

    def _choose(self, do: str, message: Mapping[str, Any]) -> None:
        c = self.choice
        match do:
            case "here":
                self._width = max(320, int(message["width"]))
                if self._moment is not None:
                    self._moment.handle(message)
            case "query":
                self.choice = replace(c, stream=str(message["stream"]), start=None, end=None, pinned=None)
            case "route":
                routing = message.get("routing", c.routing or self.routings[0])
                self.choice = replace(c, nodes=int(message.get("nodes", c.nodes)), routing=routing, pinned=None)
                self.divergence = self.recorded_divergence.rerouted(self.choice.nodes, routing)
                self._settle()
            case "recorded":
                self.divergence = self.recorded_divergence
                nodes, routing = self.recorded_divergence.nodes, self.recorded_divergence.way.route
                self.choice = replace(c, nodes=nodes, routing=routing, pinned=None)
                self._settle()
            case "zoom":
                start, end = round(float(message["start"])), round(float(message["end"]))
                self.choice = replace(c, start=start, end=max(end, start + 1), pinned=None)
            case "all":
                self.choice = replace(c, start=None, end=None, pinned=None)
            case "pin":
                number = int(message["mark"])
                self.choice = replace(c, pinned=None if number == c.pinned else number)
                self._open_moment()
            case "moment" if self._moment is not None:
                self._moment.handle(message["message"])

    def _open_moment(self) -> None:
        """Shows the moment that brought the first output of the pinned mark, on the node of its lane."""
        self._moment = None
        marks = self.timeline().marks
        if self.choice.pinned is None or self.choice.pinned >= len(marks) or not self.divergence.has_moments:
            return
        mark = marks[self.choice.pinned]
        first = mark.matches[0]
        moment = self.divergence.moment_of(self.choice.stream, first, on_one_node=mark.lane == 0)
        self._moment = MomentControls(moment, self._draw, mark.alert(first).query)
        self._moment.handle({"do": "here", "width": self._width})

    def _settle(self) -> None:
        """Shows another stream where the one chosen has no outputs now."""
        if self.choice.stream not in self.divergence.matches and self.divergence.matches:
            self.choice = replace(self.choice, stream=worst(self.divergence))

    def _state(self) -> dict[str, Any]:
        c, d = self.choice, self.divergence
        t = self.timeline()
        routing = c.routing or "as it was"
        routings = list(dict.fromkeys([routing, *self.routings]))
        return {
            "queries": [[s, d.queries[s] if d.queries[s] else s] for s in d.matches],
            "stream": c.stream,
            "nodes": c.nodes,
            "routing": routing,
            "routings": routings,
            "changed": d is not self.recorded_divergence,
            "zoomed": c.start is not None,
            "figure": figure_json(self._figure(t), self._width),
            **self.link.state(),
            "cause": self._cause(t),
            "failed": self._failure,
            "moment": None if self._moment is None else self._moment.state(),
        }

    def _figure(self, t: Timeline) -> Picture:
        """The picture with the selection; the texts of its marks take a while, and stay while the time line does."""
        if self._picture is None or self._picture[0] != t:
            self._picture = t, timeline_picture(t)
        picture = with_ring(self._picture[1], self.choice.pinned)
        criteria = self.link.criteria
        return with_focus(picture, replace(criteria, alerts=None).focus(["truth"] if criteria.nodes else []))

    def _cause(self, t: Timeline) -> str:
        """The outputs of the pinned mark, and for a single one the events that it was computed from."""
        if self.choice.pinned is None or self.choice.pinned >= len(t.marks):
            return ""
        mark = t.marks[self.choice.pinned]
        events = self._events(mark.matches[0]) if len(mark.matches) == 1 else None
        return self._alerts(t, mark).html() + (events.html() if events is not None else "")

    def _alerts(self, t: Timeline, mark: TimelineMark) -> Grid:
        rows = []
        for m in mark.matches[:_PINNED]:
            alert = mark.alert(m)
            node = "truth" if alert.node is None else self.divergence.shards[alert.node]
            cause = "" if m.verdict == "same" else str(self.divergence.cause(m))
            rows.append([m.verdict, alert.clock, node, *alert.values, cause])
        return Grid(
            ["verdict", "timestamp", "node", *t.names, "cause"], rows, total=len(mark.matches), what="output"
        )  # fmt: skip

    def _events(self, m: Match) -> Grid | None:
        cause = self.divergence.cause(m)
        if not cause.events:
            return None
        rows = [[e.stream, e.timestamp, e.node, str(list(e.values))] for e in cause.events]
        return Grid(["made of", "timestamp", "node", "values"], rows, total=max(cause.held, len(rows)), what="event")
