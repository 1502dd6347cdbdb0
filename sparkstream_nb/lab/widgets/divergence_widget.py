"""The view of a divergence: the time line of alerts, with controls for the query, the nodes, the routing and time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...app.pictures.timeline_picture import Timeline, TimelineMark, full_timeline, timeline_picture, worst
from ...app.results.divergence import Divergence, Match
from ...app.running.study import candidates
from ...errors import SparkStreamError
from ..display import bundle
from ..drawings.text_tables import Grid
from ..results_shown import divergence_html
from .live import LiveOutput
from .moment_controls import MomentControls
from .plots import PLOT_FILES, figure_json
from .view_scripts import read_script

_PINNED = 12


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
        script = read_script("plot.js", "moment_controls.js", "divergence_widget.js")
        self._output = LiveOutput(self._forms, script, self._handle_message, PLOT_FILES)

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def timeline(self) -> Timeline:
        """The choices of the time line."""
        timeline = full_timeline(self.divergence, self.choice.stream, self._width)
        c = self.choice
        return timeline if c.start is None or c.end is None else replace(timeline, start=c.start, end=c.end)

    def _forms(self) -> dict[str, str]:
        with self._lock:
            forms = bundle(self.divergence)
            return {**forms, "text/html": divergence_html(self.divergence, replace(self.timeline(), width=900))}

    # ------------------------------------------------------------------------------------------- the interactive form

    def _handle_message(self, message: Mapping[str, Any]) -> None:
        """Handle an action in the page. Runs in the thread in which Jupyter handles messages."""
        do = message["do"]
        if do == "gone":
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
        if do not in ("here", "moment"):
            self._output.keep()

    def _draw(self) -> None:
        with self._lock:
            self._output.show(self._state())

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
            "figure": figure_json(timeline_picture(t, pinned_mark=c.pinned), self._width),
            "cause": self._cause(t),
            "failed": self._failure,
            "moment": None if self._moment is None else self._moment.state(),
        }

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
