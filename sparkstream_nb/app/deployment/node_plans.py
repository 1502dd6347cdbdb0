"""The plans of a deployment's nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...plan.nodes import Plan


def compile_nodes(nodes: Sequence[Mapping[str, str]], compiler: Callable[[Mapping[str, str]], Plan]) -> list[Plan]:
    """A plan for the properties of each node. Nodes with equal properties, except the shard id, are compiled once."""
    compiled: dict[tuple[tuple[str, str], ...], Plan] = {}
    plans = []
    for properties in nodes:
        key = tuple(sorted((k, v) for k, v in properties.items() if k != "shardId"))
        if key not in compiled:
            compiled[key] = compiler(properties)
        plans.append(replace(compiled[key], properties=properties))
    return plans
