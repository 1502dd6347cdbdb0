"""Files in an app's folder or at a shared address, and Spark's checkpoint among them: how far Spark is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import SparkStreamError
from ..system import to_disk
from .causes import cause_of, is_own
from .journal import AGAIN_FROM_JOURNAL, BEGIN_ANEW
from .private import private_folder, write_private
from .shared import Shared
from .spark_files import is_log_entry, is_query_id, list_damaged

_HALF_WRITTEN = re.compile(r"\.{1,2}\d+\.[0-9a-f-]+\.tmp(\.crc)?")
"""A file that Spark makes before it gives it its name, the number of a micro-batch."""


_UNREAD = (
    "NullPointerException",
    "EOFException",
    "Checksum",
    "FileNotFoundException",
    "ZipException",
    "Corrupt",
    "com.fasterxml.jackson",
)
"""Java's errors for a file that is gone, cut off or changed."""
_READERS = ("streaming.state.", "StreamMetadata", "HDFSMetadataLog", "streaming.checkpointing.")
"""Parts of the names of Spark's classes that read a checkpoint."""
_INNER_READERS = (
    "RocksDB",
    "Changelog",
    "StateSchema",
    "StateMetadata",
    "MetadataLog",
    "StreamMetadata",
    "OffsetSeq",
    "CommitLog",
    "CommitMetadata",
    "streaming.checkpointing.",
)
"""Parts of the names of the classes that read a file of it themselves."""
_INNER_FRAMES = 40
_CLASS_ALONE = re.compile(r"[\w.$]+(Exception|Error)")
_CONDITION = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: \w+.*$")
_PASSING = ("No space left", "OutOfMemory", "Interrupted", "Permission denied", "Too many open files", "timed out")
"""Parts of errors that have other causes than the files."""


class FileStore(Protocol):
    """Files by their names, with slashes."""

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder."""

    def get(self, name: str) -> bytes:
        """Contents of a file."""

    def put(self, name: str, blob: bytes) -> None:
        """Writes one, whole or not at all; it is there for good when this returns."""

    def has(self, name: str) -> bool:
        """True if there is one, or a folder."""

    def remove(self, *names: str) -> None:
        """Removes them."""


@dataclass(frozen=True)
class LocalFiles:
    """Files of a folder on this machine."""

    folder: Path

    def names(self, folder: str) -> list[str]:
        return [p.name for p in (self.folder / folder).glob("*") if p.is_file()]

    def get(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def put(self, name: str, blob: bytes) -> None:
        file = self.folder / name
        private_folder(file.parent)
        new = file.with_name(f"{file.name}.new")
        write_private(new, blob)
        to_disk(new)
        new.replace(file)
        to_disk(file.parent)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def remove(self, *names: str) -> None:
        for name in names:
            (self.folder / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class CheckpointProgress:
    """Progress in Spark's checkpoint: the last micro-batch that is planned and the last one done (-1: none), the number
    of entries planned, and whether there is state.
    """

    planned: int
    done: int
    reached: int
    state: bool


@dataclass(frozen=True)
class SparkCheckpoint:
    """The checkpoint of an app's run, `where` Spark has it."""

    files: FileStore
    where: str

    @staticmethod
    def of(home: Path, shared: Shared | None) -> SparkCheckpoint:
        """The checkpoint of the run with the folder `home`, and its folder at a shared address, if any."""
        if shared is None:
            return SparkCheckpoint(LocalFiles(home / "checkpoint"), local(home / "checkpoint"))
        place = shared.below("checkpoint")
        return SparkCheckpoint(place, place.for_spark)

    def check_logs(self) -> None:
        """Raise SparkStreamError if the last entries of Spark's logs of micro-batches, which it continues from, or the
        query's metadata are not what it writes.
        """
        newest = self._newest("offsets")
        if newest < 0 and self._newest("commits") < 0:
            return
        if not self.files.has("metadata"):
            raise self.damaged_error("/metadata is gone")
        forms = [("metadata", is_query_id)]
        forms += [(f"{log}/{b}", is_log_entry) for log in ("offsets", "commits") for b in self._batches(log)[-2:]]
        for name, has_form in forms:
            if not has_form(self.files.get(name)):
                raise self.damaged_error(f"/{name} cannot be read: it was cut off or changed")
        ends = {batch: self._end(batch) for batch in self._batches("offsets")[-2:]}
        if ends and ends[newest] < max(ends.values()):
            raise self.damaged_error(f"/offsets/{newest} ends at entry {ends[newest]:,}, before its predecessor")
        if self._newest("commits") > newest:
            raise self.damaged_error(f"/offsets/{self._newest('commits')} is gone")

    def read_progress(self) -> CheckpointProgress:
        """Read Spark's progress."""
        last_planned, last_done = self._newest("offsets"), self._newest("commits")
        entries = 0 if last_planned < 0 else self._end(last_planned)
        return CheckpointProgress(last_planned, last_done, entries, self.files.has("state"))

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        """The number of the last micro-batch that is planned, and its entries: the first, and the first after it."""
        batch = self._newest("offsets")
        first = self._end(batch - 1) if self.files.has(f"offsets/{batch - 1}") else 0
        return batch, (first, 0 if batch < 0 else self._end(batch))

    def done(self) -> tuple[int, int]:
        """(number of the last micro-batch that is done, its last entry); -1 for none."""
        batch = self._newest("commits")
        return (-1, -1) if batch < 0 else (batch, self._end(batch) - 1)

    def done_offset(self) -> dict[str, int] | None:
        """The place in the journal (`journal.entries_from`) after the last done entry; None if none is done."""
        batch = self._newest("commits")
        return None if batch < 0 else self._offset(batch)

    def planned_offset(self) -> dict[str, int] | None:
        """The place in the journal after the last planned entry; None if none is planned. Raises as `_offset` does."""
        batch = self._newest("offsets")
        return None if batch < 0 else self._offset(batch)

    def clear_half_written(self) -> None:
        """Removes the files of a query that ended in the middle of a write to its logs: Spark refuses to plan its first
        micro-batch beside such a file (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY). No query may run.
        """
        for log in ("offsets", "commits"):
            self.files.remove(*(f"{log}/{name}" for name in self.files.names(log) if _HALF_WRITTEN.fullmatch(name)))

    def _newest(self, log: str) -> int:
        """The highest number of a micro-batch among the files of a log of Spark's; -1 for none."""
        return max(self._batches(log), default=-1)

    def _batches(self, log: str) -> list[int]:
        """The numbers of the micro-batches in a log of Spark's."""
        return sorted(int(name) for name in self.files.names(log) if name.isdecimal())

    def _end(self, batch: int) -> int:
        """The entry at which a micro-batch ends, from Spark's log: a version, metadata, then one offset per source.
        Raises as `_offset` does."""
        return self._offset(batch)["seq"]

    def _offset(self, batch: int) -> dict[str, int]:
        """The place in the journal at which a micro-batch ends. Raises SparkStreamError if Spark's log was cut off
        or changed."""
        try:
            offset = json.loads(self.files.get(f"offsets/{batch}").decode().splitlines()[-1])
            return {name: int(offset[name]) for name in ("seq", "at", "skip")}
        except FileNotFoundError:
            raise self.damaged_error(f"/offsets/{batch} is gone") from None
        except (IndexError, ValueError, KeyError, TypeError, RecursionError):
            raise self.damaged_error(f"/offsets/{batch} cannot be read: it was cut off or changed") from None

    def damaged_error(self, what: str) -> SparkStreamError:
        """The error for a checkpoint of which `what` is true, with the ways out."""
        return SparkStreamError(
            f"{self.where.removeprefix('file://')}{what}. {AGAIN_FROM_JOURNAL}. Or put the "
            f"checkpoint back from a copy; {BEGIN_ANEW}."
        )

    def damage(self, text: str, trace: str = "") -> str | None:
        """The line that says of an error of Spark's, with Java's `trace`, that it cannot read the checkpoint; None if
        it failed otherwise."""
        place = self.where.removeprefix("file://")
        if is_own(text) or any(name in text for name in _PASSING):
            return None
        lines = f"{text}\n{trace}".rpartition("Caused by: ")[2].splitlines()
        frames = [line for line in lines if line.lstrip().startswith("at ")][:_INNER_FRAMES]
        is_read_error = any(name in text for name in _UNREAD) and any(part in text for part in (place, *_READERS))
        if not is_read_error and not any(reader in frame for frame in frames for reader in _INNER_READERS):
            return None
        if isinstance(self.files, LocalFiles):
            for file, reason in list_damaged(self.files.folder):
                return str(self.damaged_error(f"/{file.relative_to(self.files.folder)} is damaged: {reason}"))
        cause = _CONDITION.sub("", cause_of(text))
        reason = "" if _CLASS_ALONE.fullmatch(cause) or "no cause" in cause else f": {cause.rstrip('.')}"
        return str(self.damaged_error(f" cannot be read{reason}"))


def local(path: Path) -> str:
    """A path on this machine as Spark takes it: with its scheme, and nothing escaped."""
    return f"file://{path.absolute()}"
