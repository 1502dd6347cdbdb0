"""Columns of objects that are created lazily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...types import Type
from .column_data import Array, Column, Mask, StringPool, concat


class LazyObjectColumn(Column):
    """A lazy object column: `make` creates the objects from the values of other columns, row by row; None: takes the
    values of one column as they are.

    `kind` is their Python type; the entry `keys[i]` (of a list: the index) has the value of `parts[i]`, so entries can
    be read without creating the object. `null` is the null mask.
    """

    __slots__ = ("_strings", "_values", "keys", "kind", "make", "parts")

    def __init__(
        self, kind: type, keys: tuple[Any, ...], make: Callable[..., Any] | None, parts: Sequence[Column],
        strings: StringPool, null: Mask | None = None,
    ) -> None:  # fmt: skip
        self.type, self.null = Type.OBJECT, null
        self.kind, self.keys, self.make, self.parts = kind, keys, make, parts
        self._strings = strings
        self._values: Array | None = None

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def values(self) -> Array:  # type: ignore[override]
        if self._values is None:
            self._values = np.empty(len(self), object)
            for i, v in enumerate(self.to_list(self._strings)):
                self._values[i] = v
        return self._values

    def to_list(self, strings: StringPool) -> list[Any]:
        values = [p.to_list(strings) for p in self.parts]
        return values[0] if self.make is None else list(map(self.make, *values))

    def take(self, index: Array) -> Column:
        return self._over([p.take(index) for p in self.parts], None if self.null is None else self.null[index])

    def slice(self, a: int, b: int) -> Column:
        return self._over([p.slice(a, b) for p in self.parts], None if self.null is None else self.null[a:b])

    def try_concat(self, others: Sequence[Column]) -> Column | None:
        alike = [o for o in others if isinstance(o, LazyObjectColumn) and (o.make, o.keys) == (self.make, self.keys)]
        if len(alike) < len(others):
            return None
        columns = [self, *alike]
        null = np.concatenate([m.nulls() for m in columns]) if any(m.null is not None for m in columns) else None
        return self._over([concat(p) for p in zip(*(m.parts for m in columns), strict=True)], null)

    def _over(self, parts: Sequence[Column], null: Mask | None) -> LazyObjectColumn:
        return LazyObjectColumn(self.kind, self.keys, self.make, parts, self._strings, null)
