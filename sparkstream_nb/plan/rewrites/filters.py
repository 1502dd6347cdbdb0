"""Removes filters that are always true."""

from __future__ import annotations

from dataclasses import replace

from ..nodes import Const, FilterStep, Plan, StreamInput
from .replace_parts import rebuild


def drop_true_filters(plan: Plan) -> Plan:
    """`plan` without filters whose condition is the constant true."""
    return rebuild(plan, _drop)


def _drop(part: object) -> object:
    if not isinstance(part, StreamInput) or not any(_always(s) for s in part.steps):
        return part
    return replace(part, steps=tuple(s for s in part.steps if not _always(s)))


def _always(step: object) -> bool:
    return isinstance(step, FilterStep) and isinstance(step.condition, Const) and step.condition.value is True
