"""The events on the edges of a running app's graph."""

from __future__ import annotations

from ...plan.reports.app_graph import Graph
from ..results.graph_flow import EdgeTotals, GraphFlow, StreamCounts, edge_totals
from .runtime import AppRuntime


def flow_of(app: AppRuntime, graph: Graph) -> GraphFlow:
    """The events on the edges of `graph` as of the last committed micro-batch, and later ones."""

    def read() -> EdgeTotals:
        with app.progress.changed:
            counts = StreamCounts(dict(app.inbox.position.events), dict(app.progress.rows))
        return edge_totals(graph, counts)

    return GraphFlow(app.name, read(), read, app.view_state)
