"""Sources and sinks of type rabbitmq, against a real broker."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.app import App, stop_all
from sparkstream_nb.connections.rabbitmq_client import RabbitBroker, RabbitExchange, RabbitQueue
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.incoming import incoming_sources
from sparkstream_nb.sources.rabbitmq_source import RabbitBinding
from sparkstream_nb.sources.reader import ReadMessages
from sparkstream_nb.sources.subscription_reader import SubscriptionReader
from tests.apps.waiting import rows, until
from tests.rabbitmq_server import RabbitServer

Run = Callable[..., App]
URI = "amqp://guest:guest@localhost:5672"


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    """A broker for all tests: each has an exchange of its own."""
    server = RabbitServer(tmp_path_factory.mktemp("rabbitmq"))
    server.start()
    yield server
    server.close()


@pytest.fixture
def exchange() -> str:
    return f"trades-{uuid.uuid4().hex[:8]}"


def source_app(uri: str, exchange: str, more: str = "") -> str:
    return f"""
    @source(type='rabbitmq', uri='{uri}', exchange.name='{exchange}', {more} @map(type='json'))
    define stream S (k string, v int);
    from S select k, v insert into O;
    """


def sink_app(uri: str, exchange: str, more: str = "") -> str:
    return f"""
    define stream S (k string, v int);
    @sink(type='rabbitmq', uri='{uri}', exchange.name='{exchange}', {more} on.error='STORE', @map(type='json'))
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


def test_events_go_from_one_app_to_another(run: Run, rabbitmq: RabbitServer, exchange: str, tmp_path: Path) -> None:
    takes = run(
        source_app(rabbitmq.uri, exchange, "exchange.type='topic', routing.key='rooms.*',"),
        allow=rabbitmq.allow, name="takes", home=tmp_path / "a",
    )  # fmt: skip
    until(takes, lambda: reads(takes))
    text = sink_app(rabbitmq.uri, exchange, "exchange.type='topic', routing.key='rooms.{{k}}',")
    sends = run(text, allow=rabbitmq.allow, name="sends", home=tmp_path / "b")
    sends.send("S", [["a", 1], ["b", 2], ["x" * 300, 3], ["a.b", 4], ["c", 5]])
    assert sends.drain(30) == 0
    until(takes, lambda: rows(takes, "O") == 3)
    assert sorted(values(takes)) == [1, 2, 5]
    assert sends.errors.frame["reason"].tolist() == [
        "sink Out-rabbitmq-1: the routing key has more than 255 bytes"
    ]


def test_the_default_exchange_type_routes_by_the_empty_key(
    run: Run, rabbitmq: RabbitServer, exchange: str, tmp_path: Path
) -> None:
    """The public apps give the exchange alone."""
    takes = run(source_app(rabbitmq.uri, exchange), allow=rabbitmq.allow, name="takes", home=tmp_path / "a")
    until(takes, lambda: reads(takes))
    sends = run(sink_app(rabbitmq.uri, exchange), allow=rabbitmq.allow, name="sends", home=tmp_path / "b")
    sends.send("S", [["a", v] for v in range(1_000)])
    until(takes, lambda: rows(takes, "O") == 1_000)
    assert values(takes) == list(range(1_000))


def test_properties_of_a_message(run: Run, rabbitmq: RabbitServer, exchange: str) -> None:
    def bind(channel: Any) -> None:
        channel.exchange_declare(exchange, "headers")
        channel.queue_declare(exchange)
        channel.queue_bind(exchange, exchange, arguments={"room": "a", "x-match": "all"})

    rabbitmq.use(bind)
    more = "exchange.type='headers', delivery.mode='2', headers=\"'room:{{k}}','site:one'\","
    sends = run(sink_app(rabbitmq.uri, exchange, more), allow=rabbitmq.allow)
    for k, v in (("a", 1), ("b", 2)):
        sends.send("S", [k, v])
    assert sends.drain(30) == 0
    _, properties, body = rabbitmq.use(lambda channel: channel.basic_get(exchange, auto_ack=True))
    assert b'"v":1' in body
    assert properties.headers == {"room": "a", "site": "one"}
    assert properties.delivery_mode == 2
    assert properties.content_type == "application/json"
    assert properties.message_id.endswith("-Out-rabbitmq-1-0-0")
    assert abs(properties.timestamp - time.time()) < 60
    assert rabbitmq.use(lambda channel: channel.basic_get(exchange)) == (None, None, None)


def test_a_broker_that_goes_away_and_comes_back(
    run: Run, rabbitmq: RabbitServer, exchange: str, tmp_path: Path
) -> None:
    queue = f"exchange.durable.enabled='true', queue.name='{exchange}', queue.durable.enabled='true',"
    takes = run(source_app(rabbitmq.uri, exchange, queue), allow=rabbitmq.allow, name="takes", home=tmp_path / "a")
    until(takes, lambda: reads(takes))
    text = sink_app(rabbitmq.uri, exchange, "exchange.durable.enabled='true', delivery.mode='2',")
    sends = run(text, allow=rabbitmq.allow, name="sends", home=tmp_path / "b")
    rabbitmq.publish(exchange, event(1), b"not JSON")
    until(takes, lambda: rows(takes, "O") == 1 and len(takes.errors) == 1)
    rabbitmq.stop()
    until(takes, lambda: takes.stats().sources[0].last_error is not None)
    sends.send("S", ["y", 2])
    sends.flush()
    until(sends, lambda: "cannot be reached" in (sends.stats().sinks[0].last_error or ""))
    rabbitmq.start()
    assert sends.drain(60) == 0
    until(takes, lambda: 2 in values(takes))
    assert values(takes) == [1, 2]


def test_an_app_that_was_stopped_gets_the_messages_of_the_meantime(
    run: Run, rabbitmq: RabbitServer, exchange: str
) -> None:
    text = source_app(rabbitmq.uri, exchange, f"queue.name='{exchange}', auto.ack='false',")
    app = run(text, allow=rabbitmq.allow)
    until(app, lambda: reads(app))
    rabbitmq.publish(exchange, *map(event, range(100)))
    until(app, lambda: rows(app, "O") > 0)
    stop_all()
    rabbitmq.publish(exchange, *map(event, range(100, 200)))
    app = run(text, allow=rabbitmq.allow)
    until(app, lambda: rows(app, "O") >= 200)
    assert values(app) == list(range(200))


def next_messages(reader: SubscriptionReader) -> ReadMessages:
    end = time.monotonic() + 30
    while (messages := reader.read(0.2)) is None:
        assert time.monotonic() < end
    return messages


def test_a_message_that_is_not_on_the_disk_is_sent_again(rabbitmq: RabbitServer, exchange: str) -> None:
    plan = compile_app(source_app(rabbitmq.uri, exchange))
    (source,) = incoming_sources(plan)
    binding = RabbitBinding(
        RabbitBroker("127.0.0.1", rabbitmq.port, "/", "guest", "guest"), RabbitExchange(exchange), RabbitQueue(exchange)
    )
    reader = SubscriptionReader(binding, decoder(source.mapping, plan.schema("S")))
    reader.open({})
    rabbitmq.publish(exchange, event(1))
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


def test_a_queue_that_was_deleted_is_an_error(run: Run, rabbitmq: RabbitServer, exchange: str) -> None:
    app = run(source_app(rabbitmq.uri, exchange, f"queue.name='{exchange}',"), allow=rabbitmq.allow)
    until(app, lambda: reads(app))
    rabbitmq.use(lambda channel: channel.queue_delete(exchange))
    until(app, lambda: any("ended the connection" in line for line in app.logs))
    until(app, lambda: reads(app))
    rabbitmq.publish(exchange, event(7))
    until(app, lambda: values(app) == [7])


def test_a_password_is_a_reference_and_is_not_shown(
    run: Run, rabbitmq: RabbitServer, exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"amqp://guest:${{env:RABBIT_PASSWORD}}@localhost:{rabbitmq.port}"
    how = {"allow": rabbitmq.allow, "allow_env": ["RABBIT_PASSWORD"]}
    monkeypatch.setenv("RABBIT_PASSWORD", "guest")
    app = run(source_app(uri, exchange), **how)
    until(app, lambda: reads(app))
    monkeypatch.setenv("RABBIT_PASSWORD", "wrong-one")
    other = run(source_app(uri, exchange), fresh=True, **how)
    until(other, lambda: other.stats().sources[0].last_error is not None)
    assert "ACCESS_REFUSED" in str(other.stats().sources[0].last_error)
    assert "wrong-one" not in " ".join([str(other), str(other.stats()), *other.logs, repr(other.plan)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("exchange.name='t',", "has no 'uri'"),
        (f"uri='{URI}',", "has no 'exchange.name'"),
        ("uri='amqp://h', exchange.name='t',", "reads from h:5672, which is not allowed. Add --allow rabbitmq=h:5672"),
        ("uri='amqps://h:1', exchange.name='t',", "uri is an address such as amqp://localhost:5672, not 'amqps://h:1'"),
        ("uri='amqp://me:s3cret@localhost:5672', exchange.name='t',", "write ${sec:NAME} in its place"),
        ("uri='http://me:s3cret@localhost:5672', exchange.name='t',", "uri is an address such as amqp://localhost:5672"),
        (f"uri='{URI}', exchange.name='t', exchange.type='x',", "is one of direct, fanout, topic, headers, not 'x'"),
        (f"uri='{URI}', exchange.name='t', headers='x',", "headers has 'x'"),
        (f"uri='{URI}', exchange.name='t', auto.ack='maybe',", "auto.ack"),
        (f"uri='{URI}', exchange.name='t', tls.enabled='true',", "'tls.enabled' of a source of type 'rabbitmq'"),
    ],
)
def test_what_is_refused(run: Run, options: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as error:
        run(
            f"""
            @source(type='rabbitmq', {options} @map(type='json')) define stream S (v int);
            from S select v insert into O;
            """,
            allow=["rabbitmq=localhost:5672"],
        )
    assert message in str(error.value)
    assert "s3cret" not in str(error.value)


def test_without_the_library(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(SparkStreamError, match=r"needs pika: pip install 'sparkstream-nb\[rabbitmq\]'"):
        run(source_app(URI, "t"), allow=["rabbitmq=localhost:5672"])
