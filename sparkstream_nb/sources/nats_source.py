"""The subjects of NATS that sources read.

Core NATS keeps nothing: messages published while there is no subscriber, or taken and not on the disk when the process
is killed, are gone. While an app is behind, messages wait in this process, and then at the server, which drops a
subscriber that is too slow: that is an error of the app, as is each message that nats-py had to drop.
"""

from __future__ import annotations

import queue
from dataclasses import dataclass

from ..connections.nats_client import NatsConnection, NatsServers
from ..connections.subscriptions import BrokerFailed, BrokerMessage, Subscription


@dataclass(frozen=True)
class NatsSubject:
    """A subject, which may have the wildcards `*` and `>`, and the group among which its messages are divided (empty:
    none)."""

    servers: NatsServers
    subject: str
    group: str = ""

    def __str__(self) -> str:
        return str(self.servers)

    @property
    def origin(self) -> str:
        """The place as it may be shown."""
        return f"{self.subject} at {self.servers}"

    def subscribe(self, waiting: queue.Queue[BrokerMessage]) -> Subscription:
        """A connection that puts the messages of the subject into `waiting`. Raises BrokerFailed."""
        connection = NatsConnection(self.servers)
        try:
            connection.subscribe(self.subject, self.group, waiting)
        except BrokerFailed:
            connection.close()
            raise
        return connection
