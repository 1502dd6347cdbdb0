"""Rewrite rules: plan → equivalent plan, each in a file of its own. They run once, in the order of `RULES`."""

from __future__ import annotations

from collections.abc import Callable

from ..nodes import Plan
from .constants import fold_constants
from .filters import drop_true_filters

RULES: tuple[Callable[[Plan], Plan], ...] = (fold_constants, drop_true_filters)


def rewrite(plan: Plan) -> Plan:
    """`plan` after all rules."""
    for rule in RULES:
        plan = rule(plan)
    return plan
