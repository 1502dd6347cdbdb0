"""Events on the edges of a running app's graph: their totals, and rates over the last seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...plan.reports.app_graph import Edge, Graph, GraphNode

if TYPE_CHECKING:  # `sparkstream check` draws graphs without the engine
    from ...engine.state.node_batch import ElementRows

WINDOW = 5.0
"""Seconds over which a rate is measured."""

EdgeTotals = tuple[int | None, ...]
"""Events on each edge, in the order of the graph's edges; None where they are not counted."""


@dataclass(frozen=True)
class EventCounts:
    """Events by stream since the app began: those that came in from outside (`inputs`), and those that queries and
    triggers wrote (`outputs`); and events that queries and named windows put out since this process deployed it."""

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    elements: ElementRows


@dataclass(frozen=True)
class EdgeReading:
    """The events on the edges: `totals` since the app began, and `counts` for rates, which begin at any number and know
    more edges."""

    totals: EdgeTotals
    counts: EdgeTotals


@dataclass(frozen=True)
class GraphFlow:
    """The events on the edges of the graph of `app`: the `present` ones, and `read` for later ones; `state` as in
    `Followed`."""

    app: str
    present: EdgeReading
    read: Callable[[], EdgeReading]
    state: Callable[[], str]


class EdgeCounter:
    """Counts the events on the edges of `graph`. A reader of a stream or window gets all of its events. Reads of tables
    and aggregations are not counted."""

    def __init__(self, graph: Graph) -> None:
        self._edges = graph.edges
        self._nodes = {node.id: node for node in graph.nodes}
        self._writers: dict[str, list[GraphNode]] = {}
        for edge in graph.edges:
            if (writer := self._nodes[edge.start]).kind != "source" and edge.label != "on error":
                self._writers.setdefault(edge.end, []).append(writer)

    def read(self, counts: EventCounts) -> EdgeReading:
        """The events on each edge."""
        totals = tuple(self._total(edge, counts) for edge in self._edges)
        elements = (self._elements(edge, counts.elements) for edge in self._edges)
        return EdgeReading(totals, tuple(e if t is None else t for t, e in zip(totals, elements, strict=True)))

    def _total(self, edge: Edge, counts: EventCounts) -> int | None:
        """Its events since the app began; None where only queries and windows are counted."""
        start, end = self._nodes[edge.start], self._nodes[edge.end]
        if edge.label == "on error":
            return counts.outputs.get(end.label, 0)
        if _is_stream(start):
            return counts.inputs.get(start.label, 0) + counts.outputs.get(start.label, 0)
        if not _is_stream(end):
            return None
        if start.kind == "source":
            return counts.inputs.get(end.label, 0)
        return counts.outputs.get(end.label, 0) if len(self._writers[end.id]) == 1 else None

    def _elements(self, edge: Edge, elements: ElementRows) -> int | None:
        """Its events that queries or a window put out."""
        start = self._nodes[edge.start]
        if start.kind == "query":
            return elements.queries[start.label]
        if start.kind == "window":
            return elements.windows[start.label]
        if start.kind == "stream":  # in a partition
            return sum(elements.queries[writer.label] for writer in self._writers.get(start.id, ()))
        return None


def _is_stream(node: GraphNode) -> bool:
    return node.kind in ("stream", "trigger", "topic", "fault stream") and node.inside is None


class FlowMeter:
    """Rates of edges over the last `WINDOW` seconds. `seconds` gives the time."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._samples: deque[tuple[float, EdgeTotals]] = deque()

    def add(self, counts: EdgeTotals) -> tuple[float | None, ...]:
        """The rates (events per second) up to these counts; None where nothing is counted, and at first."""
        now = self._seconds()
        while len(self._samples) > 1 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()
        self._samples.append((now, counts))
        start, counts_then = self._samples[0]
        if now <= start:
            return (None,) * len(counts)
        return tuple(
            None if a is None or b is None else max(0, b - a) / (now - start)
            for a, b in zip(counts_then, counts, strict=True)
        )
