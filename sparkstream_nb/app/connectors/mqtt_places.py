"""The options of `mqtt` sources and sinks as brokers and topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from ...connections.mqtt_client import MqttBroker
from ...errors import Misuse, shown
from ...masking import mask_server
from ...plan.connectors.connector_options import options_of
from ...plan.query_parts import template_attributes
from ...sinks.mqtt_sink import MqttPlace, MqttTarget, topic_fault
from ...sinks.target import Target
from ...sources.mqtt_source import MqttTopics
from ..config.grants import Grants
from ..config.secrets import References, check_password
from .typed_options import OptionValues

_URL = re.compile(r"tcp://(?P<server>\[[0-9A-Fa-f:.]+\]|[^/@:\s\[\]]+)(?P<port>:\d+)?/?")


@dataclass(frozen=True)
class MqttGate:
    """Makes places of the options of `what`, a source or sink in words, within its `grants`."""

    grants: Grants
    references: References
    what: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(the topic as it may be shown, the target of a sink). Raises `Misuse` for options that are wrong, and for a
        password that is no reference, and NotAllowed for a broker that is not granted."""
        o = OptionValues(options, options_of("sink", "mqtt"), self.what)
        o.flag("clean.session")
        broker, topic = self._broker(o, "sends to", clean_session=True), o.text("topic")
        fault = None if template_attributes(topic) else topic_fault(topic)
        if fault is not None:
            raise Misuse(f"{self.what}: the topic {shown(topic)} {fault}")
        place = MqttPlace(broker, topic, int(o.choice("quality.of.service")), o.flag("message.retain"))
        return f"{topic} at {broker}", MqttTarget(place)

    def subscription(self, options: Mapping[str, str]) -> MqttTopics:
        """The topics of a source. Raises as `target` does."""
        o = OptionValues(options, options_of("source", "mqtt"), self.what)
        clean_session = o.flag("clean.session")
        if not clean_session and not o.text("client.id"):
            raise Misuse(f"{self.what}: clean.session='false' needs client.id, the name of the session at the broker")
        topics = tuple(topic.strip() for topic in o.text("topic").split(",") if topic.strip())
        for topic in topics:
            fault = "has # before its end" if "#" in topic[:-1] else topic_fault(re.sub("[+#]", "x", topic))
            if fault is not None:
                raise Misuse(f"{self.what}: the topic {shown(topic)} {fault}")
        broker = self._broker(o, "reads from", clean_session=clean_session)
        return MqttTopics(broker, topics, int(o.choice("quality.of.service")))

    def _broker(self, o: OptionValues, does: str, *, clean_session: bool) -> MqttBroker:
        if find_spec("paho") is None:
            raise Misuse(f"{self.what} needs paho-mqtt: pip install 'sparkstream-nb[mqtt]'")
        url = o.text("url")
        match = _URL.fullmatch(url)
        if match is None:
            raise Misuse(f"{self.what}: url is tcp://HOST:PORT, not {shown(mask_server(url))}")
        host, port = self.grants.check_server(
            "mqtt", match["server"] + (match["port"] or ":1883"), f"{self.what} {does}"
        )
        user, password = o.trim("username"), o.trim("password")
        if password:
            check_password(password, self.what)
            if not user:
                raise Misuse(f"{self.what}: password needs username")
        # No secret is looked up for a broker that is not allowed.
        return MqttBroker(
            host.strip("[]"),
            port,
            o.text("client.id"),
            clean_session,
            o.number("keep.alive"),
            o.number("connection.timeout"),
            self.references.resolve(user, self.what) if user else None,
            self.references.resolve(password, self.what) if password else None,
        )
