"""Topics of Kafka that are made before anything is written to them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from ..errors import Misuse, SparkStreamError

_BOOTSTRAP, _REQUEST = 5_000, 20_000
"""ms: to find the servers, and for an answer."""


def make_topics(servers: Sequence[str], partitions: Mapping[str, int]) -> list[str]:
    """Create the topics that do not exist, each with its number of partitions and the servers' own replication, and
    return their names. Existing ones do not change.

    Raises `Misuse` for one that exists with fewer partitions, before any is made, and SparkStreamError if the servers
    are away or do not make one.
    """
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=list(servers), bootstrap_timeout_ms=_BOOTSTRAP, request_timeout_ms=_REQUEST
        )
        with contextlib.closing(admin):
            existing = set(admin.list_topics()) & partitions.keys()
            for description in admin.describe_topics(sorted(existing)) if existing else []:
                name, count = description["name"], len(description["partitions"])
                if count < partitions[name]:
                    raise Misuse(
                        f"topic '{name}' has {count} partitions, and {partitions[name]} are needed: add partitions "
                        "before anything is written to it, or delete it"
                    )
            new = [name for name in partitions if name not in existing]
            if new:
                admin.create_topics([NewTopic(name, partitions[name]) for name in new], wait_for_metadata=True)
            return new
    except (KafkaError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise SparkStreamError(f"the topics are not made, {', '.join(servers)}: {reason}") from None
