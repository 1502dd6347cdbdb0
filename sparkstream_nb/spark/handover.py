"""Spark Connect: the driver is the server's, so micro-batches are handed to the app's process through its folder.

What foreachBatch is given runs in a process of the server's, and an app's store has one owner: the process that
deployed it. So the server writes the rows of a micro-batch as one file, named by the batch's number, before Spark may
take the batch for done; the owner commits the files in their order. Spark repeats a batch with the same rows, and the
owner's ledger tells which batches are in the store: each is there once, whichever of the two ends in between.

The server, its executors and the owner must see the app's folder under one path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from .commit import Commit
from .private import private_folder
from .results import from_ipc
from .rows import from_table

_POLLING_SECONDS = 0.02


def handover(folder: Path) -> Callable[[DataFrame, int], None]:
    """The function for foreachBatch on the server: a micro-batch becomes a file in `folder`."""
    where = str(folder)

    def hand(frame: DataFrame, batch: int) -> None:  # sent by value: what `ship` sends does not reach this process
        import os
        from pathlib import Path

        import pyarrow

        table = frame.toArrow()
        # A run that was cut off may still be at it when the batch comes again: each writes a file of its own.
        new = Path(where, f".{batch}-{os.urandom(8).hex()}.new")
        with pyarrow.OSFile(str(new), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        new.replace(Path(where, f"{batch:012d}.arrows"))

    return hand


class Intake:
    """Commits what `handover` leaves in `folder`, micro-batch by micro-batch.

    The file of the last batch stays until the next one is in the store: it tells a later process where to go on.
    """

    def __init__(self, folder: Path, commit: Commit) -> None:
        private_folder(folder)
        self.folder, self.commit = folder, commit
        self.next = min((int(f.stem) for f in folder.glob("[0-9]*.arrows")), default=0)
        self.failure: Exception | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Commits the files that are there. Raises what the commit raises; the file then stays."""
        with self._lock:
            while (file := _file(self.folder, self.next)).exists():
                self.commit.commit(from_table(from_ipc(file.read_bytes())), self.next)
                _file(self.folder, self.next - 1).unlink(missing_ok=True)
                self.next += 1

    def start(self) -> None:
        """Takes in what there is, and goes on until `end`."""
        self.end()
        self.failure = None
        self.take()
        self._ending.clear()
        self._thread = threading.Thread(target=self._run, name="sparkstream-intake", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Takes in what is there, and stops looking."""
        self._ending.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            while not self._ending.wait(_POLLING_SECONDS):
                self.take()
            self.take()
        except Exception as error:  # told by the stream to whoever waits
            self.failure = error


def _file(folder: Path, batch: int) -> Path:
    return folder / f"{batch:012d}.arrows"
