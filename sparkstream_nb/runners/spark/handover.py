"""Spark Connect: the driver is the server's, so micro-batches are handed to the app's process through its folder.

The function of foreachBatch runs in a process of the server's, and an app's store has one owner: the process that
deployed it. So the server writes the rows of a micro-batch as one file, named by the batch's number, before Spark may
take the batch for done; the owner commits the files in their order, notes each in its own folder, and removes it. Spark
repeats a batch with the same rows, and the owner's ledger names the batches that are in the store: each is there once,
whichever of the two ends in between.

The file is in the app's folder, which server, executors and owner then see under one path, or at the app's shared
address.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...journal.checkpoints import FileStore, LocalFiles, SparkCheckpoint
from ...journal.result_codec import from_ipc
from ...journal.result_rows import from_table
from ...journal.shared import Shared
from ...outputs.commit import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_POLLING_SECONDS, _POLLING_SHARED_SECONDS = 0.02, 0.2
_HANDED = "handed"
_TAKEN = "taken.json"


@dataclass(frozen=True)
class CommittedUpTo:
    """The last micro-batch that the owner has committed, and its last entry; -1 for none."""

    batch: int = -1
    last: int = -1

    @staticmethod
    def of(home: Path) -> CommittedUpTo:
        """Position noted by the owner of the run in the folder `home`. If the note is gone or cut off, the remaining
        files and Spark's checkpoint give the same.
        """
        try:
            note = json.loads((home / _TAKEN).read_text(encoding="utf-8"))
            return CommittedUpTo(int(note["batch"]), int(note["last"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return CommittedUpTo()


def left(home: Path, shared: Shared | None) -> list[int]:
    """The micro-batches of the run in the folder `home` that are handed over and not committed, in order. Raises
    OSError if the shared address cannot be reached.
    """
    return sorted(number for number in _list_handed_over(_files(home, shared)) if number > CommittedUpTo.of(home).batch)


def clear(home: Path, shared: Shared | None) -> None:
    """Remove the files handed over, when all that Spark has done is committed: Spark repeats the rest. Raises
    OSError if the shared address cannot be reached.
    """
    files = _files(home, shared)
    files.remove(*map(_name, _list_handed_over(files)))


def _files(home: Path, shared: Shared | None) -> FileStore:
    return LocalFiles(home) if shared is None else shared


def _list_handed_over(files: FileStore) -> list[int]:
    name_parts = (name.partition(".") for name in files.names(_HANDED))
    return [int(number) for number, _, ending in name_parts if ending == "arrows" and number.isdecimal()]


def handover(home: Path, shared: Shared | None) -> Callable[[DataFrame, int], None]:
    """The function for foreachBatch on the server: a micro-batch becomes a file in the folder of the app's life, or at
    its shared address."""
    system: tuple[str, dict[str, Any]] = ("file", {})
    folder = str(home / _HANDED)
    if shared is not None:
        system, folder = shared.system(), shared.below(_HANDED).path

    def hand(frame: DataFrame, batch: int) -> None:  # sent by value: what `ship` sends does not reach this process
        import os

        import pyarrow.fs

        kind, options = system
        fs = pyarrow.fs
        files = fs.LocalFileSystem() if kind == "file" else fs.S3FileSystem(**options) if kind == "s3" else None
        if files is None:
            files, _ = fs.FileSystem.from_uri(kind)
        table = frame.toArrow()
        # A run that was cut off may still be at it when the batch comes again: each writes a file of its own.
        new = f"{folder}/.{batch}-{os.urandom(8).hex()}.new"
        with files.open_output_stream(new) as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        files.move(new, f"{folder}/{batch:012d}.arrows")

    return hand


class ConnectIntake:
    """Commits the results that `handover` leaves for the run in the folder `home`, micro-batch by micro-batch."""

    def __init__(self, home: Path, shared: Shared | None, commit: Commit) -> None:
        self.files, self.commit = _files(home, shared), commit
        self.position, self._home_files = CommittedUpTo.of(home), LocalFiles(home)
        checkpoint_position = CommittedUpTo(*SparkCheckpoint.of(home, shared).done())  # first: later batches are left
        self._polling = _POLLING_SECONDS if shared is None else _POLLING_SHARED_SECONDS
        self.files.put(f"{_HANDED}/.there", b"")
        batch_numbers = _list_handed_over(self.files)
        self.files.remove(*(_name(number) for number in batch_numbers if number <= self.position.batch))
        waiting = left(home, shared)
        if (
            not waiting and checkpoint_position.batch > self.position.batch
        ):  # Spark's driver was in the owner's process meanwhile
            self.position = checkpoint_position
        self.next = min(waiting, default=self.position.batch + 1)
        self.failure: Exception | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Commit the files that are there. Raises the commit's errors; the file then stays."""
        with self._lock:
            while self.files.has(name := _name(self.next)):
                self.commit.commit(from_table(from_ipc(self.files.get(name))), self.next)
                self.position = CommittedUpTo(self.next, max(self.position.last, self.commit.progress.last))
                self._home_files.put(_TAKEN, json.dumps(asdict(self.position)).encode())
                self.next += 1
                self.files.remove(name)

    def start(self) -> None:
        """Commit the present files, and continue until `end`."""
        self.end()
        self.failure = None
        self.take()
        self._ending.clear()
        self._thread = threading.Thread(target=self._run, name="sparkstream-intake", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Commit the present files, and stop looking for more."""
        self._ending.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            while not self._ending.wait(self._polling):
                self.take()
            self.take()
        except Exception as error:  # the stream raises it to its waiting callers
            self.failure = error


def _name(batch: int) -> str:
    return f"{_HANDED}/{batch:012d}.arrows"
