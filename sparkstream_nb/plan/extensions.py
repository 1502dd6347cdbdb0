"""WSO2's extensions of Siddhi by name: `extensions.toml` as typed data.

Their names are known, so that the error for an extension that this build does not include differs from the error for a
misspelt name or option.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Kind = Literal["source", "sink", "source-mapping", "sink-mapping", "store", "script"]


@dataclass(frozen=True)
class Connector:
    """A type of sources, sinks, mappings, stores or scripts: its extension, and its options; none if
    they are not known.
    """

    extension: str
    options: frozenset[str]


@dataclass(frozen=True)
class Extensions:
    """`names`: by `namespace:name`, the extension that has the function, window or stream processor. `namespaces`: the
    extensions of a namespace. `connectors`: by kind and type."""

    names: Mapping[str, str]
    namespaces: Mapping[str, tuple[str, ...]]
    connectors: Mapping[Kind, Mapping[str, Connector]]


@cache
def extensions() -> Extensions:
    """The catalogue of the package."""
    document = tomllib.loads(resources.files(__package__).joinpath("extensions.toml").read_text("utf-8"))
    names: dict[str, str] = {}
    namespaces: dict[str, tuple[str, ...]] = {}
    connectors: dict[Kind, dict[str, Connector]] = {}
    for extension, tables in document.items():
        for kind, entries in tables.items():
            for key, words in entries.items():
                if kind != "names":
                    connectors.setdefault(kind, {})[key] = Connector(extension, frozenset(words.split()))
                    continue
                namespaces[key] = (*namespaces.get(key, ()), extension)
                names |= {f"{key}:{word}": extension for word in words.split()}
    return Extensions(names, namespaces, connectors)


def owner_of(key: str) -> str | None:
    """The extension of WSO2's that has a function, window or stream processor; of a namespace of which it has others,
    too; None for a name of none."""
    table = extensions()
    namespace = key.partition(":")[0] if ":" in key else ""
    if key in table.names:
        return table.names[key]
    return " or ".join(table.namespaces[namespace]) if namespace in table.namespaces else None


def types(kind: Kind) -> Mapping[str, Connector]:
    """The connectors of a kind, by type."""
    return extensions().connectors[kind]


def not_included(what: str, extension: str) -> str:
    """The message for something of an extension that this build does not have."""
    return f"{what} belongs to WSO2's extension {extension}, which is not included"
