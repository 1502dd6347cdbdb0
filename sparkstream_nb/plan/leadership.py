"""The leader among an app's nodes, which `coordination:isLeader()` asks for.

Without other nodes it is true, as on WSO2's servers without a cluster (`IsLeaderStreamFunctionProcessor` of
carbon-analytics).
"""

from __future__ import annotations

from dataclasses import replace

from .nodes import Plan

_LEADER = "coordination.leader"
"""The property of a node that is not the leader, with the value `false`."""


def as_follower(plan: Plan) -> Plan:
    """The plan of a node that is not the leader."""
    return replace(plan, properties={**plan.properties, _LEADER: "false"})


def leads(plan: Plan) -> bool:
    """False for the plan of a node that is not the leader."""
    return plan.properties.get(_LEADER) != "false"
