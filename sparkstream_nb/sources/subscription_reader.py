"""Takes the messages that a connection to a broker brings, in a thread of its own.

A message is acknowledged when it is in the inbox, on the disk. A broker sends a message again that was not acknowledged
before the connection ended. While an app is behind, messages wait in this process, and then at the broker.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from ..connections.subscriptions import BrokerFailed, BrokerMessage, Subscription
from ..mapping.decoding import Decoded, Decoder, RejectedMessage
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable, gather

MOST_WAITING = 10_000
"""Messages that wait for the app in this process."""


class Subscribable(Protocol):
    """The place of a source at a broker. `str()` names it without secrets."""

    @property
    def origin(self) -> str:
        """The place with its broker, as it may be shown."""

    def subscribe(self, waiting: queue.Queue[BrokerMessage]) -> Subscription:
        """A connection that puts messages into `waiting`. Raises BrokerFailed."""


class SubscriptionReader(SourceReader):
    """A `Reader` of the messages of a place."""

    def __init__(self, place: Subscribable, decoder: Decoder) -> None:
        self.place, self._decoder = place, decoder
        self._waiting: queue.Queue[BrokerMessage] = queue.Queue(MOST_WAITING)
        self._connection: Subscription | None = None
        self._reported_losses = 0

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        try:
            self._connection = self.place.subscribe(self._waiting)
        except BrokerFailed as error:
            raise SourceUnavailable(str(error)) from None
        self._reported_losses = 0
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        connection = self._connection
        was_open = connection is not None and connection.open
        messages = gather(self._waiting, seconds, MOST_WAITING)
        lost_messages = 0 if connection is None else connection.dropped_messages - self._reported_losses
        if messages or lost_messages:
            self._reported_losses += lost_messages
            events = with_losses(self._decoder.decode([m.body for m in messages]), lost_messages)
            return ReadMessages(events, len(messages), lasting=lost_messages > 0, token=messages)
        if not was_open:  # nothing came in after that
            raise SourceUnavailable(f"{self.place} ended the connection")
        return None

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        connection = self._connection
        if connection is None:
            return
        # A message of an earlier connection is sent again, under another tag.
        tags = [
            m.tag
            for m in cast(list[BrokerMessage], messages.token)
            if m.connection is connection and m.tag is not None
        ]
        try:
            if tags:
                connection.acknowledge(tags)
        except BrokerFailed as error:
            raise SourceUnavailable(str(error)) from None

    def behind(self) -> Behind | None:
        return None if self._connection is None else Behind(time.monotonic(), {"messages": self._waiting.qsize()})

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def with_losses(events: Decoded, lost_messages: int) -> Decoded:
    """With an error for messages that were dropped."""
    if not lost_messages:
        return events
    why = f"{lost_messages:,} messages were dropped: the app did not take them in time"
    return replace(events, rejected=(*events.rejected, RejectedMessage(0, why, "")))
