"""Deployment files: a node's `deployment.yaml`, as operators of WSO2's servers and of Siddhi Runner write it.

Known keys become a `NodeFile`. Other keys are kept, and named in `unknown`; they are never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import Misuse, SparkStreamError, nearest
from .conf_yaml import load_yaml
from .secrets import References


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
    """The settings of a node in its deployment file.

    `id`: from `wso2.carbon`. `properties`: from `siddhi`, and the options of `siddhi: refs` as `NAME.option`. `kind`:
    the type of `deployment.config` ("ha", "distributed"), empty without one. `unknown`: the keys that mean nothing
    here, as paths. `sections`: the file, as it is, for the sections of coordination.
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
_PERSISTENCE = ("enabled", "intervalInMin", "revisionsToKeep")
_KNOWN: Mapping[str, Sequence[str] | None] = {
    "wso2.carbon": ("id", "name"),
    "siddhi": ("properties", "refs"),
    "wso2.datasources": ("dataSources",),
    "cluster.config": ("enabled", "groupId", "strategyConfig", *_STRATEGY),
    "auth.configs": ("type", "userManager"),
    "state.persistence": _PERSISTENCE,
    "statePersistence": _PERSISTENCE,
    "dataSources": None,
    "refs": None,
    "properties": None,
}
"""The known sections, with their keys; None if all are known. The last four belong to Siddhi Runner."""
_RUNNER = ("statePersistence", "dataSources", "refs", "properties")
_DEPLOYMENT: Mapping[str, Sequence[str]] = {
    "": ("type",),
    "ha": ("type", "eventByteBufferQueueCapacity"),
    "distributed": (
        "type",
        "httpsInterface",
        "heartbeatInterval",
        "heartbeatMaxRetry",
        "minResourceCount",
        "isReceiverNode",
        "leaderRetryInterval",
        "resourceManagers",
        "natsServerUrl",
    ),
}
"""The keys of `deployment.config` that mean something, by its type."""


HA, DISTRIBUTED = "ha", "distributed"
"""The types of the deployment files of minimum HA, and of a fully distributed deployment."""


def node_files(
    conf: str | Path | Sequence[str | Path], kinds: Sequence[str] = ("",), references: References | None = None
) -> list[NodeFile]:
    """The nodes of a deployment: of a file, of files in order, or of the `.yaml` files of a folder by name. Ids of
    nodes and shards may be `${...}` of `references`.

    Raises `Misuse` if there are none, if two have one shard id, for a file that is not one of these, and if they are of
    another kind than `kinds`, or of several.
    """
    file_list = [Path(conf)] if isinstance(conf, str | Path) else [Path(p) for p in conf]
    paths: list[Path] = []
    for path in file_list:
        if path.is_dir():
            paths += sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml"))
        else:
            paths.append(path)
    if not paths:
        raise Misuse(f"there is no .yaml file in {', '.join(map(str, file_list)) or 'the list of deployment files'}")
    nodes = [read_node(path, references) for path in paths]
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
            kind = f"another kind of deployment ({_name_kind(node.kind)}) than {_name_kind(kinds[0])}"
            raise Misuse(f"{node.path} describes {kind}")
        if node.kind != nodes[0].kind and (HA not in kinds or DISTRIBUTED in (node.kind, nodes[0].kind)):
            kind, of_first = _name_kind(node.kind), _name_kind(nodes[0].kind)
            raise Misuse(f"{node.path} is of kind {kind}, and {nodes[0].path} of {of_first}")
    return nodes


def _name_kind(kind: str) -> str:
    return {"": "active-active", HA: "minimum HA", DISTRIBUTED: "fully distributed"}.get(kind, kind)


def read_node(path: Path, references: References | None = None) -> NodeFile:
    """One deployment file, whose ids may be `${...}` of `references`. Raises `Misuse`, with file and line where they
    are known, for a file that cannot be read.
    """
    document = load_yaml(path)
    if not isinstance(document, dict):
        raise Misuse(f"{path} is not a deployment file: it has no sections such as wso2.carbon")
    return _node(path, document, references or References())


def _node(path: Path, document: Mapping[str, Any], references: References) -> NodeFile:
    siddhi = _section(path, document, "siddhi")
    properties: dict[str, str] = {}
    for within, section in (("siddhi", siddhi), ("", document)):
        for key, value in _section(path, section, "properties", within).items():
            properties[str(key)] = _text(path, value, f"{_path(within, 'properties')}: {key}")
    shard = properties.get("shardId")
    if shard is not None:
        properties["shardId"] = references.resolve(shard, f"{path}: shardId")
    if properties.get("partitionById", "false").lower() not in ("true", "false"):
        raise Misuse(f"{path}: siddhi: properties: partitionById is true or false, not '{properties['partitionById']}'")
    for within, section in (("siddhi", siddhi), ("", document)):
        properties |= _refs(path, section, _path(within, "refs"))
    kind = _kind(path, document)
    sections = document
    if "statePersistence" in document and "state.persistence" not in document:
        sections = {**document, "state.persistence": _section(path, document, "statePersistence")}
    id_ = _id(path, document, properties.get("shardId"), references)
    return NodeFile(path, id_, properties, _sources(path, document), kind, tuple(_unknown(document, kind)), sections)


def _id(path: Path, document: Mapping[str, Any], shard: str | None, references: References) -> str:
    """The node's id; of a file of Siddhi Runner without one the shard's, or the file's name."""
    carbon = _section(path, document, "wso2.carbon")
    carbon_id = carbon.get("id")
    if carbon_id is None and not carbon and any(key in document for key in _RUNNER):
        return shard or path.stem
    if carbon_id is None or not str(carbon_id).strip():
        raise Misuse(f"{path}: wso2.carbon: id is missing; it names the node")
    return references.resolve(_text(path, carbon_id, "wso2.carbon: id"), f"{path}: wso2.carbon: id")


def _refs(path: Path, section: Mapping[str, Any], place: str) -> dict[str, str]:
    """Definitions in the `refs` of a section, as `NAME.option`."""
    properties: dict[str, str] = {}
    for i, item in enumerate(_list(path, section.get("refs"), place)):
        ref = item.get("ref", item) if isinstance(item, dict) else {}
        name = ref.get("name") if isinstance(ref, dict) else None
        if not name:
            raise Misuse(f"{path}: entry {i + 1} of {place} has no name")
        name = _text(path, name, f"name of entry {i + 1} of {place}")
        if ref.get("type") is not None:
            properties[f"{name}.type"] = _text(path, ref["type"], f"type of '{name}' in {place}")
        for key, value in _require_mapping(path, ref.get("properties"), f"properties of '{name}' in {place}").items():
            properties[f"{name}.{key}"] = _text(path, value, f"'{key}' of '{name}' in {place}")
    return properties


def _kind(path: Path, document: Mapping[str, Any]) -> str:
    kind = _section(path, document, "deployment.config").get("type")
    return "" if kind is None else _text(path, kind, "deployment.config: type")


def _sources(path: Path, document: Mapping[str, Any]) -> dict[str, DataSource]:
    out: dict[str, DataSource] = {}
    for within, section in (("wso2.datasources", _section(path, document, "wso2.datasources")), ("", document)):
        place = _path(within, "dataSources")
        for i, item in enumerate(_list(path, section.get("dataSources"), place)):
            name = item.get("name") if isinstance(item, dict) else None
            if not name:
                raise Misuse(f"{path}: entry {i + 1} of {place} has no name")
            name = _text(path, name, f"name of entry {i + 1} of {place}")
            source = _source(path, name, item.get("definition"))
            if source is not None:
                out[name] = source
    return out


def _source(path: Path, name: str, value: Any) -> DataSource | None:
    """A data source by its definition; None if it is of another kind than databases."""
    definition = _require_mapping(path, value, f"definition of {name}")
    options = _require_mapping(path, definition.get("configuration"), f"configuration of {name}")
    if not options.get("jdbcUrl"):
        return None
    pool = options.get("maxPoolSize", 5)
    if not isinstance(pool, int) or isinstance(pool, bool) or pool < 1:
        raise Misuse(f"{path}: maxPoolSize of {name} is a number above 0, not '{_short(pool)}'")
    url, user, password = (
        None if options.get(key) is None else _text(path, options[key], f"{key} of {name}")
        for key in ("jdbcUrl", "username", "password")
    )
    return DataSource(name, str(url), user, password, pool)


def data_source(node: NodeFile, name: str) -> DataSource:
    """A data source of a node by its name. Raises SparkStreamError if the file has none of this name."""
    source = node.sources.get(name)
    if source is None:
        raise SparkStreamError(nearest(f"{node.path} has no data source '{name}'", name, node.sources))
    return source


def _section(path: Path, document: Mapping[str, Any], name: str, within: str = "") -> Mapping[str, Any]:
    section = document.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise Misuse(f"{path}: {_path(within, name)} has no keys: it is '{_short(section)}'")
    return section


def _path(within: str, name: str) -> str:
    return f"{within}: {name}" if within else name


def _require_mapping(path: Path, value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Misuse(f"{path}: {what} has no keys: it is a {_kind_of(value)}")
    return value


def _list(path: Path, value: Any, what: str) -> Sequence[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Misuse(f"{path}: {what} is a list, not a {_kind_of(value)}")
    return value


def _text(path: Path, value: Any, what: str) -> str:
    """The text of a value, which may be a secret. Raises `Misuse` for a list or mapping."""
    if isinstance(value, dict | list | set | bytes):
        raise Misuse(f"{path}: {what} is a text or a number, not a {_kind_of(value)}")
    if value is None:
        return "None"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind_of(value: Any) -> str:
    return {dict: "mapping", list: "list", str: "text", bool: "bool", int: "number", float: "number"}.get(
        type(value), type(value).__name__
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_SHOWN = 60


def _unknown(document: Mapping[str, Any], kind: str) -> list[str]:
    out = []
    for name, section in document.items():
        known_keys = _DEPLOYMENT.get(kind, ()) if name == "deployment.config" else _KNOWN.get(name, ())
        if known_keys is None:
            continue
        if name not in _KNOWN and name != "deployment.config":
            out.append(str(name))
        elif isinstance(section, dict):
            out += [f"{name}: {key}" for key in section if key not in known_keys]
            strategy = section.get("strategyConfig")
            if isinstance(strategy, dict) and name == "cluster.config":
                out += [f"{name}: strategyConfig: {key}" for key in strategy if key not in _STRATEGY]
    return out
