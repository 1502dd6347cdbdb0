"""A subject of NATS that takes each message.

A message counts as sent when the server confirms it (PING and PONG after a batch). It has the header
`Nats-Msg-Id`, the same when it is sent again after a crash, by which JetStream drops repeats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..connections.nats_client import NatsConnection, NatsServers
from ..connections.subscriptions import BrokerFailed
from ..errors import printable
from ..mapping import Message
from ..plan.query_parts import template_attributes
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

ID_HEADER = "Nats-Msg-Id"
SUBJECT = re.compile(r"[^\s.*>\x00-\x1f\x7f-\x9f\ud800-\udfff]+(\.[^\s.*>\x00-\x1f\x7f-\x9f\ud800-\udfff]+)*")
"""A subject without wildcards: parts with dots between them."""
_MOST_BYTES = 1 << 20
"""Maximum bytes of a message that servers accept by default."""


@dataclass(frozen=True)
class NatsPlace:
    """A subject, which may name attributes as `{{attribute}}`. `key` begins each `Nats-Msg-Id`."""

    servers: NatsServers
    subject: str
    key: str = ""


class NatsTarget(Target):
    """Publishes messages in batches, and waits until the server has one."""

    at_once = 500

    def __init__(self, place: NatsPlace) -> None:
        self.place = place
        dynamic = bool(template_attributes(place.subject))
        self.templates: Mapping[str, str] = {"destination": place.subject} if dynamic else {}
        self._connection: NatsConnection | None = None

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        records: list[tuple[str, bytes, Mapping[str, str]]] = []
        for message, place in zip(messages, places, strict=True):
            try:
                subject = self._subject(message)
            except Undeliverable:
                if not records:
                    raise
                break  # messages before it are sent first
            records.append((subject, message.body, {ID_HEADER: f"{self.place.key}-{place.batch}-{place.row}"}))
        try:
            self._ensure_connection().publish(records)
        except BrokerFailed as error:
            self.close()
            raise TargetUnavailable(str(error)) from None
        return len(records)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _subject(self, message: Message) -> str:
        subject = message.properties.get("destination", self.place.subject)
        if not SUBJECT.fullmatch(subject):
            raise Undeliverable(f"'{printable(subject[:60])}' is no subject of NATS")
        if len(message.body) > _MOST_BYTES:
            raise Undeliverable(f"a message has {_MOST_BYTES:,} bytes at most, and this one {len(message.body):,}")
        return subject

    def _ensure_connection(self) -> NatsConnection:
        """The connection, another one where the server has ended it. Raises BrokerFailed."""
        if self._connection is not None and not self._connection.open:
            self.close()
        if self._connection is None:
            self._connection = NatsConnection(self.place.servers)
        return self._connection
