"""Progress of an app without Spark, and the state of its nodes: an SQLite database in the folder of the app's run.

A micro-batch is planned in one transaction, and done, with the nodes' new state, in another one after its commit. So a
crash between the two leaves a micro-batch that is repeated on the former state, as Spark's checkpoint does.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from ..checksums import from_json
from ..errors import SparkStreamError
from ..journal.batch_planning import Offset
from ..journal.checkpoints import CheckpointProgress
from ..journal.journal import AGAIN_FROM_JOURNAL, BEGIN_ANEW
from ..journal.private import private_file, private_folder
from ..system import put_in_place

CHECKPOINT_FILE = "nodes.sqlite"
"""The database, in the folder of a checkpoint."""
_TABLES = """
CREATE TABLE IF NOT EXISTS batches
    (batch INTEGER PRIMARY KEY, "first" TEXT, "end" TEXT, done INTEGER, tries INTEGER, nodes INTEGER, sum TEXT);
CREATE TABLE IF NOT EXISTS nodes (node INTEGER PRIMARY KEY, version TEXT, digests TEXT, sum TEXT);
CREATE TABLE IF NOT EXISTS pieces (node INTEGER, digest TEXT, piece BLOB, PRIMARY KEY (node, digest));
"""
"""`sum` is the checksum of a row's other columns, as SQLite has none; `batches.nodes` is the number of rows of `nodes`.
Rows of earlier versions have neither. The names of pieces are their checksums."""
_ADDED = {"batches": {"nodes": "INTEGER", "sum": "TEXT"}, "nodes": {"sum": "TEXT"}}
"""Columns that earlier versions did not have."""


@dataclass(frozen=True)
class Planned:
    """Micro-batch number `batch`, over the journal from offset `start` to `end`; whether it `is_done`, and how often it
    was begun again."""

    batch: int
    start: Offset
    end: Offset
    is_done: bool = False
    tries: int = 0


class InlineCheckpoint:
    """The checkpoint in a folder. A `protocol.Checkpoint`; `open` it to write."""

    def __init__(self, folder: Path) -> None:
        """Raises SparkStreamError if an existing checkpoint cannot be read."""
        self.folder, self.file = folder, folder / CHECKPOINT_FILE
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._last: Planned | None = None
        self._state = False
        if self.file.exists():
            with self._readable(), contextlib.closing(self._connect()) as database:
                self._read(database)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            what = error if isinstance(error, sqlite3.Error | ValueError) else "a row is not what was written"
            raise SparkStreamError(
                f"{self.file} cannot be read: {what}. {AGAIN_FROM_JOURNAL}. Or put the "
                f"checkpoint back from a copy; {BEGIN_ANEW}."
            ) from error

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)

    def _read(self, database: sqlite3.Connection) -> None:
        batches = [_check_row(row, 7) for row in database.execute("SELECT * FROM batches ORDER BY batch")]
        nodes = [_check_row(row, 4) for row in database.execute("SELECT * FROM nodes")]
        for batch, start, end, is_done, tries, *rest in batches:
            self._last = Planned(batch, _offset(start), _offset(end), bool(is_done), int(tries))
            if nodes and rest and rest[0] not in (None, len(nodes)):
                raise ValueError(f"the state of {rest[0]:,} nodes was written, and that of {len(nodes):,} is in it")
        if nodes and self._last is None:
            raise ValueError("its micro-batches are missing")
        self._state = bool(nodes)

    def open(self) -> None:
        """Open it for writing. Raises SparkStreamError if an existing checkpoint cannot be read."""
        with self._lock:
            if self._database is not None:
                return
            if not self.file.exists():
                self._create()
            with self._readable():
                database = self._connect()
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.executescript(_TABLES)
                _add_columns(database)
                self._read(database)
            self._database = database

    def _create(self) -> None:
        """Make the file with its tables at once, so that a process that ends meanwhile leaves none without tables."""
        new = private_folder(self.folder) / f"{CHECKPOINT_FILE}.new"
        new.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(private_file(new), isolation_level=None)) as database:
            database.executescript(f"BEGIN;{_TABLES}COMMIT;")
        put_in_place(new, self.file)

    def close(self) -> None:
        """Close it. Progress that was read from it is still available."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    # ------------------------------------------------------------------------------------------------------ progress

    def read_progress(self) -> CheckpointProgress:
        last = self._last
        if last is None:
            return CheckpointProgress(-1, -1, 0, self._state)
        return CheckpointProgress(
            last.batch, last.batch if last.is_done else last.batch - 1, last.end["seq"], self._state
        )

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        last = self._last
        return (-1, (0, 0)) if last is None else (last.batch, (last.start["seq"], last.end["seq"]))

    def done(self) -> tuple[int, int]:
        end, last_batch = self.done_offset(), self.read_progress().done
        return (-1, -1) if end is None else (last_batch, end["seq"] - 1)

    def done_offset(self) -> Offset | None:
        last = self._last
        if last is None or (not last.is_done and last.batch == 0):
            return None
        return last.end if last.is_done else last.start

    # ------------------------------------------------------------------------------------------------- micro-batches

    @property
    def unfinished_batch(self) -> Planned | None:
        """The micro-batch that is planned and not done."""
        last = self._last
        return None if last is None or last.is_done else last

    def plan(self, start: Offset, end: Offset) -> Planned:
        """Plans the next micro-batch; it is on the disk when this returns."""
        last = self._last
        micro_batch = Planned(0 if last is None else last.batch + 1, start, end)
        with self._transaction() as database:
            _write_batch(database, micro_batch)
        self._last = micro_batch
        return micro_batch

    def begin_again(self) -> None:
        """Counts that the micro-batch which is planned and not done is begun once more."""
        last = self.unfinished_batch
        if last is not None:
            again = replace(last, tries=last.tries + 1)
            with self._transaction() as database:
                _write_batch(database, again)
            self._last = again

    def finish(self, micro_batch: Planned, states: Iterable[BufferedState]) -> None:
        """Takes a micro-batch for done, with the state that its nodes have after it."""
        done_batch = replace(micro_batch, is_done=True)
        with self._transaction() as database:
            for state in states:
                state.write(database)
            _write_batch(database, done_batch)
            database.execute("DELETE FROM batches WHERE batch < ?", (micro_batch.batch,))
        self._last, self._state = done_batch, True

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Raises OSError if the database cannot be written."""
        with self._lock:
            database = self._database
            assert database is not None, "a checkpoint that is not open"
            try:
                database.execute("BEGIN IMMEDIATE")
                try:
                    yield database
                    database.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        database.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise OSError(f"{self.file} cannot be written: {error}") from error

    def one(self, query: str, *values: object) -> tuple[object, ...] | None:
        """The first row of a query; None if there is none. Raises OSError if it cannot be read."""
        with self._lock:
            assert self._database is not None, "a checkpoint that is not open"
            try:
                return self._database.execute(query, values).fetchone()  # type: ignore[no-any-return]
            except sqlite3.Error as error:
                raise OSError(f"{self.file} cannot be read: {error}") from error


@dataclass
class BufferedState:
    """The state of a node in a micro-batch: changes are written when that is done. A `NodeState`."""

    checkpoint: InlineCheckpoint
    node: int
    _version: tuple[str, str] | None = None
    _new: dict[str, bytes] = field(default_factory=dict)
    _removed_digests: set[str] = field(default_factory=set)

    def version(self) -> tuple[str, str] | None:
        if self._version is not None:
            return self._version
        row = self.checkpoint.one("SELECT version, digests FROM nodes WHERE node = ?", self.node)
        return None if row is None else (str(row[0]), str(row[1]))

    def set_version(self, version: str, digests: str) -> None:
        self._version = version, digests

    def piece(self, digest: str) -> bytes | None:
        if digest in self._new:
            return self._new[digest]
        row = self.checkpoint.one("SELECT piece FROM pieces WHERE node = ? AND digest = ?", self.node, digest)
        return None if row is None else row[0]  # type: ignore[return-value]  # it is a BLOB

    def put_piece(self, digest: str, piece: bytes) -> None:
        self._new[digest] = piece
        self._removed_digests.discard(digest)

    def remove_piece(self, digest: str) -> None:
        if self._new.pop(digest, None) is None:
            self._removed_digests.add(digest)

    def write(self, database: sqlite3.Connection) -> None:
        """Write the changes."""
        if self._version is None:
            return
        database.execute("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?)", _with_sum(self.node, *self._version))
        new = [(self.node, digest, piece) for digest, piece in self._new.items()]
        database.executemany("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)", new)
        removals = [(self.node, digest) for digest in self._removed_digests]
        database.executemany("DELETE FROM pieces WHERE node = ? AND digest = ?", removals)


def copy_checkpoint(folder: Path, to: Path) -> None:
    """Copies a checkpoint that is not open into the folder `to`."""
    if folder.is_dir():
        shutil.copytree(folder, to)


def _write_batch(database: sqlite3.Connection, micro_batch: Planned) -> None:
    (nodes,) = database.execute("SELECT count(*) FROM nodes").fetchone()
    row = _with_sum(
        micro_batch.batch,
        json.dumps(micro_batch.start),
        json.dumps(micro_batch.end),
        int(micro_batch.is_done),
        micro_batch.tries,
        nodes,
    )
    database.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _add_columns(database: sqlite3.Connection) -> None:
    """Gives the tables of an earlier version the columns that they lack."""
    for table, columns in _ADDED.items():
        present = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for name, type_ in columns.items():
            if name not in present:
                database.execute(f"ALTER TABLE {table} ADD COLUMN {name} {type_}")


def _with_sum(*values: object) -> tuple[object, ...]:
    return *values, f"{crc32(json.dumps(values).encode()):08x}"


def _check_row(row: tuple[Any, ...], width: int) -> tuple[Any, ...]:
    """A row without its sum. Raises ValueError if it is not what was written. `width`: columns of a row with a
    sum; one of an earlier version has none, and is not checked."""
    if len(row) < width or row[-1] is None:
        return row[: width - 1]
    if _with_sum(*row[:-1]) != row:
        raise ValueError("a row is not what was written")
    return row[:-1]


def _offset(text: str) -> Offset:
    members = from_json(text)
    return {name: int(members[name]) for name in ("seq", "at", "skip")}
