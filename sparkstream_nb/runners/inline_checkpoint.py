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

from ..errors import SparkStreamError
from ..journal.batch_planning import Offset
from ..journal.checkpoints import CheckpointProgress
from ..journal.journal import BEGIN_ANEW
from ..journal.private import private_file, private_folder

CHECKPOINT_FILE = "nodes.sqlite"
"""The database, in the folder of a checkpoint."""
_TABLES = """
CREATE TABLE IF NOT EXISTS batches (batch INTEGER PRIMARY KEY, "first" TEXT, "end" TEXT, done INTEGER, tries INTEGER);
CREATE TABLE IF NOT EXISTS nodes (node INTEGER PRIMARY KEY, version TEXT, digests TEXT);
CREATE TABLE IF NOT EXISTS pieces (node INTEGER, digest TEXT, piece BLOB, PRIMARY KEY (node, digest));
"""


@dataclass(frozen=True)
class Planned:
    """Micro-batch number `batch`, over the journal from offset `start` to `end`; whether it is `done`, and how often it
    was begun again."""

    batch: int
    start: Offset
    end: Offset
    done: bool = False
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
            raise SparkStreamError(
                f"{self.file} cannot be read: {error}. Put the checkpoint back from a copy; {BEGIN_ANEW}."
            ) from error

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)

    def _read(self, database: sqlite3.Connection) -> None:
        found = database.execute('SELECT batch, "first", "end", done, tries FROM batches ORDER BY batch DESC LIMIT 1')
        for batch, start, end, done, tries in found:
            self._last = Planned(batch, _offset(start), _offset(end), bool(done), int(tries))
        self._state = bool(database.execute("SELECT count(*) FROM nodes").fetchone()[0])

    def open(self) -> None:
        """Open it for writing. Raises SparkStreamError if an existing checkpoint cannot be read."""
        with self._lock:
            if self._database is not None:
                return
            private_file(private_folder(self.folder) / CHECKPOINT_FILE)
            with self._readable():
                database = self._connect()
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.executescript(_TABLES)
                self._read(database)
            self._database = database

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
        return CheckpointProgress(last.batch, last.batch if last.done else last.batch - 1, last.end["seq"], self._state)

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        last = self._last
        return (-1, (0, 0)) if last is None else (last.batch, (last.start["seq"], last.end["seq"]))

    def done(self) -> tuple[int, int]:
        end, done = self.done_offset(), self.read_progress().done
        return (-1, -1) if end is None else (done, end["seq"] - 1)

    def done_offset(self) -> Offset | None:
        last = self._last
        if last is None or (not last.done and last.batch == 0):
            return None
        return last.end if last.done else last.start

    # ------------------------------------------------------------------------------------------------- micro-batches

    @property
    def unfinished_batch(self) -> Planned | None:
        """The micro-batch that is planned and not done."""
        last = self._last
        return None if last is None or last.done else last

    def plan(self, start: Offset, end: Offset) -> Planned:
        """Plans the next micro-batch; it is on the disk when this returns."""
        last = self._last
        planned = Planned(0 if last is None else last.batch + 1, start, end)
        with self._transaction() as database:
            row = (planned.batch, json.dumps(start), json.dumps(end))
            database.execute("INSERT INTO batches VALUES (?, ?, ?, 0, 0)", row)
        self._last = planned
        return planned

    def begin_again(self) -> None:
        """Counts that the micro-batch which is planned and not done is begun once more."""
        last = self.unfinished_batch
        if last is not None:
            with self._transaction() as database:
                database.execute("UPDATE batches SET tries = tries + 1 WHERE batch = ?", (last.batch,))
            self._last = replace(last, tries=last.tries + 1)

    def finish(self, planned: Planned, states: Iterable[BufferedState]) -> None:
        """Takes a micro-batch for done, with the state that its nodes have after it."""
        with self._transaction() as database:
            for state in states:
                state.write(database)
            database.execute("UPDATE batches SET done = 1 WHERE batch = ?", (planned.batch,))
            database.execute("DELETE FROM batches WHERE batch < ?", (planned.batch,))
        self._last, self._state = replace(planned, done=True), True

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
    _gone: set[str] = field(default_factory=set)

    def version(self) -> tuple[str, str] | None:
        if self._version is not None:
            return self._version
        found = self.checkpoint.one("SELECT version, digests FROM nodes WHERE node = ?", self.node)
        return None if found is None else (str(found[0]), str(found[1]))

    def set_version(self, version: str, digests: str) -> None:
        self._version = version, digests

    def piece(self, digest: str) -> bytes | None:
        if digest in self._new:
            return self._new[digest]
        found = self.checkpoint.one("SELECT piece FROM pieces WHERE node = ? AND digest = ?", self.node, digest)
        return None if found is None else found[0]  # type: ignore[return-value]  # it is a BLOB

    def put_piece(self, digest: str, piece: bytes) -> None:
        self._new[digest] = piece
        self._gone.discard(digest)

    def remove_piece(self, digest: str) -> None:
        if self._new.pop(digest, None) is None:
            self._gone.add(digest)

    def write(self, database: sqlite3.Connection) -> None:
        """Write the changes."""
        if self._version is None:
            return
        database.execute("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?)", (self.node, *self._version))
        new = [(self.node, digest, piece) for digest, piece in self._new.items()]
        database.executemany("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)", new)
        gone = [(self.node, digest) for digest in self._gone]
        database.executemany("DELETE FROM pieces WHERE node = ? AND digest = ?", gone)


def copy_checkpoint(folder: Path, to: Path) -> None:
    """Copies a checkpoint that is not open into the folder `to`."""
    if folder.is_dir():
        shutil.copytree(folder, to)


def _offset(text: str) -> Offset:
    found = json.loads(text)
    return {name: int(found[name]) for name in ("seq", "at", "skip")}
