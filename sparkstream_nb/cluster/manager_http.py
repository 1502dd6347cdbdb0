"""A manager's HTTP interface, as WSO2's REST API for Siddhi apps has it: paths, status codes and JSON bodies.

One request for each connection, which has a few seconds to come in whole. Who does not know user name and password gets
401 and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import http.server
import io
import ipaddress
import json
import secrets
import socket
import socketserver
import ssl
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ..errors import Misuse, SiddhiError, SparkStreamError, masked, printable, shown
from ..spark.deadline import Deadline
from .manager import MOST_BYTES, STATISTICS, ManagedApp, Manager, ManagerClosed, NameTaken, NoSuchApp
from .prometheus import CONTENT_TYPE

APPS = "siddhi-apps"
METRICS = "metrics"
_JSON = "application/json; charset=utf-8"
SECONDS = 10.0
"""For a request to come in, and for an answer to go out."""
MOST_CONNECTIONS = 32
_POLL = 0.1
"""Seconds until the server sees that it is to end."""
_DRAINED = 8 * MOST_BYTES
"""Bytes of a refused body that are read and thrown away, so that the client gets to read why it was refused."""
_VALIDATION, _PROCESSING = 800_101, 800_102
"""WSO2's codes for an app that is wrong, and for one that could not be deployed."""

Log = Callable[[str], None]


class Credentials:
    """A user name and a password, of which only a keyed hash is kept, so that they are shown nowhere."""

    def __init__(self, user: str, password: str) -> None:
        self._key = secrets.token_bytes(32)
        self._known = self._hash(f"{user}:{password}".encode())

    def fit(self, header: str | None) -> bool:
        """Whether an `Authorization` header has them. The time that takes says nothing of what is wrong."""
        try:
            scheme, _, words = (header or "").partition(" ")
            found = base64.b64decode(words.strip(), validate=True)
        except (binascii.Error, ValueError):
            scheme, found = "", b""
        right = hmac.compare_digest(self._hash(found), self._known)
        return right and scheme.lower() == "basic"

    def _hash(self, words: bytes) -> bytes:
        return hmac.digest(self._key, words, "sha256")


@dataclass(frozen=True)
class Address:
    """Where a server listens: an IP address, and its family. `loopback`: only this machine reaches it."""

    ip: str
    family: socket.AddressFamily
    loopback: bool


def address_of(host: str) -> Address:
    """The address of a host's name. Raises `Misuse` where it has none."""
    try:
        every = socket.getaddrinfo(host or "-", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Misuse(f"--host: {shown(host)} is not an address of this machine, such as 127.0.0.1") from None
    family, _, _, _, found = min(every, key=lambda a: a[0] is not socket.AF_INET)  # localhost is 127.0.0.1, then ::1
    ip = str(found[0])
    return Address(ip, family, ipaddress.ip_address(ip.partition("%")[0]).is_loopback)


def tls_context(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS with a certificate and its key, PEM files. Raises `Misuse` where they cannot be used."""
    for what, path in (("--tls-cert", cert), ("--tls-key", key)):
        if not path.is_file():
            raise Misuse(f"{what}: there is no file {path}")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # it would ask on the terminal for that of the key
    except (ssl.SSLError, OSError, ValueError) as e:
        why = e.reason if isinstance(e, ssl.SSLError) and e.reason else e
        raise Misuse(
            f"{cert} and {key} cannot be used for TLS ({why}): give a PEM certificate and its key, without a password"
        ) from None
    return context


class ManagerServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Listens for requests to a manager from `start` to `close`. `log` gets a line for each that changes something,
    and for each that is refused for its password."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self,
        manager: Manager,
        credentials: Credentials,
        address: Address,
        port: int,
        log: Log,
        *,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        """Port 0 is a free one. `seconds`: how long a request may take to come in. Raises `Misuse` for a port that
        cannot be listened at."""
        self.manager, self.credentials, self.log, self.seconds = manager, credentials, log, seconds
        self.address_family = address.family
        self._tls, self._host = tls, address.ip
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL,), name="manager-http", daemon=True)
        try:
            super().__init__((address.ip, port), _Handler)
        except OSError as e:
            why = e.strerror or e
            raise Misuse(f"{address.ip}, port {port} cannot be listened at ({why}): give another --port") from None

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of its apps."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'http' if self._tls is None else 'https'}://{host}:{self.port}/{APPS}"

    def start(self) -> None:
        """Takes requests from now on, in threads of its own."""
        self._thread.start()

    def close(self) -> None:
        """Takes no more requests. What is being answered is not waited for."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    # ------------------------------------------------------------------------------------------- of the base classes

    def server_bind(self) -> None:
        """As the base class, which would also ask for the host's name over the network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self._host, self.port

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(self.seconds)
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        # The handshake is made here, in the connection's thread: others do not wait for a client that makes none.
        with self._tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as wrapped:
            wrapped.do_handshake()
            super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks off is no error; anything else is a fault of ours, and loud."""
        if not isinstance(sys.exception(), OSError):
            self.log(printable(masked(traceback.format_exc())))


@dataclass(frozen=True)
class _Answer:
    status: HTTPStatus
    body: Any
    headers: Mapping[str, str]
    content_type: str = _JSON

    @classmethod
    def of(cls, status: HTTPStatus, type: str, message: str, **more: Any) -> _Answer:
        return cls(status, {"type": type, "message": message, **more}, {})


class _Refused(Exception):
    """The request cannot be taken as it is: `answer` says why."""

    def __init__(self, status: HTTPStatus, type: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.answer = _Answer(status, {"type": type, "message": message}, headers or {})


class _Handler(http.server.BaseHTTPRequestHandler):
    server: ManagerServer
    protocol_version = "HTTP/1.1"
    _body_read = False

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(Deadline(self.connection, self.server.seconds))

    def version_string(self) -> str:
        return "sparkstream"

    def log_message(self, format: str, *args: Any) -> None:
        """The log is written in words, where something changes."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses: requests that are not HTTP, headers that are too long, unknown methods."""
        status = HTTPStatus(code)
        self._send(_Answer.of(status, status.phrase.lower(), message or status.phrase))

    def handle_expect_100(self) -> bool:
        """A client that asks before it sends its body hears of what is wrong with the request instead."""
        try:
            self._check_access()
            self._length()
        except _Refused as refused:
            self._send(refused.answer)
            return False
        return super().handle_expect_100()

    def _serve(self) -> None:
        try:
            self._check_access()
            answer = self._answer()
        except _Refused as refused:
            answer = refused.answer
        except NoSuchApp as e:
            answer = _Answer.of(HTTPStatus.NOT_FOUND, "not found", str(e))
        except NameTaken as e:
            answer = _Answer.of(HTTPStatus.CONFLICT, "conflict", str(e))
        except ManagerClosed as e:
            answer = _Answer.of(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", str(e))
        except SiddhiError as e:
            place = {"line": e.span.line, "column": e.span.column + 1}
            answer = _Answer.of(HTTPStatus.BAD_REQUEST, "validation error", str(e), code=_VALIDATION, **place)
        except Misuse as e:
            answer = _Answer.of(HTTPStatus.BAD_REQUEST, "validation error", str(e), code=_VALIDATION)
        except SparkStreamError as e:
            answer = _Answer.of(HTTPStatus.INTERNAL_SERVER_ERROR, "file processing error", str(e), code=_PROCESSING)
        except Exception:
            self.server.log(printable(masked(traceback.format_exc())))
            answer = _Answer.of(
                HTTPStatus.INTERNAL_SERVER_ERROR, "file processing error",
                "the app was not deployed because of a fault in sparkstream: its log has more", code=_PROCESSING,
            )  # fmt: skip
        if self.command != "GET" or answer.status is HTTPStatus.UNAUTHORIZED:
            self._log(answer)
        self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _serve

    # --------------------------------------------------------------------------------------------------- what is asked

    def _check_access(self) -> None:
        if not self.server.credentials.fit(self.headers.get("Authorization")):
            raise _Refused(
                HTTPStatus.UNAUTHORIZED, "unauthorized", "user name or password is missing or wrong",
                {"WWW-Authenticate": 'Basic realm="sparkstream", charset="UTF-8"'},
            )  # fmt: skip
        if "Origin" in self.headers:  # a browser would send the password that it knows for any page that asks
            raise _Refused(HTTPStatus.FORBIDDEN, "forbidden", "requests from web pages are not taken")

    def _answer(self) -> _Answer:
        try:
            url = urlsplit(self.path)
            asked = parse_qs(url.query, max_num_fields=10)
            words = [unquote(word, errors="strict") for word in url.path.strip("/").split("/")]
        except ValueError:
            raise _Refused(HTTPStatus.BAD_REQUEST, "bad request", "the path of the request cannot be read") from None
        match words:
            case [root] if root == APPS:
                return self._all(asked)
            case [root] if root == METRICS:
                self._allow("GET", "HEAD")
                return _Answer(HTTPStatus.OK, self.server.manager.metrics(), {}, CONTENT_TYPE)
            case [root, word] if root == APPS and word == STATISTICS:
                self._allow("GET")
                return self._ok([_statistics(a) for a in self._wanted(asked)])
            case [root, name] if root == APPS and name:
                return self._one(name)
            case [root, name, "status"] if root == APPS and name:
                self._allow("GET")
                return self._ok({"status": _status(self.server.manager.get(name))})
        raise _Refused(
            HTTPStatus.NOT_FOUND, "not found", f"there is no such path. Known: /{APPS}, /{APPS}/NAME, "
            f"/{APPS}/NAME/status, /{APPS}/{STATISTICS}, /{METRICS}",
        )  # fmt: skip

    def _all(self, asked: Mapping[str, list[str]]) -> _Answer:
        self._allow("GET", "POST", "PUT")
        if self.command == "GET":
            return self._ok([a.app.name for a in self._wanted(asked)])
        app = self.server.manager.check(self._text())
        if self.command == "POST":
            made, new = self.server.manager.add(app), True
        else:
            made, new = self.server.manager.put(app)
        done = "deployed" if new else "replaced"
        body = {"type": "success", "message": f"app '{app.name}' is {done}", **_details(made)}
        if not new:
            return self._ok(body)
        return _Answer(HTTPStatus.CREATED, body, {"Location": f"/{APPS}/{quote(app.name, safe='')}"})

    def _one(self, name: str) -> _Answer:
        self._allow("GET", "DELETE")
        if self.command == "GET":
            found = self.server.manager.get(name)
            return self._ok({"content": masked(found.app.text), **_details(found)})
        self.server.manager.remove(name)
        return self._ok({"type": "success", "message": f"app '{name}' is stopped and removed"})

    def _wanted(self, asked: Mapping[str, list[str]]) -> list[ManagedApp]:
        """The apps, or those of them that run or do not (`isActive`)."""
        active = asked.get("isActive", [""])[-1].lower()
        return [a for a in self.server.manager.all() if not active or a.active == (active == "true")]

    def _allow(self, *methods: str) -> None:
        if self.command not in methods:
            raise _Refused(
                HTTPStatus.METHOD_NOT_ALLOWED, "method not allowed", f"this path takes {', '.join(methods)}",
                {"Allow": ", ".join(methods)},
            )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------ its body

    def _length(self) -> int:
        """The bytes of the body."""
        if "Transfer-Encoding" in self.headers:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "length required", "send the app with its Content-Length")
        lengths = self.headers.get_all("Content-Length", ["0"])
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdecimal()) or len(lengths[0]) > 18:
            raise _Refused(HTTPStatus.BAD_REQUEST, "bad request", "Content-Length is not a number of bytes")
        length = int(lengths[0])
        if length > MOST_BYTES:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large",
                f"an app has at most {MOST_BYTES:,} bytes, and this one {length:,}",
            )  # fmt: skip
        return length

    def _text(self) -> str:
        """The app's text."""
        length = self._length()
        plain = self.headers.get_content_type() == "text/plain"  # which it is without the header too
        if not plain or self.headers.get_content_charset("utf-8") not in ("utf-8", "us-ascii"):
            raise _Refused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported media type",
                "send the app's text as it is, in UTF-8, with the header Content-Type: text/plain",
            )  # fmt: skip
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            raise _Refused(
                HTTPStatus.REQUEST_TIMEOUT, "timeout", f"the app did not come in within {self.server.seconds:g} s"
            ) from None
        self._body_read = True
        if len(body) < length:
            raise _Refused(HTTPStatus.BAD_REQUEST, "bad request", "the request ended within the app's text")
        try:
            return body.decode()
        except UnicodeDecodeError as e:
            line = body.count(b"\n", 0, e.start) + 1
            raise _Refused(
                HTTPStatus.BAD_REQUEST, "validation error", f"the app is not UTF-8 text (line {line})"
            ) from None

    # ---------------------------------------------------------------------------------------------------- the answer

    def _ok(self, body: Any) -> _Answer:
        return _Answer(HTTPStatus.OK, body, {})

    def _send(self, answer: _Answer) -> None:
        self.close_connection = True
        text = f"{json.dumps(answer.body, ensure_ascii=False)}\n" if answer.content_type == _JSON else answer.body
        body = text.encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError):  # the client may have gone meanwhile; the app is deployed all the same
            self.connection.settimeout(self.server.seconds)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            if not self._body_read:
                self._drain()

    def _drain(self) -> None:
        """Reads what the client is still sending: closing before would let its system drop the answer."""
        headers: Any = getattr(self, "headers", None) or {}
        if headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers:
            return
        left = _DRAINED
        while left > 0 and (found := self.rfile.read1(65_536)):
            left -= len(found)

    def _log(self, answer: _Answer) -> None:
        """A line of the log. What the client wrote stays within it."""
        said = answer.body.get("message", "") if isinstance(answer.body, dict) else ""
        line = f"{self.client_address[0]}: {self.command} {self.path[:100]}: {answer.status.value}, {said}"
        self.server.log(printable(masked(line.splitlines()[0])))


def _status(a: ManagedApp) -> str:
    return "active" if a.active else "inactive"


def _statistics(a: ManagedApp) -> dict[str, Any]:
    return {"appName": a.app.name, "status": _status(a), "state": a.hosted.state}


def _details(a: ManagedApp) -> dict[str, Any]:
    """An app as JSON: its state, its groups with the node of each instance, its topics, and notes on its split."""
    split = a.app.split
    return {
        "name": a.app.name,
        "status": _status(a),
        "state": a.hosted.state,
        "file": a.file,
        "groups": [
            {
                "name": g.name,
                "parallel": g.parallel,
                "elements": list(g.elements),
                "reads": [{"stream": r.stream, "strategy": r.strategy.value, "key": r.key} for r in g.reads],
                "writes": list(g.writes),
                "receiver": g.receiver,
                "instances": [{"name": i, "node": a.hosted.placement.get(i)} for i in g.instances],
            }
            for g in split.groups
        ],
        "topics": [
            {
                "name": t.name,
                "stream": t.stream,
                "key": t.key,
                "partitions": t.partitions,
                "writers": list(t.writers),
                "readers": list(t.readers),
            }
            for t in split.topics
        ],
        "notes": list(split.notes),
    }
