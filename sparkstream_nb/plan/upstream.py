"""The part of a plan that some of its outputs depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from . import nodes as n


def upstream_of(plan: n.Plan, streams: Iterable[str]) -> n.Plan:
    """The plan without the queries and aggregations that nothing in these streams comes from. All of it where a fault
    stream is read, as any query may fill that."""
    wanted_ids = set(streams)
    size = 0
    while size < len(wanted_ids):
        size = len(wanted_ids)
        for element in plan.elements:
            if _writes(element, wanted_ids):
                wanted_ids.update(_ids(element))
        for id, definition in plan.aggregations.items():
            if id in wanted_ids:
                wanted_ids.update(_ids(definition))
    if any(id.startswith("!") for id in wanted_ids):
        return plan
    return replace(
        plan,
        elements=tuple(e for e in plan.elements if _writes(e, wanted_ids)),
        aggregations={id: d for id, d in plan.aggregations.items() if id in wanted_ids},
    )


def _writes(element: n.Query | n.Partition, ids: set[str]) -> bool:
    queries = element.queries if isinstance(element, n.Partition) else (element,)
    return any(q.output.target.id in ids for q in queries)


def _ids(node: Any) -> Iterator[str]:
    """The ids of streams, tables, windows and aggregations that a part of a plan names."""
    if isinstance(node, n.Source):
        yield node.id
    elif isinstance(node, tuple):
        for part in node:
            yield from _ids(part)
    elif is_dataclass(node) and not isinstance(node, type):
        if isinstance(node, n.InTable):
            yield node.table
        for f in fields(node):
            yield from _ids(getattr(node, f.name))
