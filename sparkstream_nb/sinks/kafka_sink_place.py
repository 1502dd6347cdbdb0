"""The place of a Kafka sink, without kafka-python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEY_HEADER = "Idempotency-Key"
"""The header with a record's identity: the app's run, sink, micro-batch and row."""
TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
"""A topic's name."""
TIMEOUTS = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 20_000}
"""Until the producer gives a record up, which is then tried again with a pause."""


@dataclass(frozen=True)
class KafkaSinkPlace:
    """Place of a Kafka sink. `topic`, `partition`, `record_key` and the headers of `templates` may name attributes as
    `{{attribute}}`; `headers` are as they are. None: Kafka chooses the partition, by the record's key if it has one.
    `settings` are for kafka-python's producer. `key` begins each Idempotency-Key. Never shown: it has secrets.
    """

    servers: tuple[str, ...]
    topic: str
    partition: str | None = None
    record_key: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    key: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    templates: tuple[tuple[str, str], ...] = field(default=(), repr=False)
