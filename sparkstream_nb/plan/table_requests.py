"""Tables in a database: their place as the app gives it, a node's requests for rows, and its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..errors import SiddhiBindError
from ..lang.tree import find_annotation
from ..types import Schema, Type
from .nodes import TableDef
from .query_parts import connector_options

Comparison = Literal["==", "<", "<=", ">", ">="]
Values = tuple[Any, ...]
"""A row's values, or the values of its key, as Python objects."""


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison that rows fulfil: of attribute number `attr` with `value`, which is not null."""

    attr: int
    op: Comparison
    value: Any


Terms = tuple[Term, ...]
"""Comparisons that all hold."""


@dataclass(frozen=True)
class TableChanges:
    """Changes of a table by a batch. With a primary key `removals` are keys, and `new` rows that replace the rows with
    their key, or come in addition; without one `removals` are rows of which no copy stays, and `new` come in addition.
    """

    table: str
    removals: Sequence[Values]
    new: Sequence[Values]


class RowSource(Protocol):
    """The rows of tables in a database."""

    def fetch(self, table: str, terms: Sequence[Terms] | None) -> Sequence[Values]:
        """The rows that fulfil any of `terms`, perhaps others too; all for None. As they were when the batch began."""

    def unfit(self, table: str, row: Values) -> str | None:
        """Why the database cannot hold a row; None if it can."""


@dataclass(frozen=True)
class StoredTableLayout:
    """A table of a database: its `name` there, the attributes as columns, the most characters of texts by attribute.
    Each of `indexes` is over some attributes."""

    id: str
    name: str
    schema: Schema
    key: tuple[int, ...]
    indexes: tuple[tuple[int, ...], ...]
    lengths: Mapping[int, int]


def layout_of(table: TableDef, properties: Mapping[str, str]) -> StoredTableLayout:
    """The layout that a table's `@store` asks for (`table.name`, `field.length`, as WSO2's RDBMS store has them).

    Raises SiddhiBindError for a `field.length` that says no length of a text, and for an attribute of type object.
    """
    annotation = find_annotation(table.annotations, "store")
    assert annotation is not None
    schema, id_ = table.source.schema, table.source.id
    options = {k.lower(): v for k, v in connector_options(annotation, properties).items()}
    for a in schema:
        if a.type is Type.OBJECT:
            raise SiddhiBindError(
                f"table '{id_}' is in a database, which cannot hold '{a.name}' of type object", annotation.span
            )
    texts = [a.name for a in schema if a.type is Type.STRING]
    lengths: dict[int, int] = {}
    for part in filter(None, (x.strip() for x in options.get("field.length", "").split(","))):
        name, _, length = (x.strip() for x in part.partition(":"))
        if name not in texts or not length.isdecimal():
            raise SiddhiBindError(
                f"field.length of table '{id_}' says '{part}'", annotation.span,
                hint="Write for example field.length='symbol:50', for attributes of type string.",
            )  # fmt: skip
        lengths[schema.names.index(name)] = int(length)
    indexes = (*((a,) for a in table.indexes), *table.joint_indexes)
    return StoredTableLayout(id_, options.get("table.name", id_), schema, table.primary_key, indexes, lengths)
