"""Stand-in for the Python interpreter of Spark: asks the fork server (`forks.py`) for a process that runs a module.

Run as a script, without `site`, so that it starts in 20 ms: `forked.py SOCKET -m MODULE ARGUMENT...`. The new process
has the files, the environment and the folder of this one, which lives as long as that one does: each ends when
the other ends. If no server answers, and for all but `-m`, this process becomes the interpreter itself.

If Spark waits for the new process to connect, the selector that it waits in is recorded first (`planners.py`).
"""

from __future__ import annotations

import marshal
import os
import socket
import struct
import sys
from collections.abc import Iterable

NOTE = "note"
"""The socket, beside the server's, of the process that records the selectors that Spark waits in."""
_NOTE_SECONDS = 1


def tell(address: str) -> None:
    """Tell the listener at `address` where Spark waits for this process, if it does, and wait until that is recorded.
    """
    path, port = (os.environ.get(f"PYTHON_WORKER_FACTORY_{name}") for name in ("SOCK_PATH", "PORT"))
    if not path and not port:
        return
    with socket.socket(socket.AF_UNIX) as noting:
        noting.settimeout(_NOTE_SECONDS)
        try:
            noting.connect(address)
            noting.sendall(os.fsencode(path or f":{port}"))
            noting.recv(1)
        except OSError:  # no listener, or a busy one: nothing depends on it
            return


def request(
    server: socket.socket, words: list[str], environment: dict[bytes, bytes], files: Iterable[int] = (0, 1, 2)
) -> None:
    """Sends the fork server a request of some words, for a process with this environment and these files. Raises
    OSError."""
    data = marshal.dumps((words, environment, os.getcwd()))
    socket.send_fds(server, [struct.pack("!i", len(data))], list(files))
    server.sendall(data)


def main(address: str, arguments: list[str]) -> int | None:
    """The exit status of the module's process; None if there is none."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(address)
            request(server, arguments, dict(os.environb))
            start_byte = server.recv(1)
        except OSError:
            return None
        if not start_byte:
            return None
        try:
            return ord(server.recv(1) or b"\1")
        except OSError:  # the server is gone without notice
            return 1


if __name__ == "__main__":
    tell(os.path.join(os.path.dirname(sys.argv[1]), NOTE))  # pathlib takes long to load
    status = main(sys.argv[1], sys.argv[3:]) if sys.argv[2:3] == ["-m"] else None
    if status is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    sys.exit(status)
