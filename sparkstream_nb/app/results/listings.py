"""Bases of what users look at and iterate over: apps, folders, feeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .frontend import Displayed

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, repr=False, eq=False)
class Listing(Displayed, Sequence[T]):
    """Some things in order."""

    items: tuple[T, ...]

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        return self.items[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, repr=False, eq=False)
class Directory(Displayed, Mapping[K, V]):
    """Some things by their names or numbers."""

    entries: dict[K, V]

    def __getitem__(self, key: K) -> V:
        return self.entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)
