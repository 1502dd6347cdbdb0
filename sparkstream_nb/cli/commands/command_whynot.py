"""`sparkstream whynot`."""

from __future__ import annotations

from typing import Any

from ...app import App, WhyNot
from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream whynot`."""

    def ask(app: App) -> WhyNot:
        return app.why_not(
            options.output, dict(options.values), at=options.at, events=options.event, nodes=options.nodes,
            routing=options.routing,
        )  # fmt: skip

    return compare_nodes(options, ask)
