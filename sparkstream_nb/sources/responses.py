"""Takes the responses to the calls of a sink of the same app (`connections.call_responses`)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..connections.call_responses import Desk, Response
from ..mapping.decoding import Decoder
from .reader import Behind, ReadMessages, SourceReader


class ResponseReader(SourceReader):
    """A `Reader` of the responses that are left for the source `name`."""

    def __init__(self, desk: Desk, name: str, decoder: Decoder) -> None:
        self._desk, self._name, self._decoder = desk, name, decoder
        self._open_responses: list[Response] = []
        self._is_open = False

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        self._desk.open(self._name)
        self._is_open = True
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        self._open_responses = responses = self._desk.take(self._name, seconds)
        if not responses:
            return None
        return ReadMessages(
            self._decoder.decode([r.body for r in responses], [r.properties for r in responses]), len(responses)
        )

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        responses, self._open_responses = self._open_responses, []
        for response in responses:
            response.on_disk.set()

    def behind(self) -> Behind | None:
        return Behind(time.monotonic(), {"responses": self._desk.count_waiting(self._name)}) if self._is_open else None

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._desk.close(self._name)
        responses, self._open_responses = self._open_responses, []
        for response in responses:
            response.lose()
