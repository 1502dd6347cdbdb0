"""Access tokens of OAuth 2.0 (RFC 6749), as siddhi-io-http asks for them.

With a refresh token that is used, else user name and password, else the client's own credentials. A token is kept in
memory until shortly before it ends, and asked for again where a server does not take it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from ..json_documents import json_object
from .http_client import HttpAnswer, HttpClient, HttpServer
from .target import TargetUnavailable

_MOST_READ = 1 << 20
_BEFORE = 30.0
"""Seconds before its end at which a token is not used any more."""


@dataclass(frozen=True)
class OAuthPlace:
    """Source of tokens. `client`: id and secret in the header; `in_body`: id and secret in the body. Never
    shown: it has secrets.
    """

    server: HttpServer
    path: str
    client: tuple[str, str] | None = field(default=None, repr=False)
    in_body: tuple[str, str] | None = field(default=None, repr=False)
    user: tuple[str, str] | None = field(default=None, repr=False)
    refresh: str = field(default="", repr=False)
    scope: str = ""


class TokenSource:
    """Gives access tokens. `now` is in seconds, and monotonic."""

    def __init__(self, place: OAuthPlace, now: Callable[[], float] = time.monotonic) -> None:
        self._place, self._now = place, now
        server = place.server
        self._client = HttpClient(
            HttpServer(server.scheme, server.host, server.port, server.timeout, keeps=_MOST_READ)
        )
        self._refresh = place.refresh
        self._token = ""
        self._ends = 0.0

    def token(self, refused_token: str = "") -> str:
        """An access token, another one than the `refused_token`. Raises TargetUnavailable if none is given."""
        if not self._token or self._token == refused_token or self._now() >= self._ends:
            self._renew()
        return self._token

    def close(self) -> None:
        """Ends the connection. The token is kept."""
        self._client.close()

    def cancel(self) -> None:
        """Ends a request that is under way, from another thread."""
        self._client.cancel()

    def _renew(self) -> None:
        began = self._now()
        answer = None
        if self._refresh:
            answer = self._ask({"grant_type": "refresh_token", "refresh_token": self._refresh})
        if answer is None or answer.status in (400, 401):
            if self._place.user is not None:
                user, password = self._place.user
                answer = self._ask({"grant_type": "password", "username": user, "password": password})
            elif answer is None or self._place.client is not None or self._place.in_body is not None:
                answer = self._ask({"grant_type": "client_credentials"})
        if answer.status != 200:
            raise TargetUnavailable(f"the token server {self._place.server} answered {answer}{_error_of(answer)}")
        members = json_object(answer.body)
        token, seconds, refresh = (members.get(k) for k in ("access_token", "expires_in", "refresh_token"))
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
            raise TargetUnavailable(f"the token server {self._place.server} gave no access_token")
        self._token = token
        lasts = float(seconds) if isinstance(seconds, int | float | str) and _is_number(seconds) else float("inf")
        self._ends = began + max(lasts - _BEFORE, lasts / 2)
        if isinstance(refresh, str) and refresh:
            self._refresh = refresh

    def _ask(self, form: Mapping[str, str]) -> HttpAnswer:
        p = self._place
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if p.client is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(':'.join(p.client).encode()).decode()}"
        body = dict(form)
        if p.scope and form["grant_type"] != "refresh_token":
            body["scope"] = p.scope
        if p.in_body is not None:
            body |= {"client_id": p.in_body[0], "client_secret": p.in_body[1]}
        return self._client.ask("POST", p.path, urlencode(body).encode(), headers)


def _error_of(answer: HttpAnswer) -> str:
    """The error code of RFC 6749; it is one of a few words."""
    code = json_object(answer.body).get("error")
    return f" ({code})" if isinstance(code, str) and code.replace("_", "").isalpha() and len(code) < 40 else ""


def _is_number(value: float | str) -> bool:
    try:
        return float(value) > 0
    except ValueError:
        return False
