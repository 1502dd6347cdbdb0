"""A manager's HTTP interface, following WSO2's REST API for Siddhi apps: paths, status codes and JSON bodies.

One request for each connection, which has a few seconds to come in whole. Without user name and password, the answer is
401 and nothing else.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ...errors import Misuse, SiddhiError, SparkStreamError, printable, shown
from ...logins import Logins
from ...masking import mask_passwords
from ...prometheus_format import CONTENT_TYPE
from ...serving import Answer, Listener, Request, ServerLimits
from ..results.overview_html import overview_html
from .dashboard_page import PAGE_POLICY, dashboard_page
from .manager import MOST_BYTES, STATISTICS, ManagedApp, Manager, ManagerClosed, NameTaken, NoSuchApp

APPS = "siddhi-apps"
METRICS = "metrics"
DASHBOARD = "dashboard"
_JSON = "application/json; charset=utf-8"
_HTML = "text/html; charset=utf-8"
SECONDS = 10.0
"""For a request to come in, and for an answer to go out."""
MOST_CONNECTIONS = 32
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_VALIDATION, _PROCESSING = 800_101, 800_102
"""WSO2's codes for an app that is wrong, and for one that could not be deployed."""

Log = Callable[[str], None]


class Credentials(Logins):
    """A user name and a password, of which only a keyed hash is kept, so that they are shown nowhere."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__([(user, password)])


@dataclass(frozen=True)
class Address:
    """The address of a server: an IP address, and its family. `loopback`: only this machine reaches it."""

    ip: str
    family: socket.AddressFamily
    loopback: bool


def address_of(host: str) -> Address:
    """The address of a host's name. Raises `Misuse` if it has none."""
    try:
        every = socket.getaddrinfo(host or "-", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Misuse(f"--host: {shown(host)} is not an address of this machine, such as 127.0.0.1") from None
    family, _, _, _, socket_address = min(
        every, key=lambda a: a[0] is not socket.AF_INET
    )  # localhost is 127.0.0.1, then ::1
    ip = str(socket_address[0])
    return Address(ip, family, ipaddress.ip_address(ip.partition("%")[0]).is_loopback)


def tls_context(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS with a certificate and its key, PEM files. Raises `Misuse` if they cannot be used."""
    for what, path in (("--tls-cert", cert), ("--tls-key", key)):
        if not path.is_file():
            raise Misuse(f"{what}: there is no file {path}")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # else it asks on the terminal for the password
    except (ssl.SSLError, OSError, ValueError) as e:
        why = e.reason if isinstance(e, ssl.SSLError) and e.reason else e
        raise Misuse(
            f"{cert} and {key} cannot be used for TLS ({why}): give a PEM certificate and its key, without a password"
        ) from None
    return context


@dataclass(frozen=True)
class ListeningPlace:
    """The place at which a manager listens: port 0 is a free one. `seconds`: how long a request may take to come in."""

    address: Address
    port: int
    tls: ssl.SSLContext | None = None
    seconds: float = SECONDS


class ManagerServer:
    """Listens for requests to a manager from `start` to `close`. `log` gets a line for each that changes something,
    and for each that is refused for its password."""

    def __init__(self, manager: Manager, credentials: Credentials, place: ListeningPlace, log: Log) -> None:
        """Raises `Misuse` for a port that cannot be listened at."""
        address, port, tls = place.address, place.port, place.tls
        self._host, self._scheme = address.ip, "http" if tls is None else "https"
        limits = ServerLimits(MOST_CONNECTIONS, place.seconds, MOST_BYTES, keeps=False, what="an app")
        try:
            self._listener = Listener(_ManagerSite(manager, credentials, log), address.ip, port, limits, tls)
        except OSError as e:
            why = e.strerror or e
            raise Misuse(f"{address.ip}, port {port} cannot be listened at ({why}): give another --port") from None

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return self._listener.port

    @property
    def url(self) -> str:
        """The address of its apps."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{host}:{self.port}/{APPS}"

    def start(self) -> None:
        """Takes requests from now on, in threads of its own."""
        self._listener.start()

    def close(self) -> None:
        """Take no more requests. Requests in progress are not waited for."""
        self._listener.close()


@dataclass(frozen=True)
class _ManagerAnswer:
    status: HTTPStatus
    body: Any
    headers: Mapping[str, str]
    content_type: str = _JSON

    @classmethod
    def of(cls, status: HTTPStatus, type: str, message: str, **more: Any) -> _ManagerAnswer:
        return cls(status, {"type": type, "message": message, **more}, {})


class _RequestRefused(Exception):
    """The request cannot be taken as it is: `answer` says why."""

    def __init__(self, status: HTTPStatus, type: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.answer = _ManagerAnswer(status, {"type": type, "message": message}, headers or {})


@dataclass(frozen=True)
class _ManagerSite:
    """The manager as a site."""

    manager: Manager
    credentials: Credentials
    log: Log

    def check(self, request: Request) -> Answer | None:
        try:
            self._check_access(request)
        except _RequestRefused as refusal:
            return self._log_answer(request, refusal.answer)
        return None

    def answer(self, request: Request) -> Answer:
        return self._log_answer(request, _Asked(self.manager, request).answer_request(self.log))

    def refusal(self, request: Request | None, status: HTTPStatus, message: str) -> Answer:
        answer = _ManagerAnswer.of(status, status.phrase.lower(), message)
        return self._as_sent(answer) if request is None else self._log_answer(request, answer)

    def _check_access(self, request: Request) -> None:
        if not self.credentials.fit(request.headers.get("Authorization")):
            raise _RequestRefused(
                HTTPStatus.UNAUTHORIZED, "unauthorized", "user name or password is missing or wrong",
                {"WWW-Authenticate": 'Basic realm="sparkstream", charset="UTF-8"'},
            )  # fmt: skip
        if "Origin" in request.headers:  # a browser would send the password that it knows for any page that asks
            raise _RequestRefused(HTTPStatus.FORBIDDEN, "forbidden", "requests from web pages are not taken")
        if request.method not in _METHODS:
            raise _RequestRefused(HTTPStatus.NOT_IMPLEMENTED, "not implemented", "there is no such method")

    def _log_answer(self, request: Request, answer: _ManagerAnswer) -> Answer:
        """The answer; a line of the log has the effect of the request."""
        if request.method != "GET" or answer.status is HTTPStatus.UNAUTHORIZED:
            message = answer.body.get("message", "") if isinstance(answer.body, dict) else ""
            line = f"{request.client}: {request.method} {request.target[:100]}: {answer.status.value}, {message}"
            self.log(printable(mask_passwords(line.splitlines()[0])))  # so that the client's text stays on one line
        return self._as_sent(answer)

    def _as_sent(self, answer: _ManagerAnswer) -> Answer:
        text = f"{json.dumps(answer.body, ensure_ascii=False)}\n" if answer.content_type == _JSON else answer.body
        headers = {**answer.headers, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        body = text.encode("utf-8", "backslashreplace")
        return Answer(answer.status, body, answer.content_type, headers, closes=True)


@dataclass(frozen=True)
class _Asked:
    """The action that an accepted request asks for."""

    manager: Manager
    request: Request

    def answer_request(self, log: Log) -> _ManagerAnswer:
        """The answer, also for any exception."""
        try:
            return self._answer()
        except _RequestRefused as refusal:
            return refusal.answer
        except NoSuchApp as e:
            return _ManagerAnswer.of(HTTPStatus.NOT_FOUND, "not found", str(e))
        except NameTaken as e:
            return _ManagerAnswer.of(HTTPStatus.CONFLICT, "conflict", str(e))
        except ManagerClosed as e:
            return _ManagerAnswer.of(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", str(e))
        except SiddhiError as e:
            place = {"line": e.span.line, "column": e.span.column + 1}
            return _ManagerAnswer.of(HTTPStatus.BAD_REQUEST, "validation error", str(e), code=_VALIDATION, **place)
        except Misuse as e:
            return _ManagerAnswer.of(HTTPStatus.BAD_REQUEST, "validation error", str(e), code=_VALIDATION)
        except SparkStreamError as e:
            return _ManagerAnswer.of(
                HTTPStatus.INTERNAL_SERVER_ERROR, "file processing error", str(e), code=_PROCESSING
            )
        except Exception:
            log(printable(mask_passwords(traceback.format_exc())))
            return _ManagerAnswer.of(
                HTTPStatus.INTERNAL_SERVER_ERROR, "file processing error",
                "the app was not deployed because of a fault in sparkstream: its log has more", code=_PROCESSING,
            )  # fmt: skip

    def _answer(self) -> _ManagerAnswer:
        try:
            url = urlsplit(self.request.target)
            parameters = parse_qs(url.query, max_num_fields=10)
            words = [unquote(word, errors="strict") for word in url.path.strip("/").split("/")]
        except ValueError:
            raise _RequestRefused(
                HTTPStatus.BAD_REQUEST, "bad request", "the path of the request cannot be read"
            ) from None
        match words:
            case [root] if root in ("", DASHBOARD):
                self._allow("GET", "HEAD")
                return self._dashboard(parameters)
            case [root] if root == APPS:
                return self._all(parameters)
            case [root] if root == METRICS:
                self._allow("GET", "HEAD")
                return _ManagerAnswer(HTTPStatus.OK, self.manager.metrics(), {}, CONTENT_TYPE)
            case [root, word] if root == APPS and word == STATISTICS:
                self._allow("GET")
                return self._ok([_statistics(a) for a in self._select_apps(parameters)])
            case [root, name] if root == APPS and name:
                return self._one(name)
            case [root, name, "status"] if root == APPS and name:
                self._allow("GET")
                return self._ok({"status": _status(self.manager.get(name))})
        raise _RequestRefused(
            HTTPStatus.NOT_FOUND, "not found", f"there is no such path. Known: /{APPS}, /{APPS}/NAME, "
            f"/{APPS}/NAME/status, /{APPS}/{STATISTICS}, /{METRICS}, /{DASHBOARD}",
        )  # fmt: skip

    def _dashboard(self, parameters: Mapping[str, list[str]]) -> _ManagerAnswer:
        """The page of all apps, or what of it changes (`part=apps`)."""
        apps_html = overview_html(self.manager.overview())
        is_part = parameters.get("part") == ["apps"]
        text = apps_html if is_part else dashboard_page(apps_html)
        return _ManagerAnswer(HTTPStatus.OK, text, {"Content-Security-Policy": PAGE_POLICY}, _HTML)

    def _all(self, parameters: Mapping[str, list[str]]) -> _ManagerAnswer:
        self._allow("GET", "POST", "PUT")
        if self.request.method == "GET":
            return self._ok([a.app.name for a in self._select_apps(parameters)])
        app = self.manager.check(self._text())
        if self.request.method == "POST":
            managed_app, new = self.manager.add(app), True
        else:
            managed_app, new = self.manager.put(app)
        outcome = "deployed" if new else "replaced"
        body = {"type": "success", "message": f"app '{app.name}' is {outcome}", **_details(managed_app)}
        if not new:
            return self._ok(body)
        return _ManagerAnswer(HTTPStatus.CREATED, body, {"Location": f"/{APPS}/{quote(app.name, safe='')}"})

    def _one(self, name: str) -> _ManagerAnswer:
        self._allow("GET", "DELETE")
        if self.request.method == "GET":
            managed_app = self.manager.get(name)
            return self._ok({"content": mask_passwords(managed_app.app.text), **_details(managed_app)})
        self.manager.remove(name)
        return self._ok({"type": "success", "message": f"app '{name}' is stopped and removed"})

    def _select_apps(self, parameters: Mapping[str, list[str]]) -> list[ManagedApp]:
        """The apps, or only the running or the stopped ones (`isActive`)."""
        active = parameters.get("isActive", [""])[-1].lower()
        return [a for a in self.manager.all() if not active or a.active == (active == "true")]

    def _allow(self, *methods: str) -> None:
        if self.request.method not in methods:
            raise _RequestRefused(
                HTTPStatus.METHOD_NOT_ALLOWED, "method not allowed", f"this path takes {', '.join(methods)}",
                {"Allow": ", ".join(methods)},
            )  # fmt: skip

    def _text(self) -> str:
        """The app's text."""
        kind = Message()
        kind["Content-Type"] = self.request.headers.get("Content-Type", "text/plain")
        if kind.get_content_type() != "text/plain" or kind.get_content_charset("utf-8") not in ("utf-8", "us-ascii"):
            raise _RequestRefused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported media type",
                "send the app's text as it is, in UTF-8, with the header Content-Type: text/plain",
            )  # fmt: skip
        body = self.request.body
        try:
            return body.decode()
        except UnicodeDecodeError as e:
            line = body.count(b"\n", 0, e.start) + 1
            raise _RequestRefused(
                HTTPStatus.BAD_REQUEST, "validation error", f"the app is not UTF-8 text (line {line})"
            ) from None

    def _ok(self, body: Any) -> _ManagerAnswer:
        return _ManagerAnswer(HTTPStatus.OK, body, {})


def _status(a: ManagedApp) -> str:
    return "active" if a.active else "inactive"


def _statistics(a: ManagedApp) -> dict[str, Any]:
    return {"appName": a.app.name, "status": _status(a), "state": a.hosted_app.state}


def _details(a: ManagedApp) -> dict[str, Any]:
    """An app as JSON: its state, its groups with the node of each instance, its topics, and notes on its split."""
    split = a.app.split
    return {
        "name": a.app.name,
        "status": _status(a),
        "state": a.hosted_app.state,
        "file": a.file,
        "groups": [
            {
                "name": g.name,
                "parallel": g.parallel,
                "elements": list(g.elements),
                "reads": [{"stream": r.stream, "strategy": r.strategy.value, "key": r.key} for r in g.reads],
                "writes": list(g.writes),
                "receiver": g.receiver,
                "instances": [{"name": i, "node": a.hosted_app.placement.get(i)} for i in g.instances],
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
