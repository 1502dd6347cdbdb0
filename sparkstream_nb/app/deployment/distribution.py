"""The deployment of a fully distributed app: its partial apps, the nodes that run them, and the faults of these."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Misuse, shown
from ...nodes.distributed import Distributed, apps_of
from ...plan.distributed.distribute import distribute
from ...plan.distributed.placement import connected_streams
from ...plan.nodes import Plan
from ...simulation.resources import ResourceCluster, ResourceNode, ResourceScenario
from ..config.conf import DISTRIBUTED, NodeFile
from ..config.conf_distributed import is_manager, resources_of
from ..config.fault_schedule import planned_for_resources
from .grouping import Trial, refuse_stores


def resource_cluster(
    files: Sequence[NodeFile], cluster: ResourceCluster | None, nodes: int | None, ids: Sequence[str] | None
) -> ResourceCluster:
    """The managers and resource nodes: of deployment files, `cluster`, or `nodes` resource nodes with these `ids`.
    Raises `Misuse` for arguments that do not fit together."""
    _check_resources(files, cluster, nodes, ids)
    if files:
        return resources_of(files, nodes)
    if cluster is not None:
        return cluster
    names = ids if ids is not None else [f"worker-{i + 1}" for i in range(2 if nodes is None else nodes)]
    return ResourceCluster(tuple(ResourceNode(n) for n in names))


def _check_resources(
    files: Sequence[NodeFile], cluster: ResourceCluster | None, nodes: int | None, ids: Sequence[str] | None
) -> None:
    """Raises `Misuse` for arguments of `resource_cluster` that do not fit together."""
    if cluster is not None and not isinstance(cluster, ResourceCluster):
        raise Misuse(f"resources is a ResourceCluster, not {shown(cluster)}")
    has_cluster = cluster is not None or any(not is_manager(f) for f in files)
    for what, is_superfluous in (
        ("nodes", nodes is not None and has_cluster),
        ("shard_ids", ids is not None and (has_cluster or files)),
    ):
        if is_superfluous:
            source = "deployment files" if files else "resources"
            raise Misuse(f"the {source} say which nodes there are: leave {what} out")
    if files and cluster is not None:
        raise Misuse("the deployment files give the figures of the nodes: leave resources out")
    if not has_cluster and not files and ids is not None and nodes is not None and nodes != len(ids):
        raise Misuse(f"each node needs an id: there are {nodes} nodes, and {len(ids)} shard_ids")


def distributed_for(plan: Plan, name: str, cluster: ResourceCluster, trial: Trial) -> Distributed:
    """The partial apps of the app `name` on a cluster, and the faults of that. Raises SiddhiBindError for apps that the
    manager refuses, `Misuse` for apps that are impossible here.
    """
    in_memory = connected_streams(plan, types=("inMemory",))
    for stream in (s for s in plan.streams if s in in_memory):
        raise Misuse(
            f"an inMemory source or sink is in one process, and stream '{stream}' has one: partial apps of a "
            "distributed app exchange events by streams. Leave it out"
        )
    refuse_stores(plan, DISTRIBUTED)
    split = distribute(plan, name, cluster.messaging)
    apps = apps_of(split)
    cluster, faults, rate = planned_for_resources(cluster, apps, trial.faults, trial.seed)
    return Distributed(split, ResourceScenario(cluster, apps, trial.seed, faults, rate))
