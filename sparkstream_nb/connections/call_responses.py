"""Responses of services that sinks call, left for sources of the same app.

A sink continues when a response is in the inbox, on the disk: so none is lost. If a crash comes between, the call is
made again, with the same Idempotency-Key, and its response comes twice.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

POLL = 0.1
"""Seconds until a sink that waits looks whether it is to end."""


@dataclass(eq=False)
class Response:
    """A response: its body, and the properties that it comes with. `on_disk` is set when it is on the disk, or, with
    `is_lost`, when it will not be."""

    body: bytes
    properties: Mapping[str, str]
    on_disk: threading.Event = field(default_factory=threading.Event)
    is_lost: bool = False

    def lose(self) -> None:
        """It will not be on the disk."""
        self.is_lost = True
        self.on_disk.set()


@dataclass(frozen=True)
class ResponseSource:
    """A source that takes responses whose status (in digits) `status` matches. `names` are the properties that it
    reads: attributes of the call, and headers."""

    name: str
    status: re.Pattern[str]
    names: frozenset[str]


class Desk:
    """The responses to the calls of one sink: the first of `sources` that takes a status gets it."""

    def __init__(self, sources: Sequence[ResponseSource] = ()) -> None:
        self.sources = tuple(sources)
        self._lock = threading.Lock()
        self._open: dict[str, list[Response]] = {}
        self._some = threading.Condition(self._lock)

    @property
    def names(self) -> frozenset[str]:
        """The properties that sources read."""
        return frozenset(name for source in self.sources for name in source.names)

    def taker(self, status: int) -> str | None:
        """The name of the source that takes a status; None for none."""
        return next((s.name for s in self.sources if s.status.fullmatch(str(status))), None)

    def is_open(self) -> bool:
        """True if all sources read."""
        with self._lock:
            return all(s.name in self._open for s in self.sources)

    def open(self, name: str) -> None:
        """The source `name` reads from now on."""
        with self._lock:
            self._open[name] = []

    def close(self, name: str) -> None:
        """The source `name` reads no more: its responses are lost."""
        with self._lock:
            left = self._open.pop(name, [])
        for response in left:
            response.lose()

    def leave(self, name: str, response: Response) -> None:
        """Leaves a response for a source; it is lost where that does not read."""
        with self._some:
            waiting = self._open.get(name)
            if waiting is None:
                response.lose()
                return
            waiting.append(response)
            self._some.notify_all()

    def take(self, name: str, seconds: float) -> list[Response]:
        """All responses left for a source, waited for up to `seconds`."""
        with self._some:
            self._some.wait_for(lambda: self._open.get(name), seconds)
            responses = self._open.get(name) or []
            if responses:
                self._open[name] = []
            return responses

    def count_waiting(self, name: str) -> int:
        """Number of responses left for a source."""
        with self._lock:
            return len(self._open.get(name) or ())


class Desks:
    """The desks of an app, by the `sink.id` that sinks and sources give."""

    def __init__(self, desks: Mapping[str, Desk] | None = None) -> None:
        self._desks = dict(desks or {})

    def of(self, sink_id: str) -> Desk:
        """The desk of a `sink.id`; one without sources where no source names it."""
        return self._desks.setdefault(sink_id, Desk())
