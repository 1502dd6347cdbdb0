"""Answers the requests that wait at `http-service` sources of the same app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..connections.service_requests import ServiceRequests, ServiceResponse
from ..errors import shown
from ..mapping import Message
from .header_texts import HeaderTemplates
from .target import OutputPlace, Target, Undeliverable

MESSAGE_ID = "message.id"
RESERVED_HEADERS = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers of a response that an app does not set, in small letters."""


@dataclass(frozen=True)
class ServicePlace:
    """Responses to the requests of one `source.id`. `message_id` names an attribute of the event, as `{{attribute}}`;
    `headers` are as they are, `templates` are headers that name attributes."""

    source_id: str
    message_id: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    templates: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class ServiceResponseTarget(Target):
    """Answers a request with each message."""

    def __init__(self, place: ServicePlace, requests: ServiceRequests) -> None:
        self.place, self._requests = place, requests
        self._headers = HeaderTemplates(place.headers, place.templates)
        self.templates: Mapping[str, str] = {MESSAGE_ID: place.message_id, **self._headers.templates}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        message = messages[0]
        response = ServiceResponse(message.body, self._headers.fill(message.properties))
        message_id = message.properties[MESSAGE_ID]
        if not self._requests.respond(message_id, response):
            raise Undeliverable(
                f"no request to {self.place.source_id} waits with the id {shown(message_id)}: it has its answer, it "
                "was answered with 504, or the app has started since"
            )
        return 1

    def close(self) -> None:
        """There is nothing to close."""
