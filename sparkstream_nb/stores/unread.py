"""Values of a database that Python does not have, such as a date after the year 9999: rows with them are read too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_PLAIN = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "oid", "text", "varchar", "bpchar", "name", "bytea"}
)
"""PostgreSQL's types of which psycopg reads every value; their loaders in C stay as they are."""


@dataclass(frozen=True)
class UnreadValue:
    """A value as the database writes it, and why it cannot be read otherwise."""

    text: str
    why: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text


def read_any_value(connection: Any) -> None:
    """Lets a connection of psycopg's give each value that its loader fails for as `UnreadValue`; a row of others would
    not be read for it."""
    from psycopg import adapt, pq

    adapters = connection.adapters

    def guard_loader(loader: Any) -> type[adapt.Loader]:
        class Guarded(adapt.Loader):
            format = pq.Format.TEXT

            def __init__(self, oid: int, context: Any = None) -> None:
                super().__init__(oid, context)
                self._inner = loader(oid, context)

            def load(self, data: Any) -> Any:
                try:
                    return self._inner.load(data)
                except Exception as error:  # of dates, intervals and JSON psycopg raises several kinds
                    return UnreadValue(bytes(data).decode("utf-8", "replace"), " ".join(str(error).split()))

        return Guarded

    for info in list(adapters.types):
        for oid in (info.oid, info.array_oid):
            loader = adapters.get_loader(oid, pq.Format.TEXT) if oid and info.name not in _PLAIN else None
            if loader is not None:
                adapters.register_loader(oid, guard_loader(loader))
