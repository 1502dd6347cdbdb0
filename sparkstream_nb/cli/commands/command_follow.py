"""`sparkstream follow`."""

from __future__ import annotations

from typing import Any

from ...app import App, EventHistory, OutputOrigin
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream follow`."""

    def follow(app: App) -> EventHistory | OutputOrigin:
        return app.follow(options.event, output=options.output, nodes=options.nodes, routing=options.routing)

    return compare_nodes(options, follow)
