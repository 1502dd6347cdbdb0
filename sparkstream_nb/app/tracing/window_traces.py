"""Traces of windows: the contents after each step, read from the window's state, become the stays of its events."""

from __future__ import annotations

from ...engine.columnar.rows import CURRENT, RESET
from ...engine.windows.watched_window import WatchedWindow
from ...plan.reports.show_input import show_window
from ..results.traces import Stay, TracedEvent, TracedOutput, TracedStep, TracedWindow, WindowTrace
from .trace_feed import TraceFeed
from .traced_node import Moment, TracedNode


class _WindowRecorder:
    """Records one window: its events, and when each was emitted and left."""

    def __init__(self, window: WatchedWindow, node: TracedNode) -> None:
        self.window, self._node = window, node
        self.events: list[TracedEvent] = []
        self.emission_times: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.held_numbers: set[int] = set()
        self.steps: list[TracedStep] = []
        self.resets: list[int] = []
        self._inside: list[int] = []

    @property
    def is_empty(self) -> bool:
        return not self._inside

    def record(self, moment: Moment) -> None:
        """Reads the window after a step."""
        time = moment.time
        arrivals, rows = self.window.take(self._node.engine.services.strings)
        for e in arrivals:
            values = dict(zip(self.window.names, e.values, strict=True))
            key = self._node.key_of(e.instance)
            self.events.append(TracedEvent(e.number, self.window.stream, time, e.timestamp, values, key))
        for number, kind in rows:
            if kind == CURRENT:
                self.emission_times.setdefault(number, time)
            elif kind == RESET and time not in self.resets[-1:]:
                self.resets.append(time)
        contents = [number for number, _ in self.window.contents()]
        present = set(contents)
        self.held_numbers |= present
        for number in (*self._inside, *(e.number for e in arrivals)):
            if number not in present:
                self.left.setdefault(number, time)
        self._inside = contents
        self.steps.append(TracedStep(time, moment.timer, tuple(sorted(contents))))

    def finish(self) -> TracedWindow:
        """The window over the whole feed."""
        text = show_window(self.window.step)
        stays = [
            Stay(e, self.emission_times.get(e.number), self.left.get(e.number), e.number in self.held_numbers)
            for e in self.events
        ]
        return TracedWindow(self.window.stream, text, stays, self.steps, self.resets)


def trace_windows(node: TracedNode, query: str, feed: TraceFeed) -> WindowTrace:
    """Runs the feed and records the watched windows."""
    recorders = [_WindowRecorder(w, node) for w in node.watching.windows]
    outputs: list[TracedOutput] = []
    end = feed.start

    def is_busy() -> bool:
        return not all(r.is_empty for r in recorders)

    for moment in node.moments(feed, is_busy):
        for recorder in recorders:
            recorder.record(moment)
        outputs += moment.outputs
        end = moment.time
    return WindowTrace(query, [r.finish() for r in recorders], outputs, feed.summarize(end))
