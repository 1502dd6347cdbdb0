"""Hash indexes of a table over the values of some attributes."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column
from ..columnar.key_ids import Keys
from ..state.services import Services


class HashIndex:
    """Positions by the values of some attributes. `is_sorted`: Siddhi keeps it as a `TreeMap`."""

    def __init__(self, attrs: tuple[int, ...], types: Sequence[Type], services: Services, sorted_map: bool) -> None:
        self.attrs = attrs
        self.keys = Keys([types[a] for a in attrs], services.strings, null_is_text=False)
        self.is_sorted = sorted_map

    def ids(self, columns: Sequence[Column]) -> Array:
        """Key ids of rows of the table."""
        return self.keys.ids([columns[a] for a in self.attrs])

    def add(self, columns: Sequence[Column], positions: Array) -> None:
        raise NotImplementedError

    def remove(self, columns: Sequence[Column], positions: Array) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        raise NotImplementedError

    def find(self, keys: Array) -> tuple[Array, Array]:
        """(row of `keys`, position) of all matches, by row."""
        raise NotImplementedError


class Primary(HashIndex):
    """At most one position a key, in an array by key id."""

    at = np.full(0, -1, np.int64)

    def room(self) -> Array:
        """Positions by key id, with room for every id there is."""
        self.at = grown(self.at, self.keys.size, -1)
        return self.at

    def add(self, columns: Sequence[Column], positions: Array) -> None:
        keys = self.ids(columns)
        self.room()[keys] = positions

    def remove(self, columns: Sequence[Column], positions: Array) -> None:
        keys = self.ids(columns)
        self.room()[keys] = -1

    def clear(self) -> None:
        self.at[:] = -1

    def find(self, keys: Array) -> tuple[Array, Array]:
        positions = self.room()[keys]
        rows = np.flatnonzero(positions >= 0)
        return rows, positions[rows]


class Secondary(HashIndex):
    """Any number of positions a key."""

    def __init__(self, attrs: tuple[int, ...], types: Sequence[Type], services: Services, sorted_map: bool) -> None:
        super().__init__(attrs, types, services, sorted_map)
        self.at: dict[int, list[int]] = {}

    def add(self, columns: Sequence[Column], positions: Array) -> None:
        for key, p in zip(self.ids(columns).tolist(), positions.tolist(), strict=True):
            self.at.setdefault(key, []).append(p)

    def remove(self, columns: Sequence[Column], positions: Array) -> None:
        for key, p in zip(self.ids(columns).tolist(), positions.tolist(), strict=True):
            key_positions = self.at[key]
            key_positions.remove(p)
            if not key_positions:
                del self.at[key]

    def clear(self) -> None:
        self.at.clear()

    def find(self, keys: Array) -> tuple[Array, Array]:
        positions_by_row = [self.at.get(k, ()) for k in keys.tolist()]
        rows = np.repeat(np.arange(len(positions_by_row)), [len(f) for f in positions_by_row])
        return rows, np.array([p for f in positions_by_row for p in f], np.int64)


class Assumed(Primary):
    """The key by which all queries use a table that has none of its own. `doubtful` once two rows had the same."""

    doubtful = False

    def add(self, columns: Sequence[Column], positions: Array) -> None:
        keys, row_numbers = self._found(columns)
        by_key = self.room()
        if (by_key[keys] >= 0).any() or len(np.unique(keys)) < len(keys):
            self.doubtful = True
        by_key[keys] = positions[row_numbers]

    def remove(self, columns: Sequence[Column], positions: Array) -> None:
        keys, _ = self._found(columns)
        self.room()[keys] = -1

    def _found(self, columns: Sequence[Column]) -> tuple[Array, Array]:
        """Key ids of the rows that a key finds, and which these are: null equals nothing."""
        row_numbers = np.flatnonzero(~functools.reduce(np.logical_or, [columns[a].nulls() for a in self.attrs]))
        return self.ids([c.take(row_numbers) for c in columns]), row_numbers
