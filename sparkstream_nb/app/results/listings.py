"""Bases of what users look at and iterate over: apps, folders, feeds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from .frontend import Displayed

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


class _WithFormerNames:
    """Attributes of listings under their former names, with a warning."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            new_name = {"found": "items", "apps": "entries", "feeds": "entries"}.get(name)
            if new_name not in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warnings.warn(f"{name} is called {new_name} now", DeprecationWarning, stacklevel=2)
            return getattr(self, new_name)


@dataclass(frozen=True, repr=False, eq=False)
class Listing(_WithFormerNames, Displayed, Sequence[T]):
    """Some things in order."""

    items: tuple[T, ...]

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        return self.items[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, repr=False, eq=False)
class Directory(_WithFormerNames, Displayed, Mapping[K, V]):
    """Some things by their names or numbers."""

    entries: dict[K, V]

    def __getitem__(self, key: K) -> V:
        return self.entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)
