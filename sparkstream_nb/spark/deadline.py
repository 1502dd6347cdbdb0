"""Reading from a client that may be slow, without holding a thread for it."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class Deadline(io.RawIOBase):
    """What comes in over a socket, however slowly, up to a moment: `end` (s of the monotonic clock). Raises
    TimeoutError then."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self.end = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        before = self._connection.gettimeout()
        self._connection.settimeout(left)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(before)  # what is written has its own
