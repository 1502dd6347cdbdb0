"""The options of `kafka` sinks as topics that an app may write to: grants, settings, logins from outside the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import Misuse, shown
from ...plan.connectors.kafka_client_settings import CONFIGURATION, PRODUCER
from ...plan.query_parts import template_attributes
from ...sinks.kafka_sink_place import KEY_HEADER, TIMEOUTS, TOPIC, KafkaSinkPlace
from ...sinks.target import Target
from ..config.grants import Grants
from ..config.secrets import References
from .header_options import headers_of
from .kafka_settings import servers_of, settings_of
from .typed_options import OptionValues


@dataclass(frozen=True)
class KafkaGate:
    """Makes targets of the options of `what`, a sink in words, within its `grants`. `key` begins the
    Idempotency-Keys of its records.
    """

    grants: Grants
    references: References
    what: str
    key: str

    def target(self, options: Mapping[str, str]) -> tuple[str, Target]:
        """(servers and topic as they may be shown, the target). Raises `Misuse` for options that are wrong, or have a
        secret that is no reference, and NotAllowed where a server is not granted."""
        o = OptionValues.of("sink", "kafka", options, self.what)
        # No secret is looked up for a server that is not allowed.
        servers = servers_of(o.raw("bootstrap.servers"), self.grants, self.what, "writes to")
        o.check_shown("topic", "partition.no", "key", "is.binary.message")
        topic, partition = o.raw("topic"), o.optional("partition.no")
        if not template_attributes(topic) and not TOPIC.fullmatch(topic):
            raise Misuse(f"{self.what}: topic is up to 249 letters, digits, '.', '_' and '-', not {shown(topic)}")
        if partition is not None and not template_attributes(partition) and not re.fullmatch(r"\d{1,9}", partition):
            raise Misuse(f"{self.what}: partition.no is a number such as '0', not {shown(partition)}")
        o.flag("is.binary.message")
        settings = settings_of(o.raw(CONFIGURATION), PRODUCER, self.references, self.what)
        timeouts = TIMEOUTS | settings
        if timeouts["delivery_timeout_ms"] < timeouts["request_timeout_ms"] + settings.get("linger_ms", 0):
            raise Misuse(f"{self.what}: delivery.timeout.ms is less than request.timeout.ms and linger.ms together")
        header_list = list(headers_of(o.raw("headers"), {KEY_HEADER.lower()}, self.references, self.what))
        place = KafkaSinkPlace(
            servers, topic, partition, o.optional("key"), settings, self.key,
            headers=tuple((h.name, h.value) for h in header_list if not h.dynamic),
            templates=tuple((h.name, h.value) for h in header_list if h.dynamic),
        )  # fmt: skip
        from ...sinks.kafka_sink import KafkaTarget  # kafka-python is optional; servers_of has found it

        return f"kafka://{','.join(servers)}/{topic}", KafkaTarget(place)
