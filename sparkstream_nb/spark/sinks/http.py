"""A server that takes each message as an HTTP request.

Redirects are not followed and proxies of the environment are not used: requests go where the app was allowed to send
them, or nowhere. Every request has an `Idempotency-Key`, the same when it is sent again, by which a server can tell a
repeat.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...mapping import Message
from ...plan.query_parts import template_attributes
from .target import Away, Place, Refused

METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE", "GET"})
OWN = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "idempotency-key", "expect", "te", "upgrade"}
)
"""Headers that an app does not set, in small letters."""
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_LATER = frozenset({408, 425, 429})
_MOST_READ = 1 << 16
"""Bytes of an answer that are read, so that the connection can be used again."""


@dataclass(frozen=True)
class HttpPlace:
    """Where requests go, with `path` and query; `timeout` in seconds, for connecting and for each read. `method` and
    the headers of `templates` may name attributes as `{{attribute}}`; `headers` are as they are. `key` begins each
    Idempotency-Key. Never shown: it has secrets."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    templates: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    method: str = "POST"
    timeout: float = 6.0
    key: str = ""


def forbidden(value: str) -> str | None:
    """Why a header cannot have a value; None where it can."""
    if _FORBIDDEN.search(value):
        return "has a line break or another control character in it"
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return "has a character that headers do not have"
    return None


class HttpTarget:
    """Sends a request for each message, over one connection that is kept open."""

    by_batch = False
    at_start = False
    at_once = 1

    def __init__(self, place: HttpPlace) -> None:
        self.place = place
        method = {"method": place.method} if template_attributes(place.method) else {}
        self.templates: Mapping[str, str] = {f"header {name}": value for name, value in place.templates} | method
        self._connection: http.client.HTTPConnection | None = None
        self._used = False

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[Place]) -> int:
        message, place = messages[0], places[0]
        method = message.properties.get("method", self.place.method).upper()
        if method not in METHODS:
            raise Refused(f"'{method[:20]}' is not a method: it is {', '.join(sorted(METHODS))}")
        headers = dict(self.place.headers)
        for name, _ in self.place.templates:
            value = message.properties[f"header {name}"]
            wrong = forbidden(value)
            if wrong is not None:
                raise Refused(f"header {name} {wrong}")
            headers[name] = value
        headers["Idempotency-Key"] = f"{self.place.key}-{place.batch}-{place.row}"
        status, reason = self._answer(method, message.body, headers)
        if 200 <= status < 300:
            return 1
        said = f"the server answered {status} {reason[:60]}".rstrip()
        if status >= 500 or status in _LATER:
            raise Away(said)
        raise Refused(f"{said}; redirects are not followed" if 300 <= status < 400 else said)

    def _answer(self, method: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """Status and reason of the server's answer. A connection that the server has closed since is opened again."""
        reused = self._used
        try:
            return self._ask(method, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            if not reused:
                raise Away(f"{self._server()} cannot be reached: {_why(error)}") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Away(f"{self._server()} cannot be reached: {_why(error)}") from None
        try:
            return self._ask(method, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Away(f"{self._server()} cannot be reached: {_why(error)}") from None

    def _ask(self, method: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        if self._connection is None:
            p = self.place
            if p.scheme == "https":
                self._connection = http.client.HTTPSConnection(
                    p.host, p.port, timeout=p.timeout, context=ssl.create_default_context()
                )
            else:
                self._connection = http.client.HTTPConnection(p.host, p.port, timeout=p.timeout)
        connection = self._connection
        connection.request(method, self.place.path, body, dict(headers))
        answer = connection.getresponse()
        answer.read(_MOST_READ)
        self._used = True
        if not answer.isclosed():  # there is more of it, which nobody reads
            self.close()
        return answer.status, answer.reason or ""

    def finish(self, batch: int) -> None:
        """Nothing is left to do."""

    def state(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self._used = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def cancel(self) -> None:
        connection = self._connection
        found = None if connection is None else connection.sock
        if found is not None:
            with contextlib.suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)

    def _server(self) -> str:
        return f"{self.place.scheme}://{self.place.host}:{self.place.port}"


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
