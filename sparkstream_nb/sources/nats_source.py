"""Takes the messages of a subject of NATS.

Core NATS keeps nothing: messages published while there is no subscriber, or taken and not on the disk when the process
is killed, are gone. While an app is behind, messages wait in this process, and then at the server, which drops a
subscriber that is too slow: that is an error of the app, as is each message that nats-py had to drop.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..connections.nats_client import NatsConnection, NatsFailed, NatsServers
from ..mapping.decoding import Decoded, Decoder, RejectedMessage
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable, gather

MOST_WAITING = 10_000
"""Messages that wait for the app in this process."""
_POLL = 0.02


@dataclass(frozen=True)
class NatsSubject:
    """A subject, which may have the wildcards `*` and `>`, and the group among which its messages are divided (empty:
    none)."""

    servers: NatsServers
    subject: str
    group: str = ""


class NatsReader(SourceReader):
    """A `Reader` of the messages of a subject."""

    def __init__(self, place: NatsSubject, decoder: Decoder) -> None:
        self.place, self._decoder = place, decoder
        self._waiting: queue.Queue[bytes] = queue.Queue(MOST_WAITING)
        self._connection: NatsConnection | None = None
        self._reported_losses = 0

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        try:
            self._connection = NatsConnection(self.place.servers)
            self._connection.subscribe(self.place.subject, self.place.group, self._take)
        except NatsFailed as error:
            raise SourceUnavailable(str(error)) from None
        self._reported_losses = 0
        return None

    async def _take(self, message: bytes) -> None:
        while True:
            try:
                self._waiting.put_nowait(message)
                return
            except queue.Full:
                await asyncio.sleep(_POLL)

    def read(self, seconds: float) -> ReadMessages | None:
        messages = gather(self._waiting, seconds, MOST_WAITING)
        connection = self._connection
        lost_messages = 0 if connection is None else connection.dropped_messages - self._reported_losses
        if messages or lost_messages:
            self._reported_losses += lost_messages
            events = self._decoder.decode(messages)
            return ReadMessages(_with_lost(events, lost_messages), len(messages), lasting=lost_messages > 0)
        if connection is None or not connection.open:
            raise SourceUnavailable(f"{self.place.servers} ended the connection")
        return None

    def behind(self) -> Behind | None:
        return None if self._connection is None else Behind(time.monotonic(), {"messages": self._waiting.qsize()})

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _with_lost(events: Decoded, lost_messages: int) -> Decoded:
    """With an error for messages that were dropped."""
    if not lost_messages:
        return events
    why = f"{lost_messages:,} messages were dropped: the app did not take them in time"
    return replace(events, rejected=(*events.rejected, RejectedMessage(0, why, "")))
