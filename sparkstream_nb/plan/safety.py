from __future__ import annotations

from .nodes import Plan


def with_safety(plan: Plan) -> Plan:
    return plan
