"""SiddhiQL's attribute types and the schema of a stream."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


class Type(enum.Enum):
    """An attribute type of SiddhiQL (`attribute_type` in Siddhi's grammar)."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BOOL = "bool"
    OBJECT = "object"

    def __str__(self) -> str:
        return self.value

    @property
    def numeric(self) -> bool:
        """True if arithmetic and order comparisons accept the type."""
        return self in _NUMERIC


_NUMERIC = frozenset({Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE})


def promote(left: Type, right: Type) -> Type | None:
    """The result type of arithmetic between two types, or None if Siddhi has none.

    Rule of Siddhi's `ExpressionParser.parseArithmeticOperationResultType`: any double gives double, else any
    float gives float, else any long gives long, else int.
    """
    if not (left.numeric and right.numeric):
        return None
    for wide in (Type.DOUBLE, Type.FLOAT, Type.LONG):
        if wide in (left, right):
            return wide
    return Type.INT


@dataclass(frozen=True)
class Attribute:
    """A named, typed column of a stream, table, window or aggregation."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Schema:
    """The attributes of a definition, in order. Names are case-sensitive, as in Siddhi."""

    attributes: tuple[Attribute, ...]

    @staticmethod
    def of(*pairs: tuple[str, Type]) -> Schema:
        """A schema from (name, type) pairs."""
        return Schema(tuple(Attribute(n, t) for n, t in pairs))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(a.type for a in self.attributes)

    def find(self, name: str) -> int | None:
        """Position of the attribute called `name`, or None."""
        return self._places.get(name)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The first position of each name."""
        return {a.name: i for i, a in reversed(list(enumerate(self.attributes)))}

    def __getstate__(self) -> dict[str, object]:
        """Without values that can be looked up again."""
        return {"attributes": self.attributes}

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __getitem__(self, i: int) -> Attribute:
        return self.attributes[i]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.attributes)) + ")"
