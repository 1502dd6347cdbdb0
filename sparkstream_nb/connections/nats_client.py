"""A connection to a NATS server, by nats-py in a thread of its own: subjects are published to and subscribed to.

It is core NATS: a server keeps no message for absent subscribers. NATS Streaming, which did, is retired. A connection
that ends is not reopened automatically: its user gets an error, and reports it.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .loop_connection import LoopConnection
from .subscriptions import SECONDS, BrokerFailed, BrokerMessage


@dataclass(frozen=True)
class NatsServers:
    """Servers of one cluster, as (host, port), and how to log in there. Never shown: it may have secrets."""

    addresses: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str = field(default="", repr=False)
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ", ".join(f"nats://{host}:{port}" for host, port in self.addresses)


class NatsConnection(LoopConnection):
    """A connection that is open. `close` ends it and its thread."""

    def __init__(self, servers: NatsServers) -> None:
        """Raises BrokerFailed."""
        super().__init__(servers, "sparkstream-nats")
        self.servers = servers
        try:
            self._client = self.call(self._connect())
        except BrokerFailed:
            self.end_loop()
            raise

    @property
    def open(self) -> bool:
        return bool(self._client.is_connected)

    def subscribe(self, subject: str, group: str, waiting: queue.Queue[BrokerMessage]) -> None:
        """Puts each message of a subject into `waiting`. Of the subscribers of one `group` only one gets a message.
        Raises BrokerFailed."""

        async def handle_message(message: Any) -> None:
            await self.put_soon(waiting, message.data)

        async def subscribe_all() -> None:
            await self._client.subscribe(subject, group, cb=handle_message)
            await self._client.flush()

        self.call(subscribe_all())

    def publish(self, messages: Sequence[tuple[str, bytes, Mapping[str, str]]]) -> None:
        """Publishes messages, each a subject, a body and headers; the server has all when this returns. Raises
        BrokerFailed."""

        async def publish_all() -> None:
            for subject, body, headers in messages:
                await self._client.publish(subject, body, headers=dict(headers))
            await self._client.flush(int(SECONDS))

        self.call(publish_all())

    def close(self) -> None:
        self._is_closing = True
        with contextlib.suppress(BrokerFailed):
            self.call(self._client.close())
        self.end_loop()

    async def _connect(self) -> Any:
        import nats

        s = self.servers

        async def note_error(error: Exception) -> None:
            self.dropped_messages += isinstance(error, nats.errors.SlowConsumerError)

        return await nats.connect(
            [f"nats://{host}:{port}" for host, port in s.addresses],
            user=s.user,
            password=s.password or None,
            token=s.token,
            allow_reconnect=False,
            connect_timeout=int(SECONDS),
            max_reconnect_attempts=1,
            error_cb=note_error,
            name="sparkstream",
        )
