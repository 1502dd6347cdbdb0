"""Makes chance and the wall clock repeatable, so that texts of an app can be compared. No rule of all plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from ...types import Type
from .. import nodes as n
from .replace_parts import rebuild

_CLOCKS: Mapping[str, str] = {
    "time:currentDate": "yyyy-MM-dd", "time:currentTime": "HH:mm:ss", "time:currentTimestamp": "yyyy-MM-dd HH:mm:ss",
    "time:utcTimestamp": "yyyy-MM-dd HH:mm:ss",
}  # fmt: skip
"""Functions of the wall clock, each with the pattern of its text."""


def freeze_chance(plan: n.Plan) -> n.Plan:
    """The plan in which `UUID` and `math:rand` are hashes of their place in the text and of the event: its time and,
    where the query reads one stream, its attributes, else the attributes that the query selects. The wall clock is the
    app's clock. Scripts, and the wall clock of a time zone, stay as they are."""
    return rebuild(plan, lambda part: _freeze_query(part) if isinstance(part, n.Query) else part)


def _freeze_query(q: n.Query) -> n.Query:
    attributes: Iterable[n.Expr]
    if isinstance(q.input, n.StreamInput):
        attributes = [n.Ref(a.type, 0, i, a.name) for i, a in enumerate(q.input.source.schema)]
    else:
        attributes = (e for item in q.select.items for e in n.walk(item.expr) if isinstance(e, n.Ref))
    event = tuple(dict.fromkeys(attributes))
    items = tuple(_freeze(item, f"{q.name}.{item.name}", event) for item in q.select.items)
    return replace(
        q,
        input=_freeze(q.input, f"{q.name} input", event if isinstance(q.input, n.StreamInput) else ()),
        select=replace(_freeze(q.select, f"{q.name} select", ()), items=items),
        output=_freeze(q.output, f"{q.name} output", ()),
    )


def _freeze(part: Any, place: str, event: tuple[n.Expr, ...]) -> Any:
    numbers = count()

    def change(e: Any) -> Any:
        match e:
            case n.Call(function="UUID" | "math:rand"):
                return replace(e, args=(n.Const(Type.STRING, f"{place} {next(numbers)}"), *event))
            case n.Call(function=name, args=()) if name in _CLOCKS:
                return replace(e, function="time:dateFormat", args=(_CLOCK, n.Const(Type.STRING, _CLOCKS[name])))
            case n.Call(function="time:timestampInMilliseconds", args=()):
                return _CLOCK
        return e

    return rebuild(part, change)


_CLOCK = n.Call(Type.LONG, "currentTimeMillis", ())
