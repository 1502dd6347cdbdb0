"""Deployment files of a fully distributed deployment: managers, resource nodes, receivers, their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import Misuse
from ...messaging import Messaging
from ...simulation.resources import MANAGEMENT, ResourceCluster, ResourceNode
from ...simulation.topology import Coordination
from .conf import DISTRIBUTED, NodeFile
from .conf_lines import wrong_key
from .conf_pair import at_keys

_SERVER = ("deployment.config", "httpsInterface")
_MANAGERS = ("deployment.config", "resourceManagers")
_MANAGER_FIGURES = {
    ("cluster.config", "strategyConfig", "heartbeatInterval"): MANAGEMENT.heartbeat,
    ("cluster.config", "strategyConfig", "heartbeatMaxRetry"): MANAGEMENT.retries,
    ("cluster.config", "strategyConfig", "eventPollingInterval"): MANAGEMENT.poll,
    ("deployment.config", "heartbeatInterval"): 2_000,
    ("deployment.config", "heartbeatMaxRetry"): 2,
    ("deployment.config", "minResourceCount"): 1,
}
_GROUP = ("cluster.config", "groupId")
_NATS = ("deployment.config", "natsServerUrl")
_RECEIVER = ("deployment.config", "isReceiverNode")
_RETRY = ("deployment.config", "leaderRetryInterval")
_PERSIST = ("state.persistence", "intervalInMin")


def is_manager(file: NodeFile) -> bool:
    """True if it is a manager's: it names no managers to go to."""
    return file.kind == DISTRIBUTED and at_keys(file.sections, _MANAGERS) is None


def resources_of(files: Sequence[NodeFile], nodes: int | None = None) -> ResourceCluster:
    """The managers and resource nodes that deployment files describe; missing figures are the servers' defaults. With
    files of managers alone, `nodes` is the number of resource nodes (by default two, or as many as the managers want),
    and there is a receiver. Raises `Misuse`, with file and line, for figures that are impossible or that nodes do not
    share, and for an address that two nodes listen at.
    """
    managers = [f for f in files if is_manager(f)]
    workers = [f for f in files if not is_manager(f)]
    if not managers:
        raise Misuse(f"a fully distributed deployment has a manager, and {_list_files(files)} of resource nodes")
    _check_addresses(files)
    _check_group(managers)
    figures = [_require_same(managers, keys, default) for keys, default in _MANAGER_FIGURES.items()]
    messaging = messaging_of(managers)
    names, coordination = tuple(f.shard_id for f in managers), Coordination(*figures[:3])
    beat, retries, minimum = figures[3:]
    if not workers:
        count = max(2, minimum) if nodes is None else nodes
        plain = [ResourceNode(f"worker-{i + 1}") for i in range(count)]
        workers_with_receiver = (ResourceNode("receiver-1", receiver=True), *plain)
        return ResourceCluster(
            workers_with_receiver, names, coordination, heartbeat=beat, retries=retries, minimum=minimum,
            messaging=messaging,
        )  # fmt: skip
    return ResourceCluster(
        tuple(ResourceNode(f.shard_id, at_keys(f.sections, _RECEIVER) is True) for f in workers),
        names,
        coordination,
        heartbeat=beat,
        retries=retries,
        minimum=minimum,
        retry=_require_same(workers, _RETRY, 10_000),
        persist=_persist(workers),
        messaging=messaging,
    )


def messaging_of(managers: Sequence[NodeFile]) -> Messaging:
    """The messaging layer of managers: NATS if they have `natsServerUrl`, else Kafka. Raises `Misuse`, with file and
    line, if only some have it."""
    with_nats = [f for f in managers if at_keys(f.sections, _NATS) is not None]
    for file in managers:
        if with_nats and file not in with_nats:
            message = f"is missing, and {with_nats[0].path} has it: managers share a messaging layer"
            raise wrong_key(file, _NATS, message)
    return Messaging.NATS if with_nats else Messaging.KAFKA


def _list_files(files: Sequence[NodeFile]) -> str:
    names = ", ".join(f.path.name for f in files)
    return f"{names} {'is' if len(files) == 1 else 'are'}"


def _check_addresses(files: Sequence[NodeFile]) -> None:
    listeners: dict[tuple[str, int], NodeFile] = {}
    for file in files:
        server = at_keys(file.sections, _SERVER)
        if isinstance(server, Mapping) and isinstance(server.get("port"), int):
            other = listeners.setdefault((str(server.get("host")), server["port"]), file)
            if other is not file:
                what = f"is {server['port']}, at which the node of {other.path} listens"
                raise wrong_key(file, (*_SERVER, "port"), what)


def _check_group(managers: Sequence[NodeFile]) -> None:
    """Managers with different group ids would be clusters of their own."""
    first = at_keys(managers[0].sections, _GROUP)
    for file in managers[1:]:
        group = at_keys(file.sections, _GROUP)
        if group != first:
            where = managers[0].path
            raise wrong_key(file, _GROUP, f"is {group} here and {first} in {where}; managers share a group id")


def _persist(workers: Sequence[NodeFile]) -> int | None:
    """The interval at which nodes persist (ms; None: they do not)."""
    persistence_flags = [at_keys(f.sections, ("state.persistence", "enabled")) is True for f in workers]
    if len(set(persistence_flags)) > 1:
        file = workers[persistence_flags.index(not persistence_flags[0])]
        raise wrong_key(file, ("state.persistence", "enabled"), f"is not what it is in {workers[0].path}")
    return _require_same(workers, _PERSIST, 1) * 60_000 if persistence_flags[0] else None


def _require_same(files: Sequence[NodeFile], keys: tuple[str, ...], default: int) -> int:
    """A figure that nodes have to agree on."""
    values = [_figure(f, keys, default) for f in files]
    for file, value in zip(files, values, strict=True):
        if value != values[0]:
            raise wrong_key(file, keys, f"is {value} here and {values[0]} in {files[0].path}; the nodes have to agree")
    return values[0]


def _figure(file: NodeFile, keys: tuple[str, ...], default: int) -> int:
    value: Any = at_keys(file.sections, keys)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong_key(file, keys, f"is a whole number above 0, not {value!r}")
    return value
