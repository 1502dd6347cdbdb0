"""Conditions on how much a query or table holds: "partial matches > 1000"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...errors import Misuse, nearest, shown
from ...plan import nodes
from ...plan.nodes import Plan
from ...plan.query_parts import sources, stream_states

_CONDITION = re.compile(r"\s*(partial matches|events|rows)\s*(>=?)\s*(\d[\d_,]*)\s*", re.IGNORECASE)
_FORM = "'partial matches > 1000', 'events >= 500' or 'rows > 10'"


@dataclass(frozen=True)
class RowCondition:
    """A query's events or partial matches, or a table's rows, are `least` or more. An event adds `most_new` at most
    (None: any number)."""

    name: str
    what: str
    least: int
    most_new: int | None

    @staticmethod
    def of(plan: Plan, name: Any, condition: Any) -> RowCondition:
        """A condition as users write it. Raises `Misuse`."""
        match = _CONDITION.fullmatch(condition) if isinstance(condition, str) else None
        if match is None:
            raise Misuse(f"a condition is {_FORM}, not {shown(condition)}")
        what, sign, number = match[1].lower(), match[2], int(re.sub("[_,]", "", match[3]))
        query = next((q for q in plan.queries if q.name == name), None)
        content = _kept_by(plan, name, query)
        if content is None:
            names = [*(q.name for q in plan.queries if _kept_by(plan, q.name, q)), *plan.tables]
            message = f"there is no query with a window or pattern, and no table, '{name}'"
            raise Misuse(nearest(message, str(name), names))
        if what != content:
            raise Misuse(f"{name} keeps {content}: write '{content} {sign} {match[3]}'")
        return RowCondition(name, what, number + (sign == ">"), None if query is None else _most_new(plan, query))

    def __str__(self) -> str:
        return f"{self.name}: {self.what} >= {self.least:,}"


def _kept_by(plan: Plan, name: Any, query: nodes.Query | None) -> str | None:
    if query is None:
        return "rows" if name in plan.tables and not plan.tables[name].is_stored else None
    if isinstance(query.input, nodes.StateInput):
        return "partial matches"
    sides = (query.input,) if isinstance(query.input, nodes.StreamInput) else (query.input.left, query.input.right)
    has_window = any(isinstance(step, nodes.WindowStep) for side in sides for step in side.steps)
    return "events" if has_window else None


def _most_new(plan: Plan, query: nodes.Query) -> int | None:
    """The rows that an event from outside adds at most; None where other queries or an inner `every` may multiply
    them."""
    if any(source.id not in plan.input_streams for source in sources(query)):
        return None
    if isinstance(query.input, nodes.StateInput):
        state = query.input.state
        first = state.first if isinstance(state, nodes.NextState) else state
        inner = first.state if isinstance(first, nodes.EveryState) else first
        rest = state.then if isinstance(state, nodes.NextState) else None
        if any(isinstance(s, nodes.EveryState) for part in (inner, rest) for s in _states(part)):
            return None
        return len(list(stream_states(state)))
    return len(sources(query))


def _states(state: Any) -> list[Any]:
    """A state with all below it."""
    below = [getattr(state, name, None) for name in ("first", "then", "state", "left", "right")]
    return [] if state is None else [state, *(s for part in below for s in _states(part))]
