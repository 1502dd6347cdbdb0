"""`sparkstream at`."""

from __future__ import annotations

from typing import Any

from ...app import App
from ...lab.compared_shown import Comparison
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream at`."""

    def look(app: App) -> Comparison:
        moment = app.at(
            options.moment, event=options.event, output=options.output, nodes=options.nodes, routing=options.routing
        )
        return moment if options.query is None else moment[options.query]

    return compare_nodes(options, look)
