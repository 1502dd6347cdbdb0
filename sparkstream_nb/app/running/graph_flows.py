"""The events on the edges of a running app's graph."""

from __future__ import annotations

from ...plan.reports.app_graph import Graph
from ..results.graph_flow import EdgeCounter, EdgeReading, EventCounts, GraphFlow
from .runtime import AppRuntime


def flow_of(app: AppRuntime, graph: Graph) -> GraphFlow:
    """The events on the edges of `graph` as of the last committed micro-batch, and later ones."""

    counter = EdgeCounter(graph)

    def read() -> EdgeReading:
        progress = app.progress
        with progress.changed:
            return counter.read(EventCounts(app.inbox.position.events, progress.rows, progress.element_rows))

    return GraphFlow(app.name, read(), read, app.view_state)
