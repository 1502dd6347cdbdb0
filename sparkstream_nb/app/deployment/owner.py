"""One owner of an app's folder: a lock that a process takes before it touches anything there.

It is a lock of the open file (`system.lock`): it ends with the process, however that ends, and not when the process
closes the file elsewhere, as when the folder is copied. Programs that are started do not inherit the file, and forked
processes close it. The file says who holds the lock; on Windows others cannot read it meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import threading
from pathlib import Path
from typing import IO

from ...errors import Misuse, printable
from ...journal.private import private_file, private_folder
from ...system import WINDOWS, after_fork_in_child, is_locked, is_mine, lock

LOCK = "lock"
"""The file's name. Who removes it holds the lock, and who takes the lock looks whether the file is still there: else
two processes could lock two files of that name."""

_open_locks: dict[tuple[int, int], tuple[str, IO[str]]] = {}
"""The apps of this process by their locked folders, each with the open file."""
_lock = threading.Lock()
_CONNECTION_FILE = re.compile(r"kernel-([\w-]+)\.json$")
_NAME = 100
"""Characters of a program's name in the file."""


class Ownership:
    """The ownership of an app's folder, until `release`."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        """Made by `acquire_home`."""
        self._path, self._identity, self._file = path, _identity(path), file

    def release(self) -> None:
        """Lets others have the folder. A second call does nothing."""
        with _lock:
            if not self._file.closed:
                _open_locks.pop(self._identity, None)
                self._file.close()

    def remove(self) -> None:
        """Lets others have the folder, with the lock's file removed: before the lock is released, so that no process
        takes it in between; on Windows, which removes no open file, right after."""
        if WINDOWS:
            self.release()
        self._path.unlink(missing_ok=True)
        self.release()


def acquire_home(home: Path, app: str) -> Ownership:
    """Takes the folder `home` for `app`: makes it if need be, and closes it to other users. Raises `Misuse` if
    another process, or another app of this one, has it."""
    private_folder(home)
    if is_mine(home.stat()):
        home.chmod(0o700)
    path = home / LOCK
    with _lock:
        other = _open_locks.get(_identity(path)) if path.exists() else None
        if other is not None:
            raise Misuse(f"{home} is the folder of app '{other[0]}' of this process: give '{app}' another one as home")
        file = private_file(path).open("a+", encoding="utf-8", errors="replace")
        try:
            lock(file)
            if not path.exists() or os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                raise BlockingIOError(errno.EAGAIN, "the folder is being removed")
        except OSError as e:
            with file:
                if e.errno not in (errno.EACCES, errno.EAGAIN):
                    raise Misuse(f"{home} cannot be locked for app '{app}': {e.strerror}") from None
                raise Misuse(
                    f"{home} is in use by {_describe_owner(file)}: "
                    "stop the app there, or end that process, or give another folder as home"
                ) from None
        file.seek(0)
        file.truncate()
        program = _describe_program()
        which = f" ({program})" if program else ""
        file.write(f"process {os.getpid()} on {socket.gethostname()}{which}, app '{app}'\n")
        file.flush()
        _open_locks[_identity(path)] = app, file
        return Ownership(path, file)


def owner_of(home: Path) -> str | None:
    """Describes the owner of the folder `home`; None if it has none. Changes nothing."""
    path = home / LOCK
    if not path.exists():
        return None
    with _lock:
        if _identity(path) in _open_locks:
            return "this process"
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                return _describe_owner(file) if is_locked(file) else None
        except OSError:
            return "another user"


def _describe_owner(file: IO[str]) -> str:
    """Who has locked the folder, as its file says."""
    try:
        file.seek(0)
        return file.read().strip() or "another process"
    except OSError:  # Windows keeps it to who has locked it
        return "another process"


def _describe_program() -> str:
    """This process for the user of another one: `notebook 04_alerts.ipynb`, else its kernel's id or its script; empty
    for a Python without a script."""
    first = Path(sys.argv[0]).name if sys.argv else ""
    if first == "ipykernel_launcher.py":
        notebook = os.environ.get("JPY_SESSION_NAME")
        kernel = next((m[1] for a in sys.argv if (m := _CONNECTION_FILE.search(a))), "")
        name = f"notebook {Path(notebook).name}" if notebook else f"notebook kernel {kernel}".strip()
    else:
        name = "" if first in ("", "-c", "-m") else first
    return printable(" ".join(name.split()))[:_NAME]


def _release_after_fork() -> None:
    """A forked process owns nothing: the file that it shares would hold the lock as long as it runs."""
    for _, file in _open_locks.values():
        file.close()
    _open_locks.clear()


after_fork_in_child(_release_after_fork)


def same_folder(one: Path, other: Path) -> bool:
    """True if two paths are one folder."""
    return one.exists() and other.exists() and one.samefile(other)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
