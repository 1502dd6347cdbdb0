"""A connection to an MQTT broker, by paho-mqtt in a thread of its own: messages are published and subscribed to.

It speaks MQTT 3.1.1, as siddhi-io-mqtt does. A subscriber speaks MQTT 5 where the broker does: with 3.1.1, a broker
sends few messages ahead of their acknowledgements, and may drop others that come in meanwhile. A connection that ends
is not reopened automatically: its user gets an error, and reports it.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from .sockets import shut_down
from .subscriptions import SECONDS, BrokerFailed, BrokerMessage, Subscription, unreachable

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage, MQTTMessageInfo

AT_ONCE = 500
"""Messages that are on their way to the broker at once."""
_AHEAD = 5_000
"""Messages that the broker sends ahead of their acknowledgements."""
_FOREVER = 0xFFFF_FFFF
"""The time for which the broker keeps a session (s)."""
_UNSUPPORTED = "Unsupported protocol version"
_POLL = 0.1


@dataclass(frozen=True)
class MqttBroker:
    """A broker, and the session there. `timeout` and `keep_alive` in seconds; without a `client_id` the session has a
    name by chance. Never shown: it may have secrets."""

    host: str
    port: int
    client_id: str = ""
    clean_session: bool = True
    keep_alive: int = 60
    timeout: int = 30
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"tcp://{self.host}:{self.port}"


@dataclass(frozen=True)
class Publication:
    """A message to a topic. Of quality of service 1 and 2, the broker confirms that it has it."""

    topic: str
    body: bytes
    qos: int
    retain: bool


class MqttConnection(Subscription):
    """A connection that is open. `close` ends it and its thread.

    Messages go to `waiting`. Messages that the broker has kept for the session come in at once, before `subscribe`.
    paho-mqtt does not acknowledge them.
    """

    def __init__(self, broker: MqttBroker, waiting: queue.Queue[BrokerMessage] | None = None) -> None:
        """Raises BrokerFailed."""
        self.broker, self._waiting = broker, waiting
        self._is_connected = False
        for is_newest in (False,) if waiting is None else (True, False):
            try:
                self._connect(is_newest=is_newest)
                return
            except BrokerFailed as error:
                self.close()
                if not is_newest or _UNSUPPORTED not in str(error):
                    raise

    @property
    def open(self) -> bool:
        return self._is_connected and not self._is_closing and not self._end_event.is_set()

    def subscribe(self, topics: Sequence[str], qos: int) -> None:
        """Subscribe to topics, which may have the wildcards `+` and `#`. Raises BrokerFailed."""
        if self._is_newest:
            from paho.mqtt.subscribeoptions import SubscribeOptions

            self._client.subscribe([(topic, SubscribeOptions(qos)) for topic in topics])
        else:
            self._client.subscribe([(topic, qos) for topic in topics])
        self._await_answer()

    def acknowledge(self, tags: Sequence[int]) -> None:
        for tag in tags:
            self._client.ack(tag, 1)

    def publish(self, messages: Sequence[Publication]) -> None:
        """Publish messages; the broker has all that it confirms when this returns. Raises BrokerFailed."""
        try:
            handles = [self._client.publish(m.topic, m.body, m.qos, m.retain) for m in messages]
            end = time.monotonic() + 2 * SECONDS
            for handle in handles:
                self._await_publication(handle, end)
        except (RuntimeError, ValueError) as error:  # paho's, for messages that it cannot send any more
            raise unreachable(self.broker, error) from None

    def close(self) -> None:
        self._is_closing = True
        if self._client.disconnect() == 0:
            self._end_event.wait(SECONDS)
        # paho-mqtt's thread would wait for a broker that reads nothing.
        shut_down(cast(socket.socket | None, self._client.socket()))
        self._client.loop_stop()

    def _connect(self, *, is_newest: bool) -> None:
        """Connect with MQTT 5 if that `is_newest`, else with 3.1.1. Raises BrokerFailed."""
        from paho.mqtt.client import Client, MQTTv5, MQTTv311
        from paho.mqtt.enums import CallbackAPIVersion
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        b, self._is_newest, self._is_closing = self.broker, is_newest, False
        self._end_event = threading.Event()
        self._answer: queue.Queue[str | None] = queue.Queue()
        """Answers of the broker to a connection and a subscription: None, or the reason of a refusal."""
        self._client = client = Client(
            CallbackAPIVersion.VERSION2,
            b.client_id or f"sparkstream-{uuid.uuid4().hex[:12]}",
            clean_session=None if is_newest else b.clean_session,
            protocol=MQTTv5 if is_newest else MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = float(b.timeout)
        client.max_inflight_messages_set(AT_ONCE)
        if b.user is not None:
            client.username_pw_set(b.user, b.password)
        client.on_connect = self._handle_connect
        client.on_disconnect = self._handle_disconnect
        client.on_subscribe = self._handle_subscribe
        client.on_message = self._handle_message
        try:
            if is_newest:
                properties = Properties(PacketTypes.CONNECT)
                properties.ReceiveMaximum = _AHEAD
                properties.SessionExpiryInterval = 0 if b.clean_session else _FOREVER
                client.connect(b.host, b.port, b.keep_alive, clean_start=b.clean_session, properties=properties)
            else:
                client.connect(b.host, b.port, b.keep_alive)
        except (OSError, ValueError) as error:
            raise unreachable(b, error) from None
        client.loop_start()
        self._await_answer()

    def _await_publication(self, handle: MQTTMessageInfo, end: float) -> None:
        while not handle.is_published():
            if not self.open:
                raise unreachable(self.broker, "it ended the connection")
            if time.monotonic() > end:
                raise unreachable(self.broker, "it did not confirm in time")
            handle.wait_for_publish(_POLL)

    def _await_answer(self) -> None:
        try:
            refusal = self._answer.get(timeout=self.broker.timeout)
        except queue.Empty:
            refusal = "it did not answer in time"
        if refusal is not None:
            raise unreachable(self.broker, refusal)

    def _handle_connect(self, client: Client, userdata: object, flags: Any, code: Any, properties: object) -> None:
        self._is_connected = not code.is_failure
        self._answer.put(str(code) if code.is_failure else None)

    def _handle_disconnect(self, client: Client, userdata: object, flags: Any, code: Any, properties: object) -> None:
        self._end_event.set()
        self._answer.put(f"it ended the connection: {code}")

    def _handle_subscribe(self, client: Client, userdata: object, mid: int, codes: Any, properties: object) -> None:
        refusal = next((str(code) for code in codes if code.is_failure), None)
        self._answer.put(None if refusal is None else f"it refuses the topic: {refusal}")

    def _handle_message(self, client: Client, userdata: object, message: MQTTMessage) -> None:
        if self._waiting is not None:
            self.put(self._waiting, bytes(message.payload), message.mid if message.qos else None)
