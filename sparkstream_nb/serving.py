"""HTTP servers of this process, all alike: limits of parallel requests, and of the time for a request to come in.

Tornado reads and writes HTTP, on a thread of its own for each server. A request is checked when its headers are there:
one that is not allowed is answered before its body is read or asked for. Others are answered in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar

from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.netutil import bind_sockets

MOST_HEADERS = 1 << 16
"""Bytes of a request's headers that are taken."""
_READ_HEADERS = 1 << 18
"""The most connections that are answered; beyond them there is no answer."""
LEAVE_SECONDS = 2.0
"""Seconds for which the rest of a refused request is read and thrown away: a client that is sending would see an end of
the connection as an error, and never the answer."""
_GRACE, _POLL = 5.0, 0.01
_BACKLOG = 128

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerLimits:
    """Limits of a server: `connections` at once, of which an idle one makes room for a new one; `seconds` for
    a request's headers to come in, again for its body, and for its answer to go out; `body` bytes. `keeps`: a
    connection may have several requests; `what` a body is, in words."""

    connections: int
    seconds: float
    body: int
    keeps: bool = True
    what: str = "a body"


@dataclass(frozen=True)
class Request:
    """A request; `target` is path and query as they were sent, `client` the address of who sent it."""

    method: str
    target: str
    headers: HTTPHeaders = field(repr=False)
    client: str
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Answer:
    """An answer; `closes`: the connection ends with it."""

    status: int
    body: bytes = field(default=b"", repr=False)
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False


class Site(Protocol):
    """An answer of a server."""

    def check(self, request: Request) -> Answer | None:
        """Checks a request that has no body yet: the answer that refuses it, or None. Called by the server's thread:
        it does not wait for anything."""
        ...

    def answer(self, request: Request) -> Answer:
        """The answer to a request, made in a thread of its own."""
        ...

    def refusal(self, request: Request | None, status: HTTPStatus, text: str) -> Answer:
        """The answer where the server itself does not take a request, in words."""
        ...


def run_to_end(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` on a loop of this thread alone, then cancel other tasks left on it, and close it."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(work)
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()


class Listener:
    """A server of `site` at an IP address and port, from `start` to `close`. Port 0 is a free one. Raises OSError if
    it cannot be listened at."""

    def __init__(self, site: Site, ip: str, port: int, limits: ServerLimits, tls: ssl.SSLContext | None = None) -> None:
        self._site, self._limits, self._tls = site, limits, tls
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self._sockets = bind_sockets(port, ip, family, backlog=_BACKLOG)
        self.port = int(self._sockets[0].getsockname()[1])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=f"sparkstream-http-{self.port}", daemon=True)
        self._start_event = threading.Event()
        self._ending: asyncio.Future[float]

    def start(self) -> None:
        """Takes requests from now on."""
        self._thread.start()
        self._start_event.wait()

    def close(self, seconds: float = 0.0) -> None:
        """Accept no more requests, and end all connections. Requests in progress are waited for up to `seconds`."""
        if self._loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._ending.set_result, seconds)
            if self._thread is not threading.current_thread():
                self._thread.join(seconds + _GRACE)
        for s in self._sockets:
            s.close()

    def _run(self) -> None:
        self._loop = asyncio.SelectorEventLoop()  # the one of Windows by default has no readers
        run_to_end(self._loop, self._serve())

    async def _serve(self) -> None:
        self._ending = asyncio.get_running_loop().create_future()
        server = self._open_server()
        self._start_event.set()
        end = time.monotonic() + await self._ending
        server.stop()
        server.end_idle()
        while server.open and time.monotonic() < end:
            await asyncio.sleep(_POLL)
        server.end_all()

    def _open_server(self) -> _CountingServer:
        server = _CountingServer(
            _Exchanges(self._site, self._limits),
            no_keep_alive=not self._limits.keeps,
            ssl_options=self._tls,
            idle_connection_timeout=self._limits.seconds,
            body_timeout=self._limits.seconds + LEAVE_SECONDS,
            max_header_size=_READ_HEADERS,
            max_body_size=self._limits.body,
        )
        server.most = self._limits.connections
        server.add_sockets(self._sockets)
        return server


class _CountingServer(HTTPServer):
    """Counts its connections."""

    most: int
    ending = False

    def initialize(self, *args: Any, **options: Any) -> None:
        super().initialize(*args, **options)
        self.open: dict[Any, bool] = {}
        """The streams of the connections, the longest idle first, and whether a request is being taken."""

    def handle_stream(self, stream: Any, address: Any) -> None:
        if len(self.open) >= self.most:
            idle = next((s for s, busy in self.open.items() if not busy), None)
            if idle is None:
                stream.close()
                return
            self._end(idle)
        self.open[stream] = False
        super().handle_stream(stream, address)

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        exchange: _Exchange = super().start_request(server_conn, request_conn)  # type: ignore[assignment]
        stream = request_conn.stream

        def set_busy(busy: bool) -> None:
            if self.open.pop(stream, None) is None:
                return
            if self.ending and not busy:
                stream.close()
                return
            self.open[stream] = busy

        exchange.set_busy = set_busy
        return exchange

    def on_close(self, server_conn: Any) -> None:
        super().on_close(server_conn)
        self.open.pop(server_conn.stream, None)

    def end_idle(self) -> None:
        """Ends the connections without a request; others end with their answers."""
        self.ending = True
        for stream in [s for s, busy in self.open.items() if not busy]:
            self._end(stream)

    def end_all(self) -> None:
        """Ends all connections."""
        for stream in list(self.open):
            self._end(stream)

    def _end(self, stream: Any) -> None:
        self.open.pop(stream, None)
        stream.close()


@dataclass(frozen=True)
class _Exchanges(HTTPServerConnectionDelegate):
    site: Site
    limits: ServerLimits

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        return _Exchange(self.site, self.limits, request_conn)


class _Exchange(HTTPMessageDelegate):
    """A request and its answer. All but `_work` runs in the server's thread."""

    set_busy: Callable[[bool], None]

    def __init__(self, site: Site, limits: ServerLimits, connection: Any) -> None:
        self._site, self._limits, self._connection = site, limits, connection
        self._loop = asyncio.get_running_loop()
        self._body = bytearray()
        self._request: Request | None = None
        self._has_answered = self._closes = False
        self._write_future: asyncio.Future[None]
        self._timer: asyncio.TimerHandle | None = None

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> None:
        assert isinstance(start_line, RequestStartLine)
        client = str(getattr(self._connection.context, "remote_ip", "") or "")
        self._request = request = Request(start_line.method, start_line.path, headers, client)
        refusal = self._refuse_request(request)
        if refusal is None:
            self.set_busy(True)
            self._after(self._limits.seconds, self._late)
            return
        self._send(replace(refusal, closes=True))
        if "Expect" in headers:
            del headers["Expect"]  # Tornado would ask for the body
        if _can_be_drained(headers):
            self._connection.set_body_timeout(LEAVE_SECONDS)
            self._connection.set_max_body_size(1 << 62)
        else:
            self._end()

    def data_received(self, chunk: bytes) -> None:
        if not self._has_answered:
            self._body += chunk

    def finish(self) -> None:
        if self._has_answered:
            self._end()
            return
        self._stop_timer()
        assert self._request is not None
        request, self._body = replace(self._request, body=bytes(self._body)), bytearray()
        threading.Thread(target=self._work, args=(request,), name="sparkstream-http-answer", daemon=True).start()

    def on_connection_close(self) -> None:
        self._stop_timer()
        self._has_answered = True
        self.set_busy(False)

    # ------------------------------------------------------------------------------------------------------ the rest

    def _refuse_request(self, request: Request) -> Answer | None:
        size = sum(len(k) + len(v) + 4 for k, v in request.headers.get_all()) + len(request.target)
        if size > MOST_HEADERS:
            return self._site.refusal(request, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
        wrong = self._site.check(request)
        if wrong is None and (why := self._wrong_length(request)) is not None:
            wrong = self._site.refusal(request, *why)
        return wrong

    def _wrong_length(self, request: Request) -> tuple[HTTPStatus, str] | None:
        """The reason for which the body of a request is refused, from the headers on its length."""
        if "Transfer-Encoding" in request.headers:
            return HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length"
        length = _length(request.headers)
        if length is None:
            return HTTPStatus.BAD_REQUEST, "Content-Length is not a number of bytes"
        if length > self._limits.body:
            text = f"{self._limits.what} has at most {self._limits.body:,} bytes, and this one {length:,}"
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text
        return None

    def _late(self) -> None:
        text = f"a request must arrive within {self._limits.seconds:g} s"
        self._send(replace(self._site.refusal(self._request, HTTPStatus.REQUEST_TIMEOUT, text), closes=True))

    def _work(self, request: Request) -> None:
        try:
            answer = self._site.answer(request)
        except Exception:  # a fault of ours
            _log.exception("A request was not answered")
            answer = self._site.refusal(request, HTTPStatus.INTERNAL_SERVER_ERROR, "the request was not answered")
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            self._loop.call_soon_threadsafe(self._send_whole, answer)

    def _send_whole(self, answer: Answer) -> None:
        if not self._has_answered and not self._connection.stream.closed():
            self._send(answer)
            self._end()

    def _send(self, answer: Answer) -> None:
        """Writes an answer, once."""
        self._has_answered, self._closes = True, answer.closes
        assert self._request is not None
        headers = HTTPHeaders({"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))})
        for name, value in answer.headers.items():
            headers[name] = value
        if answer.closes:
            headers["Connection"] = "close"
        start = ResponseStartLine("HTTP/1.1", answer.status, _phrase(answer.status))
        body = b"" if self._request.method == "HEAD" else answer.body
        self._after(self._limits.seconds, self._connection.close)  # of a client that does not read it
        self._write_future = self._connection.write_headers(start, headers, body)
        self._write_future.add_done_callback(self._after_write)

    def _after_write(self, _: object) -> None:
        self._stop_timer()
        self.set_busy(False)

    def _end(self) -> None:
        """End the exchange: pending writes are still sent."""
        self._connection.finish()
        if self._closes:
            self._write_future.add_done_callback(lambda _: self._connection.close())

    def _after(self, seconds: float, work: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, work)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _length(headers: HTTPHeaders) -> int | None:
    """The bytes of a body, by its one `Content-Length`; None if that is not a length."""
    values = headers.get_list("Content-Length") or ["0"]
    right = len(values) == 1 and values[0].isascii() and values[0].isdecimal() and len(values[0]) <= 18
    return int(values[0]) if right else None


def _can_be_drained(headers: HTTPHeaders) -> bool:
    """True if it can be known where a body ends."""
    if "Transfer-Encoding" in headers:
        return headers["Transfer-Encoding"].lower() == "chunked" and "Content-Length" not in headers
    return _length(headers) is not None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


S = TypeVar("S", bound=Site)


@dataclass(frozen=True)
class SharedListener(Generic[S]):
    """A server of several sources or sinks, and their common site."""

    site: S
    listener: Listener
