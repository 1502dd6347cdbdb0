"""A topic of MQTT that takes each message.

A message of quality of service 1 or 2 counts as sent when the broker confirms it (PUBACK, PUBCOMP), one of quality 0
when it is in the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..connections.mqtt_client import AT_ONCE, MqttBroker, MqttConnection, Publication
from ..connections.subscriptions import BrokerFailed
from ..errors import printable
from ..mapping import Message
from ..plan.query_parts import template_attributes
from .header_texts import text_fault
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

_MOST_TOPIC_BYTES = 65_535
_MOST_BYTES = 1 << 24
"""Maximum bytes of a message. MQTT itself has 256 MB."""


@dataclass(frozen=True)
class MqttPlace:
    """A topic, which may name attributes as `{{attribute}}`, and how messages are published to it."""

    broker: MqttBroker
    topic: str
    qos: int = 1
    retain: bool = False


def topic_fault(topic: str) -> str | None:
    """The reason for which nothing can be published to this topic; None if it can."""
    if not topic:
        return "is empty"
    if "+" in topic or "#" in topic:
        return "has a wildcard, + or #, in it"
    if (fault := text_fault(topic)) is not None:
        return fault
    if len(topic.encode()) > _MOST_TOPIC_BYTES:
        return f"has more than {_MOST_TOPIC_BYTES:,} bytes"
    return None


class MqttTarget(Target):
    """Publishes messages in batches, and waits until the broker has one."""

    at_once = AT_ONCE

    def __init__(self, place: MqttPlace) -> None:
        self.place = place
        self.templates: Mapping[str, str] = {"topic": place.topic} if template_attributes(place.topic) else {}
        self._connection: MqttConnection | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        publications: list[Publication] = []
        for message in messages:
            try:
                publications.append(self._publication(message))
            except Undeliverable:
                if not publications:
                    raise
                break  # messages before it are sent first
        try:
            self._ensure_connection().publish(publications)
        except BrokerFailed as error:
            self.close()
            raise TargetUnavailable(str(error)) from None
        return len(publications)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _publication(self, message: Message) -> Publication:
        p = self.place
        topic = message.properties.get("topic", p.topic)
        fault = topic_fault(topic)
        if fault is not None:
            raise Undeliverable(f"the topic '{printable(topic[:60])}' {fault}")
        if len(message.body) > _MOST_BYTES:
            raise Undeliverable(f"a message has {_MOST_BYTES:,} bytes at most, and this one {len(message.body):,}")
        return Publication(topic, message.body, p.qos, p.retain)

    def _ensure_connection(self) -> MqttConnection:
        """The connection, another one where the broker has ended it. Raises BrokerFailed."""
        if self._connection is not None and not self._connection.open:
            self.close()
        if self._connection is None:
            self._connection = MqttConnection(self.place.broker)
        return self._connection
