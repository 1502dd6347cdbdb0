"""Databases and their tables as bytes, for the nodes."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..plan.table_requests import StoredTableLayout
from ..stores.address import Database, Secret


def pack_tables(tables: Iterable[tuple[Database, Sequence[StoredTableLayout]]]) -> bytes:
    """Databases, with their passwords, and their tables, for the workers."""
    return pickle.dumps(
        [
            (replace(d, password=None), None if d.password is None else d.password.reveal(), tuple(layouts))
            for d, layouts in tables
        ]
    )


def unpack_tables(blob: bytes) -> list[tuple[Database, Sequence[StoredTableLayout]]]:
    """The inverse of `pack_tables`, in the same order everywhere."""
    return [
        (replace(d, password=None if password is None else Secret(password)), layouts)
        for d, password, layouts in sorted(pickle.loads(blob), key=lambda x: str(x[0]))
    ]
