"""A server that takes each message as an HTTP request (`http_client.py`).

Every request has an `Idempotency-Key`, the same when it is sent again, by which a server can recognize a repeat.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from ..connections.call_responses import POLL, Desk, Response
from ..mapping import Message
from ..plan.query_parts import template_attributes
from .header_texts import HeaderTemplates
from .http_client import HttpAnswer, HttpClient, HttpServer
from .oauth import OAuthPlace, TokenSource
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

MOST_RESPONSE = 1 << 24
"""Bytes of a response that a source takes."""
METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE", "GET"})
OWN = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "idempotency-key", "expect", "te", "upgrade"}
)
"""Headers that an app does not set, in small letters."""
_LATER = frozenset({408, 425, 429})


@dataclass(frozen=True)
class HttpPlace:
    """Place of an http sink, with `path` and query; `timeout` in seconds, for connecting and for each read. `method`
    and the headers of `templates` may name attributes as `{{attribute}}`; `headers` are as they are. `key` begins each
    Idempotency-Key. `oauth`: source of the access token of each request. Never shown: it has secrets.
    """

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    templates: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    method: str = "POST"
    timeout: float = 6.0
    key: str = ""
    oauth: OAuthPlace | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Calls:
    """Destination of responses; `attributes`: attributes of the event that sources read with a response."""

    desk: Desk
    attributes: tuple[str, ...] = ()


class HttpTarget(Target):
    """Sends a request for each message, over one connection that is kept open."""

    def __init__(self, place: HttpPlace, calls: Calls | None = None) -> None:
        """With `calls`, a message is delivered when its response is on the disk."""
        self.place, self._calls = place, calls
        self._cancel_event = threading.Event()
        method = {"method": place.method} if template_attributes(place.method) else {}
        self._headers = HeaderTemplates(place.headers, place.templates)
        self.templates: Mapping[str, str] = {**self._headers.templates, **method}
        if calls is not None:
            self.templates = {**self.templates, **{f"event {a}": f"{{{{{a}}}}}" for a in calls.attributes}}
        self._client = HttpClient(
            HttpServer(place.scheme, place.host, place.port, place.timeout, 0 if calls is None else MOST_RESPONSE)
        )
        self._tokens = None if place.oauth is None else TokenSource(place.oauth)

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        self._cancel_event.clear()
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        message, place = messages[0], places[0]
        if self._calls is not None and not self._calls.desk.is_open():
            raise TargetUnavailable("a source of its responses does not read")
        method = message.properties.get("method", self.place.method).upper()
        if method not in METHODS:
            raise Undeliverable(f"'{method[:20]}' is not a method: it is {', '.join(sorted(METHODS))}")
        headers = self._headers.fill(message.properties)
        headers["Idempotency-Key"] = f"{self.place.key}-{place.batch}-{place.row}"
        answer = self._request_with_token(method, message.body, headers)
        status, reason = answer.status, f"the server answered {answer}"
        if self._calls is not None and (taker := self._calls.desk.taker(status)) is not None:
            self._hand_over(taker, answer, message)
            return 1
        if 200 <= status < 300:
            return 1
        if status >= 500 or status in _LATER:
            raise TargetUnavailable(reason)
        raise Undeliverable(f"{reason}; redirects are not followed" if 300 <= status < 400 else reason)

    def _request_with_token(self, method: str, body: bytes, headers: dict[str, str]) -> HttpAnswer:
        """The answer to a request, with an access token if one is needed: a new one, if it is not accepted."""
        if self._tokens is None:
            return self._client.ask(method, self.place.path, body, headers)
        token = self._tokens.token()
        answer = self._client.ask(method, self.place.path, body, {**headers, "Authorization": f"Bearer {token}"})
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        token = self._tokens.token(refused_token=token)
        return self._client.ask(method, self.place.path, body, {**headers, "Authorization": f"Bearer {token}"})

    def _hand_over(self, taker: str, answer: HttpAnswer, message: Message) -> None:
        """Waits until a response is on the disk. Raises TargetUnavailable if it will not be, and Undeliverable for
        one that is too long.
        """
        assert self._calls is not None
        if not answer.is_complete:
            raise Undeliverable(f"its response has more than {MOST_RESPONSE:,} bytes")
        headers = {**answer.headers, **{k.lower(): v for k, v in answer.headers.items()}}
        event = {a: message.properties[f"event {a}"] for a in self._calls.attributes}
        response = Response(answer.body, {**headers, **event})
        self._calls.desk.leave(taker, response)
        while not response.on_disk.wait(POLL):
            if self._cancel_event.is_set():
                raise TargetUnavailable("the app stops")
        if response.is_lost:
            raise TargetUnavailable("the source of its responses stopped")

    def close(self) -> None:
        self._client.close()
        if self._tokens is not None:
            self._tokens.close()

    def cancel(self) -> None:
        self._cancel_event.set()
        self._client.cancel()
        if self._tokens is not None:
            self._tokens.cancel()
