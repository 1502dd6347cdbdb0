"""The topics of MQTT that sources read.

Topics are subscribed to with quality of service 1 at most: a message of quality 2 would be gone when the process is
killed while the app has not taken it, as the broker then waits for no acknowledgement of the message itself.
"""

from __future__ import annotations

import queue
from dataclasses import dataclass

from ..connections.mqtt_client import MqttBroker, MqttConnection
from ..connections.subscriptions import BrokerFailed, BrokerMessage, Subscription


@dataclass(frozen=True)
class MqttTopics:
    """Topics, which may have the wildcards `+` and `#`, and the quality of service with which they are read."""

    broker: MqttBroker
    topics: tuple[str, ...]
    qos: int = 1

    def __str__(self) -> str:
        return str(self.broker)

    @property
    def origin(self) -> str:
        """The place as it may be shown."""
        return f"{', '.join(self.topics)} at {self.broker}"

    def subscribe(self, waiting: queue.Queue[BrokerMessage]) -> Subscription:
        """A connection that puts the messages of the topics into `waiting`. Raises BrokerFailed."""
        connection = MqttConnection(self.broker, waiting)
        try:
            connection.subscribe(self.topics, min(self.qos, 1))
        except BrokerFailed:
            connection.close()
            raise
        return connection
