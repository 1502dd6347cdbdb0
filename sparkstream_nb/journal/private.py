"""Files and folders that only their owner may read and write. An app's files are such: they hold its events."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..errors import SparkStreamError
from ..system import is_trusted, others_may_write, to_disk

UMASK = 0o077
"""Umask of the processes that Spark runs on this machine."""


def private_file(path: Path) -> Path:
    """Create the file if it does not exist; returns `path`."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    return path


def write_private(path: Path, data: bytes | memoryview) -> None:
    """Overwrite the file. It is opened once: some file systems take a millisecond to open an existing file for
    overwriting.
    """
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def private_folder(path: Path) -> Path:
    """Makes the folder, and those that it is to be in, where they are not there; returns `path`."""
    if path.is_dir():
        return path
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(PermissionError):  # one may write to what one may not list
            to_disk(folder.parent)
    return path


def check_private(*folders: Path) -> None:
    """Raises SparkStreamError if others than this user, or root, could put something into one of the folders."""
    for folder in folders:
        folder_stat = folder.stat()
        if not is_trusted(folder_stat):
            advice = "belongs to another user, so its contents are not trusted. Give another folder."
            raise SparkStreamError(f"{folder} {advice}")
        if others_may_write(folder_stat):
            raise SparkStreamError(
                f"{folder} can be written to by other users, so its contents are not trusted. Make it private with "
                "chmod go-w, or give another folder."
            )
