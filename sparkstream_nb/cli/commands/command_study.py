"""`sparkstream study`."""

from __future__ import annotations

from typing import Any

from ...app import App
from ...lab.compared_shown import Comparison
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream study`."""

    def compare(app: App) -> Comparison:
        return app.study(nodes=options.nodes, routings=options.routing)

    return compare_nodes(options, {}, compare)
