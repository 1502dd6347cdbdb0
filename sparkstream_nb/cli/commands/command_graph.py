"""`sparkstream graph`."""

from __future__ import annotations

from typing import Any

from ...lab.graph.graph_drawing import text
from ...plan.reports.app_graph import graph_of
from ..printed_plans import print_plans


def run(options: Any) -> int:
    """`sparkstream graph`."""
    return print_plans(options, lambda plan: text(graph_of(plan)))
