"""The examples under conf/: they load, say which node they are, and hold no secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CONF = Path(__file__).parents[1] / "conf"
FILES = sorted(CONF.glob("*/*.yaml"))
MODES = {"single": 1, "active-active": 2, "minimum-ha": 2, "scalable": 6, "distributed": 5}


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """(key, value) of everything that is neither a mapping nor a list."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield from leaves(v, k)
    elif isinstance(value, list):
        for v in value:
            yield from leaves(v, key)
    else:
        yield key, value


def load(file: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_each_mode_has_its_nodes() -> None:
    assert {mode: len(list((CONF / mode).glob("*.yaml"))) for mode in MODES} == MODES


@pytest.mark.parametrize("mode", MODES)
def test_ids_and_ports_are_unique_within_a_mode(mode: str) -> None:
    nodes = [load(file) for file in sorted((CONF / mode).glob("*.yaml"))]
    ids = [node["wso2.carbon"]["id"] for node in nodes]
    assert len(set(ids)) == len(ids)
    shards = [node["siddhi"]["properties"]["shardId"] for node in nodes if "properties" in node.get("siddhi", {})]
    assert len(set(shards)) == len(shards)
    own = [node.get("deployment.config", {}) for node in nodes]
    ports = [c[server]["port"] for c in own for server in ("eventSyncServer", "httpsInterface") if server in c]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_passwords_are_references_and_data_sources_exist(file: Path) -> None:
    node = load(file)
    defined = {source["name"] for source in node.get("wso2.datasources", {}).get("dataSources", [])}
    for key, value in leaves(node):
        if key == "password":
            assert value.startswith("${sec:"), f"a password in plain text: {value}"
        if key == "datasource":
            assert value in defined
