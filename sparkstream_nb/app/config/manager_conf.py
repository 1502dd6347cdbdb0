"""The HTTP interface in a manager's deployment file: port, user name, password."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import Misuse
from ...messaging import Messaging
from .conf import DISTRIBUTED, NodeFile, read_node
from .conf_distributed import is_manager, messaging_of
from .conf_lines import line_of, wrong_key
from .secrets import References

_SECTION = "deployment.config"
_INTERFACE = "httpsInterface"


@dataclass(frozen=True)
class ManagerFile:
    """A manager's HTTP interface as its file has it: `host` under which other machines would reach it, if the file
    names one.

    `properties`: from `siddhi` in all files of the deployment, the first file's before the others'. `messaging`: the
    layer between the parts of its apps.
    """

    path: Path
    host: str | None
    port: int
    user: str
    password: str = field(repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    messaging: Messaging = Messaging.KAFKA


def deployment_files(conf: Sequence[str]) -> list[Path]:
    """The files of `--conf`, files of folders by name. Raises `Misuse` if there are none."""
    paths: list[Path] = []
    for path in map(Path, conf):
        inside = sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml")) if path.is_dir() else [path]
        if not inside:
            raise Misuse(f"there is no .yaml file in {path}")
        paths += inside
    return paths


def read_manager(paths: Sequence[Path], references: References) -> ManagerFile:
    """The interface of the first of the deployment files, which is the manager's own; the others are of its deployment.

    Raises `Misuse`, with file and line, for files of another kind, for missing or wrong entries, and for a password
    whose reference has no value.
    """
    files = [read_node(path, references) for path in paths]
    for file in files:
        if file.kind != DISTRIBUTED:
            raise _other_kind(file)
    properties = {key: value for file in reversed(files) for key, value in file.properties.items()}
    messaging = messaging_of([f for f in files if is_manager(f)])
    return replace(_interface(files[0], references), properties=properties, messaging=messaging)


def _other_kind(file: NodeFile) -> Misuse:
    if not file.kind:
        place = f"{file.path}, line {line_of(file.path, (_SECTION,)) or 1}"
        return Misuse(f"{place}: this is not a manager's file: {_SECTION}: type is not {DISTRIBUTED}")
    return wrong_key(file, (_SECTION, "type"), f"is '{file.kind}', and a manager's is {DISTRIBUTED}")


def _interface(file: NodeFile, references: References) -> ManagerFile:
    section = file.sections[_SECTION]
    if "resourceManagers" in section:
        raise wrong_key(
            file, (_SECTION, "resourceManagers"), "is of a resource node: give the file of one of its managers first"
        )
    interface = section.get(_INTERFACE)
    if not isinstance(interface, Mapping):
        raise wrong_key(file, (_SECTION, _INTERFACE), "is missing: it has port, username and password of the manager")
    port = interface.get("port")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65_536:
        raise wrong_key(file, (_SECTION, _INTERFACE, "port"), f"is a number from 1 to 65535, not {_words(port)}")
    user = _text(file, interface, "username")
    if ":" in user:
        raise wrong_key(file, (_SECTION, _INTERFACE, "username"), "has a colon, which basic authentication has not")
    place = f"{file.path}, line {line_of(file.path, (_SECTION, _INTERFACE, 'password'))}"
    password = references.resolve(_text(file, interface, "password"), place)
    host = interface.get("host")
    return ManagerFile(file.path, None if host is None else str(host), port, user, password)


def _text(file: NodeFile, interface: Mapping[str, Any], key: str) -> str:
    value = interface.get(key)
    if value is None:
        raise wrong_key(file, (_SECTION, _INTERFACE, key), "is missing: without it no app could be sent")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong_key(file, (_SECTION, _INTERFACE, key), "is a text")  # the value may be a secret
    return str(value)


def _words(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:40]
