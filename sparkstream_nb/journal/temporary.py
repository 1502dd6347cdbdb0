"""Temporary folders that do not outlive their process, however it ends: folders of a killed one are removed at the next
start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from ..system import is_mine, runs

PREFIX = "sparkstream-"
OWNER = ".owner"
"""The file with the number of the process that a folder belongs to."""


def temporary(purpose: str, parent: str | None = None) -> Path:
    """A new temporary folder, this user's alone, in `parent` (None: the system's folder for such). Folders of processes
    that have ended are removed there first.
    """
    sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=parent))
    (folder / OWNER).write_text(str(os.getpid()), encoding="ascii")
    return folder


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A new folder inside of a temporary one, which is removed in the end, also where SIGTERM ends the process."""
    folder = temporary(purpose)
    inner = folder / "folder"
    inner.mkdir(0o700)

    def end_process(number: int, _: object) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    here = threading.current_thread() is threading.main_thread()
    handles_signal = here and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if handles_signal:
        signal.signal(signal.SIGTERM, end_process)
    try:
        yield inner
    finally:
        if handles_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: str | None = None) -> None:
    """Removes the temporary folders of this user's processes that have ended."""
    for folder in Path(tempfile.gettempdir() if parent is None else parent).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            owner = int((folder / OWNER).read_text(encoding="ascii"))
            if is_mine(folder.stat()) and not runs(owner):
                shutil.rmtree(folder, ignore_errors=True)
