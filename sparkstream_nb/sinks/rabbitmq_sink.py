"""An exchange of RabbitMQ that takes each message.

A message counts as sent when the broker confirms it. It has a `message_id`, the same when it is sent again after a
crash, by which a consumer can recognize a repeat.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..connections.rabbitmq_client import AT_ONCE, RabbitBroker, RabbitConnection, RabbitExchange, RabbitMessage
from ..connections.subscriptions import BrokerFailed
from ..mapping import Message
from ..plan.query_parts import template_attributes
from .header_texts import text_fault
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

_MOST_KEY_BYTES = 255
_MOST_BYTES = 1 << 24
"""Maximum bytes of a message. RabbitMQ itself has 128 MB."""


@dataclass(frozen=True)
class RabbitPlace:
    """An exchange, and how messages are published to it. The routing key and the values of `templates`, headers by
    name, may name attributes as `{{attribute}}`; `headers` are the same for all. `key` begins each `message_id`."""

    broker: RabbitBroker
    exchange: RabbitExchange
    routing_key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    templates: tuple[tuple[str, str], ...] = ()
    content_type: str = ""
    delivery_mode: int = 1
    key: str = ""


class RabbitTarget(Target):
    """Publishes messages in batches, and waits until the broker has one."""

    at_once = AT_ONCE

    def __init__(self, place: RabbitPlace) -> None:
        self.place = place
        self.templates: Mapping[str, str] = {f"header {name}": value for name, value in place.templates}
        if template_attributes(place.routing_key):
            self.templates |= {"routing.key": place.routing_key}
        self._connection: RabbitConnection | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        rabbit_messages: list[RabbitMessage] = []
        for message, place in zip(messages, places, strict=True):
            try:
                rabbit_messages.append(self._message(message, place))
            except Undeliverable:
                if not rabbit_messages:
                    raise
                break  # messages before it are sent first
        try:
            self._ensure_connection().publish(rabbit_messages)
        except BrokerFailed as error:
            self.close()
            raise TargetUnavailable(str(error)) from None
        return len(rabbit_messages)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _message(self, message: Message, place: OutputPlace) -> RabbitMessage:
        p, properties = self.place, message.properties
        routing_key = properties.get("routing.key", p.routing_key)
        if len(routing_key.encode("utf-8", "replace")) > _MOST_KEY_BYTES:
            raise Undeliverable(f"the routing key has more than {_MOST_KEY_BYTES} bytes")
        headers = dict(p.headers) | {name: properties[f"header {name}"] for name, _ in p.templates}
        for what, text in (("routing key", routing_key), *((f"header {name}", headers[name]) for name in headers)):
            fault = text_fault(text)
            if fault is not None:
                raise Undeliverable(f"the {what} {fault}")
        if len(message.body) > _MOST_BYTES:
            raise Undeliverable(f"a message has {_MOST_BYTES:,} bytes at most, and this one {len(message.body):,}")
        return RabbitMessage(
            routing_key,
            message.body,
            {
                "headers": headers or None,
                "content_type": p.content_type,
                "delivery_mode": p.delivery_mode,
                "message_id": f"{p.key}-{place.batch}-{place.row}",
                "timestamp": int(time.time()),
            },
        )

    def _ensure_connection(self) -> RabbitConnection:
        """The connection, another one where the broker has ended it. Raises BrokerFailed."""
        if self._connection is not None and not self._connection.open:
            self.close()
        if self._connection is None:
            self._connection = RabbitConnection(self.place.broker, self.place.exchange)
        return self._connection
