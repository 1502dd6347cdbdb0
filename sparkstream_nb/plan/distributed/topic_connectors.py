"""Options of the sources and sinks by which partial apps exchange the events of a topic.

They follow `SPSiddhiAppCreator` for Kafka and `NatsSiddhiAppCreator` for NATS (carbon-analytics). The latter writes
each partition of a topic to a subject of its own. Its `cluster.id` names a cluster of NATS Streaming, which is retired:
here the messages go by core NATS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...messaging import Messaging
from .distribute import ExecutionGroup, Strategy, Subscription, Topic, shares

Options = Mapping[str, str]


class TopicConnectors(Protocol):
    """The sources and sinks of topics of one messaging layer."""

    def sources(self, topic: Topic, subscription: Subscription, group: ExecutionGroup, number: int) -> list[Options]:
        """The options of the sources by which instance `number` (from 0) of `group` reads its share of `topic`."""
        ...

    def sink(self, topic: Topic) -> Options:
        """The options of the sink that writes a topic."""
        ...

    def destinations(self, topic: Topic) -> list[Options]:
        """The options of each partition of a topic that is divided by key; else empty."""
        ...


def connectors_of(messaging: Messaging, servers: str) -> TopicConnectors:
    """The connectors of a messaging layer at `servers`: HOST:PORT, with commas."""
    return KafkaConnectors(servers) if messaging is Messaging.KAFKA else NatsConnectors(servers)


@dataclass(frozen=True)
class KafkaConnectors:
    """Topics at the `brokers`."""

    brokers: str

    def sources(self, topic: Topic, subscription: Subscription, group: ExecutionGroup, number: int) -> list[Options]:
        """Implements `TopicConnectors.sources`: none for all but the first of the instances that take turns."""
        strategy = subscription.strategy
        if strategy is Strategy.ROUND_ROBIN and number > 0:
            return []
        is_keyed = strategy is Strategy.FIELD_GROUPING
        options = {
            "type": "kafka",
            "topic.list": topic.name,
            "group.id": group.instances[number] if strategy is Strategy.ALL else group.name,
            "threading.option": "partition.wise" if is_keyed else "single.thread",
            "bootstrap.servers": self.brokers,
        }
        if is_keyed:
            options["partition.no.list"] = ",".join(map(str, shares(topic.partitions, group.parallel)[number]))
        return [options]

    def sink(self, topic: Topic) -> Options:
        options = {"type": "kafka", "topic": topic.name, "bootstrap.servers": self.brokers, "on.error": "STORE"}
        return options if self.destinations(topic) else {**options, "partition.no": "0"}

    def destinations(self, topic: Topic) -> list[Options]:
        if topic.key is None or topic.partitions == 1:
            return []
        return [{"partition.no": str(i)} for i in range(topic.partitions)]


@dataclass(frozen=True)
class NatsConnectors:
    """Subjects at the `servers`."""

    servers: str

    @property
    def _urls(self) -> str:
        return ",".join(f"nats://{server}" for server in self.servers.split(","))

    def sources(self, topic: Topic, subscription: Subscription, group: ExecutionGroup, number: int) -> list[Options]:
        """Implements `TopicConnectors.sources`: one for each subject; instances that take turns are a queue group."""
        names = [topic.name]
        if subscription.strategy is Strategy.FIELD_GROUPING:
            subjects = subjects_of(topic)
            names = [subjects[i] for i in shares(topic.partitions, group.parallel)[number]]
        queue = {"queue.group.name": group.name} if subscription.strategy is Strategy.ROUND_ROBIN else {}
        return [{"type": "nats", "destination": name, **queue, "bootstrap.servers": self._urls} for name in names]

    def sink(self, topic: Topic) -> Options:
        destination = {} if topic.key is not None else {"destination": topic.name}
        return {"type": "nats", **destination, "bootstrap.servers": self._urls, "on.error": "STORE"}

    def destinations(self, topic: Topic) -> list[Options]:
        return [] if topic.key is None else [{"destination": subject} for subject in subjects_of(topic)]


def subjects_of(topic: Topic) -> Sequence[str]:
    """The subjects of NATS for a topic, one for each partition."""
    return [topic.name] if topic.key is None else [f"{topic.name}_{i}" for i in range(topic.partitions)]
