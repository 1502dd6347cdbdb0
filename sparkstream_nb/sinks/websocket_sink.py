"""A WebSocket server that takes each message.

Servers do not answer messages: a message counts as sent when the system has taken it. Messages that a server had not
read when it or its connection ended are lost without notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..connections.subscriptions import BrokerFailed
from ..connections.websocket_client import MOST_BYTES, WebSocketConnection, WebSocketServer
from ..mapping import Message
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable


@dataclass(frozen=True)
class WebSocketPlace:
    """A server. `is_binary`: messages are sent as bytes, not as text."""

    server: WebSocketServer
    is_binary: bool = False


class WebSocketTarget(Target):
    """Sends each message over one connection that is kept open."""

    def __init__(self, place: WebSocketPlace) -> None:
        self.place = place
        self._connection: WebSocketConnection | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        body = messages[0].body
        if len(body) > MOST_BYTES:
            raise Undeliverable(f"a message has {MOST_BYTES:,} bytes at most, and this one {len(body):,}")
        try:
            self._ensure_connection().send(body, is_binary=self.place.is_binary)
        except BrokerFailed as error:
            self.close()
            raise TargetUnavailable(str(error)) from None
        return 1

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ensure_connection(self) -> WebSocketConnection:
        """The connection, another one where the server has ended it. Raises BrokerFailed."""
        if self._connection is not None and not self._connection.open:
            self.close()
        if self._connection is None:
            self._connection = WebSocketConnection(self.place.server)
        return self._connection
