"""Sockets of clients."""

from __future__ import annotations

import contextlib
import socket


def shut_down(open_socket: socket.socket | None) -> None:
    """Ends the calls that wait for a socket, from another thread; None: there is none."""
    if open_socket is not None:
        with contextlib.suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)
