"""`sparkstream mcp`."""

from __future__ import annotations

from typing import Any

from ...errors import Misuse
from ..agents.agent_tools import AgentGrants

try:
    from ..agents.tool_server import serve
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("mcp"):
        raise
    raise Misuse("sparkstream mcp needs the package mcp: pip install 'sparkstream-nb[mcp]'") from None


def run(options: Any) -> int:
    """`sparkstream mcp`. Raises `Misuse` for a grant that is wrong."""
    grants = AgentGrants(
        tuple(options.allow or ()), tuple(options.allow_env or ()), options.allow_scripts, options.rows, options.seconds
    )
    grants.parse()
    serve(grants)
    return 0
