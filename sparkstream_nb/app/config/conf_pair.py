"""Deployment files of minimum HA's two nodes: coordination, persistence, queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import Misuse
from ...simulation.topology import Coordination, Pair
from .conf import HA, NodeFile
from .conf_lines import wrong_key


def pairs_of(files: Sequence[NodeFile]) -> list[Pair]:
    """The pairs that deployment files describe, one for each `groupId`, in the order of their first files. Files of a
    partitioning layer, which have no `deployment.config`, are left out. Raises `Misuse` as `pair_of`, and for a port
    that two nodes listen at."""
    by_group: dict[str, list[NodeFile]] = {}
    ports: dict[tuple[str, int], NodeFile] = {}
    for file in (f for f in files if f.kind == HA):
        by_group.setdefault(str(at_keys(file.sections, ("cluster.config", "groupId"))), []).append(file)
        server = at_keys(file.sections, ("deployment.config", "eventSyncServer"))
        if isinstance(server, Mapping) and isinstance(server.get("port"), int):
            other = ports.setdefault((str(server.get("host")), server["port"]), file)
            if other is not file:
                keys = ("deployment.config", "eventSyncServer", "port")
                raise wrong_key(file, keys, f"is {server['port']}, at which the node of {other.path} listens")
    return [pair_of(group_files) for group_files in by_group.values()]


def pair_of(files: Sequence[NodeFile]) -> Pair:
    """The pair that two deployment files describe; missing figures are the servers' defaults. Raises `Misuse`, with
    file and line, for figures that are impossible, or that the two do not share.
    """
    if len(files) != 2:
        group = at_keys(files[0].sections, ("cluster.config", "groupId"))
        has = f"the groupId '{group}' is in 1 file, {files[0].path}" if len(files) == 1 else f"{len(files)} were given"
        raise Misuse(f"minimum HA has two nodes, each with a deployment file, and {has}")
    pairs = [_one(f) for f in files]
    names = (files[0].shard_id, files[1].shard_id)
    for keys, at in _PLACES.items():
        values = [p[at] for p in pairs]
        if values[0] != values[1]:
            raise wrong_key(
                files[1], keys, f"is {values[1]} here and {values[0]} in {files[0].path}; the two nodes have to agree"
            )
    group, heartbeat, retries, poll, persist, revisions, queue = pairs[0]
    return Pair(names, str(group), Coordination(heartbeat, retries, poll), persist * 60_000, revisions, queue)


_PLACES = {
    ("cluster.config", "groupId"): 0,
    ("cluster.config", "strategyConfig", "heartbeatInterval"): 1,
    ("cluster.config", "strategyConfig", "heartbeatMaxRetry"): 2,
    ("cluster.config", "strategyConfig", "eventPollingInterval"): 3,
    ("state.persistence", "intervalInMin"): 4,
    ("state.persistence", "revisionsToKeep"): 5,
    ("deployment.config", "eventByteBufferQueueCapacity"): 6,
}


def _one(file: NodeFile) -> tuple[Any, int, int, int, int, int, int]:
    """The figures of a file, in the order of `_PLACES`."""
    if at_keys(file.sections, ("deployment.config", "type")) != "ha":
        raise Misuse(f"{file.path} is not of a node of minimum HA: deployment.config: type is ha there")
    for section in ("cluster.config", "state.persistence"):
        if at_keys(file.sections, (section, "enabled")) is not True:
            why = "nodes find each other through it" if section == "cluster.config" else "a node takes over from it"
            raise wrong_key(file, (section, "enabled"), f"is not true; {why}")
    defaults = Pair()
    d = defaults.coordination
    figures = [d.heartbeat, d.retries, d.poll, defaults.persist // 60_000, defaults.revisions, defaults.queue]
    group, *places = _PLACES
    for i, keys in enumerate(places):
        value = at_keys(file.sections, keys)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise wrong_key(file, keys, f"is a whole number above 0, not {value!r}")
        figures[i] = value
    name = at_keys(file.sections, group)
    return (defaults.group if name is None else name, *figures)  # type: ignore[return-value]


def at_keys(sections: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value at a path of keys. Keys of `strategyConfig` may be beside it, as in WSO2's examples."""
    value: Any = sections
    for key in keys:
        if key == "strategyConfig" and isinstance(value, Mapping) and key not in value:
            continue
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
