"""`sparkstream study`."""

from __future__ import annotations

from typing import Any

from ..comparing import compare_nodes


def run(options: Any) -> int:
    """`sparkstream study`."""
    return compare_nodes(options, lambda app: app.study(nodes=options.nodes, routings=options.routing))
