"""Differences between Linux, macOS and Windows: locks, owners of files, processes, memory, syncing to disk.

All that Unix alone has is looked up here, and may be missing: `fcntl`, `resource` and `pwd` are imported nowhere else
(import-linter checks it), and the rest of the package runs where they, `os.fork` and Unix sockets are not there.
`tests/test_systems.py` takes them away. Three programs are left out, which are run only where `CAN_FORK`: the server
that Spark's processes are forked from (`runners/spark/forks.py`), the client that asks it for one
(`runners/spark/forked.py`), and the processes that keep engines (`runners/spark/host.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

fcntl: Any
resource: Any
try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None

WINDOWS = os.name == "nt"
CAN_FORK = hasattr(os, "fork") and hasattr(socket, "AF_UNIX") and hasattr(socket, "send_fds")
"""True if processes can be forked from a server that is asked by a socket of this machine."""
_HAS_OWNERS = hasattr(os, "geteuid")
_SECONDS = 2.0
"""Seconds for which replacing a file is tried again while others have it open."""

# --------------------------------------------------------------------------------------------------------------- files


def path_of(text: str) -> Path:
    """The path that a text is, which may be an address with `file:`. On Windows that of a drive is `file:///C:/...`."""
    path = re.sub(r"^///", "/", text.removeprefix("file:"))
    return Path(re.sub(r"^/(?=[A-Za-z]:)", "", path) if WINDOWS else path)


PLAINLY = 0
"""Flags of `os.open`: of a plain file, without following a link, waiting for a pipe, or changing line ends."""
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOINHERIT", "O_BINARY"):
    PLAINLY |= getattr(os, _name, 0)


def write_at(file: int, data: bytes | memoryview, at: int) -> int:
    """Write into an open file at a place; returns the number of bytes. The file's own position does not matter."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file, data, at)
    os.lseek(file, at, os.SEEK_SET)
    return os.write(file, data)


def read_at(file: int, count: int, at: int) -> bytes:
    """Read up to `count` bytes from byte `at` of an open file."""
    if hasattr(os, "pread"):
        return os.pread(file, count, at)
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, count)


def sync(file: int) -> None:
    """Waits until an open file is on the disk: then it outlives the machine. On macOS `fsync` alone does not say so."""
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        with contextlib.suppress(OSError):  # a file system, such as one of a network, that has none
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
            return
    os.fsync(file)


def to_disk(*paths: Path) -> None:
    """Waits until files and folders are on the disk. Windows has no such thing for folders."""
    for path in paths:
        if not _OPENS_FOLDERS and path.is_dir():
            continue
        # Windows syncs only files that are open for writing.
        handle = os.open(path, os.O_RDONLY if _OPENS_FOLDERS else os.O_RDWR)
        try:
            sync(handle)
        finally:
            os.close(handle)


_OPENS_FOLDERS = hasattr(os, "O_DIRECTORY")


def put_in_place(new: Path, path: Path) -> None:
    """Rename the file `new` to `path` atomically, replacing the file of that name, if any. Windows refuses that while
    the file is open, so it is tried for a while.
    """
    end = time.monotonic() + _SECONDS
    while True:
        try:
            os.replace(new, path)
        except PermissionError:
            if not WINDOWS or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


# --------------------------------------------------------------------------------------------------------------- locks


def lock(file: IO[Any] | int, *, wait: bool = False) -> None:
    """Locks an open file, for as long as this process has it open and lives. Raises BlockingIOError if another has
    locked it, unless it is to `wait`, and OSError if it cannot be locked.

    On Windows, others cannot read the first 64 KiB of a file that is locked.
    """
    _lock(file, shared=False, wait=wait)


def is_locked(file: IO[Any]) -> bool:
    """True if another has locked a file, which is open here and locked from now on: with a shared lock if the system
    has such locks, so that two checks do not find each other.
    """
    try:
        _lock(file, shared=not WINDOWS, wait=False)
    except OSError:
        return True
    return False


def _lock(file: IO[Any] | int, *, shared: bool, wait: bool) -> None:
    import portalocker  # it loads much that only looking at texts needs not

    flags = portalocker.LockFlags.SHARED if shared else portalocker.LockFlags.EXCLUSIVE
    try:
        portalocker.lock(file, flags if wait else flags | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.AlreadyLocked:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    except portalocker.LockException as error:
        cause = error.__cause__
        raise (cause if isinstance(cause, OSError) else OSError(errno.ENOLCK, str(error))) from None


# -------------------------------------------------------------------------------------------------------------- owners


def user_number() -> int:
    """The number of this process's user; 0 on Windows."""
    return os.geteuid() if _HAS_OWNERS else 0


def is_mine(file_stat: os.stat_result) -> bool:
    """True if a file is this user's. On Windows, which has owners in another form, every file counts as such."""
    return not _HAS_OWNERS or file_stat.st_uid == os.geteuid()


def is_trusted(file_stat: os.stat_result) -> bool:
    """True if a file is this user's, or root's."""
    return is_mine(file_stat) or file_stat.st_uid == 0


def others_may_write(file_stat: os.stat_result) -> bool:
    """True if others than this user and root may put something into a folder. Windows says that in another form, and
    keeps the folders of a user's profile to that user."""
    if not _HAS_OWNERS:
        return False
    return bool(file_stat.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not file_stat.st_mode & stat.S_ISVTX


# ----------------------------------------------------------------------------------------------------------- processes


def runs(process: int) -> bool:
    """True if the process of this number runs."""
    if WINDOWS:
        return _runs_on_windows(process)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _runs_on_windows(process: int) -> bool:
    """`runs` on Windows, where signal 0 would be Ctrl-C for the process."""
    synchronize, still_waits = 0x0010_0000, 0x102
    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(synchronize, False, process)
    if not handle:
        return bool(ctypes.get_last_error() == 5)  # type: ignore[attr-defined]  # it is another user's
    try:
        return bool(kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) == still_waits)
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


def end_with_children(process: subprocess.Popen[Any]) -> None:
    """Ends a process that was started with `start_new_session=True`, and all that it started, at once."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    elif WINDOWS:
        command = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    else:
        process.kill()


def end_with_parent(stream: IO[bytes], *, group: bool = False) -> None:
    """End this process, or its whole `group`, when its parent ends, which holds the other end of `stream` open."""
    file = stream.fileno()

    def wait() -> None:
        # Past the buffer: if a thread held its lock when Python ends, that would be a fatal error.
        while os.read(file, 1):
            pass
        if group and hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=wait, name="sparkstream-parent", daemon=True).start()


def after_fork_in_child(run: Callable[[], None]) -> None:
    """Run a function in processes that are forked from this one, if the system forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=run)


def unix_socket() -> socket.socket:
    """A socket that processes of this machine reach by a path. Raises OSError if the system has none."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, "this system has no sockets with a path")
    return socket.socket(socket.AF_UNIX)


# -------------------------------------------------------------------------------------------------------------- memory


def memory_of_machine() -> int | None:
    """The bytes of memory of this machine; None if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def memory_of_process() -> int | None:
    """The bytes of memory that this process has now; None where the system has no `/proc`."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return os.sysconf("SC_PAGE_SIZE") * pages
    except (AttributeError, OSError, ValueError):
        return None


def limit_memory(most: int) -> None:
    """Make requests for more memory than `most` bytes raise MemoryError, in this process and those that it forks. Does
    nothing if the system knows no such limit.
    """
    if resource is not None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def offer_to_oom_killer() -> None:
    """Make this process the first that Linux ends if memory runs out. Does nothing on other systems."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
