"""Records of a Kafka target, against a real broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest

from sparkstream_nb.mapping import Message
from sparkstream_nb.sinks import kafka_sink as kafka_module
from sparkstream_nb.sinks.kafka_sink import KafkaTarget
from sparkstream_nb.sinks.kafka_sink_place import KEY_HEADER, KafkaSinkPlace
from sparkstream_nb.sinks.target import OutputPlace, TargetUnavailable, Undeliverable
from tests.broker import Broker


@pytest.fixture
def target(broker: Broker) -> Iterator[KafkaTarget]:
    found = KafkaTarget(KafkaSinkPlace((broker.address,), "{{topic}}", "{{partition}}", key="run"))
    yield found
    found.close()


def messages(topic: str, *bodies: bytes, partition: str = "0") -> list[Message]:
    return [Message(b, (i,), {"topic": topic, "partition": partition}) for i, b in enumerate(bodies)]


def places(count: int, first: int = 0) -> Sequence[OutputPlace]:
    return [OutputPlace(7, first + i) for i in range(count)]


def bodies(broker: Broker, topic: str) -> list[bytes]:
    return [value for _, _, value in broker.messages(topic)]


def test_records_and_their_identity(broker: Broker, target: KafkaTarget) -> None:
    topic = broker.topic(partitions=2)
    found = [*messages(topic, b"x", b"y"), *messages(topic, b"z", partition="1")]
    assert target.send(found, places(3)) == 3
    assert broker.messages(topic) == [(0, None, b"x"), (0, None, b"y"), (1, None, b"z")]
    assert [dict(r.headers) for r in broker.records(topic)] == [{KEY_HEADER: f"run-7-{i}".encode()} for i in range(3)]


def test_a_record_that_is_too_large(broker: Broker, target: KafkaTarget) -> None:
    """Those before it are sent, then it is refused, and those after it are sent once."""
    topic = broker.topic()
    found = messages(topic, b"a", b"b" * 2_000_000, b"c")
    assert target.send(found, places(3)) == 1
    with pytest.raises(Undeliverable, match="message size too large"):
        target.send(found[1:], places(2, 1))
    assert target.send(found[2:], places(1, 2)) == 1
    assert bodies(broker, topic) == [b"a", b"c"]


def test_a_broker_that_takes_less_than_the_producer(broker: Broker, target: KafkaTarget) -> None:
    """Records that the broker refuses with a large one beside them are sent alone."""
    topic = broker.topic(**{"max.message.bytes": "2000"})
    found = messages(topic, *[b"%d" % i for i in range(20)], b"b" * 4_000, b"z")
    assert target.send(found, places(22)) == 20
    with pytest.raises(Undeliverable, match="Kafka does not take it: message size too large"):
        target.send(found[20:], places(2, 20))
    assert target.send(found[21:], places(1, 21)) == 1
    assert bodies(broker, topic) == [*[b"%d" % i for i in range(20)], b"z"]


def test_topics_and_partitions_that_are_not_there(
    broker: Broker, target: KafkaTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_module, "BLOCK", 500)
    topic = broker.topic()
    for _ in range(2):
        with pytest.raises(Undeliverable, match="there is no topic 'nobody'"):
            target.send(messages("nobody", b"x"), places(1))
    with pytest.raises(Undeliverable, match=rf"topic '{topic}' has no partition 3: it has 1"):
        target.send(messages(topic, b"x", partition="3"), places(1))
    with pytest.raises(Undeliverable, match="'-1' is not the number of a partition"):
        target.send(messages(topic, b"x", partition="-1"), places(1))
    with pytest.raises(Undeliverable, match="'a b' is not the name of a topic"):
        target.send(messages("a b", b"x"), places(1))
    # What comes before one that is refused is sent.
    assert target.send([*messages(topic, b"x", b"y"), *messages("a b", b"z")], places(3)) == 2
    assert bodies(broker, topic) == [b"x", b"y"]


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.servers import free_port

    monkeypatch.setattr(kafka_module, "BOOTSTRAP", 200)
    target = KafkaTarget(KafkaSinkPlace((f"127.0.0.1:{free_port()}",), "t"))
    with pytest.raises(TargetUnavailable, match=r"127\.0\.0\.1:"):
        target.send([Message(b"x", (0,))], places(1))
    target.close()


class Producer:
    """Takes every record, and notes its headers."""

    def __init__(self) -> None:
        self.headers: list[list[tuple[str, bytes]]] = []

    def partitions_for(self, topic: str) -> set[int]:
        return {0}

    def send(self, topic: str, body: bytes, *, headers: list[tuple[str, bytes]], **_: object) -> SimpleNamespace:
        self.headers.append(headers)
        return SimpleNamespace(get=lambda timeout: None)

    def close(self, timeout: float) -> None: ...


def test_headers_of_the_app() -> None:
    place = KafkaSinkPlace(("h:1",), "t", key="run", headers=(("App", "ä"),), templates=(("Room", "r-{{room}}"),))
    target = KafkaTarget(place)
    assert target.templates == {"header Room": "r-{{room}}"}
    producer = target._producer = Producer()
    found = [Message(b"x", (i,), {"header Room": room}) for i, room in enumerate(["r-1", "r-\n\u00fc"])]
    assert target.send(found, places(2)) == 2
    assert producer.headers == [
        [("App", b"\xc3\xa4"), ("Room", b"r-1"), (KEY_HEADER, b"run-7-0")],
        [("App", b"\xc3\xa4"), ("Room", b"r-\n\xc3\xbc"), (KEY_HEADER, b"run-7-1")],
    ]
    assert "r-{{room}}" not in repr(place)
    with pytest.raises(Undeliverable, match="has half of a surrogate pair in it"):
        target.send([Message(b"x", (0,), {"header Room": "\ud800"})], places(1))
