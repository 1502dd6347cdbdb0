"""The plans of a deployment's nodes, and what their workers are told of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...plan.distributed.leader import Parts
from ...plan.leadership import as_follower
from ...plan.nodes import Plan
from ...plan.state_units import state_tokens
from ...runners.node_spec import NodeSpec
from ...runners.packed_tables import pack_tables
from .app_folder import AppRun
from .deployment import Deployment


def compile_nodes(nodes: Sequence[Mapping[str, str]], compiler: Callable[[Mapping[str, str]], Plan]) -> list[Plan]:
    """A plan for the properties of each node. Nodes with equal properties, except the shard id, are compiled once."""
    plans_by_properties: dict[tuple[tuple[str, str], ...], Plan] = {}
    plans = []
    for properties in nodes:
        key = tuple(sorted((k, v) for k, v in properties.items() if k != "shardId"))
        if key not in plans_by_properties:
            plans_by_properties[key] = compiler(properties)
        plans.append(replace(plans_by_properties[key], properties=properties))
    return plans


def node_specs(deployment: Deployment, plans: Sequence[Plan], app_run: AppRun) -> list[NodeSpec]:
    """All nodes that an app has had, by their numbers. `plans`: one for each present node; one that was removed still
    has to process events that were sent before."""
    parts = Parts(plans[0], deployment.led)
    by_shard = dict(zip(deployment.shard_ids, plans, strict=True))
    tables = pack_tables(deployment.connections.tables.items()) if deployment.connections.tables else b""
    tokens = state_tokens(plans[0], app_run.units) if app_run.units else None
    first = app_run.over[0] if app_run.leader is None else app_run.leader

    def plan_of(number: int, shard: str) -> Plan:
        part = parts.part_of(by_shard.get(shard, plans[0]), leads=number == app_run.leader)
        return part if number == first or deployment.groups is not None else as_follower(part)

    return [
        NodeSpec(
            i, s, pickle.dumps(plan_of(i, s)),
            scripts=deployment.request.allow_scripts, index=i, count=app_run.began, start=deployment.start,
            tables=tables, duty=parts.duty if i == app_run.leader else None, groups=deployment.groups,
            limits=deployment.limits, tokens=tokens,
        )
        for i, s in enumerate(app_run.shards)
    ]  # fmt: skip
