"""Changes nested parts of a plan. Plans are immutable, so the ancestors of a changed part are copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from .. import expression_nodes, nodes

T = TypeVar("T")
_MODULES_OF_PLANS = (nodes.__name__, expression_nodes.__name__)


def rebuild(part: T, change: Callable[[Any], Any]) -> T:
    """`part` with `change` applied to every plan node in it, bottom-up. Unchanged parts are reused."""
    return _part(part, change)  # type: ignore[no-any-return]


def _part(part: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(part, tuple):
        new_value = tuple(_part(p, change) for p in part)
        return new_value if any(a is not b for a, b in zip(new_value, part, strict=True)) else part
    if isinstance(part, Mapping):
        new_parts = {k: _part(v, change) for k, v in part.items()}
        return new_parts if any(new_parts[k] is not v for k, v in part.items()) else part
    if not is_dataclass(part) or type(part).__module__ not in _MODULES_OF_PLANS:
        return part
    updates = {}
    for f in fields(part):
        # Siddhi distinguishes a constant from an expression that evaluates to one.
        if isinstance(part, nodes.WindowStep) and f.name == "args":
            continue
        value = getattr(part, f.name)
        new_value = _part(value, change)
        if new_value is not value:
            updates[f.name] = new_value
    return change(replace(part, **updates) if updates else part)
