"""Kafka as a source, with a real broker: every message once, whatever is killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions
from kafka.structs import OffsetAndMetadata

from sparkstream_nb.app import App
from sparkstream_nb.sources.reader import PLACE
from tests.apps import kafka_crashing
from tests.apps.programs import killed
from tests.apps.waiting import rows, until
from tests.broker import Broker
from tests.marks import thorough


def text(broker: Broker, topic: str, options: str = "") -> str:
    return f"""
    @source(type='kafka', bootstrap.servers='{broker.address}', topic.list='{topic}', group.id='g-{topic}',
            threading.option='single.thread'{options}, @map(type='json'))
    define stream S (k string, v long);
    @info(name = 'q') from S select k, v, count() as n insert into O;
    """


def send(broker: Broker, topic: str, values: Iterable[int], partition: int | None = None) -> None:
    producer = broker.producer(linger_ms=5)
    for v in values:
        body = json.dumps({"event": {"k": f"k{v % 5}", "v": v}}).encode()
        producer.send(topic, body, key=f"k{v % 5}".encode(), partition=partition)
    producer.flush()
    producer.close()


def allow(broker: Broker) -> list[str]:
    return [f"kafka={broker.address}"]


def values(app: App) -> list[int]:
    return sorted(app.output("O").frame["v"].tolist())


@pytest.mark.rotates
@pytest.mark.timeout(300)
def test_messages_come_once_whatever_stops(run: Callable[..., App], breaking: Broker) -> None:
    broker = breaking
    topic = broker.topic(partitions=3)
    send(broker, topic, range(200))
    app = run(text(broker, topic), allow=allow(broker))
    assert app.catch_up()
    assert rows(app, "O") == 200
    found = app.stats().sources[0]
    assert (found.received, found.events, found.rejected, found.lag) == (200, 200, 0, 0)
    (position,) = app.runtime.inbox.position.sources.values()
    assert len(position.pop(PLACE)) > 8  # the cluster's id
    assert len(position.pop(f"@topic {topic}")) == 36
    assert position == {f"{topic}:{p}": n for p, n in enumerate(lengths(broker, topic, 3))}
    app.stop()
    send(broker, topic, range(200, 300))
    again = run(text(broker, topic), allow=allow(broker))
    until(again, lambda: rows(again, "O") == 300)
    broker.stop()
    until(again, lambda: again.stats().sources[0].last_error is not None)
    broker.start()
    send(broker, topic, range(300, 400))
    until(again, lambda: rows(again, "O") == 400)
    assert values(again) == list(range(400))
    assert again.output("O").frame["n"].tolist() == list(range(1, 401))
    until(again, lambda: committed(broker, topic, 3) == 400)  # Kafka's tools see how far the group is


def lengths(broker: Broker, topic: str, partitions: int) -> list[int]:
    """How many messages each partition has."""
    found = [p for p, _, _ in broker.messages(topic)]
    return [found.count(p) for p in range(partitions)]


def committed(broker: Broker, topic: str, partitions: int) -> int:
    """The offsets of the group, added."""
    consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id=f"g-{topic}", enable_auto_commit=False)
    try:
        return sum(consumer.committed(TopicPartition(topic, p)) or 0 for p in range(partitions))
    finally:
        consumer.close()


@pytest.mark.timeout(300)
def test_partitions_are_read_in_the_order_of_event_times(run: Callable[..., App], broker: Broker) -> None:
    """Each has a third of the messages, in a time of its own; one has none, and holds up nothing."""
    topic = broker.topic(partitions=4)
    timed = text(broker, topic, ", event.time='v'")
    for p in range(3):
        send(broker, topic, range(p, 6000, 3), partition=p)
    app = run(timed, allow=allow(broker))
    assert app.catch_up()
    send(broker, topic, [6000], partition=1)
    until(app, lambda: rows(app, "O") == 6001)
    app.stop()
    for p in (2, 0, 1):
        send(broker, topic, range(6001 + p, 9001, 3), partition=p)
    app.start()
    assert app.catch_up()
    assert app.output("O").frame["v"].tolist() == list(range(9001))
    assert app.stats().sources[0].lag == 0


@pytest.mark.timeout(300)
def test_partitions_that_are_added(run: Callable[..., App], broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    send(broker, topic, range(10))
    app = run(text(broker, topic, ", optional.configuration='metadata.max.age.ms:1000'"), allow=allow(broker))
    until(app, lambda: rows(app, "O") == 10)
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    admin.create_partitions({topic: NewPartitions(3)})
    admin.close()
    send(broker, topic, range(10, 20), partition=2)
    until(app, lambda: rows(app, "O") == 20)
    assert values(app) == list(range(20))


@pytest.mark.timeout(300)
def test_messages_that_the_broker_removed_are_told(run: Callable[..., App], broker: Broker) -> None:
    topic = broker.topic()
    send(broker, topic, range(10))
    app = run(text(broker, topic), allow=allow(broker))
    until(app, lambda: rows(app, "O") == 10)
    app.stop()
    send(broker, topic, range(10, 30))
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    admin.delete_records({TopicPartition(topic, 0): 25})
    admin.close()
    app.start()
    until(app, lambda: rows(app, "O") == 15)
    assert values(app) == [*range(10), *range(25, 30)]
    assert f"15 messages of {topic}:0 are gone" in " ".join(app.logs)


@pytest.mark.timeout(300)
def test_a_topic_that_is_made_again(run: Callable[..., App], broker: Broker) -> None:
    """It has more messages than were read of the former one: none is skipped. So it is while the app runs."""
    topic = broker.topic()

    def made_again(values: Iterable[int]) -> None:
        admin = KafkaAdminClient(bootstrap_servers=broker.address)
        admin.delete_topics([topic])
        admin.close()
        broker.topic(topic)
        send(broker, topic, values)

    send(broker, topic, range(10))
    app = run(text(broker, topic), allow=allow(broker))
    until(app, lambda: rows(app, "O") == 10)
    app.stop()
    made_again(range(10, 40))
    app.start()
    until(app, lambda: rows(app, "O") == 40)
    made_again(range(40, 100))
    until(app, lambda: rows(app, "O") == 100)
    assert values(app) == list(range(100))
    assert f"topic '{topic}' was deleted and made again, and is read from its beginning" in " ".join(app.logs)


@pytest.mark.timeout(300)
def test_where_a_source_begins(run: Callable[..., App], broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    send(broker, topic, range(10))
    at = run(text(broker, topic, f", topic.offsets.map='{topic}=7'"), name="at", home=tmp_path / "at",
             allow=allow(broker))  # fmt: skip
    until(at, lambda: rows(at, "O") == 3)
    at.stop()
    consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id=f"g-{topic}", enable_auto_commit=False)
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(4, "", -1)})
    consumer.close()
    group = run(text(broker, topic), name="group", home=tmp_path / "group", allow=allow(broker))
    until(group, lambda: rows(group, "O") == 6)
    assert values(group) == list(range(4, 10))
    options = ", optional.configuration='auto.offset.reset:latest'"
    other = text(broker, topic, options).replace("group.id='g", "group.id='other")
    latest = run(other, name="latest", home=tmp_path / "latest", allow=allow(broker))
    assert latest.catch_up()
    latest.stop()
    send(broker, topic, range(10, 13))  # it has a place, though it never had an event
    latest.start()
    assert latest.catch_up()
    assert values(latest) == [10, 11, 12]


@pytest.mark.timeout(300)
def test_bad_messages_and_transport_properties(run: Callable[..., App], broker: Broker) -> None:
    topic = broker.topic()
    producer = broker.producer()
    producer.send(topic, b'{"v": 1}', key=b"a", headers=[("who", b"me")])
    producer.send(topic, b"nonsense", key=b"b", headers=[("who", b"you")])
    producer.send(topic, None, key=b"c", headers=[("who", b"they")])
    producer.send(topic, b'{"v": 2}', key=b"d", headers=[("who", b"me")])
    producer.flush()
    producer.close()
    app = run(
        f"""
        @source(type='kafka', bootstrap.servers='{broker.address}', topic.list='{topic}', group.id='g',
                threading.option='single.thread', @map(type='json', @attributes(v='$.v', who='trp:who',
                k='trp:key', p='trp:partition', o='trp:offSet')))
        define stream S (v long, who string, k string, p int, o long);
        from S select * insert into O;
        """,
        allow=allow(broker),
    )
    until(app, lambda: rows(app, "O") == 2 and len(app.errors.frame) == 2)
    found = app.output("O").frame[["v", "who", "k", "p", "o"]].to_numpy().tolist()
    assert found == [[1, "me", "a", 0, 0], [2, "me", "d", 0, 3]]
    assert [v["message"] for v in app.errors.frame["values"]] == ["nonsense", ""]


@pytest.mark.timeout(300)
def test_a_topic_that_comes_later(run: Callable[..., App], broker: Broker) -> None:
    app = run(text(broker, "later"), allow=allow(broker))
    until(app, lambda: "the broker has no topic 'later'" in (app.stats().sources[0].last_error or ""))
    broker.topic("later")
    send(broker, "later", range(5))
    until(app, lambda: rows(app, "O") == 5)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["before", thorough("after")])
def test_killed(run: Callable[..., App], broker: Broker, tmp_path: Path, place: str) -> None:
    topic, home = broker.topic(partitions=2), tmp_path / "home"
    send(broker, topic, range(500))
    killed(home, "kafka_crashing.py", home, broker.address, topic, place)
    send(broker, topic, range(500, 600))
    app = run(kafka_crashing.app_text(broker.address, topic), name="crash", home=home, allow=allow(broker))
    until(app, lambda: rows(app, "O") >= 600)
    assert values(app) == list(range(600))
    assert app.output("O").frame["n"].tolist() == list(range(1, 601))
