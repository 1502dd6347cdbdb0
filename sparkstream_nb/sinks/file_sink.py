"""Files as targets: one that grows, one that each message replaces, folders of files, and files that events name.

A growing file is made exact by its length, which is kept with the sink's position: bytes that a crash left behind that
length are cut off, and written again. It is locked while a sink has it. A file named by its micro-batch is whole or not
there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from ..errors import shown
from ..mapping import Message
from ..system import PLAINLY, lock, put_in_place, read_at, sync, to_disk, write_at
from .header_texts import text_fault
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

FILE_NAME = "file.uri"
"""The property of a message that names its file."""
MOST_OPEN = 64
"""Files that events name that are open at once."""
_LONGEST_NAME = 250
"""Maximum bytes of a file name, less the suffix of a file that is being written."""


@dataclass(frozen=True)
class FilePlace:
    """Place of a file sink: `path` is below `root`, the folder that was granted. `head` is the first line of each file
    with its line break, empty for none; `between` follows each message.
    """

    path: Path
    root: Path
    head: bytes = b""
    between: bytes = b"\n"

    def folder(self, folder: Path) -> Path:
        """Makes `folder`, if it is still below the granted one. Raises TargetUnavailable: links may have been changed
        meanwhile.
        """
        real_folder = folder.resolve()
        if real_folder != self.root and self.root not in real_folder.parents:
            raise TargetUnavailable(f"{folder} leads out of {self.root}, which is what was allowed")
        real_folder.mkdir(parents=True, exist_ok=True)
        return real_folder


_TAIL = 4096
"""Bytes at the end of a file that are compared before more is added."""


class _FileTarget(Target):
    """Common base of the targets of this module."""

    at_once = 5_000


class GrowingFile(_FileTarget):
    """One file to which messages are added. With `roll`, a folder of such files, each of that many bytes or a message
    more, called after `prefix` and their number.

    Before it adds something, it looks at the length of the file and at its last bytes: others that cut or change it are
    told of once by a warning.
    """

    def __init__(self, place: FilePlace, roll: int | None = None, prefix: str = "", extension: str = "") -> None:
        self.place, self._roll, self._prefix, self._extension = place, roll, prefix, extension
        self._file: int | None = None
        self._length = self._number = 0
        self._has_rest = False
        self._tail = 0
        """CRC-32 of the last bytes that were written, `_TAIL` of them at most."""
        self._last = b""
        """These bytes."""

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        self._number = int(state.get("number", 0))
        self._open_file(state)
        return self.state()

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        return 0 if self.renew_if_needed() else self.add(messages)  # another file's length has to be kept first

    def renew_if_needed(self) -> bool:
        """Begins another file where the one that is open is full, or was moved away by others; whether it did."""
        full = self._roll is not None and self._length >= self._roll
        if not full and self._is_there():
            return False
        self.close()
        self._number += full
        self._open_file({})
        return True

    def add(self, messages: Sequence[Message]) -> int:
        """Writes messages into the file that is open; how many fit."""
        assert self._file is not None
        count, size = 0, self._length
        for count, message in enumerate(messages, 1):  # noqa: B007
            size += len(message.body) + len(self.place.between)
            if self._roll is not None and size >= self._roll:
                break
        if self._has_rest:
            self._cut_off()
        self._check_unchanged(os.fstat(self._file).st_size)
        head = [self.place.head] if self._length == 0 else []
        data = b"".join([*head, *(m.body + self.place.between for m in messages[:count])])
        try:
            _write(self._file, data, self._length)
            sync(self._file)
        except OSError as error:
            self._cut_off()
            raise TargetUnavailable(f"{self._path()}: {error.strerror}") from None
        self._length += len(data)
        self._last = (self._last + data)[-_TAIL:]  # what is in the file by now may be of others
        self._tail = crc32(self._last)
        return count

    def _cut_off(self) -> None:
        """Remove what a failed call wrote, at once or before the next one writes."""
        assert self._file is not None
        self._has_rest = True
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._length)
            self._has_rest = False

    def _check_unchanged(self, size: int) -> None:
        """Warn if the file is not as it was left. What is written continues where the file ended, so that the rest of
        it stays as others made it.
        """
        path = self._path()
        if size < self._length:
            what = f"has {size:,} bytes, where {self._length:,} were written: others have cut it"
        elif size > self._length:
            what = f"has {size:,} bytes, where {self._length:,} were written: others have added to it"
        elif crc32(self._read_last()) != self._tail:
            what = "does not end as it was written: others have changed it"
        else:
            return
        self.warnings = [*self.warnings, f"{path} {what}"]
        self._length = size
        self._last = self._read_last()

    def _read_last(self) -> bytes:
        assert self._file is not None
        first = max(0, self._length - _TAIL)
        return read_at(self._file, self._length - first, first)

    def state(self) -> Mapping[str, Any]:
        inode = 0 if self._file is None else os.fstat(self._file).st_ino
        return {
            "file": str(self._path()), "inode": inode, "length": self._length, "number": self._number,
            "tail": self._tail,
        }  # fmt: skip

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _path(self) -> Path:
        if self._roll is None:
            return self.place.path
        return self.place.path / f"{self._prefix}-{self._number:06d}.{self._extension}"

    def _open_file(self, state: Mapping[str, Any]) -> None:
        """Open the file, cut to the length in `state`; at its end if it is another one."""
        path = self._path()
        file = _open_locked(self.place.folder(path.parent) / path.name)
        try:
            file_stat = os.fstat(file)
            is_same_file = (state.get("file"), state.get("inode")) == (str(path), file_stat.st_ino)
            self._file, self._length = file, int(state["length"]) if is_same_file else file_stat.st_size
            self._tail = int(state["tail"]) if is_same_file and "tail" in state else crc32(self._read_last())
            if is_same_file and file_stat.st_size <= self._length:  # more is what a crash left
                self._check_unchanged(file_stat.st_size)
            self._last = self._read_last()
            self._tail = crc32(self._last)
            if self._length < file_stat.st_size:
                os.ftruncate(file, self._length)
                sync(file)
        except BaseException:
            self._file = None
            os.close(file)
            raise

    def _is_there(self) -> bool:
        """True if the path still names the file that is open: others may have moved it away."""
        assert self._file is not None
        try:
            return os.stat(self._path()).st_ino == os.fstat(self._file).st_ino
        except FileNotFoundError:
            return False


class NamedFiles(_FileTarget):
    """Files below `place.path`, whose names are `template` filled in with values of each event, to which messages are
    added. Without `append`, each contains only its last message.

    Each is made exact as one file is. The state has the lengths of the open files: others were written to their end,
    and that was kept.
    """

    def __init__(self, place: FilePlace, template: str, append: bool = True) -> None:
        self.place, self._append = place, append
        self.templates: Mapping[str, str] = {FILE_NAME: template}
        self._files: dict[str, GrowingFile] = {}
        """Open files by their names, the longest unused first."""

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, file_state in state.items():  # a crash may have left more in them
            self._file(name).open(file_state)
        self._gather_warnings()
        return self.state()

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        parts: dict[str, list[Message]] = {}
        count = 0
        for message in messages:
            try:
                name = self._name(message.properties[FILE_NAME])
            except Undeliverable:
                if count == 0:
                    raise
                break
            if name not in parts and len(parts) == MOST_OPEN:
                break
            parts.setdefault(name, []).append(message)
            count += 1
        if not self._append:
            for name, file_messages in parts.items():
                ReplacedFile(replace(self.place, path=self.place.path / name)).send(file_messages, places)
            return count
        new_files = self._opened_anew(parts)
        for name in parts:
            new_files = self._files[name].renew_if_needed() or new_files
        if new_files:
            return 0  # their lengths have to be kept first
        for name, file_messages in parts.items():
            self._files[name] = file = self._files.pop(name)  # used last
            file.add(file_messages)
        self._gather_warnings()
        return count

    def _gather_warnings(self) -> None:
        for file in self._files.values():
            self.warnings, file.warnings = [*self.warnings, *file.warnings], ()

    def state(self) -> Mapping[str, Any]:
        return {name: dict(file.state()) for name, file in self._files.items()}

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}

    def _opened_anew(self, names: Mapping[str, Any]) -> bool:
        """Open the files of `names` that are not open, in place of the longest unused; true if there were any."""
        missing = [name for name in names if name not in self._files]
        for name in missing:
            for other in [n for n in self._files if n not in names][: len(self._files) + 1 - MOST_OPEN]:
                self._files.pop(other).close()
            self._file(name).open({})
        return bool(missing)

    def _file(self, name: str) -> GrowingFile:
        self._files[name] = file = GrowingFile(replace(self.place, path=self.place.path / name))
        return file

    def _name(self, text: str) -> str:
        """The name that an event gives. Raises Undeliverable for one that would lead elsewhere, or is none."""
        parts = text.split("/")
        if any(part in ("", ".", "..") or part.startswith(".") for part in parts):
            raise Undeliverable(f"{shown(text)} is not the name of a file: parts of it are empty, or begin with a dot")
        if (fault := "has a backslash in it" if "\\" in text else text_fault(text)) is not None:
            raise Undeliverable(f"{shown(text)} is not the name of a file: it {fault}")
        if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts) or text.count("/") != self._depth:
            raise Undeliverable(f"{shown(text)} is not the name of a file: a value is too long, or has a '/' in it")
        return text

    @property
    def _depth(self) -> int:
        return self.templates[FILE_NAME].count("/")


class ReplacedFile(_FileTarget):
    """A file that has the last message alone (`append='false'`)."""

    def __init__(self, place: FilePlace) -> None:
        self.place = place

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        path = self.place.folder(self.place.path.parent) / self.place.path.name
        try:
            _put(path, self.place.head + messages[-1].body + self.place.between)
        except OSError as error:
            raise TargetUnavailable(f"{path}: {error.strerror}") from None
        return len(messages)

    def close(self) -> None:
        """Nothing is open."""


class BatchFiles(_FileTarget):
    """A folder with a file for each micro-batch, `PREFIX-000000000042.csv`: one that is sent again is the same."""

    by_batch = True

    def __init__(self, place: FilePlace, prefix: str, extension: str) -> None:
        self.place, self._prefix, self._extension = place, prefix, extension
        self._batch: int | None = None
        self._file: int | None = None
        self._length = 0

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        self._folder = self.place.folder(self.place.path)
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        data = b"".join(m.body + self.place.between for m in messages)
        try:
            if self._batch != places[0].batch or self._file is None:
                self.close()
                self._batch, self._length = places[0].batch, 0
                self._file = _open_locked(self._new(places[0].batch))
                os.ftruncate(self._file, 0)
                data = self.place.head + data
            _write(self._file, data, self._length)
        except OSError as error:
            self.close()
            raise TargetUnavailable(f"{self._folder}: {error.strerror}") from None
        self._length += len(data)
        return len(messages)

    def finish(self, batch: int) -> None:
        if self._file is None:
            return  # nothing of it could be written
        try:
            sync(self._file)
            path = self._folder / f"{self._prefix}-{batch:012d}.{self._extension}"
            put_in_place(self._new(batch), path)
            to_disk(self._folder)
        except OSError as error:
            raise TargetUnavailable(f"{self._folder}: {error.strerror}") from None
        finally:
            self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = self._batch = None

    def _new(self, batch: int) -> Path:
        return self._folder / f".{self._prefix}-{batch:012d}.new"


def _open_locked(path: Path) -> int:
    """A file for writing, created if missing, and locked. Raises TargetUnavailable if that fails, or another has it
    locked.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | PLAINLY, 0o666)
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise TargetUnavailable(f"{path}: {why}") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise TargetUnavailable(f"{path} is not a plain file")
        try:
            lock(file)
        except OSError:
            raise TargetUnavailable(f"{path} is in use by another sink") from None
        to_disk(path.parent)
    except BaseException:
        os.close(file)
        raise
    return file


def _write(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        count = write_at(file, view, at)
        view, at = view[count:], at + count


def _put(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.new")
    file = _open_locked(new)
    try:
        os.ftruncate(file, 0)
        _write(file, data, 0)
        sync(file)
    finally:
        os.close(file)
    put_in_place(new, path)
    to_disk(path.parent)
