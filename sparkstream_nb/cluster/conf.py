"""Deployment files: a node's `deployment.yaml`, as operators of WSO2's servers have it.

What means something here becomes a `NodeFile`. Other keys are kept, and named in `unknown`; they are never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..errors import Misuse, SparkStreamError, nearest


@dataclass(frozen=True)
class DataSource:
    """A database under `wso2.datasources`. `password` is as written: mostly a reference such as `${sec:alias}`."""

    name: str
    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    pool: int = 5


@dataclass(frozen=True)
class NodeFile:
    """What a deployment file says of its node.

    `id`: that of `wso2.carbon`. `properties`: those of `siddhi`, and what `siddhi: refs` defines as `NAME.option`.
    `kind`: the type of `deployment.config` ("ha", "distributed"), empty where there is none. `unknown`: the keys that
    mean nothing here, as paths. `sections`: the file, as it is, for the sections of coordination.
    """

    path: Path
    id: str
    properties: Mapping[str, str]
    sources: Mapping[str, DataSource]
    kind: str = ""
    unknown: tuple[str, ...] = ()
    sections: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shard_id(self) -> str:
        """`siddhi: properties: shardId`, or the node's id."""
        return self.properties.get("shardId") or self.id


_STRATEGY = ("heartbeatInterval", "heartbeatMaxRetry", "eventPollingInterval")
_KNOWN = {
    "wso2.carbon": ("id", "name"),
    "siddhi": ("properties", "refs"),
    "wso2.datasources": ("dataSources",),
    "deployment.config": (
        "type",
        "eventByteBufferQueueCapacity",
        "httpsInterface",
        "heartbeatInterval",
        "heartbeatMaxRetry",
        "minResourceCount",
        "isReceiverNode",
        "leaderRetryInterval",
        "resourceManagers",
    ),
    "cluster.config": ("enabled", "groupId", "strategyConfig", *_STRATEGY),
    "auth.configs": ("type", "userManager"),
    "state.persistence": ("enabled", "intervalInMin", "revisionsToKeep"),
}


HA, DISTRIBUTED = "ha", "distributed"
"""The types of the deployment files of minimum HA, and of a fully distributed deployment."""


def node_files(conf: str | Path | Sequence[str | Path], kinds: Sequence[str] = ("",)) -> list[NodeFile]:
    """The nodes of a deployment: of a file, of files in order, or of the `.yaml` files of a folder by name.

    Raises `Misuse` where there are none, where two have one shard id, for a file that is not one of these, and where
    they are of another kind than `kinds`, or of several.
    """
    given = [Path(conf)] if isinstance(conf, str | Path) else [Path(p) for p in conf]
    paths: list[Path] = []
    for path in given:
        if path.is_dir():
            paths += sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml"))
        else:
            paths.append(path)
    if not paths:
        raise Misuse(f"there is no .yaml file in {', '.join(map(str, given)) or 'the list of deployment files'}")
    nodes = [read_node(path) for path in paths]
    first: dict[str, NodeFile] = {}
    for node in nodes:
        other = first.setdefault(node.shard_id, node)
        if other is not node:
            raise Misuse(
                f"{other.path} and {node.path} have one shard id, '{node.shard_id}'. Every node needs one of its own: "
                "siddhi: properties: shardId, or wso2.carbon: id"
            )
    for node in nodes:
        if node.kind not in kinds:
            kind = f"another kind of deployment ({_named(node.kind)}) than {_named(kinds[0])}"
            raise Misuse(f"{node.path} describes {kind}")
        if node.kind != nodes[0].kind and (HA not in kinds or DISTRIBUTED in (node.kind, nodes[0].kind)):
            raise Misuse(f"{node.path} is of kind {_named(node.kind)}, and {nodes[0].path} of {_named(nodes[0].kind)}")
    return nodes


def _named(kind: str) -> str:
    return {"": "active-active", HA: "minimum HA", DISTRIBUTED: "fully distributed"}.get(kind, kind)


def read_node(path: Path) -> NodeFile:
    """One deployment file. Raises `Misuse`, with file and line where they are known, for what cannot be read."""
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Misuse(f"there is no deployment file {path}") from None
    except (OSError, UnicodeDecodeError) as e:
        raise Misuse(f"{path} cannot be read: {e}") from None
    except yaml.MarkedYAMLError as e:
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark is not None else ""
        raise Misuse(f"{path}{line} is not YAML: {e.problem or e.context}") from None
    if not isinstance(loaded, dict):
        raise Misuse(f"{path} is not a deployment file: it has no sections such as wso2.carbon")
    return _node(path, loaded)


def _node(path: Path, loaded: Mapping[str, Any]) -> NodeFile:
    carbon = _section(path, loaded, "wso2.carbon")
    siddhi = _section(path, loaded, "siddhi")
    node_id = carbon.get("id")
    if node_id is None or not str(node_id).strip():
        raise Misuse(f"{path}: wso2.carbon: id is missing; it names the node")
    properties = {str(k): _text(v) for k, v in _section(path, siddhi, "properties", "siddhi").items()}
    if properties.get("partitionById", "false").lower() not in ("true", "false"):
        raise Misuse(f"{path}: siddhi: properties: partitionById is true or false, not '{properties['partitionById']}'")
    refs = siddhi.get("refs") or []
    for i, item in enumerate(refs if isinstance(refs, list) else []):
        ref = item.get("ref", item) if isinstance(item, dict) else {}
        name = ref.get("name") if isinstance(ref, dict) else None
        if not name:
            raise Misuse(f"{path}: entry {i + 1} of siddhi: refs has no name")
        if ref.get("type") is not None:
            properties[f"{name}.type"] = _text(ref["type"])
        properties |= {f"{name}.{k}": _text(v) for k, v in (ref.get("properties") or {}).items()}
    kind = str(_section(path, loaded, "deployment.config").get("type") or "")
    return NodeFile(path, str(node_id), properties, _sources(path, loaded), kind, tuple(_unknown(loaded)), loaded)


def _sources(path: Path, loaded: Mapping[str, Any]) -> dict[str, DataSource]:
    listed = _section(path, loaded, "wso2.datasources").get("dataSources") or []
    out: dict[str, DataSource] = {}
    for i, item in enumerate(listed if isinstance(listed, list) else []):
        name = item.get("name") if isinstance(item, dict) else None
        if not name:
            raise Misuse(f"{path}: entry {i + 1} of wso2.datasources: dataSources has no name")
        definition = item.get("definition") or {}
        options = definition.get("configuration") or {}
        if not options.get("jdbcUrl"):
            continue  # of another kind than databases
        pool = options.get("maxPoolSize", 5)
        if not isinstance(pool, int) or isinstance(pool, bool) or pool < 1:
            raise Misuse(f"{path}: maxPoolSize of {name} is a number above 0, not '{pool}'")
        user, password = options.get("username"), options.get("password")
        out[str(name)] = DataSource(
            str(name), str(options["jdbcUrl"]), None if user is None else str(user),
            None if password is None else str(password), pool,
        )  # fmt: skip
    return out


def data_source(node: NodeFile, name: str) -> DataSource:
    """A data source of a node by its name. Raises SparkStreamError where the file has none of this name."""
    found = node.sources.get(name)
    if found is None:
        raise SparkStreamError(nearest(f"{node.path} has no data source '{name}'", name, node.sources))
    return found


def _section(path: Path, loaded: Mapping[str, Any], name: str, within: str = "") -> Mapping[str, Any]:
    found = loaded.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Misuse(f"{path}: {f'{within}: ' if within else ''}{name} has no keys: it is '{found}'")
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown(loaded: Mapping[str, Any]) -> list[str]:
    out = []
    for name, section in loaded.items():
        known = _KNOWN.get(name)
        if known is None:
            out.append(str(name))
        elif isinstance(section, dict):
            out += [f"{name}: {key}" for key in section if key not in known]
            strategy = section.get("strategyConfig")
            if isinstance(strategy, dict) and name == "cluster.config":
                out += [f"{name}: strategyConfig: {key}" for key in strategy if key not in _STRATEGY]
    return out
