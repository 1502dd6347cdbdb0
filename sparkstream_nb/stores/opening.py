"""Stores in databases, opened by the kind of the database. SQLAlchemy is loaded when the first one needs it."""

from __future__ import annotations

from .address import Database
from .duckdb import DuckDBStore
from .patience import Patience
from .store_protocol import Store


def open_database(database: Database, patience: Patience, *, read_only: bool = False) -> Store:
    """The store in a database. Raises StoreError if it cannot be opened."""
    if database.kind == "duckdb":
        return DuckDBStore(database.name, read_only=read_only)
    from .sql import SqlStore

    return SqlStore(database, patience, read_only=read_only)
