"""The settings of Kafka's clients that `optional.configuration` may have, by the names of Kafka's own client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

CONFIGURATION = "optional.configuration"
_LOGIN: Mapping[str, type] = {"security.protocol": str, "sasl.mechanism": str, "sasl.jaas.config": str}
PRODUCER: Mapping[str, type] = {
    "acks": str, "batch.size": int, "linger.ms": int, "compression.type": str, "max.request.size": int,
    "request.timeout.ms": int, "delivery.timeout.ms": int, "client.id": str, **_LOGIN,
}  # fmt: skip
"""Options of a producer, with their types."""
CONSUMER: Mapping[str, type] = {
    "auto.offset.reset": str, "client.id": str, "fetch.min.bytes": int, "fetch.max.bytes": int,
    "fetch.max.wait.ms": int, "max.partition.fetch.bytes": int, "metadata.max.age.ms": int,
    "request.timeout.ms": int, "isolation.level": str, **_LOGIN,
}  # fmt: skip
"""Options of a consumer, with their types."""


def client_settings(text: str) -> Iterator[tuple[str, str]]:
    """The settings of `optional.configuration='a:1,b:2'`; ("", text) for one without a colon."""
    for part in text.split(","):
        key, colon, value = part.strip().partition(":")
        if part.strip():
            yield (key.strip(), value.strip()) if colon else ("", part.strip())
