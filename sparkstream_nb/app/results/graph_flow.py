"""Events on the edges of a running app's graph: their totals, and rates over the last seconds."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...plan.reports.app_graph import Graph, GraphNode

WINDOW = 5.0
"""Seconds over which a rate is measured."""

EdgeTotals = tuple[int | None, ...]
"""Events on each edge, in the order of the graph's edges; None where they are not counted."""


@dataclass(frozen=True)
class StreamCounts:
    """Events by stream: those that came in from outside, and those that queries and triggers wrote."""

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class GraphFlow:
    """The events on the edges of the graph of `app`: the present `totals`, and `read` for later ones; `state` as in
    `Followed`."""

    app: str
    totals: EdgeTotals
    read: Callable[[], EdgeTotals]
    state: Callable[[], str]


def edge_totals(graph: Graph, counts: StreamCounts) -> EdgeTotals:
    """The events on each edge. A reader of a stream gets all of its events. The events of a query are counted where it
    alone writes a stream. Of tables, named windows, fault streams and streams within partitions no events are counted.
    """
    streams = {node.id: node.label for node in graph.nodes if _is_counted(node)}
    sources = {node.id for node in graph.nodes if node.kind == "source"}
    writers = Counter(e.end for e in graph.edges if e.end in streams and e.start not in sources)

    def total(start: str, end: str, label: str) -> int | None:
        if start in streams:
            name = streams[start]
            return None if label == "on error" else counts.inputs.get(name, 0) + counts.outputs.get(name, 0)
        if end not in streams:
            return None
        if start in sources:
            return counts.inputs.get(streams[end], 0)
        return counts.outputs.get(streams[end], 0) if writers[end] == 1 else None

    return tuple(total(e.start, e.end, e.label) for e in graph.edges)


def _is_counted(node: GraphNode) -> bool:
    return node.kind in ("stream", "trigger", "topic") and node.inside is None


class FlowMeter:
    """Rates of edges over the last `WINDOW` seconds. `seconds` gives the time."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._samples: deque[tuple[float, EdgeTotals]] = deque()

    def add(self, totals: EdgeTotals) -> tuple[float | None, ...]:
        """The rates (events per second) up to these totals; None where nothing is counted, and at first."""
        now = self._seconds()
        while len(self._samples) > 1 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()
        self._samples.append((now, totals))
        start, totals_then = self._samples[0]
        if now <= start:
            return (None,) * len(totals)
        return tuple(
            None if a is None or b is None else max(0, b - a) / (now - start)
            for a, b in zip(totals_then, totals, strict=True)
        )
