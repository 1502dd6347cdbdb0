"""What Spark takes for the Python interpreter: asks the fork server (`forks.py`) for a process that runs a module.

Run as a script, without `site`, so that it starts in 20 ms: `forked.py SOCKET -m MODULE ARGUMENT...`. The new process
has the files, the environment and the folder of this one, which lives as long as that one does: each ends when
the other ends. Where no server answers, and for all but `-m`, this process becomes the interpreter itself.
"""

from __future__ import annotations

import marshal
import os
import socket
import struct
import sys


def main(address: str, arguments: list[str]) -> int | None:
    """The exit status of the module's process; None where there is none."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(address)
            request = marshal.dumps((arguments, dict(os.environb), os.getcwd()))
            socket.send_fds(server, [struct.pack("!i", len(request))], [0, 1, 2])
            server.sendall(request)
            begun = server.recv(1)
        except OSError:
            return None
        if not begun:
            return None
        try:
            return ord(server.recv(1) or b"\1")
        except OSError:  # the server is gone, and nobody knows
            return 1


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[3:]) if sys.argv[2:3] == ["-m"] else None
    if status is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    sys.exit(status)
