"""Packages whose names are loaded on their first use (PEP 562): to import one loads nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_first_use(
    package: str, places: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package of that name. `places`: by module, as `from` has it in the package,
    the names that come from there. A name may not equal one of the package's modules: loading the module makes it an
    attribute of the package.
    """
    where = {name: module for module, names in places.items() for name in names}
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value = getattr(import_module(where[name], package), name)
        return value

    def list_names() -> list[str]:
        return sorted({*namespace, *where})

    return get, list_names
