"""Sources and sinks of type mqtt, against a real broker."""

from __future__ import annotations

import queue
import select
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from paho.mqtt import subscribe

from sparkstream_nb.app import App, stop_all
from sparkstream_nb.connections.mqtt_client import MqttBroker
from sparkstream_nb.connections.subscriptions import BrokerMessage
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.incoming import incoming_sources
from sparkstream_nb.sources.mqtt_source import MqttTopics
from sparkstream_nb.sources.reader import ReadMessages
from sparkstream_nb.sources.subscription_reader import SubscriptionReader
from tests.apps.waiting import rows, until
from tests.mosquitto import Mosquitto
from tests.processes import free_port

Run = Callable[..., App]
LOGIN = (
    "me:$7$101$jkaQwUnx9t4gmY83$Pr92XQl12rGCYcAKJBsy8ewX4UB5JDCR2Mz/ctPmXdrs"
    "R9PFjBuYxhJOURP7gjqOzoi6NDrsqxY8r7EhGblndA==\n"
)
"""A line of mosquitto's password file: user `me`, password `s3cret`."""


@pytest.fixture
def mosquitto(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"), free_port(), getattr(request, "param", ""))
    broker.start()
    yield broker
    broker.stop()


def source_app(mosquitto: Mosquitto, more: str = "") -> str:
    return f"""
    @source(type='mqtt', url='{mosquitto.url}', topic='trades/+', {more} @map(type='json'))
    define stream S (k string, v int);
    from S select k, v insert into O;
    """


def sink_app(mosquitto: Mosquitto, more: str = "") -> str:
    return f"""
    define stream S (k string, v int);
    @sink(type='mqtt', url='{mosquitto.url}', topic='trades/{{{{k}}}}', {more} on.error='STORE', @map(type='json'))
    define stream Out (k string, v int);
    from S select k, v insert into Out;
    """


def reads(app: App) -> bool:
    figures = app.stats().sources[0]
    return figures.behind is not None and figures.last_error is None


def event(v: int) -> bytes:
    return b'{"event":{"k":"x","v":%d}}' % v


def values(app: App) -> list[int]:
    return [int(v) for v in app.output("O").frame["v"]]


@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_events_go_from_one_app_to_another(run: Run, mosquitto: Mosquitto, tmp_path: Path, qos: str) -> None:
    more = f"quality.of.service='{qos}',"
    takes = run(source_app(mosquitto, more), allow=mosquitto.allow, name="takes", home=tmp_path / "a")
    until(takes, lambda: reads(takes))
    sends = run(sink_app(mosquitto, more), allow=mosquitto.allow, name="sends", home=tmp_path / "b")
    sends.send("S", [["a", 1], ["b", 2], ["no#topic", 3], ["c", 4]])
    assert sends.drain(30) == 0
    until(takes, lambda: rows(takes, "O") == 3)
    assert sorted(values(takes)) == [1, 2, 4]
    assert sends.errors.frame["reason"].tolist() == [
        "sink Out-mqtt-1: the topic 'trades/no#topic' has a wildcard, + or #, in it"
    ]


def test_the_broker_keeps_the_last_message_of_a_topic(run: Run, mosquitto: Mosquitto) -> None:
    sends = run(sink_app(mosquitto, "message.retain='true',"), allow=mosquitto.allow)
    for v in (1, 2):
        sends.send("S", ["a", v])
        assert sends.drain(30) == 0
    message = subscribe.simple("trades/a", hostname="127.0.0.1", port=mosquitto.port)
    assert message.retain
    assert message.payload == b'{"event":{"k":"a","v":2}}'


def test_a_broker_that_goes_away_and_comes_back(run: Run, mosquitto: Mosquitto, tmp_path: Path) -> None:
    takes = run(source_app(mosquitto), allow=mosquitto.allow, name="takes", home=tmp_path / "a")
    sends = run(sink_app(mosquitto), allow=mosquitto.allow, name="sends", home=tmp_path / "b")
    until(takes, lambda: reads(takes))
    mosquitto.publish("trades/x", event(1), b"not JSON")
    until(takes, lambda: rows(takes, "O") == 1 and len(takes.errors) == 1)
    mosquitto.stop()
    until(takes, lambda: takes.stats().sources[0].last_error is not None)
    sends.send("S", ["y", 2])
    sends.flush()
    until(sends, lambda: "cannot be reached" in (sends.stats().sinks[0].last_error or ""))
    mosquitto.start()
    until(takes, lambda: reads(takes))
    assert sends.drain(30) == 0
    mosquitto.publish("trades/x", event(3))
    until(takes, lambda: 3 in values(takes))


def test_an_app_that_was_stopped_gets_the_messages_of_the_meantime(run: Run, mosquitto: Mosquitto) -> None:
    text = source_app(mosquitto, "client.id='reader', clean.session='false',")
    app = run(text, allow=mosquitto.allow)
    until(app, lambda: reads(app))
    mosquitto.publish("trades/x", *map(event, range(100)))
    until(app, lambda: rows(app, "O") > 0)
    stop_all()
    mosquitto.publish("trades/x", *map(event, range(100, 200)))
    app = run(text, allow=mosquitto.allow)
    until(app, lambda: rows(app, "O") >= 200)
    assert values(app) == list(range(200))


def reader_of(mosquitto: Mosquitto) -> SubscriptionReader:
    plan = compile_app(source_app(mosquitto))
    (source,) = incoming_sources(plan)
    broker = MqttBroker("127.0.0.1", mosquitto.port, "reader", clean_session=False)
    return SubscriptionReader(MqttTopics(broker, ("trades/+",), 2), decoder(source.mapping, plan.schema("S")))


def next_messages(reader: SubscriptionReader) -> ReadMessages:
    end = time.monotonic() + 30
    while (messages := reader.read(0.2)) is None:
        assert time.monotonic() < end
    return messages


@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_that_is_not_on_the_disk_is_sent_again(mosquitto: Mosquitto, qos: int) -> None:
    reader = reader_of(mosquitto)
    reader.open({})
    mosquitto.publish("trades/x", event(1), qos=qos)
    first = next_messages(reader)
    reader.open({})
    again = next_messages(reader)
    assert first.received == again.received == 1
    reader.confirm(first, {})  # of the connection before: this one waits for its own acknowledgement
    reader.open({})
    again = next_messages(reader)
    assert again.received == 1
    reader.confirm(again, {})
    reader.open({})
    assert reader.read(1.0) is None
    reader.close()


def test_a_full_queue_does_not_keep_a_connection_from_closing(mosquitto: Mosquitto) -> None:
    waiting: queue.Queue[BrokerMessage] = queue.Queue(1)
    connection = MqttTopics(MqttBroker("127.0.0.1", mosquitto.port), ("trades/+",), 0).subscribe(waiting)
    mosquitto.publish("trades/x", *map(event, range(5)))
    end = time.monotonic() + 30
    while not waiting.full():
        assert time.monotonic() < end
    began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < 10
    assert not connection.open
    assert waiting.qsize() == 1


def test_many_messages_do_not_wait_for_their_acknowledgements(mosquitto: Mosquitto) -> None:
    """mosquitto drops what comes in behind 1,000 messages that wait for a subscriber."""
    reader = reader_of(mosquitto)
    reader.open({})
    mosquitto.publish("trades/x", *map(event, range(3_000)))
    count = 0
    while count < 3_000:
        count += next_messages(reader).received
    reader.close()


class _OldBroker(socketserver.StreamRequestHandler):
    """Refuses MQTT 5, as a broker of MQTT 3.1.1 does, and leaves the rest to the broker of the test."""

    upstream_port = 0

    def handle(self) -> None:
        head = self.connection.recv(65_536)
        version = head[head.index(b"MQTT") + 4]
        if version == 5:
            self.connection.sendall(b"\x20\x02\x00\x01")
            return
        with socket.create_connection(("127.0.0.1", self.upstream_port)) as upstream:
            upstream.sendall(head)
            while True:
                readable, _, _ = select.select([self.connection, upstream], [], [])
                for end in readable:
                    data = end.recv(65_536)
                    if not data:
                        return
                    (upstream if end is self.connection else self.connection).sendall(data)


def test_a_broker_of_an_earlier_version(run: Run, mosquitto: Mosquitto) -> None:
    handler = type("Handler", (_OldBroker,), {"upstream_port": mosquitto.port})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as old:
        old.daemon_threads = True
        threading.Thread(target=old.serve_forever, daemon=True).start()
        port = old.server_address[1]
        app = run(source_app(Mosquitto(Path(), port)), allow=[f"mqtt=localhost:{port}"])
        until(app, lambda: reads(app))
        mosquitto.publish("trades/x", event(1))
        until(app, lambda: values(app) == [1])
        stop_all()
        old.shutdown()


@pytest.mark.parametrize("mosquitto", [LOGIN], indirect=True)
def test_a_password_is_a_reference_and_is_not_shown(
    run: Run, mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQTT_PASSWORD", "s3cret")
    login = "username='me', password='${env:MQTT_PASSWORD}',"
    how = {"allow": mosquitto.allow, "allow_env": ["MQTT_PASSWORD"]}
    app = run(source_app(mosquitto, login), **how)
    until(app, lambda: reads(app))
    assert "s3cret" not in " ".join([str(app), str(app.stats()), *app.logs, repr(app.plan)])
    monkeypatch.setenv("MQTT_PASSWORD", "wrong-one")
    other = run(source_app(mosquitto, login), fresh=True, **how)
    until(other, lambda: other.stats().sources[0].last_error is not None)
    assert "Not authorized" in str(other.stats().sources[0].last_error)
    assert "wrong-one" not in str(other.stats())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("topic='t',", "has no 'url'"),
        ("url='tcp://h:1883',", "has no 'topic'"),
        ("url='tcp://h', topic='t',", "reads from h:1883, which is not allowed. Add --allow mqtt=h:1883"),
        ("url='ssl://h:1', topic='t',", "url is tcp://HOST:PORT, not 'ssl://h:1'"),
        ("url='tcp://me:s3cret@h:1', topic='t',", "url is tcp://HOST:PORT"),
        ("url='tcp://localhost:1883', topic='a/#/b',", "has # before its end"),
        ("url='tcp://localhost:1883', topic='t', quality.of.service='3',", "is one of 0, 1, 2, not '3'"),
        ("url='tcp://localhost:1883', topic='t', keep.alive='soon',", "is a whole number from 1 to 65,535"),
        ("url='tcp://localhost:1883', topic='t', clean.session='false',", "clean.session='false' needs client.id"),
        ("url='tcp://localhost:1883', topic='t', username='me', password='s3cret',", "write password='${sec:NAME}'"),
        ("url='tcp://localhost:1883', topic='t', password='${env:X}',", "password needs username"),
    ],
)
def test_what_is_refused(run: Run, options: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as error:
        run(
            f"""
            @source(type='mqtt', {options} @map(type='json')) define stream S (v int);
            from S select v insert into O;
            """,
            allow=["mqtt=localhost:1883"],
        )
    assert message in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_quality_that_depends_on_the_event_is_refused(run: Run) -> None:
    with pytest.raises(SparkStreamError, match=r"'quality.of.service' that depends on the event"):
        run(sink_app(Mosquitto(Path(), 1883), "quality.of.service='{{v}}',"), allow=["mqtt=localhost:1883"])


def test_without_the_library(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paho", None)
    with pytest.raises(SparkStreamError, match=r"needs paho-mqtt: pip install 'sparkstream-nb\[mqtt\]'"):
        run(source_app(Mosquitto(Path(), 1883)), allow=["mqtt=localhost:1883"])
