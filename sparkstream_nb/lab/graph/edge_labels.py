"""The texts on the edges of an app's graph: how many events went there, or go there each second."""

from __future__ import annotations

from collections.abc import Sequence

from ...app.results.text_answers import AppGraph
from ...plan.reports.app_graph import Graph

LONGEST_RATE = "999,999/s"
"""The widest text of a rate."""


def total_labels(graph: AppGraph) -> list[str] | None:
    """The label of each edge with the events that went there; None if there are none yet."""
    if graph.flow is None or not any(graph.flow.present.totals):
        return None
    return _labels(graph.graph, ["" if n is None else f"{n:,}" for n in graph.flow.present.totals])


def rate_labels(graph: Graph, rates: Sequence[float | None]) -> list[str]:
    """The label of each edge with the events that go there each second."""
    return _labels(graph, ["" if rate is None else rate_label(rate) for rate in rates])


def rate_label(per_second: float) -> str:
    """`1,200/s`; a decimal below 10, and millions from 1,000,000 on."""
    if per_second >= 999_999.5:
        return f"{per_second / 1e6:,.1f} M/s"
    return f"{per_second:,.0f}/s" if per_second >= 9.95 or not per_second else f"{per_second:.1f}/s"


def _labels(graph: Graph, counts: Sequence[str]) -> list[str]:
    return [" · ".join(filter(None, [e.label, c])) for e, c in zip(graph.edges, counts, strict=True)]
