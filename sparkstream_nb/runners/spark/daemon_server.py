"""A fork server for sessions that this package did not make: Spark's Python daemon is an interpreter of its own there,
and the first of its workers that needs an engine host starts a server beside the daemon, which ends with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from ...journal.private import UMASK
from ...journal.temporary import OWNER, PREFIX
from ...system import CAN_FORK, is_mine, unix_socket
from .hosts import READY, SOCKET

_MODULE = f"{__package__}.forks"


def daemon_server() -> Path | None:
    """The folder of the server of this worker's daemon; it is started where none is there. None until it is ready, and
    where there can be none: the worker does the work itself then."""
    if not CAN_FORK or not hasattr(os, "pidfd_open"):
        return None
    daemon = os.getppid()
    folder = _folder_of(daemon)
    try:
        if (folder / READY).exists():
            return folder if is_mine(folder.stat()) else None
        folder.mkdir(0o700)
    except OSError:  # another worker is starting it, or it is not ours
        return None
    try:
        _start(folder, daemon)
    except OSError:  # no place for a socket, or no process may be started
        shutil.rmtree(folder, ignore_errors=True)
    return None


def remove_if_gone(folder: Path) -> None:
    """Removes the folder of a server that was killed, so that another one is started."""
    try:
        with unix_socket() as server:
            server.connect(str(folder / SOCKET))
    except ConnectionRefusedError:
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass


@lru_cache(maxsize=1)
def _folder_of(daemon: int) -> Path:
    """The folder by the daemon's number and when it began, as numbers are used again."""
    began = os.stat(f"/proc/{daemon}").st_mtime_ns if os.path.exists(f"/proc/{daemon}") else 0
    return Path(tempfile.gettempdir()) / f"{PREFIX}hosts-{daemon}-{began:x}"


def _start(folder: Path, daemon: int) -> None:
    """Starts a server whose input ends when the daemon does."""
    daemon_end = os.pidfd_open(daemon)
    try:
        with unix_socket() as listener:
            listener.bind(str(folder / SOCKET))
            listener.listen(64)
            server = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(listener.fileno()), str(folder)],
                stdin=daemon_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                # Spark may have added folders of modules.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
                umask=UMASK,
                start_new_session=True,
            )
    finally:
        os.close(daemon_end)
    with contextlib.suppress(OSError):
        (folder / OWNER).write_text(str(server.pid), encoding="ascii")
