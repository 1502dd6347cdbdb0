"""The checkpoint of a streaming query of Spark's, such as one over `siddhi()`, checked without Spark.

Spark continues from the last entries of its logs of micro-batches (`offsets`, `commits`), from what sources know of
their files (`sources`), and from the version of the state that follows the last commit (`state`).
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .spark_files import has_log_head, is_log_entry, is_query_id, list_damaged, list_unchecked

_LOGS = ("offsets", "commits")
_VERSION = re.compile(r"(\d+)(?:_[0-9a-f-]+)?\.(zip|snapshot|changelog|delta)")
"""A file of a version of the state: whole, or what has changed since the version before."""
_WHOLE = ("zip", "snapshot")
_MOST_METADATA = 1 << 24
"""Bytes of the list of a version's files."""


@dataclass(frozen=True)
class QueryCheckpoint:
    """The `checkpointLocation` of a query, a folder on this machine. No method raises for what is damaged."""

    folder: Path

    def is_there(self) -> bool:
        """True if the folder has a query's checkpoint, or parts of one."""
        return (self.folder / "metadata").is_file() or any((self.folder / log).is_dir() for log in _LOGS)

    def list_damage(self) -> Iterator[str]:
        """A sentence for each part that is not what Spark wrote, or that is gone."""
        for file, reason in list_damaged(self.folder):
            yield f"the file {file} is damaged: {reason}"
        yield from self._part_damage()
        for file in list_unchecked(self.folder):
            yield f"the checksum beside {file} is gone: a change of the file could not be told"

    def has_state(self) -> bool:
        """True if there is a folder of state: all queries have one but those that keep nothing."""
        return (self.folder / "state").is_dir()

    def _part_damage(self) -> Iterator[str]:
        last_plan, last_commit = self._newest("offsets"), self._newest("commits")
        if last_plan < 0 and last_commit < 0:
            return
        metadata = self.folder / "metadata"
        if not metadata.exists():
            yield f"{metadata} is gone"
        elif not is_query_id(_read(metadata)):
            yield f"{metadata} cannot be read: it was cut off or changed"
        yield from self._log_damage(last_plan, last_commit)
        yield from self._source_damage(last_plan)
        yield from self._state_damage(last_plan, last_commit)

    def unfinished_batch(self) -> int | None:
        """The micro-batch that is planned and has no commit, which the next start does (again); None if there is none.
        """
        last_plan, last_commit = self._newest("offsets"), self._newest("commits")
        return last_plan if last_plan == last_commit + 1 else None

    # ------------------------------------------------------------------------------------------------------- logs

    def _numbers(self, log: str) -> list[int]:
        return sorted(int(f.name) for f in (self.folder / log).glob("[0-9]*") if f.name.isdecimal())

    def _newest(self, log: str) -> int:
        return max(self._numbers(log), default=-1)

    def _log_damage(self, last_plan: int, last_commit: int) -> Iterator[str]:
        for log in _LOGS:
            numbers = self._numbers(log)
            yield from _gaps(self.folder / log, numbers, numbers[0] if numbers else 0, numbers[-1] if numbers else 0)
            for number in numbers:
                if not has_log_head(_read(self.folder / log / str(number))):
                    yield f"{self.folder / log / str(number)} cannot be read: it was cut off or changed"
        yield from _gaps(self.folder / "commits", (), last_commit + 1, last_plan)
        yield from _gaps(self.folder / "offsets", (), last_plan + 1, last_commit + 1)
        times: dict[int, int] = {}
        for number in self._numbers("offsets"):
            time = self._plan(number).get("batchTimestampMs")
            if isinstance(time, int) and times.setdefault(time, number) != number:
                yield f"{self.folder / 'offsets' / str(number)} is a copy of micro-batch {times[time]}"

    def _lines(self, number: int) -> list[Any]:
        """The lines of a planned micro-batch: its settings, and an offset for each source; none if it is damaged."""
        try:
            text = _read(self.folder / "offsets" / str(number)).decode()
            return [None if line == "-" else json.loads(line) for line in text.splitlines()[1:]]
        except (ValueError, RecursionError):
            return []

    def _plan(self, number: int) -> dict[str, Any]:
        settings = next(iter(self._lines(number)), None)
        return settings if isinstance(settings, dict) else {}

    # ---------------------------------------------------------------------------------------------------- sources

    def _source_damage(self, last_plan: int) -> Iterator[str]:
        """Sources of files have a log of their own, up to the entry that the last offset names."""
        for source, offset in enumerate(self._lines(last_plan)[1:]):
            last = offset.get("logOffset") if isinstance(offset, dict) else None
            if not isinstance(last, int) or last < 0:
                continue
            log = self.folder / "sources" / str(source)
            files = {f.name for f in log.glob("[0-9]*")}
            compact_numbers = (n.removesuffix(".compact") for n in files if n.endswith(".compact"))
            first = max((int(n) for n in compact_numbers if n.isdecimal()), default=-1) + 1
            numbers = sorted(int(n) for n in files if n.isdecimal())
            for sentence in _gaps(log, numbers, first, last + 1):
                yield f"{sentence}: the source would read its files again, or leave some out"
            for name in sorted(files):
                if not is_log_entry(_read(log / name)):
                    yield f"{log / name} cannot be read: it was cut off or changed"

    # ------------------------------------------------------------------------------------------------------ state

    def _state_damage(self, last_plan: int, last_commit: int) -> Iterator[str]:
        state = self.folder / "state"
        operators = sorted(f for f in state.glob("[0-9]*") if f.is_dir())
        settings = self._plan(last_plan).get("conf")
        partitions = str(settings.get("spark.sql.shuffle.partitions")) if isinstance(settings, dict) else ""
        if last_commit >= 0 and self.has_state() and not operators:
            yield f"{state} is empty: the state is gone"
        for operator in operators:
            if not any((operator / "_metadata").rglob("[0-9m]*")):
                yield f"{operator / '_metadata'} is gone"
            if not any(f.is_file() for f in (operator / "_stateSchema").rglob("[0-9]*")) and _has_schema(operator):
                yield f"{operator / '_stateSchema'} is gone"
            if last_commit < 0:
                continue
            numbers = sorted(int(f.name) for f in operator.glob("[0-9]*") if f.name.isdecimal())
            yield from _gaps(operator, numbers, 0, int(partitions) if partitions.isdecimal() else 0)
            for folder in (operator / str(number) for number in numbers):
                stores = [folder, *sorted(f for f in folder.glob("*") if f.is_dir() and f.name != "SSTs")]
                versions = [files for store in stores if (files := _versions(store))]
                if not versions:
                    yield f"{folder} is without its state"
                for files in versions:
                    yield from _version_damage(files, last_commit + 1, last_plan + 1)


def _read(file: Path) -> bytes:
    """The content of a file; empty if it is gone, or cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _gaps(folder: Path, numbers: Sequence[int], first: int, end: int) -> Iterator[str]:
    """A sentence for each run of numbers from `first` to before `end` that are not among the sorted `numbers`."""
    for number in [*(n for n in numbers if first <= n < end), end]:
        if number - first == 1:
            yield f"{folder / str(first)} is gone"
        elif number > first:
            yield f"{folder / str(first)} to {number - 1} are gone"
        first = number + 1


def _has_schema(operator: Path) -> bool:
    """True if an operator has the schema of its state in a folder of its own, as that of `siddhi()` has."""
    files = [f for f in (operator / "_metadata").rglob("[0-9m]*") if not f.name.endswith(".crc")]
    return any(b"_stateSchema/" in _read(file) for file in files)


def _versions(store: Path) -> dict[tuple[int, str], Path]:
    """The files of a store's versions, by number and kind."""
    matches = ((f, _VERSION.fullmatch(f.name)) for f in store.glob("[0-9]*"))
    return {(int(match[1]), match[2]): f for f, match in matches if match}


def _version_damage(files: dict[tuple[int, str], Path], next_version: int, last: int) -> Iterator[str]:
    """The missing parts of version `next_version` of a store, and a version after `last`."""
    store = next(iter(files.values())).parent
    snapshot_version = max((number for number, kind in files if kind in _WHOLE and number <= next_version), default=0)
    numbers = sorted({number for number, _ in files})
    for sentence in _gaps(store, numbers, snapshot_version + 1, next_version + 1):
        yield f"of the versions of the state, {sentence}"
    if numbers[-1] > last:
        yield f"{store} has version {numbers[-1]} of the state, and the logs end with micro-batch {last - 1}"
    snapshot = files.get((snapshot_version, "zip"))
    for name in () if snapshot is None else _names_in(snapshot):
        if not (store / "SSTs" / name).exists():
            yield f"{store / 'SSTs' / name}, a part of the state, is gone"


def _names_in(snapshot: Path) -> list[str]:
    """The files beside a whole version that belong to it."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            if archive.getinfo("metadata").file_size > _MOST_METADATA:
                return []
            content = json.loads(archive.read("metadata").decode().splitlines()[-1])
            return [str(file["dfsSstFileName"]) for file in content["sstFiles"]]
    except (OSError, zipfile.error, zlib.error, LookupError, TypeError, ValueError, RuntimeError):
        return []  # its checksum tells that it is damaged
