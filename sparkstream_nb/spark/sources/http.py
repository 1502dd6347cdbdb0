"""Takes events over HTTP, on this machine alone: a listener with a token, which answers when they are on the disk.

Requests that wait are entered together. Where the app is behind, or too many wait, the answer is 429.
"""

from __future__ import annotations

import contextlib
import hmac
import http.server
import io
import queue
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from ...mapping.decoding import Decoder
from ..deadline import Deadline
from .reader import Away, Behind, Taken

MOST_REQUESTS = 1_000
"""Requests that wait at once, at most."""
MOST_CONNECTIONS = 64
MOST_BYTES = 1 << 24
"""Bytes of a request's body, at most."""
GATHER_SECONDS = 0.01
ANSWER_SECONDS = 30.0
"""How long a request may wait for its answer."""
LEAVE_SECONDS = 2.0
"""How long what a refused request still sends is taken, and thrown away."""
_POLL = 0.05
_LOCAL = frozenset({"localhost", "127.0.0.1"})
_FULL, _STOPPED = "the app is behind: try again later", "the app does not take events now"


@dataclass(frozen=True)
class HttpListener:
    """Where a source listens. `host` is an address of loopback. `seconds`: how long a request may take to come in.
    `token` gives the secret that each request has to bring, `Authorization: Bearer TOKEN`."""

    host: str
    port: int
    path: str
    seconds: float
    token: Callable[[], str] = field(repr=False)


@dataclass(eq=False)
class _Request:
    body: bytes
    headers: Mapping[str, str]
    claim: threading.Lock = field(default_factory=threading.Lock)
    """Held by the first of those who enter it and those who give it up."""
    answered: threading.Event = field(default_factory=threading.Event)
    status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
    said: str = "the app was stopped"

    def answer(self, status: HTTPStatus, said: str = "") -> None:
        self.status, self.said = status, said
        self.answered.set()


class HttpReader:
    """A `Reader` of requests."""

    def __init__(self, place: HttpListener, decoder: Decoder) -> None:
        self.place, self._decoder = place, decoder
        self._waiting: queue.Queue[_Request] = queue.Queue(MOST_REQUESTS)
        self._server: _Server | None = None
        self._full = False
        self._taken: list[_Request] = []

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self.close()
        try:
            self._server = _Server(self)
        except OSError as error:
            raise Away(f"{self.place.host}, port {self.place.port} cannot be listened at: {error.strerror}") from None
        self._server.start()
        return None

    def read(self, seconds: float) -> Taken | None:
        try:
            requests = [self._waiting.get(timeout=seconds)]
        except queue.Empty:
            return None
        end = time.monotonic() + GATHER_SECONDS
        with contextlib.suppress(queue.Empty):
            while len(requests) < MOST_REQUESTS:
                requests.append(self._waiting.get(timeout=max(end - time.monotonic(), 0.0)))
        requests = [r for r in requests if r.claim.acquire(blocking=False)]
        if not requests:
            return None
        self._taken = requests
        found = self._decoder.decode([r.body for r in requests], [r.headers for r in requests])
        return Taken(found, len(requests))

    def kept(self, taken: Taken, refused: Mapping[int, str]) -> None:
        requests, self._taken = self._taken, []
        reasons = {**refused, **{r.message: r.reason for r in taken.decoded.rejected}}
        for i, request in enumerate(requests):
            if i in reasons:
                request.answer(HTTPStatus.BAD_REQUEST, reasons[i])
            else:
                request.answer(HTTPStatus.OK)

    def busy(self, *, full: bool) -> None:
        self._full = full
        if full:
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, _FULL)

    def behind(self) -> Behind | None:
        return None if self._server is None else Behind(time.monotonic(), {"requests": self._waiting.qsize()})

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()
        left, self._taken = self._taken, []
        for request in left:
            request.answer(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED)
        self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED)

    def _refuse(self, status: HTTPStatus, said: str) -> None:
        """Answers all that wait."""
        with contextlib.suppress(queue.Empty):
            while True:
                request = self._waiting.get_nowait()
                if request.claim.acquire(blocking=False):
                    request.answer(status, said)

    def cancel(self) -> None:
        pass

    def take(self, request: _Request) -> None:
        """A request, from a thread of the server; it is answered when this returns."""
        if self._full:
            request.answer(HTTPStatus.TOO_MANY_REQUESTS, _FULL)
            return
        try:
            self._waiting.put_nowait(request)
        except queue.Full:
            request.answer(HTTPStatus.TOO_MANY_REQUESTS, "too many requests wait: try again later")
            return
        end = time.monotonic() + ANSWER_SECONDS
        while not request.answered.wait(_POLL * 10):
            late = self._server is None or time.monotonic() > end
            if late and request.claim.acquire(blocking=False):
                request.status, request.said = HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED
                return


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, reader: HttpReader) -> None:
        self.reader, self.place = reader, reader.place
        self.token = reader.place.token().encode()
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((reader.place.host, reader.place.port), _Handler)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(_POLL,), name="sparkstream-http", daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(timeout=1.0):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "SparkStream", ""

    def setup(self) -> None:
        self.request.settimeout(self.server.place.seconds)
        super().setup()
        self.rfile.close()
        self._coming = Deadline(self.request, self.server.place.seconds)
        self.rfile = io.BufferedReader(self._coming)

    def handle_one_request(self) -> None:
        self._coming.end = time.monotonic() + self.server.place.seconds
        super().handle_one_request()

    def _leave(self) -> None:
        """Ends the connection of a request whose body was not read. A client that is still sending would see that as
        an error, and never the answer: what it sends is thrown away for a while."""
        self.close_connection = True
        self._coming.end = time.monotonic() + LEAVE_SECONDS
        left = MOST_BYTES
        with contextlib.suppress(OSError):
            self.request.shutdown(socket.SHUT_WR)
            while left > 0 and (gone := self.rfile.read1(1 << 16)):
                left -= len(gone)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: headers may hold secrets."""

    def do_POST(self) -> None:
        status, said = self._checked()
        length = self._length()
        if status is None and length is None:
            status, said = HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length"
        elif status is None and length is not None and length > MOST_BYTES:
            status, said = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has {MOST_BYTES:,} bytes at most"
        if status is not None or length is None:
            self._reply(status or HTTPStatus.BAD_REQUEST, said)
            self._leave()
            return
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            self._reply(HTTPStatus.REQUEST_TIMEOUT, f"a request comes in within {self.server.place.seconds:g} s")
            self._leave()
            return
        if len(body) < length:
            self.close_connection = True
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() != "authorization"}
        request = _Request(body, headers | {k.lower(): v for k, v in headers.items()})
        self.server.reader.take(request)
        if request.status is HTTPStatus.SERVICE_UNAVAILABLE:
            self.close_connection = True  # another start of the app may be the one that answers
        self._reply(request.status, request.said)

    do_PUT = do_POST

    def do_GET(self) -> None:
        self.close_connection = True  # a body would be taken for the next request
        self._reply(HTTPStatus.METHOD_NOT_ALLOWED, "events are posted")

    def _checked(self) -> tuple[HTTPStatus | None, str]:
        """What is wrong with a request before its body is read."""
        # A page on the web whose name was bound to this address sends its own name.
        host = re.sub(r":\d*$", "", self.headers.get("Host") or "").lower()
        if host not in _LOCAL:
            return HTTPStatus.FORBIDDEN, "this is not the host that was asked for"
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        right = bool(token) and hmac.compare_digest(token.strip().encode("utf-8", "replace"), self.server.token)
        if not right or scheme.lower() != "bearer":
            return HTTPStatus.UNAUTHORIZED, "the token is missing or wrong: Authorization: Bearer TOKEN"
        if self.path.partition("?")[0].rstrip("/") != self.server.place.path.rstrip("/"):
            return HTTPStatus.NOT_FOUND, "no source listens at this path"
        return None, ""

    def _length(self) -> int | None:
        text = self.headers.get("Content-Length") or ""
        return int(text) if text.isdecimal() and not self.headers.get("Transfer-Encoding") else None

    def _reply(self, status: HTTPStatus, said: str) -> None:
        body = f"{said}\n".encode() if said else b""
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
