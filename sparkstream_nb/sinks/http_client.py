"""Requests to one server, over one connection that is kept open.

Redirects are not followed and proxies of the environment are not used: requests go where an app was allowed to send
them, or nowhere.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..connections.sockets import shut_down
from .target import TargetUnavailable

_LEAST_READ = 1 << 16
"""Bytes of an answer that are read, so that the connection can be used again."""


@dataclass(frozen=True)
class HttpServer:
    """A server; `timeout` in seconds, for connecting and for each read. `keeps`: bytes of an answer that are kept."""

    scheme: str
    host: str
    port: int
    timeout: float = 6.0
    keeps: int = 0

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


@dataclass(frozen=True)
class HttpAnswer:
    """An answer, and the part of its body that was read; `is_complete`: that is all of it."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    is_complete: bool = True

    def __str__(self) -> str:
        return f"{self.status} {self.reason[:60]}".rstrip()


class HttpClient:
    """A client of a server. Used by one thread, except `cancel`."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self._connection: http.client.HTTPConnection | None = None
        self._is_used = False

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """The answer to a request. A connection that the server has closed since is opened again. Raises
        TargetUnavailable.
        """
        was_used = self._is_used
        try:
            return self._ask(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            if not was_used:
                raise TargetUnavailable(f"{self.server} cannot be reached: {_why(error)}") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise TargetUnavailable(f"{self.server} cannot be reached: {_why(error)}") from None
        try:
            return self._ask(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise TargetUnavailable(f"{self.server} cannot be reached: {_why(error)}") from None

    def close(self) -> None:
        """Ends the connection; `ask` may follow."""
        self._is_used = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def cancel(self) -> None:
        """Ends a request that is under way, from another thread."""
        connection = self._connection
        shut_down(None if connection is None else connection.sock)

    def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        s = self.server
        if self._connection is None:
            if s.scheme == "https":
                self._connection = http.client.HTTPSConnection(
                    s.host, s.port, timeout=s.timeout, context=ssl.create_default_context()
                )
            else:
                self._connection = http.client.HTTPConnection(s.host, s.port, timeout=s.timeout)
        connection = self._connection
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        body_start = answer.read(max(_LEAST_READ, s.keeps + 1))
        self._is_used = True
        is_complete = len(body_start) <= s.keeps and answer.isclosed()
        if not answer.isclosed():  # the rest of the body is not read
            self.close()
        return HttpAnswer(
            answer.status, answer.reason or "", dict(answer.getheaders()), body_start[: s.keeps], is_complete
        )


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
