"""Tables in databases, as a node's micro-batch sees them.

A node takes its turn with the tables (`stores.tables.Turn`) from the first row that it asks for to the end of its
micro-batch: nodes see one another's changes whole, one after the other. The rows that it has read are kept in a file,
since Spark may repeat a micro-batch whose changes the databases have by then: a repeated batch reads the same rows as
the first time, and changes nothing. So a node's output, its state and the tables agree, and each change is made once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import StoreError
from ..journal.checkpoints import FileStore
from ..plan.table_requests import TableChanges, Terms, Values
from ..stores.tables import SqlTables, Turn
from .packed_tables import unpack_tables

T = TypeVar("T")
_open_databases: dict[bytes, tuple[list[int], list[SqlTables]]] = {}
"""Open databases, with the identities of their files."""


def _open(blob: bytes) -> list[SqlTables]:
    """The databases of `pack_tables`, opened once per worker, in the same order everywhere. A file that is in the place
    of one that was moved away is opened again."""
    key = hashlib.blake2b(blob, digest_size=16).digest()
    identities, tables = _open_databases.get(key, ([], []))
    if not tables or identities != _identify_files(tables):
        for stale_tables in tables:
            stale_tables.close()
        tables = [SqlTables(database, layouts) for database, layouts in unpack_tables(blob)]
        _open_databases[key] = _identify_files(tables), tables
    return tables


def _identify_files(tables: Sequence[SqlTables]) -> list[int]:
    """The number of the file of each database in its file system; 0 for a server's, and a file that is not there."""
    return [_number_of_file(t.database.name) if t.database.is_file else 0 for t in tables]


def _number_of_file(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


@dataclass(frozen=True)
class BatchOf:
    """A micro-batch of one node: the run of the app, the node's number, and the identity of the batch."""

    run: str
    node: int
    batch: str


class NodeTables:
    """The `RowSource` of a node's engine during one micro-batch."""

    def __init__(self, tables: Sequence[SqlTables], batch: BatchOf, files: FileStore) -> None:
        self._tables, self._batch, self._files = tables, batch, files
        self._file = f"reads/node-{batch.node}.json"
        self._owner = {t: i for i, x in enumerate(tables) for t in x.layouts}
        self._turns: list[Turn] = []
        self._is_committed: list[bool] = []
        self._read: list[list[Values]] = []
        self._again: list[list[Values]] | None = None
        self._began = False

    def fetch(self, table: str, terms: Sequence[Terms] | None) -> Sequence[Values]:
        """`RowSource.fetch`; in a repeated batch the rows of the first time."""
        self._begin()
        if self._again is not None:
            return self._again.pop(0)
        rows = self._turns[self._owner[table]].fetch(table, terms)
        self._read.append(rows)
        return rows

    def unfit(self, table: str, row: Values) -> str | None:
        """`RowSource.unfit`."""
        return self._tables[self._owner[table]].why_unfit(table, row)

    def _begin(self) -> None:
        if self._began:
            return
        self._began = True
        b = self._batch
        for tables in self._tables:
            self._turns.append(tables.begin())
        self._is_committed = [turn.last(b.run, b.node) == b.batch for turn in self._turns]
        record = self._kept()
        if record is not None and (any(self._is_committed) or not record["changes"]):
            self._again = [[tuple(row) for row in rows] for rows in record["read"]]
        elif any(self._is_committed):
            database = self._tables[self._is_committed.index(True)].database
            raise StoreError(
                f"The tables of {database} have the changes of a micro-batch of node {b.node + 1} that is repeated, "
                f"and {self._file}, which records what it read, is missing. Deploy the app again with fresh=True."
            )

    def _kept(self) -> dict[str, Any] | None:
        """Rows that this batch read when it ran before; None if it did not."""
        try:
            record: dict[str, Any] = json.loads(self._files.get(self._file))
        except FileNotFoundError:
            return None
        return record if record["batch"] == [self._batch.run, self._batch.batch] else None

    def is_committed(self) -> bool:
        """True if a database has the changes of this batch already."""
        self._begin()
        return any(self._is_committed)

    def end(self, changes: Sequence[TableChanges]) -> None:
        """Commits the changes, unless they are in the databases already."""
        if changes:
            self._begin()
        if not self._began:
            return
        if self._again is None:
            self._keep(bool(changes))
        b = self._batch
        for i, turn in enumerate(self._turns):
            own_changes = [c for c in changes if self._owner[c.table] == i]
            if own_changes and not self._is_committed[i]:
                turn.end(own_changes, b.run, b.node, b.batch)
            else:
                turn.leave()
        self._turns = []

    def _keep(self, changes: bool) -> None:
        text = json.dumps({"batch": [self._batch.run, self._batch.batch], "changes": changes, "read": self._read})
        self._files.put(self._file, text.encode())

    def leave(self) -> None:
        """Ends the turn with nothing changed; after `end` there is nothing to do."""
        turns, self._turns = self._turns, []
        for turn in turns:
            turn.leave()


def with_tables(blob: bytes, batch: BatchOf, files: FileStore, work: Callable[[NodeTables], T]) -> T:
    """Run `work` with the tables of a node, again from its beginning if a database was busy or gone. The rows that a
    batch reads are kept among `files`.

    `work` ends by `NodeTables.end`. Raises StoreError as `SqlTables.tried` does.
    """
    tables = _open(blob)

    def attempt() -> T:
        source = NodeTables(tables, batch, files)
        try:
            return work(source)
        finally:
            source.leave()

    transaction = attempt
    for one in tables:
        transaction = _retry_transactions(one, transaction)
    return transaction()


def _retry_transactions(tables: SqlTables, work: Callable[[], T]) -> Callable[[], T]:
    return lambda: tables.run_transaction(work)
