"""`sparkstream divergence`."""

from __future__ import annotations

from typing import Any

from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream divergence`."""
    return compare_nodes(options, lambda app: app.divergence(nodes=options.nodes, routing=options.routing))
