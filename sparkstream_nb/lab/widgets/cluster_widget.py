"""The view of a cluster: its map, buttons for the actions on each node, the time line and the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...app.pictures.lanes_picture import ROLE_COLOURS
from ...app.results.listeners import Followed
from ...app.views.cluster_view import ACTION_KINDS, Action, ClusterNode, ClusterSnapshot
from ...app.views.controls import LASTING, Cluster
from ...charts.style import WIDTH
from ...charts.value_texts import when
from ...errors import SparkStreamError
from ...simulation.faults import Fault
from .. import display
from ..cluster_shown import head_html, log_html, tables_html, timeline_svg
from ..drawings import cluster_map
from .following import Following
from .live import LiveOutput
from .view_scripts import read_script

STRETCHES = {"all": None, "last hour": 3_600_000, "last 10 min": 600_000, "last 2 min": 120_000}
"""Spans of the time line, in ms before the clock."""
STEPS = {"+1 s": 1_000, "+10 s": 10_000, "+1 min": 60_000}
"""Movements of the app's clock by a button (ms), for faults that wait after the last event."""
INTERVAL = 0.3
"""Seconds between two drawings, at least."""
_SAID = 4
"""Maximum number of lines under the buttons about the effects of a fault; the rest is in the log."""


class ClusterView(Following):
    """A cluster that is interactive while the kernel lives, and follows the commits; its picture, tables and text are
    saved.
    """

    _output: LiveOutput

    def __init__(self, cluster: Cluster) -> None:
        reader = cluster.reader
        super().__init__(Followed(reader.app, lambda call: self.cluster.reader.follow(call), reader.state), INTERVAL)
        self.cluster = cluster
        self.snapshot = cluster.snapshot()
        self.last_fault: Fault | None = None
        self.stretch = "all"
        self._width = WIDTH
        self._failure = ""
        script = read_script("cluster_widget.js")
        self._output = LiveOutput(self._forms, script, self._handle_message)

    def display(self) -> None:
        """Puts the view into the cell that runs."""
        self._output.display()

    def _forms(self) -> dict[str, str]:
        with self.lock:
            return display.bundle(self.snapshot)

    # ------------------------------------------------------------------------------------------- the interactive form

    def resize(self, width: int) -> None:
        self._width = max(320, width)

    def _handle_action(self, do: str, message: Mapping[str, Any]) -> None:
        with self.lock:
            self._failure = ""
            try:
                if do == "act":
                    self._act(message)
                elif do == "advance":
                    self.cluster.advance(STEPS[str(message["by"])])
                elif do == "stretch":
                    stretch = str(message["stretch"])
                    self.stretch = stretch if stretch in STRETCHES else "all"
            except SparkStreamError as e:
                self._failure = " ".join(str(e).split())
            self._draw()
        if do != "here":
            self._output.keep()

    def _act(self, message: Mapping[str, Any]) -> None:
        other = message.get("other")
        action = Action(str(message["kind"]), str(message["node"]), None if other is None else str(other))
        self.last_fault = self.cluster.act(action)

    def _draw(self) -> None:
        if not self.is_closed:
            self.snapshot = self.cluster.reader.read()
        self._output.show(self._state())

    def _state(self) -> dict[str, Any]:
        s = self.snapshot
        return {
            "head": head_html(s),
            "map": cluster_map.svg(s, self._width),
            "nodes": [_controls(n) for n in s.state.nodes],
            "said": "" if self.last_fault is None else describe_fault(s, self.last_fault),
            "failed": self._failure,
            "standing": self.status_note(),
            "steps": list(STEPS),
            "stretches": list(STRETCHES),
            "stretch": self.stretch,
            "timeline": timeline_svg(s, STRETCHES[self.stretch], self._width),
            "log": log_html(s, display.DISPLAY_LIMIT),
            "tables": tables_html(s),
        }


def describe_fault(snapshot: ClusterSnapshot, fault: Fault) -> str:
    """The outcome of a fault that was added by a button."""
    if snapshot.waits(fault):
        clock = "" if snapshot.state.clock is None else f", and the clock is at {when(snapshot.state.clock)}"
        return (
            f"{fault}: waits for the clock. It happens at {when(fault.at)}{clock}: the next event lets it "
            "happen, or a button that moves the clock."
        )
    consequences = snapshot.followed(fault)
    lines = [f"{_after(h.at - fault.at)} {h.text}" for h in consequences[:_SAID]]
    lines += [f"{len(consequences) - _SAID:,} more in the log"] if len(consequences) > _SAID else []
    return f"{fault} at {when(fault.at)}" + (f": {'; '.join(lines)}" if lines else "")


def _after(ms: int) -> str:
    return "at once" if ms < 100 else f"{ms / 1000:,.1f} s later"


def _controls(node: ClusterNode) -> dict[str, Any]:
    """A node with its buttons, as the page draws them."""
    return {
        "name": node.name,
        "role": f"{cluster_map.SIGNS[node.role]} {node.role.value}",
        "colour": ROLE_COLOURS[node.role],
        "actions": [
            {"kind": a.kind, "other": a.other, "label": _label(a), "title": _title(a), "refused": a.refused}
            for a in node.actions
            if a.kind in ACTION_KINDS
        ],
    }


def _label(action: Action) -> str:
    match action.kind:
        case "pause":
            return f"Pause {LASTING // 1000} s"
        case "cut":
            return str(action.other)
    return action.kind.capitalize()


def _title(action: Action) -> str:
    """The description of a button, for its tip and for screen readers."""
    node, seconds = action.node, LASTING // 1000
    match action.kind:
        case "kill":
            return f"Kill {node}: its process ends, and its memory is gone"
        case "restart":
            return f"Restart {node}"
        case "pause":
            return f"Pause {node} for {seconds} s: it does nothing, as in a long garbage collection"
    return f"Cut {node} off from {action.other} for {seconds} s"
