"""The messaging layer between the partial apps of a fully distributed app."""

from __future__ import annotations

from enum import StrEnum


class Messaging(StrEnum):
    """A messaging layer: topics of Kafka, or subjects of NATS."""

    KAFKA = "kafka"
    NATS = "nats"

    @property
    def label(self) -> str:
        """Its name in a sentence."""
        return "Kafka" if self is Messaging.KAFKA else "NATS"
