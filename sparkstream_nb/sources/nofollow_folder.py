"""A folder whose files are opened without following a link, even if others put one there meanwhile.

A source was allowed to read a path, after all links in it were resolved. One that is put there later, in place of the
file or of a folder above it, would lead elsewhere. So each part of the path is opened below the one before it and must
not be a link (`openat`, O_NOFOLLOW): between looking and opening there is no gap. On a platform without that, the path
is resolved before and after, and the open file is compared with the present one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ..system import PLAINLY, put_in_place, sync
from .reader import SourceUnavailable

_BELOW = {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd and hasattr(os, "O_PATH")


class Linked(OSError):
    """A name refers to a symbolic link, or to something else that is not a plain file."""


class Folder:
    """The folder `path`, which has no link in it; with `make`, it is created if missing. Raises SourceUnavailable if it
    is missing, or has a link now.

    A context manager: it closes its descriptor at the end.
    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        self._at = _open_descriptor(path, make) if _BELOW else None
        if self._at is None:
            if make:
                path.mkdir(parents=True, exist_ok=True)
            _check_resolved(path)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._at is not None:
            os.close(self._at)
            self._at = None

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Entries of the folder, in no order. A path of an entry means nothing: use its name."""
        if self._at is None:
            with os.scandir(self.path) as entries:
                yield from entries
            return
        # A descriptor of O_PATH cannot be listed.
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._at)
        try:
            with os.scandir(descriptor) as entries:
                yield from entries
        finally:
            os.close(descriptor)

    def stat(self, name: str) -> os.stat_result:
        """The file of this name. Raises FileNotFoundError, and Linked if it is not a plain file."""
        return _plain(os.stat(self._name(name), follow_symlinks=False, **self._dir()), self.path / name)

    def open(self, name: str) -> BinaryIO:
        """The file of this name, for reading. Raises OSError, and Linked if it is not a plain file."""
        path = self.path / name
        try:
            file = os.open(self._name(name), os.O_RDONLY | PLAINLY, **self._dir())
        except OSError:
            self.stat(name)  # a link is one, in words
            raise
        try:
            file_stat = _plain(os.fstat(file), path)
            if self._at is None and not os.path.samestat(file_stat, self._looked_at(name)):
                raise Linked(f"{path} is a symbolic link now")
            return os.fdopen(file, "rb")
        except BaseException:
            os.close(file)
            raise

    def unlink(self, name: str) -> None:
        """Removes a file."""
        os.unlink(self._name(name), **self._dir())

    def move(self, name: str, to: Folder) -> None:
        """Moves a file into another folder, under a number where its name is taken there."""
        target = to.free(name)
        try:
            if self._at is None or to._at is None:
                put_in_place(self.path / name, to.path / target)
            else:
                os.rename(name, target, src_dir_fd=self._at, dst_dir_fd=to._at)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(name, to, target)
            self.unlink(name)

    def free(self, name: str) -> str:
        """A name that nothing in it has: `name`, or it with a number."""
        parts, out, number = Path(name), name, 1
        while True:
            try:
                os.stat(self._name(out), follow_symlinks=False, **self._dir())
            except FileNotFoundError:
                return out
            out, number = f"{parts.stem}-{number}{parts.suffix}", number + 1

    # ------------------------------------------------------------------------------------------------------ the rest

    def _copy(self, name: str, to: Folder, target: str) -> None:
        """Copies a file to another disk: whole, or not at all."""
        new = f".{target}.new"
        with self.open(name) as source:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAINLY
            with contextlib.suppress(FileNotFoundError):
                to.unlink(new)  # of a crash
            with os.fdopen(os.open(to._name(new), flags, 0o666, **to._dir()), "wb") as copy:
                shutil.copyfileobj(source, copy)
                copy.flush()
                sync(copy.fileno())
        if to._at is None:
            put_in_place(to.path / new, to.path / target)
        else:
            os.rename(new, target, src_dir_fd=to._at, dst_dir_fd=to._at)

    def _name(self, name: str) -> str:
        """A name below the open folder; a whole path if that is not supported."""
        return name if self._at is not None else str(self.path / name)

    def _dir(self) -> dict[str, int]:
        return {} if self._at is None else {"dir_fd": self._at}

    def _looked_at(self, name: str) -> os.stat_result:
        _check_resolved(self.path)
        return os.stat(self.path / name, follow_symlinks=False)


def _plain(file_stat: os.stat_result, path: Path) -> os.stat_result:
    if not stat.S_ISREG(file_stat.st_mode):
        what = "a symbolic link, which is not followed" if stat.S_ISLNK(file_stat.st_mode) else "no plain file"
        raise Linked(f"{path} is {what}")
    return file_stat


def _open_descriptor(path: Path, make: bool) -> int:
    """A descriptor of a folder, each part of whose path is a folder itself."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(path.anchor, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for i, part in enumerate(path.parts[1:], 2):
        try:
            if make:
                with contextlib.suppress(OSError):  # it is there, as a rule; if not, opening fails
                    os.mkdir(part, dir_fd=at)
            below = os.open(part, flags, dir_fd=at)
        except OSError as error:
            here = Path(*path.parts[:i])
            raise SourceUnavailable(_why(here, path, error)) from None
        finally:
            os.close(at)
        at = below
    return at


def _why(here: Path, path: Path, error: OSError) -> str:
    """Why the part `here` of a path could not be opened."""
    if here.is_symlink():
        return f"{here} is a symbolic link now, which is not followed: deploy the app again if it is right"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"there is no folder {path}"
    return f"{here}: {error.strerror}"


def _check_resolved(path: Path) -> None:
    if not path.is_dir():
        raise SourceUnavailable(f"there is no folder {path}")
    real_path = Path(os.path.realpath(path))
    if real_path != path:
        raise SourceUnavailable(
            _why(next((p for p in (*reversed(path.parents), path) if p.is_symlink()), path), path, OSError())
        )
