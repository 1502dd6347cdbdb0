"""Options of `sparkstream mcp`."""

from __future__ import annotations

from ...option_values import positive
from ...options import Options, add


def add_mcp(c: Options) -> None:
    """Options of `sparkstream mcp`."""
    add(c, "--allow", "--allow-env", "--allow-scripts")
    c.add_argument(
        "--rows", type=positive, default=10_000, metavar="N", help="rows of the feed of a call (default: 10,000)"
    )
    c.add_argument("--seconds", type=positive, default=120, metavar="N", help="how long a call takes (default: 120)")
