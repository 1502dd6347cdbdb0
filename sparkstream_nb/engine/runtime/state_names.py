"""Names of the parts of a node's state, by which a snapshot is restored if the plan has changed since.

A part is the state of an operator, of a table, or of the instances of a partition. Its name has the token of the unit
that it belongs to (`plan.state_units`): parts of one name have state of one form and one beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .operators import AggregationOperator, EntryOperator, Operator, QueryOperator, WindowOperator
from .triggers import TriggerOperator

if TYPE_CHECKING:
    from .assembly import Assembly

NOT_CARRIED: Final = object()
"""The state of an operator that starts empty."""


def state_names(operators: Sequence[Operator], parts: Assembly, tokens: Mapping[str, str]) -> dict[str, Any]:
    """The names of the operators' states in their order, and the names of tables and partitions by id."""
    return {
        "operators": [_name(op, tokens) for op in operators],
        "tables": {t: f"table {tokens[f'table {t}']}" for t in parts.tables},
        "instances": {p: f"instances {tokens[f'partition {p}']}" for p in parts.instances},
    }


def _name(op: Operator, tokens: Mapping[str, str]) -> str:
    match op:
        case QueryOperator():
            return f"query {tokens[f'query {op.name}']}"
        case WindowOperator():
            return f"window {tokens[f'window {op.name}']}"
        case TriggerOperator():
            return f"trigger {tokens[f'trigger {op.name}']}"
        case AggregationOperator():
            suffix = " in memory" if op.aggregation.keep else ""
            return f"aggregation {tokens[f'aggregation {op.name}']}{suffix}"
        case EntryOperator():
            return f"entry {tokens[f'partition {op.entry.name}']} {op.entry.stream}"
    return f"{type(op).__name__} {op.name}"


def carry_over(state: dict[str, Any], names: Mapping[str, Any]) -> list[int]:
    """Move the parts of a snapshot's `state` to the places of their `names`, and drop the others; returns the operators
    that start empty.

    Equal parts of equal names, as of two equal queries, are taken in their order.
    """
    saved_names = state["tokens"]
    began = state.get("began", {})
    places: dict[str, list[int]] = {}
    for i, name in enumerate(saved_names["operators"]):
        places.setdefault(name, []).append(i)
    operators, later, fresh = [], {}, []
    for i, name in enumerate(names["operators"]):
        candidates = places.get(name)
        if not candidates:
            operators.append(NOT_CARRIED)
            fresh.append(i)
            continue
        place = candidates.pop(0)
        operators.append(state["operators"][place])
        if place in began:
            later[i] = began[place]
    state["operators"], state["began"] = operators, later
    for kind in ("tables", "instances"):
        by_name = {name: state[kind][id] for id, name in saved_names[kind].items()}
        state[kind] = {id: by_name[name] for id, name in names[kind].items() if name in by_name}
    return fresh
