"""The queues of RabbitMQ that sources read."""

from __future__ import annotations

from dataclasses import dataclass
from queue import Queue

from ..connections.rabbitmq_client import RabbitBroker, RabbitConnection, RabbitExchange, RabbitQueue
from ..connections.subscriptions import BrokerFailed, BrokerMessage, Subscription


@dataclass(frozen=True)
class RabbitBinding:
    """A queue that is bound to an exchange of a broker."""

    broker: RabbitBroker
    exchange: RabbitExchange
    queue: RabbitQueue

    def __str__(self) -> str:
        return str(self.broker)

    @property
    def origin(self) -> str:
        """The place as it may be shown."""
        return f"{self.queue.name or self.exchange.name} at {self.broker}"

    def subscribe(self, waiting: Queue[BrokerMessage]) -> Subscription:
        """A connection that puts the messages of the queue into `waiting`. Raises BrokerFailed."""
        connection = RabbitConnection(self.broker, self.exchange)
        try:
            connection.consume(self.queue, waiting)
        except BrokerFailed:
            connection.close()
            raise
        return connection
