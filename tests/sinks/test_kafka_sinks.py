"""Sinks of type kafka, against a real broker on this machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from tests.app.views.test_scalable import java_place
from tests.broker import Broker
from tests.sinks.test_sinks import app_with, send

VALUE = "@map(type='text', @payload('{{v}}'))"


def kafka_sink(broker: str, more: str, mapping: str = VALUE) -> str:
    return f"@sink(type='kafka', bootstrap.servers='{broker}', {more}, {mapping})"


def values(broker: Broker, topic: str) -> list[int]:
    return [int(value) for _, _, value in broker.messages(topic)]


def test_topics_partitions_and_keys_of_the_event(run: Callable[..., App], broker: Broker) -> None:
    one, other = broker.topic(partitions=2), broker.topic()
    headers = "headers=\"'Kind:alert','V:{{v}}'\""
    sinks = kafka_sink(broker.address, f"topic='{{{{k}}}}', partition.no='{{{{v}}}}', key='{{{{k}}}}', {headers}",
                       "@map(type='json')")  # fmt: skip
    configured = "optional.configuration='linger.ms:1, compression.type:gzip,acks:all', is.binary.message='true'"
    sinks += kafka_sink(broker.address, f"topic='{other}', {configured}")
    app = run(app_with(sinks, "from S select k, v insert into Alerts;"), allow=[f"kafka={broker.address}"])
    app.send("S", [[one, 0], [one, 1], [one, 0], [one, 7], ["no topic", 0]])
    assert app.drain(60) == 0
    event = '{{"event":{{"k":"{}","v":{}}}}}'.format
    assert broker.messages(one) == [
        (0, one.encode(), f"[{event(one, 0)},{event(one, 0)}]".encode()),
        (1, one.encode(), event(one, 1).encode()),
    ]
    found = [dict(r.headers) for r in broker.records(one)]
    assert [(h["Kind"], h["V"]) for h in found] == [(b"alert", b"0"), (b"alert", b"1")]
    assert values(broker, other) == [0, 1, 0, 7, 0]
    dynamic, plain = app.stats().sinks
    assert (dynamic.sent, dynamic.failed, plain.sent) == (3, 2, 5)
    assert dynamic.name == "Alerts-kafka-1"
    assert plain.target == f"kafka://{broker.address}/{other}"
    assert any(f"topic '{one}' has no partition 7: it has 2" in line for line in app.logs)
    assert any("'no topic' is not the name of a topic" in line for line in app.logs)
    keys = [dict(r.headers)["Idempotency-Key"].decode() for r in broker.records(other)]
    assert keys == [f"{app.runtime.app_run.run}-Alerts-kafka-2-0-{i}" for i in range(5)]
    assert "each record has an Idempotency-Key" in str(app.explain())


@pytest.mark.contract
@pytest.mark.timeout(240)
def test_halves_of_surrogate_pairs_from_topic_to_topic(run: Callable[..., App], broker: Broker) -> None:
    """JSON may name one; bytes that would be one are no UTF-8."""
    read, written = broker.topic(), broker.topic()
    text = f"""
    @source(type='kafka', bootstrap.servers='{broker.address}', topic.list='{read}', group.id='halves',
            threading.option='single.thread', @map(type='json'))
    define stream S (k string, o object);
    {kafka_sink(broker.address, f"topic='{written}'", "@map(type='json')")}
    define stream O (k string, o object);
    from S select k, o insert into O;
    """
    producer = broker.producer()
    for body in (
        b'{"event":{"k":"\\ud800","o":{"z":"\\udc00"}}}',
        b'{"event":{"k":"\xed\xa0\x80","o":1}}',
        b'{"event":{"k":"\\ud83d\\ude00","o":{"\\udfff":1}}}',
    ):
        producer.send(read, body)
    producer.flush()
    producer.close()
    app = run(text, allow=[f"kafka={broker.address}"])
    assert app.catch_up()
    assert app.drain(60) == 0
    bodies = [value.decode() for _, _, value in broker.messages(written)]
    assert bodies == ['{"event":{"k":"?","o":{"z":"?"}}}', '{"event":{"k":"\U0001f600","o":{"?":1}}}']
    assert app.output("O").frame["o"].tolist() == [{"z": "?"}, {"?": 1}]
    (reason,) = app.errors.frame["reason"]
    assert reason.startswith("not UTF-8 text: 0xed")


@pytest.mark.rotates
@pytest.mark.timeout(240)
def test_a_broker_that_is_killed_and_comes_back(run: Callable[..., App], breaking: Broker) -> None:
    topic = breaking.topic()
    app = run(app_with(kafka_sink(breaking.address, f"topic='{topic}'")), allow=[f"kafka={breaking.address}"])
    send(app, 1, 300)
    assert app.drain(60) == 0
    breaking.stop()
    send(app, 301, 300)
    app.flush()
    assert app.drain(0) == 300
    breaking.start()
    send(app, 601, 300)
    assert app.drain(120) == 0
    found = values(breaking, topic)
    assert list(dict.fromkeys(found)) == list(range(1, 901))
    (figures,) = app.stats().sinks
    assert (figures.sent, figures.failed, figures.last_error) == (900, 0, None)


def test_partitioned_broadcast_and_in_turn(run: Callable[..., App], broker: Broker) -> None:
    topics = [broker.topic(partitions=2) for _ in range(4)]

    def distributed(strategy: str, *destinations: str) -> str:
        places = ", ".join(f"@destination({d})" for d in destinations)
        return (
            f"@sink(type='kafka', bootstrap.servers='{broker.address}', {VALUE}, @distribution({strategy}, {places}))"
        )

    by_number = [f"topic='{topics[0]}', partition.no='{i}'" for i in (0, 1)]
    sinks = (
        distributed("strategy='partitioned', partitionKey='k'", *by_number)
        + distributed("strategy='broadcast'", f"topic='{topics[1]}'", f"topic='{topics[2]}'")
        + distributed("strategy='roundRobin'", *(d.replace(topics[0], topics[3]) for d in by_number))
    )
    app = run(app_with(sinks), allow=[f"kafka={broker.address}"])
    send(app, 1, 8)
    assert app.drain(60) == 0
    divided = {p: [int(v) for q, _, v in broker.messages(topics[0]) if q == p] for p in (0, 1)}
    assert divided == {p: [i for i in range(1, 9) if java_place(f"k{i}", 2) == p] for p in (0, 1)}
    assert sorted(values(broker, topics[1])) == sorted(values(broker, topics[2])) == list(range(1, 9))
    turns = {p: [int(v) for q, _, v in broker.messages(topics[3]) if q == p] for p in (0, 1)}
    assert turns == {0: [1, 3, 5, 7], 1: [2, 4, 6, 8]}


SERVER = "localhost:9092"
REFUSED = [
    ("other:9092", "topic='t'", "writes to other:9092, which is not allowed. Add --allow kafka=other:9092"),
    (f"{SERVER},other:9092", "topic='t'", "writes to other:9092, which is not allowed"),
    ("${sec:server}", "topic='t'", "bootstrap.servers cannot have a reference"),
    ("localhost", "topic='t'", "is not HOST:PORT"),
    (SERVER, "key='t'", "has no 'topic'"),
    (SERVER, "topic='a b'", "topic is up to 249 letters"),
    (SERVER, "topic='t', partition.no='x'", "partition.no is a number"),
    (SERVER, "topic='t', sequence.id='s'", "'sequence.id' of a sink of type 'kafka'"),
    (SERVER, "topic='t', is.binary.message='perhaps'", "of @sink(type='kafka') is 'true' or 'false'"),
    (SERVER, "topic='t', key='{{kk}}'", "has no attribute 'kk'"),
    (SERVER, "topic='t', headers=\"'idempotency-key:1'\"", "the header idempotency-key is not an app's to set"),
    (SERVER, "topic='t', headers=\"'a b:1'\"", "write headers="),
    (SERVER, "topic='t', headers=\"'X-Api-Key:abc'\"", "the header X-Api-Key holds a secret"),
    (SERVER, "topic='t', headers=\"'Room:{{kk}}'\"", "has no attribute 'kk'"),
    (SERVER, "topic='t', optional.configuration='acks:1'", "acks is one of -1, all"),
    (SERVER, "topic='t', optional.configuration='acks'", "is 'name:value,name:value'"),
    (SERVER, "topic='t', optional.configuration='retries:0'", "'retries' in optional.configuration of a sink"),
    (SERVER, "topic='t', optional.configuration='linger.ms:soon'", "linger.ms is a number"),
    (SERVER, "topic='t', optional.configuration='delivery.timeout.ms:10'", "delivery.timeout.ms is less than"),
    (SERVER, "topic='t', optional.configuration='sasl.mechanism:PLAIN'", "a login needs security.protocol:SASL_SSL"),
    (
        SERVER,
        "topic='t', optional.configuration=\"security.protocol:SASL_SSL,sasl.mechanism:PLAIN,"
        "sasl.jaas.config:x required username='me' password='open';\"",
        "the password does not belong into the app's text",
    ),
    (SERVER, "topic='t', optional.configuration='security.protocol:SASL_SSL'", "a login is sasl.mechanism:PLAIN"),
]


@pytest.mark.parametrize(("server", "options", "message"), REFUSED)
def test_sinks_that_are_refused(run: Callable[..., App], server: str, options: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as raised:
        run(app_with(kafka_sink(server, options)), allow=[f"kafka={SERVER}"])
    assert message in str(raised.value)
    assert str(raised.value).startswith("line 2, ")
    assert "open" not in str(raised.value)


def test_passwords_come_from_outside(run: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "sesame")
    login = (
        "security.protocol:SASL_SSL,sasl.mechanism:SCRAM-SHA-512,"
        "sasl.jaas.config:x required username='me' password='${sec:kafka.password}';"
    )
    text = app_with(kafka_sink(SERVER, f"topic='t', optional.configuration=\"{login}\""))
    app = run(text, allow=[f"kafka={SERVER}"], allow_env=["KAFKA_PASSWORD"])
    assert app.deployment.connections.sinks is not None
    (setup,) = app.deployment.connections.sinks.setups("r")
    assert setup.target.place.settings == {  # type: ignore[attr-defined]
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "sesame",
    }
    for shown in (repr(setup), str(app.explain()), repr(app.deployment), repr(app.stats().sinks)):
        assert "sesame" not in shown
