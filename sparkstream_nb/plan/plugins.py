"""Functions, aggregators and windows of other packages, by their entry points `sparkstream_nb.extensions`.

An entry point names a module; its functions and classes with a decorator of `sparkstream_nb.extending` are extensions.
Packages are looked for when a name with a namespace is met that this one does not have, or when all names are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar, cast

from ..errors import SparkStreamError
from .nodes import PluginUse
from .signatures.built_in_names import BUILT_IN_NAMES
from .signatures.signature import Signature
from .signatures.windows import WindowDeclaration

GROUP = "sparkstream_nb.extensions"
MARK = "__siddhi__"
"""The attribute by which functions and classes have their `Extension`."""

Kind = Literal["function", "aggregator", "window"]
T = TypeVar("T")


class PluginError(SparkStreamError):
    """An app needs an extension of a package that this Python lacks, or has in another version."""


@dataclass(frozen=True)
class Extension:
    """A function, aggregator or window: its signature, a line of help, and what runs it in the engine (a `Builder`, or
    the class). `declaration`: of a window."""

    kind: Kind
    signature: Signature
    help: str
    implementation: Any
    declaration: WindowDeclaration | None = None


@dataclass
class _Plugins:
    """The extensions of all packages, by kind and key; by key, the package. `problems`: packages that could not be
    loaded, or of which something was left out, and why."""

    extensions: dict[Kind, dict[str, Extension]] = field(
        default_factory=lambda: {"function": {}, "aggregator": {}, "window": {}}
    )
    packages: dict[str, tuple[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@cache
def _plugins() -> _Plugins:
    plugins = _Plugins()
    for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        name, version = ("?", "?") if point.dist is None else (point.dist.name, point.dist.version)
        try:
            extensions = _extensions_of(point)
        except Exception as error:  # whatever another package raises is no reason to end
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            plugins.problems.append(f"The package {name} {version} could not be loaded: {reason}.")
            continue
        for extension in extensions:
            _add(plugins, extension, (name, version))
    return plugins


def _extensions_of(point: EntryPoint) -> list[Extension]:
    """The extensions in the module of an entry point, in its order, each once."""
    values = vars(point.load()).values()
    marks = [v.__dict__[MARK] for v in values if MARK in getattr(v, "__dict__", ())]
    return list({id(mark): mark for mark in marks}.values())


def _add(plugins: _Plugins, extension: Extension, package: tuple[str, str]) -> None:
    """Takes an extension in, unless its name is taken."""
    key = extension.signature.key
    owner = "SparkStream Notebook" if key in BUILT_IN_NAMES else " ".join(plugins.packages.get(key, ()))
    if owner:
        plugins.problems.append(f"'{key}' of {' '.join(package)} is left out: {owner} has a '{key}'.")
        return
    plugins.extensions[extension.kind][key] = extension
    plugins.packages[key] = package


def find_extension(kind: Kind, key: str) -> Extension | None:
    """The extension `key` of other packages; None if there is none. Their names have a namespace, and no name of this
    package is among them: for those no package is looked for."""
    return None if ":" not in key or key in BUILT_IN_NAMES else _plugins().extensions[kind].get(key)


def _use_of(key: str) -> PluginUse | None:
    package = _plugins().packages.get(key)
    return None if package is None else PluginUse(key, *package)


def problems() -> tuple[str, ...]:
    """A sentence for each package with extensions that cannot be used, and for each name that is left out."""
    return tuple(_plugins().problems)


def require(uses: Iterable[PluginUse]) -> None:
    """Raises PluginError if an extension that a plan uses is not there, or is one of another version, as on a worker
    whose Python differs from the app's."""
    for use in uses:
        here = _use_of(use.key)
        if here == use:
            continue
        lack = "which is not installed" if here is None else f"and {here.package} {here.version} is installed"
        if here is None and problems():
            lack = f"which cannot be used ({' '.join(problems())})"
        raise PluginError(
            f"the app calls '{use.key}' of the package {use.package} {use.version}, {lack} in a Python that runs it: "
            f"install {use.package}=={use.version} on all machines"
        )


class WithExtensions(Mapping[str, T]):
    """A table of this package by key (`built_in`), and behind it the extensions of a kind: of each, its `part`."""

    def __init__(self, built_in: Mapping[str, T], kind: Kind, part: str) -> None:
        self.built_in, self._kind, self._part = built_in, kind, part

    def __getitem__(self, key: str) -> T:
        if key in self.built_in:
            return self.built_in[key]
        extension = find_extension(self._kind, key)
        if extension is None:
            raise KeyError(key)
        return cast(T, getattr(extension, self._part))

    def use_of(self, key: str) -> PluginUse | None:
        """The package that has `key`; None if it is this one."""
        return None if key in self.built_in else _use_of(key)

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from _plugins().extensions[self._kind]

    def __len__(self) -> int:
        return len(self.built_in) + len(_plugins().extensions[self._kind])
