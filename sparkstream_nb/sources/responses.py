"""Takes the responses to the calls of a sink of the same app (`connections.call_responses`)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..connections.call_responses import Desk, Response
from ..mapping.decoding import Decoder
from .reader import Behind, ReadMessages


class ResponseReader:
    """A `Reader` of the responses that are left for the source `name`."""

    def __init__(self, desk: Desk, name: str, decoder: Decoder) -> None:
        self._desk, self._name, self._decoder = desk, name, decoder
        self._taken: list[Response] = []
        self._opened = False

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self.close()
        self._desk.open(self._name)
        self._opened = True
        return None

    def read(self, seconds: float) -> ReadMessages | None:
        self._taken = found = self._desk.take(self._name, seconds)
        if not found:
            return None
        return ReadMessages(self._decoder.decode([r.body for r in found], [r.properties for r in found]), len(found))

    def kept(self, taken: ReadMessages, refused: Mapping[int, str]) -> None:
        found, self._taken = self._taken, []
        for response in found:
            response.kept.set()

    def busy(self, *, full: bool) -> None:
        pass

    def behind(self) -> Behind | None:
        return Behind(time.monotonic(), {"responses": self._desk.count_waiting(self._name)}) if self._opened else None

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._desk.close(self._name)
        found, self._taken = self._taken, []
        for response in found:
            response.lose()

    def cancel(self) -> None:
        pass
