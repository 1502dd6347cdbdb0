"""Temporary folders that do not outlive their process, however it ends: folders of a killed one are removed at the next
start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from ..system import is_mine, runs

_PREFIX = "sparkstream-"
_OWNER = ".owner"


def temporary(purpose: str) -> Path:
    """A new temporary folder, this user's alone. Folders of processes that have ended are removed first."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
    (folder / _OWNER).write_text(str(os.getpid()), encoding="ascii")
    return folder


def sweep() -> None:
    """Removes the temporary folders of this user's processes that have ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            owner = int((folder / _OWNER).read_text(encoding="ascii"))
            if is_mine(folder.stat()) and not runs(owner):
                shutil.rmtree(folder, ignore_errors=True)
