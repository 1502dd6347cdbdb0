"""Stores under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkstream_nb.stores import DuckDBStore, Store
from sparkstream_nb.stores.address import FILES, Database
from sparkstream_nb.stores.sql import SqlStore
from tests.run_servers import ServerOf

from .trades import STORES

Stores = Callable[[str, Path], Store]
"""Opens the store of a kind that belongs to a folder, which is empty the first time."""


Databases = Callable[[str, Path], Database]
"""The database of a kind that belongs to a folder, which is empty the first time."""


@pytest.fixture(scope="session")
def databases(server_of: ServerOf) -> Databases:
    """Databases of every kind; each server is started when it is first asked for."""

    def database(kind: str, folder: Path) -> Database:
        if kind in FILES:
            return Database(kind, str(folder / f"store.{kind}"))
        return server_of(kind).made("t_" + "".join(c for c in str(folder).lower() if c.isalnum())[-40:])

    return database


@pytest.fixture(scope="session")
def stores(databases: Databases) -> Stores:
    """Opens stores of every kind."""

    def open_(kind: str, folder: Path) -> Store:
        database = databases(kind, folder)
        return DuckDBStore(database.name) if kind == "duckdb" else SqlStore(database)

    return open_


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path, stores: Stores) -> Iterator[Callable[[], Store]]:
    """Opens the store of this test; what it gave before is closed first."""
    opened: list[Store] = []

    def open_() -> Store:
        for s in opened:
            s.close()
        opened[:] = [stores(request.param, tmp_path)]
        return opened[0]

    yield open_
    for s in opened:
        s.close()
