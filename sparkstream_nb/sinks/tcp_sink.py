"""A server that takes each message in a frame of siddhi-io-tcp.

Servers do not answer frames: a message counts as sent when the system has taken it. Messages that a server had not read
when it or its connection ended are lost without notice.
"""

from __future__ import annotations

import select
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from ..connections.sockets import shut_down
from ..connections.tcp_frames import MOST_BYTES, frame
from ..mapping import Message
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable


@dataclass(frozen=True)
class TcpServer:
    """A server and the channel of its frames; `timeout` in seconds."""

    host: str
    port: int
    channel: str
    no_delay: bool
    keep_alive: bool
    timeout: float = 10.0

    def __str__(self) -> str:
        return f"tcp://{self.host}:{self.port}"


class TcpTarget(Target):
    """Sends a frame for each message, over one connection that is kept open."""

    def __init__(self, place: TcpServer) -> None:
        self.place, self._session = place, str(uuid.uuid4())
        self._socket: socket.socket | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        data = frame(self._session, self.place.channel, messages[0].body)
        if len(data) > MOST_BYTES:
            raise Undeliverable(f"a frame has {MOST_BYTES:,} bytes at most, and this one {len(data):,}")
        try:
            self._ensure_connection().sendall(data)
        except OSError as error:
            self.close()
            why = "it did not take it in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise TargetUnavailable(f"{self.place} cannot be reached: {why}") from None
        return 1

    def close(self) -> None:
        open_socket, self._socket = self._socket, None
        if open_socket is not None:
            open_socket.close()

    def cancel(self) -> None:
        shut_down(self._socket)

    def _ensure_connection(self) -> socket.socket:
        """The connection, another one where the server has ended it."""
        p = self.place
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # a server sends nothing: it has ended the connection
        if self._socket is None:
            self._socket = socket.create_connection((p.host, p.port), p.timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(p.no_delay))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(p.keep_alive))
        return self._socket
