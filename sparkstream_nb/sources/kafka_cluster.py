"""Data of a kafka-python consumer on its cluster for which it has no method."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import LeaderNotAvailableError

_NO_LEADER = -1


def cluster_id(consumer: KafkaConsumer) -> str | None:
    """The id of the cluster, the same at all its brokers; None if they do not say (before Kafka 0.10.1)."""
    id = consumer._cluster.cluster_id
    return str(id) if id else None


def topic_ids(consumer: KafkaConsumer, topics: Iterable[str]) -> dict[str, str]:
    """The ids of topics: one that is deleted and made again has another (KIP-516). Topics whose id the brokers do not
    tell (before Kafka 2.8) are left out.
    """
    ids = {topic: consumer._cluster.topic_id(topic) for topic in topics}
    return {topic: str(id) for topic, id in ids.items() if id is not None}


def without_leader(consumer: KafkaConsumer, places: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
    """The partitions that have no leader, as the brokers said last: nothing of them can be read or asked now."""
    return frozenset(p for p in places if consumer._cluster.leader_for_partition(p) == _NO_LEADER)


def offsets_of(
    ask: Callable[[list[TopicPartition]], dict[TopicPartition, int]], places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Result of `ask`, the consumer's `beginning_offsets` or `end_offsets`, for partitions. Raises KafkaError."""
    partitions = list(places)
    try:
        return ask(partitions)
    except KeyError:  # it leaves out a partition without a leader, and misses it then
        raise LeaderNotAvailableError("a partition lost its leader meanwhile") from None
