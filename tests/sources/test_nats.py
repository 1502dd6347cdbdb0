"""Sources and sinks of type nats, against a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import nats
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from tests.apps.waiting import rows, until
from tests.event_loops import run_async
from tests.nats_server import NatsServer
from tests.servers import free_port

Run = Callable[..., App]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[NatsServer]:
    found = NatsServer(free_port(), getattr(request, "param", ()))
    found.start()
    yield found
    found.stop()


def publish(server: NatsServer, subject: str, *bodies: bytes) -> None:
    async def published() -> None:
        client = await nats.connect(server.url)
        for body in bodies:
            await client.publish(subject, body)
        await client.flush()
        await client.close()

    run_async(published())


def source_app(server: NatsServer, more: str = "") -> str:
    return f"""
    @source(type='nats', destination='trades.*', server.urls='{server.url}', {more} @map(type='json'))
    define stream S (k string, v int);
    from S select k, v insert into O;
    """


def sink_app(server: NatsServer, more: str = "") -> str:
    return f"""
    define stream S (k string, v int);
    @sink(type='nats', destination='trades.{{{{k}}}}', server.urls='{server.url}', {more} on.error='STORE',
          @map(type='json'))
    define stream Out (k string, v int);
    from S select k, v insert into Out;
    """


def reads(app: App) -> bool:
    found = app.stats().sources[0]
    return found.behind is not None and found.last_error is None


def test_events_go_from_one_app_to_another(run: Run, server: NatsServer, tmp_path: Path) -> None:
    takes = run(source_app(server), allow=server.allow, name="takes", home=tmp_path / "a")
    until(takes, lambda: reads(takes))
    sends = run(sink_app(server), allow=server.allow, name="sends", home=tmp_path / "b")
    sends.send("S", [["a", 1], ["b", 2], ["no subject", 3], ["c", 4]])
    assert sends.drain(30) == 0
    until(takes, lambda: rows(takes, "O") == 3)
    assert sorted(takes.output("O").frame["v"].tolist()) == [1, 2, 4]
    assert sends.errors.frame["reason"].tolist() == [
        "sink Out-nats-1: 'trades.no subject' is no subject of NATS"
    ]


def test_a_server_that_goes_away_and_comes_back(run: Run, server: NatsServer, tmp_path: Path) -> None:
    takes = run(source_app(server), allow=server.allow, name="takes", home=tmp_path / "a")
    sends = run(sink_app(server), allow=server.allow, name="sends", home=tmp_path / "b")
    until(takes, lambda: reads(takes))
    publish(server, "trades.x", b'{"event":{"k":"x","v":1}}', b"not JSON")
    until(takes, lambda: rows(takes, "O") == 1 and len(takes.errors) == 1)
    server.stop()
    until(takes, lambda: takes.stats().sources[0].last_error is not None)
    sends.send("S", ["y", 2])
    sends.flush()
    until(sends, lambda: "cannot be reached" in (sends.stats().sinks[0].last_error or ""))
    server.start()
    until(takes, lambda: reads(takes))
    assert sends.drain(30) == 0
    publish(server, "trades.x", b'{"event":{"k":"x","v":3}}')
    until(takes, lambda: 3 in takes.output("O").frame["v"].tolist())


@pytest.mark.parametrize("server", [("--user", "me", "--pass", "s3cret")], indirect=True)
def test_a_login_is_a_reference_and_is_not_shown(
    run: Run, server: NatsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NATS_PASSWORD", "s3cret")
    login = "cluster.id='test-cluster', auth.type='user', username='me', password='${env:NATS_PASSWORD}',"
    how = {"allow": server.allow, "allow_env": ["NATS_PASSWORD"]}
    app = run(source_app(server, login), **how)
    until(app, lambda: reads(app))
    assert "s3cret" not in " ".join([str(app), str(app.stats()), *app.logs, repr(app.plan)])
    monkeypatch.setenv("NATS_PASSWORD", "wrong-one")
    other = run(source_app(server, login), fresh=True, **how)
    until(other, lambda: other.stats().sources[0].last_error is not None)
    assert "wrong-one" not in str(other.stats())
    assert "nats://localhost" in other.away[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "reads from localhost:4222, which is not allowed. Add --allow nats=localhost:4222"),
        ("server.urls='http://x:1',", "server.urls are nats://HOST:PORT, with commas"),
        ("auth.type='tls',", "auth.type is 'user' or 'token', not 'tls'"),
        ("auth.type='user', username='me',", "auth.type='user' needs username and password"),
        ("auth.type='token', token='plain',", "write token='${sec:NAME}'"),
        ("cluster.id='test-cluster', durable.name='d',", "'durable.name'"),
        ("streaming.cluster.id='test-cluster',", "streaming.cluster.id"),
    ],
)
def test_what_is_refused(run: Run, options: str, said: str) -> None:
    allow = [] if not options else ["nats=localhost:4222"]
    with pytest.raises(SparkStreamError) as refused:
        run(
            f"""
            @source(type='nats', destination='t', {options} @map(type='json')) define stream S (v int);
            from S select v insert into O;
            """,
            allow=allow,
        )
    assert said in str(refused.value)


def test_messages_that_were_dropped_are_an_error() -> None:
    from sparkstream_nb.mapping.decoding import Decoded
    from sparkstream_nb.sources.subscription_reader import with_losses

    nothing = Decoded([], [], ())
    assert with_losses(nothing, 0) is nothing
    (lost,) = with_losses(nothing, 3).rejected
    assert lost.reason == "3 messages were dropped: the app did not take them in time"
