"""`sparkstream divergence`."""

from __future__ import annotations

from typing import Any

from ...app import App
from ...lab.compared_shown import Comparison
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream divergence`."""

    def compare(app: App) -> Comparison:
        return app.divergence(nodes=options.nodes, routing=options.routing)

    return compare_nodes(options, {}, compare)
