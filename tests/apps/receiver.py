"""A real HTTP server on this machine that keeps what is posted to it, whole."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Posted:
    """A request. `status` is what it was answered with."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int


@dataclass
class Receiver:
    """`answer(n, body)` gives the status of request number n, from 0; it may take its time."""

    answer: Callable[[int, bytes], int] = lambda n, body: 200
    requests: list[Posted] = field(default_factory=list)
    url: str = ""
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def taken(self) -> list[bytes]:
        """The bodies of the requests that were answered with 200."""
        return [r.body for r in self.requests if r.status == 200]

    def wait_for(self, count: int, seconds: float = 60.0) -> None:
        """Waits until so many requests have come in."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, seconds), self.requests


@contextlib.contextmanager
def receiver(answer: Callable[[int, bytes], int] | None = None, port: int = 0) -> Iterator[Receiver]:
    """A server that runs meanwhile."""
    found = Receiver() if answer is None else Receiver(answer)
    begun = [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def take(self) -> None:
            length = int(self.headers.get("Content-Length", 0 if self.command == "GET" else -1))
            body = self.rfile.read(max(length, 0))
            if len(body) != length:  # the client was killed while it sent: no server takes this for a request
                self.close_connection = True
                return
            with found.changed:
                number, begun[0] = begun[0], begun[0] + 1
            status = found.answer(number, body)
            with found.changed:
                found.requests.append(Posted(self.command, self.path, dict(self.headers), body, status))
                found.changed.notify_all()
            with contextlib.suppress(OSError):  # the client may be gone
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

        do_POST = do_PUT = do_GET = take

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def process_request(self, request: Any, client_address: Any) -> None:
            open_connections.append(request)
            super().process_request(request, client_address)

    open_connections: list[Any] = []
    server = Server(("127.0.0.1", port), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        for connection in open_connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()
