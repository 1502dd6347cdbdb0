"""Adding nodes to a deployment, and removing them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...errors import Misuse
from ...plan import compile_app
from ...plan.nodes import Plan
from ...plan.shard_safety.safety import without
from ..config.conf import NodeFile
from ..connectors.stores import databases_of, tables_of
from .deployment import Deployment, check_count, shards_of
from .node_plans import compile_nodes


def wanted_ids(
    now: Sequence[str], former_ids: Collection[str], nodes: int | None, shard_ids: Sequence[str] | None
) -> tuple[str, ...]:
    """The shard ids after scaling from those that are there `now`: `shard_ids`, or as many as `nodes`.

    The last ones go first. New ones count on from all `former_ids`: after `node-2` comes `node-3`. Raises `Misuse` if
    neither or both are given, or they name a shard twice.
    """
    if (nodes is None) == (shard_ids is None):
        raise Misuse("scale takes a number of nodes, or their shard ids")
    if shard_ids is not None:
        check_count(len(shard_ids))
        return shards_of(shard_ids, len(shard_ids))
    assert nodes is not None
    check_count(nodes)
    out, used_ids = list(now[:nodes]), {*former_ids, *now}
    while len(out) < nodes:
        new = _next(now[-1], used_ids)
        out.append(new)
        used_ids.add(new)
    return tuple(out)


def _next(last: str, used_ids: Collection[str]) -> str:
    """An id that was never used, numbered as `last` is."""
    match = re.fullmatch(r"(.*?)(\d+)", last)
    stem = match[1] if match else f"{last}-"
    numbers = [int(s[len(stem) :]) for s in used_ids if s.startswith(stem) and s[len(stem) :].isdecimal()]
    return f"{stem}{max(numbers, default=1) + 1}"


def scale_deployment(
    deployment: Deployment, plans: Sequence[Plan], shard_ids: Sequence[str], files: Sequence[NodeFile] = ()
) -> tuple[Deployment, list[Plan]]:
    """The deployment with the nodes of `shard_ids`, and a plan for each. `files` are theirs, if they have any; a new
    node without a file has the properties of the first node.

    Raises SiddhiBindError if a new node's `@store` means another database.
    """
    had = dict(zip(deployment.shard_ids, plans, strict=True))
    file_properties = {f.shard_id: f.properties for f in files}
    new = [s for s in shard_ids if s not in had]
    text, variables, off = plans[0].text, deployment.connections.references.variables, deployment.switched_off
    properties = [{**plans[0].properties, **file_properties.get(s, {}), "shardId": s} for s in new]
    new_plans = compile_nodes(properties, lambda p: without(compile_app(text, properties=p, variables=variables), off))
    by_shard = {**had, **dict(zip(new, new_plans, strict=True))}
    out = [by_shard[s] for s in shard_ids]
    if files:
        now = deployment.connections
        permissions = files, now.references, now.grants
        if databases_of(out, *permissions) != now.databases or tables_of(out, *permissions) != now.tables:
            raise Misuse("the deployment files name another database than the running nodes use")
    return replace(deployment, shard_ids=tuple(shard_ids)), out
