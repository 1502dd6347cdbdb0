"""Takes events over HTTP, on this machine alone: a listener with a token, which answers when they are on the disk, or,
as a service, with what a sink of the app responds (`connections/service_requests.py`).

Requests that wait are entered together. Where the app is behind, or too many wait, the answer is 429. Sources of one
port share a listener, which distinguishes them by the path.
"""

from __future__ import annotations

import contextlib
import hmac
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from ..connections.service_requests import ServiceRequest, ServiceRequests
from ..logins import Logins
from ..mapping.decoding import Decoder
from ..serving import LEAVE_SECONDS, Answer, Listener, ServerLimits, SharedListener
from ..serving import Request as HttpRequest
from .reader import Behind, ReadMessages, SourceReader, SourceUnavailable, gather

MOST_REQUESTS = 1_000
"""Requests that wait at once, at most."""
MOST_CONNECTIONS = 128
MOST_BYTES = 1 << 24
"""Bytes of a request's body, at most."""
ANSWER_SECONDS = 30.0
"""Longest wait of a request until its events are on the disk."""
MESSAGE_ID = "messageId"
"""The transport property by which a sink responds to a request."""
_POLL = 0.1
_LOCAL = frozenset({"localhost", "127.0.0.1"})
_FULL, _STOPPED = "the app is behind: try again later", "the app does not take events now"


@dataclass(frozen=True)
class HttpListener:
    """Place of an http source. `host` is a loopback address. `seconds`: longest time for a request to come in.
    `token` gives the secret that each request has to bring, `Authorization: Bearer TOKEN`; with `logins` it brings the
    user name and password of one of them in its place, `Authorization: Basic ...`.
    """

    host: str
    port: int
    path: str
    seconds: float
    token: Callable[[], str] = field(repr=False)
    logins: Logins | None = None


@dataclass(frozen=True)
class HttpService:
    """The requests of a source whose events are answered, each within `seconds`."""

    requests: ServiceRequests
    seconds: float


@dataclass(eq=False)
class _WaitingRequest:
    body: bytes
    headers: Mapping[str, str]
    claim: threading.Lock = field(default_factory=threading.Lock)
    """Held by the first of those who enter it and those who give it up."""
    answer_event: threading.Event = field(default_factory=threading.Event)
    status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
    text: str = "the app was stopped"

    def answer(self, status: HTTPStatus, text: str = "") -> None:
        self.status, self.text = status, text
        self.answer_event.set()


class HttpReader(SourceReader):
    """A `Reader` of requests."""

    def __init__(self, place: HttpListener, decoder: Decoder, service: HttpService | None = None) -> None:
        """With `service`, a request is answered by a sink, else when its events are on the disk."""
        self.place, self.service, self._decoder = place, service, decoder
        self._waiting: queue.Queue[_WaitingRequest] = queue.Queue(MOST_REQUESTS)
        self._listens = False
        self._full = False
        self._open_requests: list[_WaitingRequest] = []

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        _listen(_SourceSite(self, self.place.token().encode()))
        self._listens = True
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        requests = [r for r in gather(self._waiting, seconds, MOST_REQUESTS) if r.claim.acquire(blocking=False)]
        if not requests:
            return None
        self._open_requests = requests
        events = self._decoder.decode([r.body for r in requests], [r.headers for r in requests])
        return ReadMessages(events, len(requests))

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        requests, self._open_requests = self._open_requests, []
        reasons = {**refusals, **{r.message: r.reason for r in messages.events.rejected}}
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
        return Behind(time.monotonic(), {"requests": self._waiting.qsize()}) if self._listens else None

    def close(self) -> None:
        was_listening, self._listens = self._listens, False
        requests, self._open_requests = self._open_requests, []
        for request in requests:
            request.answer(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED)
        self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED)
        if was_listening:
            _leave(self)

    def is_listening(self) -> bool:
        """True between `open` and `close`."""
        return self._listens

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Answers all that wait."""
        with contextlib.suppress(queue.Empty):
            while True:
                request = self._waiting.get_nowait()
                if request.claim.acquire(blocking=False):
                    request.answer(status, text)

    def take(self, request: _WaitingRequest) -> None:
        """A request, from a thread of the server; it is answered when this returns."""
        if not self._listens:
            request.answer(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED)
            return
        if self._full:
            request.answer(HTTPStatus.TOO_MANY_REQUESTS, _FULL)
            return
        try:
            self._waiting.put_nowait(request)
        except queue.Full:
            request.answer(HTTPStatus.TOO_MANY_REQUESTS, "too many requests wait: try again later")
            return
        end = time.monotonic() + ANSWER_SECONDS
        while not request.answer_event.wait(_POLL):
            late = not self._listens or time.monotonic() > end
            if late and request.claim.acquire(blocking=False):
                request.status, request.text = HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED
                return


@dataclass(frozen=True)
class _SourceSite:
    """The source as a site: requests that may come in wait until they are on the disk."""

    reader: HttpReader
    token: bytes

    def check(self, request: HttpRequest) -> Answer | None:
        place = self.reader.place
        # A page on the web whose name was bound to this address sends its own name.
        host = re.sub(r":\d*$", "", request.headers.get("Host", "")).lower()
        if host not in _LOCAL:
            return self.refusal(request, HTTPStatus.FORBIDDEN, "this is not the host that was asked for")
        authorization = request.headers.get("Authorization")
        if place.logins is not None and not place.logins.fit(authorization):
            text = "user name or password is missing or wrong"
            return _answer(HTTPStatus.UNAUTHORIZED, text, {"WWW-Authenticate": 'Basic realm="sparkstream"'})
        if place.logins is None and not self._has_token(authorization or ""):
            text = "the token is missing or wrong: Authorization: Bearer TOKEN"
            return _answer(HTTPStatus.UNAUTHORIZED, text, {"WWW-Authenticate": "Bearer"})
        if request.method not in ("POST", "PUT"):
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED, "events are posted", {"Allow": "POST, PUT"})
        if _path_of(request.target) != _path_of(place.path):
            return self.refusal(request, HTTPStatus.NOT_FOUND, "no source listens at this path")
        if "Content-Length" not in request.headers:
            return self.refusal(request, HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length")
        return None

    def answer(self, request: HttpRequest) -> Answer:
        headers = {k: v for k, v in request.headers.items() if k.lower() != "authorization"}
        headers |= {k.lower(): v for k, v in headers.items()}
        service = self.reader.service
        if service is None:
            return self._enter(_WaitingRequest(request.body, headers))
        service_request = service.requests.add()
        try:
            properties = headers | dict.fromkeys((MESSAGE_ID, MESSAGE_ID.lower()), service_request.message_id)
            answer = self._enter(_WaitingRequest(request.body, properties))
            return answer if answer.status != HTTPStatus.OK else self._wait_for_response(service, service_request)
        finally:
            service.requests.remove(service_request)

    def _wait_for_response(self, service: HttpService, request: ServiceRequest) -> Answer:
        """The answer to a request whose events are on the disk."""
        response = service.requests.wait(request, service.seconds, self.reader.is_listening)
        if response is not None:
            return Answer(HTTPStatus.OK, response.body, headers=response.headers)
        if not self.reader.is_listening():
            return replace(_answer(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED, {}), closes=True)
        return _answer(HTTPStatus.GATEWAY_TIMEOUT, f"the app did not respond within {service.seconds:g} s", {})

    def _enter(self, waiting: _WaitingRequest) -> Answer:
        """The answer to a request when its events are on the disk, or refused."""
        self.reader.take(waiting)
        # Another start of the app may be the one that answers.
        closes = waiting.status is HTTPStatus.SERVICE_UNAVAILABLE
        more = {"Retry-After": "1"} if waiting.status is HTTPStatus.TOO_MANY_REQUESTS else {}
        return replace(_answer(waiting.status, waiting.text, more), closes=closes)

    def refusal(self, request: HttpRequest | None, status: HTTPStatus, text: str) -> Answer:
        return _answer(status, text, {})

    def _has_token(self, header: str) -> bool:
        scheme, _, token = header.partition(" ")
        right = bool(token) and hmac.compare_digest(token.strip().encode("utf-8", "replace"), self.token)
        return right and scheme.lower() == "bearer"


def _path_of(target: str) -> str:
    return target.partition("?")[0].rstrip("/")


class _SharedSite:
    """The sources of one address, by path. That a path is no source's is told only to those who have the token of one:
    others do not learn which paths there are."""

    def __init__(self, first: _SourceSite) -> None:
        self.sites = {_path_of(first.reader.place.path): first}

    def check(self, request: HttpRequest) -> Answer | None:
        sites = self.sites.copy()
        site = sites.get(_path_of(request.target))
        if site is not None:
            return site.check(request)
        refusals = [s.check(request) for s in sites.values()]
        answers = (r for r in refusals if r is not None and r.status != HTTPStatus.UNAUTHORIZED)
        return next(answers, refusals[0]) if refusals else self._refuse_late()

    def answer(self, request: HttpRequest) -> Answer:
        site = self.sites.get(_path_of(request.target))
        return self._refuse_late() if site is None else site.answer(request)  # it may stop while the body comes in

    def refusal(self, request: HttpRequest | None, status: HTTPStatus, text: str) -> Answer:
        return _answer(status, text, {})

    def _refuse_late(self) -> Answer:
        return replace(_answer(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPED, {}), closes=True)


_listeners: dict[tuple[str, int], SharedListener[_SharedSite]] = {}
_listening = threading.Lock()


def _listen(site: _SourceSite) -> None:
    """Raises SourceUnavailable if the port is another program's, or the path another source's. The source that listens
    first decides the time for a request to come in."""
    place = site.reader.place
    with _listening:
        listener = _listeners.get((place.host, place.port))
        if listener is not None:
            if _path_of(place.path) in listener.site.sites:
                raise SourceUnavailable(f"another source listens at port {place.port}, path {place.path}")
            listener.site.sites[_path_of(place.path)] = site
            return
        shared, limits = _SharedSite(site), ServerLimits(MOST_CONNECTIONS, place.seconds, MOST_BYTES)
        try:
            server = Listener(shared, place.host, place.port, limits)
        except OSError as error:
            raise SourceUnavailable(
                f"{place.host}, port {place.port} cannot be listened at: {error.strerror}"
            ) from None
        server.start()
        _listeners[place.host, place.port] = SharedListener(shared, server)


def _leave(reader: HttpReader) -> None:
    place = reader.place
    with _listening:
        listener = _listeners[place.host, place.port]
        del listener.site.sites[_path_of(place.path)]
        if listener.site.sites:
            return
        del _listeners[place.host, place.port]
    listener.listener.close(LEAVE_SECONDS)


def _answer(status: HTTPStatus, text: str, headers: Mapping[str, str]) -> Answer:
    return Answer(status, f"{text}\n".encode() if text else b"", headers=headers)
