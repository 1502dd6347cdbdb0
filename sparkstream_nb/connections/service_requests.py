"""Requests to `http-service` sources, which sinks of the same app answer.

A request waits in the memory of the process that listens. It is gone when that process ends.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

POLL = 0.1
"""Seconds until a request that waits looks whether its source still listens."""


@dataclass(frozen=True)
class ServiceResponse:
    """The answer to a request."""

    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(eq=False)
class ServiceRequest:
    """A request that waits: its `message_id`, and its response once there is one."""

    message_id: str
    response: ServiceResponse | None = None
    response_event: threading.Event = field(default_factory=threading.Event)


class ServiceRequests:
    """The requests that wait at the sources of one `source.id`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, ServiceRequest] = {}

    def add(self) -> ServiceRequest:
        """A new request that waits from now on."""
        request = ServiceRequest(str(uuid.uuid4()))
        with self._lock:
            self._requests[request.message_id] = request
        return request

    def remove(self, request: ServiceRequest) -> None:
        """The request waits no more."""
        with self._lock:
            self._requests.pop(request.message_id, None)

    def respond(self, message_id: str, response: ServiceResponse) -> bool:
        """Answers a request; False if none of this id waits."""
        with self._lock:
            request = self._requests.pop(message_id, None)
            if request is None:
                return False
            request.response = response
        request.response_event.set()
        return True

    def wait(
        self, request: ServiceRequest, seconds: float, is_listening: Callable[[], bool]
    ) -> ServiceResponse | None:
        """The response to a request; None if there is none within `seconds`, or when its source stops."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and is_listening():
            if request.response_event.wait(min(POLL, left)):
                break
        self.remove(request)
        return request.response


class Services:
    """The requests of an app, by the `source.id` that sources and sinks give."""

    def __init__(self) -> None:
        self._requests: dict[str, ServiceRequests] = {}

    def of(self, source_id: str) -> ServiceRequests:
        """The requests of a `source.id`."""
        return self._requests.setdefault(source_id, ServiceRequests())
