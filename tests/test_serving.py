"""Servers of this process: what they take, how long they wait, and whom they answer before a body."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import pytest

from sparkstream_nb.serving import MOST_HEADERS, Answer, Listener, Request, ServerLimits

SECONDS = 30.0


@dataclass
class Site:
    """Takes requests with the header `X-Key: right`, and answers with their bodies. `gate`: before it answers."""

    gate: threading.Event = field(default_factory=threading.Event)
    asked: list[Request] = field(default_factory=list)

    def check(self, request: Request) -> Answer | None:
        return None if request.headers.get("X-Key") == "right" else self.refusal(request, HTTPStatus.UNAUTHORIZED, "no")

    def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        if request.target == "/wait":
            self.gate.wait(SECONDS)
        if request.target == "/fails":
            raise RuntimeError("no")
        return Answer(HTTPStatus.OK, request.body)

    def refusal(self, request: Request | None, status: HTTPStatus, said: str) -> Answer:
        return Answer(status, said.encode())


@dataclass
class World:
    site: Site
    listener: Listener

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.listener.port), timeout=SECONDS)

    def ask(self, text: str) -> bytes:
        """What comes back until the server ends the connection."""
        with self.connected() as connection:
            connection.sendall(text.encode())
            return all_of(connection)


def all_of(connection: socket.socket) -> bytes:
    out = b""
    while block := connection.recv(1 << 16):
        out += block
    return out


@pytest.fixture
def serve() -> Iterator[Callable[..., World]]:
    with contextlib.ExitStack() as stack:

        def start(**limits: Any) -> World:
            given = {"connections": 8, "seconds": SECONDS, "body": 1000, **limits}
            site = Site()
            listener = Listener(site, "127.0.0.1", 0, ServerLimits(**given))
            listener.start()
            stack.callback(listener.close)
            stack.callback(site.gate.set)
            return World(site, listener)

        yield start


HEAD = "POST / HTTP/1.1\r\nHost: x\r\nX-Key: right\r\n"
NO_KEY = HEAD.replace("right", "wrong")
CLOSE = "Connection: close\r\n"
ANSWERS = [
    (f"{HEAD}{CLOSE}Content-Length: 5\r\n\r\nhello", b"200 OK", b"hello"),
    (f"{HEAD}{CLOSE}\r\n", b"200 OK", b""),
    (f"{HEAD}{CLOSE}Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello", b"100", b"hello"),
    (f"{HEAD}Content-Length: {'9' * 5000}\r\n\r\n", b"400 Bad Request", b"Content-Length is not a number of bytes"),
    (f"{HEAD}Content-Length: -1\r\n\r\n", b"400 Bad Request", b"Content-Length is not a number of bytes"),
    (f"{HEAD}Content-Length: +5\r\n\r\nhello", b"400 Bad Request", b"Content-Length is not a number of bytes"),
    (f"{HEAD}Content-Length: ٥\r\n\r\nhello", b"400 Bad Request", b"Content-Length is not a number of bytes"),
    (f"{HEAD}Content-Length: 5\r\nContent-Length: 2\r\n\r\nhello", b"400 Bad Request", b"Content-Length is not a"),
    (f"{HEAD}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", b"400 Bad Request", b"Content-Length is not a"),
    (f"{HEAD}Content-Length: 5, 5\r\n\r\nhello", b"400 Bad Request", b"Content-Length is not a"),
    (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"411", b"a request needs a Content-Length"),
    (f"{HEAD}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", b"411", b"a request needs a Content-"),
    (f"{HEAD}Content-Length: 1001\r\n\r\n{'x' * 1001}", b"413", b"at most 1,000 bytes, and this one 1,001"),
    (f"{HEAD}Content-Length: {1 << 24}\r\n\r\n{'x' * (1 << 24)}", b"413", b"at most 1,000 bytes, and this one"),
    (f"{HEAD}X: {'x' * MOST_HEADERS}\r\n\r\n", b"431", b"the headers are too long"),
    (f"{NO_KEY}Content-Length: 5\r\n\r\nhello", b"401 Unauthorized", b"no"),
    (f"{NO_KEY}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b"401 Unauthorized", b"no"),
    (f"{NO_KEY}Content-Length: {1 << 24}\r\n\r\n{'x' * (1 << 24)}", b"401 Unauthorized", b"no"),
    (f"{NO_KEY}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", b"401 Unauthorized", b"no"),
    (f"{HEAD}Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n", b"413", b"at most 1,000 bytes"),
    (f"{HEAD}Content-Length: 5000\r\nExpect: 100-Continue\r\n\r\n", b"413", b"at most 1,000 bytes"),
    ("GARBAGE\r\n\r\n", b"400", b""),
    ("GET / HTTP/1.1\r\n\x00\r\n\r\n", b"400", b""),
    (f"{HEAD.replace('/ HTTP', '/fails HTTP')}{CLOSE}\r\n", b"500", b"the request was not answered"),
    (f"{HEAD}{CLOSE}Content-Length: 0\r\n\r\n".replace("POST", "HEAD"), b"200 OK", b""),
]


@pytest.mark.parametrize(("sent", "status", "said"), ANSWERS)
def test_each_request_gets_one_answer(serve: Callable[..., World], sent: str, status: bytes, said: bytes) -> None:
    answer = serve().ask(sent)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    if status == b"100":
        head, _, body = body.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
    assert said in body
    assert body.count(b"HTTP/1.1") == 0


def test_what_is_refused_is_not_asked_for(serve: Callable[..., World]) -> None:
    world = serve()
    for headers in (NO_KEY, HEAD.replace("right", "")):
        answer = world.ask(f"{headers}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 401")
    assert world.site.asked == []


def test_connections_that_say_nothing_keep_nobody_out(serve: Callable[..., World]) -> None:
    world = serve()
    with contextlib.ExitStack() as stack:
        for i in range(100):
            silent = stack.enter_context(world.connected())
            if i % 2:
                silent.sendall(b"POST / HTTP/1.1\r\nX-K")
        answer = world.ask(f"{HEAD}{CLOSE}Content-Length: 2\r\n\r\nok")
        assert answer.startswith(b"HTTP/1.1 200 OK")


def test_requests_that_are_answered_are_not_ended_for_others(serve: Callable[..., World]) -> None:
    world = serve(connections=2)
    with world.connected() as first, world.connected() as second:
        for connection in (first, second):
            connection.sendall(f"{HEAD.replace('/ HTTP', '/wait HTTP')}{CLOSE}Content-Length: 2\r\n\r\nok".encode())
        while len(world.site.asked) < 2:
            time.sleep(0.01)
        with pytest.raises((ConnectionError, AssertionError)):
            assert world.ask(f"{HEAD}{CLOSE}Content-Length: 2\r\n\r\nok")
        world.site.gate.set()
        assert all_of(first).startswith(b"HTTP/1.1 200 OK")
        assert all_of(second).startswith(b"HTTP/1.1 200 OK")
    answer = b""
    while not answer:  # until the server has seen that they are through
        with contextlib.suppress(ConnectionError):
            answer = world.ask(f"{HEAD}{CLOSE}Content-Length: 2\r\n\r\nok")
    assert answer.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("sent", "answer"),
    [("", b""), ("POST / HTTP/1.1\r\nX-Key: ri", b""), (f"{HEAD}Content-Length: 5\r\n\r\nhel", b"HTTP/1.1 408")],
    ids=["nothing", "half of the headers", "half of the body"],
)
def test_what_does_not_come_in_is_given_up(serve: Callable[..., World], sent: str, answer: bytes) -> None:
    found = serve(seconds=0.2).ask(sent)
    assert found.startswith(answer)
    assert answer or not found


def test_a_connection_has_several_requests(serve: Callable[..., World]) -> None:
    request = f"{HEAD}Content-Length: 2\r\n\r\nok"
    assert serve().ask(request * 3 + f"{HEAD}{CLOSE}Content-Length: 2\r\n\r\nok").count(b"HTTP/1.1 200 OK") == 4
    assert serve(keeps=False).ask(request * 3).count(b"HTTP/1.1 200 OK") == 1


def test_a_server_that_ends_answers_what_it_has(serve: Callable[..., World]) -> None:
    world = serve()
    with world.connected() as waiting, world.connected() as idle:
        waiting.sendall(f"{HEAD.replace('/ HTTP', '/wait HTTP')}Content-Length: 2\r\n\r\nok".encode())
        while not world.site.asked:
            time.sleep(0.01)
        ending = threading.Thread(target=world.listener.close, args=(SECONDS,))
        ending.start()
        assert all_of(idle) == b""
        world.site.gate.set()
        assert all_of(waiting).startswith(b"HTTP/1.1 200 OK")
        ending.join(SECONDS)
        assert not ending.is_alive()
    with pytest.raises(ConnectionRefusedError):
        world.connected()


def test_a_port_that_others_have(serve: Callable[..., World]) -> None:
    with pytest.raises(OSError, match="in use"):
        Listener(Site(), "127.0.0.1", serve().listener.port, ServerLimits(8, SECONDS, 1000))
