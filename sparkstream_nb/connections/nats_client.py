"""A connection to a NATS server, by nats-py in a thread of its own: subjects are published to and subscribed to.

It is core NATS: a server keeps no message for absent subscribers. NATS Streaming, which did, is retired. A connection
that ends is not reopened automatically: its user gets an error, and reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import printable

SECONDS = 5.0
"""Seconds after which a server counts as unavailable."""
T = TypeVar("T")


class NatsFailed(Exception):
    """The server cannot be reached, or refuses. `str()` is the reason, one line without secrets."""


@dataclass(frozen=True)
class NatsServers:
    """Servers of one cluster, as (host, port), and how to log in there. Never shown: it may have secrets."""

    addresses: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str = field(default="", repr=False)
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ", ".join(f"nats://{host}:{port}" for host, port in self.addresses)


class NatsConnection:
    """A connection that is open. `close` ends it and its thread."""

    def __init__(self, servers: NatsServers) -> None:
        """Raises NatsFailed."""
        self.servers = servers
        self.dropped_messages = 0
        """Messages that were dropped, as they were not taken in time."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sparkstream-nats", daemon=True)
        self._thread.start()
        try:
            self._client = self._call(self._connect())
        except NatsFailed:
            self._end()
            raise

    @property
    def open(self) -> bool:
        """True if the server is still there."""
        return bool(self._client.is_connected)

    def subscribe(self, subject: str, queue: str, take: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        """Calls `take` with each message of a subject, in the connection's thread, the next when that is over. Of the
        subscribers with one `queue` only one gets a message. Raises NatsFailed."""

        async def handle_message(message: Any) -> None:
            await take(message.data)

        async def subscribe_all() -> None:
            await self._client.subscribe(subject, queue, cb=handle_message)
            await self._client.flush()

        self._call(subscribe_all())

    def publish(self, messages: Sequence[tuple[str, bytes, Mapping[str, str]]]) -> None:
        """Publishes messages, each a subject, a body and headers; the server has all when this returns. Raises
        NatsFailed."""

        async def publish_all() -> None:
            for subject, body, headers in messages:
                await self._client.publish(subject, body, headers=dict(headers))
            await self._client.flush(int(SECONDS))

        self._call(publish_all())

    def close(self) -> None:
        with contextlib.suppress(NatsFailed):
            self._call(self._client.close())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

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

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Carries out `work` in the thread. Raises NatsFailed."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(2 * SECONDS)
        except Exception as error:  # nats-py raises its own, OSError and TimeoutError
            future.cancel()
            why = str(error).strip() or type(error).__name__
            raise NatsFailed(f"{self.servers} cannot be reached: {printable(' '.join(why.split()))[:200]}") from None
