"""Sources and sinks of type websocket, against a real server."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from tests.apps.waiting import rows, until
from tests.processes import free_port

Run = Callable[..., App]


class Server:
    """A WebSocket server on loopback. What clients send is in `received`; `say` sends to all of them."""

    def __init__(self) -> None:
        self.port = free_port()
        self.received: queue.Queue[str | bytes] = queue.Queue()
        self.handshakes: list[dict[str, str]] = []
        self._clients: set[WebSocketHandler] = set()

    @property
    def url(self) -> str:
        return f"ws://localhost:{self.port}/abc"

    @property
    def allow(self) -> list[str]:
        return [f"websocket=localhost:{self.port}"]

    def start(self) -> None:
        server = self

        class Handler(WebSocketHandler):
            def open(self, *_: str) -> None:
                server.handshakes.append(dict(self.request.headers))
                server._clients.add(self)

            def select_subprotocol(self, subprotocols: list[str]) -> str | None:
                return subprotocols[-1] if subprotocols else None

            def on_message(self, message: str | bytes) -> None:
                server.received.put(message)

            def on_close(self) -> None:
                server._clients.discard(self)

        class Elsewhere(RequestHandler):
            def get(self) -> None:
                self.redirect("/abc")

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def listen() -> None:
            self._http = HTTPServer(Application([("/abc", Handler), ("/elsewhere", Elsewhere)]))
            self._http.listen(self.port, "127.0.0.1")

        asyncio.run_coroutine_threadsafe(listen(), self._loop).result(10)

    def say(self, *messages: str | bytes) -> None:
        async def write() -> None:
            for client in self._clients:
                for message in messages:
                    await client.write_message(message, binary=isinstance(message, bytes))

        asyncio.run_coroutine_threadsafe(write(), self._loop).result(10)

    def stop(self) -> None:
        async def end() -> None:
            self._http.stop()
            for client in list(self._clients):
                client.close()
            await self._http.close_all_connections()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self._clients.clear()  # the loop may end before it says of each that it is closed


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    started.start()
    yield started
    started.stop()


def source_app(url: str, more: str = "") -> str:
    return f"""
    @source(type='websocket', url='{url}', {more} @map(type='json'))
    define stream S (k string, v int);
    from S select k, v insert into O;
    """


def sink_app(url: str, more: str = "", mapping: str = "json") -> str:
    return f"""
    define stream S (k string, v int);
    @sink(type='websocket', url='{url}', {more} @map(type='{mapping}'))
    define stream Out (k string, v int);
    from S select k, v insert into Out;
    """


def reads(app: App) -> bool:
    figures = app.stats().sources[0]
    return figures.behind is not None and figures.last_error is None


def event(v: int) -> str:
    return f'{{"event":{{"k":"x","v":{v}}}}}'


def test_messages_of_a_server_are_events(run: Run, server: Server) -> None:
    app = run(source_app(server.url), allow=server.allow)
    until(app, lambda: reads(app))
    server.say(event(1), event(2).encode(), "not JSON")
    until(app, lambda: rows(app, "O") == 2 and len(app.errors) == 1)
    assert app.output("O").frame["v"].tolist() == [1, 2]


def test_a_sink_sends_each_message(run: Run, server: Server) -> None:
    app = run(sink_app(server.url), allow=server.allow)
    for v in (1, 2):
        app.send("S", ["a", v])
        assert app.drain(30) == 0
    assert [server.received.get(timeout=30) for _ in range(2)] == [
        '{"event":{"k":"a","v":1}}',
        '{"event":{"k":"a","v":2}}',
    ]


def test_messages_that_are_no_text_are_sent_as_bytes(run: Run, server: Server) -> None:
    app = run(sink_app(server.url, mapping="binary"), allow=server.allow)
    app.send("S", ["a", 1])
    assert app.drain(30) == 0
    assert isinstance(server.received.get(timeout=30), bytes)


def test_the_handshake(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_TOKEN", "s3cret")
    more = "sub.protocol='one,two', headers=\"'X-Site:here','Authorization:${env:WS_TOKEN}'\","
    app = run(source_app(server.url, more), allow=server.allow, allow_env=["WS_TOKEN"])
    until(app, lambda: reads(app))
    (headers,) = server.handshakes
    assert headers["Sec-Websocket-Protocol"] == "one,two"
    assert headers["X-Site"] == "here"
    assert headers["Authorization"] == "s3cret"
    assert "s3cret" not in " ".join([str(app), str(app.stats()), *app.logs, repr(app.plan)])


def test_a_server_that_goes_away_and_comes_back(run: Run, server: Server, tmp_path: Path) -> None:
    takes = run(source_app(server.url), allow=server.allow, name="takes", home=tmp_path / "a")
    sends = run(sink_app(server.url), allow=server.allow, name="sends", home=tmp_path / "b")
    until(takes, lambda: reads(takes))
    sends.send("S", ["x", 1])
    assert sends.drain(30) == 0
    server.stop()
    until(takes, lambda: takes.stats().sources[0].last_error is not None)
    sends.send("S", ["y", 2])
    sends.flush()
    until(sends, lambda: "cannot be reached" in (sends.stats().sinks[0].last_error or ""))
    server.start()
    until(takes, lambda: reads(takes))
    assert sends.drain(30) == 0
    assert [server.received.get(timeout=30) for _ in range(2)] == [
        '{"event":{"k":"x","v":1}}',
        '{"event":{"k":"y","v":2}}',
    ]
    server.say(event(3))
    until(takes, lambda: rows(takes, "O") == 1)


def test_a_redirect_is_not_followed(run: Run, server: Server) -> None:
    app = run(source_app(f"ws://localhost:{server.port}/elsewhere"), allow=server.allow)
    until(app, lambda: "302" in (app.stats().sources[0].last_error or ""))
    assert server.handshakes == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "has no 'url'"),
        ("url='ws://h/t',", "reads from h:80, which is not allowed. Add --allow websocket=h:80"),
        ("url='wss://localhost:1/t',", "url is an address such as ws://host:8025/path, not 'wss://localhost:1/t'"),
        ("url='ws://me:s3cret@localhost:1/t',", "has a user in front of its host"),
        ("url='ws://localhost:1/a/../t',", "has '.', '..'"),
        ("url='ws://localhost:1/t', headers='Host:x',", "the header Host is not an app's to set"),
        ("url='ws://localhost:1/t', headers='Authorization:s3cret',", "holds a secret"),
        ("url='ws://localhost:1/t', truststore.path='x.jks',", "'truststore.path' of a source of type 'websocket'"),
    ],
)
def test_what_is_refused(run: Run, options: str, message: str) -> None:
    with pytest.raises(SparkStreamError) as error:
        run(
            f"""
            @source(type='websocket', {options} @map(type='json')) define stream S (v int);
            from S select v insert into O;
            """,
            allow=["websocket=localhost:1"],
        )
    assert message in str(error.value)
    assert "s3cret" not in str(error.value)
