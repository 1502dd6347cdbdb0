"""The options of `kafka` sources as topics that an app may read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import Misuse, shown
from ...plan.connectors.kafka_client_settings import CONFIGURATION, CONSUMER
from ...sources.kafka_source_place import KafkaSourcePlace
from ..config.grants import Grants
from ..config.secrets import References
from .kafka_settings import servers_of, settings_of
from .typed_options import OptionValues

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names of topics, by Kafka's `Topic.LEGAL_CHARS`."""


def make_kafka_place(o: OptionValues, grants: Grants, references: References) -> KafkaSourcePlace:
    """The topics of a source, as far as `grants` allow. Raises `Misuse` for options that are wrong."""
    servers = servers_of(o.raw("bootstrap.servers"), grants, o.what, "reads from Kafka at")
    topics = tuple(dict.fromkeys(t.strip() for t in o.text("topic.list").split(",") if t.strip()))
    for topic in topics:
        if not _NAME.fullmatch(topic):
            raise Misuse(f"{o.what}: {shown(topic)} is not the name of a topic")
    o.choice("threading.option")
    o.flag("is.binary.message")
    o.flag("enable.async.commit")
    options = settings_of(o.raw(CONFIGURATION), CONSUMER, references, o.what)
    options["bootstrap_servers"] = list(servers)
    latest = options.pop("auto_offset_reset", "earliest") == "latest"
    return KafkaSourcePlace(
        topics=topics,
        partitions=_partitions(o),
        group=o.text("group.id"),
        starts=_starts(o, topics),
        latest=latest,
        commits=o.flag("enable.offsets.commit"),
        options=options,
    )


def _partitions(o: OptionValues) -> frozenset[int] | None:
    text = o.text("partition.no.list")
    if not text:
        return None
    numbers = [p.strip() for p in text.split(",")]
    if not all(p.isdecimal() for p in numbers):
        raise Misuse(f"{o.what}: 'partition.no.list' is numbers such as '0,1', not {shown(text)}")
    return frozenset(map(int, numbers))


def _starts(o: OptionValues, topics: tuple[str, ...]) -> Mapping[tuple[str, int], int]:
    """`topic.offsets.map`, as siddhi-io-kafka has it: `topic=o0,topic2=o1`; partition 0 of each."""
    out = {}
    for part in [p.strip() for p in o.text("topic.offsets.map").split(",") if p.strip()]:
        topic, equals, offset = (x.strip() for x in part.partition("="))
        if not equals or topic not in topics or not offset.isdecimal():
            raise Misuse(f"{o.what}: 'topic.offsets.map' is TOPIC=OFFSET,... of its topics, not {shown(part)}")
        out[topic, 0] = int(offset)
    return out
