"""The package's folder in the user's cache directory. Its files can be rebuilt; they only save time."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from .system import is_mine, others_may_write, put_in_place, user_number


def cache_folder() -> Path:
    """The package's folder in the user's cache; a new temporary folder where there can be none."""
    folder = _folder()
    return Path(tempfile.mkdtemp(prefix="sparkstream_nb-")) if folder is None else folder


def shared_temporary_folder() -> Path:
    """A folder for temporary files that all processes of this user share; one of this process alone where another
    user could write into that.
    """
    folder = Path(tempfile.gettempdir()) / f"sparkstream_nb-{user_number()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and is_mine(status) and not others_may_write(status):
            return folder
    return Path(tempfile.mkdtemp(prefix="sparkstream_nb-"))


def _folder() -> Path | None:
    """The folder in the user's cache; None if nothing can be written there."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparkstream_nb"
        base.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there is no home
        return None
    return base if os.access(base, os.W_OK | os.X_OK) else None


def read_cached(name: str) -> bytes | None:
    """Return the content that `keep` stored under `name`; None if there is none, or another user owns it."""
    folder = _folder()
    if folder is None:
        return None
    try:
        with (folder / name).open("rb") as file:
            return file.read() if is_mine(os.fstat(file.fileno())) else None
    except OSError:
        return None


def keep(name: str, content: bytes) -> None:
    """Store `content` under `name`, atomically. Does nothing if the folder cannot be written."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        handle, new = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            put_in_place(Path(new), folder / name)
        except BaseException:
            os.unlink(new)
            raise
