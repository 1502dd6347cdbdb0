"""The place of a Kafka source, without kafka-python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KafkaSourcePlace:
    """Place of a Kafka source: `options` are for kafka-python's consumer, secrets too. `partitions` (None: all) of
    each of the `topics`. `starts`: the offset at which a partition (topic, number) begins that was never read;
    others begin at the offsets of the `group`, else at the topic's beginning, or its end with `latest`. `commits`: the
    group's offsets follow.
    """

    topics: tuple[str, ...]
    partitions: frozenset[int] | None
    group: str
    starts: Mapping[tuple[str, int], int]
    latest: bool
    commits: bool
    options: Mapping[str, Any] = field(repr=False)
