"""`coordination:isLeader()` on nodes that are not the leader: false there. Elsewhere it is true, as on WSO2's servers
without a cluster (`IsLeaderStreamFunctionProcessor` of carbon-analytics)."""

from __future__ import annotations

from typing import Any

from ...types import Type
from .. import nodes as n
from ..query_parts import IS_LEADER
from .replace_parts import rebuild


def without_leadership(plan: n.Plan) -> n.Plan:
    """The plan of a node that is not the leader."""

    def change(part: Any) -> Any:
        is_call = isinstance(part, n.Call) and part.function == IS_LEADER
        return n.Const(Type.BOOL, False) if is_call else part

    return rebuild(plan, change)
