"""A connection to a WebSocket server, by tornado in an event loop of its own.

A connection that ends is not reopened automatically: its user gets an error, and reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from dataclasses import dataclass, field
from typing import Any

from .loop_connection import LoopConnection
from .subscriptions import SECONDS, BrokerFailed, BrokerMessage

MOST_BYTES = 1 << 24
"""Maximum bytes of a message."""
_PING_SECONDS = 20.0
"""Seconds after which a server is asked whether it is still there."""


@dataclass(frozen=True)
class WebSocketServer:
    """The address of a server (`ws://HOST:PORT/PATH`), the subprotocols that are offered to it, and headers of the
    handshake, which may have secrets. `str()` is the address without its query."""

    url: str = field(repr=False)
    protocols: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.url.partition("?")[0]

    @property
    def origin(self) -> str:
        """The server as it may be shown."""
        return str(self)

    def subscribe(self, waiting: queue.Queue[BrokerMessage]) -> WebSocketConnection:
        """A connection that puts the server's messages into `waiting`. Raises BrokerFailed."""
        return WebSocketConnection(self, waiting)


class WebSocketConnection(LoopConnection):
    """A connection that is open. Messages of the server go to `waiting`; without one they are dropped."""

    def __init__(self, server: WebSocketServer, waiting: queue.Queue[BrokerMessage] | None = None) -> None:
        """Raises BrokerFailed."""
        super().__init__(server, "sparkstream-websocket")
        self.server, self._waiting = server, waiting
        self._receiver: asyncio.Task[None] | None = None
        try:
            self._socket = self.call(self._connect())
        except BrokerFailed:
            self.end_loop()
            raise

    @property
    def open(self) -> bool:
        return not self._is_closing and self._receiver is not None and not self._receiver.done()

    def send(self, message: bytes, *, is_binary: bool) -> None:
        """Send a message. Raises BrokerFailed."""

        async def write() -> None:
            await self._socket.write_message(message, binary=is_binary)

        self.call(write())

    def close(self) -> None:
        self._is_closing = True

        async def close_socket() -> None:
            self._socket.close()
            if self._receiver is not None:
                await asyncio.wait([self._receiver], timeout=SECONDS)
                self._receiver.cancel()

        with contextlib.suppress(BrokerFailed):
            self.call(close_socket())
        self.end_loop()

    async def _connect(self) -> Any:
        from tornado.httpclient import HTTPRequest
        from tornado.httputil import HTTPHeaders
        from tornado.websocket import websocket_connect

        s = self.server
        headers = HTTPHeaders()
        for name, value in s.headers:
            headers.add(name, value)
        client_socket = await websocket_connect(
            HTTPRequest(s.url, headers=headers, connect_timeout=SECONDS, request_timeout=SECONDS),
            ping_interval=_PING_SECONDS,
            max_message_size=MOST_BYTES,
            subprotocols=list(s.protocols) or None,
        )
        self._receiver = asyncio.ensure_future(self._receive(client_socket))
        return client_socket

    async def _receive(self, client_socket: Any) -> None:
        """Take the messages of the server until it ends the connection."""
        while (message := await client_socket.read_message()) is not None:
            if self._waiting is not None:
                await self.put_soon(self._waiting, message.encode() if isinstance(message, str) else message)
